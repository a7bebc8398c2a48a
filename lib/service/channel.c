// SPDX-License-Identifier: MIT
/*
 * Messages from one client to another. Each is a publication to one client (XMEM_PUBLISH_CLIENT).
 * A publication may be lost, because a ring has a limited length, and the writer does not wait for
 * slow clients. So the sender of a message holds its buffer until the receiver's cursor has passed
 * the message. If the sender has published half a ring since a message that is still to be
 * received, it publishes all messages to that receiver again. So no sender waits for a slow
 * receiver.
 *
 * The messages from one client to another are numbered from 0 on. A receiver takes only the message
 * with the next number, and drops all others: they have come before, or will come again.
 *
 * At most a quarter of the ring has messages that are still to be received. So while a sender
 * publishes all of them again, none is overwritten. One half of this quarter is for the messages to
 * any receiver. The other half is divided into equal parts, one for each client. The messages that
 * fit are the *window* of a receiver. The last message that fits has the mark FULL. The receiver
 * answers it (XL_KIND_SEEN), and then the sender publishes the next messages.
 *
 * A message's number, kind and call travel in the time stamp of its publication. So a buffer that
 * is held for reading can be forwarded as it is, with its metadata.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/calls.h"
#include "lib/base/handle.h"
#include "lib/base/uncancelled.h"
#include "lib/host/request.h"
#include "lib/service/channel.h"

/* ---- the head of a message ---- */

#define CALL_BITS	32
#define NUMBER_BITS	28
#define NUMBER_MASK	((1u << NUMBER_BITS) - 1)
#define KIND_SHIFT	(CALL_BITS + NUMBER_BITS)
#define FULL		(1ULL << 63)	/* this message is the last one that fits into the window */

static u64 pack(struct xl_head head, u32 number)
{
	return head.call | (u64)(number & NUMBER_MASK) << CALL_BITS | (u64)head.kind << KIND_SHIFT;
}

static struct xl_head unpack(u64 stamp, u32 *ret_number)
{
	*ret_number = stamp >> CALL_BITS & NUMBER_MASK;
	return (struct xl_head){ .kind = stamp >> KIND_SHIFT & 7, .call = (u32)stamp };
}

/* ---- peers ---- */

/* Read the row of a client. false: no client with that id lives. */
static bool look(const struct xl_channel *channel, u32 client, u64 *ret_incarnation,
		 struct xm_label *ret_label)
{
	const struct xm_map *map = &channel->pool->map;
	const struct xmem_client_row *row = xm_client_row(map, client);
	bool alive;

	do {
		*ret_incarnation = xm_load_acquire(&row->incarnation);
		alive = xm_load(&row->state) == XMEM_CLIENT_ALIVE;
		*ret_label = xm_label_of(map, client);
		xm_load_barrier();
	} while (*ret_incarnation != xm_load(&row->incarnation));
	return alive && *ret_incarnation;
}

bool xl_channel_alive(const struct xl_channel *channel, u32 client, u64 incarnation)
{
	struct xm_label label;
	u64 now;

	return look(channel, client, &now, &label) && now == incarnation;
}

u32 xl_channel_servers(struct xl_channel *channel,
		       void (*call)(struct xl_channel *channel, u32 client, u64 incarnation))
{
	u64 incarnation, first = ~0ULL;
	struct xm_label label;
	u32 c, found = 0, oldest = XMEM_NOBODY;

	for (c = 0; c < channel->clients; c++) {
		if (look(channel, c, &incarnation, &label) && incarnation < first &&
		    !memcmp(label.bytes, XL_SERVES, XL_ROLE_CHARS)) {
			first = incarnation;
			oldest = c;
		}
	}
	if (oldest != XMEM_NOBODY) {
		call(channel, oldest, first);
		return 1;
	}
	for (c = 0; c < channel->clients; c++) {
		if (!look(channel, c, &incarnation, &label) ||
		    memcmp(label.bytes, XL_SHARES, XL_ROLE_CHARS))
			continue;
		call(channel, c, incarnation);
		found++;
	}
	return found;
}

/* ---- what this client has sent ---- */

struct xl_sent {
	struct xl_sent *next;
	struct xmem_buffer *buffer;	/* held until the receiver has the message */
	u64 stamp;			/* see pack */
	u64 position;			/* 1 + its place in the ring, if it is there */
};

static void drop_first(struct xl_peer *peer)
{
	struct xl_sent *sent = peer->first;

	peer->first = sent->next;
	xmem_release(sent->buffer);
	free(sent);
}

