// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Clients: how they join and subscribe, and what the host does when one ends. A client can write
 * its area, so the host reads each word there once and never trusts it. Only the host writes the
 * header and the rows, so it trusts those.
 */
#include "limbo.h"
#include "policy.h"

/* ---- clients ---- */

static bool xm_good_label(const __u8 *label)
{
	u32 i;

	for (i = 0; i < XMEM_LABEL_BYTES; i++) {
		if (!label[i])
			return true;
		if (label[i] < ' ' || label[i] > '~')
			return false;
	}
	return false;
}

int xm_host_join_check(const struct xmem_join_request *join)
{
	if (join->role < XMEM_ROLE_READER || join->role > XMEM_ROLE_EITHER)
		return -EINVAL;
	if (!xm_good_label(join->label) || (join->role == XMEM_ROLE_READER && join->wait_bound_ns))
		return -EINVAL;
	return 0;
}

/* After the state and role: a client that sees the number finds the writer. */
static void xm_count_writer(const struct xm_map *map)
{
	xm_store_release(&map->pool->writers, map->pool->writers + 1);
}

int xm_host_join(struct xm_host *host, u32 client, struct xmem_join_request *join,
		 const struct xm_joiner *who)
{
	const struct xm_map *map = &host->map;
	struct xmem_client_row *row = xm_client_row(map, client);
	int err = xm_host_join_check(join);
	u32 i;

	if (err)
		return err;
	for (i = 0; i < map->clients; i++)
		xm_store(xm_cursor(map, client, i), XMEM_CURSOR_NONE);
	/* A client that reads the new label sees that the earlier client of this id has gone. */
	xm_store_barrier();
	xm_store(&row->role, join->role);
	row->pid = who->pid;
	row->uid = who->uid;
	xm_store(&row->process, who->sibling == XM_NO_CLIENT ? host->incarnations + 1 :
				xm_client_row(map, who->sibling)->process);
	row->wait_bound_ns = join->wait_bound_ns;
	for (i = 0; i < XMEM_LABEL_BYTES; i++)
		xm_store(&row->label[i], join->label[i]);
	for (i = 0; i < XMEM_CLIENT_WORDS; i++) {
		xm_store(&row->subscribers[i], 0);
		xm_store(&row->waits[i], 0);
	}
	xm_store(&row->subscriber_changes, 0);
	/* After the label: a client that knows this incarnation reads the label of this client. */
	host->books[client] = (struct xm_books){ .incarnation = ++host->incarnations };
	xm_store_release(&row->incarnation, host->incarnations);
	/* Count the client before it can hold anything: its first hold comes after this (I1). */
	xm_holders_join(host, client, who->user);
	xm_store_release(&row->state, XMEM_CLIENT_ALIVE);
	if (join->role == XMEM_ROLE_WRITER)
		xm_count_writer(map);
	xm_full_barrier();
	join->client = client;
	join->incarnation = row->incarnation;
	join->total_bytes = map->pool->total_bytes;
	return 0;
}

int xm_host_writer(const struct xm_host *host, u32 me, const struct xmem_grant_request *request,
		   bool *ret_new)
{
	struct xmem_client_row *row = xm_client_row(&host->map, me);

	if (request->client || request->incarnation || request->slot)
		return -EINVAL;
	*ret_new = row->role == XMEM_ROLE_EITHER;
	if (row->role == XMEM_ROLE_READER)
		return -EPERM;
	if (*ret_new) {
		xm_store(&row->role, XMEM_ROLE_WRITER);
		xm_count_writer(&host->map);
		xm_full_barrier();	/* before the look for waiters */
	}
	return 0;
}

int xm_host_client(const struct xm_host *host, struct xmem_client_request *request,
		   const struct xmem_client_row **ret)
{
	const struct xmem_client_row *row;

	if (request->client >= host->map.clients)
		return -EINVAL;
	row = xm_client_row(&host->map, xm_index(request->client, host->map.clients));
	if (xm_load(&row->state) == XMEM_CLIENT_NONE ||
	    (request->incarnation && request->incarnation != xm_load(&row->incarnation)))
		return -ENOENT;
	request->incarnation = xm_load(&row->incarnation);
	request->limbo_bytes = 0;
	*ret = row;
	return 0;
}

