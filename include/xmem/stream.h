/* SPDX-License-Identifier: MIT */
/*
 * Order on streams of a GPU: buffers that are published before the GPU has written them, and
 * released before the GPU has read them. A part of xmem.h.
 *
 * A stream is a CUstream, which is a cudaStream_t. NULL is the default stream of the buffer's GPU,
 * or of GPU 0 for memory of the CPU. In struct xmem_publish_options and copy.h NULL means no
 * stream, and the default stream is CU_STREAM_LEGACY, (CUstream)1.
 *
 *	writer                                   reader
 *	b = xmem_acquire_cuda(...)               b = xmem_receive(...)
 *	xmem_wait_on(b, stream)                  xmem_wait_on(b, stream)
 *	kernel writes xmem_cuda_ptr_mut(b)       kernel reads xmem_cuda_ptr(b)
 *	xmem_publish(b, &options, NULL)          xmem_release_on(b, stream)
 *
 * All work that is in options.stream at the call may write the contents. Receivers get the buffer
 * at once. A program that does not use these calls must synchronize its streams before it publishes
 * or releases. Before xmem_set_ref_count every program must do so. With a stream, xmem_publish also
 * returns -EMEDIUMTYPE: the buffer is in memory of the CPU; -EPERM: the buffer is held for reading;
 * -ENODEV, -ENOMEM, -EINVAL, -EIO: the driver refuses; -EINTR, -ECANCELED: a wait for the stream
 * was ended. If a graph captures the stream, all calls and copies fail with EPERM, and the capture
 * stays valid.
 */
#ifndef XMEM_STREAM_H
#define XMEM_STREAM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct xmem_buffer;
struct CUstream_st;

/*
 * Let a stream wait until the contents of a buffer are complete: work that is put into the stream
 * after this call begins only then. Keep the handle until all work that reads the contents
 * is in the stream, and then drop the handle by xmem_release_on.
 * Returns: 0, or -EOWNERDEAD: the writer's process ended before its GPU had finished the contents;
 * -EMEDIUMTYPE, -ENODEV, -ENOMEM, -EINVAL, -EIO: as xmem_publish with a stream; -EPERM: the stream
 * is captured; -EINTR, -ECANCELED, -ENOTCONN: a wait in this call ended early. Since: 0.5.
 */
int xmem_wait_on(struct xmem_buffer *buffer, struct CUstream_st *stream);

/*
 * Wait in this thread until the contents of a buffer are complete. With timeout 0 the call only
 * looks, even after xmem_cancel.
 * Returns: 0, or -EAGAIN: they are not complete, and timeout_ns is 0; -ETIMEDOUT: not in time;
 * -EOWNERDEAD: they will never be complete, because the writer's process has ended; -EIO,
 * -ESHUTDOWN: this process writes them, and its GPU or the driver has failed; -EMEDIUMTYPE: the
 * buffer is in memory of the CPU; -EINVAL, -EINTR, -ECANCELED, -ENOTCONN. Since: 0.5.
 */
int xmem_wait_contents(struct xmem_buffer *buffer, int64_t timeout_ns);

/* For xmem_release_on alone: all streams of the primary context of the buffer's GPU. */
#define XMEM_ALL_STREAMS	((struct CUstream_st *)-1)

/*
 * Drop a handle for reading when a stream has done the work that is in it at the call. The buffer
 * may be on the CPU or a GPU. The caller cannot use the handle any more from the call on.
 * @stream: XMEM_ALL_STREAMS if the streams are unknown, or one may have been destroyed. The handle
 *	then waits for the work of the whole GPU (xmem_release_on(3)).
 * Returns: 0, or -EPERM (the buffer is being written, or the stream is captured), -EINVAL, -EBADF,
 * -ECHILD, -ENODEV, -ENOMEM, -EIO; after an error the handle is unchanged. Ownership: ends here.
 * Since: 0.5.
 */
int xmem_release_on(struct xmem_buffer *buffer, struct CUstream_st *stream);

#ifdef __cplusplus
}
#endif
#endif
