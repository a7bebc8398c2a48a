// SPDX-License-Identifier: MIT
/*
 * Making buffers: payload files are made and attached, and their slots become FREE.
 */
#include <stdlib.h>

#include "demand.h"
#include "died.h"
#include "request.h"
#include "structs.h"
#include "wait.h"

/* ---- who may write ---- */

static int is_reader(const struct xmem_pool *pool, const char *what)
{
	if (pool->opening.options.flags & XMEM_OPEN_READER)
		return xl_fail(EPERM, "%s: this client is a reader, because it has opened the pool "
				      "with XMEM_OPEN_READER", what);
	return xl_fail(EACCES, "%s: this client may only read, by the pool's mode or by the "
			       "descriptor or number with which it has joined", what);
}

/* xmem_acquire may go the short way from now on, unless the handle is closed meanwhile. */
static void note_writer(struct xmem_pool *pool)
{
	xm_store(&pool->role, XMEM_ROLE_WRITER);
	xm_store(&pool->live->writes, 1);
	xm_full_barrier();	/* xl_is_open says no before xl_live_end */
	if (!xl_is_open(pool))
		xm_store(&pool->live->writes, 0);
}

/* A host that may be stopped is waited for as xmem.h says. */
static int ask_to_write(struct xmem_pool *pool, int64_t timeout_ns)
{
	struct xmem_writer_request request = { .size = sizeof(request) };
	u64 least = xl_deadline(xl_ask_ns / 5), until = xl_deadline(timeout_ns);
	int err;

	if (!timeout_ns && xl_is_put_off(pool))
		return -EAGAIN;
	if (!timeout_ns)
		until = xl_ask_patiently(0);
	else if (until < least)
		until = least;
	err = xl_request_until(pool, XMEM_IOC_WRITER, &request, until);
	xl_ask_note(pool, err);
	return err == -ETIMEDOUT && !timeout_ns ? -EAGAIN : err;
}

/* The host may have served a request that was given up for its time: then the row says so. */
static int become_writer(struct xmem_pool *pool, const char *what, int64_t timeout_ns)
{
	const struct xmem_client_row *row = xm_client_row(&pool->map, pool->me);
	int err = 0;

	if (xl_host_died(pool))
		return xl_fail_died(pool);
	if (xm_load(&row->role) != XMEM_ROLE_WRITER)
		err = ask_to_write(pool, timeout_ns);
	if (err)
		return xl_fail(-err, "%s: the host has to make this client a writer first: %s",
			       what, xl_request_error(err == -EAGAIN ? -ETIMEDOUT : err));
	note_writer(pool);
	return 0;
}

int xl_check_role(struct xmem_pool *pool, const char *what, int64_t timeout_ns)
{
	if (!xl_alive(pool))
		return xl_fail_not_alive(pool);
	switch (xm_load(&pool->role)) {
	case XMEM_ROLE_WRITER:
		return 0;
	case XMEM_ROLE_EITHER:
		return become_writer(pool, what, timeout_ns);
	}
	return is_reader(pool, what);
}

int xl_check_writer(struct xmem_pool *pool, const char *what, int64_t timeout_ns)
{
	if (!pool)
		return xl_fail(EINVAL, "%s: no pool", what);
	if (!xl_is_open(pool))
		return xl_fail_not_alive(pool);
	return xl_check_role(pool, what, timeout_ns);
}

/* ---- making buffers ---- */

static int bad_numbers(const struct xmem_pool *pool, u32 count, u64 bytes)
{
	if (!count || count > pool->map.slots)
		return xl_fail(EINVAL, "preallocate: count is %u, not from 1 to %u, the slots of "
				       "the pool", count, pool->map.slots);
	if (!bytes)
		return xl_fail(EINVAL, "preallocate: bytes is 0");
	return xl_fail(EINVAL, "preallocate: bytes is %llu, and all %u buffers together must "
			       "not have more than %llu bytes", (unsigned long long)bytes, count,
			       XL_MAX_BYTES);
}

static struct xl_chain *chain_of(struct xmem_pool *pool, const struct xl_buffers *buffers)
{
	return buffers->cuda ? buffers->cuda->chain : &pool->owned.cpu;
}

