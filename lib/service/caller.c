// SPDX-License-Identifier: MIT
/*
 * Callers. A caller subscribes to each server that serves. When the server has ended and the caller
 * has received its last response, the subscription is over. By this the caller learns that the
 * server has ended, and its other calls to this server fail.
 */
#include <errno.h>
#include <stdlib.h>

#include "lib/base/structs.h"
#include "lib/host/request.h"
#include "lib/service/channel.h"

#define LOOK_AGAIN	16	/* calls after which a caller looks for further servers */

struct response {
	struct response *next;
	struct xmem_buffer *buffer;
	enum xl_kind kind;
};

struct call {
	struct call *next;
	struct response *first, **end;	/* responses that have come and that no thread has taken */
	u32 number;
	u32 server;			/* client id */
	int error;			/* why no further response comes; 0: one may come */
};

struct xmem_caller {
	struct xl_channel channel;
	struct call *calls;		/* the oldest first */
	u32 number;			/* of the next call */
};

static struct xmem_caller *caller_of(struct xl_channel *channel)
{
	return (struct xmem_caller *)channel;
}

/* ---- calls ---- */

static struct call **find(struct xmem_caller *caller, u32 number)
{
	struct call **link = &caller->calls;

	while (*link && (*link)->number != number)
		link = &(*link)->next;
	return link;
}

static struct call *add_call(struct xmem_caller *caller, u32 server)
{
	struct call *call = calloc(1, sizeof(*call));
	struct call **link = &caller->calls;

	if (!call)
		return NULL;
	do
		call->number = ++caller->number;
	while (!call->number || *find(caller, call->number));
	call->server = server;
	call->end = &call->first;
	while (*link)
		link = &(*link)->next;
	*link = call;
	caller->channel.peers[server].calls++;
	return call;
}

static void drop_response(struct call *call)
{
	struct response *response = call->first;

	call->first = response->next;
	if (!call->first)
		call->end = &call->first;
	free(response);
}

static void end_call(struct xmem_caller *caller, struct call **link)
{
	struct call *call = *link;

	*link = call->next;
	for (; call->first; drop_response(call))
		xmem_release(call->first->buffer);
	if (call->error != EOWNERDEAD)
		caller->channel.peers[call->server].calls--;
	free(call);
}

/* ---- messages that come, and the end of a server ---- */

static void take(struct xl_channel *channel, u32 client, struct xl_head head,
		 struct xmem_buffer *buffer)
{
	struct call *call = *find(caller_of(channel), head.call);
	struct response *response = NULL;

	if (call && call->server == client && !call->error && head.kind != XL_KIND_REQUEST &&
	    head.kind <= XL_KIND_REFUSAL) {
		response = calloc(1, sizeof(*response));
		call->error = response ? 0 : ENOMEM;
	}
	if (!response) {
		xmem_release(buffer);
		return;
	}
	response->buffer = buffer;
	response->kind = head.kind;
	*call->end = response;
	call->end = &response->next;
}

static void over(struct xl_channel *channel, struct xmem_subscription *subscription)
{
	struct call *call;
	u32 c;

	for (c = 0; c < channel->clients && channel->peers[c].subscription != subscription; c++)
		;
	if (c == channel->clients)
		return;
	xmem_unsubscribe(subscription);
	channel->peers[c].subscription = NULL;
	channel->peers[c].incarnation = 0;
	channel->peers[c].calls = 0;
	for (call = caller_of(channel)->calls; call; call = call->next)
		if (call->server == c)
			call->error = EOWNERDEAD;
}

/* ---- servers ---- */

static void follow(struct xl_channel *channel, u32 client, u64 incarnation)
{
	struct xl_peer *peer = &channel->peers[client];
	struct xmem_subscribe_options options = {
		.size = sizeof(options),
		.flags = XMEM_SUBSCRIBE_PUBLISHER | XMEM_SUBSCRIBE_NOWAIT,
		.publisher = client,
	};
	XL_QUIET;

	if (peer->subscription)
		return;
	peer->subscription = xmem_subscribe(channel->pool, &options);
	/* Another client may have got the id meanwhile. */
	if (peer->subscription && !xl_channel_alive(channel, client, incarnation)) {
		xmem_unsubscribe(peer->subscription);
		peer->subscription = NULL;
	}
	if (!peer->subscription)
		return;
	xl_channel_trim(channel);
	peer->incarnation = incarnation;
	peer->received = peer->numbered = 0;
}

/* Does that server receive what this caller sends? */
static bool is_followed_by(const struct xl_channel *channel, u32 client)
{
	struct xmem_subscriber_info info = XMEM_INIT(info);
	XL_QUIET;

	return !xmem_subscriber_next(channel->pool, client, &info) && info.client == client;
}

/*
 * Choose the server that has the fewest calls of this caller, of the servers that follow it.
 * XMEM_NOBODY: there is none.
 */
