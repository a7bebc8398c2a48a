// SPDX-License-Identifier: MIT
/*
 * Payloads in memory of GPUs. The owner makes or takes the memory, and the host keeps what other
 * clients need to open it. A client opens a payload when its address is first asked for, and closes
 * it when its last slot has gone, as it unmaps files. The host knows which clients have it open. If
 * the memory ends with its owner, or is the program's, the owner frees it or gives it back only
 * when no client has it open.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/handle.h"
#include "lib/base/uncancelled.h"
#include "lib/cuda/memory.h"
#include "lib/host/died.h"
#include "lib/host/futex.h"
#include "lib/host/pages.h"
#include "lib/host/quota.h"
#include "lib/host/request.h"
#include "lib/host/taken.h"
#include "lib/own/holders.h"
#include "lib/payload/payload.h"
#include "lib/payload/remnant.h"
#include "lib/pool/bury.h"

/* ---- making ---- */

static enum xl_memory_kind kind_of(u32 flags, int fd)
{
	if (!(flags & XMEM_ATTACH_HANDLE))
		return XL_MEMORY_FILE;
	return fd < 0 ? XL_MEMORY_HANDLE : XL_MEMORY_POOL;
}

/* The memory was made before pool->slow was taken, because the driver is called under no lock. */
static int take_made(struct xmem_pool *pool, struct xl_making *making, u64 bytes,
		     struct xl_mapping *mapping, int *ret_fd)
{
	const struct xl_buffers *buffers = &making->buffers;
	struct xl_made *made = &buffers->made[making->files];
	int err = xl_cuda_places(pool);

	if (!err && buffers->attach_flags & XMEM_ATTACH_HANDLE)
		err = xl_cuda_bury_prepare(pool);
	if (err)
		return err;
	mapping->kind = &xl_payload_cuda;
	mapping->memory = made->memory;
	mapping->flags = buffers->attach_flags;
	mapping->bytes = mapping->memory->bytes;
	*ret_fd = made->fd;
	made->fd = -1;
	XM_STEP(XM_STEP_CUDA_MADE);
	return 0;
}

void xl_cuda_describe(const struct xl_mapping *mapping, struct xmem_attach_request *request)
{
	request->flags |= mapping->flags;
	request->bytes = mapping->memory->bytes;
	memcpy(request->device, mapping->memory->gpu->uuid, sizeof(request->device));
	memcpy(request->handle, mapping->memory->handle, sizeof(request->handle));
}

/* Does the pool have memory of as many GPUs as it can have, but none of this GPU? */
static bool devices_are_full(const struct xmem_pool *pool, const struct xl_gpu *gpu)
{
	const struct xmem_device_row *row;
	u32 device;

	for (device = 1; device <= XMEM_MAX_DEVICES; device++) {
		row = xm_device_row(&pool->map, device);
		if (!xm_load(&row->bytes) || !memcmp(row->uuid, gpu->uuid, sizeof(row->uuid)))
			return false;
	}
	return true;
}

static int too_many(struct xmem_pool *pool, const struct xl_gpu *gpu, const char *name)
{
	char limit[XL_LIMIT_BYTES];

	if (devices_are_full(pool, gpu))
		return xl_fail(EDQUOT, "%s: it has memory of %u other GPUs, and can have no more; "
			       "first free all its memory of one of them", name, XMEM_MAX_DEVICES);
	return xl_fail(EDQUOT, "%s: %s; make fewer, or attach larger allocations", name,
		       xl_host_error(pool, -EDQUOT, limit));
}

/* Say what the driver's descriptor is, so that the administrator can let the host take it. */
static int file_refused(int fd, const char *name)
{
	char link[32], path[64] = "";
	struct stat file = { .st_mode = 0 };

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (readlink(link, path, sizeof(path) - 1) < 0)
		path[0] = '\0';
	if (!fstat(fd, &file) && S_ISCHR(file.st_mode))
		return xl_fail(EMEDIUMTYPE, "%s: the host does not take this driver's descriptors, "
			       "which are of %s; add this device, %u:%u, to XMEM_DEVICE_FILES "
			       "(xmemd) or device_files (xmem.ko)", name, path,
			       major(file.st_rdev), minor(file.st_rdev));
	return xl_fail(EMEDIUMTYPE, "%s: the host does not take this driver's descriptors, which "
		       "are of '%s' and of no device; use XMEM_MEMORY_LEGACY if the driver has "
		       "handles", name, path);
}

