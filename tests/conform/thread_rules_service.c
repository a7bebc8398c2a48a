// SPDX-License-Identifier: MIT
/* The rows of functions of services. All threads share a server and a caller. */
#include "thread_rules.h"

static struct {
	struct xmem_server *server;
	struct xmem_caller *caller;
	const char *name;
} service;

void service_set(void)
{
	service.name = new_name();
	service.server = xmem_serve(service.name, NULL);
	CHECK(service.server);
	service.caller = xmem_caller_open(service.name, NULL);
	CHECK(service.caller);
	REFUSED(xmem_server_receive(service.server, 0), EAGAIN);
}

void service_strike(void)
{
	xmem_caller_close(service.caller);
	xmem_server_close(service.server);
}

/* A call; 0: it was refused. */
static uint64_t call(void)
{
	struct xmem_buffer *b = HANDLE(xmem_acquire(xmem_caller_pool(service.caller), BYTES,
						    SHORT), -ENOSPC);
	uint64_t number = 0;

	if (b && NUMBER(xmem_call(service.caller, b, SHORT, &number)) < 0)
		xmem_release(b);
	return number;
}

static struct xmem_request *receive(void)
{
	return HANDLE(xmem_server_receive(service.server, SHORT), 0);
}

/*
 * A request may be that of another row, which has cancelled its call. A refusal needs a buffer, and
 * all may be in use. Then the request ends with its server.
 */
static void refuse(struct xmem_request *request)
{
	if (request)
		NUMBER_OR(AGAIN(xmem_refuse(request, EDOM)), -ENOSPC);
}

ROW(serve)
{
	xmem_server_close(HANDLE(xmem_serve(service.name, NULL), 0));
}

ROW(server_close)
{
	xmem_server_close(HANDLE(xmem_serve(service.name, XMEM_OPTIONS(xmem_service_options,
				 .flags = XMEM_SERVE_SHARED)), 0));
}

ROW(caller_open)
{
	xmem_caller_close(HANDLE(xmem_caller_open(service.name, NULL), 0));
}

ROW(caller_close)
{
	call_caller_open();
}

ROW(server_pool)
{
	CHECK(xmem_server_pool(service.server));
}

ROW(caller_pool)
{
	CHECK(xmem_caller_pool(service.caller));
}

ROW(call)
{
	call();
}

ROW(cancel_call)
{
	uint64_t number = call();

	if (number)
		NUMBER_OR(xmem_cancel_call(service.caller, number), -ENOENT);
}

ROW(receive_response)
{
	struct xmem_response response = { .size = sizeof(response) };
	uint64_t number = call();
	struct xmem_buffer *b = xmem_receive_response(service.caller, number, SHORT, &response);

	if (!b && !response.refused)
		was_refused("receive_response", xmem_peek_last_error(NULL), -ENOENT);
	xmem_release(b);
}

ROW(server_receive)
{
	refuse(receive());
}

ROW(refuse)
{
	call();
	refuse(receive());
}

ROW(request_buffer)
{
	struct xmem_request *request = receive();

	if (request)
		CHECK(xmem_size(xmem_request_buffer(request)) == BYTES);
	refuse(request);
}

ROW(request_stat)
{
	struct xmem_request *request = receive();

	if (request)
		NUMBER_OR(xmem_request_stat(request), -ECANCELED);
	refuse(request);
}

ROW(respond)
{
	struct xmem_request *request;
	struct xmem_buffer *b;

	call();
	request = receive();
	b = HANDLE(xmem_acquire(xmem_server_pool(service.server), BYTES, SHORT), -ENOSPC);
	if (request && b)
		CHECK(!AGAIN(xmem_respond(request, b, 0)));
	else if (request)
		refuse(request);
	else
		xmem_release(b);
}
