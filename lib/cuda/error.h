/* SPDX-License-Identifier: MIT */
/*
 * The driver's results as errors of this library: an errno, a sentence, and the thread's last
 * result.
 */
#ifndef XMEM_CUDA_ERROR_H
#define XMEM_CUDA_ERROR_H

#include <stdbool.h>

#include "lib/cuda/types.h"

/*
 * A call of the driver has failed with @result. Make it the thread's last result, and make @format
 * and the result's name and number the thread's last error. Returns -errno:
 *
 *	ENOMEM      no memory, of the GPU or the host
 *	ENODEV      no such device, or it is in use, lost or not ready
 *	ECHILD      this process was forked from one that had used the driver
 *	ESHUTDOWN   the driver has been torn down, as the process is ending; see xl_cuda_freed
 *	EINVAL      the driver finds a value, a handle or the context wrong
 *	EPERM       not allowed here, such as in a callback or while a stream is captured
 *	EOPNOTSUPP  the device or the driver lacks this ability
 *	EBUSY, EALREADY, EAGAIN, ETIMEDOUT, ENOENT, EUSERS   as the driver says
 *	EIO         all other errors, above all those that make a context unusable for good
 *
 * @format says what was tried, without a full stop: "GPU 0 gives no 4096 bytes".
 */
int xl_cuda_fail(CUresult result, const char *format, ...)
	__attribute__((format(printf, 2, 3), cold));

/* Has a call that frees something freed it, or did the driver free it when it was torn down? */
static inline bool xl_cuda_freed(CUresult result)
{
	return result == CUDA_SUCCESS || result == CUDA_ERROR_DEINITIALIZED;
}

/* Is the context lost, so that nothing runs in it any more and every call fails? */
bool xl_cuda_is_lost(CUresult result);

/* "CUDA_ERROR_..." or "hipError..." for any number; constant. */
const char *xl_cuda_name(CUresult result);
/* The name, or NULL if this file does not know it. */
const char *xl_cuda_known_name(CUresult result);

/* Advice about a result: a sentence without its full stop; "": none. */
const char *xl_cuda_advice(CUresult result);

/* The -errno for a result. pre: it is not CUDA_SUCCESS. */
int xl_cuda_errno(CUresult result);

#endif
