// SPDX-License-Identifier: MIT
/*
 * Ending the waits of this process's threads: after another ring is followed or dropped, at
 * xmem_cancel, and at xmem_pool_close. wait.h has the rule for kicks; base/calls.c counts the
 * calls.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/base/files.h"
#include "lib/base/uncancelled.h"
#include "lib/follow/kick.h"
#include "lib/follow/subscription.h"
#include "lib/follow/wait.h"
#include "lib/host/futex.h"
#include "lib/host/request.h"

void xl_kick(struct xmem_pool *pool)
{
	struct xl_poller *poller;
	u64 one = 1;
	XL_UNCANCELLED;

	__atomic_add_fetch(&pool->follows.kicks, 1, __ATOMIC_SEQ_CST);
	xm_full_barrier();	/* the change comes before the words (I5) */
	xm_futex_wake_all(&pool->follows.kicks);
	xl_waiters_kick(pool);
	xl_lock(&pool->follows.list);
	for (poller = pool->follows.pollers; poller; poller = poller->next)
		while (poller->used && write(poller->kick, &one, sizeof(one)) < 0 && errno == EINTR)
			;
	xl_unlock(&pool->follows.list);
}

void xl_cancel(struct xmem_pool *pool, u32 how)
{
	u32 waiting;

	__atomic_or_fetch(&pool->calls.cancels, how, __ATOMIC_SEQ_CST);
	xl_kick(pool);
	xl_waiters_wake(pool, XMEM_WAIT_SLOTS, pool->me);
	if (how == XL_CANCEL_ALWAYS)
		return;
	while ((waiting = xm_load_acquire(&pool->calls.waiting)))
		xm_futex_wait(&pool->calls.waiting, waiting, NULL);
}

XMEM_API int xmem_cancel(struct xmem_pool *pool)
{
	XL_CALL;
	XL_USE(pool);

	if (!pool)
		return xl_fail_fast(EINVAL, "no pool");
	if (!xl_is_open(pool))
		return xl_fail_not_alive(pool);
	xl_cancel(pool, XL_CANCEL_ALWAYS);
	xl_receive_leave_fast_path(pool);
	return 0;
}

static struct xl_poller *unused_poller(struct xmem_pool *pool)
{
	struct xl_poller *poller;

	xl_lock(&pool->follows.list);
	for (poller = pool->follows.pollers; poller && poller->used; poller = poller->next)
		;
	if (poller)
		poller->used = true;
	xl_unlock(&pool->follows.list);
	return poller;
}

/* Make one that is in use. NULL and errno. */
static struct xl_poller *new_poller(struct xmem_pool *pool)
{
	struct xl_poller *poller = malloc(sizeof(*poller));

	if (!poller)
		return NULL;
	xl_fork_lock();
	poller->kick = xl_file_record(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	xl_fork_unlock();
	if (poller->kick < 0) {
		free(poller);
		return NULL;
	}
	poller->used = true;
	xl_lock(&pool->follows.list);
	poller->next = pool->follows.pollers;
	pool->follows.pollers = poller;
	xl_unlock(&pool->follows.list);
	return poller;
}

struct xl_poller *xl_poller_take(struct xmem_pool *pool)
{
	struct xl_poller *poller = unused_poller(pool);
	u64 kicks;

	if (!poller)
		return new_poller(pool);
	while (read(poller->kick, &kicks, sizeof(kicks)) < 0 && errno == EINTR)
		;	/* kicks that its last user did not read */
	return poller;
}

void xl_poller_release(struct xmem_pool *pool, struct xl_poller *poller)
{
	xl_lock(&pool->follows.list);
	poller->used = false;
	xl_unlock(&pool->follows.list);
}

void xl_pollers_drop(struct xmem_pool *pool)
{
	struct xl_poller *poller;

	while ((poller = pool->follows.pollers)) {
		pool->follows.pollers = poller->next;
		xl_file_close(poller->kick);
		free(poller);
	}
}