int xl_cuda_attach_refused(struct xmem_pool *pool, const struct xl_gpu *gpu, int fd, int err)
{
	char space[XL_NAME_BYTES];
	const char *name = xl_pool_name(pool, space, sizeof(space));

	switch (-err) {
	case EMEDIUMTYPE:
		return file_refused(fd, name);
	case ENOSPC:
		return xl_fail_too_few_slots(pool, 1);
	case EDQUOT:
		return too_many(pool, gpu, name);
	}
	return xl_fail(-err, "%s: attach memory of a GPU: %s", name, xl_request_error(err));
}

static int refused_buffers(struct xmem_pool *pool, const struct xl_buffers *buffers, int fd,
			   int err)
{
	return err == -ENOSPC ? xl_fail_too_few_slots(pool, buffers->count) :
				xl_cuda_attach_refused(pool, buffers->gpu, fd, err);
}

const struct xl_buffer_place xl_place_gpu = {
	.alignment = 512,		/* enough for every use of a GPU's memory */
	.make = take_made,
	.describe = xl_cuda_describe,
	.refused = refused_buffers,
};

/* After an error, the caller of xl_payload_make frees the memory that it has made. */
static void unmap(struct xl_mapping *mapping)
{
	mapping->memory = NULL;
}

const struct xl_payload_kind xl_payload_cuda = {
	.storage = XMEM_STORAGE_CUDA,
	.unmap = unmap,
};

/* ---- places ---- */

int xl_cuda_places(struct xmem_pool *pool)
{
	struct xl_mappings *mappings = &pool->mappings;
	struct xl_place *places;

	if (__atomic_load_n(&mappings->device, __ATOMIC_ACQUIRE))
		return 0;
	places = calloc(pool->map.slots, sizeof(*places));
	if (!places)
		return xl_fail_fast(ENOMEM, "no memory for addresses of GPUs");
	xl_lock(&pool->mappings.lock);
	if (mappings->device)
		free(places);
	else
		__atomic_store_n(&mappings->device, places, __ATOMIC_RELEASE);
	xl_unlock(&pool->mappings.lock);
	return 0;
}

/* ---- opening ---- */

static void close_payload(struct xmem_pool *pool, u64 payload)
{
	struct xmem_payload_request request = {
		.size = sizeof(request), .flags = XMEM_PAYLOAD_CLOSE, .payload = payload, .fd = -1,
	};

	xl_post(pool, XMEM_IOC_PAYLOAD, &request);
}

static int refused(u64 payload, int err)
{
	switch (-err) {
	case EACCES:
		return xl_fail_fast(EACCES, "a client that has memory of a GPU open can "
				    "write it, and this client may only read (XMEM_OPEN_READER, or "
				    "the pool's mode); the owner may say XMEM_MEMORY_READERS when "
				    "it makes or attaches the buffer");
	case EOWNERDEAD:
		return xl_fail_fast(EOWNERDEAD, "the owner of this memory of a GPU has "
				    "ended, or has closed its pool, and the memory has gone with "
				    "it; memory that is shared by descriptors would stay");
	}
	return xl_fail(-err, "open payload %llu: %s", payload, xl_request_error(err));
}

#define NAP_NS		1000000
#define NAPS		1000	/* a second, in which any host notices that a process has ended */

/* Could the driver have refused because the owner has ended? It has several errors for that. */
static bool may_be_owners_end(int err)
{
	return err == -EINVAL || err == -EIO || err == -ENOENT;
}

/*
 * The driver has refused to open memory that ends with its owner. The driver notices the owner's
 * end before the host does, so wait for the host. If the host says that the owner has ended, that
 * is the error; otherwise the driver's error stays. pre: cancellation is off.
 */
