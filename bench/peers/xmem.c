// SPDX-License-Identifier: MIT
/* xmem: each channel is a pool with one writer. */
#include <errno.h>
#include <stdio.h>

#include "peer.h"
#include "xmem.h"

const char *const peer_name = "xmem";
const char *const peer_version = "xmem";
const bool peer_shares = true;
const unsigned int peer_most_loans = 128;

static struct peer_shape shape;
static struct xmem_pool *keep, *own, *theirs;
static struct xmem_subscription *from;

/* The handle of a message: peer_send gets an address, by which the handle is found. */
static struct { const void *data; struct xmem_buffer *buffer; } out[128];

static void die(const char *what)
{
	struct xmem_error error = XMEM_INIT(error);

	xmem_peek_last_error(&error);
	fprintf(stderr, "xmem: %s\n", error.message);
	errno = 0;
	peer_die(what);
}

static const void *note(const void *data, struct xmem_buffer *buffer)
{
	unsigned int n = 0;

	if (!data)
		die("xmem_data");
	while (out[n].buffer)
		n++;
	out[n].data = data;
	out[n].buffer = buffer;
	return data;
}

static struct xmem_buffer *find(const void *data)
{
	struct xmem_buffer *buffer;
	unsigned int n = 0;

	while (out[n].data != data)
		n++;
	buffer = out[n].buffer;
	out[n].buffer = NULL;
	out[n].data = NULL;
	return buffer;
}

static struct xmem_pool *open_channel(unsigned int channel, unsigned int flags)
{
	struct xmem_pool_options options = { .size = sizeof(options), .flags = flags };
	struct xmem_pool *pool;
	char name[32];

	snprintf(name, sizeof(name), "%s.%u", shape.name, channel);
	pool = xmem_pool_open(name, &options);
	if (!pool)
		die("xmem_pool_open");
	return pool;
}

/* The parent is not pinned to a CPU, and neither is a daemon that it starts. */
void peer_setup(const struct peer_shape *wanted)
{
	shape = *wanted;
	keep = xmem_pool_open(NULL, NULL);
	if (!keep)
		die("xmem_pool_open");
}

void peer_cleanup(void)
{
	xmem_pool_close(keep);
}

void peer_publish(unsigned int channel)
{
	own = open_channel(channel, XMEM_OPEN_WRITER);
	if (xmem_preallocate(own, shape.bytes, shape.buffers, NULL))
		die("xmem_preallocate");
}

void peer_follow(unsigned int channel, unsigned int number)
{
	theirs = open_channel(channel, XMEM_OPEN_EXISTING);
	from = xmem_subscribe(theirs, NULL);
	if (!from)
		die("xmem_subscribe");
}

void peer_leave(void)
{
	xmem_unsubscribe(from);
	xmem_pool_close(own);
	xmem_pool_close(theirs);
}

void *peer_loan(void)
{
	struct xmem_buffer *buffer = xmem_acquire(own, shape.bytes, 0);

	if (!buffer && xmem_peek_last_error(NULL) != -EAGAIN)
		die("xmem_acquire");
	return buffer ? (void *)note(xmem_data_mut(buffer), buffer) : NULL;
}

void peer_send(void *data)
{
	if (xmem_publish(find(data), NULL, NULL))
		die("xmem_publish");
}

const void *peer_receive(bool sleep)
{
	struct xmem_buffer *buffer = xmem_receive(from, sleep ? XMEM_FOREVER : 0);

	if (!buffer && (sleep || xmem_peek_last_error(NULL) != -EAGAIN))
		die("xmem_receive");
	return buffer ? note(xmem_data(buffer), buffer) : NULL;
}

void peer_done(const void *data)
{
	xmem_release(find(data));
}
