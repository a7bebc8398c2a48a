// SPDX-License-Identifier: MIT
/*
 * Copies and fills that return when they are done. Each is an operation of the legacy default
 * stream, so work that was queued before on blocking streams has run.
 */
#include <string.h>

#include "memory.h"

struct copy {
	CUdeviceptr to, from;
	size_t bytes;
	struct fk_device *device;
	unsigned int value, width;	/* of a fill: from is not used */
	CUresult err;
};

static void fill(void *to, const struct copy *copy)
{
	for (size_t i = 0; i < copy->bytes; i += copy->width)
		memcpy((char *)to + i, &copy->value, copy->width);
}

static void run(void *arg)
{
	struct fk_pin *to_pin = NULL, *from_pin = NULL;
	struct copy *copy = arg;
	void *to, *from = NULL;

	to = fk_memory_any(copy->to, copy->bytes, copy->device, FK_WRITE, &to_pin, &copy->err);
	if (to && !copy->width)
		from = fk_memory_any(copy->from, copy->bytes, copy->device, FK_READ, &from_pin,
				     &copy->err);
	if (to && copy->width)
		fill(to, copy);
	else if (to && from)
		memmove(to, from, copy->bytes);
	if (to && (copy->width || from))
		copy->err = FK_OK;
	fk_memory_done(to_pin);
	fk_memory_done(from_pin);
}

/* The call itself finds memory that is not there now; what happens until its turn is seen then. */
static CUresult check(const struct copy *copy)
{
	struct fk_pin *to_pin = NULL, *from_pin = NULL;
	CUresult err = FK_OK;

	if (!fk_memory_any(copy->to, copy->bytes, copy->device, FK_WRITE, &to_pin, &err) ||
	    (!copy->width && !fk_memory_any(copy->from, copy->bytes, copy->device, FK_READ,
					    &from_pin, &err)))
		err = err ? err : FK_INVALID_VALUE;
	else
		err = FK_OK;
	fk_memory_done(to_pin);
	fk_memory_done(from_pin);
	return err;
}

static CUresult do_copy(CUstream stream, CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
	struct copy copy = {
		.to = to, .from = from, .bytes = bytes, .device = fk_device_current(),
	};
	CUresult err;

	if (!bytes)
		return FK_OK;
	if (!to || !from)
		return FK_INVALID_VALUE;
	err = check(&copy);
	if (!err)
		err = fk_stream_run(stream, run, &copy);
	return err ? err : copy.err;
}

static CUresult do_fill(CUstream stream, CUdeviceptr to, unsigned int value, unsigned int width,
			size_t count)
{
	struct copy copy = {
		.to = to, .value = value, .width = width, .bytes = count * width,
		.device = fk_device_current(),
	};
	CUresult err;

	if (!count)
		return FK_OK;
	if (to % width || !fk_memory_is_known(to, count * width))
		return FK_INVALID_VALUE;
	err = check(&copy);
	if (!err)
		err = fk_stream_run(stream, run, &copy);
	return err ? err : copy.err;
}

static CUdeviceptr cpu(const void *ptr)
{
	return (uintptr_t)ptr;
}

#define LEGACY		NULL
#define PER_THREAD	((CUstream)2)

#define DEFINE_COPIES(suffix, since, needs, stream)						\
FK_DEFINE(cuMemcpyHtoD, since, cuMemcpyHtoD_v2##suffix, needs, CUdeviceptr to,		\
	  const void *from, size_t bytes)						\
{											\
	FK_ENTER(cuMemcpyHtoD_v2##suffix);						\
	if (bytes && !fk_memory_is_known(to, bytes))					\
		return FK_INVALID_VALUE;						\
	return do_copy(stream, to, cpu(from), bytes);						\
}											\
											\
FK_DEFINE(cuMemcpyDtoH, since, cuMemcpyDtoH_v2##suffix, needs, void *to,		\
	  CUdeviceptr from, size_t bytes)						\
{											\
	FK_ENTER(cuMemcpyDtoH_v2##suffix);						\
	if (bytes && !fk_memory_is_known(from, bytes))					\
		return FK_INVALID_VALUE;						\
	return do_copy(stream, cpu(to), from, bytes);						\
}											\
											\
FK_DEFINE(cuMemcpyDtoD, since, cuMemcpyDtoD_v2##suffix, needs, CUdeviceptr to,		\
	  CUdeviceptr from, size_t bytes)						\
{											\
	FK_ENTER(cuMemcpyDtoD_v2##suffix);						\
	if (bytes && !(fk_memory_is_known(to, bytes) && fk_memory_is_known(from, bytes)))	\
		return FK_INVALID_VALUE;						\
	return do_copy(stream, to, from, bytes);					\
}											\
											\
FK_DEFINE(cuMemsetD8, since, cuMemsetD8_v2##suffix, needs, CUdeviceptr to,		\
	  unsigned char value, size_t count)						\
{											\
	FK_ENTER(cuMemsetD8_v2##suffix);						\
	return do_fill(stream, to, value, 1, count);						\
}											\
											\
FK_DEFINE(cuMemsetD16, since, cuMemsetD16_v2##suffix, needs, CUdeviceptr to,		\
	  unsigned short value, size_t count)						\
{											\
	FK_ENTER(cuMemsetD16_v2##suffix);						\
	return do_fill(stream, to, value, 2, count);						\
}											\
											\
FK_DEFINE(cuMemsetD32, since, cuMemsetD32_v2##suffix, needs, CUdeviceptr to,		\
	  unsigned int value, size_t count)						\
{											\
	FK_ENTER(cuMemsetD32_v2##suffix);						\
	return do_fill(stream, to, value, 4, count);						\
}											\
_Static_assert(true, "")

DEFINE_COPIES(, 3020, FK_CONTEXT, LEGACY);
DEFINE_COPIES(_ptds, 7000, FK_CONTEXT | FK_PER_THREAD, PER_THREAD);

FK_DEFINE(cuMemcpy, 4000, cuMemcpy, FK_CONTEXT, CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
	FK_ENTER(cuMemcpy);
	return do_copy(LEGACY, to, from, bytes);
}

FK_DEFINE(cuMemcpyPeer, 4000, cuMemcpyPeer, FK_CONTEXT, CUdeviceptr to, CUcontext to_context,
	  CUdeviceptr from, CUcontext from_context, size_t bytes)
{
	FK_ENTER(cuMemcpyPeer);
	if (!fk_context_valid(to_context) || !fk_context_valid(from_context))
		return FK_INVALID_CONTEXT;
	return do_copy(LEGACY, to, from, bytes);
}
