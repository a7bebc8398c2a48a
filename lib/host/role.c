// SPDX-License-Identifier: MIT
/*
 * May this client write? If its role is still open, the host makes it a writer at the first call
 * that needs a writer.
 */
#include "lib/base/calls.h"
#include "lib/host/died.h"
#include "lib/host/request.h"

static int is_reader(const struct xmem_pool *pool)
{
	if (pool->opening.options.flags & XMEM_OPEN_READER)
		return xl_fail_fast(EPERM, "this client is a reader, because it has opened the "
					   "pool with XMEM_OPEN_READER");
	return xl_fail_fast(EACCES, "this client may only read, because of the pool's mode, or of "
				    "the descriptor or number with which it has joined");
}

/* xmem_acquire may take its fast path from now on, unless the handle is being closed. */
static void allow_acquire(struct xmem_pool *pool)
{
	xm_store(&pool->role, XMEM_ROLE_WRITER);
	xm_store(&pool->live->writes, 1);
	xm_full_barrier();	/* a close that this misses: xl_is_open is false before
				 * xl_live_end */
	if (!xl_is_open(pool))
		xm_store(&pool->live->writes, 0);
}

/* Ask the host, which may be stopped, for as long as xmem.h says. */
static int ask_to_write(struct xmem_pool *pool, int64_t timeout_ns)
{
	struct xmem_grant_request request = { .size = sizeof(request), .op = XMEM_OP_WRITER };
	u64 least = xl_deadline(xl_ask_ns / 5), until = xl_deadline(timeout_ns);
	int err;

	if (!timeout_ns && xl_is_put_off(pool))
		return -EAGAIN;
	if (!timeout_ns)
		until = xl_ask_patiently(0);
	else if (until < least)
		until = least;
	err = xl_request_until(pool, XMEM_IOC_GRANT, &request, until);
	xl_ask_record(pool, err);
	return err == -ETIMEDOUT && !timeout_ns ? -EAGAIN : err;
}

/* The host may have served a request that was given up at its deadline. Then the row says so. */
static int become_writer(struct xmem_pool *pool, int64_t timeout_ns)
{
	const struct xmem_client_row *row = xm_client_row(&pool->map, pool->me);
	int err = 0;

	if (xl_host_died(pool))
		return xl_fail_died(pool);
	if (xm_load(&row->role) != XMEM_ROLE_WRITER)
		err = ask_to_write(pool, timeout_ns);
	if (err)
		return xl_fail(-err, "the host has to make this client a writer first: %s",
			       xl_request_error(err == -EAGAIN ? -ETIMEDOUT : err));
	allow_acquire(pool);
	return 0;
}

int xl_check_role(struct xmem_pool *pool, int64_t timeout_ns)
{
	if (!xl_alive(pool))
		return xl_fail_not_alive(pool);
	switch (xm_load(&pool->role)) {
	case XMEM_ROLE_WRITER:
		return 0;
	case XMEM_ROLE_EITHER:
		return become_writer(pool, timeout_ns);
	}
	return is_reader(pool);
}

int xl_check_writer(struct xmem_pool *pool, int64_t timeout_ns)
{
	if (!pool)
		return xl_fail_fast(EINVAL, "no pool");
	if (!xl_is_open(pool))
		return xl_fail_not_alive(pool);
	return xl_check_role(pool, timeout_ns);
}
