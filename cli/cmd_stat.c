// SPDX-License-Identifier: MIT
/*
 * xmem stat POOL: how many slots, buffers, clients and holds a pool has now, and on which GPUs.
 */
#include <stdio.h>

#include "cli.h"

/* The fields in the order of the table, with the table's text for each. */
static const char *const meanings[][2] = {
	{ "slots", "capacity" },
	{ "attached", "have a buffer" },
	{ "free", "of these, without contents" },
	{ "writing", "of these, being written, or taken ahead for that by their owner" },
	{ "live", "of these, with contents" },
	{ "held", "somebody holds" },
	{ "limbo", "their owner has ended, others still use them" },
	{ "overdue", "their owner wants them back, others still hold them" },
	{ "holds", "of all clients together" },
	{ "claims", "references set aside for clients that come later" },
	{ "claimed", "buffers that have some" },
	{ "clients", "alive" },
	{ "zombies", "ended, their publications still in flight" },
	{ "bytes", "of all attached slots" },
	{ "payloads", "files, and allocations of GPUs, that these are in" },
	{ "bytes_files", "of these files" },
	{ "bytes_kept", "of these: of files whose owner has ended; see clients" },
	{ "bytes_huge", "of these files: in huge pages" },
	{ "bytes_limbo", "of the slots in limbo; see clients and holders" },
	{ "bytes_overdue", "of the slots that are overdue" },
	{ "limbo_ms", "milliseconds since the first of their owners has ended" },
	{ "overdue_ms", "milliseconds since the first of them was missed" },
	{ "bytes_mapped", "of files that clients have mapped, in all" },
	{ "bytes_cuda", "of the allocations of GPUs" },
	{ "bytes_closing", "of these: without buffers, but processes still have them open" },
};

static const struct cli_column columns[] = {
	{ "DEVICE", "device", NULL },	{ "UUID", "uuid", NULL },
	{ "BYTES", "bytes", NULL },	{ "CLOSING", "bytes_closing", NULL }, { 0 },
};

/* The sum of the bytes that clients have mapped. A client that ends meanwhile is left out. */
static uint64_t mapped_by_all(struct xmem_pool *pool, uint32_t clients_max)
{
	struct xmem_client_info info;
	uint64_t bytes = 0;
	uint32_t id;

	for (id = 0; id < clients_max; id++) {
		info.size = sizeof(info);
		if (!xmem_pool_client_info(pool, id, &info))
			bytes += info.bytes_mapped;
	}
	return bytes;
}

/* 0, or -errno. The tool itself is not counted as a client. */
static int gather(struct xmem_pool *pool, json_t *all)
{
	struct xmem_pool_info stat = { .size = sizeof(stat) };
	json_t *devices;
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
	cli_set_number(all, "overdue", stat.overdue);
	cli_set_number(all, "holds", stat.holds);
	cli_set_number(all, "claims", stat.claims);
	cli_set_number(all, "claimed", stat.claimed);
	cli_set_number(all, "clients", stat.clients - 1);
	cli_set_number(all, "zombies", stat.zombies);
	cli_set_number(all, "bytes", stat.bytes);
	cli_set_number(all, "payloads", stat.payloads);
	cli_set_number(all, "bytes_files", stat.bytes_files);
	cli_set_number(all, "bytes_kept", stat.bytes_kept);
	cli_set_number(all, "bytes_huge", stat.bytes_huge);
	cli_set_number(all, "bytes_limbo", stat.bytes_limbo);
	cli_set_number(all, "bytes_overdue", stat.bytes_overdue);
	cli_set_number(all, "limbo_ms", stat.limbo_age_ns / 1000000);
	cli_set_number(all, "overdue_ms", stat.overdue_age_ns / 1000000);
	cli_set_number(all, "bytes_mapped", mapped_by_all(pool, stat.clients_max));
	cli_set_number(all, "bytes_cuda", stat.bytes_cuda);
	cli_set_number(all, "bytes_closing", stat.bytes_closing);
	devices = cli_array();
	cli_set(all, "devices", devices);
	return cli_devices(pool, devices);
}

static void print_lines(const json_t *all)
{
	const json_t *devices = json_object_get(all, "devices");
	size_t i;

	printf("pool          %s\n", json_string_value(json_object_get(all, "pool")));
	printf("backend       %s\n", json_string_value(json_object_get(all, "backend")));
	for (i = 0; i < sizeof(meanings) / sizeof(*meanings); i++)
		printf("%-13s %-12" JSON_INTEGER_FORMAT " %s\n", meanings[i][0],
		       json_integer_value(json_object_get(all, meanings[i][0])), meanings[i][1]);
	if (!json_array_size(devices))
		return;
	putchar('\n');
	cli_print_table(devices, columns);
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