static u32 choose(const struct xl_channel *channel)
{
	u32 c, best = XMEM_NOBODY;

	for (c = 0; c < channel->clients; c++) {
		if (!channel->peers[c].subscription ||
		    (best != XMEM_NOBODY && channel->peers[c].calls >= channel->peers[best].calls))
			continue;
		if (xl_channel_alive(channel, c, channel->peers[c].incarnation) &&
		    is_followed_by(channel, c))
			best = c;
	}
	return best;
}

/*
 * Sleep until a client subscribes, unsubscribes or ends, or return at once if one has done so since
 * @armed was armed: after each of these, the host wakes all owners that wait for slots. A server
 * that comes subscribes to all callers. Under the mutex, which is dropped meanwhile. 0, or -errno,
 * noted. @why: the reason to wait.
 */
static int wait_for_change(struct xl_channel *channel, struct xl_armed armed, u64 deadline,
			   const char *why)
{
	struct xmem_pool *pool = channel->pool;
	int err;

	if (channel->closing)
		return xl_fail_fast(ECANCELED, "the handle is being closed");
	if (!deadline)
		return xl_fail_fast(EAGAIN, why);
	pthread_mutex_unlock(&channel->mutex);
	err = xl_waiters_wait(pool, XMEM_WAIT_SLOTS, pool->me, armed, deadline);
	pthread_mutex_lock(&channel->mutex);
	return err ? xl_fail(-err, "%s: %s", why, xl_request_error(err)) : 0;
}

/*
 * Follow the servers that serve, and choose one to which a request can be sent. @ret NULL: it is
 * enough that one serves. Wait for that until the deadline. 0, or -errno, noted.
 */
static int find_server(struct xl_channel *channel, u64 deadline, u32 *ret)
{
	struct xmem_pool *pool = channel->pool;
	struct xl_armed armed;
	u32 found;
	int err;

	do {
		/* A server that has ended may have the id of the next one. */
		xl_channel_drain(channel);
		err = xl_waiters_arm(pool, XMEM_WAIT_SLOTS, pool->me, &armed);
		if (err)
			return xl_fail(-err, "%s", xl_request_error(err));
		found = xl_channel_servers(channel, follow);
		if (found && (!ret || (*ret = choose(channel)) != XMEM_NOBODY))
			return 0;
		err = wait_for_change(channel, armed, deadline, found ?
				      "the server does not receive from this caller yet" :
				      "there is no server");
	} while (!err);
	return err;
}

/* ---- public functions ---- */

XMEM_API int xmem_call(struct xmem_caller *caller, struct xmem_buffer *request, int64_t timeout_ns,
		       uint64_t *ret_call)
{
	XL_CALL;
	struct xl_channel *channel;
	struct call *call = NULL;
	u64 deadline;
	u32 server;
	int err;

	if (!caller || !request || !ret_call || timeout_ns < 0)
		return xl_fail_fast(EINVAL, !caller ? "no caller" : !request ? "no request" :
				    !ret_call ? "no place for the number" : "a negative timeout");
	channel = &caller->channel;
	deadline = timeout_ns ? xl_deadline(timeout_ns) : 0;
	err = xl_channel_check(channel, request);
	if (!err)
		err = xl_channel_enter(channel);
	if (err)
		return err;
	do {
		server = caller->number % LOOK_AGAIN ? choose(channel) : XMEM_NOBODY;
		err = server == XMEM_NOBODY ? find_server(channel, deadline, &server) : 0;
		if (err)
			break;
		call = add_call(caller, server);
		if (!call) {
			err = xl_fail_fast(ENOMEM, "no memory for a call");
			break;
		}
		err = xl_channel_send(channel, server, (struct xl_head){
			.kind = XL_KIND_REQUEST, .call = call->number }, request);
		if (err)
			end_call(caller, find(caller, call->number));
		else
			*ret_call = call->number;
	} while (err == -ENOENT);
	xl_channel_leave(channel);
	return err;
}

/* Find a call of which there is something to tell: a response, or the end of its server. */
static struct call **find_ready(struct xmem_caller *caller, u32 number)
{
	struct call **link = &caller->calls;

	while (*link && ((number && (*link)->number != number) ||
			 (!(*link)->first && !(*link)->error)))
		link = &(*link)->next;
	return *link ? link : NULL;
}

/* Take the first response of a call. NULL: the call is over, and the error is noted. */
static struct xmem_buffer *tell(struct xmem_caller *caller, struct call **link,
				struct xmem_response *ret)
{
	struct call *call = *link;
	struct xmem_buffer *buffer = NULL;
	enum xl_kind kind;
	u32 error = 0;

