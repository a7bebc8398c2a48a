// SPDX-License-Identifier: MIT
/*
 * Waiting for the rings of one subscription or of all. wait.h has the rules.
 *
 * A single ring is waited for by a request, like any other word. A writer that joins wakes the
 * rings' words too, so a thread that waits for one ring, in a subscription to all writers, learns
 * of new writers. Several rings are waited for by one futex_waitv where the daemon is the host, and
 * by the pool's descriptors where the kernel is.
 */
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/base/files.h"
#include "lib/base/uncancelled.h"
#include "lib/follow/wait.h"
#include "lib/host/futex.h"
#include "lib/host/request.h"

#define NS	1000000000ULL
#define LOOK_NS	(NS / 100)	/* between looks if one wait cannot cover all words */
#define MOST_WORDS	128	/* the most words that futex_waitv takes */

void xl_watch_begin(struct xmem_pool *pool, struct xl_watch *watch, u32 kind)
{
	watch->kind = kind;
	watch->count = 0;
	watch->kicks = xm_load_acquire(&pool->follows.kicks);
}

int xl_watch_ring(struct xmem_pool *pool, struct xl_watch *watch, u32 publisher)
{
	struct xl_armed armed = { 0 };
	int err = 0;

	/*
	 * Several rings are waited for in poll(), which arms the words itself if the kernel is the
	 * host.
	 */
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
 * Gather the words of the rings, behind two others: the count of kicks, and the word that says that
 * the daemon lives. Returns the number of words; 0: a word is no longer armed.
 */
static u32 gather_words(struct xmem_pool *pool, const struct xl_watch *watch, u32 host,
			struct futex_waitv *word)
{
	u32 count = 0, i;

	word[count++] = xm_futex_at(&pool->follows.kicks, watch->kicks);
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
		xm_futex_wake_all(&pool->map.pool->host);	/* the kernel wakes one */
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
		err = xm_futex_wait(&pool->follows.kicks, watch->kicks, &at);
	}
	return err == -EAGAIN || (err == -ETIMEDOUT && until != deadline_ns) ? 0 : err;
}

/* ---- where the kernel is the host ---- */

static int wait_for_files(struct pollfd *file, u32 count, u64 deadline_ns)
{
	u64 now = xl_now_ns(), left = deadline_ns > now ? deadline_ns - now : 0;
	struct timespec pause = { left / NS, left % NS };
	int ready = ppoll(file, count, deadline_ns == ~0ULL ? NULL : &pause, NULL);

	if (ready < 0)
		return -errno;
	return ready ? 0 : -ETIMEDOUT;
}

/*
 * Wait by the kernel's descriptor for the rings that the caller follows. The kernel arms their
 * words itself.
 */
static int wait_in_poll(struct xmem_pool *pool, const struct xl_watch *watch, u64 deadline_ns)
{
	int fd = xl_poll_file(pool, watch->kind), err = 0;
	struct xl_poller *me;
	XL_UNCANCELLED;

	if (fd < 0)
		return fd;
	me = xl_poller_take(pool);
	if (!me)
		return -errno;
	if (xm_load_acquire(&pool->follows.kicks) == watch->kicks)
		err = wait_for_files((struct pollfd[]){
			{ .fd = me->kick, .events = POLLIN }, { .fd = fd, .events = POLLIN },
		}, 2, deadline_ns);
	xl_poller_release(pool, me);
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