static int publish(struct xl_channel *channel, u32 client, struct xmem_buffer *buffer, u64 stamp)
{
	struct xmem_publish_options options = {
		.size = sizeof(options),
		.flags = XMEM_PUBLISH_KEEP | XMEM_PUBLISH_CLIENT,
		.client = client,
		.timestamp_ns = stamp,
	};
	int err = xmem_publish(buffer, &options, NULL);

	if (!err)
		channel->published++;
	return err;
}

/* Is there room in a peer's window for @more messages? */
static bool fits(const struct xl_channel *channel, const struct xl_peer *peer, u32 more)
{
	return peer->in_ring + more <= channel->ring / 8 / channel->clients ||
	       channel->in_ring + more <= channel->ring / 8;
}

/*
 * Publish the messages that fit into the window of a peer. 0, or -errno, noted: the next trim
 * publishes the rest.
 */
static int fill_window(struct xl_channel *channel, struct xl_peer *peer)
{
	struct xl_sent *sent;
	int err;

	while ((sent = peer->unsent) && fits(channel, peer, 1)) {
		err = publish(channel, peer - channel->peers, sent->buffer,
			      sent->stamp | (fits(channel, peer, 2) ? 0 : FULL));
		if (err)
			return err;
		sent->position = channel->published;
		peer->unsent = sent->next;
		peer->in_ring++;
		channel->in_ring++;
	}
	return 0;
}

/* The first @count messages to a peer do not count as in the ring any more. */
static void leave_ring(struct xl_channel *channel, struct xl_peer *peer, u32 count)
{
	peer->in_ring -= count;
	channel->in_ring -= count;
}

/* Get the number of this client's publications that a peer has passed. false: it has ended. */
static bool read_passed(const struct xl_channel *channel, const struct xl_peer *peer, u64 *ret)
{
	u32 client = peer - channel->peers;
	struct xmem_subscriber_info info = XMEM_INIT(info);

	if (xmem_subscriber_next(channel->pool, client, &info) || info.client != client ||
	    info.incarnation != peer->incarnation)
		return false;
	*ret = info.behind < channel->published ? channel->published - info.behind : 0;
	return true;
}

/* Returns false if the peer has received all messages, or has ended. */
static bool trim_peer(struct xl_channel *channel, struct xl_peer *peer)
{
	u64 passed;

	if (!read_passed(channel, peer, &passed)) {
		while (peer->first)
			drop_first(peer);
		peer->unsent = NULL;
		leave_ring(channel, peer, peer->in_ring);
		return false;
	}
	for (; peer->in_ring && peer->first->position <= passed; leave_ring(channel, peer, 1))
		drop_first(peer);
	if (peer->in_ring && channel->published - peer->first->position >= channel->ring / 2) {
		peer->unsent = peer->first;
		leave_ring(channel, peer, peer->in_ring);
	}
	fill_window(channel, peer);
	return peer->first;
}

void xl_channel_trim(struct xl_channel *channel)
{
	struct xl_peer **link = &channel->waited, *peer;
	XL_QUIET;

	while ((peer = *link)) {
		if (trim_peer(channel, peer)) {
			link = &peer->next;
		} else {
			*link = peer->next;
			peer->waited = false;
		}
	}
}

static void append(struct xl_channel *channel, struct xl_peer *peer, struct xl_sent *sent)
{
	if (peer->first)
		peer->last->next = sent;
	else
		peer->first = sent;
	if (!peer->waited) {
		peer->waited = true;
		peer->next = channel->waited;
		channel->waited = peer;
	}
	peer->last = sent;
	if (!peer->unsent)
		peer->unsent = sent;
}

/* Undo append: the last message could not be published, and @before is the one before it. */
static void take_back(struct xl_peer *peer, struct xl_sent *before)
{
	free(peer->last);
	peer->unsent = NULL;
	peer->last = before;
	if (before)
		before->next = NULL;
	else
		peer->first = NULL;	/* the next trim takes it off the list */
}

/* Only a buffer of the channel's own handle of the pool can be published in its ring. */
int xl_channel_check(const struct xl_channel *channel, const struct xmem_buffer *handle)
{
	const struct xmem_buffer *buffer = xl_buffer(handle);

	if (!buffer)
		return xl_no_buffer(handle, xl_call);
	return buffer->pool == channel->pool ? 0 :
	       xl_fail_fast(EINVAL, "the buffer is not of the pool of this server or caller");
}

/* The program's handle is gone from now on: the buffer gets another one. */
static struct xmem_buffer *take_over(const struct xmem_buffer *handle)
{
	struct xmem_buffer *buffer = xl_buffer(handle);

	xl_bump(&buffer->name, XL_NAME_STEP);
	return xl_handle(buffer);
}

