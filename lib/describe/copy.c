// SPDX-License-Identifier: MIT
/*
 * Copies between buffers, and between a buffer and memory of this process. On the CPU, stores of
 * large copies bypass the cache. memcpy reads each line of the destination first, which costs a
 * third of the memory's bandwidth, and evicts what the caller has in the cache. (The C library
 * bypasses the cache too, but only for copies larger than its estimate of the last cache, which is
 * far off in virtual machines.) copy_cuda.c has the copies in which a GPU takes part.
 */
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "lib/base/handle.h"
#include "lib/describe/copy.h"
#include "lib/describe/tensor.h"
#include "lib/own/owned.h"
#include "lib/payload/payload.h"

/*
 * The least size for which a copy that bypasses the cache is faster, counting the copy and the
 * reading by another core: docs/performance.md. Smaller copies stay in caches, where the reader
 * finds them.
 */
#define STREAM_LEAST	(4UL << 20)
#define LINE		64UL

#ifdef __x86_64__

static bool can_stream(void)
{
	return __builtin_cpu_supports("avx2");
}

/* pre: @to and the end are at the beginning of a cache line. */
__attribute__((target("avx2"))) static void stream_lines(char *to, const char *from, size_t bytes)
{
	const char *end = from + bytes;

	for (; from < end; from += LINE, to += LINE) {
		__m256i a = _mm256_loadu_si256((const void *)from);
		__m256i b = _mm256_loadu_si256((const void *)(from + LINE / 2));

		_mm256_stream_si256((void *)to, a);
		_mm256_stream_si256((void *)(to + LINE / 2), b);
	}
	/* Later stores, such as that of publish, must not be seen before these. */
	_mm_sfence();
}

#else

static bool can_stream(void)
{
	return false;
}

static void stream_lines(char *to, const char *from, size_t bytes)
{
}

#endif

/* The two may overlap. */
static void copy_memory(char *to, const char *from, size_t bytes)
{
	bool apart = to >= from + bytes || from >= to + bytes;
	size_t head, lines;

	if (bytes < STREAM_LEAST || !apart || !can_stream()) {
		memmove(to, from, bytes);
		return;
	}
	head = -(uintptr_t)to % LINE;
	memcpy(to, from, head);
	lines = (bytes - head) / LINE * LINE;
	stream_lines(to + head, from + head, lines);
	memcpy(to + head + lines, from + head + lines, bytes - head - lines);
}

/* ---- the two sides ---- */

/*
 * The number of bytes that may be copied. The length of a buffer from xmem_acquire comes from its
 * owner's own list, and not from the pages. A buffer that is written in place is another client's.
 */
static u64 length_of(const struct xmem_buffer *buffer)
{
	u32 mode = xm_load(&buffer->mode);

	if (!(mode & XL_WRITING) || mode & XL_FIXED)
		return buffer->what.length;
	return mode & XL_UPGRADED ? xl_capacity(buffer) : xl_slot_bytes(buffer->pool, buffer->slot);
}

/* Find the address in a buffer at which the copy begins. 0, or -errno, noted. */
static int find(const struct xl_copy *copy, struct xl_side *side, struct xmem_buffer *handle,
		u64 offset, bool writes)
{
	u64 length;
	int err;

	side->buffer = xl_buffer(handle);
	if (!side->buffer)
		return xl_no_buffer(handle, copy->what);
	if (xl_is_on_gpu(side->buffer)) {
		err = xl_copy_find(copy, side, writes);
		if (err)
			return err;
	} else {
		side->address = (u64)(writes ? xmem_data_mut(handle) : xmem_data(handle));
		if (!side->address)
			return xl_last_error();
	}
	length = length_of(side->buffer);
	if (offset > length || copy->bytes > length - offset)
		return xl_fail(ERANGE, "%s: %llu bytes at %llu %s %llu bytes%s", copy->what,
			       (unsigned long long)copy->bytes, (unsigned long long)offset,
			       writes ? "do not fit into the buffer, which has" :
			       "reach beyond the contents, which have",
			       (unsigned long long)length,
			       writes ? "; acquire a larger buffer" : "");
	side->address += offset;
	return 0;
}

static int find_memory(const struct xl_copy *copy, struct xl_side *side, const void *memory)
{
	side->address = (u64)memory;
	return memory || !copy->bytes ? 0 :
	       xl_fail(EINVAL, "%s: the program's memory is NULL, with %llu bytes to copy",
		       copy->what, (unsigned long long)copy->bytes);
}

