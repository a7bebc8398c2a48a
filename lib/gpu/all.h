/* SPDX-License-Identifier: MIT */
/*
 * All streams of a GPU's primary context, for callers that cannot name the streams that use a
 * buffer. The context's work so far is recorded in an event (cuCtxRecordEvent), and a stream of the
 * library's waits for this event.
 */
#ifndef XMEM_GPU_ALL_H
#define XMEM_GPU_ALL_H

#include "lib/base/handle.h"
#include "lib/cuda/device.h"

/*
 * Find a stream of the library's in which later work comes after all work that the context's
 * streams have now. pre: the caller is between xl_gpu_enter and xl_gpu_leave of @gpu. Returns the
 * driver's result:
 *	CUDA_ERROR_NOT_SUPPORTED  the driver records no event of a context
 *	CUDA_ERROR_STREAM_CAPTURE_*  a stream of the context is captured
 * If a blocking stream is captured, its capture stays valid. The capture of another stream becomes
 * invalid, because only the driver knows of it.
 */
CUresult xl_all_streams(struct xl_gpu *gpu, CUstream *ret);

/*
 * Drop a handle in a thread of the library's, when all that work is done. This serves drivers that
 * record no event of a context, and buffers that are dropped while a stream is captured. pre: the
 * handle has XL_LEAVING, and leaves_in is NULL. All callers must give one function as @drop, which
 * must not call the driver. false: there is no memory for a thread.
 */
bool xl_all_drop_late(struct xl_gpu *gpu, void (*drop)(struct xmem_buffer *buffer),
		      struct xmem_buffer *buffer);

#endif
