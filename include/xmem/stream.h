/* SPDX-License-Identifier: MIT */
/*
 * Order on streams of a GPU: buffers that are published before the GPU has written them, and
 * released before it has read them. A part of xmem.h, whose rules for errors, handles, threads and
 * structs hold here too.
 *
 * A stream is a CUstream of CUDA's driver, which is the same as a cudaStream_t of its runtime. NULL
 * is the default stream of the buffer's GPU, in its primary context, which is that of the runtime;
 * for a buffer in memory of the CPU that of GPU 0. Nothing here waits for a stream unless it says
 * so. The copies of copy.h keep the same order.
 *
 *	writer                                   reader
 *	b = xmem_acquire_cuda(...)               b = xmem_receive(...)
 *	xmem_wait_on(b, stream)                  xmem_wait_on(b, stream)
 *	kernel writes xmem_cuda_ptr_mut(b)       kernel reads xmem_cuda_ptr(b)
 *	xmem_publish(b, &options, NULL)          xmem_release_on(b, stream)
 *
 * There options.stream is the stream: all that has been put into it so far, writes the contents. If
 * copies of copy.h into the buffer are in other streams, it waits for them first. The default
 * stream is CU_STREAM_LEGACY in these options, (CUstream)1, or CU_STREAM_PER_THREAD, (CUstream)2,
 * as NULL says there that the contents are complete. Receivers get the buffer at once. If the
 * process ends before the stream has got there, those who wait get EOWNERDEAD, and streams that
 * wait go on. A buffer from xmem_get_mut is published when the stream has done what was put into
 * it; xmem_publish waits for that in the thread. With a stream xmem_publish also returns
 *	-EMEDIUMTYPE  the buffer is in memory of the CPU
 *	-EPERM	the buffer is held for reading
 *	-ENODEV, -ENOMEM, -EINVAL, -EIO  the driver refuses; xmem_get_last_error says how
 *	-EINTR, -ECANCELED  the wait for the stream was ended; the work in the stream goes on
 *
 * Without xmem_wait_on the first xmem_cuda_ptr, xmem_cuda_ptr_mut or copy of the buffer waits, in
 * the calling thread, until the GPU has finished the contents. A program that uses none of these
 * functions synchronises its streams before it publishes and before it releases.
 *
 * Between two processes the order is kept by a 64-bit word in the pool's pages, which the GPUs
 * write and wait for. Where a device cannot do that (xmem_cuda_device_query: MEMOPS, REGISTER, and
 * on the module for readers REGISTER_READ_ONLY), a host function in the writer's stream writes the
 * word, and a client that waits does so in its thread.
 *
 * xmem_set_ref_count has no form for streams: the program synchronises what else it has put into
 * streams, such as kernels, before it counts a buffer. A client that gets it waits only for the
 * copies of copy.h.
 *
 * xmem_pool_close waits for the streams that have yet to write what this client has published, and
 * for copies with buffers that it was writing. So does whoever drops the last handle of the pool
 * after that.
 * It then waits for all work of the GPUs on which this process has published or waited in the pool
 * on streams, by xmem_wait_on and by copies on streams, also in streams that have nothing to do
 * with it: only so can the driver let go of the pool's pages. If xmemd has ended, it first waits
 * until the processes have written or ended for which streams of this one wait.
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
 * Let a stream wait until the contents of a buffer are complete: work that is put into it from now
 * on comes after them. For a buffer from xmem_acquire_cuda these are what streams have yet to do
 * with it: contents that this client has published in it before, on a stream, and the copies
 * of copy.h into it or out of it. The program itself waits for other work in streams, such as
 * kernels that write a buffer that is then released.
 *
 * If the contents are complete already it does nothing. Where the GPU cannot wait for the word, and
 * once xmemd has ended, the calling thread waits. This takes no hold: a program that waits so keeps
 * its handle until the stream has read the contents, and drops it by xmem_release_on. The copies of
 * copy.h without a stream do not rely on it, and wait by themselves.
 *
 * Returns: 0, or
 *	-EOWNERDEAD  the writer's process has ended before its GPU had finished the contents
 *	-EMEDIUMTYPE, -ENODEV, -ENOMEM, -EINVAL, -EIO  as xmem_publish with a stream
 *	-EINTR, -ECANCELED, -ENOTCONN  the thread had to wait: as xmem_receive
 * Threads: any. Since: 0.5.
 */
int xmem_wait_on(struct xmem_buffer *buffer, struct CUstream_st *stream);

/*
 * Wait in this thread until the contents of a buffer are complete.
 * @timeout_ns: nanoseconds to wait; 0: only look, which xmem_cancel does not end.
 *
 * After a stream that has waited by xmem_wait_on has done its work, this tells with timeout 0
 * whether what it has read was complete.
 *
 * Returns: 0, or
 *	-EAGAIN		they are not, and timeout_ns is 0; -ETIMEDOUT after another time
 *	-EOWNERDEAD	they will never be: the writer's process has ended before
 *	-EIO, -ESHUTDOWN  this process writes them, and its GPU or the driver works no more
 *	-EMEDIUMTYPE	the buffer is in memory of the CPU
 *	-EINVAL	also: the timeout is negative
 *	-EINTR, -ECANCELED, -ENOTCONN  as xmem_receive: the close of the pool ends waits that are
 *		under way, and a handle that is kept beyond it can be waited for again
 * Threads: any. Since: 0.5.
 */
int xmem_wait_contents(struct xmem_buffer *buffer, int64_t timeout_ns);

/*
 * Drop a handle once a stream has got there.
 * @buffer: any handle for reading, also of memory of the CPU, which the stream copies from.
 * @stream: all that has been put into it so far may still read the contents.
 *
 * The handle is gone at once for the caller. The buffer is held until the stream has done what was
 * put into it before; a thread of the driver drops the hold then. If the process ends before, the
 * host keeps the buffer until the GPU can no longer read it. If the context of the GPU is lost,
 * nothing runs in its streams any more: this call then fails (EIO), and drops the handles that were
 * to be dropped by streams of that context, whatever memory they are of. Where the process has
 * several GPUs and the driver no longer says of which one @stream is, it takes the buffer's, or GPU
 * 0 for memory of the CPU.
 *
 * While a stream is captured the handle is dropped when the graph first runs.
 *
 * Returns: 0, or -EPERM (the buffer is being written), -EINVAL, -EBADF, -ECHILD, -ENODEV, -EIO;
 * after an error the handle is as before.
 * Ownership: ends here. Threads: any. Since: 0.5.
 */
int xmem_release_on(struct xmem_buffer *buffer, struct CUstream_st *stream);

#ifdef __cplusplus
}
#endif
#endif
