/* SPDX-License-Identifier: MIT */
/*
 * kv_blocks prefill [COUNT] | decode: the KV cache of a language model, in blocks on a GPU. Prefill
 * publishes each block of a prompt. Decode holds the blocks of a sequence until it has all of them,
 * reads them where they are, and releases them. The blocks of a killed decode are free, and another
 * one goes on. Here the CPU draws numbers and copies them; real workers give xmem_cuda_ptr_mut()
 * and xmem_cuda_ptr() to their kernels, and xmem/stream.h orders these.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <xmem.h>
#include <xmem/cuda.h>

enum { GPU = 0, VALUES = 16 * 1024, BLOCKS = 3, CACHE = 4, BYTES = VALUES * sizeof(float) };
static float block[VALUES];
static double all;	/* a sum over a sequence */

static void fail(void)
{
	struct xmem_error why = XMEM_INIT(why);

	xmem_get_last_error(&why);
	fprintf(stderr, "kv_blocks: %s\n", why.message);
	exit(1);	/* the host releases all our blocks */
}

static void add_up(uint64_t place)
{
	all = place ? all : 0;
	for (int i = 0; i < VALUES; i++)
		all += (double)block[i] * (i % 97 + (int)place);
}

static void prefill(struct xmem_pool *pool, uint64_t count)
{
	if (xmem_preallocate(pool, BYTES, CACHE,
			     XMEM_OPTIONS(xmem_preallocate_options, .device_id = GPU,
					  .flags = XMEM_MEMORY_CUDA | XMEM_MEMORY_READERS)) ||
	    xmem_wait_subscribers(pool, 1, XMEM_FOREVER) < 0)
		fail();
	for (uint64_t n = 0; n < count * BLOCKS; n++) {
		struct xmem_buffer *next = xmem_acquire_cuda(pool, BYTES, GPU, XMEM_FOREVER);

		for (int i = 0; i < VALUES; i++)
			block[i] = (float)((n * 31 + (uint64_t)i) % 89);
		if (!next || xmem_copy_from_host(next, 0, block, BYTES, NULL))
			fail();
		xmem_metadata_mut(next)->user[0] = n / BLOCKS;	/* the sequence */
		xmem_metadata_mut(next)->user[1] = n % BLOCKS;	/* the place in it */
		add_up(n % BLOCKS);
		if (n % BLOCKS == BLOCKS - 1)
			printf("sequence %" PRIu64 " sum %.0f\n", n / BLOCKS, all);
		if (xmem_publish(next, NULL, NULL))
			fail();
	}
}

static void decode(struct xmem_subscription *blocks)
{
	struct xmem_buffer *table[BLOCKS], *next;
	struct xmem_metadata place;
	uint64_t count = 0;

	puts("decode: ready");
	while (blocks && (next = xmem_receive(blocks, XMEM_FOREVER)) &&
	       !xmem_metadata_view(next, &place)) {
		while (place.user[1] != count && count)	/* a prefill has ended within a sequence */
			xmem_release(table[--count]);
		if (place.user[1] == count)
			table[count++] = next;
		else
			xmem_release(next);		/* decode has begun within one */
		if (count < BLOCKS)
			continue;
		for (count = 0; count < BLOCKS; xmem_release(table[count++])) {
			if (xmem_copy_to_host(block, table[count], 0, BYTES, NULL))
				fail();
			add_up(count);
		}
		count = 0;
		printf("sequence %" PRIu64 " sum %.0f\n", place.user[0], all);
	}
	fail();		/* it lasts longer than any prefill */
}

int main(int argc, char **argv)
{
	int writes = argc > 1 && *argv[1] == 'p';
	struct xmem_pool *pool = xmem_pool_open("kv", XMEM_OPTIONS(xmem_pool_options,
		.flags = writes ? XMEM_OPEN_WRITER : 0, .wait_bound_ns = writes ? 1000000000 : 0));

	if (!pool)
		fail();
	if (!writes)
		decode(xmem_subscribe(pool, XMEM_OPTIONS(xmem_subscribe_options,
			.flags = XMEM_SUBSCRIBE_WAITS | XMEM_SUBSCRIBE_LASTS)));
	prefill(pool, argc > 2 ? strtoull(argv[2], NULL, 10) : 10);
}
