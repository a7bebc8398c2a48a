// SPDX-License-Identifier: MIT
/*
 * POSIX shared memory made by hand: slots with atomic counts, a queue of slot numbers for each
 * subscriber, and a futex to sleep on. The end of a subscriber is not noticed.
 */
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "peer.h"

#define MOST		256	/* slots, and entries of a queue */
#define SUBSCRIBERS	32

const char *const peer_name = "posix-shm";
const char *const peer_version = "shm_open, futex, counts by hand";
const bool peer_shares = true;
const unsigned int peer_most_loans = 128;

struct queue {
	_Alignas(64) uint32_t tail;	/* publications; also the futex */
	uint32_t asleep;
	uint32_t slot[MOST];
};

struct channel {
	struct {
		_Alignas(64) uint32_t count;
	} slot[MOST];
	struct queue queue[SUBSCRIBERS];
};

static struct peer_shape shape;
static char *base[2];
static size_t length;
static struct channel *own, *theirs;
static unsigned int me, next;
static uint32_t head;

static size_t stride(void)
{
	return (shape.bytes + 63) & ~(size_t)63;
}

static char *data_of(struct channel *channel, unsigned int slot)
{
	return (char *)channel + sizeof(*channel) + slot * stride();
}

static unsigned int slot_of(struct channel *channel, const void *data)
{
	return ((const char *)data - (char *)channel - sizeof(*channel)) / stride();
}

static void name_of(unsigned int channel, char *name, size_t bytes)
{
	snprintf(name, bytes, "/%s.%u", shape.name, channel);
}

void peer_setup(const struct peer_shape *wanted)
{
	unsigned int n;
	char name[40];

	shape = *wanted;
	length = sizeof(struct channel) + shape.buffers * stride();
	for (n = 0; n < shape.channels; n++) {
		int fd;

		name_of(n, name, sizeof(name));
		fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
		if (fd < 0 || posix_fallocate(fd, 0, length))
			peer_die("shm_open");
		base[n] = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (base[n] == MAP_FAILED)
			peer_die("mmap");
		close(fd);
	}
}

void peer_cleanup(void)
{
	unsigned int n;
	char name[40];

	for (n = 0; n < shape.channels; n++) {
		name_of(n, name, sizeof(name));
		shm_unlink(name);
	}
}

void peer_publish(unsigned int channel)
{
	own = (void *)base[channel];
}

void peer_follow(unsigned int channel, unsigned int number)
{
	theirs = (void *)base[channel];
	me = number;
	head = theirs->queue[me].tail;
}

void peer_leave(void)
{
}

void *peer_loan(void)
{
	unsigned int n;

	for (n = 0; n < shape.buffers; n++) {
		unsigned int slot = next++ % shape.buffers;
		uint32_t none = 0;

		if (__atomic_compare_exchange_n(&own->slot[slot].count, &none, 1, false,
						__ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			return data_of(own, slot);
	}
	return NULL;
}

void peer_send(void *data)
{
	unsigned int slot = slot_of(own, data), n;

	__atomic_store_n(&own->slot[slot].count, shape.subscribers, __ATOMIC_RELEASE);
	for (n = 0; n < shape.subscribers; n++) {
		struct queue *queue = &own->queue[n];

		queue->slot[queue->tail % MOST] = slot;
		__atomic_fetch_add(&queue->tail, 1, __ATOMIC_SEQ_CST);
		if (__atomic_load_n(&queue->asleep, __ATOMIC_SEQ_CST)) {
			__atomic_store_n(&queue->asleep, 0, __ATOMIC_SEQ_CST);
			syscall(SYS_futex, &queue->tail, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
		}
	}
}

const void *peer_receive(bool sleep)
{
	struct queue *queue = &theirs->queue[me];

	while (__atomic_load_n(&queue->tail, __ATOMIC_ACQUIRE) == head) {
		if (!sleep)
			return NULL;
		__atomic_store_n(&queue->asleep, 1, __ATOMIC_SEQ_CST);
		syscall(SYS_futex, &queue->tail, FUTEX_WAIT, head, NULL, NULL, 0);
	}
	return data_of(theirs, queue->slot[head++ % MOST]);
}

void peer_done(const void *data)
{
	__atomic_fetch_sub(&theirs->slot[slot_of(theirs, data)].count, 1, __ATOMIC_ACQ_REL);
}
