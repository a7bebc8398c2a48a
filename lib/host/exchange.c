// SPDX-License-Identifier: MIT
/*
 * Requests to xmemd and their replies, on one connection.
 *
 * xmemd may be stopped, so a thread may give a request up. Requests have numbers. The reply to a
 * request that was given up is recognised by its number, and the effect of the request is undone.
 * For a subscription, claims, the beginning of an upgrade and the opening of a CUDA payload, a post
 * that undoes them follows the request at once: a publisher, for example, may wait for a new
 * subscriber. An attached payload is detached when the reply is read.
 *
 * A socket has room for about 250 datagrams that the other side has not read, and for fewer if they
 * are large. (The kernel charges each with its overhead to the sender's SO_SNDBUF, by default about
 * 200 kB.) These rules keep both directions below this limit:
 *
 *   - Posts never wait. A post that does not fit is kept in a list, and sent before the next
 *   request
 *     or post (`posts`).
 *   - One post to collect slots stands for all others that the daemon has not read (stands_for). So
 *     a program that drops many buffers does not fill the socket.
 *   - While MAX_UNANSWERED requests that were given up have no reply, no further request is sent.
 *     Otherwise their replies might not fit.
 */
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/files.h"
#include "lib/host/exchange.h"
#include "lib/host/turn.h"
#include "lib/host/wire.h"

#define NS		1000000000ULL
#define LAST_NS	(NS / 10)	/* how much longer to wait for the answer about claims */
#define MAX_UNANSWERED	64	/* more replies might not fit into the socket */

struct xl_post {
	u32 request;
	union {
		u32 size;
		struct xmem_slot_request slot;
		struct xmem_unsubscribe_request unsubscribe;
		struct xmem_wait_request wait;
		struct xmem_claim_request claim;
		struct xmem_payload_request payload;
		u8 upgrade[XMEM_UPGRADE_MIN];	/* without metadata */
	};
};

void xl_exchange_init(struct xl_exchange *exchange)
{
	pthread_mutex_init(&exchange->posts_lock, NULL);
}

void xl_exchange_destroy(struct xl_exchange *exchange)
{
	pthread_mutex_destroy(&exchange->posts_lock);
	free(exchange->posts);
}

/* ---- posts ---- */

/*
 * -EAGAIN: the socket has no room now. After any other error, xmemd has gone and the post is moot.
 */
static int send_post(int socket, const struct xl_post *post)
{
	struct xmem_message head = { .request = post->request, .result = XMEM_NO_REPLY };
	int err;

	do
		err = xm_wire_send(socket, &head, &post->size, post->size, -1, MSG_DONTWAIT);
	while (err == -EINTR);
	return err == -ENOMEM ? -EAGAIN : err;
}

/* Send the posts that were kept. -EAGAIN: the socket has no room yet. Under posts_lock. */
static int send_kept(struct xl_exchange *exchange, int socket)
{
	u32 sent = 0;
	int err = 0;

	while (sent < exchange->post_count && err != -EAGAIN) {
		err = send_post(socket, &exchange->posts[sent]);
		sent += err != -EAGAIN;
	}
	if (!sent)
		return err;
	xm_store(&exchange->post_count, exchange->post_count - sent);
	memmove(exchange->posts, exchange->posts + sent,
		exchange->post_count * sizeof(*exchange->posts));
	return err == -EAGAIN ? err : 0;
}

static bool keep(struct xl_exchange *exchange, const struct xl_post *post)
{
	if (exchange->post_count == exchange->post_room) {
		u32 room = exchange->post_room ? 2 * exchange->post_room : 64;
		void *more = realloc(exchange->posts, room * sizeof(*post));

		if (!more)
			return false;
		exchange->posts = more;
		exchange->post_room = room;
	}
	exchange->posts[exchange->post_count] = *post;
	xm_store(&exchange->post_count, exchange->post_count + 1);
	return true;
}

