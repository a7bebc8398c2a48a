// SPDX-License-Identifier: MIT
/*
 * Copying contents and metadata into a buffer that is being written. Large contents are stored
 * past the cache: memcpy reads each line of the destination first, which costs a third of the
 * memory's bandwidth, and evicts what the caller has there. (The C library would do the same, but
 * only for what is larger than its idea of the last cache, which in virtual machines is far off.)
 */
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "copy.h"
#include "handle.h"
#include "owned.h"
#include "payload/payload.h"
#include "tensor.h"

/*
 * From so many bytes on the copy and its reading by another core together are faster past the
 * cache: docs/performance.md. Below it they stay in caches, where the reader finds them.
 */
#define STREAM_LEAST	(4UL << 20)
#define LINE		64UL

#ifdef __x86_64__

static bool can_stream(void)
{
	return __builtin_cpu_supports("avx2");
}

/* pre: @to is at the beginning of a line, and so is the end. */
__attribute__((target("avx2"))) static void stream_lines(char *to, const char *from, size_t bytes)
{
	const char *end = from + bytes;

	for (; from < end; from += LINE, to += LINE) {
		__m256i a = _mm256_loadu_si256((const void *)from);
		__m256i b = _mm256_loadu_si256((const void *)(from + LINE / 2));

		_mm256_stream_si256((void *)to, a);
		_mm256_stream_si256((void *)(to + LINE / 2), b);
	}
	/* No later store, such as that of publish, may be seen before these. */
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

static void copy_memory(char *to, const char *from, size_t bytes)
{
	size_t head, lines;

	if (bytes < STREAM_LEAST || !can_stream()) {
		memcpy(to, from, bytes);
		return;
	}
	head = -(uintptr_t)to % LINE;
	memcpy(to, from, head);
	lines = (bytes - head) / LINE * LINE;
	stream_lines(to + head, from + head, lines);
	memcpy(to + head + lines, from + head + lines, bytes - head - lines);
}

/*
 * How many bytes can be written? A buffer from xmem_acquire is as long as its owner knows, whatever
 * the pages say. One that is written in place is another client's.
 */
static size_t capacity_of(struct xmem_buffer *to)
{
	const struct xmem_buffer *buffer = xl_buffer(to);

	return xm_load(&buffer->mode) & XL_UPGRADED ? xl_capacity(buffer) :
					    xl_slot_bytes(buffer->pool, buffer->slot);
}

/* Take over what is said of @from, but not its place in the buffer. */
static void copy_metadata(struct xmem_buffer *to, struct xmem_buffer *from)
{
	struct xmem_metadata m, *mine = xmem_metadata_mut(to);

	xl_metadata_read(xmem_metadata_ptr(from), &m);
	m.size = xmem_size(from);
	m.offset = xl_buffer(to)->what.offset;
	m.storage = mine->storage;
	m.device = mine->device;
	m.order_kind = XMEM_ORDER_NONE;
	m.order_value = 0;
	memcpy(mine, &m, sizeof(m));
}

/* One of them is on a GPU. */
static XL_COLD int copy_elsewhere(struct xmem_buffer *to, struct xmem_buffer *from)
{
	int err = xl_copy_cuda(to, from);

	if (err)
		return err;
	copy_metadata(to, from);
	xl_buffer(to)->what.length = xmem_size(from);
	return 0;
}

XMEM_API int xmem_copy(struct xmem_buffer *to, struct xmem_buffer *from)
{
	size_t bytes, capacity;
	const char *contents;
	char *whole;

	if (to == from)
		return xl_fail_fast(EINVAL, "copy: both buffers are the same one, or none");
	if (xl_is_cuda(to) || xl_is_cuda(from))
		return copy_elsewhere(to, from);
	whole = xmem_data_mut(to);
	contents = whole ? xmem_data(from) : NULL;
	if (!contents)
		return xmem_peek_last_error(NULL);
	bytes = xmem_size(from);
	capacity = capacity_of(to);
	if (bytes > capacity)
		return xl_fail(ERANGE, "copy: %zu bytes do not fit into a buffer of %zu; acquire a "
			       "larger one", bytes, capacity);
	copy_memory(whole, contents, bytes);
	copy_metadata(to, from);
	xl_buffer(to)->what.length = bytes;
	return 0;
}

XMEM_API int xmem_copy_bytes(struct xmem_buffer *to, size_t offset, const void *from, size_t bytes)
{
	size_t capacity;
	char *whole;

	if (xl_is_cuda(to))
		return xmem_copy_to_cuda(to, offset, from, bytes);
	whole = xmem_data_mut(to);
	if (!whole)
		return xmem_peek_last_error(NULL);
	capacity = capacity_of(to);
	if (offset > capacity || bytes > capacity - offset)
		return xl_fail(ERANGE, "copy: %zu bytes at %zu do not fit into a buffer of %zu",
			       bytes, offset, capacity);
	if (!bytes)
		return 0;
	if (!from)
		return xl_fail_fast(EINVAL, "copy: no bytes to copy");
	copy_memory(whole + offset, from, bytes);
	return 0;
}
