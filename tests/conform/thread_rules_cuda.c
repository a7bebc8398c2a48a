// SPDX-License-Identifier: MIT
/*
 * More rows of thread_rules.c: functions for GPUs, on a machine without one. tests/cuda tests what
 * they do on a GPU. These rows never use a driver, even if the machine has one: it would open
 * descriptors, and keep them.
 */
#include <stdlib.h>

#include "thread_rules.h"

__attribute__((constructor)) static void use_no_driver(void)
{
	setenv("XMEM_CUDA_DRIVER", "/nowhere/libcuda.so.1", 1);
}

ROW(cuda_query)
{
	struct xmem_cuda_info info = { .size = sizeof(info) };

	SAME(xmem_cuda_query(&info), -ENODEV);
}

ROW(cuda_device_query)
{
	struct xmem_cuda_device_info info = { .size = sizeof(info) };

	SAME(xmem_cuda_device_query(0, &info), -ENODEV);
}

/* ---- buffers, of which none is on a GPU here ---- */

ROW(acquire_cuda)		{ REFUSED(xmem_acquire_cuda(stage.writer, 1, 0, 0), ENODEV); }

ROW(attach_cuda)
{
	struct xmem_buffer *b;

	do	/* another thread may be attaching, too */
		b = xmem_attach_cuda(stage.writer, &stage, 64, 0, NULL, NULL);
	while (!b && stage.signals && xmem_peek_last_error(NULL) == -EINTR);
	REFUSED(b, ENODEV);
}

ROW(cuda_ptr)			{ REFUSED(xmem_cuda_ptr(stage.read), EMEDIUMTYPE); }
ROW(cuda_ptr_mut)		{ REFUSED(xmem_cuda_ptr_mut(stage.written), EMEDIUMTYPE); }
ROW(cuda_peer)			{ SAME(xmem_cuda_peer(stage.read, 0), -EMEDIUMTYPE); }
ROW(cuda_device)		{ SAME(xmem_cuda_device(stage.read), -EMEDIUMTYPE); }

/* With a stream, which belongs to a GPU. */
ROW(copy_range)
{
	struct CUstream_st *stream = (struct CUstream_st *)1;

	SAME(xmem_copy_range(stage.written, 0, stage.read, 0, 8, stream), -ENODEV);
}

ROW(pool_device_info)
{
	struct xmem_device_info info = { .size = sizeof(info) };

	SAME(xmem_pool_device_info(stage.reader, 1, &info), -ENOENT);
	SAME(xmem_pool_device_info(stage.reader, 0, &info), -EINVAL);
}

/* ---- streams, of which there are none ---- */

ROW(wait_on)			{ SAME(xmem_wait_on(stage.read, NULL), -EMEDIUMTYPE); }

ROW(wait_contents)
{
	SAME(xmem_wait_contents(stage.read, XMEM_FOREVER), -EMEDIUMTYPE);
}

ROW(release_on)			{ SAME(xmem_release_on(stage.read, NULL), -ENODEV); }