/*
 * Is a post to collect a slot on its way already? Then it stands for this one too, so a program
 * that drops many buffers does not fill the socket. The slot was put before this call. Under
 * posts_lock.
 */
static bool stands_for(struct xl_exchange *exchange, const struct xl_post *post)
{
	u64 *collects = exchange->collects;

	if (post->request != XMEM_IOC_SLOT || post->slot.op != XMEM_OP_COLLECT || !collects ||
	    xm_cas_full(collects, XMEM_COLLECTS_NONE, XMEM_COLLECTS_ONE))
		return false;
	return xm_xchg_full(collects, XMEM_COLLECTS_MORE) != XMEM_COLLECTS_NONE;
}

static void send_or_keep(struct xl_exchange *exchange, int socket, const struct xl_post *post)
{
	struct pollfd room = { .fd = socket, .events = POLLOUT };
	bool done;

	pthread_mutex_lock(&exchange->posts_lock);
	done = stands_for(exchange, post);
	while (!done) {
		done = (!send_kept(exchange, socket) && send_post(socket, post) != -EAGAIN) ||
		       keep(exchange, post);
		if (done)
			break;
		/* No memory to keep the post: wait, because no post may be lost. */
		pthread_mutex_unlock(&exchange->posts_lock);
		poll(&room, 1, -1);
		pthread_mutex_lock(&exchange->posts_lock);
	}
	pthread_mutex_unlock(&exchange->posts_lock);
}

/* ---- late replies ---- */

static void close_files(struct xm_datagram *reply)
{
	u32 i;

	for (i = 0; i < reply->files; i++)
		xl_file_close(reply->file[i]);
	reply->files = 0;
}

/* The reply belongs to a request that was given up: undo what the host has done. */
static void undo(struct xl_exchange *exchange, int socket, struct xm_datagram *reply)
{
	struct xmem_attach_request *attach = (void *)reply->body;
	struct xl_post post = { .request = XMEM_IOC_SLOT };
	u32 i;

	xm_store(&exchange->unanswered, exchange->unanswered - (exchange->unanswered > 0));
	close_files(reply);
	if (reply->head.request != XMEM_IOC_ATTACH || reply->head.result ||
	    reply->length < offsetof(struct xmem_attach_request, slot))
		return;
	for (i = 0; i < attach->count && i < XMEM_GROUP_SLOTS; i++) {
		post.slot = (struct xmem_slot_request){ .size = sizeof(post.slot),
							.op = XMEM_OP_DETACH,
							.slot = attach->slot[i] };
		send_or_keep(exchange, socket, &post);
	}
}

/* Take back the claims that a request adds if it is served. The deadline that it sets stays. */
static void undo_claims(struct xl_exchange *exchange, int socket,
			const struct xmem_claim_request *claim)
{
	struct xl_post post = { .request = XMEM_IOC_CLAIM };

	if (claim->op != XMEM_CLAIM_ADD)
		return;
	post.claim = (struct xmem_claim_request){
		.size = sizeof(post.claim), .op = XMEM_CLAIM_UNDO,
		.generation = exchange->number,
	};
	send_or_keep(exchange, socket, &post);
}

/* If the request is served, the slot has the next generation. */
static void cancel_upgrade(struct xl_exchange *exchange, int socket,
			   const struct xmem_upgrade_request *begin)
{
	struct xl_post post = { .request = XMEM_IOC_UPGRADE };
	struct xmem_upgrade_request cancel = {
		.size = XMEM_UPGRADE_MIN, .flags = XMEM_UPGRADE_CANCEL, .slot = begin->slot,
		.generation = begin->generation + 1,
	};

	memcpy(&post.size, &cancel, cancel.size);
	send_or_keep(exchange, socket, &post);
}

/*
 * The reply will not make this client an opener of the memory. If the client had the memory open
 * before, it still has: the host knows it by the number of the request.
 */
