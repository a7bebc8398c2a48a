/* SPDX-License-Identifier: MIT */
/*
 * Services: a caller sends a request to the server with some name, and the server responds. A part
 * of xmem.h. Requests and responses are buffers, of any size, of a pool with the service's name.
 * They are not copied. A program must publish nothing else in this pool. The service uses the time
 * stamps of the publications for itself.
 *
 * No message is lost or delivered twice while both sides live, however slow a side is. A slow or
 * stopped caller delays neither the server nor other callers. When a caller ends, its requests and
 * the responses to it are dropped. When a server ends, the calls that it has not answered fail at
 * once with EOWNERDEAD, and the next server takes over the name.
 *
 * A ring has room for a number of messages that are still to be received: an eighth of its entries.
 * The sender keeps further ones, and sends them in its next calls of these functions, when there is
 * room. They are dropped if it ends before that. A ring has at least 8 entries for each client of
 * the pool. A caller that sends without a pause can take all slots of the pool.
 *
 * Threads: any thread may call these functions at any time, but no call may use a server, a caller
 * or a request during or after the call that drops it: such uses are not detected, unlike those of
 * other handles. The requests of a server end with it.
 */
#ifndef XMEM_SERVICE_H
#define XMEM_SERVICE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct xmem_buffer;
struct xmem_pool;
struct xmem_pool_options;
struct xmem_server;
struct xmem_request;
struct xmem_caller;

#define XMEM_SERVE_SHARED	(1u << 0)	/* servers with this flag share the calls */

/* How xmem_serve and xmem_caller_open open a service. */
struct xmem_service_options {
	size_t size;			/* sizeof(struct xmem_service_options) */
	uint32_t flags;			/* server: XMEM_SERVE_*; caller: 0 */
	uint32_t reserved;		/* must be 0 */
	const struct xmem_pool_options *pool;	/* of the pool; NULL: defaults. The service puts 7
						 * characters in front of the label */
	int64_t timeout_ns;		/* server: longest wait until it may serve; caller: longest
					 * wait for a server */
};

/* ---- servers ---- */

/*
 * Become a server of a name. If a name has several servers, only the oldest one serves, and this
 * function waits until the new server is the oldest one. With XMEM_SERVE_SHARED it does not wait,
 * and all servers with this flag serve. Do not mix servers with and without the flag on one name.
 * @name: the name of the pool, as in xmem_pool_open.
 * Returns: the server, or NULL: EAGAIN, ETIMEDOUT: another server serves; EINVAL; and as
 * xmem_pool_open. Ownership: the program calls xmem_server_close. Since: 0.5.
 */
struct xmem_server *xmem_serve(const char *name, const struct xmem_service_options *options);

/* End a server. Calls that it has not answered fail with EOWNERDEAD. Since: 0.5. */
void xmem_server_close(struct xmem_server *server);

/*
 * Get the pool of a server. The server acquires the buffers of its responses in this pool. The
 * pool's descriptor (xmem_pool_poll_fd) becomes readable when a request may have come.
 * Returns: the pool. Ownership: the server's. Since: 0.5.
 */
struct xmem_pool *xmem_server_pool(struct xmem_server *server);

/*
 * Receive the next request. Returns: the request, or NULL: EAGAIN, ETIMEDOUT: none has come; and
 * as xmem_receive. Ownership: the program ends the request with xmem_respond (without
 * XMEM_RESPOND_MORE) or xmem_refuse. Since: 0.5.
 */
struct xmem_request *xmem_server_receive(struct xmem_server *server, int64_t timeout_ns);

/*
 * Get the contents of a request. Returns: the buffer, which is held for reading. Ownership: the
 * request's; xmem_clone makes a handle that lasts longer. Since: 0.5.
 */
struct xmem_buffer *xmem_request_buffer(struct xmem_request *request);

/*
 * Ask whether the caller still waits for the response. Returns: 0: it waits; -ECANCELED: it has
 * cancelled the call; -EPIPE: it has ended. After an error the server may stop its work on the
 * request, and then calls xmem_refuse, which ends the request. Since: 0.5.
 */
int xmem_request_stat(struct xmem_request *request);

#define XMEM_RESPOND_MORE	(1u << 0)	/* further responses to this request follow */

