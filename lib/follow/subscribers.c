// SPDX-License-Identifier: MIT
/*
 * The subscribers of a writer: which clients they are, how far they are behind, and waiting for a
 * number of them. The pages have all of that, so the host is asked for nothing.
 *
 * Both hosts wake all owners after each subscribe and unsubscribe and after the end of a client,
 * because a cursor has moved. So a thread that waits for subscribers sleeps on its own
 * slots_waiters. The descriptor of xmem_subscribers_poll_fd arms no word (core/poll.c): a program
 * may poll it all its life, and each release of a buffer would wake it.
 */
#include "lib/base/structs.h"
#include "lib/follow/subscription.h"
#include "lib/follow/wait.h"
#include "lib/host/died.h"
#include "lib/host/pages.h"
#include "lib/host/request.h"
#include "lib/own/owned.h"

/*
 * The program has looked at its subscribers, so its descriptor is not readable until they change
 * again. A wait is no such look, because another thread may poll the descriptor.
 */
static void record_seen(struct xmem_pool *pool)
{
	const struct xmem_client_row *row = xm_client_row(&pool->map, pool->me);

	xm_store(&xm_ring(&pool->map, pool->me)->changes_seen,
		 xm_load_acquire(&row->subscriber_changes));
}

static void look(struct xmem_pool *pool)
{
	record_seen(pool);
	xl_joint_follow_new_writers(pool, 0);
}

static int check(struct xmem_pool *pool, int64_t timeout_ns)
{
	int err = xl_check_writer(pool, timeout_ns);

	if (err)
		return err;
	return xl_host_died(pool) ? xl_fail_died(pool) : 0;
}

/* ---- one ---- */

/*
 * Read the state of a client that may just come or go. false: it does not follow this writer, and
 * then its cursor does not say how far it is behind.
 */
static bool read_subscriber(const struct xmem_pool *pool, u32 client,
			    struct xmem_subscriber_info *ret)
{
	const struct xm_map *map = &pool->map;
	const struct xmem_client_row *row = xm_client_row(map, client);
	u32 i;

	if (!xm_is_subscriber(map, pool->me, client))
		return false;
	*ret = (struct xmem_subscriber_info){
		.size = sizeof(*ret),
		.client = client,
		.waits = xm_bit(xm_client_row(map, pool->me)->waits, client),
		.incarnation = xm_load(&row->incarnation),
		.behind = xl_behind(map, client, pool->me),
		.demoted = xm_is_demoted(map, pool->me, client,
					 xm_load_acquire(xm_cursor(map, client, pool->me))),
	};
	for (i = 0; i + 1 < sizeof(ret->label); i++)
		ret->label[i] = xm_load(&row->label[i]);
	xm_load_barrier();
	return xm_is_subscriber(map, pool->me, client);
}

XMEM_API int xmem_subscriber_next(struct xmem_pool *pool, uint32_t first,
				  struct xmem_subscriber_info *ret_info)
{
	XL_CALL;
	const struct xmem_client_row *row;
	struct xmem_subscriber_info info;
	bool found = false;
	char name[XL_NAME_BYTES];
	u64 incarnation;
	u32 c;
	int err;
	XL_USE(pool);

	err = check(pool, XMEM_FOREVER);
	if (!err)
		err = xl_answer_check("xmem_subscriber_info", ret_info);
	if (err)
		return err;
	if (!first)
		look(pool);
	for (c = first; c < pool->map.clients && !found; c++) {
		row = xm_client_row(&pool->map, c);
		do {
			incarnation = xm_load_acquire(&row->incarnation);
			found = read_subscriber(pool, c, &info);
		} while (incarnation != xm_load_acquire(&row->incarnation));
	}
	if (!first)
		xl_poll_update(pool, POLLIN);
	if (!found)
		return xl_fail(ENOENT, "no client with an id of %u or more follows this writer of "
				       "%s", first, xl_pool_name(pool, name, sizeof(name)));
	xl_answer_give(ret_info, &info, sizeof(info));
	return 0;
}

/* ---- waiting ---- */

/*
 * Arm, look, sleep (I5), until there are @count subscribers. 0 or -errno; *ret_found: their number.
 */
static int wait_for(struct xmem_pool *pool, u32 count, u64 deadline, u32 cancels, u32 *ret_found)
{
	struct xl_armed armed;
	int err = 0;

	while (!err) {
		err = xl_waiters_arm(pool, XMEM_WAIT_SLOTS, pool->me, &armed);
		if (err)
			break;
		/* New writers may wait until this client follows them. Then they wake it. */
		xl_joint_follow_new_writers(pool, deadline);
		*ret_found = xl_count_subscribers(&pool->map, pool->me);
		if (*ret_found >= count)
			break;
		if (xl_wait_cancelled(&pool->calls, cancels))
			return -ECANCELED;
		err = xl_waiters_wait(pool, XMEM_WAIT_SLOTS, pool->me, armed, deadline);
	}
	return err;
}

static int wait_failed(const struct xmem_pool *pool, int err, u32 count, u32 found)
{
	char name[XL_NAME_BYTES];

	switch (-err) {
	case EAGAIN:
	case ETIMEDOUT:
		return xl_fail(-err, "%u of %u follow this writer of %s%s",
			       found, count, xl_pool_name(pool, name, sizeof(name)),
			       err == -EAGAIN ? "" : ", and no more have come in time");
	case ECANCELED:
		return xl_fail_fast(ECANCELED, "xmem_cancel or xmem_pool_close has ended the "
					       "wait");
	case EINTR:
		return xl_fail_fast(EINTR, "a signal handler ran");
	}
	return xl_fail(-err, "%s", xl_request_error(err));
}

XMEM_API int xmem_wait_subscribers(struct xmem_pool *pool, uint32_t count, int64_t timeout_ns)
{
	XL_CALL;
	u32 cancels, found;
	int err;
	XL_USE(pool);

	err = check(pool, timeout_ns);
	if (err)
		return err;
	if (timeout_ns < 0)
		return xl_fail_fast(EINVAL, "a negative timeout");
	if (count > pool->map.clients)
		return xl_fail(EINVAL, "%u subscribers: the pool has at most %u clients",
			       count, pool->map.clients);
	cancels = xl_wait_cancels(&pool->calls);
	if (!timeout_ns)
		look(pool);
	found = xl_count_subscribers(&pool->map, pool->me);
	if (timeout_ns && cancels & XL_CANCEL_ALWAYS)
		err = -ECANCELED;
	else if (found < count)
		err = timeout_ns ? wait_for(pool, count, xl_deadline(timeout_ns), cancels,
					    &found) : -EAGAIN;
	if (!timeout_ns)
		xl_poll_update(pool, POLLIN);
	return err ? wait_failed(pool, err, count, found) : (int)found;
}
