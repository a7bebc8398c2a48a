/* SPDX-License-Identifier: MIT */
/*
 * token_pipe TEXT...: passes buffers through a pipe. Each text is in a buffer, and only the
 * buffer's token goes through the pipe. The process at the other end gets the buffer by its token,
 * prints the text, and answers through a second pipe. Until then the sender keeps its handle.
 */
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xmem.h>

static void fail(const char *who)
{
	struct xmem_error why = XMEM_INIT(why);

	fprintf(stderr, "token_pipe: %s: %s\n", who,
		xmem_get_last_error(&why) ? why.message : "the process at the other end has ended");
	exit(1);
}

static int receive(struct xmem_pool *pool, int tokens, int answers)
{
	uint64_t token;

	while (read(tokens, &token, sizeof(token)) == sizeof(token)) {
		struct xmem_buffer *text = xmem_get(pool, token);

		if (!text || !xmem_data(text))
			fail("receiver");
		printf("%.*s\n", (int)xmem_size(text), (const char *)xmem_data(text));
		if (fflush(stdout) || write(answers, "", 1) != 1)
			fail("receiver");
		xmem_release(text);
	}
	return 0;
}

static void pass_on(struct xmem_pool *pool, const char *text, int tokens, int answers)
{
	struct xmem_publish_options keep = { .size = sizeof(keep), .flags = XMEM_PUBLISH_KEEP };
	struct xmem_buffer *buffer = xmem_acquire(pool, strlen(text) + 1, XMEM_FOREVER);
	uint64_t token;
	char answer;

	if (!buffer || !xmem_data_mut(buffer))
		fail("sender");
	keep.length = strlen(text) + 1;
	memcpy(xmem_data_mut(buffer), text, keep.length);
	if (xmem_publish(buffer, &keep, &token) ||
	    write(tokens, &token, sizeof(token)) != sizeof(token) || read(answers, &answer, 1) != 1)
		fail("sender");
	xmem_release(buffer);
}

int main(int argc, char **argv)
{
	struct xmem_pool_options writer = { .size = sizeof(writer), .flags = XMEM_OPEN_WRITER };
	struct xmem_pool *pool = xmem_pool_open(NULL, &writer);		/* an anonymous pool */
	int pool_fd = pool ? xmem_pool_fd(pool) : -1, tokens[2], answers[2], status = 1;
	pid_t child = -1;

	if (pool_fd < 0 || xmem_preallocate(pool, 4096, 1, NULL))
		fail("sender");
	signal(SIGPIPE, SIG_IGN);
	if (pipe(tokens) || pipe(answers) || (child = fork()) < 0)
		return perror("token_pipe"), 1;
	if (!child) {	/* the parent's handle does not work here: the child reopens the pool */
		close(tokens[1]);
		pool = xmem_pool_open(NULL, XMEM_OPTIONS(xmem_pool_options,
							   .flags = XMEM_OPEN_FD, .fd = pool_fd));
		return pool ? receive(pool, tokens[0], answers[1]) : (fail("receiver"), 1);
	}
	close(answers[1]);
	for (int i = 1; i < argc; i++)
		pass_on(pool, argv[i], tokens[1], answers[0]);
	close(tokens[1]);
	return wait(&status) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
