// SPDX-License-Identifier: MIT
/*
 * Handing buffers over by count: references that are set aside as *claims*, and taken by clients
 * that come for them. core/claims.c counts them; a get takes its claim in buffer.c.
 */
#include <stdlib.h>

#include "lib/base/handle.h"
#include "lib/follow/wait.h"
#include "lib/gpu/order.h"
#include "lib/hold/claims.h"
#include "lib/hold/inplace.h"
#include "lib/hold/token.h"
#include "lib/host/died.h"
#include "lib/host/request.h"
#include "lib/own/owned.h"
#include "lib/payload/view.h"

#define TRIES	64	/* attempts to add claims; each fails only because the owner has begun a
			 * scan */

/* ---- requests ---- */

static struct xmem_claim_request ask(u32 op, u64 token, u32 count)
{
	return (struct xmem_claim_request){
		.size = sizeof(struct xmem_claim_request), .op = op,
		.slot = xm_token_slot(token), .generation = xm_generation(token), .count = count,
	};
}

static int claim(struct xmem_pool *pool, u32 op, u64 token, u32 count)
{
	struct xmem_claim_request request = ask(op, token, count);

	return xl_request(pool, XMEM_IOC_CLAIM, &request);
}

/* The claims that are added: how many, and for how long. */
struct wish {
	u64 token;
	u64 timeout_ns;
	u32 count;
};

static int claim_more(struct xmem_pool *pool, const struct wish *wish)
{
	struct xmem_claim_request request = ask(XMEM_CLAIM_ADD, wish->token, wish->count);

	request.timeout_ns = wish->timeout_ns;
	return xl_request(pool, XMEM_IOC_CLAIM, &request);
}

int xl_claim_take(struct xmem_pool *pool, u64 token)
{
	return claim(pool, XMEM_CLAIM_TAKE, token, 1);
}

/* Hold the contents that @token names for a moment. 0, or an error and there is no hold. */
static int hold(struct xmem_pool *pool, u64 token)
{
	int err = 0;

	if (!xm_is_counted(&pool->map, pool->me))
		err = xm_may_hold(&pool->map, pool->me, token);
	if (err)
		return err;
	err = xm_get(&pool->map, pool->me, token);
	if (err == -EOVERFLOW)
		return err;
	return err ? xl_hold_resolve(pool, token, err) : 0;
}

static void put(struct xmem_pool *pool, u32 slot)
{
	xl_do(pool, xm_put(&pool->map, pool->me, slot));
}

/*
 * Add claims to contents that the caller need not hold. If the owner is scanning the slot, this
 * waits for the end of the scan by taking a hold.
 */
static int add(struct xmem_pool *pool, const struct wish *wish)
{
	int err = claim_more(pool, wish), tries;

	for (tries = 0; err == -EAGAIN && tries < TRIES; tries++) {
		err = hold(pool, wish->token);
		if (err)
			return err;
		err = claim_more(pool, wish);
		put(pool, xm_token_slot(wish->token));
	}
	return err;
}

/* ---- errors ---- */

/* Can @pool be used? 0, or an error, noted. */
static int check(struct xmem_pool *pool, const char *what)
{
	if (!pool)
		return xl_fail(EINVAL, "%s: no pool", what);
	if (!xl_is_open(pool))
		return xl_fail_not_alive(pool);
	return xl_host_died(pool) ? xl_fail_died(pool) : 0;
}

static int failed(const char *what, int err)
{
	switch (-err) {
	case ESTALE:
		return xl_fail(ESTALE, "%s: the contents of this token are gone, or it is another "
			       "pool's", what);
	case ERANGE:
		return xl_fail(ERANGE, "%s: more than %d references would be set aside", what,
			       XMEM_MAX_CLAIMS);
	case ENOENT:
		return xl_fail(ENOENT, "%s: no reference of this buffer is set aside", what);
	case EPERM:
		return xl_fail(EPERM, "%s: only the buffer's owner may set references aside for "
			       "more than 60 seconds", what);
	}
	return xl_fail(-err, "%s: %s", what, xl_request_error(err));
}

static int done(const char *what, int err)
{
	return err ? failed(what, err) : 0;
}

/* ---- handles ---- */

static u64 timeout_of(int64_t timeout_ns)
{
	return timeout_ns == XMEM_FOREVER ? ~0ULL : (u64)timeout_ns;
}

/*
 * The others' references become claims, and this handle's is its hold. xmem_forget needs to know
 * how long the claims last.
 */
