// SPDX-License-Identifier: MIT
/*
 * xmem list: the pools of the host, which the tool does not join for this.
 */
#include <errno.h>

#include "cli.h"

static char *name_text(const json_t *row)
{
	const char *name = json_string_value(json_object_get(row, "name"));

	return cli_format("%s", name ? name : "(anonymous)");
}

static char *clients_text(const json_t *row)
{
	return cli_format("%" JSON_INTEGER_FORMAT "/%" JSON_INTEGER_FORMAT,
			  json_integer_value(json_object_get(row, "clients")),
			  json_integer_value(json_object_get(row, "clients_max")));
}

static const struct cli_column columns[] = {
	{ "NUMBER", "number", NULL },	{ "POOL", NULL, name_text },
	{ "UID", "uid", NULL },		{ "CLIENTS", NULL, clients_text },
	{ "SLOTS", "slots", NULL },	{ "RING", "ring_entries", NULL },
	{ "BYTES", "bytes", NULL },	{ "FILES", "bytes_files", NULL },
	{ "KEPT", "bytes_kept", NULL },	{ 0 },
};

static json_t *row_of(const struct xmem_pool_entry *entry)
{
	json_t *row = cli_object();

	cli_set_number(row, "number", entry->number);
	cli_set(row, "name", *entry->name ? json_string(entry->name) : json_null());
	cli_set_number(row, "uid", entry->owner_uid);
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

int cli_list(const struct cli_arguments *arguments)
{
	struct xmem_pool_entry entry = { 0 };
	json_t *rows = cli_array();
	int err;

	cli_ask();
	for (;;) {
		entry.size = sizeof(entry);
		err = xmem_pool_next(entry.number, &entry);
		if (err)
			break;
		cli_append(rows, row_of(&entry));
	}
	cli_answered();
	if (err != -ENOENT)
		cli_fail_xmem();
	else if (arguments->json)
		cli_print_json(rows);
	else
		cli_print_table(rows, columns);
	json_decref(rows);
	return err == -ENOENT ? CLI_DONE : CLI_FAILED;
}
