// SPDX-License-Identifier: MIT
/*
 * xmem stat POOL: how many slots, buffers, clients and holds a pool has now.
 */
#include <inttypes.h>
#include <stdio.h>

#include "cli.h"

/* What the tool itself adds to the pool that it looks at is left out: one client. */
static void print(const struct cli_arguments *arguments, const char *backend,
		  const struct xmem_pool_info *stat)
{
	const struct {
		const char *name;
		uint64_t value;
		const char *meaning;
	} line[] = {
		{ "slots", stat->slots, "capacity" },
		{ "attached", stat->attached, "have a buffer" },
		{ "free", stat->free, "of these, without contents" },
		{ "writing", stat->writing, "being written" },
		{ "live", stat->live, "with contents" },
		{ "held", stat->held, "somebody holds" },
		{ "limbo", stat->limbo, "their owner has ended, others still use them" },
		{ "holds", stat->holds, "of all clients together" },
		{ "clients", stat->clients - 1, "alive" },
		{ "zombies", stat->zombies, "ended, their publications still in flight" },
		{ "bytes", stat->bytes, "of all attached slots" },
	};
	json_t *all = cli_object();
	size_t i;

	cli_set(all, "pool", json_string(arguments->pool));
	cli_set(all, "backend", json_string(backend));
	for (i = 0; i < sizeof(line) / sizeof(*line); i++)
		cli_set_number(all, line[i].name, line[i].value);
	if (arguments->json) {
		cli_print_json(all);
	} else {
		printf("pool      %s\nbackend   %s\n", arguments->pool, backend);
		for (i = 0; i < sizeof(line) / sizeof(*line); i++)
			printf("%-9s %-12" PRIu64 " %s\n", line[i].name, line[i].value,
			       line[i].meaning);
	}
	json_decref(all);
}

int cli_stat(const struct cli_arguments *arguments)
{
	struct xmem_pool_info stat = { .size = sizeof(stat) };
	struct xmem_pool *pool = cli_open(arguments->pool);
	int status = CLI_DONE;

	if (!pool)
		return CLI_FAILED;
	if (xmem_pool_stat(pool, &stat))
		status = cli_fail_xmem();
	else
		print(arguments, xmem_pool_backend(pool), &stat);
	xmem_pool_close(pool);
	return status;
}