static void become_counted(struct xmem_buffer *buffer, const struct wish *wish)
{
	buffer->timeout_ns = wish->timeout_ns;
	if (xm_load(&buffer->mode) & XL_WRITING)
		xl_handle_use(buffer, XL_READING | XL_COUNTED);
	else
		xl_mode_add(buffer, XL_COUNTED);
}

/*
 * Let a buffer that is held have as many claims as are wished. Claims that are taken meanwhile
 * count as if they had been there.
 */
static int set_held(struct xmem_buffer *buffer, struct wish *wish)
{
	struct xmem_pool *pool = buffer->pool;
	u32 count = wish->count, there;
	int err;

	wish->token = buffer->what.token;
	do {
		there = xm_claims_of(&pool->map, buffer->slot);
		/*
		 * With a count of 0 this only sets the timeout, because taking claims does not
		 * change it for the others.
		 */
		wish->count = there > count ? 0 : count - there;
		err = count ? add(pool, wish) : 0;
		if (!err && there > count)
			err = claim(pool, XMEM_CLAIM_TAKE, wish->token, there - count);
	} while (err == -ERANGE || err == -ENOENT);
	return err;
}

/* Make the slot LIVE. It is held, so it becomes BUSY. */
static void leave_to_holders(struct xmem_buffer *buffer)
{
	struct xmem_pool *pool = buffer->pool;
	struct xl_owned *owned = &pool->owned;
	struct xl_owned_slot *one = buffer->own;

	xl_lock(&owned->lock);
	buffer->what.token = xm_make_live(&one->own);
	one->held = true;
	one->holder = pool->me;
	xl_queue_add(&one->size->busy, one);
	owned->promised--;
	xl_owned_changed(owned);
	xl_unlock(&owned->lock);
	xl_owned_wake(pool);
}

/*
 * Set the claims of a buffer that is being written. They are added before the contents are LIVE. If
 * this process ends in between, the host frees the slot, and its claims with it.
 */
static int set_written(struct xmem_buffer *buffer, struct wish *wish)
{
	struct xmem_pool *pool = buffer->pool;
	u64 word = xm_load(&buffer->own->own.word->state);
	int err;

	xl_record_place(buffer->own->metadata, 0, buffer->what.length);
	xl_fill_storage(buffer, buffer->own->metadata);
	err = xm_hold_more(&pool->map, pool->me, buffer->slot);
	if (err)
		return err;
	wish->token = xm_token(xm_generation(word), buffer->slot);
	err = wish->count ? claim_more(pool, wish) : 0;
	if (err) {
		put(pool, buffer->slot);
		return err;
	}
	buffer->origin = xl_origin(pool->me, pool->link.join.incarnation);
	leave_to_holders(buffer);
	return 0;
}

/* Set the claims of contents that were written in place. The hold exists already. */
static int set_upgraded(struct xmem_buffer *buffer, struct wish *wish)
{
	struct xmem_pool *pool = buffer->pool;
	int err;

	err = xl_upgrade_wait_until_complete(buffer);
	if (err)
		return err;
	wish->token = xm_token(buffer->upgrade->generation, buffer->slot);
	err = wish->count ? claim_more(pool, wish) : 0;
	if (err)
		return err;
	err = xl_upgrade_make_live(buffer);
	if (err && wish->count)
		claim(pool, XMEM_CLAIM_TAKE, wish->token, wish->count);
	return err;
}

static int set(struct xmem_buffer *buffer, struct wish *wish)
{
	struct xmem_pool *pool = buffer->pool;
	u32 mode = xm_load(&buffer->mode);

	/* The host checks this only if there are claims. */
	if (wish->timeout_ns > XMEM_CLAIM_LONGEST_NS &&
	    xm_load(&xm_slot_row(&pool->map, buffer->slot)->owner) != pool->me)
		return -EPERM;
	if (mode & XL_UPGRADED)
		return set_upgraded(buffer, wish);
	return mode & XL_WRITING ? set_written(buffer, wish) : set_held(buffer, wish);
}

XMEM_API int xmem_set_ref_count(struct xmem_buffer *handle, uint32_t count, int64_t timeout_ns)
{
	XL_CALL;
	struct xmem_buffer *buffer = xl_buffer(handle);
	struct wish wish = { .count = count - 1, .timeout_ns = timeout_of(timeout_ns) };
	int err;

	if (!buffer)
		return xl_no_buffer(handle, "set_ref_count");
	if (timeout_ns < 0)
		return xl_fail_fast(EINVAL, "a negative timeout");
	if (!count || count > XMEM_MAX_CLAIMS)
		return xl_fail(ERANGE, "%u references; it can be 1 to %d", count,
			       XMEM_MAX_CLAIMS);
	err = check(buffer->pool, "set_ref_count");
	if (err)
		return err;
	err = set(buffer, &wish);
	if (!err)
		become_counted(buffer, &wish);
	return done("set_ref_count", err);
}