static void add(struct xmem_pool *pool, const u16 *slot, const struct xl_buffers *buffers)
{
	u32 i;

	XM_STEP(XM_STEP_FILE_MADE);
	xl_owned_add(pool, chain_of(pool, buffers), slot, buffers->count, buffers->bytes,
		     !(buffers->flags & XMEM_MEMORY_SEALED));
	for (i = 0; buffers->ret_slots && i < buffers->count; i++)
		buffers->ret_slots[i] = slot[i];
}

int xl_slow_begin(struct xmem_pool *pool, u64 deadline_ns)
{
	int err = xl_turn_take(&pool->slow, deadline_ns);

	if (err == -EINTR)
		return xl_fail_fast(EINTR, "wait for another thread that makes buffers: a signal "
					   "handler ran");
	return err ? xl_fail(-err, "wait for another thread that makes buffers: it has not ended "
			     "in time, as the host does not answer") : 0;
}

/* Acquire and publish do not wait for files to be made. */
int xl_make_slots(struct xmem_pool *pool, const struct xl_buffers *buffers)
{
	bool shared = !(buffers->flags & XMEM_MEMORY_SEALED);
	u16 *slot = calloc(buffers->count, sizeof(*slot));
	int err;

	if (!slot)
		return xl_fail(ENOMEM, "no memory for a list of %u slots", buffers->count);
	err = xl_owned_prepare(pool, chain_of(pool, buffers), buffers->bytes, shared,
			       buffers->count);
	if (err)
		goto out_free;
	err = xl_payload_make(pool, buffers, slot);
	if (err)
		xl_owned_unprepare(pool);
	else
		add(pool, slot, buffers);
out_free:
	free(slot);
	return err;
}

int xl_make_buffers(struct xmem_pool *pool, const struct xl_buffers *buffers)
{
	int err, cancel;

	/* A thread that is cancelled here would keep what it has made, and the turn. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	err = xl_slow_begin(pool, ~0ULL);
	if (!err) {
		err = xl_make_slots(pool, buffers);
		if (!err && !buffers->cuda)
			xl_demand_end(pool);
		xl_turn_end(&pool->slow);
	}
	pthread_setcancelstate(cancel, NULL);
	return err;
}

#define FOR_CPU		(XMEM_MEMORY_HUGE | XMEM_MEMORY_SEALED)
#define FOR_CUDA	(XMEM_MEMORY_CUDA | XMEM_MEMORY_READERS | XMEM_MEMORY_LEGACY)

static int check_options(const struct xmem_preallocate_options *o)
{
	if (o->flags & ~(FOR_CPU | FOR_CUDA))
		return xl_fail(EINVAL, "xmem_preallocate_options: flags has 0x%x, which has no "
			       "meaning", o->flags & ~(FOR_CPU | FOR_CUDA));
	if (o->flags & XMEM_MEMORY_CUDA && o->flags & XMEM_MEMORY_HUGE)
		return xl_fail(EINVAL, "xmem_preallocate_options: flags has XMEM_MEMORY_CUDA and "
			       "XMEM_MEMORY_HUGE, which is for memory of the CPU");
	if (!(o->flags & XMEM_MEMORY_CUDA) && (o->flags & FOR_CUDA || o->device_id))
		return xl_fail(EINVAL, "xmem_preallocate_options: device_id, XMEM_MEMORY_READERS "
			       "and XMEM_MEMORY_LEGACY are for XMEM_MEMORY_CUDA, which flags lack");
	return 0;
}

XMEM_API int xmem_preallocate(struct xmem_pool *pool, size_t bytes, uint32_t count,
			      const struct xmem_preallocate_options *options)
{
	struct xl_buffers buffers = { .count = count, .bytes = bytes };
	struct xmem_preallocate_options o = { 0 };
	int err;
	XL_USE(pool);

	err = xl_options_take("xmem_preallocate_options", options, &o, sizeof(o));
	if (!err)
		err = check_options(&o);
	if (!err)
		err = xl_check_writer(pool, "preallocate", XMEM_FOREVER);
	if (err)
		return err;
	if (xl_host_died(pool))
		return xl_fail_died(pool);
	if (!count || count > pool->map.slots || !bytes || bytes > XL_MAX_BYTES / count)
		return bad_numbers(pool, count, bytes);
	buffers.ret_slots = o.ret_slots;
	buffers.flags = o.flags & FOR_CPU;
	return o.flags & XMEM_MEMORY_CUDA ? xl_preallocate_cuda(pool, &buffers, &o) :
					    xl_make_buffers(pool, &buffers);
}
