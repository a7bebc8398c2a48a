/* SPDX-License-Identifier: MIT */
/*
 * Order on streams of a GPU: buffers that are published before the GPU has written them, and
 * released before the GPU has read them. A part of xmem.h, whose general rules apply.
 *
 * A stream is a CUstream of CUDA's driver, which is a cudaStream_t of CUDA's runtime. NULL is the
 * default stream of the buffer's GPU, in the GPU's primary context; for memory of the CPU, NULL is
 * the default stream of GPU 0. In struct xmem_publish_options and copy.h, NULL means no stream. No
 * function here waits for a stream unless its comment says so. Copies (copy.h) keep this order too.
 *
 *	writer                                   reader
 *	b = xmem_acquire_cuda(...)               b = xmem_receive(...)
 *	xmem_wait_on(b, stream)                  xmem_wait_on(b, stream)
 *	kernel writes xmem_cuda_ptr_mut(b)       kernel reads xmem_cuda_ptr(b)
 *	xmem_publish(b, &options, NULL)          xmem_release_on(b, stream)
 *
 * options.stream is the stream. All work that is in the stream at the call may write the contents.
 * In these options NULL says that the contents are complete; for the default stream, give
 * CU_STREAM_LEGACY, (CUstream)1, or CU_STREAM_PER_THREAD, (CUstream)2. Receivers get the buffer at
 * once. If the writer's process ends before this work does, waits fail with EOWNERDEAD, and streams
 * that wait continue. With a stream xmem_publish also returns
 *	-EMEDIUMTYPE  the buffer is in memory of the CPU
 *	-EPERM	the buffer is held for reading
 *	-ENODEV, -ENOMEM, -EINVAL, -EIO  the driver refuses; the error has its result
 *	-EINTR, -ECANCELED  the wait for the stream ended; the work in the stream continues
 *
 * A stream that is captured into a graph takes no call of xmem, and no copy: these calls fail with
 *	-EPERM	the stream is captured, or is a default stream that is ordered with a captured one
 * before they change anything, and the capture stays valid. Capture only the program's own work,
 * because the graph would repeat a call for the buffer of the capture. Before each cuGraphLaunch,
 * call xmem_wait_on and put the addresses of the buffers into the graph
 * (cuGraphExecKernelNodeSetParams); after cuGraphLaunch, call xmem_publish or xmem_release_on:
 * "Graphs" in docs/cuda.md.
 *
 * Without xmem_wait_on, the first xmem_cuda_ptr, xmem_cuda_ptr_mut or copy of the buffer waits in
 * the calling thread until the contents are complete. A program that makes no calls with a stream
 * must synchronize its streams before it publishes or releases. Before xmem_set_ref_count, which
 * has no form for streams, always synchronize them.
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
 * after this call comes after the contents. For a buffer from xmem_acquire_cuda the stream waits
 * for contents that this client has published in the buffer on a stream, and for copies (copy.h)
 * into and out of the buffer.
 *
 * If the contents are complete, the call puts nothing into the stream. If the GPU cannot wait, or
 * xmemd has ended, the calling thread waits. Keep the handle until all work that reads the contents
 * has been put into the stream, and then drop the handle by xmem_release_on.
 *
 * Returns: 0, or
 *	-EOWNERDEAD  the writer's process ended before its GPU had finished the contents
 *	-EMEDIUMTYPE, -ENODEV, -ENOMEM, -EINVAL, -EIO  as xmem_publish with a stream
 *	-EPERM	the stream is captured
 *	-EINTR, -ECANCELED, -ENOTCONN  the thread had to wait: as xmem_receive
 * Threads: any. Since: 0.5.
 */
int xmem_wait_on(struct xmem_buffer *buffer, struct CUstream_st *stream);

/*
 * Wait in this thread until the contents of a buffer are complete.
 * @timeout_ns: nanoseconds to wait; 0: only look, which works even after xmem_cancel.
 * Returns: 0, or
 *	-EAGAIN		they are not complete, and timeout_ns is 0; -ETIMEDOUT not complete in time
 *	-EOWNERDEAD  the contents will never be complete: the writer's process has ended
 *	-EIO, -ESHUTDOWN  this process writes the contents, and its GPU or the driver has failed
 *	-EMEDIUMTYPE  the buffer is in memory of the CPU
 *	-EINVAL	also: the timeout is negative
 *	-EINTR, -ECANCELED, -ENOTCONN  as xmem_receive: xmem_pool_close ends the waits that are
 *		under way, and after it new waits for buffers that are still held are possible
 * Threads: any. Since: 0.5.
 */
int xmem_wait_contents(struct xmem_buffer *buffer, int64_t timeout_ns);

/* In xmem_release_on, all streams of the primary context of the buffer's GPU. */
#define XMEM_ALL_STREAMS	((struct CUstream_st *)-1)

/*
 * Drop a handle when a stream has done all work that is in the stream at the call.
 * @buffer: any handle for reading. Its buffer may also be in memory of the CPU, if the stream
 *	copies from there.
 * @stream: its work at the call may still read the contents. XMEM_ALL_STREAMS: the work of all
 *	streams may. The handle then waits for the whole GPU, so nothing that waits for this buffer
 *	may keep a stream of the GPU waiting. Streams of other contexts, as of other GPUs, do not
 *	count. Use XMEM_ALL_STREAMS if you do not know the streams, or if a stream may have been
 *	destroyed. While a stream is captured, the buffer stays held; the capture of a blocking
 *	stream stays valid, and the driver makes the capture of a non-blocking stream invalid.
 *
 * The handle is gone for the caller at once, and the buffer is held until the stream has done this
 * work. The library learns of the end up to a millisecond later, because the stream only writes a
 * word in memory. So an xmem_acquire that does not wait may find no buffer just after the stream
 * has been synchronized. If the process ends before the work does, the host keeps the buffer until
 * the GPU can no longer read the contents.
 *
 * Returns: 0, or -EPERM (the buffer is being written, or the stream is captured), -EINVAL, -EBADF,
 * -ECHILD, -ENODEV, -EIO; after an error the handle is unchanged.
 * Ownership: ends here. Threads: any. Since: 0.5.
 */
int xmem_release_on(struct xmem_buffer *buffer, struct CUstream_st *stream);

#ifdef __cplusplus
}
#endif
#endif