int xl_channel_send(struct xl_channel *channel, u32 client, struct xl_head head,
		    struct xmem_buffer *buffer)
{
	struct xl_peer *peer = &channel->peers[client];
	struct xl_sent *sent, *before;
	int err;

	xl_channel_trim(channel);
	sent = calloc(1, sizeof(*sent));
	if (!sent)
		return xl_fail_fast(ENOMEM, "no memory for a message");
	sent->buffer = buffer;
	sent->stamp = pack(head, peer->numbered);
	before = peer->first ? peer->last : NULL;
	append(channel, peer, sent);
	err = fill_window(channel, peer);
	if (err && peer->unsent == sent) {
		take_back(peer, before);
		return err;
	}
	sent->buffer = take_over(buffer);
	peer->numbered++;
	return 0;
}

int xl_channel_send_word(struct xl_channel *channel, u32 client, struct xl_head head, u32 word)
{
	struct xmem_buffer *buffer;
	u32 *contents;
	int err;

	xl_channel_trim(channel);
	buffer = xmem_acquire(channel->pool, sizeof(word), 0);
	contents = buffer ? xmem_data_mut(buffer) : NULL;
	if (!contents) {
		err = xl_last_error();
		xmem_release(buffer);
		return err;
	}
	*contents = word;
	err = xl_channel_send(channel, client, head, buffer);
	if (err)
		xmem_release(buffer);
	return err;
}

/* ---- receiving ---- */

/*
 * Is this the next message of that client? A message with the number 0 may be the first one of a
 * new client that has got the id of an ended one.
 */
static bool is_next(struct xl_channel *channel, u32 client, u32 number)
{
	struct xl_peer *peer = &channel->peers[client];
	struct xm_label label;
	u64 now;

	if (!number && !peer->subscription && look(channel, client, &now, &label) &&
	    now != peer->incarnation) {
		xl_channel_trim(channel);	/* drops the messages to the ended client */
		peer->incarnation = now;
		peer->received = peer->numbered = 0;
	}
	if (!peer->incarnation || number != (peer->received & NUMBER_MASK))
		return false;
	peer->received++;
	return true;
}

static void accept(struct xl_channel *channel, struct xmem_buffer *buffer)
{
	struct xmem_buffer_info info = XMEM_INIT(info);
	struct xl_head head;
	u32 number;
	XL_QUIET;

	if (xmem_buffer_stat(buffer, &info) || info.publisher >= channel->clients) {
		xmem_release(buffer);
		return;
	}
	head = unpack(info.timestamp_ns, &number);
	if (info.timestamp_ns & FULL)
		publish(channel, info.publisher, buffer, (u64)XL_KIND_SEEN << KIND_SHIFT);
	if (head.kind != XL_KIND_SEEN && is_next(channel, info.publisher, number))
		channel->take(channel, info.publisher, head, buffer);
	else
		xmem_release(buffer);
}

int64_t xl_left(u64 deadline)
{
	u64 now;

	if (!deadline || deadline == ~0ULL)
		return deadline ? XMEM_FOREVER : 0;
	now = xl_now_ns();
	return now < deadline ? (int64_t)(deadline - now) : 1;
}

/* Another thread is receiving. Wait until it has received something, or stops. */
static int wait_for_receiver(struct xl_channel *channel, u64 deadline)
{
	struct timespec until = {
		.tv_sec = deadline / 1000000000,
		.tv_nsec = deadline % 1000000000,
	};

	XL_UNCANCELLED;

	if (!deadline)
		return xl_fail_fast(EAGAIN, "nothing has come yet");
	if (deadline == ~0ULL)
		pthread_cond_wait(&channel->changed, &channel->mutex);
	else if (pthread_cond_timedwait(&channel->changed, &channel->mutex, &until))
		return xl_fail_fast(ETIMEDOUT, "nothing has come in time");
	return 0;
}

int xl_channel_wait(struct xl_channel *channel, u64 deadline)
{
	struct xmem_subscription *subscription = NULL;
	struct xmem_buffer *buffer;
	struct xl_error before;
	int err = 0;

	if (channel->closing)
		return xl_fail_fast(ECANCELED, "the handle is being closed");
	if (channel->receiving)
		return wait_for_receiver(channel, deadline);
	channel->receiving = true;
	pthread_mutex_unlock(&channel->mutex);
	xl_error_save(&before);
	buffer = xmem_receive_any(channel->pool, xl_left(deadline), &subscription);
	if (!buffer)
		err = xl_last_error();
	pthread_mutex_lock(&channel->mutex);
	channel->receiving = false;
	pthread_cond_broadcast(&channel->changed);
	xl_channel_trim(channel);
	if (buffer) {
		accept(channel, buffer);
	} else if (err == -EPIPE && subscription) {
		xl_error_restore(&before);
		channel->over(channel, subscription);
		err = 0;
	}
	return err;
}

