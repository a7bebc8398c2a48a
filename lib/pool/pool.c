// SPDX-License-Identifier: MIT
/* Opens and closes pools, and answers simple questions about a pool's handle. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/handle.h"
#include "lib/follow/wait.h"
#include "lib/gpu/order.h"
#include "lib/gpu/passed.h"
#include "lib/host/pages.h"
#include "lib/host/reach.h"
#include "lib/host/request.h"
#include "lib/own/demand.h"
#include "lib/payload/remnant.h"
#include "lib/pool/bury.h"
#include "lib/pool/join.h"

/*
 * Structs of pools are never freed; there are as many as were ever open at once. A thread that has
 * dropped the last handle of a buffer may still read its pool.
 */
static struct xmem_pool *spares;	/* under the fork lock */

static void spare_pool(struct xmem_pool *pool)
{
	xl_fork_lock();
	pool->next = spares;
	spares = pool;
	xl_fork_unlock();
}

static struct xmem_pool *new_pool(void)
{
	struct xmem_pool *pool;

	xl_fork_lock();
	pool = spares;
	if (pool)
		spares = pool->next;
	xl_fork_unlock();
	if (!pool)
		pool = calloc(1, sizeof(*pool));
	else
		memset(&pool->calls.cancels, 0,
		       sizeof(*pool) - offsetof(struct xmem_pool, calls.cancels));
	if (!pool) {
		xl_fail(ENOMEM, "no memory for a pool's handle");
		return NULL;
	}
	xm_store(&pool->calls.opened, pool->calls.opened + 1);
	return pool;
}

/* Memory of GPUs that other clients have open outlives the pool's handle: bury.c. */
static struct xmem_pool *join_as_reader(int fd, u64 deadline_ns);
static const struct xl_reader_calls reader = { join_as_reader, xmem_pool_close };

static void destroy(struct xmem_pool *pool)
{
	struct xl_remnant *remnant;
	int cancel;

	if (unlikely(xl_in_driver)) {
		xl_destroy_elsewhere(pool);
		return;
	}
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	xl_process_unregister(pool);
	xl_orders_close(pool);
	remnant = xl_cuda_bury_begin(pool, &reader);
	xl_mappings_destroy(pool);
	xl_pollers_drop(pool);
	xl_polls_drop(pool);
	pool->link.backend->close(&pool->link);
	xl_owned_destroy(pool);
	xl_opening_drop(pool);
	xm_store(&pool->process, XL_NO_PROCESS);
	spare_pool(pool);
	xl_cuda_bury_end(remnant);
	pthread_setcancelstate(cancel, NULL);
}

#define NO_POOL	{ .size = sizeof(struct xmem_join_request), .abi = XMEM_ABI, .pool_fd = -1 }

/* @deadline_ns: see xl_join. */
static struct xmem_pool *open_uncancelled(struct xmem_join_request *request,
					  const struct xmem_pool_options *options, u64 deadline_ns)
{
	struct xmem_pool_options taken;
	struct xmem_pool *pool;
	int err;

	if (xl_check_environment() || xl_join_options(options, &taken, request))
		return NULL;
	pool = new_pool();
	if (!pool)
		return NULL;
	if (xl_join(&pool->link, request, deadline_ns))
		goto err_free;
	err = pool->link.backend->map(&pool->link, &pool->map);
	if (err)
		goto err_link;
	pool->me = request->client;	/* the back end has checked it */
	pool->role = request->role;
	pool->holds = xm_hold(&pool->map, pool->me, 0);
	pool->gpus.buries = deadline_ns != ~0ULL;	/* only join_as_reader has a deadline */
	pool->share.out = 1;
	pool->share.destroy = destroy;
	err = xl_mappings_init(pool);
	if (!err)
		err = xl_owned_init(pool, &taken);
	if (err)
		goto err_link;
	xl_demand_init(pool, &taken);
	xl_handles_init();
	err = xl_opening_save(pool, options);
	if (!err)
		err = xl_process_register(pool);
	if (err)
		goto err_owned;
	xm_store(&pool->share.ending, xl_membarrier_ready() ? 0 : XL_ENDING_FENCED);
	return pool;

err_owned:
	xl_opening_drop(pool);
	xl_owned_destroy(pool);
err_link:
	xl_mappings_destroy(pool);
	xl_join_failed(err, &pool->link, request);
	pool->link.backend->close(&pool->link);
err_free:
	spare_pool(pool);
	return NULL;
}

static struct xmem_pool *join_as_reader(int fd, u64 deadline_ns)
{
	const struct xmem_pool_options options = {
		.size = sizeof(options), .flags = XMEM_OPEN_READER | XMEM_OPEN_FD, .fd = fd,
		.label = "closing",
	};
	struct xmem_join_request request = NO_POOL;

	return open_uncancelled(&request, &options, deadline_ns);
}

/* If the thread were cancelled half-way, descriptors and mappings would be left behind. */
static struct xmem_pool *open_pool(struct xmem_join_request *request,
				   const struct xmem_pool_options *options)
{
	struct xmem_pool *pool;
	int cancel;

	xl_cuda_reap_remnants();
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pool = open_uncancelled(request, options, ~0ULL);
	pthread_setcancelstate(cancel, NULL);
	return pool;
}

XMEM_API struct xmem_pool *xmem_pool_open(const char *name,
					  const struct xmem_pool_options *options)
{
	XL_CALL;
	struct xmem_join_request request = NO_POOL;

	return xl_join_name(name, &request) ? NULL : open_pool(&request, options);
}

XMEM_API int xmem_pool_fd(struct xmem_pool *pool)
{
	XL_CALL;
	struct xmem_pool_fd_request request = { .size = sizeof(request) };
	int err;
	XL_USE(pool);

	if (!pool)
		return xl_fail_fast(EINVAL, "no pool");
	if (!xl_is_open(pool))
		return xl_fail_not_alive(pool);
	err = xl_request(pool, XMEM_IOC_POOL_FD, &request);
	if (err)
		return xl_fail(-err, "a descriptor of the pool: %s", xl_request_error(err));
	xl_file_forget(request.fd);	/* the caller owns it now */
	return request.fd;
}

XMEM_API void xmem_pool_close(struct xmem_pool *pool)
{
	if (!pool)
		return;
	if (!xl_is_open(pool)) {
		if (xl_is_forked(pool))
			xl_opening_drop(pool);
		return;
	}
	xl_cancel(pool, XL_CANCEL_CLOSE);
	xl_live_end(pool);
	xl_owned_close(pool);
	/* Do this now: the last handle may be dropped in a stream, where a thread cannot wait. */
	xl_orders_wait_idle(pool);
	xl_passed_look();
	xl_pool_unshare(pool);
}

XMEM_API const char *xmem_pool_backend(struct xmem_pool *pool)
{
	return pool ? pool->link.backend->name : NULL;
}

XMEM_API int xmem_pool_client(struct xmem_pool *pool)
{
	XL_CALL;

	if (!pool)
		return xl_fail_fast(EINVAL, "no pool");
	return xl_is_open(pool) ? (int)pool->me : xl_fail_not_alive(pool);
}