static void await_owner_end(struct xmem_pool *pool, const struct xmem_slot_row *row)
{
	const struct timespec nap = { .tv_nsec = NAP_NS };
	int naps;

	if (!may_be_owners_end(xl_last_error()))
		return;
	for (naps = 0; xm_load(&row->owner) != XMEM_OWNER_HOST; naps++) {
		if (naps == NAPS || xl_host_died(pool))
			return;
		nanosleep(&nap, NULL);
	}
	refused(0, -EOWNERDEAD);
}

struct xl_gpu *xl_payload_gpu(struct xmem_pool *pool, u32 traits)
{
	u32 number = xm_device(traits);
	u8 uuid[XMEM_UUID_BYTES];

	if (!number || number > XMEM_MAX_DEVICES) {
		xl_fail(EIO, "the pool has no GPU of number %u", number);
		return NULL;
	}
	memcpy(uuid, xm_device_row(&pool->map, number)->uuid, sizeof(uuid));
	return xl_gpu_by_uuid(uuid);
}

/* Open the memory that the host's answer describes. NULL: the error is noted. */
static struct xl_mapping *open_answer(struct xl_gpu *gpu,
				      const struct xmem_payload_request *answer)
{
	struct xl_memory_name name = {
		.kind = kind_of(answer->traits & XMEM_TRAIT_HANDLE ? XMEM_ATTACH_HANDLE : 0,
				answer->fd),
		.handle = answer->handle, .bytes = answer->bytes,
	};
	struct xl_mapping *mapping = calloc(1, sizeof(*mapping));

	if (!mapping) {
		xl_fail_fast(ENOMEM, "no memory for a mapping");
		return NULL;
	}
	mapping->kind = &xl_payload_cuda;
	mapping->payload = answer->payload;
	mapping->opened = true;
	mapping->bytes = answer->bytes;
	if (!xl_memory_open(gpu, &name, answer->fd, &mapping->memory))
		return mapping;
	free(mapping);
	return NULL;
}

/* Ask the host, and open the payload of that slot, which no other thread is opening. */
static struct xl_mapping *open_payload(struct xmem_pool *pool, const struct xmem_slot_row *row,
				       u64 payload, struct xl_gpu *gpu)
{
	struct xmem_payload_request request = {
		.size = sizeof(request), .flags = XMEM_PAYLOAD_OPEN, .payload = payload, .fd = -1,
	};
	struct xl_mapping *mapping;
	int err;

	XM_STEP(XM_STEP_CUDA_ASK);
	err = xl_request(pool, XMEM_IOC_PAYLOAD, &request);
	if (err) {
		refused(payload, err);
		return NULL;
	}
	XM_STEP(XM_STEP_CUDA_ASKED);
	mapping = open_answer(gpu, &request);
	XM_STEP(XM_STEP_CUDA_OPENED);
	if (request.fd >= 0)
		xl_file_close(request.fd);
	if (mapping) {
		xl_mapping_add(pool, mapping);
		return mapping;
	}
	close_payload(pool, payload);
	if (request.traits & XMEM_TRAIT_HANDLE)
		await_owner_end(pool, row);
	return NULL;
}

static bool within(const struct xmem_slot_row *row, const struct xl_mapping *mapping)
{
	return row->length <= mapping->bytes && row->offset <= mapping->bytes - row->length;
}

/* A payload that a thread is opening, in the stack of that thread. */
struct xl_opened_now {
	struct xl_opened_now *next;
	u64 payload;
};

/* Is a thread opening it? Under pool->mappings.lock. */
static bool is_being_opened(const struct xmem_pool *pool, u64 payload)
{
	const struct xl_opened_now *now = pool->gpus.opening;

	while (now && now->payload != payload)
		now = now->next;
	return now;
}

/*
 * The mapping of now->payload. NULL: this thread is the one that opens it, and calls end_opening. A
 * payload has one mapping, and is open for the host until this client closes it once. So a thread
 * waits while another opens the payload, under no lock.
 */
static struct xl_mapping *find_or_begin(struct xmem_pool *pool, struct xl_opened_now *now)
{
	struct xl_mapping *mapping;
	u32 seen;