	ret->call = call->number;
	if (!call->first) {
		xl_fail_fast(call->error, call->error == ENOMEM ?
			     "a response has come, and there was no memory for it" :
			     "the server has ended before it answered the call");
		end_call(caller, link);
		return NULL;
	}
	kind = call->first->kind;
	buffer = call->first->buffer;
	drop_response(call);
	ret->more = kind == XL_KIND_MORE;
	if (!ret->more)
		end_call(caller, link);
	if (kind != XL_KIND_REFUSAL)
		return buffer;
	if (xmem_size(buffer) >= sizeof(error) && xmem_data(buffer))
		error = *(const u32 *)xmem_data(buffer);
	xmem_release(buffer);
	ret->refused = 1;
	error = error && error <= 4095 ? error : EPROTO;
	xl_fail(error, "the server has refused the call");
	return NULL;
}

XMEM_API struct xmem_buffer *xmem_receive_response(struct xmem_caller *caller, uint64_t call,
						   int64_t timeout_ns,
						   struct xmem_response *ret_response)
{
	XL_CALL;
	struct xmem_response response = { .size = sizeof(response), .call = call };
	struct xmem_buffer *buffer = NULL;
	struct call **ready = NULL;
	u64 deadline;

	if (!caller || timeout_ns < 0 || call > UINT32_MAX) {
		xl_fail_fast(EINVAL, !caller ? "no caller" : timeout_ns < 0 ? "a negative timeout" :
			     "no call can have that number");
		return NULL;
	}
	if (ret_response && xl_answer_check("xmem_response", ret_response))
		return NULL;
	deadline = timeout_ns ? xl_deadline(timeout_ns) : 0;
	if (xl_channel_enter(&caller->channel))
		return NULL;
	for (;;) {
		if (call ? !*find(caller, call) : !caller->calls) {
			xl_fail_fast(ENOENT, call ? "there is no call with that number; it may "
						    "be over" : "there is no call under way");
			break;
		}
		ready = find_ready(caller, call);
		if (ready || xl_channel_wait(&caller->channel, deadline))
			break;
	}
	if (ready)
		buffer = tell(caller, ready, &response);
	xl_channel_leave(&caller->channel);
	if (ret_response)
		xl_answer_give(ret_response, &response, sizeof(response));
	return buffer;
}

/* Tell the server. If no buffer is free for this message, the server's answers are dropped. */
static void tell_cancel(struct xmem_caller *caller, const struct call *call)
{
	struct xl_head head = { .kind = XL_KIND_CANCEL, .call = call->number };
	XL_QUIET;

	if (!call->error)
		xl_channel_send_word(&caller->channel, call->server, head, 0);
}

XMEM_API int xmem_cancel_call(struct xmem_caller *caller, uint64_t call)
{
	XL_CALL;
	struct call **link;
	int err;

	if (!caller)
		return xl_fail_fast(EINVAL, "no caller");
	err = xl_channel_enter(&caller->channel);
	if (err)
		return err;
	link = find(caller, call <= UINT32_MAX ? call : 0);
	if (!*link) {
		err = xl_fail_fast(ENOENT, "there is no call with that number; it may be over");
	} else {
		tell_cancel(caller, *link);
		end_call(caller, link);
		pthread_cond_broadcast(&caller->channel.changed);
	}
	xl_channel_leave(&caller->channel);
	return err;
}

XMEM_API struct xmem_caller *xmem_caller_open(const char *name,
					      const struct xmem_service_options *options)
{
	XL_CALL;
	struct xmem_service_options o = { 0 };
	struct xmem_caller *caller;
	int err;

	if (xl_options_take("xmem_service_options", options, &o, sizeof(o)))
		return NULL;
	if (o.flags || o.reserved) {
		xl_fail(EINVAL, "xmem_service_options: flags has 0x%x and reserved %u, which have "
				"no meaning for a caller", o.flags, o.reserved);
		return NULL;
	}
	caller = calloc(1, sizeof(*caller));
	if (!caller) {
		xl_fail_fast(ENOMEM, "no memory for a caller");
		return NULL;
	}
	caller->channel.take = take;
	caller->channel.over = over;
	if (xl_channel_open(&caller->channel, name, XL_CALLS, &o)) {
		free(caller);
		return NULL;
	}
	err = xl_channel_enter(&caller->channel);
	if (!err) {
		err = find_server(&caller->channel,
				  o.timeout_ns ? xl_deadline(o.timeout_ns) : 0, NULL);
		xl_channel_leave(&caller->channel);
	}
	if (err) {
		xmem_caller_close(caller);
		return NULL;
	}
	return caller;
}

XMEM_API void xmem_caller_close(struct xmem_caller *caller)
{
	struct xl_error before;

	if (!caller)
		return;
	xl_error_save(&before);
	xl_channel_stop(&caller->channel);
	while (caller->calls)
		end_call(caller, &caller->calls);
	xl_channel_free(&caller->channel);
	free(caller);
	xl_error_restore(&before);
}

XMEM_API struct xmem_pool *xmem_caller_pool(struct xmem_caller *caller)
{
	XL_CALL;
	if (!caller)
		xl_fail_fast(EINVAL, "no caller");
	return caller ? caller->channel.pool : NULL;
}