/*
 * Respond to a request.
 * @response: a buffer of the server's pool that is being written; or one that is held for reading,
 *	and it is then forwarded without a copy.
 * @flags: 0 or XMEM_RESPOND_MORE.
 * Returns: 0: the handle @response is gone, and without XMEM_RESPOND_MORE the handle @request is
 * gone too. If the caller has ended or has cancelled the call, the response is dropped, and the
 * result is 0 too. -EINVAL, or as xmem_publish: nothing has changed. Since: 0.5.
 */
int xmem_respond(struct xmem_request *request, struct xmem_buffer *response, uint32_t flags);

/*
 * Refuse a request: the call fails with an error of the server.
 * @error: an errno, from 1 to 4095.
 * Returns: 0, and the handle @request is gone; or -EINVAL; -EAGAIN: the refusal needs a buffer, and
 * none is free. Since: 0.5.
 */
int xmem_refuse(struct xmem_request *request, int error);

/* ---- callers ---- */

/*
 * Become a caller of a service, and wait until a server serves it.
 * Returns: the caller, or NULL: EAGAIN, ETIMEDOUT: there is no server; EINVAL; and as
 * xmem_pool_open. Ownership: the program calls xmem_caller_close. Since: 0.5.
 */
struct xmem_caller *xmem_caller_open(const char *name, const struct xmem_service_options *options);

/*
 * End a caller. Its calls are over, and functions of other threads that wait for their responses
 * fail with ECANCELED. Since: 0.5.
 */
void xmem_caller_close(struct xmem_caller *caller);

/*
 * Get the pool of a caller. The caller acquires the buffers of its requests in this pool. The
 * pool's descriptor (xmem_pool_poll_fd) becomes readable when a response may have come, or a server
 * may have ended. Returns: the pool. Ownership: the xmem_caller's. Since: 0.5.
 */
struct xmem_pool *xmem_caller_pool(struct xmem_caller *caller);

/*
 * Send a request to the oldest server. If the servers share the calls, the request goes to the
 * server that has to answer the fewest calls of this caller. This function does not wait for the
 * response, so a caller may have several calls under way.
 * @request: a buffer of the caller's pool that is being written; or one that is held for reading,
 *	and it is then forwarded without a copy.
 * @timeout_ns: longest wait for a server.
 * @ret_call: the number of the call, from 1 on.
 * Returns: 0, and the handle @request is gone; or -EAGAIN, -ETIMEDOUT: there is no server, or it
 * does not receive from this caller yet; -EINVAL, -ENOMEM, and as xmem_publish. Since: 0.5.
 */
int xmem_call(struct xmem_caller *caller, struct xmem_buffer *request, int64_t timeout_ns,
	      uint64_t *ret_call);

/* A response. */
struct xmem_response {
	size_t size;			/* in: sizeof(struct xmem_response); out: valid bytes */
	uint64_t call;			/* the number of its call */
	uint32_t more;			/* 1: further responses to this call follow */
	uint32_t refused;		/* 1: the error is from the server (xmem_refuse) */
};

/*
 * Receive a response. Responses to one call come in order.
 * @call: the number of the call; 0: a response to any call.
 * @ret_response: the call of this response or error, and more about it; may be NULL.
 * Returns: the buffer, held for reading, or NULL:
 *	EAGAIN, ETIMEDOUT  there is none yet; the call goes on
 *	EOWNERDEAD  the server ended before it had answered; the call is over
 *	ENOENT	no call with this number is under way (0: no call at all); it may be over
 *	ECANCELED, and errors of xmem_receive
 * If the server has refused the call, ret_response->refused is 1, the error is the one that the
 * server gave to xmem_refuse, and the call is over. Ownership: the program calls xmem_release.
 * Since: 0.5.
 */
struct xmem_buffer *xmem_receive_response(struct xmem_caller *caller, uint64_t call,
					  int64_t timeout_ns, struct xmem_response *ret_response);

/*
 * Cancel a call. The caller receives no further response to it, and xmem_request_stat tells the
 * server. Returns: 0; -ENOENT: no call with this number is under way; -EINVAL. Threads: no other
 * thread may wait for this call. Since: 0.5.
 */
int xmem_cancel_call(struct xmem_caller *caller, uint64_t call);

#ifdef __cplusplus
}
#endif
#endif
