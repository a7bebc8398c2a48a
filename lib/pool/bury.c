// SPDX-License-Identifier: MIT
/*
 * Memory of GPUs that a client must not free when it ends, because other processes have it open, or
 * hold it. Only the host knows when this is over. So the process that closes the pool joins it once
 * more as a reader. The reader asks the host about the memory, and ends when all of it is freed.
 * The memory of one closed pool, and what is needed to free it, is a *remnant*.
 *
 * The reader joins before the client ends, so that the pool does not end in between. This can fail
 * if the pool is full, the process has too many descriptors, or the host is stopped. Then it is
 * tried again when the client has ended, and in each slow call of the library. The descriptor of
 * the pool that this needs is made together with the first such memory (payload/remnant.c).
 *
 * If the host can no longer be asked, the memory stays until the process ends, because another
 * process may still read it. If the pool has ended before, the memory is freed, because no process
 * has it open.
 */
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "lib/base/uncancelled.h"
#include "lib/cuda/memory.h"
#include "lib/follow/wait.h"
#include "lib/host/request.h"
#include "lib/payload/payload.h"
#include "lib/payload/remnant.h"
#include "lib/pool/bury.h"

#define RETRY_NS	100000000	/* how long a retry waits for a host that may be stopped */
#define HEADER_BYTES	4096		/* the page of the header, or a part of it */

/* A stack without a lock, because a forked child could find a lock taken. */
static struct xl_remnant *remnants;

static void reap_remnants(void);

/* ---- joining ---- */

/*
 * Keep the header mapped, because it shows whether xmemd and the pool have ended. The module cannot
 * end before this process.
 */
static void keep_header(struct xl_remnant *remnant, struct xmem_pool *pool)
{
	void *header;

	if (pool->link.backend != &xmem_backend_daemon)
		return;
	/* An old size of 0 maps this page once more. A forked child does not get it. */
	header = mremap(pool->map.pool, 0, HEADER_BYTES, MREMAP_MAYMOVE);
	remnant->header = header == MAP_FAILED ? NULL : header;
}

static void drop_header(struct xl_remnant *remnant)
{
	if (remnant->header)
		munmap(remnant->header, HEADER_BYTES);
	remnant->header = NULL;
}

/* xmemd's word about the pool. XMEM_HOST_ALIVE: the pool may be joined, or nothing is known. */
static u32 host_word(const struct xl_remnant *remnant)
{
	return remnant->header ? xm_load_acquire(&remnant->header->host) : XMEM_HOST_ALIVE;
}

/* Give the memory to the reader, which asks the host about all of it. */
static void hand_over(struct xl_remnant *remnant)
{
	struct xl_mappings *mappings = &remnant->pool->mappings;

	xl_lock(&remnant->pool->mappings.lock);
	mappings->closing = remnant->left;
	mappings->closed = xm_load(&remnant->pool->map.pool->payloads_closed);
	mappings->unsure = true;
	xl_unlock(&remnant->pool->mappings.lock);
	remnant->left = NULL;
}

/* Join as a reader. Returns 0, or the reason why it has not joined. */
static int join(struct xl_remnant *remnant, u64 deadline_ns)
{
	struct xl_error error;
	int err;

	xl_error_save(&error);
	remnant->pool = remnant->calls->join(remnant->fd, deadline_ns);
	err = remnant->pool ? 0 : xl_last_error();
	xl_error_restore(&error);
	if (!err)
		drop_header(remnant);
	return err;
}

/* ---- the end of a client ---- */

/* Drop a remnant: nothing is left, or the end of the process frees it. */
static void drop(struct xl_remnant *remnant)
{
	if (remnant->pool)
		remnant->calls->leave(remnant->pool);
	drop_header(remnant);
	xl_file_close(remnant->fd);
	free(remnant);
}

struct xl_remnant *xl_cuda_bury_begin(struct xmem_pool *pool, const struct xl_reader_calls *calls)
{
	struct xl_mapping *left = xl_cuda_end(pool);
	struct xl_remnant *remnant = pool->gpus.remnant;

	if (!remnant)
		return NULL;
	pool->gpus.remnant = NULL;
	remnant->calls = calls;
	remnant->left = left;
	if (!left) {
		drop(remnant);
		return NULL;
	}
	keep_header(remnant, pool);
	/* A call that closes a pool does not wait for long for a stopped daemon. */
	if (host_word(remnant) & XMEM_HOST_ALIVE)
		remnant->stopped = join(remnant, xl_deadline(XL_HOST_NS)) == -ETIMEDOUT;
	pool->link.stopped = remnant->stopped;
	return remnant;
}

/* Wait a moment until the host has noticed the client's end, so that usually nothing is left. */
static void wait_for_end(const struct xl_remnant *remnant)
{
	struct xmem_pool *pool = remnant->pool;
	const struct xmem_client_row *row = xm_client_row(&pool->map, remnant->client);
	u64 deadline = xl_deadline(XL_HOST_NS);
	struct xl_armed armed;

	for (;;) {
		if (xl_waiters_arm(pool, XMEM_WAIT_CLIENTS, 0, &armed))
			return;
		if (xm_load_acquire(&row->incarnation) != remnant->incarnation ||
		    xm_load(&row->state) != XMEM_CLIENT_ALIVE)
			return;
		if (xl_waiters_wait(pool, XMEM_WAIT_CLIENTS, 0, armed, deadline))
			return;
	}
}

/* Is nothing left, or will the host never say so? */
static bool is_done(struct xl_remnant *remnant)
{
	u32 word;

	if (!remnant->pool) {
		word = host_word(remnant);
		if (word & FUTEX_OWNER_DIED)
			return true;
		if (!word)		/* the pool has ended, and all its clients */
			xl_cuda_end_all(remnant->left);
		if (!word)
			return true;
		if (join(remnant, xl_deadline(RETRY_NS)))
			return false;
	}
	if (remnant->left)
		hand_over(remnant);
	xl_cuda_reap(remnant->pool, XL_HOST_NS);
	return !remnant->pool->mappings.closing;
}

static void keep(struct xl_remnant *remnant)
{
	remnant->next = __atomic_load_n(&remnants, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&remnants, &remnant->next, remnant, true,
					    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		;
	__atomic_store_n(&xl_remnants_due, reap_remnants, __ATOMIC_SEQ_CST);
}

/* Ask the host. Keep the remnant in the list unless nothing is left. */
static void reap(struct xl_remnant *remnant)
{
	if (is_done(remnant))
		drop(remnant);
	else
		keep(remnant);
}

void xl_cuda_bury_end(struct xl_remnant *remnant)
{
	if (!remnant)
		return;
	if (remnant->stopped) {
		keep(remnant);
		return;
	}
	if (remnant->pool)
		wait_for_end(remnant);
	reap(remnant);
}

static void reap_remnants(void)
{
	struct xl_remnant *list, *remnant;
	XL_UNCANCELLED;

	/* In this order, so that a remnant that comes meanwhile is due. */
	__atomic_store_n(&xl_remnants_due, NULL, __ATOMIC_SEQ_CST);
	list = __atomic_exchange_n(&remnants, NULL, __ATOMIC_SEQ_CST);
	while ((remnant = list)) {
		list = remnant->next;
		if (remnant->process == *xl_process)
			reap(remnant);
		else			/* it belongs to the parent of this forked child */
			free(remnant);
	}
}
