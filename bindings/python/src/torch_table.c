// SPDX-License-Identifier: MIT
/*
 * The table of holds, by the address of their contents.
 *
 * Two storages of one process can lie in one buffer, if it was received twice. Then the table has
 * two holds with the same address, and it does not matter which one is found.
 */
#include "torch.h"
#include "torch_pages.h"

#include <stdlib.h>

#define FIRST_BUCKETS	1024		/* a power of two, as are all numbers of buckets */

pthread_mutex_t xt_lock = PTHREAD_MUTEX_INITIALIZER;
static struct xt_hold **buckets;	/* xt_lock guards these three */
static size_t size, count;

static size_t hash(const void *address, size_t of)
{
	uint64_t bits = (uintptr_t)address >> 6;	/* buffers begin at multiples of 64 */

	return (bits * 0x9e3779b97f4a7c15u >> 20) & (of - 1);
}

/* Make a bucket for each hold. pre: xt_lock. false: no memory, and nothing has changed. */
static bool grow(void)
{
	size_t more = size ? 2 * size : FIRST_BUCKETS, i;
	struct xt_hold **new, *hold, *next;

	if (count < size)
		return true;
	new = calloc(more, sizeof(*new));
	if (!new)
		return size;
	for (i = 0; i < size; i++) {
		for (hold = buckets[i]; hold; hold = next) {
			next = hold->next;
			hold->next = new[hash(hold->address, more)];
			new[hash(hold->address, more)] = hold;
		}
	}
	free(buckets);
	buckets = new;
	size = more;
	return true;
}

bool xt_hold_insert(struct xt_hold *hold)
{
	struct xt_hold **bucket;
	bool room;

	pthread_mutex_lock(&xt_lock);
	room = grow();
	if (room) {
		bucket = &buckets[hash(hold->address, size)];
		hold->next = *bucket;
		*bucket = hold;
		count++;
	}
	pthread_mutex_unlock(&xt_lock);
	return room;
}

/* pre: xt_lock */
static void take_out(struct xt_hold *hold)
{
	struct xt_hold **at = &buckets[hash(hold->address, size)];

	while (*at != hold)
		at = &(*at)->next;
	*at = hold->next;
	count--;
}

struct xt_hold *xt_hold_find(const void *address)
{
	struct xt_hold *hold = NULL;

	pthread_mutex_lock(&xt_lock);
	if (size)
		hold = buckets[hash(address, size)];
	while (hold && (hold->address != address || hold->copied))
		hold = hold->next;
	if (hold)
		hold->shares++;
	pthread_mutex_unlock(&xt_lock);
	return hold;
}

void xt_hold_mark(struct xt_hold *hold)
{
	pthread_mutex_lock(&xt_lock);
	hold->allocated = true;
	pthread_mutex_unlock(&xt_lock);
}

struct xt_hold *xt_hold_unmark(const void *address)
{
	struct xt_hold *hold = NULL;

	pthread_mutex_lock(&xt_lock);
	if (size)
		hold = buckets[hash(address, size)];
	while (hold && (hold->address != address || !hold->allocated))
		hold = hold->next;
	if (hold)
		hold->allocated = false;
	pthread_mutex_unlock(&xt_lock);
	return hold;
}

/* Pages at the ends may also belong to other buffers; those stay until the process ends. */
static void unmap(struct xt_hold *hold)
{
	uintptr_t begin = xt_page_up((uintptr_t)hold->address);
	uintptr_t end = xt_page_down((uintptr_t)hold->address + hold->bytes);

	if (begin < end)
		munmap((void *)begin, end - begin);
}

/*
 * The pages that torch_fork.c has put there go, or become those of the other hold of this buffer.
 * pre: xt_lock
 */
static void leave_pages(struct xt_hold *hold)
{
	struct xt_hold *other = buckets[hash(hold->address, size)];

	while (other && other->address != hold->address)
		other = other->next;
	if (other)
		other->moved_in = true;
	else
		unmap(hold);
}

bool xt_hold_drop_share(struct xt_hold *hold)
{
	bool last;

	pthread_mutex_lock(&xt_lock);
	last = !--hold->shares;
	if (last) {
		take_out(hold);
		if (hold->moved_in)
			leave_pages(hold);
	}
	pthread_mutex_unlock(&xt_lock);
	return last;
}

void xt_holds_each(void (*call)(struct xt_hold *hold, void *user), void *user)
{
	struct xt_hold *hold;
	size_t i;

	for (i = 0; i < size; i++)
		for (hold = buckets[i]; hold; hold = hold->next)
			call(hold, user);
}

size_t xt_holds_count(void)
{
	size_t now;

	pthread_mutex_lock(&xt_lock);
	now = count;
	pthread_mutex_unlock(&xt_lock);
	return now;
}