	xl_lock(&pool->mappings.lock);
	while (!(mapping = xl_mapping_find(&pool->mappings, now->payload)) &&
	       is_being_opened(pool, now->payload)) {
		seen = xm_load(&pool->gpus.openings);
		xl_unlock(&pool->mappings.lock);
		XM_STEP(XM_STEP_WAIT);
		xl_futex_wait_private(&pool->gpus.openings, seen);
		xl_lock(&pool->mappings.lock);
	}
	if (!mapping) {
		now->next = pool->gpus.opening;
		pool->gpus.opening = now;
	}
	xl_unlock(&pool->mappings.lock);
	return mapping;
}

static void end_opening(struct xmem_pool *pool, const struct xl_opened_now *now)
{
	struct xl_opened_now **link = &pool->gpus.opening;

	xl_lock(&pool->mappings.lock);
	while (*link != now)
		link = &(*link)->next;
	*link = now->next;
	xm_store(&pool->gpus.openings, pool->gpus.openings + 1);
	xl_unlock(&pool->mappings.lock);
	xl_futex_wake_private(&pool->gpus.openings, INT_MAX);
}

static int open_slot(struct xmem_pool *pool, u32 slot, struct xl_gpu *gpu)
{
	const struct xmem_slot_row *row = xm_slot_row(&pool->map, slot);
	struct xl_opened_now now = { .payload = xm_load(&row->payload) };
	struct xl_mapping *mapping = find_or_begin(pool, &now);

	if (!mapping) {
		mapping = open_payload(pool, row, now.payload, gpu);
		end_opening(pool, &now);
	}
	if (!mapping)
		return xl_last_error();
	if (!within(row, mapping))
		return xl_fail(EIO, "slot %u lies outside payload %llu", slot, now.payload);
	xl_place(pool, slot, mapping);
	return 0;
}

int xl_cuda_open(struct xmem_pool *pool, u32 slot)
{
	u32 traits = xm_load(&xm_slot_row(&pool->map, slot)->traits);
	struct xl_gpu *gpu;
	int err, cancel;

	gpu = xl_payload_gpu(pool, traits);
	if (!gpu)	/* an evicted client reads zeros, so no GPU has this number */
		return xl_host_died(pool) ? xl_fail_died(pool) : xl_last_error();
	err = xl_cuda_places(pool);
	if (err)
		return err;
	/* If the thread were cancelled here, the memory would stay open, and others would wait. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	xl_payload_unmap_some(pool);
	xl_cuda_reap(pool, 0);
	err = open_slot(pool, slot, gpu);
	pthread_setcancelstate(cancel, NULL);
	return err;
}

int xl_cuda_reach(struct xmem_pool *pool, u32 slot, struct xl_gpu *gpu)
{
	u64 payload = xm_load(&xm_slot_row(&pool->map, slot)->payload);
	const struct xl_mapping *mapping;

	xl_lock(&pool->mappings.lock);
	mapping = xl_mapping_find(&pool->mappings, payload);
	xl_unlock(&pool->mappings.lock);
	/* The caller's handle keeps the payload, so the memory stays open. */
	return mapping ? xl_memory_reach(mapping->memory, gpu) :
			 xl_fail(EIO, "payload %llu is not open", payload);
}

/* ---- closing ---- */

static void push(struct xl_mapping **list, struct xl_mapping *mapping)
{
	mapping->next = *list;
	__atomic_store_n(list, mapping, __ATOMIC_RELAXED);
}

/* May other clients have it open, and must they close it before it can be freed? */
static bool waits(const struct xl_mapping *mapping)
{
	return !mapping->opened &&
	       (mapping->memory->taken || mapping->flags & XMEM_ATTACH_HANDLE);
}

/* Put the memory. false: this process has it open until it ends. */
static bool end(struct xl_mapping *mapping)
{
	bool closed;

	XM_STEP(XM_STEP_CUDA_CLOSING);
	closed = xl_memory_put(mapping->memory);
	XM_STEP(XM_STEP_CUDA_CLOSED);
	free(mapping);
	return closed;
}

/*
 * End a mapping for which no other client matters: descriptors in other clients keep the memory
 * itself.
 */
static void end_at_once(struct xmem_pool *pool, struct xl_mapping *mapping)
{
	bool opened = mapping->opened;
	u64 payload = mapping->payload;

	/*
	 * If the driver has not closed the memory, it stays open for the host until this client
	 * ends.
	 */
	if (end(mapping) && opened)
		close_payload(pool, payload);
}

