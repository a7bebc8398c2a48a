/* SPDX-License-Identifier: MIT */
/*
 * Services: callers send requests to a server on a name, and it responds. A part of xmem.h.
 * Requests and responses are buffers of a pool with that name, of any size. None is copied. Only
 * the service publishes in this pool, and it uses the time stamps of the publications.
 *
 * No message is lost or delivered twice while both sides live, however slow a side is. A slow or
 * stopped caller delays neither the server nor other callers. When a caller ends, its requests and
 * the responses to it go. When a server ends, its calls fail at once with EOWNERDEAD, and the next
 * server takes over the name.
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
	const struct xmem_pool_options *pool;	/* of the pool; NULL: defaults. The first 7
						 * characters of the label are the service's */
	int64_t timeout_ns;		/* longest wait: for the turn to serve, or for a server */
};

/* ---- servers ---- */

/*
 * Serve on a name. Of several servers on a name, the oldest one serves, and this call waits until
 * it is this one; with XMEM_SERVE_SHARED all serve.
 * @name: the name of the pool, as in xmem_pool_open.
 * Returns: the server, or NULL: EAGAIN, ETIMEDOUT: another server serves; EINVAL; and as
 * xmem_pool_open. Ownership: the caller calls xmem_server_close. Since: 0.5.
 */
struct xmem_server *xmem_serve(const char *name, const struct xmem_service_options *options);

/* End a server. Calls that it has not answered fail with EOWNERDEAD. Since: 0.5. */
void xmem_server_close(struct xmem_server *server);

/*
 * Get the pool of a server, in which it acquires buffers for its responses, and whose descriptor
 * (xmem_pool_poll_fd) is readable when a request may have come.
 * Returns: the pool. Ownership: the server's. Since: 0.5.
 */
struct xmem_pool *xmem_server_pool(struct xmem_server *server);

/*
 * Receive the next request. Returns: the request, or NULL: EAGAIN, ETIMEDOUT: none has come; and
 * as xmem_receive. Ownership: ends in xmem_respond without XMEM_RESPOND_MORE, or in xmem_refuse.
 * Since: 0.5.
 */
struct xmem_request *xmem_server_receive(struct xmem_server *server, int64_t timeout_ns);

/*
 * Get the contents of a request. Returns: the buffer, which is held for reading. Ownership: the
 * request's; xmem_clone makes a handle that lasts longer. Since: 0.5.
 */
struct xmem_buffer *xmem_request_buffer(struct xmem_request *request);

/*
 * Ask whether a caller still waits for a request. Returns: 0; -ECANCELED: it has cancelled the
 * call; -EPIPE: it has ended. Then the server may stop its work, and calls xmem_refuse.
 * Since: 0.5.
 */
int xmem_request_stat(struct xmem_request *request);

#define XMEM_RESPOND_MORE	(1u << 0)	/* this request gets further responses */

/*
 * Respond to a request.
 * @response: a buffer that is being written in the server's pool, or one of it that is held for
 *	reading, and then it is forwarded.
 * @flags: 0 or XMEM_RESPOND_MORE.
 * Returns: 0, also if the caller has ended or cancelled: then the response goes; the handles
 * @response and, without XMEM_RESPOND_MORE, @request are gone. Or -EINVAL, and as xmem_publish;
 * then nothing has changed. Since: 0.5.
 */
int xmem_respond(struct xmem_request *request, struct xmem_buffer *response, uint32_t flags);

/*
 * Refuse a request: the call fails with an error of the server.
 * @error: an errno, from 1 to 4095.
 * Returns: 0, and @request is gone; or -EINVAL; -EAGAIN: no buffer is free to tell it. Since: 0.5.
 */
int xmem_refuse(struct xmem_request *request, int error);

/* ---- callers ---- */

/*
 * Become a caller of a service, and wait until a server serves it.
 * Returns: the caller, or NULL: EAGAIN, ETIMEDOUT: there is no server; EINVAL; and as
 * xmem_pool_open. Ownership: the caller calls xmem_caller_close. Since: 0.5.
 */
struct xmem_caller *xmem_caller_open(const char *name, const struct xmem_service_options *options);

/* End a caller. Its calls are cancelled, and waits for them end with ECANCELED. Since: 0.5. */
void xmem_caller_close(struct xmem_caller *caller);

/*
 * Get the pool of a caller, in which it acquires buffers for its requests, and whose descriptor
 * (xmem_pool_poll_fd) is readable when a response may have come, or a server has ended.
 * Returns: the pool. Ownership: the caller's. Since: 0.5.
 */
struct xmem_pool *xmem_caller_pool(struct xmem_caller *caller);

/*
 * Send a request to a server: to the oldest one, or to the one of the sharing servers that has the
 * fewest calls of this caller. It waits for no response, so several calls may be under way.
 * @request: a buffer that is being written in the caller's pool, or one of it that is held for
 *	reading, and then it is forwarded.
 * @timeout_ns: longest wait for a server.
 * @ret_call: the number of the call, from 1 on.
 * Returns: 0, and the handle @request is gone; or -EAGAIN, -ETIMEDOUT: there is no server;
 * -EINVAL, -ENOMEM, and as xmem_publish. Since: 0.5.
 */
int xmem_call(struct xmem_caller *caller, struct xmem_buffer *request, int64_t timeout_ns,
	      uint64_t *ret_call);

/* A response. */
struct xmem_response {
	size_t size;			/* in: sizeof(struct xmem_response); out: valid bytes */
	uint64_t call;			/* the number of its call */
	uint32_t more;			/* 1: the call is to get further responses */
	uint32_t refused;		/* 1: the error is from the server (xmem_refuse) */
};

/*
 * Receive a response. Responses of one call come in order.
 * @call: the number of a call; 0: any call's.
 * @ret_response: what the result is about; may be NULL.
 * Returns: the buffer, held for reading, or NULL:
 *	EAGAIN, ETIMEDOUT  there is none yet; the call goes on
 *	EOWNERDEAD  the server ended before it had answered; the call is over
 *	ENOENT	there is no such call, or none at all; it may be over
 *	ECANCELED, and errors of xmem_receive
 * If the server has refused the call, ret_response->refused is 1, the error is the server's, and
 * the call is over. Ownership: the caller calls xmem_release. Since: 0.5.
 */
struct xmem_buffer *xmem_receive_response(struct xmem_caller *caller, uint64_t call,
					  int64_t timeout_ns, struct xmem_response *ret_response);

/*
 * Cancel a call: no response comes any more, and the server is told. Returns: 0; -ENOENT: there is
 * no such call; -EINVAL. Threads: no other thread waits for this call. Since: 0.5.
 */
int xmem_cancel_call(struct xmem_caller *caller, uint64_t call);

#ifdef __cplusplus
}
#endif
#endif
