// SPDX-License-Identifier: MIT
/*
 * A pipe or a Unix stream socket (STREAM_SOCKET) for each subscriber: the kernel copies each
 * message into it and out of it. The publisher writes each message once for each subscriber.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "peer.h"

#define SUBSCRIBERS	32
#define ROOM		(1 << 20)	/* in the kernel: the largest size that any user may set */

#ifdef STREAM_SOCKET
const char *const peer_name = "unix-socket";
const char *const peer_version = "socketpair, SOCK_STREAM";
#else
const char *const peer_name = "pipe";
const char *const peer_version = "pipe of 1 MiB";
#endif
const bool peer_shares = false;
const unsigned int peer_most_loans = 1;

static struct peer_shape shape;
static int way[2][SUBSCRIBERS][2];
static int *in;
static unsigned int out;
static bool blocks;
static char *to_send, *received;

static void make_way(int pair[2])
{
#ifdef STREAM_SOCKET
	int bytes = ROOM;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		peer_die("socketpair");
	setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
#else
	if (pipe(pair))
		peer_die("pipe");
	if (shape.bytes > 65536 && fcntl(pair[1], F_SETPIPE_SZ, ROOM) < 0)
		peer_die("F_SETPIPE_SZ");
#endif
}

void peer_setup(const struct peer_shape *wanted)
{
	unsigned int c, n;

	shape = *wanted;
	for (c = 0; c < shape.channels; c++)
		for (n = 0; n < shape.subscribers; n++)
			make_way(way[c][n]);
}

void peer_cleanup(void)
{
}

static char *memory(void)
{
	char *bytes = aligned_alloc(4096, (shape.bytes + 4095) & ~4095UL);

	if (!bytes)
		peer_die("memory");
	return bytes;
}

void peer_publish(unsigned int channel)
{
	out = channel;
	to_send = memory();
}

void peer_follow(unsigned int channel, unsigned int number)
{
	in = &way[channel][number][0];
	received = memory();
	blocks = true;
}

void peer_leave(void)
{
}

void *peer_loan(void)
{
	return to_send;
}

void peer_send(void *data)
{
	unsigned int n;

	for (n = 0; n < shape.subscribers; n++) {
		size_t done = 0;

		while (done < shape.bytes) {
			ssize_t part = write(way[out][n][1], (char *)data + done,
					     shape.bytes - done);

			if (part < 0)
				peer_die("write");
			done += part;
		}
	}
}

static void set_blocks(bool wanted)
{
	int flags = fcntl(*in, F_GETFL);

	if (blocks == wanted)
		return;
	if (flags < 0 || fcntl(*in, F_SETFL, wanted ? flags & ~O_NONBLOCK : flags | O_NONBLOCK))
		peer_die("O_NONBLOCK");
	blocks = wanted;
}

/* A polling reader also polls for the rest of a message. */
const void *peer_receive(bool sleep)
{
	size_t done = 0;

	set_blocks(sleep);
	while (done < shape.bytes) {
		ssize_t part = read(*in, received + done, shape.bytes - done);

		if (part > 0) {
			done += part;
			continue;
		}
		if (!part || errno != EAGAIN)
			peer_die("read");
		if (!done)
			return NULL;
	}
	return received;
}

void peer_done(const void *data)
{
}
