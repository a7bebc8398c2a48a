// SPDX-License-Identifier: MIT
/*
 * xmem holders POOL [SLOT]: which client holds which buffer. Without SLOT all slots are
 * shown that somebody holds; the one that is asked for is shown also if nobody holds it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* ---- as a table ---- */

/* "label pid", or a dash where there is no client. */
static char *client_text(const json_t *client)
{
	if (!json_is_object(client))
		return cli_format("-");
	return cli_format("%s %" JSON_INTEGER_FORMAT,
			  json_string_value(json_object_get(client, "label")),
			  json_integer_value(json_object_get(client, "pid")));
}

static char *owner_text(const json_t *row)
{
	return client_text(json_object_get(row, "owner"));
}

/* "label pid: holds, label pid: holds" */
static char *holders_text(const json_t *row)
{
	const json_t *holders = json_object_get(row, "holders"), *holder;
	char *all = cli_format("%s", json_array_size(holders) ? "" : "-");
	size_t i;

	json_array_foreach(holders, i, holder) {
		char *before = all, *client = client_text(holder);

		all = cli_format("%s%s%s: %" JSON_INTEGER_FORMAT, before, i ? ", " : "", client,
				 json_integer_value(json_object_get(holder, "holds")));
		free(before);
		free(client);
	}
	return all;
}

static const struct cli_column columns[] = {
	{ "SLOT", "slot", NULL },	{ "STATE", "state", NULL },
	{ "BYTES", "bytes", NULL },	{ "FILE", "bytes_file", NULL },
	{ "OWNER", NULL, owner_text },
	{ "HOLDERS", NULL, holders_text }, { 0 },
};

/* ---- gathering ---- */

/* A pool that is looked at, and who its clients were when that began: by id, or null. */
struct look {
	struct xmem_pool *pool;
	struct xmem_pool_info stat;
	json_t *clients;
};

/* An object of who a client is; null if there is none. */
static json_t *client_of(struct xmem_pool *pool, uint32_t id)
{
	struct xmem_client_info info = { .size = sizeof(info) };
	json_t *client;

	if (xmem_pool_client_info(pool, id, &info))
		return json_null();
	client = cli_object();
	cli_set_number(client, "client", info.id);
	cli_set(client, "label", json_string(info.label));
	cli_set_number(client, "pid", info.pid);
	return client;
}

static int look_at(struct look *look)
{
	int err = xmem_pool_stat(look->pool, &look->stat);
	uint32_t id;

	look->clients = cli_array();
	for (id = 0; !err && id < look->stat.clients_max; id++)
		cli_append(look->clients, client_of(look->pool, id));
	return err;
}

static json_t *holders_of(struct look *look, uint32_t slot)
{
	json_t *holders = cli_array(), *client;
	uint32_t id;

	for (id = 0; id < look->stat.clients_max; id++) {
		int64_t holds = xmem_pool_holds(look->pool, id, slot);

		if (holds <= 0)
			continue;
		client = json_copy(json_array_get(look->clients, id));
		if (!json_is_object(client))
			continue;	/* it came a moment ago */
		cli_set_number(client, "holds", (uint64_t)holds);
		cli_append(holders, client);
	}
	return holders;
}

static const char *state_name(uint32_t state)
{
	static const char *const name[] = {
		[XMEM_USE_NONE] = "none", [XMEM_USE_FREE] = "free", [XMEM_USE_WRITING] = "writing",
		[XMEM_USE_LIVE] = "live", [XMEM_USE_LIMBO] = "limbo",
	};

	return state < sizeof(name) / sizeof(*name) ? name[state] : "unknown";
}

/* A token is text: many readers of JSON take numbers for floating point, 53 bits. */
static json_t *token_text(uint64_t token)
{
	char text[24];

	if (!token)
		return json_null();
	snprintf(text, sizeof(text), "0x%016" PRIx64, token);
	return json_string(text);
}

static json_t *row_of(struct look *look, const struct xmem_slot_info *info)
{
	json_t *owner = json_array_get(look->clients, info->owner), *row = cli_object();

	cli_set_number(row, "slot", info->slot);
	cli_set(row, "state", json_string(state_name(info->state)));
	cli_set_number(row, "bytes", info->bytes);
	cli_set_number(row, "payload", info->payload);
	cli_set_number(row, "bytes_file", info->payload_bytes);
	cli_set(row, "token", token_text(info->token));
	cli_set(row, "owner", owner ? json_copy(owner) : json_null());
	cli_set(row, "holders", holders_of(look, info->slot));
	return row;
}

/* The slots from @first up to @end that are held, or all of them. 0, or -errno. */
static int gather(struct look *look, uint32_t first, uint32_t end, bool all, json_t *rows)
{
	struct xmem_slot_info info;
	uint32_t slot;
	int err = 0;

	for (slot = first; !err && slot < end; slot++) {
		info.size = sizeof(info);
		err = xmem_pool_slot_info(look->pool, slot, &info);
		if (!err && (all || info.holds))
			cli_append(rows, row_of(look, &info));
	}
	return err;
}

/* ---- the command ---- */

/* Digits only. XMEM_NOBODY: it is no number that a slot can have. */
static uint32_t slot_number(const char *text)
{
	char *end;
	unsigned long value;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (!*text || *end || strspn(text, "0123456789") != strlen(text) || errno ||
	    value >= XMEM_NOBODY)
		return XMEM_NOBODY;
	return (uint32_t)value;
}

int cli_holders(const struct cli_arguments *arguments)
{
	uint32_t slot = arguments->slot ? slot_number(arguments->slot) : 0;
	struct look look = { .stat.size = sizeof(look.stat) };
	json_t *all, *rows;
	int err;

	if (slot == XMEM_NOBODY)
		return cli_usage("holders: SLOT is a number, not '%s'", arguments->slot);
	look.pool = cli_open(arguments->pool);
	if (!look.pool)
		return CLI_FAILED;
	all = cli_about(arguments->pool, look.pool);
	rows = cli_array();
	cli_set(all, "slots", rows);
	err = look_at(&look);
	if (!err && !arguments->slot)
		err = gather(&look, 0, look.stat.slots, false, rows);
	else if (!err && slot < look.stat.slots)
		err = gather(&look, slot, slot + 1, true, rows);
	err = cli_close(look.pool, err);
	if (!err && arguments->slot && slot >= look.stat.slots)
		err = cli_fail("pool '%s': it has no slot %s, only 0 to %u", arguments->pool,
			       arguments->slot, look.stat.slots - 1);
	else if (!err && arguments->json)
		cli_print_json(all);
	else if (!err)
		cli_print_table(rows, columns);
	json_decref(look.clients);
	json_decref(all);
	return err ? CLI_FAILED : CLI_DONE;
}