int xm_evict_check(const struct xm_map *map, u32 me, const struct xmem_evict_request *request)
{
	const struct xmem_client_row *row;

	if (request->evicted)
		return -EINVAL;
	if (request->op != XMEM_OP_EVICT)
		return request->client || request->reason || request->incarnation ? -EINVAL : 0;
	if (request->reason != XMEM_REASON_EVICTED && request->reason != XMEM_REASON_LIMBO)
		return -EINVAL;
	if (request->client >= map->clients || request->client == me || !request->incarnation)
		return -EINVAL;
	row = xm_client_row(map, xm_index(request->client, map->clients));
	return xm_load(&row->state) == XMEM_CLIENT_ALIVE &&
	       xm_load(&row->incarnation) == request->incarnation ? 0 : -ESTALE;
}

static int xm_publisher_row(const struct xm_host *host, u32 publisher, u64 incarnation,
			    struct xmem_client_row **ret)
{
	struct xmem_client_row *row;

	if (publisher >= host->map.clients)
		return -EINVAL;
	row = xm_client_row(&host->map, xm_index(publisher, host->map.clients));
	if (incarnation && (row->incarnation != incarnation || row->state == XMEM_CLIENT_NONE))
		return -ESTALE;
	if (row->state == XMEM_CLIENT_NONE || row->role != XMEM_ROLE_WRITER)
		return -ENOENT;
	*ret = row;
	return 0;
}

int xm_host_subscribe(struct xm_host *host, u32 me, struct xmem_subscribe_request *request)
{
	const struct xm_map *map = &host->map;
	struct xmem_client_row *row;
	u64 tail;
	int err;

	err = xm_publisher_row(host, request->publisher, request->incarnation, &row);
	if (err)
		return err;
	request->publisher = xm_index(request->publisher, map->clients);
	if (row->state != XMEM_CLIENT_ALIVE)
		return request->incarnation ? -ESTALE : -ENOENT;
	if (xm_bit(row->subscribers, me))
		return -EEXIST;
	if (request->flags & XMEM_SUBSCRIBE_WAIT && !row->wait_bound_ns)
		return -EOPNOTSUPP;

	/* Before the cursor: @me may hold all that it receives (I1). */
	xm_holders_subscribe(host, me, request->publisher);
	/* Before the bit: the publisher does not count a client whose cursor may yet move (I2). */
	xm_store(&row->subscribing, me + 1);
	/* A cursor of 0 pins every entry; advance it only after all scans can see it (I2, I3). */
	xm_store(xm_cursor(map, me, request->publisher), 0);
	XM_STEP(XM_STEP_SUBSCRIBE_CURSOR);
	xm_set_bit(row->waits, me, request->flags & XMEM_SUBSCRIBE_WAIT);
	xm_set_bit(row->subscribers, me, true);
	xm_full_barrier();
	XM_STEP(XM_STEP_SUBSCRIBE_BIT);
	tail = xm_load_acquire(&xm_ring(map, request->publisher)->tail);
	xm_store_release(xm_cursor(map, me, request->publisher), tail);
	xm_store_release(&row->subscribing, 0);
	/* Last: a client that sees the new number finds the change. */
	xm_store_release(&row->subscriber_changes, row->subscriber_changes + 1);
	xm_full_barrier();	/* before the look at the waiters word; pairs with arm */
	request->position = tail;
	return 0;
}

/*
 * The cursor is changed before the bits, so a subscriber that finds its bit cleared sees the reason
 * in @cursor.
 */
static void xm_forget(const struct xm_map *map, u32 subscriber, u32 publisher, u64 cursor)
{
	struct xmem_client_row *row = xm_client_row(map, publisher);

	if (map->area[subscriber])
		xm_store(xm_cursor(map, subscriber, publisher), cursor);
	xm_set_bit(row->subscribers, subscriber, false);
	xm_set_bit(row->waits, subscriber, false);
	xm_store_release(&row->subscriber_changes, row->subscriber_changes + 1);
}