void xl_channel_drain(struct xl_channel *channel)
{
	XL_QUIET;

	while (!channel->receiving && !xl_channel_wait(channel, 0))
		;
}

/* ---- joining and leaving ---- */

int xl_channel_enter(struct xl_channel *channel)
{
	/* After a fork the child's mutex may be locked, by a thread that only the parent has. */
	if (!xl_is_open(channel->pool))
		return xl_fail_not_alive(channel->pool);
	pthread_mutex_lock(&channel->mutex);
	channel->users++;
	return 0;
}

void xl_channel_leave(struct xl_channel *channel)
{
	if (!--channel->users)
		pthread_cond_broadcast(&channel->changed);
	pthread_mutex_unlock(&channel->mutex);
}

/* Default sizes of the pool. Each client needs a group of slots, and a server perhaps more. */
#define CLIENTS		64
#define GROUPS		96
#define ENTRIES		16		/* of a ring, for each client; at least 8 */

static int read_me(struct xl_channel *channel)
{
	const struct xm_map *map = &channel->pool->map;

	channel->clients = map->clients;
	channel->ring = map->ring_mask + 1;
	if (channel->ring / 8 < channel->clients)
		return xl_fail(EINVAL, "the pool's rings have %u entries, and a service needs 8 "
				       "for each of its %u clients", channel->ring,
			       channel->clients);
	channel->peers = calloc(channel->clients, sizeof(*channel->peers));
	return channel->peers ? 0 : xl_fail_fast(ENOMEM, "no memory for the list of clients");
}

static int open_pool(struct xl_channel *channel, const char *name, const char *role,
		     const struct xmem_service_options *options)
{
	struct xmem_pool_options o = { .size = sizeof(o) };
	char label[16], *c;
	u32 ring;

	if (options->pool && options->pool->size <= sizeof(o))
		memcpy(&o, options->pool, options->pool->size);
	else if (options->pool)
		return xl_fail_fast(E2BIG, "xmem_service_options: the options of the pool are "
					   "those of a later version");
	snprintf(label, sizeof(label), "%s%s", role,
		 o.label ? o.label : program_invocation_short_name);
	for (c = label; *c; c++)
		if (*c <= ' ' || *c > '~')
			*c = '_';
	o.size = sizeof(o);
	o.label = label;
	o.flags |= XMEM_OPEN_WRITER;
	o.clients = o.clients ? o.clients : CLIENTS;
	o.slots = o.slots ? o.slots : GROUPS * XMEM_GROUP_SLOTS;
	for (ring = 4; ring < o.clients * ENTRIES && ring < XMEM_MAX_RING; ring *= 2)
		;
	o.ring_entries = o.ring_entries ? o.ring_entries : ring;
	channel->pool = xmem_pool_open(name, &o);
	if (!channel->pool)
		return xl_last_error();
	return read_me(channel);
}

int xl_channel_open(struct xl_channel *channel, const char *name, const char *role,
		    const struct xmem_service_options *options)
{
	pthread_condattr_t clock;
	int err;

	if (!name || !*name)
		return xl_fail_fast(EINVAL, "a service needs a name");
	if (options->timeout_ns < 0)
		return xl_fail_fast(EINVAL, "a negative timeout");
	pthread_mutex_init(&channel->mutex, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&channel->changed, &clock);
	pthread_condattr_destroy(&clock);
	err = open_pool(channel, name, role, options);
	if (err)
		xl_channel_free(channel);
	return err;
}

void xl_channel_stop(struct xl_channel *channel)
{
	XL_UNCANCELLED;

	if (!xl_is_open(channel->pool))
		return;
	pthread_mutex_lock(&channel->mutex);
	channel->closing = true;
	xmem_cancel(channel->pool);
	pthread_cond_broadcast(&channel->changed);
	while (channel->users)
		pthread_cond_wait(&channel->changed, &channel->mutex);
	pthread_mutex_unlock(&channel->mutex);
}

void xl_channel_free(struct xl_channel *channel)
{
	u32 c;

	for (c = 0; channel->peers && c < channel->clients; c++) {
		while (channel->peers[c].first)
			drop_first(&channel->peers[c]);
		xmem_unsubscribe(channel->peers[c].subscription);
	}
	xmem_pool_close(channel->pool);
	free(channel->peers);
	/*
	 * The mutex and the condition are not destroyed: in a child, threads of its parent seem to
	 * wait in them, and pthread_cond_destroy would wait for these threads.
	 */
}
