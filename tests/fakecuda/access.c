// SPDX-License-Identifier: MIT
/*
 * How the driver's own threads reach memory: the meaning of an address, and whether a device may
 * access it. A device may access memory that cuMemAlloc gave on it, memory that
 * cuCtxEnablePeerAccess opened to it, and virtual memory and pools that a call gave it access to
 * (rule 40).
 */
#include <sys/mman.h>

#include "memory.h"
#include "queue.h"
#include "tests.h"

static bool device_may(const struct fk_mapping *mapping, const struct fk_device *device,
		       enum fk_access access, bool copying)
{
	const struct fk_context *context = mapping->span->context;
	bool legacy = mapping->span->kind == FK_SPAN_BLOCK ||
		mapping->span->kind == FK_SPAN_IMPORT;

	if (!device || (legacy && copying))	/* copies go through the CPU if they must */
		return true;
	if ((mapping->access[device->ordinal] & access) == access)
		return true;
	return legacy && context && (device->primary.peers >> context->device->ordinal & 1);
}

/* Rule 23: with FAKECUDA_EXPORTER_DEATH=fault, opened memory is lost with its exporter. */
static bool is_orphan(const struct fk_mapping *mapping)
{
	return mapping->span->kind == FK_SPAN_IMPORT &&
		fk_option_is("EXPORTER_DEATH", "fault", "keep") &&
		!fk_process_lives(&mapping->backing->control->owner);
}

/*
 * A pool stays mapped when a piece of it is freed. So a stream that still uses the piece damages
 * what lies there next, and its context goes on.
 */
static bool is_used_late(const struct fk_span *span, CUdeviceptr ptr)
{
	if (span->kind != FK_SPAN_POOL || !fk_stream_of_thread())
		return false;
	fk_violation("%#llx of a pool is used after it was freed", ptr);
	return true;
}

/* Pieces of blocks and pools are freed one by one, so a mapping may be half free. */
static bool is_allocated(const struct fk_span *span, CUdeviceptr ptr, size_t bytes)
{
	const struct fk_alloc *alloc;
	CUdeviceptr base;
	size_t have;

	if (span->kind != FK_SPAN_BLOCK && span->kind != FK_SPAN_POOL)
		return true;
	if (!fk_piece_find_locked(span, ptr, &base, &have))
		return is_used_late(span, ptr);
	if (ptr + bytes > base + have)
		return false;
	alloc = fk_alloc_find_locked(span, ptr);
	/* A call that only checks comes earlier; the use by a stream counts. */
	if (alloc && !alloc->ready && fk_stream_of_thread())
		fk_violation("%#llx is used before its stream has allocated it", ptr);
	return true;
}

static void *device_at_locked(CUdeviceptr ptr, size_t bytes, const struct fk_device *device,
			      enum fk_access access, bool copying, struct fk_pin **ret_pin,
			      CUresult *ret_why)
{
	struct fk_span *span = fk_span_find_locked(ptr);
	CUdeviceptr at = ptr, end = ptr + bytes;

	*ret_why = FK_INVALID_VALUE;
	if (!span || end < ptr || end > span->base + span->bytes ||
	    !is_allocated(span, ptr, bytes))
		return NULL;
	do {
		struct fk_mapping *mapping = fk_mapping_find_locked(at);

		if (!mapping)
			return NULL;
		if (is_orphan(mapping)) {
			*ret_why = FK_ILLEGAL_ADDRESS;
			return NULL;
		}
		if (!device_may(mapping, device, access, copying)) {
			*ret_why = copying && fk_option_is("NO_ACCESS", "1", "1") ?
				FK_INVALID_VALUE : FK_ILLEGAL_ADDRESS;
			return NULL;
		}
		at = mapping->base + mapping->bytes;
	} while (at < end);
	span->pin.users++;
	*ret_pin = &span->pin;
	return fk_shadow(ptr);
}

static void *at(CUdeviceptr ptr, size_t bytes, const struct fk_device *device,
		enum fk_access access, bool copying, struct fk_pin **ret_pin, CUresult *ret_why)
{
	void *found;

	*ret_pin = NULL;
	pthread_mutex_lock(&memory_lock);
	if (fk_memory_is_device(ptr))
		found = device_at_locked(ptr, bytes, device, access, copying, ret_pin, ret_why);
	else
		found = fk_host_at_locked(ptr, bytes, access, ret_pin, ret_why);
	pthread_mutex_unlock(&memory_lock);
	return found;
}

void *fk_memory_at(CUdeviceptr ptr, size_t bytes, struct fk_device *device, enum fk_access access,
		   struct fk_pin **ret_pin, CUresult *ret_why)
{
	return at(ptr, bytes, device, access, false, ret_pin, ret_why);
}

void *fk_memory_any(CUdeviceptr ptr, size_t bytes, struct fk_device *device,
		    enum fk_access access, struct fk_pin **ret_pin, CUresult *ret_why)
{
	CUdeviceptr base;
	size_t registered;
	bool known = fk_memory_is_device(ptr);

	if (!known) {
		pthread_mutex_lock(&memory_lock);
		known = fk_host_registered_locked(ptr, &base, &registered);
		pthread_mutex_unlock(&memory_lock);
	}
	if (known)
		return at(ptr, bytes, device, access, true, ret_pin, ret_why);
	*ret_pin = NULL;
	*ret_why = FK_INVALID_VALUE;
	return (void *)(uintptr_t)ptr;
}

bool fk_memory_is_known(CUdeviceptr ptr, size_t bytes)
{
	struct fk_pin *pin;
	CUresult why;

	if (fk_memory_is_device(ptr))
		return true;
	if (!at(ptr, bytes, NULL, FK_READ, false, &pin, &why))
		return false;
	fk_memory_done(pin);
	return true;
}

void *cuFakeLook(unsigned long long ptr, size_t bytes)
{
	struct fk_pin *pin;
	CUresult why;
	void *found = fk_memory_at(ptr, bytes, NULL, FK_READ, &pin, &why);

	fk_memory_done(pin);
	return found;
}

void fk_memory_stop(void)
{
	pthread_mutex_lock(&memory_lock);
	fk_host_stop_locked();
	fk_arena_stop_locked();
	pthread_mutex_unlock(&memory_lock);
}