static void close_payload(struct xl_exchange *exchange, int socket, u64 payload)
{
	struct xl_post post = { .request = XMEM_IOC_PAYLOAD };

	post.payload = (struct xmem_payload_request){
		.size = sizeof(post.payload), .flags = XMEM_PAYLOAD_CLOSE, .payload = payload,
		.fd = -1, .bytes = exchange->number,
	};
	send_or_keep(exchange, socket, &post);
}

/* A request was sent, and this thread does not wait for its reply any more. */
static void give_up(struct xl_exchange *exchange, int socket, unsigned int request,
		    const union xm_request *argument)
{
	const struct xmem_subscribe_request *subscribe = &argument->subscribe;
	struct xl_post post = { .request = XMEM_IOC_UNSUBSCRIBE };

	xm_store(&exchange->unanswered, exchange->unanswered + 1);
	if (request == XMEM_IOC_CLAIM)
		undo_claims(exchange, socket, &argument->claim);
	if (request == XMEM_IOC_UPGRADE && !argument->upgrade.flags)
		cancel_upgrade(exchange, socket, &argument->upgrade);
	if (request == XMEM_IOC_PAYLOAD && argument->payload.flags & XMEM_PAYLOAD_OPEN)
		close_payload(exchange, socket, argument->payload.payload);
	if (request != XMEM_IOC_SUBSCRIBE)
		return;
	post.unsubscribe = (struct xmem_unsubscribe_request){
		.size = sizeof(post.unsubscribe), .publisher = subscribe->publisher,
		.incarnation = subscribe->incarnation,
	};
	send_or_keep(exchange, socket, &post);
}

/* ---- waiting ---- */

/*
 * Wait until the socket is readable or writable. Any signal handler ends this, even with
 * SA_RESTART.
 */
static int wait_for(int socket, short events, u64 deadline_ns)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	struct pollfd look = { .fd = socket, .events = events };
	struct timespec now, left;
	u64 now_ns;
	int n;

	if (deadline_ns == ~0ULL)
		return poll(&look, 1, -1) < 0 ? -errno : 0;
	clock_gettime(CLOCK_MONOTONIC, &now);
	now_ns = now.tv_sec * NS + now.tv_nsec;
	if (now_ns >= deadline_ns)
		return -ETIMEDOUT;
	left = (struct timespec){ (deadline_ns - now_ns) / NS, (deadline_ns - now_ns) % NS };
	n = ppoll(&look, 1, &left, NULL);
	if (n < 0 && errno == EINVAL)	/* RLIMIT_NOFILE is 0 now: try again soon */
		return nanosleep(&pause, NULL) ? -errno : 0;
	return n < 0 ? -errno : n ? 0 : -ETIMEDOUT;
}

/*
 * Receive the next datagram. Without a deadline the thread sleeps in recvmsg, which a signal whose
 * handler has SA_RESTART does not end.
 */
static int receive(struct xl_exchange *exchange, int socket, struct xm_datagram *ret,
		   u64 deadline_ns)
{
	int err = xl_file_receive(socket, ret, deadline_ns == ~0ULL ? 0 : MSG_DONTWAIT);

	while (err == -EAGAIN) {
		err = wait_for(socket, POLLIN, deadline_ns);
		if (err)
			return err;
		err = xl_file_receive(socket, ret, MSG_DONTWAIT);
	}
	if (!err)
		xm_store(&exchange->answers, exchange->answers + 1);
	return err;
}

/* Receive the reply to request @number. Replies to earlier requests are undone. */
static int receive_reply(struct xl_exchange *exchange, int socket, u64 number,
			 struct xm_datagram *ret, u64 deadline_ns)
{
	int err;

	for (;;) {
		err = receive(exchange, socket, ret, deadline_ns);
		/*
		 * A daemon that is full refuses the connection by a reply to a join without a
		 * number.
		 */
		if (err || ret->head.number == number || !ret->head.number)
			return err;
		undo(exchange, socket, ret);
	}
}

