// SPDX-License-Identifier: MIT
/*
 * Children by fork. The library leaves a child no page of its parent's pools, but the child has
 * inherited tensors that point there, and programs with torch continue to use them. So the child
 * gets each buffer again, as a client of its own, and its pages are put where the parent had them.
 *
 * The child inherits the parent's pages of these buffers, but without access: from the fork (the C
 * library calls after_fork_child) until Python runs again and xt_fork_restore replaces them.
 * References that the parent has set aside just before the fork (xt_fork_offer) keep the buffers
 * until then. If the child cannot join the pool, because it is full or has no host any more, the
 * child copies the inherited pages into memory of its own.
 *
 * If C code has forked the child, Python does not run these steps, and the addresses stay reserved
 * without memory. So do the addresses of buffers that cannot be got for other reasons: a use of
 * them ends the child by SIGSEGV, and cannot read or write other memory. Memory of GPUs is always
 * lost in a child, because the driver does not serve it. torch_guard.c has the tensors of guards.
 */
#include "torch.h"
#include "torch_pages.h"

#include <stdlib.h>
#include <string.h>

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

	if (!hold->gpu && !hold->copied && ranges->count < ranges->room)
		ranges->at[ranges->count++] = (struct range){
			xt_page_down(address), xt_page_up(address + hold->bytes),
		};
}

static int compare(const void *a, const void *b)
{
	const struct range *left = a, *right = b;

	return (left->begin > right->begin) - (left->begin < right->begin);
}

/* Ranges in order; no two of them touch. */
static void merge(struct ranges *ranges)
{
	size_t i, to = 0;

	if (!ranges->count)
		return;
	qsort(ranges->at, ranges->count, sizeof(*ranges->at), compare);
	for (i = 1; i < ranges->count; i++) {
		if (ranges->at[i].begin > ranges->at[to].end)
			ranges->at[++to] = ranges->at[i];
		else if (ranges->at[i].end > ranges->at[to].end)
			ranges->at[to].end = ranges->at[i].end;
	}
	ranges->count = to + 1;
}

static int advise(const struct ranges *ranges, int advice)
{
	int err = 0;
	size_t i;

	for (i = 0; i < ranges->count; i++)
		err |= madvise((void *)ranges->at[i].begin,
			       ranges->at[i].end - ranges->at[i].begin, advice);
	return err;
}

/* This process has not mapped anything yet, so an address that is taken is one of ours. */
static void reserve(const struct range *range)
{
	size_t bytes = range->end - range->begin;
	void *there = mmap((void *)range->begin, bytes, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1,
			   0);

	if (there != MAP_FAILED && there != (void *)range->begin)
		munmap(there, bytes);		/* an old kernel ignores the flag */
}

static struct ranges kept;		/* the pages of all holds, during a fork */
static bool prepared;			/* xt_fork_offer was called for this fork; xt_lock guards
					 * it */
static bool inherited;			/* the child has these pages */

/*
 * If nothing has been prepared, Python code does not run in the child, which would keep the files.
 */
static void let_inherit(void)
{
	inherited = prepared && !advise(&kept, MADV_DOFORK);
	if (prepared && !inherited)
		advise(&kept, MADV_DONTFORK);
}