/* Is it a buffer that is held for reading? 0, or an error, noted. */
static int check_held(const struct xmem_buffer *handle, struct xmem_buffer *buffer,
		      const char *what)
{
	if (!buffer)
		return xl_no_buffer(handle, what);
	if (xm_load(&buffer->mode) & XL_WRITING)
		return xl_fail(EPERM, "%s: the buffer is still being written", what);
	return check(buffer->pool, what);
}

XMEM_API int xmem_offer(struct xmem_buffer *handle, uint32_t more, int64_t timeout_ns)
{
	XL_CALL;
	struct xmem_buffer *buffer = xl_buffer(handle);
	struct wish wish = { .count = more, .timeout_ns = timeout_of(timeout_ns) };
	int err = check_held(handle, buffer, "offer");

	if (err)
		return err;
	if (timeout_ns < 0)
		return xl_fail_fast(EINVAL, "a negative timeout");
	if (!more)
		return xl_fail_fast(ERANGE, "0 references; it must be at least one");
	wish.token = buffer->what.token;
	return done("offer", add(buffer->pool, &wish));
}

XMEM_API int xmem_forget(struct xmem_buffer *handle)
{
	XL_CALL;
	struct xmem_buffer *buffer = xl_buffer(handle);
	struct wish wish = { .count = 1 };
	struct xmem_pool *pool;
	int err = check_held(handle, buffer, "forget");

	if (err)
		return err;
	pool = buffer->pool;
	wish.token = buffer->what.token;
	if (xm_load(&buffer->mode) & XL_COUNTED)
		wish.timeout_ns = buffer->timeout_ns;
	err = add(pool, &wish);
	if (err)
		return failed("forget", err);
	XM_STEP(XM_STEP_CLAIM_FORGET);
	xl_view_end(buffer);
	put(pool, buffer->slot);
	return xl_handle_drop(pool, buffer);
}

/* ---- tokens and slots ---- */

/* Find the token of the contents that @number names. 0 or an error, noted. */
static int look(struct xmem_pool *pool, u64 number, const char *what, u64 *ret_token)
{
	int err = check(pool, what);

	if (err)
		return err;
	*ret_token = xl_token_of(pool, number, what);
	if (!*ret_token)
		return xl_last_error();
	return xm_token_slot(*ret_token) < pool->map.slots ? 0 : failed(what, -ESTALE);
}

XMEM_API int xmem_add_ref(struct xmem_pool *pool, uint64_t number)
{
	XL_CALL;
	struct wish wish = { .count = 1 };
	int err;
	XL_USE(pool);

	err = look(pool, number, "add_ref", &wish.token);
	return err ? err : done("add_ref", add(pool, &wish));
}

/* The contents are held meanwhile, so that the claim is not one of the slot's next contents. */
XMEM_API int xmem_drop_ref(struct xmem_pool *pool, uint64_t number)
{
	XL_CALL;
	u64 token;
	int err;
	XL_USE(pool);

	err = look(pool, number, "drop_ref", &token);
	if (err)
		return err;
	err = hold(pool, token);
	if (err)
		return failed("drop_ref", err);
	err = xl_claim_take(pool, token);
	put(pool, xm_token_slot(token));
	return err == -ERANGE ? xl_fail_fast(ERANGE, "no reference is set aside") :
				done("drop_ref", err);
}

/*
 * The count belongs to the contents that are in the slot when it is read. The contents are checked
 * after that: if they are still there, they were there then.
 */
XMEM_API int xmem_claims(struct xmem_pool *pool, uint64_t number)
{
	XL_CALL;
	u64 token;
	u32 count;
	int err;
	XL_USE(pool);

	err = look(pool, number, "claims", &token);
	if (err)
		return err;
	count = xm_claims_of(&pool->map, xm_token_slot(token));
	return xm_look(&pool->map, token) == -ESTALE ? failed("claims", -ESTALE) : (int)count;
}

XMEM_API int xmem_void_claims(struct xmem_pool *pool, uint64_t number)
{
	XL_CALL;
	u64 token;
	int err;
	XL_USE(pool);

	err = look(pool, number, "void_claims", &token);
	if (err)
		return err;
	err = claim(pool, XMEM_CLAIM_VOID, token, 0);
	return err == -EPERM ? xl_fail_fast(EPERM, "only the buffer's owner, clients that have set "
					    "some aside, and administrators void claims") :
	       done("void_claims", err);
}
