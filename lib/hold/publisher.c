// SPDX-License-Identifier: MIT
/*
 * Which client published a buffer, and that client's label.
 *
 * The host's row of a client has its label as long as the client or its ring exists. A buffer can
 * be held for longer. So the label of a publisher is remembered when the publisher is followed,
 * until a later client with its id is followed. follow/label.c compares labels with those that a
 * subscription wants.
 */
#include "lib/base/handle.h"
#include "lib/follow/subscription.h"
#include "lib/hold/publisher.h"

/* The label of that incarnation, if its row still exists. */
static bool read_label(const struct xm_map *map, u32 client, u64 incarnation,
		       struct xm_label *ret)
{
	const struct xmem_client_row *row = xm_client_row(map, client);

	if (xm_load_acquire(&row->incarnation) != incarnation)
		return false;
	*ret = xm_label_of(map, client);
	/*
	 * The label is read before the state: pairs with the store barrier of a client that joins.
	 */
	xm_load_barrier();
	return xm_load_acquire(&row->state) != XMEM_CLIENT_NONE &&
	       xm_load(&row->incarnation) == incarnation;
}

void xl_label_record(struct xmem_pool *pool, u32 publisher, u64 incarnation)
{
	struct xl_known_label *known = &pool->labels.of[publisher];
	struct xm_label label;

	if (!read_label(&pool->map, publisher, incarnation, &label))
		return;		/* the publisher has just ended, and its ring has gone with it */
	xl_lock(&pool->labels.lock);
	if (known->incarnation != incarnation) {
		xm_store(&known->incarnation, 0);
		xm_store_release(&known->label.words[0], label.words[0]);
		xm_store_release(&known->label.words[1], label.words[1]);
		xm_store_release(&known->incarnation, incarnation);
	}
	xl_unlock(&pool->labels.lock);
}

/*
 * A reader that finds a word of a later label also finds a later incarnation. No lock is taken,
 * because programs may ask this of every buffer that they receive.
 */
static bool known_label(const struct xmem_pool *pool, u32 publisher, u64 incarnation,
			struct xm_label *ret)
{
	const struct xl_known_label *known = &pool->labels.of[publisher];

	if (xm_load_acquire(&known->incarnation) != incarnation)
		return false;
	ret->words[0] = xm_load_acquire(&known->label.words[0]);
	ret->words[1] = xm_load_acquire(&known->label.words[1]);
	return xm_load(&known->incarnation) == incarnation;
}

/*
 * The publisher of a buffer that was got by its token: the row of the slot names the client whose
 * ring has it. The host removes that name before it forgets the client.
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