int xm_host_unsubscribe(struct xm_host *host, u32 me,
			const struct xmem_unsubscribe_request *request)
{
	struct xmem_client_row *row;
	int err = xm_publisher_row(host, request->publisher, request->incarnation, &row);

	if (err)
		return err;
	if (!xm_bit(row->subscribers, me))
		return -ENOENT;
	xm_forget(&host->map, me, xm_index(request->publisher, host->map.clients),
		  XMEM_CURSOR_NONE);
	xm_full_barrier();
	return 0;
}

/* ---- the end of a client ---- */

/*
 * Keep only the entries that the client has completed and that belong to its ring. A subscriber
 * that waits for one that is missing then sees that it is lost.
 */
static void xm_repair_ring(const struct xm_map *map, u32 client)
{
	struct xmem_ring *ring = xm_ring(map, client);
	u64 entries = (u64)map->ring_mask + 1, tail = 0, i;

	/* The entries decide, because one may be complete before the tail has moved past it. */
	for (i = 0; i < entries; i++) {
		u64 position = xm_position(xm_load(&xm_entry(map, client, i)->position));

		if (position > tail && ((position - 1) & map->ring_mask) == i &&
		    position < XMEM_ENTRY_MARKED / 2)
			tail = position;
	}
	for (i = 0; i < entries; i++) {
		/* the one place among the last ring_mask + 1 that this entry is for */
		u64 place = tail - 1 - ((tail - 1 - i) & map->ring_mask);
		u64 *position = &xm_entry(map, client, i)->position;
		if (!tail || place >= tail)
			xm_store(position, 0);	/* never published */
		else if (xm_position(xm_load(position)) != place + 1)
			xm_store(position, (place + 1) | XMEM_ENTRY_VOID);
	}
	xm_store_release(&ring->tail, tail);
}

static void xm_adopt_slots(struct xm_host *host, u32 client)
{
	const struct xm_map *map = &host->map;
	u32 g, s;

	xm_each_slot_of(host, client, s)
		if (xm_slot_row(map, s)->owner == client)
			xm_store(&xm_slot_row(map, s)->owner, XMEM_OWNER_HOST);
	xm_full_barrier();	/* pairs with put: hold dropped, full, look at the owner (I5) */
	for (g = 0; g < map->groups; g++)
		if (host->group_owner[g] == client)
			xm_host_give_group(host, g, XMEM_OWNER_HOST);
}

/*
 * Does the client's hold of @slot keep memory to which its GPU has a pointer? XM_HOLD_DEVICE is
 * older than the present contents of the slot, so it counts only if these are in memory of a GPU.
 */
static bool xm_is_device_hold(const struct xm_map *map, u32 client, u32 slot)
{
	u32 hold = xm_load(xm_hold(map, client, slot));

	return hold & XM_HOLD_DEVICE && hold & XM_HOLD_COUNT &&
	       xm_slot_row(map, slot)->traits & XMEM_TRAIT_CUDA;
}

/*
 * Drop the holds of a client that has ended. Its ring may still be read, so the notes of what it
 * has forwarded stay (I6). Until its process has exited its GPU may still work, so holds with a GPU
 * pointer stay (I9). true: there are such holds.
 */
static bool xm_end_holds(const struct xm_map *map, u32 client, bool exited)
{
	bool device = false;
	u32 s;

	for (s = 0; s < map->slots; s++) {
		u32 *hold = xm_hold(map, client, s);
		u32 stays = xm_load(hold) & XM_HOLD_FORWARDED;

		if (!exited && xm_is_device_hold(map, client, s)) {
			stays |= XM_HOLD_DEVICE | 1;
			device = true;
		}
		xm_store_release(hold, stays);
	}
	return device;
}