static void reserve_all(void)
{
	size_t i;

	for (i = 0; i < kept.count; i++) {
		if (inherited)
			mprotect((void *)kept.at[i].begin, kept.at[i].end - kept.at[i].begin,
				 PROT_NONE);
		else
			reserve(&kept.at[i]);
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
	kept.count = 0;
	xt_holds_each(note_range, &kept);
	merge(&kept);
	let_inherit();
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
	if (inherited)
		advise(&kept, MADV_DONTFORK);
	after_fork();
	xt_guards_after_fork(false);
	xt_holds_each(forget, NULL);
	prepared = false;
	pthread_mutex_unlock(&xt_lock);
}

static void lose(struct xt_hold *hold, void *user)
{
	hold->buffer = NULL;
	hold->moved_in = hold->copied;
	hold->own = false;
	hold->credits = 0;		/* the parent's */
	hold->ahead = false;
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

/* Is this the first call to prepare it? */
static bool prepare(struct xt_hold *hold)
{
	bool first;

	pthread_mutex_lock(&xt_lock);
	first = !hold->prepared;
	hold->prepared = prepared = true;
	pthread_mutex_unlock(&xt_lock);
	return first;
}

/*
 * A child that needs more than the 10 seconds of these claims gets the buffers that the parent
 * still holds.
 */
void xt_fork_offer(void)
{
	struct holds holds = all_holds();
	size_t i;

	xt_pools_look();
	for (i = 0; i < holds.count; i++)
		if (holds.at[i]->buffer && prepare(holds.at[i]))
			xmem_offer(holds.at[i]->buffer, 1, 0);
	xmem_clear_last_error();
	done(&holds);
}

/* A second mapping of these pages: mremap makes one of a shared mapping if it moves 0 bytes. */
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

static bool restore(struct xt_hold *hold, struct xmem_pool *pool)
{
	struct xmem_buffer *buffer = xmem_get(pool, hold->token);
	const void *contents = buffer ? xmem_data(buffer) : NULL;

	if (!contents || !move_in(hold, contents)) {
		xmem_release(buffer);
		return false;
	}
	hold->buffer = buffer;
	hold->moved_in = true;
	return true;
}

/*
 * Copy the inherited pages for this process. Pages at the ends may also belong to other buffers.
 * These are of the same pool, so they are copied as well, once or twice before any write.
 */
static bool copy_in(struct xt_hold *hold)
{
	uintptr_t begin = xt_page_down((uintptr_t)hold->address);
	size_t bytes = xt_page_up((uintptr_t)hold->address + hold->bytes) - begin;
	void *copy;

	if (!inherited || !hold->prepared)
		return false;
	copy = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (copy == MAP_FAILED)
		return false;
	if (mprotect((void *)begin, bytes, PROT_READ) < 0)
		goto unmap;
	memcpy(copy, (void *)begin, bytes);
	if (mremap(copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)begin) !=
	    (void *)begin)
		goto protect;
	pthread_mutex_lock(&xt_lock);
	hold->copied = hold->moved_in = true;
	pthread_mutex_unlock(&xt_lock);
	return true;
protect:
	mprotect((void *)begin, bytes, PROT_NONE);
unmap:
	munmap(copy, bytes);
	return false;
}

/* All holds of a pool that this child cannot join are treated alike, because some share pages. */
static size_t restore_all(const struct holds *holds, struct xmem_pool *const *handles,
			  size_t *ret_copied)
{
	struct xmem_pool *handle;
	struct xt_hold *hold;
	size_t i, lost = 0;

	for (i = 0; i < holds->count; i++) {
		hold = holds->at[i];
		if (hold->buffer || hold->copied)
			continue;
		handle = handles[xt_pool_number(hold->pool)];
		if (!handle && copy_in(hold))
			++*ret_copied;
		else if (!handle || !restore(hold, handle))
			lost += !prepared || hold->prepared;
	}
	return lost;
}

size_t xt_fork_restore(size_t *ret_copied)
{
	struct xmem_pool *handles[XT_POOLS] = { 0 };
	struct holds holds = all_holds();
	size_t i, lost = holds.room - holds.count;
	bool asked[XT_POOLS] = { 0 };
	int number;

	*ret_copied = 0;
	for (i = 0; i < holds.count; i++) {
		number = xt_pool_number(holds.at[i]->pool);
		if (!asked[number] && !holds.at[i]->copied)
			handles[number] = xt_pool_handle(holds.at[i]->pool);
		asked[number] |= !holds.at[i]->copied;
	}
	lost += restore_all(&holds, handles, ret_copied);
	for (i = 0; i < holds.count; i++)
		holds.at[i]->prepared = false;
	prepared = inherited = false;
	xmem_clear_last_error();
	done(&holds);
	return lost;
}