/* Copy; both sides have been found. 0, or -errno, noted. */
static int run(const struct xl_copy *copy)
{
	int err;

	if (!copy->bytes)
		return 0;
	if (copy->to.gpu || copy->from.gpu)
		return xl_copy_gpu(copy);
	err = copy->stream ? xl_copy_await(copy) : 0;
	if (!err)
		copy_memory((char *)copy->to.address, (const char *)copy->from.address,
			    copy->bytes);
	return err;
}

static int copy_between(struct xl_copy *copy, struct xmem_buffer *to, u64 to_offset,
			struct xmem_buffer *from, u64 from_offset)
{
	int err;

	if (to && to == from)
		return xl_fail(EINVAL, "%s: both arguments are one buffer",
			       copy->what);
	err = xl_copy_check(copy, xl_buffer(to), xl_buffer(from));
	if (!err)
		err = find(copy, &copy->to, to, to_offset, true);
	if (!err)
		err = find(copy, &copy->from, from, from_offset, false);
	return err ? err : run(copy);
}

/* Copy the description of @from, but not its place in the buffer. */
static void copy_metadata(struct xmem_buffer *to, struct xmem_buffer *from)
{
	struct xmem_metadata m, *mine = xmem_metadata_mut(to);

	xl_metadata_read(xmem_metadata_ptr(from), &m);
	m.size = xmem_size(from);
	m.offset = xl_buffer(to)->what.offset;
	m.storage = mine->storage;
	m.device = mine->device;
	m.order_kind = mine->order_kind;	/* that of the copy itself, if a stream makes it */
	m.order_value = mine->order_value;
	memcpy(mine, &m, sizeof(m));
}

/* ---- the calls ---- */

XMEM_API int xmem_copy(struct xmem_buffer *to, struct xmem_buffer *from,
		       struct CUstream_st *stream)
{
	XL_CALL;
	struct xl_copy copy = { .what = "copy", .stream = stream };
	int err;

	if (xl_buffer(from))
		copy.bytes = xmem_size(from);
	err = copy_between(&copy, to, 0, from, 0);
	if (err)
		return err;
	copy_metadata(to, from);
	xl_buffer(to)->what.length = copy.bytes;
	return 0;
}

XMEM_API int xmem_copy_range(struct xmem_buffer *to, size_t to_offset, struct xmem_buffer *from,
			     size_t from_offset, size_t bytes, struct CUstream_st *stream)
{
	XL_CALL;
	struct xl_copy copy = { .what = "copy_range", .bytes = bytes, .stream = stream };

	return copy_between(&copy, to, to_offset, from, from_offset);
}

XMEM_API int xmem_copy_from_host(struct xmem_buffer *to, size_t offset, const void *from,
				 size_t bytes, struct CUstream_st *stream)
{
	XL_CALL;
	struct xl_copy copy = { .what = "copy_from_host", .bytes = bytes, .stream = stream };
	int err = xl_copy_check(&copy, xl_buffer(to), NULL);

	if (!err)
		err = find(&copy, &copy.to, to, offset, true);
	if (!err)
		err = find_memory(&copy, &copy.from, from);
	return err ? err : run(&copy);
}

XMEM_API int xmem_copy_to_host(void *to, struct xmem_buffer *from, size_t offset, size_t bytes,
			       struct CUstream_st *stream)
{
	XL_CALL;
	struct xl_copy copy = { .what = "copy_to_host", .bytes = bytes, .stream = stream };
	int err = xl_copy_check(&copy, NULL, xl_buffer(from));

	if (!err)
		err = find(&copy, &copy.from, from, offset, false);
	if (!err)
		err = find_memory(&copy, &copy.to, to);
	return err ? err : run(&copy);
}

XMEM_API struct xmem_buffer *xmem_copy_to(struct xmem_buffer *from, int device_id,
					  int64_t timeout_ns)
{
	XL_CALL;
	struct xmem_buffer *buffer = xl_buffer(from), *to;
	struct xl_error error;
	size_t bytes;

	if (!buffer) {
		xl_no_buffer(from, "copy_to");
		return NULL;
	}
	bytes = xmem_size(from) ? xmem_size(from) : 1;
	to = device_id == XMEM_CPU ? xmem_acquire(buffer->pool, bytes, timeout_ns) :
	     xmem_acquire_cuda(buffer->pool, bytes, device_id, timeout_ns);
	if (!to || !xmem_copy(to, from, NULL))
		return to;
	xl_error_save(&error);
	xmem_release(to);
	xl_error_restore(&error);
	return NULL;
}