/*
 * Set the cursors to NONE, which has passed everything: publishers need not wait until the host
 * clears the subscriber's bit. true: there were cursors.
 */
static bool xm_drop_cursors(const struct xm_map *map, u32 client)
{
	bool any = false;
	u32 c;

	for (c = 0; c < map->clients; c++) {
		if (xm_load(xm_cursor(map, client, c)) == XMEM_CURSOR_NONE)
			continue;
		xm_store_release(xm_cursor(map, client, c), XMEM_CURSOR_NONE);
		any = true;
	}
	return any;
}

bool xm_client_release(const struct xm_map *map, u32 client, u64 *ret_holds)
{
	bool any;
	u32 s;

	*ret_holds = 0;
	xm_repair_ring(map, client);
	XM_STEP(XM_STEP_LETS_GO);
	any = xm_drop_cursors(map, client);
	for (s = 0; s < map->slots; s++) {
		u32 had = xm_load(xm_hold(map, client, s)) & XM_HOLD_COUNT;

		if (!had || xm_is_device_hold(map, client, s))
			continue;
		xm_add_full(xm_hold(map, client, s), -had);
		*ret_holds += had;
	}
	xm_full_barrier();	/* pairs with xm_arm, after which a waiter looks again (I5) */
	return any || *ret_holds;
}

/* Free the slots that were being written; return those that were being scanned to LIVE. */
static void xm_end_slots(const struct xm_host *host, u32 client)
{
	const struct xm_map *map = &host->map;
	u32 s;

	xm_each_slot_of(host, client, s) {
		u64 *state, word;

		if (xm_slot_row(map, s)->owner != XMEM_OWNER_HOST ||
		    xm_slot_row(map, s)->tenant != client)
			continue;
		state = &xm_slot(map, s)->state;
		word = xm_load(state);
		if (xm_slot_row(map, s)->upgrader)	/* another client is writing it */
			word = xm_word(xm_generation(word), xm_scan_number(word),
				       XMEM_SLOT_UPGRADED);
		else if (xm_state(word) == XMEM_SLOT_SCANNING)
			word += XMEM_SLOT_LIVE - XMEM_SLOT_SCANNING;
		else if (xm_state(word) != XMEM_SLOT_LIVE)
			word = xm_word(xm_generation(word), xm_scan_number(word), XMEM_SLOT_FREE);
		xm_store_release(state, word);
	}
}

/*
 * End the client's writing in place: the slot has no contents any more, and so no claims. But a
 * slot that the client's GPU may still write stays as it is until the process has exited (I9),
 * because the owner of a FREE slot takes it without a look at the holds.
 */
static void xm_end_upgrades(struct xm_host *host, u32 client, bool exited)
{
	const struct xm_map *map = &host->map;
	u32 s;

	if (xm_client_row(map, client)->role != XMEM_ROLE_WRITER)
		return;		/* xm_host_upgrade refuses such clients */
	for (s = 0; s < map->slots; s++) {
		struct xmem_slot_row *row = xm_slot_row(map, s);
		u64 word;

		if (row->upgrader != client + 1 ||
		    (!exited && xm_is_device_hold(map, client, s)))
			continue;
		xm_claims_end(host, s);		/* before the owner can take the slot */
		xm_store(&row->upgrader, 0);
		word = xm_load(&xm_slot(map, s)->state);
		/* The owner may have written garbage into the word. */
		if (xm_state(word) == XMEM_SLOT_UPGRADED)
			xm_cas_full(&xm_slot(map, s)->state, word,
				    word - XMEM_SLOT_UPGRADED + XMEM_SLOT_FREE);
	}
}

/*
 * Does the ring of this zombie stay until @subscriber has received all of it? It does if the
 * publisher has waited for that subscriber and has not demoted it. Such rings keep slots and ids:
 * the next publisher that lacks them is told so (XMEM_QUOTA_POOL_SLOTS, XMEM_QUOTA_POOL_CLIENTS). A
 * subscriber of another user keeps no more rings than one that is not waited for.
 */
