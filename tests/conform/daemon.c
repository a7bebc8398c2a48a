// SPDX-License-Identifier: MIT
/*
 * What xmemd's clients can rely on: what it does when they let go of what the dead have
 * left, and what they notice when it is killed.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "harness.h"

#define BYTES	4096

/* ---- what the dead have left ---- */

struct left {
	const char *name;
	unsigned int count;
};

static void publish_and_wait(void *argument)
{
	struct left *left = argument;
	struct xmem_pool *pool = open_writer(left->name, left->count, BYTES);
	struct xmem_buffer *kept;
	unsigned int i;

	for (i = 0; i < left->count; i++)
		tell_parent(publish_kept(pool, i, &kept));
	hear_parent();
}

/* Takes the raw client's hold of a slot away without telling the host. */
static void drop_silently(struct raw *raw, uint64_t token)
{
	xm_put(&raw->map, raw->link.join.client, xm_token_slot(token));
}

static int collect(struct raw *raw, uint64_t token)
{
	struct xmem_slot_request request = { .size = sizeof(request),
					     .slot = xm_token_slot(token) };

	return raw_request(raw, XMEM_IOC_COLLECT, &request);
}

static uint32_t owner_of(struct raw *raw, uint64_t token)
{
	return xm_load(&xm_slot_row(&raw->map, xm_token_slot(token))->owner);
}

/* So the cost of a release does not depend on how many slots the dead have left. */
TEST(P8_the_host_looks_at_the_slot_that_was_released_and_at_no_other)
{
	struct left left = { .name = new_name(), .count = 3 };
	struct child *child;
	uint64_t token[3];
	struct raw raw;
	unsigned int i;

	daemon_only("the kernel reaps in batches");
	raw_start(&raw, left.name, XMEM_ROLE_READER);
	child = spawn(publish_and_wait, &left);
	for (i = 0; i < 3; i++) {
		token[i] = hear(child);
		SAME(xm_get(&raw.map, raw.link.join.client, token[i]), 0);
	}
	kill_child(child);
	EVENTUALLY(owner_of(&raw, token[0]) == XMEM_OWNER_HOST);
	/* It is still held. When the answer is here, the host is done with the end. */
	SAME(collect(&raw, token[0]), 0);
	SAME(owner_of(&raw, token[0]), XMEM_OWNER_HOST);
	drop_silently(&raw, token[1]);
	drop_silently(&raw, token[2]);
	SAME(collect(&raw, token[0]), 0);
	SAME(owner_of(&raw, token[1]), XMEM_OWNER_HOST);
	SAME(collect(&raw, token[1]), 0);
	SAME(owner_of(&raw, token[1]), XMEM_OWNER_NONE);
	SAME(owner_of(&raw, token[2]), XMEM_OWNER_HOST);
	drop_silently(&raw, token[0]);
	SAME(collect(&raw, token[0]), 0);
	SAME(collect(&raw, token[2]), 0);
	for (i = 0; i < 3; i++)
		SAME(owner_of(&raw, token[i]), XMEM_OWNER_NONE);
	raw_close(&raw);
}