/*
 * A signal has ended the wait for the reply about claims. Claims that exist can be taken by other
 * clients at once, and that cannot be undone. So wait a little longer: a daemon that is not stopped
 * answers at once, and then the caller gets the result.
 */
static int receive_last(struct xl_exchange *exchange, int socket, struct xm_datagram *ret)
{
	struct timespec now;
	sigset_t all, before;
	int err;

	clock_gettime(CLOCK_MONOTONIC, &now);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = receive_reply(exchange, socket, exchange->number, ret,
			    now.tv_sec * NS + now.tv_nsec + LAST_NS);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err == -ETIMEDOUT ? -EINTR : err;
}

/* Read all replies that are there. If too many are outstanding, wait until one more would fit. */
static int make_room(struct xl_exchange *exchange, int socket, u64 deadline_ns)
{
	struct xm_datagram late;
	int err = 0;

	while (!err && exchange->unanswered) {
		err = receive(exchange, socket, &late,
			      exchange->unanswered < MAX_UNANSWERED ? 0 : deadline_ns);
		if (!err)
			undo(exchange, socket, &late);
	}
	return exchange->unanswered < MAX_UNANSWERED ? 0 : err;
}

/* ---- requests ---- */

/* The descriptor in a request's struct that travels with it, or -1. */
static int file_in(unsigned int request, const union xm_request *argument)
{
	if (request == XMEM_IOC_JOIN && argument->join.flags & XMEM_JOIN_FD)
		return argument->join.pool_fd;
	if (request == XMEM_IOC_ATTACH)
		return argument->attach.fd;
	if (request == XMEM_IOC_POOL_FD && argument->pool_fd.flags & XMEM_POOL_FD_NARROW)
		return argument->pool_fd.pool_fd;
	return -1;
}

static int send_request(struct xl_exchange *exchange, int socket, unsigned int request,
			const union xm_request *argument, u64 deadline_ns)
{
	struct xmem_message head = { .request = request, .number = ++exchange->number };
	const struct xm_request_kind *kind = xm_request_find(request);
	bool whole = kind && argument->size >= kind->least;
	u32 size = argument->size < sizeof(size) ? sizeof(size) : argument->size;
	int err;

	for (;;) {
		pthread_mutex_lock(&exchange->posts_lock);
		err = send_kept(exchange, socket);
		if (!err)
			err = xm_wire_send(socket, &head, argument, size,
					   whole ? file_in(request, argument) : -1, MSG_DONTWAIT);
		pthread_mutex_unlock(&exchange->posts_lock);
		if (err == -EAGAIN)
			err = wait_for(socket, POLLOUT, deadline_ns);
		else if (err != -EINTR)
			return err;
		if (err)
			return err;
	}
}

/* Store the reply's descriptor at @place, and close unexpected ones. */
static int take_reply_file(struct xm_datagram *reply, unsigned int request,
			   const union xm_request *argument, int *place)
{
	u32 files = reply->files;

	/* A CUDA payload may have no descriptor. But if one was lost on the way, it is an error. */
	if (request == XMEM_IOC_PAYLOAD && argument->size >= sizeof(argument->payload) &&
	    argument->payload.traits & XMEM_TRAIT_CUDA && !reply->head.result && !files &&
	    !reply->lost_file)
		return 0;

	if (place && !reply->head.result && files == 1) {
		*place = reply->file[0];
		return 0;
	}
	close_files(reply);
	return reply->head.result || (!place && !files) ? 0 : -EMFILE;
}

/* xmemd has no room for this connection. The reply has no number, because it answers no request. */
static int save_refused(struct xl_exchange *exchange, const struct xm_datagram *reply)
{
	if (reply->length >= sizeof(exchange->refused))
		memcpy(&exchange->refused, reply->body, sizeof(exchange->refused));
	return reply->head.result;
}

