/* SPDX-License-Identifier: MIT */
/*
 * service serve        answers each request with its text in capital letters
 * service TEXT...      sends each text to the server, and prints the response
 * If several servers run, the oldest one answers. When it is killed, the next one takes over.
 */
#define _POSIX_C_SOURCE 200809L
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xmem.h>

static const struct xmem_service_options wait_for_turn = {
	.size = sizeof(wait_for_turn), .timeout_ns = XMEM_FOREVER
};

static void fail(const char *what)
{
	struct xmem_error why = XMEM_INIT(why);

	xmem_get_last_error(&why);
	fprintf(stderr, "service: %s: %s\n", what, why.message);
	exit(1);
}

static void answer(struct xmem_server *server, struct xmem_request *request)
{
	struct xmem_buffer *text = xmem_request_buffer(request), *loud;
	const char *from = xmem_data(text);
	size_t bytes = xmem_size(text), i;
	char *to;

	if (!from) {
		xmem_refuse(request, EIO);
		return;
	}
	loud = xmem_acquire(xmem_server_pool(server), bytes, XMEM_FOREVER);
	to = xmem_data_mut(loud);
	if (!to)
		fail("acquire");
	for (i = 0; i < bytes; i++)
		to[i] = (char)toupper((unsigned char)from[i]);
	if (xmem_respond(request, loud, 0))
		fail("respond");
}

static void serve(void)
{
	struct xmem_server *server = xmem_serve("shout", &wait_for_turn);
	struct xmem_request *request;

	if (!server)
		fail("serve");
	puts("serving");
	fflush(stdout);
	while ((request = xmem_server_receive(server, XMEM_FOREVER)))
		answer(server, request);
	fail("receive");
}

/* Returns 0 if the server has ended before it answered. */
static int ask(struct xmem_caller *caller, const char *text)
{
	size_t bytes = strlen(text);
	struct xmem_buffer *buffer = xmem_acquire(xmem_caller_pool(caller), bytes, XMEM_FOREVER);
	uint64_t call;

	if (!xmem_data_mut(buffer))
		fail("acquire");
	memcpy(xmem_data_mut(buffer), text, bytes);
	if (xmem_call(caller, buffer, XMEM_FOREVER, &call))
		fail("call");
	buffer = xmem_receive_response(caller, call, XMEM_FOREVER, NULL);
	if (!buffer && xmem_peek_last_error(NULL) == -EOWNERDEAD)
		return 0;
	if (!buffer || !xmem_data(buffer))
		fail("response");
	printf("%.*s\n", (int)xmem_size(buffer), (const char *)xmem_data(buffer));
	xmem_release(buffer);
	return 1;
}

int main(int argc, char **argv)
{
	struct xmem_caller *caller;
	int i;

	if (argc == 2 && !strcmp(argv[1], "serve"))
		serve();
	caller = xmem_caller_open("shout", &wait_for_turn);
	if (!caller)
		fail("open");
	for (i = 1; i < argc; i++)
		while (!ask(caller, argv[i]))
			;
	xmem_caller_close(caller);
	return 0;
}