static bool xm_is_owed(const struct xm_host *host, u32 subscriber, u32 zombie)
{
	const struct xm_map *map = &host->map;

	return xm_bit(xm_client_row(map, zombie)->waits, subscriber) &&
	       xm_is_in_by_user(host, subscriber, host->user_of[zombie]) &&
	       !xm_is_demoted(map, zombie, subscriber,
			      xm_load(xm_cursor(map, subscriber, zombie)));
}

/* Of the other rings of ended publishers a subscriber keeps XM_MAX_ZOMBIES; drop the oldest. */
static void xm_limit_zombies(const struct xm_host *host, u32 subscriber)
{
	const struct xm_map *map = &host->map;
	u32 oldest = 0, count = 0, c;

	for (c = 0; c < map->clients; c++) {
		const struct xmem_client_row *row = xm_client_row(map, c);

		if (row->state != XMEM_CLIENT_ZOMBIE || !xm_bit(row->subscribers, subscriber) ||
		    xm_is_owed(host, subscriber, c))
			continue;
		if (!count++ || row->incarnation < xm_client_row(map, oldest)->incarnation)
			oldest = c;
	}
	if (count > XM_MAX_ZOMBIES)
		xm_forget(map, subscriber, oldest,
			  xm_load(&xm_ring(map, oldest)->tail) | XMEM_CURSOR_DROPPED);
}

/* ---- what strangers keep ---- */

/* The rings of ended publishers that only strangers keep. */
struct xm_estate {
	u32 rings, groups;
	u64 bytes;
};

/*
 * Do only strangers have yet to receive from the ring of this zombie? *ret_from: the place from
 * which on they can receive.
 */
static bool xm_is_strangers(const struct xm_host *host, u32 zombie, u64 *ret_from)
{
	const struct xm_map *map = &host->map;
	u64 tail = xm_load(&xm_ring(map, zombie)->tail), cursor;
	u32 c;

	*ret_from = tail;
	for (c = 0; c < map->clients; c++) {
		if (!xm_bit(xm_client_row(map, zombie)->subscribers, c))
			continue;
		cursor = xm_load_acquire(xm_cursor(map, c, zombie));
		if (cursor >= tail)
			continue;
		if (xm_is_in_by_user(host, c, host->user_of[zombie]))
			return false;
		*ret_from = cursor < *ret_from ? cursor : *ret_from;
	}
	return *ret_from < tail;
}

/* Count the ring: the slots that can be received from place @from on, and the groups they keep. */
static void xm_count_ring(const struct xm_host *host, u32 zombie, u64 from,
			  struct xm_estate *estate)
{
	const struct xm_map *map = &host->map;
	u64 tail = xm_load(&xm_ring(map, zombie)->tail);
	u32 s, last = XMEM_MAX_GROUPS;

	estate->rings++;
	xm_each_slot_of(host, zombie, s) {
		const struct xmem_slot_row *row = xm_slot_row(map, s);

		if (row->tenant != zombie || row->owner != XMEM_OWNER_HOST ||
		    !xm_in_flight(map, tail, from, xm_load(&xm_slot(map, s)->position)))
			continue;
		estate->bytes = xm_limbo_add(estate->bytes, row->length);
		estate->groups += last != s / XMEM_GROUP_SLOTS;
		last = s / XMEM_GROUP_SLOTS;
	}
}

/* The publisher of that user that joined last before incarnation @before, of the ended ones. */
static u32 xm_zombie_before(const struct xm_host *host, u32 user, u64 before)
{
	u32 newest = XM_NO_CLIENT, c;
	u64 last = 0;

	for (c = 0; c < host->map.clients; c++) {
		const struct xmem_client_row *row = xm_client_row(&host->map, c);

		if (row->state != XMEM_CLIENT_ZOMBIE || host->user_of[c] != user ||
		    row->incarnation >= before || row->incarnation <= last)
			continue;
		newest = c;
		last = row->incarnation;
	}
	return newest;
}

