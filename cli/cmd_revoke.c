// SPDX-License-Identifier: MIT
/*
 * xmem evict POOL CLIENT: end a client. xmem drain [--evict] POOL: let nobody join the pool any
 * more; with --evict, end all its clients.
 */
#include <errno.h>

#include "cli.h"

/* ---- evict ---- */

static const struct cli_column evicted[] = {
	{ "CLIENT", "client", NULL },	{ "LABEL", "label", NULL },
	{ "PID", "pid", NULL },		{ "UID", "uid", NULL },
	{ "HOLDS", "holds", NULL },	{ "SLOTS", "slots", NULL }, { 0 },
};

static json_t *row_of(const struct xmem_client_info *info)
{
	json_t *row = cli_object();

	cli_set_number(row, "client", info->id);
	cli_set(row, "label", cli_text(info->label, sizeof(info->label)));
	cli_set_number(row, "pid", info->pid);
	cli_set_number(row, "uid", info->uid);
	cli_set_number(row, "holds", info->holds);
	cli_set_number(row, "slots", info->slots);
	cli_set_number(row, "incarnation", info->incarnation);
	return row;
}

/* End the client that has this number now. 0, or -errno. */
static int evict(struct xmem_pool *pool, uint32_t id, json_t *rows)
{
	struct xmem_client_info info = { .size = sizeof(info) };
	int err = xmem_pool_client_info(pool, id, &info);

	if (err)
		return err;
	cli_ask();
	err = xmem_pool_evict(pool, id, info.incarnation);
	cli_answered();
	if (!err)
		cli_append(rows, row_of(&info));
	return err;
}

/* ---- both ---- */

static int finish(const struct cli_arguments *arguments, struct xmem_pool *pool, int err,
		  json_t *all, json_t *rows, const struct cli_column *columns)
{
	err = cli_close(pool, err);
	if (!err && arguments->json)
		cli_print_json(all);
	else if (!err)
		cli_print_table(rows, columns);
	json_decref(all);
	return err ? CLI_FAILED : CLI_DONE;
}

int cli_evict(const struct cli_arguments *arguments)
{
	uint32_t id = cli_slot_number(arguments->slot);
	struct xmem_pool *pool;
	json_t *all, *rows;

	if (id == XMEM_NOBODY)
		return cli_usage("evict: CLIENT is a number, not '%s'", arguments->slot);
	pool = cli_open(arguments->pool);
	if (!pool)
		return CLI_FAILED;
	all = cli_about(arguments->pool, pool);
	rows = cli_array();
	cli_set(all, "evicted", rows);
	return finish(arguments, pool, evict(pool, id, rows), all, rows, evicted);
}

/* ---- drain ---- */

static const struct cli_column drained[] = {
	{ "CLIENTS", "clients", NULL },	{ "EVICTED", "evicted", NULL }, { 0 },
};

/* CLIENTS: the clients that are left, except the tool itself. */
static int drain(struct xmem_pool *pool, bool evicts, json_t *rows)
{
	struct xmem_pool_info stat = { .size = sizeof(stat) };
	json_t *row;
	int err, count;

	cli_ask();
	count = xmem_pool_drain(pool, evicts ? XMEM_DRAIN_EVICTS : 0);
	cli_answered();
	if (count < 0)
		return count;
	err = xmem_pool_stat(pool, &stat);
	if (err)
		return err;
	row = cli_object();
	cli_set_number(row, "clients", stat.clients - 1);
	cli_set_number(row, "evicted", count);
	cli_append(rows, row);
	return 0;
}

int cli_drain(const struct cli_arguments *arguments)
{
	struct xmem_pool *pool = cli_open(arguments->pool);
	json_t *all, *rows;

	if (!pool)
		return CLI_FAILED;
	all = cli_about(arguments->pool, pool);
	rows = cli_array();
	cli_set(all, "drained", rows);
	return finish(arguments, pool, drain(pool, arguments->evicts, rows), all, rows, drained);
}
