// SPDX-License-Identifier: MIT
/*
 * Holds: the buffers in which storages of torch lie. They are found by the address of the contents,
 * which is what a storage knows of itself. The storage's deleter drops its share, in any thread,
 * at any time, without the GIL, and touches no Python object.
 *
 * Two storages of one process can lie in one buffer, if it was received twice. Then the table has
 * two holds with the same address, and it does not matter which one is found.
 */
#include "torch.h"

#include <stdlib.h>

#define FIRST_BUCKETS	1024		/* a power of two, as all numbers of buckets */

pthread_mutex_t xt_lock = PTHREAD_MUTEX_INITIALIZER;
static struct xt_hold **buckets;	/* xt_lock guards these three */
static size_t size, count;

static size_t hash(const void *address, size_t of)
{
	uint64_t bits = (uintptr_t)address >> 6;	/* buffers begin at multiples of 64 */

	return (bits * 0x9e3779b97f4a7c15u >> 20) & (of - 1);
}

/* Have a bucket for each hold. pre: xt_lock. false: no memory, and all is as before. */
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

static bool insert(struct xt_hold *hold)
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

static void delete(struct xt_dlpack *dlpack)
{
	xt_hold_put(dlpack->context);
}

struct xt_hold *xt_hold_new(struct xt_pool *pool, struct xmem_buffer *buffer, void *address,
			    bool own)
{
	struct xmem_buffer_info info = XMEM_INIT(info);
	struct xt_hold *hold = calloc(1, sizeof(*hold));

	if (!hold)
		return NULL;
	xmem_buffer_stat(buffer, &info);
	*hold = (struct xt_hold){
		.shares = 1, .pool = pool, .buffer = buffer, .address = address,
		.bytes = info.bytes, .token = info.token, .own = own,
		.gpu = info.flags & XMEM_BUFFER_CUDA,
	};
	hold->shape[0] = hold->bytes;
	hold->dlpack = (struct xt_dlpack){
		.data = address, .device_type = XT_DLPACK_CPU, .ndim = 1, .code = XT_DLPACK_UINT,
		.bits = 8, .lanes = 1, .shape = hold->shape, .context = hold, .deleter = delete,
	};
	if (insert(hold))
		return hold;
	free(hold);
	return NULL;
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

/* The pages that fork.c has put there go, or are the other hold's of this buffer. pre: xt_lock */
static void leave_pages(struct xt_hold *hold)
{
	struct xt_hold *other = buckets[hash(hold->address, size)];

	while (other && other->address != hold->address)
		other = other->next;
	if (other)
		other->moved_in = true;
	else
		xt_fork_unmap(hold);
}

/* Drop a share. Was it the last one, so that the hold is out of the table? */
static bool drop_share(struct xt_hold *hold)
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

/* torch may have put reads of memory of a GPU into the default stream, and dropped it then. */
void xt_hold_put(struct xt_hold *hold)
{
	if (hold->gpu) {
		xt_hold_put_on(hold, NULL);
		return;
	}
	if (!drop_share(hold))
		return;
	xt_hold_settle(hold);
	xmem_release(hold->buffer);
	free(hold);
}

void xt_hold_put_on(struct xt_hold *hold, void *stream)
{
	if (!drop_share(hold))
		return;
	xt_hold_settle(hold);
	if (xmem_release_on(hold->buffer, stream) < 0)
		xmem_release(hold->buffer);	/* the driver does nothing any more */
	free(hold);
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

/*
 * The buffer is published at once, with its handle kept, to subscribers that there are none of. So
 * it has a token, and releasing it asks nobody. Its contents are shared memory that all holders
 * write, as torch's users expect it.
 */
struct xt_hold *xt_hold_make(struct xt_pool *pool, size_t bytes, const void *contents)
{
	struct xmem_publish_options keep = { .size = sizeof(keep), .flags = XMEM_PUBLISH_KEEP };
	struct xmem_pool *handle = xt_pool_handle(pool);
	struct xmem_buffer *buffer;
	struct xt_hold *hold;
	void *address;

	if (!handle)
		return NULL;
	buffer = xmem_acquire(handle, bytes, 0);
	if (!buffer)
		return NULL;
	address = xmem_data_mut(buffer);
	if (!address || (contents && xmem_copy_from_host(buffer, 0, contents, bytes, NULL)) ||
	    xmem_publish(buffer, &keep, NULL) < 0)
		goto release;
	hold = xt_hold_new(pool, buffer, address, true);
	if (hold)
		return hold;
	xmem_clear_last_error();
release:
	xmem_release(buffer);
	return NULL;
}

struct xt_hold *xt_hold_get(struct xt_pool *pool, uint64_t token)
{
	struct xmem_pool *handle = xt_pool_handle(pool);
	struct xmem_buffer *buffer;
	struct xt_hold *hold;
	const void *address;

	if (!handle)
		return NULL;
	buffer = xmem_get(handle, token);
	if (!buffer)
		return NULL;
	address = xmem_data(buffer);
	hold = address ? xt_hold_new(pool, buffer, (void *)address, false) : NULL;
	if (hold)
		return hold;
	if (address)
		xmem_clear_last_error();
	xmem_release(buffer);
	return NULL;
}

void xt_hold_describe(struct xt_hold *hold, unsigned int type, int dimensions,
		      const int64_t *shape)
{
	int i;

	hold->dlpack.code = type >> 8;
	hold->dlpack.bits = type;
	hold->dlpack.ndim = dimensions;
	for (i = 0; i < dimensions; i++)
		hold->shape[i] = shape[i];
}
