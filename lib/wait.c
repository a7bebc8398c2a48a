// SPDX-License-Identifier: MIT
/*
 * Waiting for the rings of one subscription or of all, and the end of waits by xmem_cancel.
 *
 * One ring is waited for as everything else: by a request. A writer that joins wakes the rings'
 * words too, so whoever waits for one ring of several writers to come hears of them. Several
 * rings are waited for by one futex_waitv where the daemon is the host, and by the pool's
 * descriptors where the kernel is.
 */
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "files.h"
#include "host/futex.h"
#include "request.h"
#include "uncancelled.h"
#include "wait.h"

#define NS	1000000000ULL
#define LOOK_NS	(NS / 100)	/* between looks where there is no way to wait for all */
#define MOST_WORDS	128	/* that futex_waitv takes */

/* What a thread needs to wait in poll(). It is kept for the next one until the pool goes. */
struct xl_poller {
	struct xl_poller *next;	/* under pool->list, as is: */
	bool used;
	int kick;		/* an eventfd */
};

/* ---- ending waits ---- */

u32 xl_wait_begin(struct xmem_pool *pool)
{
	__atomic_add_fetch(&pool->waiting, 1, __ATOMIC_SEQ_CST);
	return xl_wait_cancels(pool);
}

void xl_wait_end(struct xmem_pool *pool)
{
	u32 left = __atomic_sub_fetch(&pool->waiting, 1, __ATOMIC_SEQ_CST);

	if (unlikely(!left && xm_load(&pool->cancels) & XL_CANCEL_CLOSE))
		xm_futex_wake_all(&pool->waiting);
}

void xl_kick(struct xmem_pool *pool)
{
	struct xl_poller *poller;
	u64 one = 1;
	XL_UNCANCELLED;

	__atomic_add_fetch(&pool->kicks, 1, __ATOMIC_SEQ_CST);
	xm_full_barrier();	/* what the waiters are to see, then the words (I5) */
	xm_futex_wake_all(&pool->kicks);
	xl_waiters_kick(pool);
	xl_lock(&pool->list);
	for (poller = pool->pollers; poller; poller = poller->next)
		while (poller->used && write(poller->kick, &one, sizeof(one)) < 0 && errno == EINTR)
			;
	xl_unlock(&pool->list);
}

void xl_cancel(struct xmem_pool *pool, u32 how)
{
	u32 waiting;

	__atomic_or_fetch(&pool->cancels, how, __ATOMIC_SEQ_CST);
	xl_kick(pool);
	xl_waiters_wake(pool, XMEM_WAIT_SLOTS, pool->me);
	if (how == XL_CANCEL_ALWAYS)
		return;
	while ((waiting = xm_load_acquire(&pool->waiting)))
		xm_futex_wait(&pool->waiting, waiting, NULL);
}

XMEM_API int xmem_cancel(struct xmem_pool *pool)
{
	XL_USE(pool);

	if (!pool)
		return xl_fail_fast(EINVAL, "xmem_cancel: no pool");
	if (!xl_is_open(pool))
		return xl_fail_not_alive(pool);
	xl_cancel(pool, XL_CANCEL_ALWAYS);
	xl_receive_slowly(pool);
	return 0;
}

/* ---- waiting ---- */

void xl_watch_begin(struct xmem_pool *pool, struct xl_watch *watch, u32 kind)
{
	watch->kind = kind;
	watch->count = 0;
	watch->kicks = xm_load_acquire(&pool->kicks);
}

int xl_watch_ring(struct xmem_pool *pool, struct xl_watch *watch, u32 publisher)
{
	struct xl_armed armed = { 0 };
	int err = 0;

	/* Several are waited for in poll, which arms them itself if the kernel is the host. */
	if (!watch->count || pool->link.backend->on_words)
		err = xl_waiters_arm(pool, XMEM_WAIT_RING, publisher, &armed);
	if (err)
		return err;
	watch->ring[watch->count].publisher = publisher;
	watch->ring[watch->count++].armed = armed;
	return 0;
}

int xl_watch_writers(struct xmem_pool *pool, struct xl_watch *watch)
{
	return watch->count ? 0 : xl_waiters_arm(pool, XMEM_WAIT_CLIENTS, 0, &watch->clients);
}

static u64 sooner(u64 deadline_ns, u64 pause_ns)
{
	u64 now = xl_now_ns();

	return deadline_ns > now && deadline_ns - now > pause_ns ? now + pause_ns : deadline_ns;
}

/*
 * The words themselves, as far as they are still armed, behind those that say that somebody
 * has kicked and that the daemon lives. Returns how many; 0: one is armed no longer.
 */
static u32 gather_words(struct xmem_pool *pool, const struct xl_watch *watch, u32 host,
			struct futex_waitv *word)
{
	u32 count = 0, i;

