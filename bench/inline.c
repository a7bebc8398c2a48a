// SPDX-License-Identifier: MIT
/*
 * get and put of the protocol, inlined and without the library's handles: the cost of counting
 * itself. No other file here looks below xmem.h. The pages are plain memory and belong to a single
 * client.
 */
#include <stdlib.h>

#include "core/host.h"
#include "bench.h"

static struct xm_host host;
static uint64_t token;

/* One client with one LIVE slot; it holds nothing. */
void inline_setup(void)
{
	struct xmem_join_request join = {
		.size = sizeof(join), .abi = XMEM_ABI, .role = XMEM_ROLE_WRITER, .slots = 64,
	};
	struct xmem_attach_request attach = {
		.size = sizeof(attach), .fd = -1, .stride = 64, .length = 64, .count = 1,
	};
	struct xm_payload payload = { .id = 1, .bytes = 64 };
	struct xm_publication what = { .length = 64 };
	struct xm_joiner who = { .pid = 1, .sibling = XM_NO_CLIENT };
	struct xmem_pool_header header;
	char *pages;

	if (xm_host_layout(&join, 4096, &header))
		die("layout");
	pages = aligned_alloc(4096, header.total_bytes);
	if (!pages)
		die("memory");
	__builtin_memset(pages, 0, header.total_bytes);
	*(struct xmem_pool_header *)pages = header;
	xm_host_init(&host, (void *)pages);
	xm_map_init(&host.map, pages, &header);
	xm_host_give_group(&host, 0, 0);
	if (xm_host_join(&host, 0, &join, &who) ||
	    xm_host_attach(&host, 0, &payload, 12345, &attach) ||
	    xm_take(&host.map, attach.slot[0]))
		die("a slot");
	xm_publish(&host.map, 0, attach.slot[0], &what);
	token = what.token;
}

double inline_get_put(unsigned int rounds)
{
	const struct xm_map *map = &host.map;
	const uint64_t name = token;	/* in a register, as in a caller */
	double start = now_ns();
	unsigned int r;

	for (r = 0; r < rounds; r++) {
		if (xm_get(map, 0, name))
			die("get");
		if (xm_put(map, 0, xm_token_slot(name)).what != XM_NOTHING)
			die("put");
	}
	return (now_ns() - start) / rounds;
}