/*
 * Keep an own payload in the list `closing`, until no other client has it open. @closed:
 * payloads_closed before the host was asked, so that later changes are not missed. @unsure: the
 * host has not answered, so it is asked again in any case.
 */
static void wait_for_others(struct xmem_pool *pool, struct xl_mapping *mapping, u64 closed,
			    bool unsure)
{
	struct xl_mappings *mappings = &pool->mappings;

	xl_lock(&pool->mappings.lock);
	mappings->unsure |= unsure;
	if (!mappings->closing || closed < mappings->closed)
		mappings->closed = closed;
	push(&mappings->closing, mapping);
	xl_unlock(&pool->mappings.lock);
}

/*
 * -ENOENT: no client has the payload open any more, so the host does not know it. With any other
 * result, the memory must stay.
 */
static int ask(struct xmem_pool *pool, const struct xl_mapping *mapping, u64 patience_ns)
{
	struct xmem_payload_request request = {
		.size = sizeof(request), .payload = mapping->payload, .fd = -1,
	};
	u64 until = patience_ns ? xl_deadline(patience_ns) : xl_ask_until(~0ULL);
	int err;

	if (xl_is_put_off(pool))
		return -ETIMEDOUT;
	do		/* a signal of the program proves nothing */
		err = xl_request_until(pool, XMEM_IOC_PAYLOAD, &request, until);
	while (err == -EINTR);
	xl_ask_record(pool, err);
	return err;
}

/* If the host is stopped, all mappings that are ended together wait for it only once. */
static void end_or_wait(struct xmem_pool *pool, struct xl_mapping *mapping, u64 patience_ns)
{
	u64 closed = xm_load_acquire(&pool->map.pool->payloads_closed);
	int err = ask(pool, mapping, patience_ns);

	if (err == -ENOENT)
		end(mapping);
	else
		wait_for_others(pool, mapping, closed, err && err != -EBUSY);
}

static struct xl_mapping *take_list(struct xl_mapping **list)
{
	struct xl_mapping *first = *list;

	__atomic_store_n(list, NULL, __ATOMIC_RELAXED);
	return first;
}

/* Payloads in `closing` that other clients may have closed since the last check, or NULL. */
static struct xl_mapping *take_closing(struct xmem_pool *pool)
{
	u64 closed = xm_load_acquire(&pool->map.pool->payloads_closed);
	struct xl_mappings *mappings = &pool->mappings;

	if (mappings->closed == closed && !mappings->unsure)
		return NULL;
	mappings->closed = closed;
	mappings->unsure = false;
	return take_list(&mappings->closing);
}

void xl_cuda_reap_slowly(struct xmem_pool *pool, u64 patience_ns)
{
	struct xl_mapping *dropped, *closing, *mapping;
	XL_UNCANCELLED;

	xl_lock(&pool->mappings.lock);
	dropped = take_list(&pool->mappings.dropped);
	closing = take_closing(pool);
	xl_unlock(&pool->mappings.lock);
	while ((mapping = dropped)) {
		dropped = mapping->next;
		if (waits(mapping))
			end_or_wait(pool, mapping, patience_ns);
		else
			end_at_once(pool, mapping);
	}
	while ((mapping = closing)) {
		closing = mapping->next;
		end_or_wait(pool, mapping, patience_ns);
	}
}

void xl_cuda_end_all(struct xl_mapping *list)
{
	struct xl_mapping *mapping;

	while ((mapping = list)) {
		list = mapping->next;
		end(mapping);
	}
}

struct xl_mapping *xl_cuda_end(struct xmem_pool *pool)
{
	struct xl_mapping *left = take_list(&pool->mappings.closing), *list, *mapping;

	xl_memory_retry();
	xl_mappings_drop_cuda(pool);
	list = take_list(&pool->mappings.dropped);
	while ((mapping = list)) {
		list = mapping->next;
		if (waits(mapping))
			push(&left, mapping);
		else
			end_at_once(pool, mapping);
	}
	return left;
}

void xl_payload_reap(struct xmem_pool *pool, u64 patience_ns)
{
	xl_payload_unmap_stale(pool);
	xl_cuda_reap(pool, patience_ns);
	xl_cuda_reap_remnants();
}
