// SPDX-License-Identifier: MIT
/*
 * Memory of GPUs that a client must not free when it ends, because other processes still have it
 * open, or hold it. The host has to say when they have not. So a process that closes the pool's
 * handle joins the pool once more as a reader, which asks for it, and ends when nothing is
 * left.
 *
 * It joins before the client ends, so that the pool does not end in between. If it cannot, because
 * the pool is full, the process has too many descriptors, or the host is stopped, it tries again
 * when the client has ended, and then in each slow call of the library. The descriptor of the pool
 * that it needs for that is there from the first such memory on.
 *
 * If the host cannot be asked any more, the memory stays for the process's life: nobody knows who
 * still looks at it. If the pool has ended before, nobody does.
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

#define RETRY_NS	100000000	/* how long a later try waits for a host that is stopped */
#define HEADER_BYTES	4096		/* the header's page, or a part of it */

static struct xl_lock lock;		/* guards the list */
static struct xl_remnant *remnants;

static void settle_remnants(void);

/* ---- joining ---- */

/* The header stays mapped, which says what becomes of xmemd. The module cannot end before us. */
static void keep_header(struct xl_remnant *remnant, struct xmem_pool *pool)
{
	void *header;

	if (pool->link.backend != &xmem_backend_daemon)
		return;
	/* With an old size of 0 the same page is mapped once more, and not for a child. */
	header = mremap(pool->map.pool, 0, HEADER_BYTES, MREMAP_MAYMOVE);
	remnant->header = header == MAP_FAILED ? NULL : header;
}

static void drop_header(struct xl_remnant *remnant)
{
	if (remnant->header)
		munmap(remnant->header, HEADER_BYTES);
	remnant->header = NULL;
}

/* What xmemd says of the pool; XMEM_HOST_ALIVE: it may be joined, or nothing is known. */
static u32 host_word(const struct xl_remnant *remnant)
{
	return remnant->header ? xm_load_acquire(&remnant->header->host) : XMEM_HOST_ALIVE;
}

/* The reader knows now what is left, and asks for all of it. */
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

/* 0, or why it has not joined. */
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

/* Nothing is left, or the process's end frees it. */
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
	/* Who closes a pool does not wait for long for a daemon that is stopped. */
	if (host_word(remnant) & XMEM_HOST_ALIVE)
		remnant->stopped = join(remnant, xl_deadline(XL_HOST_NS)) == -ETIMEDOUT;
	pool->link.stopped = remnant->stopped;
	return remnant;
}

/* Wait for a moment until the host has noticed the client's end, so that mostly nothing is left. */
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

/* Is nothing left, or will nobody ever say so? */
static bool is_settled(struct xl_remnant *remnant)
{
	u32 word;

	if (!remnant->pool) {
		word = host_word(remnant);
		if (word & FUTEX_OWNER_DIED)
			return true;
		if (!word)		/* the pool has ended, with all that had it open */
			xl_cuda_end_all(remnant->left);
		if (!word)
			return true;
		if (join(remnant, xl_deadline(RETRY_NS)))
			return false;
	}
	if (remnant->left)
		hand_over(remnant);
	xl_cuda_settle(remnant->pool, XL_HOST_NS);
	return !remnant->pool->mappings.closing;
}

static void keep(struct xl_remnant *remnant)
{
	xl_lock(&lock);
	remnant->next = remnants;
	remnants = remnant;
	__atomic_store_n(&xl_remnants_due, settle_remnants, __ATOMIC_RELAXED);
	xl_unlock(&lock);
}

/* Ask, and keep it in the list unless nothing is left. */
static void settle(struct xl_remnant *remnant)
{
	if (is_settled(remnant))
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
	settle(remnant);
}

static void settle_remnants(void)
{
	struct xl_remnant *list, *remnant;
	XL_UNCANCELLED;

	xl_lock(&lock);
	list = remnants;
	remnants = NULL;
	__atomic_store_n(&xl_remnants_due, NULL, __ATOMIC_RELAXED);
	xl_unlock(&lock);
	while ((remnant = list)) {
		list = remnant->next;
		if (remnant->process == *xl_process)
			settle(remnant);
		else			/* it is the parent's, from which this process was forked */
			free(remnant);
	}
}
