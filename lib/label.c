// SPDX-License-Identifier: MIT
/*
 * Labels as topics: which publishers a subscription wants, and what the publisher of a buffer
 * called itself.
 *
 * The host's row of a client says its label as long as the client is there, its ring included.
 * A buffer can be held for longer. So the label of a publisher is remembered when it is
 * followed, until a later client with its id is followed.
 */
#include <string.h>

#include "handle.h"
#include "subscription.h"

/* ---- wanted ones ---- */

int xl_label_take(const char *wanted, struct xm_label *ret)
{
	size_t length = wanted ? strlen(wanted) : 0, i;

	*ret = (struct xm_label){ .words = { 0, 0 } };
	if (!wanted)
		return 0;
	if (!length)
		return xl_fail(EINVAL, "xmem_subscribe_options: label is empty; NULL stands for "
				       "all publishers");
	if (length >= XMEM_LABEL_BYTES)
		return xl_fail(EINVAL, "xmem_subscribe_options: label '%.40s' has more than 15 "
				       "characters%s", wanted, wanted[length - 1] == '*' ?
				       ", the star included" : "");
	for (i = 0; i < length; i++)
		if (wanted[i] < ' ' || wanted[i] > '~')
			return xl_fail(EINVAL, "xmem_subscribe_options: label has a character that "
					       "is not printable ASCII, at %zu", i);
	memcpy(ret->bytes, wanted, length);
	return 0;
}

/*
 * The incarnation is read before the label, and whoever follows the writer names it: if the id
 * has another client meanwhile, the host refuses.
 */
u64 xl_wanted_writer(const struct xmem_subscription *subscription, u32 client)
{
	const struct xmem_pool *pool = subscription->pool;
	struct xm_label label;
	u64 incarnation;

	if (!xl_is_strange_writer(pool, client))
		return 0;
	incarnation = xm_load_acquire(&xm_client_row(&pool->map, client)->incarnation);
	label = xm_label_of(&pool->map, client);
	return xm_label_fits(&subscription->label, &label) ? incarnation : 0;
}

/* ---- labels of publishers ---- */

/* The label of that incarnation, if it is still there. */
static bool read_label(const struct xm_map *map, u32 client, u64 incarnation,
		       struct xm_label *ret)
{
	const struct xmem_client_row *row = xm_client_row(map, client);

	if (xm_load_acquire(&row->incarnation) != incarnation)
		return false;
	*ret = xm_label_of(map, client);
	/* The label before the state: pairs with the store barrier of a client that joins. */
	xm_load_barrier();
	return xm_load_acquire(&row->state) != XMEM_CLIENT_NONE &&
	       xm_load(&row->incarnation) == incarnation;
}

void xl_label_note(struct xmem_pool *pool, u32 publisher, u64 incarnation)
{
	struct xl_known_label *known = &pool->labels[publisher];
	struct xm_label label;

	if (!read_label(&pool->map, publisher, incarnation, &label))
		return;		/* it has just ended, and its ring has gone with it */
	xl_lock(&pool->lock);
	if (known->incarnation != incarnation) {
		xm_store(&known->incarnation, 0);
		xm_store_release(&known->label.words[0], label.words[0]);
		xm_store_release(&known->label.words[1], label.words[1]);
		xm_store_release(&known->incarnation, incarnation);
	}
	xl_unlock(&pool->lock);
}

/*
 * Whoever finds a word of a later label finds a later incarnation, too. Nobody takes a lock for it,
 * because programs may ask this of every buffer that they receive.
 */
static bool known_label(const struct xmem_pool *pool, u32 publisher, u64 incarnation,
			struct xm_label *ret)
{
	const struct xl_known_label *known = &pool->labels[publisher];

	if (xm_load_acquire(&known->incarnation) != incarnation)
		return false;
	ret->words[0] = xm_load_acquire(&known->label.words[0]);
	ret->words[1] = xm_load_acquire(&known->label.words[1]);
	return xm_load(&known->incarnation) == incarnation;
}

/*
 * Of a buffer that was got by its token, the row of the slot names the client in whose ring it
 * is. The host takes that name away before it forgets the client.
 */
static u32 tenant_of(const struct xmem_buffer *buffer, struct xm_label *ret)
{
	const struct xm_map *map = &buffer->pool->map;
	const u32 *tenant = &xm_slot_row(map, buffer->slot)->tenant;
	u32 client = xm_load_acquire(tenant);
	u64 incarnation;

	if (client >= map->clients)
		return XMEM_NOBODY;
	incarnation = xm_load_acquire(&xm_client_row(map, client)->incarnation);
	if (read_label(map, client, incarnation, ret) && xm_load_acquire(tenant) == client)
		return client;
	return XMEM_NOBODY;
}

u32 xl_publisher_of(const struct xmem_buffer *buffer, struct xm_label *ret)
{
	struct xmem_pool *pool = buffer->pool;
	u64 origin = buffer->origin, incarnation;
	u32 client;

	if (xm_load(&buffer->mode) & XL_WRITING)
		origin = xl_origin(pool->me, pool->link.join.incarnation);
	if (origin == XL_ANYBODY)
		return tenant_of(buffer, ret);
	client = xl_origin_client(origin);
	incarnation = xl_origin_incarnation(origin);
	if (!known_label(pool, client, incarnation, ret) &&
	    !read_label(&pool->map, client, incarnation, ret))
		*ret = (struct xm_label){ .words = { 0, 0 } };
	return client;
}