	word[count++] = xm_futex_at(&pool->kicks, watch->kicks);
	word[count++] = xm_futex_at(&pool->map.pool->host, host);
	for (i = 0; i < watch->count && count < MOST_WORDS; i++) {
		u32 *at = &xm_client_row(&pool->map, watch->ring[i].publisher)->ring_waiters;
		u32 value = xm_load(at);

		if (!xm_still_armed(&value, watch->ring[i].armed.value))
			return 0;
		word[count++] = xm_futex_at(at, value);
	}
	return count;
}

static int wait_on_words(struct xmem_pool *pool, const struct xl_watch *watch, u64 deadline_ns)
{
	struct futex_waitv word[MOST_WORDS];
	u32 host = xm_load(&pool->map.pool->host), count;
	u64 until = deadline_ns;
	int err;

	if (!(host & XMEM_HOST_ALIVE)) {
		xm_futex_wake_all(&pool->map.pool->host);	/* the kernel wakes one waiter */
		return -ENOTCONN;
	}
	count = gather_words(pool, watch, host, word);
	if (!count)
		return 0;
	if (count < watch->count + 2)
		until = sooner(deadline_ns, LOOK_NS);
	err = xm_futex_wait_any(word, count, until);
	if (err == -ENOSYS) {
		struct timespec at;

		until = sooner(deadline_ns, LOOK_NS);
		at = (struct timespec){ until / NS, until % NS };
		err = xm_futex_wait(&pool->kicks, watch->kicks, &at);
	}
	return err == -EAGAIN || (err == -ETIMEDOUT && until != deadline_ns) ? 0 : err;
}

/* ---- where the kernel is the host ---- */

static struct xl_poller *unused_poller(struct xmem_pool *pool)
{
	struct xl_poller *poller;

	xl_lock(&pool->list);
	for (poller = pool->pollers; poller && poller->used; poller = poller->next)
		;
	if (poller)
		poller->used = true;
	xl_unlock(&pool->list);
	return poller;
}

/* NULL and errno. */
static struct xl_poller *new_poller(struct xmem_pool *pool)
{
	struct xl_poller *poller = malloc(sizeof(*poller));

	if (!poller)
		return NULL;
	xl_fork_lock();
	poller->kick = xl_file_note(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	xl_fork_unlock();
	if (poller->kick < 0) {
		free(poller);
		return NULL;
	}
	poller->used = true;
	xl_lock(&pool->list);
	poller->next = pool->pollers;
	pool->pollers = poller;
	xl_unlock(&pool->list);
	return poller;
}

/* Whoever kicks from now on does so to this one too. NULL and errno. */
static struct xl_poller *take_poller(struct xmem_pool *pool)
{
	struct xl_poller *poller = unused_poller(pool);
	u64 kicks;

	if (!poller)
		return new_poller(pool);
	while (read(poller->kick, &kicks, sizeof(kicks)) < 0 && errno == EINTR)
		;	/* those that its last user has left */
	return poller;
}

static void leave_poller(struct xmem_pool *pool, struct xl_poller *poller)
{
	xl_lock(&pool->list);
	poller->used = false;
	xl_unlock(&pool->list);
}

void xl_pollers_drop(struct xmem_pool *pool)
{
	struct xl_poller *poller;

	while ((poller = pool->pollers)) {
		pool->pollers = poller->next;
		xl_file_close(poller->kick);
		free(poller);
	}
}

static int wait_for_files(struct pollfd *file, u32 count, u64 deadline_ns)
{
	u64 now = xl_now_ns(), left = deadline_ns > now ? deadline_ns - now : 0;
	struct timespec pause = { left / NS, left % NS };
	int ready = ppoll(file, count, deadline_ns == ~0ULL ? NULL : &pause, NULL);

	if (ready < 0)
		return -errno;
	return ready ? 0 : -ETIMEDOUT;
}

/* By the kernel's descriptor of what the caller follows, which arms the words itself. */
static int wait_in_poll(struct xmem_pool *pool, const struct xl_watch *watch, u64 deadline_ns)
{
	int fd = xl_poll_file(pool, watch->kind), err = 0;
	struct xl_poller *me;
	XL_UNCANCELLED;

	if (fd < 0)
		return fd;
	me = take_poller(pool);
	if (!me)
		return -errno;
	if (xm_load_acquire(&pool->kicks) == watch->kicks)
		err = wait_for_files((struct pollfd[]){
			{ .fd = me->kick, .events = POLLIN }, { .fd = fd, .events = POLLIN },
		}, 2, deadline_ns);
	leave_poller(pool, me);
	return err;
}

int xl_wait_rings(struct xmem_pool *pool, const struct xl_watch *watch, u64 deadline_ns)
{
	if (xl_now_ns() >= deadline_ns)
		return -ETIMEDOUT;
	if (!watch->count)
		return xl_await_writer(pool, watch->clients, deadline_ns);
	if (watch->count == 1)
		return xl_waiters_wait(pool, XMEM_WAIT_RING, watch->ring[0].publisher,
				       watch->ring[0].armed, deadline_ns);
	return pool->link.backend->on_words ?
		wait_on_words(pool, watch, deadline_ns) : wait_in_poll(pool, watch, deadline_ns);
}