static int take_reply(struct xl_exchange *exchange, struct xm_datagram *reply,
		      unsigned int request, union xm_request *argument, u32 size, int *place)
{
	int err;

	if (!reply->head.number && reply->head.request == XMEM_IOC_JOIN && reply->head.result < 0) {
		close_files(reply);
		return save_refused(exchange, reply);
	}
	if (reply->head.request != request || reply->head.result > 0) {
		close_files(reply);
		return -ENOTCONN;	/* xmemd never answers so */
	}
	if (!reply->head.result)
		memcpy(argument, reply->body, reply->length < size ? reply->length : size);
	err = take_reply_file(reply, request, argument, place);
	return reply->head.result ? reply->head.result : err;
}

int xl_exchange(struct xl_exchange *exchange, int socket, unsigned int request,
		union xm_request *argument, int *place, u64 deadline_ns)
{
	struct xm_datagram reply;
	u32 size = argument->size;
	int err;

	if (size > XM_REQUEST_BYTES)
		return xm_request_find(request) ? -E2BIG : -ENOTTY;
	err = xl_turn_take(&exchange->turn, deadline_ns);
	if (err)
		return err;
	err = make_room(exchange, socket, deadline_ns);
	if (!err)
		err = send_request(exchange, socket, request, argument, deadline_ns);
	if (!err) {
		err = receive_reply(exchange, socket, exchange->number, &reply, deadline_ns);
		if (err == -EINTR && request == XMEM_IOC_CLAIM)
			err = receive_last(exchange, socket, &reply);
		if (err && err != -ENOTCONN)
			give_up(exchange, socket, request, argument);
	} else if (err == -ENOTCONN) {
		/* A daemon that has closed the connection may have sent a reply before. */
		err = receive_reply(exchange, socket, exchange->number, &reply, 0) ? -ENOTCONN : 0;
	}
	if (!err)
		err = take_reply(exchange, &reply, request, argument, size, place);
	/* The host has made this client an opener, but there was no free descriptor number. */
	if (err == -EMFILE && request == XMEM_IOC_PAYLOAD &&
	    argument->payload.flags & XMEM_PAYLOAD_OPEN)
		close_payload(exchange, socket, argument->payload.payload);
	xl_turn_end(&exchange->turn);
	return err;
}

void xl_exchange_post(struct xl_exchange *exchange, int socket, unsigned int request,
		      const union xm_request *argument)
{
	struct xl_post post = { .request = request };

	memcpy(&post.size, argument, argument->size);
	send_or_keep(exchange, socket, &post);
}

void xl_exchange_flush(struct xl_exchange *exchange, int socket)
{
	pthread_mutex_lock(&exchange->posts_lock);
	send_kept(exchange, socket);
	pthread_mutex_unlock(&exchange->posts_lock);
}

int xl_exchange_send_kept(struct xl_exchange *exchange, int socket, u64 patience_ns)
{
	u64 deadline_ns = 0;
	struct timespec now;
	u32 left, before = 0;
	int err;

	do {
		pthread_mutex_lock(&exchange->posts_lock);
		err = send_kept(exchange, socket);
		left = exchange->post_count;
		pthread_mutex_unlock(&exchange->posts_lock);
		if (err != -EAGAIN)
			return 0;
		if (left != before) {	/* it has read some, or this is the first round */
			clock_gettime(CLOCK_MONOTONIC, &now);
			deadline_ns = now.tv_sec * NS + now.tv_nsec + patience_ns;
			before = left;
		}
		err = wait_for(socket, POLLOUT, deadline_ns);
	} while (!err || err == -EINTR);
	return err;
}

u64 xl_exchange_catch_up(struct xl_exchange *exchange, int socket)
{
	/* If another thread has the turn, that thread reads the replies. */
	if (xm_load(&exchange->unanswered) && xl_turn_try(&exchange->turn)) {
		make_room(exchange, socket, 0);
		xl_turn_end(&exchange->turn);
	}
	return xm_load(&exchange->answers);
}
