// SPDX-License-Identifier: MIT
/*
 * Servers. A server subscribes to all callers. The oldest server with the role XL_SERVES is the one
 * with the lowest incarnation, because incarnations of a pool only grow. So all clients agree on
 * the oldest server. It alone serves, and the others wait for its end.
 */
#include <errno.h>
#include <stdlib.h>

#include "lib/base/structs.h"
#include "lib/host/request.h"
#include "lib/service/channel.h"

struct xmem_server {
	struct xl_channel channel;
	struct xmem_subscription *callers;
	struct xmem_request *requests;	/* all, the newest first */
	struct xmem_request *ready;	/* requests that are yet to be received, the oldest first */
	struct xmem_request **ready_end;
	/* for xl_channel_servers */
	u32 oldest;
	u64 oldest_incarnation;
};

struct xmem_request {
	struct xmem_server *server;
	struct xmem_request *next, **link;
	struct xmem_request *next_ready;
	struct xmem_buffer *buffer;
	u64 incarnation;		/* of the caller */
	u32 client;			/* the caller's id */
	u32 call;			/* its number for the call */
	bool cancelled;
};

static struct xmem_server *server_of(struct xl_channel *channel)
{
	return (struct xmem_server *)channel;
}

static void free_request(struct xmem_request *request)
{
	*request->link = request->next;
	if (request->next)
		request->next->link = request->link;
	xmem_release(request->buffer);
	free(request);
}

/* ---- receiving ---- */

static void take_request(struct xmem_server *server, u32 client, u32 call,
			 struct xmem_buffer *buffer)
{
	struct xmem_request *request = calloc(1, sizeof(*request));
	struct xl_head refusal = { .kind = XL_KIND_REFUSAL, .call = call };

	if (!request) {
		xmem_release(buffer);
		xl_channel_send_word(&server->channel, client, refusal, ENOMEM);
		return;
	}
	*request = (struct xmem_request){
		.server = server,
		.next = server->requests,
		.link = &server->requests,
		.buffer = buffer,
		.incarnation = server->channel.peers[client].incarnation,
		.client = client,
		.call = call,
	};
	if (request->next)
		request->next->link = &request->next;
	server->requests = request;
	*server->ready_end = request;
	server->ready_end = &request->next_ready;
}

static void take(struct xl_channel *channel, u32 client, struct xl_head head,
		 struct xmem_buffer *buffer)
{
	struct xmem_server *server = server_of(channel);
	struct xmem_request *one;

	if (head.kind == XL_KIND_REQUEST) {
		take_request(server, client, head.call, buffer);
		return;
	}
	xmem_release(buffer);
	if (head.kind != XL_KIND_CANCEL)
		return;
	for (one = server->requests; one; one = one->next)
		if (one->client == client && one->call == head.call &&
		    one->incarnation == channel->peers[client].incarnation)
			one->cancelled = true;
}

/* The subscription to callers never ends. */
static void over(struct xl_channel *channel, struct xmem_subscription *subscription)
{
	(void)channel;
	(void)subscription;
}

static int stat_request(const struct xmem_request *request)
{
	if (request->cancelled)
		return -ECANCELED;
	return xl_channel_alive(&request->server->channel, request->client, request->incarnation) ?
	       0 : -EPIPE;
}

/* The next request whose caller still waits for it. */
static struct xmem_request *next_ready(struct xmem_server *server)
{
	struct xmem_request *one;

	while ((one = server->ready)) {
		server->ready = one->next_ready;
		if (!server->ready)
			server->ready_end = &server->ready;
		if (!stat_request(one))
			return one;
		free_request(one);
	}
	return NULL;
}

XMEM_API struct xmem_request *xmem_server_receive(struct xmem_server *server, int64_t timeout_ns)
{
	XL_CALL;
	struct xmem_request *one;
	u64 deadline;

	if (!server || timeout_ns < 0) {
		xl_fail_fast(EINVAL, server ? "a negative timeout" : "no server");
		return NULL;
	}
	deadline = timeout_ns ? xl_deadline(timeout_ns) : 0;
	if (xl_channel_enter(&server->channel))
		return NULL;
	while (!(one = next_ready(server)))
		if (xl_channel_wait(&server->channel, deadline))
			break;
	xl_channel_leave(&server->channel);
	return one;
}

XMEM_API struct xmem_buffer *xmem_request_buffer(struct xmem_request *request)
{
	XL_CALL;
	if (!request)
		xl_fail_fast(EINVAL, "no request");
	return request ? request->buffer : NULL;
}

XMEM_API int xmem_request_stat(struct xmem_request *request)
{
	XL_CALL;
	struct xl_channel *channel;
	int err;

	if (!request)
		return xl_fail_fast(EINVAL, "no request");
	channel = &request->server->channel;
	err = xl_channel_enter(channel);
	if (err)
		return err;
	xl_channel_drain(channel);
	err = stat_request(request);
	xl_channel_leave(channel);
	if (err)
		return xl_fail_fast(-err, err == -EPIPE ? "the caller has ended" :
							  "the caller has cancelled the call");
	return 0;
}

/* ---- responding ---- */

/*
 * Send the answer to a request, or drop it if the caller has ended or has cancelled the call. 0, or
 * -errno, noted.
 */
