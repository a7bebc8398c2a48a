// SPDX-License-Identifier: MIT
/*
 * Children by fork. The library leaves a child no page of its parent's pools, but the child has
 * inherited tensors that point there, and torch's users go on using them. So each buffer is got
 * anew, as the child's own client, and its pages are put where the parent had them.
 *
 * At once after the fork, before anything else can take the addresses, they are reserved without
 * memory (the C library calls after_fork_child). Later, when Python runs again in the child,
 * xt_fork_restore fills them. References that the parent has set aside just before the fork
 * (xt_fork_offer) keep the buffers there until then. What cannot be got stays reserved: a use of it
 * ends the child by SIGSEGV and cannot read or write somebody else's memory. Memory of GPUs is lost
 * in a child in any case: the driver does not serve it. Tensors of guards are torch_guard.c's.
 */
#include "torch.h"
#include "torch_pages.h"

#include <stdlib.h>

/* ---- addresses ---- */

struct range {
	uintptr_t begin, end;
};

struct ranges {
	size_t count, room;
	struct range *at;
};

static void note_range(struct xt_hold *hold, void *user)
{
	uintptr_t address = (uintptr_t)hold->address;
	struct ranges *ranges = user;

	hold->moved_in = false;
	if (!hold->gpu && ranges->count < ranges->room)
		ranges->at[ranges->count++] = (struct range){
			xt_page_down(address), xt_page_up(address + hold->bytes),
		};
}

static int compare(const void *a, const void *b)
{
	const struct range *left = a, *right = b;

	return (left->begin > right->begin) - (left->begin < right->begin);
}

/* Nobody has mapped anything yet in this process, so an address that is taken is one of ours. */
static void reserve(const struct range *range)
{
	size_t bytes = range->end - range->begin;
	void *there = mmap((void *)range->begin, bytes, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1,
			   0);

	if (there != MAP_FAILED && there != (void *)range->begin)
		munmap(there, bytes);		/* an old kernel takes the flag for a wish */
}

static struct ranges kept;		/* memory for the child, made before the fork */
static bool prepared;			/* xt_fork_offer was called for this fork; xt_lock */

static void reserve_all(void)
{
	struct range now;
	size_t i;

	kept.count = 0;
	xt_holds_each(note_range, &kept);
	qsort(kept.at, kept.count, sizeof(*kept.at), compare);
	for (i = 0; i < kept.count; i++) {
		now = kept.at[i];
		while (i + 1 < kept.count && kept.at[i + 1].begin <= now.end) {
			i++;
			if (kept.at[i].end > now.end)
				now.end = kept.at[i].end;
		}
		reserve(&now);
	}
}

/* ---- what the C library calls ---- */

static void count_one(struct xt_hold *hold, void *user)
{
	*(size_t *)user += !hold->gpu;
}

static void before_fork(void)
{
	size_t holds = 0;

	pthread_mutex_lock(&xt_lock);
	xt_holds_each(count_one, &holds);
	kept.at = malloc(holds * sizeof(*kept.at));
	kept.room = kept.at ? holds : 0;
	xt_guards_before_fork();
}

static void after_fork(void)
{
	free(kept.at);
	kept.at = NULL;
}

static void forget(struct xt_hold *hold, void *user)
{
	hold->prepared = false;
}

static void after_fork_parent(void)
{
	after_fork();
	xt_guards_after_fork(false);
	xt_holds_each(forget, NULL);
	prepared = false;
	pthread_mutex_unlock(&xt_lock);
}

static void lose(struct xt_hold *hold, void *user)
{
	hold->buffer = NULL;
	hold->own = false;
	hold->credits = 0;		/* the parent's */
	hold->credits_end_ns = 0;
}

static void after_fork_child(void)
{
	reserve_all();
	xt_guards_after_fork(true);
	after_fork();
	xt_holds_each(lose, NULL);
	pthread_mutex_init(&xt_lock, NULL);
	xt_pools_forked();
}

int xt_fork_register(void)
{
	static bool registered;		/* the GIL guards it */

	if (registered)
		return 0;
	registered = true;
	return -pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

/* ---- what Python calls ---- */

struct holds {
	size_t count, room;
	struct xt_hold **at;
};

static void share(struct xt_hold *hold, void *user)
{
	struct holds *holds = user;

	if (hold->gpu || holds->count == holds->room)
		return;
	hold->shares++;
	holds->at[holds->count++] = hold;
}

/* All holds, each with a share for the caller, who frees `at`. */
static struct holds all_holds(void)
{
	struct holds holds = { 0 };

	pthread_mutex_lock(&xt_lock);
	xt_holds_each(count_one, &holds.room);
	holds.at = malloc(holds.room * sizeof(*holds.at));
	if (holds.at)
		xt_holds_each(share, &holds);
	pthread_mutex_unlock(&xt_lock);
	return holds;
}

static void done(struct holds *holds)
{
	size_t i;

	for (i = 0; i < holds->count; i++)
		xt_hold_put(holds->at[i]);
	free(holds->at);
}

/* Is this the first one to prepare it? */
static bool prepare(struct xt_hold *hold)
{
	bool first;

	pthread_mutex_lock(&xt_lock);
	first = !hold->prepared;
	hold->prepared = prepared = true;
	pthread_mutex_unlock(&xt_lock);
	return first;
}

/* A child that comes later than the 10 seconds of these claims gets what the parent still holds. */
void xt_fork_offer(void)
{
	struct holds holds = all_holds();
	size_t i;

	for (i = 0; i < holds.count; i++)
		if (holds.at[i]->buffer && prepare(holds.at[i]))
			xmem_offer(holds.at[i]->buffer, 1);
	xmem_clear_last_error();
	done(&holds);
}

/* A second mapping of the same pages: mremap makes one of a shared mapping if it moves 0 bytes. */
static bool move_in(struct xt_hold *hold, const void *contents)
{
	uintptr_t begin = xt_page_down((uintptr_t)hold->address);
	uintptr_t end = xt_page_up((uintptr_t)hold->address + hold->bytes);
	uintptr_t from = xt_page_down((uintptr_t)contents);

	if ((uintptr_t)contents - from != (uintptr_t)hold->address - begin)
		return false;
	return mremap((void *)from, 0, end - begin, MREMAP_MAYMOVE | MREMAP_FIXED,
		      (void *)begin) == (void *)begin;
}

static bool restore(struct xt_hold *hold)
{
	struct xmem_pool *pool = xt_pool_handle(hold->pool);
	struct xmem_buffer *buffer = pool ? xmem_get(pool, hold->token) : NULL;
	const void *contents = buffer ? xmem_data(buffer) : NULL;

	if (!contents || !move_in(hold, contents)) {
		xmem_release(buffer);
		return false;
	}
	hold->buffer = buffer;
	hold->moved_in = true;
	return true;
}

size_t xt_fork_restore(void)
{
	struct holds holds = all_holds();
	size_t i, lost = holds.room - holds.count;

	for (i = 0; i < holds.count; i++) {
		if (!holds.at[i]->buffer && !restore(holds.at[i]))
			lost += !prepared || holds.at[i]->prepared;
		holds.at[i]->prepared = false;
	}
	prepared = false;
	done(&holds);
	return lost;
}

/* Pages at its ends may be other buffers' too; those stay until the process ends. */
void xt_fork_unmap(struct xt_hold *hold)
{
	uintptr_t begin = xt_page_up((uintptr_t)hold->address);
	uintptr_t end = xt_page_down((uintptr_t)hold->address + hold->bytes);

	if (hold->moved_in && begin < end)
		munmap((void *)begin, end - begin);
}