#define xm_each_zombie_of(host, user, c) \
	for (c = xm_zombie_before(host, user, ~0ULL); c != XM_NO_CLIENT; \
	     c = xm_zombie_before(host, user, xm_client_row(&(host)->map, c)->incarnation))

/*
 * All subscribers lose what they have yet to receive from the ring, and are told. No subscriber is
 * left, whatever it writes into its cursor meanwhile.
 */
static void xm_drop_ring(const struct xm_map *map, u32 zombie)
{
	u64 tail = xm_load(&xm_ring(map, zombie)->tail);
	u32 c;

	for (c = 0; c < map->clients; c++) {
		if (!xm_bit(xm_client_row(map, zombie)->subscribers, c))
			continue;
		xm_forget(map, c, zombie, xm_load_acquire(xm_cursor(map, c, zombie)) < tail ?
			  tail | XMEM_CURSOR_DROPPED : XMEM_CURSOR_NONE);
	}
}

/* May strangers keep all these rings? One ring may always stay. */
static bool xm_is_little(const struct xm_map *map, const struct xm_estate *estate)
{
	u32 groups = map->groups / XM_STRANGERS_SHARE, rings = map->clients / XM_STRANGERS_SHARE;

	return estate->rings <= 1 ||
	       (estate->groups <= (groups ? groups : 1) && estate->rings <= (rings ? rings : 1) &&
		estate->bytes <= XM_STRANGERS_BYTES);
}

/*
 * Drop the oldest rings of a user's publishers that only strangers keep, until the others keep no
 * more than they may. Rings of other users stay, so a guest that publishes much costs only itself.
 * Otherwise strangers that receive nothing would use up the pool while its owner's publishers are
 * restarted, each of them by as many rings as it may keep (XM_MAX_ZOMBIES).
 */
static void xm_limit_strangers(const struct xm_host *host, u32 ended)
{
	const struct xm_map *map = &host->map;
	struct xm_estate kept = { .rings = 0 };
	u64 from;
	u32 c;

	if (!xm_is_strangers(host, ended, &from))
		return;		/* there is no more than before */
	/* From the newest on, so each ring is counted once. */
	xm_each_zombie_of(host, host->user_of[ended], c) {
		if (!xm_is_strangers(host, c, &from))
			continue;
		if (xm_is_little(map, &kept))
			xm_count_ring(host, c, from, &kept);
		if (!xm_is_little(map, &kept))
			xm_drop_ring(map, c);
	}
}

bool xm_host_drop_strangers(const struct xm_host *host, u32 user)
{
	u32 oldest = XM_NO_CLIENT, c;
	u64 from;

	xm_each_zombie_of(host, user, c)
		if (xm_is_strangers(host, c, &from))
			oldest = c;
	if (oldest == XM_NO_CLIENT)
		return false;
	xm_drop_ring(&host->map, oldest);
	return true;
}

void xm_host_end(struct xm_host *host, u32 client)
{
	const struct xm_map *map = &host->map;
	struct xmem_client_row *row = xm_client_row(map, client);
	struct xm_books *books = &host->books[client];
	bool opens = books->opens;
	u32 c;

	/* From now on its files are kept for others. */
	xm_store(&map->pool->kept_bytes, map->pool->kept_bytes + books->file_bytes);
	books->incarnation = 0;
	opens |= xm_mark_late(host, client);
	xm_adopt_slots(host, client);
	for (c = 0; c < map->clients; c++)
		if (xm_bit(xm_client_row(map, c)->subscribers, client))
			xm_forget(map, client, c, XMEM_CURSOR_NONE);
	xm_repair_ring(map, client);
	xm_end_upgrades(host, client, false);
	xm_end_slots(host, client);
	xm_claims_leave(host, client);
	opens |= xm_end_holds(map, client, false);
	xm_set_bit(host->quarantined, client, opens);
	if (!opens)
		xm_clear_late(host, client);
	xm_store_release(&row->state, XMEM_CLIENT_ZOMBIE);
	for (c = 0; c < map->clients; c++)
		if (xm_bit(row->subscribers, c))
			xm_limit_zombies(host, c);
	xm_limit_strangers(host, client);
	xm_full_barrier();
}