static int answer(struct xmem_request *request, enum xl_kind kind, struct xmem_buffer *buffer,
		  u32 word)
{
	struct xl_channel *channel = &request->server->channel;
	struct xl_head head = { .kind = kind, .call = request->call };
	int err = buffer ? xl_channel_check(channel, buffer) : 0;

	if (!err)
		err = xl_channel_enter(channel);
	if (err)
		return err;
	err = stat_request(request);
	if (!err)
		err = buffer ? xl_channel_send(channel, request->client, head, buffer) :
			       xl_channel_send_word(channel, request->client, head, word);
	/* Its subscription ends a moment before the caller itself. */
	if (err == -ENOENT || (err && stat_request(request))) {
		xmem_release(buffer);
		err = 0;
	}
	if (!err && kind != XL_KIND_MORE)
		free_request(request);
	xl_channel_leave(channel);
	return err;
}

XMEM_API int xmem_respond(struct xmem_request *request, struct xmem_buffer *response,
			  uint32_t flags)
{
	XL_CALL;

	if (!request || !response)
		return xl_fail_fast(EINVAL, request ? "no response" : "no request");
	if (flags & ~XMEM_RESPOND_MORE)
		return xl_fail(EINVAL, "unknown flags 0x%x", flags);
	return answer(request, flags & XMEM_RESPOND_MORE ? XL_KIND_MORE : XL_KIND_RESPONSE,
		      response, 0);
}

XMEM_API int xmem_refuse(struct xmem_request *request, int error)
{
	XL_CALL;

	if (!request)
		return xl_fail_fast(EINVAL, "no request");
	if (error < 1 || error > 4095)
		return xl_fail(EINVAL, "%d is no errno", error);
	return answer(request, XL_KIND_REFUSAL, NULL, error);
}

/* ---- beginning and end ---- */

static void note_oldest(struct xl_channel *channel, u32 client, u64 incarnation)
{
	server_of(channel)->oldest = client;
	server_of(channel)->oldest_incarnation = incarnation;
}

/* Wait until a server ends, or until the deadline. 0, or -errno, noted. */
static int wait_for_end(struct xl_channel *channel, u32 client, u64 deadline)
{
	struct xmem_subscribe_options options = {
		.size = sizeof(options),
		.flags = XMEM_SUBSCRIBE_PUBLISHER | XMEM_SUBSCRIBE_NOWAIT,
		.publisher = client,
	};
	struct xmem_subscription *its = xmem_subscribe(channel->pool, &options);
	struct xmem_buffer *buffer;
	int err;

	if (!its)
		return xl_last_error();
	do {
		buffer = xmem_receive(its, xl_left(deadline));
		err = buffer ? 0 : xl_last_error();
		xmem_release(buffer);
	} while (!err);
	xmem_unsubscribe(its);
	return err;
}

static bool has_ended(int err)
{
	return err == -EPIPE || err == -ENOENT || err == -ESTALE;
}

static int wait_for_turn(struct xmem_server *server, u64 deadline)
{
	struct xl_channel *channel = &server->channel;
	u32 me = xmem_pool_client(channel->pool);
	int err = 0;

	for (;;) {
		xl_channel_servers(channel, note_oldest);
		if (server->oldest == me)
			return 0;
		err = wait_for_end(channel, server->oldest, deadline);
		if (has_ended(err))
			continue;
		return err == -EAGAIN || err == -ETIMEDOUT ?
		       xl_fail(-err, "client %u of the pool serves on this name",
			       server->oldest) : err;
	}
}

static int start(struct xmem_server *server, const struct xmem_service_options *options)
{
	struct xmem_subscribe_options callers = {
		.size = sizeof(callers),
		.flags = XMEM_SUBSCRIBE_LASTS | XMEM_SUBSCRIBE_NOWAIT,
		.label = XL_CALLS "*",
	};

	server->callers = xmem_subscribe(server->channel.pool, &callers);
	if (!server->callers)
		return xl_last_error();
	if (options->flags & XMEM_SERVE_SHARED)
		return 0;
	return wait_for_turn(server, options->timeout_ns ? xl_deadline(options->timeout_ns) : 0);
}

XMEM_API struct xmem_server *xmem_serve(const char *name,
					const struct xmem_service_options *options)
{
	XL_CALL;
	struct xmem_service_options o = { 0 };
	struct xmem_server *server;

	if (xl_options_take("xmem_service_options", options, &o, sizeof(o)))
		return NULL;
	if (o.flags & ~XMEM_SERVE_SHARED || o.reserved) {
		xl_fail(EINVAL, "xmem_service_options: flags has 0x%x and reserved %u, which have "
				"no meaning", o.flags & ~XMEM_SERVE_SHARED, o.reserved);
		return NULL;
	}
	server = calloc(1, sizeof(*server));
	if (!server) {
		xl_fail_fast(ENOMEM, "no memory for a server");
		return NULL;
	}
	server->channel.take = take;
	server->channel.over = over;
	server->ready_end = &server->ready;
	if (xl_channel_open(&server->channel, name,
			    o.flags & XMEM_SERVE_SHARED ? XL_SHARES : XL_SERVES, &o)) {
		free(server);
		return NULL;
	}
	if (start(server, &o)) {
		xmem_server_close(server);
		return NULL;
	}
	return server;
}

XMEM_API void xmem_server_close(struct xmem_server *server)
{
	struct xl_error before;

	if (!server)
		return;
	xl_error_save(&before);
	xl_channel_stop(&server->channel);
	while (server->requests)
		free_request(server->requests);
	xmem_unsubscribe(server->callers);
	xl_channel_free(&server->channel);
	free(server);
	xl_error_restore(&before);
}

XMEM_API struct xmem_pool *xmem_server_pool(struct xmem_server *server)
{
	XL_CALL;
	if (!server)
		xl_fail_fast(EINVAL, "no server");
	return server ? server->channel.pool : NULL;
}
