// SPDX-License-Identifier: MIT
/*
 * An end is one client of a pool. It publishes and receives as a program that
 * works on frames would; this file also writes and reads a frame's description.
 */
#include "bench.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

void die(const char *what)
{
	struct xmem_error last = XMEM_INIT(last);
	int err = xmem_peek_last_error(&last);

	fprintf(stderr, "bench: %s: %s (%s)\n", what, err ? last.message : "failed",
		strerror(err ? -err : errno));
	_Exit(2);
}

void end_open(struct end *end, struct bench *bench, unsigned int buffers, size_t bytes)
{
	struct xmem_pool_options options = {
		.size = sizeof(options), .flags = XMEM_OPEN_WRITER, .label = "bench",
		.clients = bench->clients,
	};

	*end = (struct end){ .bytes = bytes };
	end->pool = xmem_pool_open(bench->name, &options);
	if (!end->pool)
		die("xmem_pool_open");
	snprintf(bench->backend, sizeof(bench->backend), "%s", xmem_pool_backend(end->pool));
	if (buffers && xmem_preallocate(end->pool, bytes, buffers, NULL))
		die("xmem_preallocate");
}

static void end_acquire(struct end *end)
{
	end->next = xmem_acquire(end->pool, end->bytes, 0);
	if (!end->next)
		die("xmem_acquire");
}

void end_follow(struct end *end, int publisher)
{
	struct xmem_subscribe_options options = {
		.size = sizeof(options),
		.flags = XMEM_SUBSCRIBE_PUBLISHER,
		.publisher = publisher,
	};

	end->from = xmem_subscribe(end->pool, &options);
	if (!end->from)
		die("xmem_subscribe");
}

void end_close(struct end *end)
{
	xmem_release(end->next);
	xmem_unsubscribe(end->from);
	xmem_pool_close(end->pool);
}

void meet(struct bench *bench, int side)
{
	uint64_t mine = __atomic_add_fetch(&bench->arrived[side], 1, __ATOMIC_SEQ_CST);

	while (__atomic_load_n(&bench->arrived[!side], __ATOMIC_ACQUIRE) < mine)
		relax(1);
}

void meet_asleep(struct bench *bench, int side)
{
	uint32_t mine = __atomic_add_fetch(&bench->came[side], 1, __ATOMIC_SEQ_CST), other;

	syscall(SYS_futex, &bench->came[side], FUTEX_WAKE, 1, NULL, NULL, 0);
	while ((other = __atomic_load_n(&bench->came[!side], __ATOMIC_ACQUIRE)) < mine)
		syscall(SYS_futex, &bench->came[!side], FUTEX_WAIT, other, NULL, NULL, 0);
}

void end_pair(struct bench *bench, int side, struct end *end, unsigned int buffers, size_t bytes)
{
	end_open(end, bench, buffers, bytes);
	bench->note[side][0] = xmem_pool_client(end->pool);
	meet(bench, side);
	end_follow(end, bench->note[!side][0]);
	meet(bench, side);
	end_acquire(end);
}

/* ---- a description: 112 bytes with size, all of them written for every frame ---- */

static const char content_type[32] = "video/x-raw,format=gray8";

static void describe(struct xmem_metadata *metadata, uint64_t id)
{
	metadata->id = id;
	metadata->dtype = 1;
	metadata->ndim = 3;
	metadata->shape[0] = 1080;
	metadata->shape[1] = 1920;
	metadata->shape[2] = id;
	metadata->strides[0] = 1920;
	metadata->strides[1] = 1;
	metadata->strides[2] = id;
	memcpy(metadata->content_type, content_type, sizeof(content_type));
}

/* Read the whole description, and check it. */
static bool understood(const struct xmem_metadata *metadata, uint64_t id, uint64_t bytes)
{
	int64_t wrong = (metadata->id ^ id) | (metadata->dtype ^ 1) | (metadata->ndim ^ 3);

	wrong |= (metadata->shape[0] ^ 1080) | (metadata->shape[1] ^ 1920) |
		 (metadata->shape[2] ^ id);
	wrong |= (metadata->strides[0] ^ 1920) | (metadata->strides[1] ^ 1) |
		 (metadata->strides[2] ^ id);
	wrong |= metadata->size ^ bytes;	/* publish has set it */
	return !wrong && !memcmp(metadata->content_type, content_type, sizeof(content_type));
}

void end_send(struct end *end)
{
	struct xmem_metadata *metadata = xmem_metadata_mut(end->next);

	if (__builtin_expect(!metadata, 0))
		die("xmem_metadata_mut");
	describe(metadata, end->sent++);
	if (end->stamps)
		metadata->user[0] = ticks();
	if (__builtin_expect(xmem_publish(end->next, NULL, NULL), 0))
		die("xmem_publish");
	end_acquire(end);	/* while the other side works */
}

struct xmem_buffer *end_receive(struct end *end)
{
	struct xmem_buffer *buffer;
	unsigned int empty = 0;

	while (!(buffer = xmem_receive(end->from, 0)))
		if (++empty % 65536 == 0 && xmem_peek_last_error(NULL) != -EAGAIN)
			die("xmem_receive");
	if (__builtin_expect(!understood(xmem_metadata_ptr(buffer), end->received++,
					 end->bytes), 0))
		die("the description received is not the one sent");
	return buffer;
}