void xm_host_exited(struct xm_host *host, u32 client)
{
	if (!xm_host_is_quarantined(host, client))
		return;
	xm_end_upgrades(host, client, true);
	xm_clear_late(host, client);
	xm_end_holds(&host->map, client, true);
	xm_set_bit(host->quarantined, client, false);
	xm_full_barrier();
}

/* May a subscriber still receive something from the ring of this zombie? */
static bool xm_is_followed(const struct xm_map *map, u32 client)
{
	const struct xmem_client_row *row = xm_client_row(map, client);
	u64 tail = xm_load(&xm_ring(map, client)->tail);
	u32 c;

	for (c = 0; c < map->clients; c++)
		if (xm_bit(row->subscribers, c) &&
		    xm_load_acquire(xm_cursor(map, c, client)) < tail)
			return true;
	return false;
}

bool xm_host_can_bury(const struct xm_host *host, u32 client)
{
	return xm_client_row(&host->map, client)->state == XMEM_CLIENT_ZOMBIE &&
	       !xm_host_is_quarantined(host, client) && !xm_is_followed(&host->map, client);
}

enum xm_buried xm_host_bury(struct xm_host *host, u32 client)
{
	const struct xm_map *map = &host->map;
	struct xmem_client_row *row = xm_client_row(map, client);
	enum xm_buried gone = XM_BURIED_NOT;
	u32 c, s;

	if (row->state != XMEM_CLIENT_ZOMBIE || xm_is_followed(map, client))
		return XM_BURIED_NOT;
	for (c = 0; c < map->clients; c++) {
		if (!xm_bit(row->subscribers, c))
			continue;
		xm_forget(map, c, client, XMEM_CURSOR_NONE);
		gone = XM_BURIED_RING;
	}
	xm_each_slot_of(host, client, s) {
		if (xm_slot_row(map, s)->tenant != client)
			continue;
		xm_store(&xm_slot_row(map, s)->tenant, XMEM_OWNER_NONE);
		gone = XM_BURIED_RING;
	}
	for (c = 0; c < map->groups; c++)
		if (host->group_tenant[c] == client) {
			host->group_tenant[c] = XMEM_OWNER_NONE;
			xm_host_show_owner(host, c);
		}
	if (xm_host_is_quarantined(host, client))
		return gone;
	xm_holders_leave(host, client);
	xm_store_release(&row->state, XMEM_CLIENT_NONE);
	return XM_BURIED;
}

/* ---- waiters ---- */

u32 *xm_host_waiters(const struct xm_host *host, u32 me, const struct xmem_wait_request *request,
		     int *err)
{
	bool arm = request->op == XMEM_OP_ARM, wake = request->op == XMEM_OP_WAKE;
	const struct xm_map *map = &host->map;
	u32 client;

	*err = -EINVAL;
	if (request->client >= map->clients)
		return NULL;
	if ((wake && (request->value || request->kicks)) ||
	    (request->op != XMEM_OP_WAIT && request->deadline_ns))
		return NULL;
	client = xm_index(request->client, map->clients);
	switch (request->kind) {
	case XMEM_WAIT_CLIENTS:
		if (client)
			return NULL;
		*err = -EPERM;
		return wake ? NULL : &map->pool->clients_waiters;
	case XMEM_WAIT_RING:
		*err = wake ? -EPERM : -ENOENT;
		if (wake && client != me)
			return NULL;
		if (arm && !xm_bit(xm_client_row(map, client)->subscribers, me))
			return NULL;
		return &xm_client_row(map, client)->ring_waiters;
	case XMEM_WAIT_SLOTS:
		*err = -EPERM;
		if (!wake && client != me)
			return NULL;
		/* A client that may not hold its slots has no reason to wake their owner. */
		if (client != me && !xm_bit(xm_client_row(map, client)->holders, me))
			return NULL;
		return &xm_client_row(map, client)->slots_waiters;
	}
	return NULL;
}
