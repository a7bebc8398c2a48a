// SPDX-License-Identifier: MIT
/*
 * The word in each pool's header that says whether xmemd lives. It is a robust futex of xmemd's
 * only thread. When that thread ends, for whatever reason, the kernel clears the thread's number in
 * the word and wakes one of the clients that sleep there. That client wakes the others.
 *
 * The kernel finds the words by a list in the memory of xmemd. The links of the list are on a
 * private page in front of each pool's pages, because clients can write the pages of a pool.
 */
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/host/futex.h"
#include "daemon.h"

#define NODE_BYTES	64	/* from the link to the pool's pages */

static struct robust_list_head head = {
	.list = { &head.list },
	.futex_offset = NODE_BYTES + offsetof(struct xmem_pool_header, host),
};

static struct robust_list *node_of(const struct xd_pool *pool)
{
	return (struct robust_list *)(pool->base - NODE_BYTES);
}

void xd_alive_begin(void)
{
	/* If the kernel refuses this, clients learn of our end only by their next request. */
	syscall(SYS_set_robust_list, &head, sizeof(head));
}

/* FUTEX_WAITERS is always set, because clients sleep there without setting it. */
void xd_alive_add(struct xd_pool *pool)
{
	struct robust_list *node = node_of(pool);

	xm_store_release(&pool->host.map.pool->host, (u32)syscall(SYS_gettid) | FUTEX_WAITERS);
	node->next = head.list.next;
	xm_store_release(&head.list.next, node);
}

void xd_alive_remove(struct xd_pool *pool)
{
	struct robust_list *at = &head.list;
	u64 quarantined = 0;
	u32 i;

	while (at->next != node_of(pool))
		at = at->next;
	xm_store_release(&at->next, node_of(pool)->next);
	/*
	 * A process that still maps the pool can tell whether all clients have closed the memory of
	 * GPUs that they had open.
	 */
	for (i = 0; i < XMEM_CLIENT_WORDS; i++)
		quarantined |= pool->host.quarantined[i];
	xm_store_release(&pool->host.map.pool->host, quarantined ? FUTEX_OWNER_DIED : 0);
}

void xd_alive_end(struct xd_daemon *daemon)
{
	struct xd_pool *pool;

	for (pool = daemon->pools; pool; pool = pool->next) {
		xm_store_release(&pool->host.map.pool->host, FUTEX_OWNER_DIED);
		xm_futex_wake_all(&pool->host.map.pool->host);
	}
}
