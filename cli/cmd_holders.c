// SPDX-License-Identifier: MIT
/*
 * xmem holders POOL [SLOT]: which client holds which buffer. Without SLOT, all slots are shown that
 * a client holds; a SLOT that is given is shown in any case. Without SLOT, a second table names the
 * clients that hold buffers of ended owners, and how many bytes.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli.h"

/* ---- as a table ---- */

static char *owner_text(const json_t *row)
{
	return cli_client_text(json_object_get(row, "owner"));
}

/* "label pid: holds, label pid: holds" */
static char *holders_text(const json_t *row)
{
	const json_t *holders = json_object_get(row, "holders"), *holder;
	char *all = cli_format("%s", json_array_size(holders) ? "" : "-");
	size_t i;

	json_array_foreach(holders, i, holder) {
		char *before = all, *client = cli_client_text(holder);

		all = cli_format("%s%s%s: %" JSON_INTEGER_FORMAT, before, i ? ", " : "", client,
				 json_integer_value(json_object_get(holder, "holds")));
		free(before);
		free(client);
	}
	return all;
}

static const struct cli_column columns[] = {
	{ "SLOT", "slot", NULL },	{ "STATE", "state", NULL },
	{ "BYTES", "bytes", NULL },	{ "DEVICE", NULL, cli_device_text },
	{ "FILE", "bytes_file", NULL },	{ "OWNER", NULL, owner_text },
	{ "HOLDERS", NULL, holders_text }, { 0 },
};

static char *keeper_text(const json_t *row)
{
	return cli_client_text(json_object_get(row, "client"));
}

static const struct cli_column keeper_columns[] = {
	{ "KEEPER", NULL, keeper_text },	{ "ENDED_BYTES", "bytes_ended", NULL }, { 0 },
};

/* ---- gathering ---- */

/* The pool, and its clients at the start of the command: by id, or null. */
struct look {
	struct xmem_pool *pool;
	struct xmem_pool_info stat;
	json_t *clients;
};

static int look_at(struct look *look)
{
	int err = xmem_pool_stat(look->pool, &look->stat);
	uint32_t id;

	look->clients = cli_array();
	for (id = 0; !err && id < look->stat.clients_max; id++)
		cli_append(look->clients, cli_client(look->pool, id));
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
			continue;	/* the client has just joined */
		cli_set_number(client, "holds", (uint64_t)holds);
		cli_append(holders, client);
	}
	return holders;
}

static json_t *row_of(struct look *look, const struct xmem_slot_info *info)
{
	json_t *owner = json_array_get(look->clients, info->owner), *row = cli_object();

	cli_set_number(row, "slot", info->slot);
	cli_set(row, "state",
		json_string(info->overdue ? "overdue" : cli_state_name(info->state)));
	cli_set_number(row, "bytes", info->bytes);
	cli_set_device(row, look->pool, info->device);
	cli_set_number(row, "payload", info->payload);
	cli_set_number(row, "bytes_file", info->payload_bytes);
	cli_set(row, "token", cli_token(info->token));
	cli_set(row, "owner", owner ? json_copy(owner) : json_null());
	cli_set(row, "holders", holders_of(look, info->slot));
	return row;
}

/* Add the slots from @first up to @end that are held, or all of them. 0, or -errno. */
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

/* Add the holders of buffers of ended owners. A holder that ends meanwhile is left out. */
static int gather_keepers(struct look *look, json_t *rows)
{
	struct xmem_client_info info;
	json_t *row;
	uint32_t id;
	int err = 0;

	for (id = 0; !err && id < look->stat.clients_max; id++) {
		info.size = sizeof(info);
		err = xmem_pool_client_info(look->pool, id, &info);
		if (!err && info.bytes_ended && json_is_object(json_array_get(look->clients, id))) {
			row = cli_object();
			cli_set(row, "client", json_copy(json_array_get(look->clients, id)));
			cli_set_number(row, "bytes_ended", info.bytes_ended);
			cli_append(rows, row);
		}
		if (err == -ENOENT)
			err = 0;
	}
	return err;
}

/* ---- the command ---- */

int cli_holders(const struct cli_arguments *arguments)
{
	uint32_t slot = arguments->slot ? cli_slot_number(arguments->slot) : 0;
	struct look look = { .stat.size = sizeof(look.stat) };
	json_t *all, *rows, *keepers;
	int err;

	if (slot == XMEM_NOBODY)
		return cli_usage("holders: SLOT is a number, not '%s'", arguments->slot);
	look.pool = cli_open(arguments->pool);
	if (!look.pool)
		return CLI_FAILED;
	all = cli_about(arguments->pool, look.pool);
	rows = cli_array();
	keepers = cli_array();
	cli_set(all, "slots", rows);
	cli_set(all, "keepers", keepers);
	err = look_at(&look);
	if (!err && !arguments->slot)
		err = gather(&look, 0, look.stat.slots, false, rows) ?:
			gather_keepers(&look, keepers);
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
	if (!err && !arguments->json && json_array_size(keepers)) {
		putchar('\n');
		cli_print_table(keepers, keeper_columns);
	}
	json_decref(look.clients);
	json_decref(all);
	return err ? CLI_FAILED : CLI_DONE;
}
