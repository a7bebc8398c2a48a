// SPDX-License-Identifier: MIT
/*
 * xmem list: the pools of the host. The tool does not join them for this.
 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "cli.h"

char *cli_pool_name(const json_t *row)
{
	const char *name = json_string_value(json_object_get(row, "name"));
	json_int_t number = json_integer_value(json_object_get(row, "number"));
	json_int_t uid = json_integer_value(json_object_get(row, "uid"));
	char tag[24];

	snprintf(tag, sizeof(tag), "@%" JSON_INTEGER_FORMAT, number);
	name = name ? name : tag;
	if (uid == (json_int_t)geteuid() || uid == UINT32_MAX)
		return cli_format("%s", name);
	return cli_format("%" JSON_INTEGER_FORMAT ":%s", uid, name);
}

static char *owner_text(const json_t *row)
{
	json_int_t uid = json_integer_value(json_object_get(row, "uid"));
	const char *user = cli_user(uid);

	if (uid == UINT32_MAX)
		return cli_format("?");
	return user ? cli_format("%s", user) : cli_format("%" JSON_INTEGER_FORMAT, uid);
}

/* "0640:100", with the group if the mode allows the group anything. */
static char *mode_text(const json_t *row)
{
	json_int_t mode = json_integer_value(json_object_get(row, "mode"));
	json_int_t gid = json_integer_value(json_object_get(row, "gid"));

	if (!(mode & 070))
		return cli_format("%04o", (unsigned int)mode);
	if (gid == UINT32_MAX)
		return cli_format("%04o:?", (unsigned int)mode);
	return cli_format("%04o:%" JSON_INTEGER_FORMAT, (unsigned int)mode, gid);
}

static char *clients_text(const json_t *row)
{
	return cli_format("%" JSON_INTEGER_FORMAT "/%" JSON_INTEGER_FORMAT,
			  json_integer_value(json_object_get(row, "clients")),
			  json_integer_value(json_object_get(row, "clients_max")));
}

/* The name is last, so that a long one moves no other column. */
static const struct cli_column columns[] = {
	{ "NUMBER", "number", NULL },	{ "OWNER", NULL, owner_text },
	{ "MODE", NULL, mode_text },	{ "CLIENTS", NULL, clients_text },
	{ "SLOTS", "slots", NULL },	{ "RING", "ring_entries", NULL },
	{ "BYTES", "bytes", NULL },	{ "FILES", "bytes_files", NULL },
	{ "KEPT", "bytes_kept", NULL },	{ "POOL", NULL, cli_pool_name },
	{ 0 },
};

/* The roles in which the calling user may join. */
static json_t *roles_of(const struct xmem_pool_entry *entry)
{
	json_t *roles = cli_array();

	if (entry->roles & XMEM_MAY_READ)
		cli_append(roles, json_string("reader"));
	if (entry->roles & XMEM_MAY_WRITE)
		cli_append(roles, json_string("writer"));
	return roles;
}

static json_t *row_of(const struct xmem_pool_entry *entry)
{
	json_t *row = cli_object();

	cli_set_number(row, "number", entry->number);
	cli_set(row, "name", !*entry->name ? json_null() :
		cli_text(entry->name, sizeof(entry->name)));
	cli_set_number(row, "uid", entry->owner_uid);
	cli_set_number(row, "gid", entry->gid);
	cli_set_number(row, "mode", entry->mode);
	cli_set(row, "roles", roles_of(entry));
	cli_set_number(row, "clients", entry->clients);
	cli_set_number(row, "clients_max", entry->clients_max);
	cli_set_number(row, "slots", entry->slots);
	cli_set_number(row, "ring_entries", entry->ring_entries);
	cli_set_number(row, "bytes", entry->bytes);
	cli_set_number(row, "bytes_files", entry->bytes_files);
	cli_set_number(row, "bytes_kept", entry->bytes_kept);
	cli_set_number(row, "payloads", entry->payloads);
	return row;
}

int cli_pools(json_t *rows)
{
	struct xmem_pool_entry entry = { 0 };
	int err;

	for (;;) {
		entry.size = sizeof(entry);
		err = xmem_pool_next(entry.number, &entry);
		if (err)
			return err == -ENOENT ? 0 : err;
		cli_append(rows, row_of(&entry));
	}
}

int cli_list(const struct cli_arguments *arguments)
{
	json_t *rows = cli_array();
	int err;

	cli_ask();
	err = cli_pools(rows);
	cli_answered();
	if (err)
		cli_fail_xmem();
	else if (arguments->json)
		cli_print_json(rows);
	else
		cli_print_table(rows, columns);
	json_decref(rows);
	return err ? CLI_FAILED : CLI_DONE;
}
