// SPDX-License-Identifier: MIT
/*
 * xmem stat POOL: how many slots, buffers, clients and holds a pool has now.
 */
#include <stdio.h>

#include "cli.h"

/* What the table says about each number, in its order. */
static const char *const meanings[][2] = {
	{ "slots", "capacity" },
	{ "attached", "have a buffer" },
	{ "free", "of these, without contents" },
	{ "writing", "of these, being written, or taken ahead for that by their owner" },
	{ "live", "of these, with contents" },
	{ "held", "somebody holds" },
	{ "limbo", "their owner has ended, others still use them" },
	{ "holds", "of all clients together" },
	{ "clients", "alive" },
	{ "zombies", "ended, their publications still in flight" },
	{ "bytes", "of all attached slots" },
};

/* 0, or -errno. What the tool itself adds to the pool is left out: one client. */
static int gather(struct xmem_pool *pool, json_t *all)
{
	struct xmem_pool_info stat = { .size = sizeof(stat) };
	int err = xmem_pool_stat(pool, &stat);

	if (err)
		return err;
	cli_set_number(all, "slots", stat.slots);
	cli_set_number(all, "attached", stat.attached);
	cli_set_number(all, "free", stat.free);
	cli_set_number(all, "writing", stat.writing);
	cli_set_number(all, "live", stat.live);
	cli_set_number(all, "held", stat.held);
	cli_set_number(all, "limbo", stat.limbo);
	cli_set_number(all, "holds", stat.holds);
	cli_set_number(all, "clients", stat.clients - 1);
	cli_set_number(all, "zombies", stat.zombies);
	cli_set_number(all, "bytes", stat.bytes);
	return 0;
}

static void print_lines(const json_t *all)
{
	size_t i;

	printf("pool      %s\n", json_string_value(json_object_get(all, "pool")));
	printf("backend   %s\n", json_string_value(json_object_get(all, "backend")));
	for (i = 0; i < sizeof(meanings) / sizeof(*meanings); i++)
		printf("%-9s %-12" JSON_INTEGER_FORMAT " %s\n", meanings[i][0],
		       json_integer_value(json_object_get(all, meanings[i][0])), meanings[i][1]);
}

int cli_stat(const struct cli_arguments *arguments)
{
	struct xmem_pool *pool = cli_open(arguments->pool);
	json_t *all;
	int err;

	if (!pool)
		return CLI_FAILED;
	all = cli_about(arguments->pool, pool);
	err = cli_close(pool, gather(pool, all));
	if (!err && arguments->json)
		cli_print_json(all);
	else if (!err)
		print_lines(all);
	json_decref(all);
	return err ? CLI_FAILED : CLI_DONE;
}
