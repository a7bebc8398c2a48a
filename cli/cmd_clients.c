// SPDX-License-Identifier: MIT
/*
 * xmem clients POOL: the clients of a pool, except the tool itself.
 */
#include <errno.h>

#include "cli.h"

static const struct cli_column columns[] = {
	{ "CLIENT", "client", NULL },	{ "LABEL", "label", NULL },
	{ "PID", "pid", NULL },		{ "UID", "uid", NULL },
	{ "ROLE", "role", NULL },	{ "STATE", "state", NULL },
	{ "SLOTS", "slots", NULL },	{ "HOLDS", "holds", NULL },
	{ "FOLLOWS", "follows", NULL },	{ "BEHIND", "behind", NULL },
	{ "FOLLOWERS", "followers", NULL },
	{ "AWAITS", "awaits", NULL },
	{ "WAIT_NS", "wait_bound_ns", NULL },
	{ "MAPPED", "bytes_mapped", NULL }, { "KEPT", "bytes_kept", NULL },
	{ "LIMBO", "limbo", NULL },	{ "LIMBO_BYTES", "bytes_limbo", NULL }, { 0 },
};

static json_t *row_of(const struct xmem_client_info *info)
{
	json_t *row = cli_object();

	cli_set_number(row, "client", info->id);
	cli_set(row, "label", cli_text(info->label, sizeof(info->label)));
	cli_set_number(row, "pid", info->pid);
	cli_set_number(row, "uid", info->uid);
	cli_set(row, "role", json_string(info->role == XMEM_CLIENT_WRITER ? "writer" : "reader"));
	cli_set(row, "state", json_string(info->alive ? "alive" : "zombie"));
	cli_set_number(row, "slots", info->slots);
	cli_set_number(row, "holds", info->holds);
	cli_set_number(row, "follows", info->follows);
	cli_set_number(row, "behind", info->behind);
	cli_set_number(row, "followers", info->followers);
	cli_set(row, "awaits", info->awaits_writer ? json_string("writer") : json_null());
	cli_set_number(row, "wait_bound_ns", info->wait_bound_ns);
	cli_set_number(row, "bytes_mapped", info->bytes_mapped);
	cli_set_number(row, "bytes_kept", info->bytes_kept);
	cli_set_number(row, "limbo", info->limbo);
	cli_set_number(row, "bytes_limbo", info->bytes_limbo);
	cli_set_number(row, "bytes_ended", info->bytes_ended);
	cli_set_number(row, "incarnation", info->incarnation);
	return row;
}

/* 0, or -errno. A client that ends meanwhile is not shown. */
static int gather(struct xmem_pool *pool, json_t *rows)
{
	struct xmem_pool_info stat = { .size = sizeof(stat) };
	struct xmem_client_info info;
	uint32_t id;
	int err = xmem_pool_stat(pool, &stat);

	for (id = 0; !err && id < stat.clients_max; id++) {
		if ((int)id == xmem_pool_client(pool))
			continue;
		info.size = sizeof(info);
		err = xmem_pool_client_info(pool, id, &info);
		if (!err)
			cli_append(rows, row_of(&info));
		else if (err == -ENOENT)
			err = 0;
	}
	return err;
}

int cli_clients(const struct cli_arguments *arguments)
{
	struct xmem_pool *pool = cli_open(arguments->pool);
	json_t *all, *rows;
	int err;

	if (!pool)
		return CLI_FAILED;
	all = cli_about(arguments->pool, pool);
	rows = cli_array();
	cli_set(all, "clients", rows);
	err = cli_close(pool, gather(pool, rows));
	if (!err && arguments->json)
		cli_print_json(all);
	else if (!err)
		cli_print_table(rows, columns);
	json_decref(all);
	return err ? CLI_FAILED : CLI_DONE;
}
