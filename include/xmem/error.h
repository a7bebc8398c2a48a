/* SPDX-License-Identifier: MIT */
/* The last error of a thread. A part of xmem.h, which says how functions fail. */
#ifndef XMEM_API_ERROR_H
#define XMEM_API_ERROR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The last error of a thread, and the result of the library's last failed call of a GPU driver. */
struct xmem_error {
	size_t size;			/* in: sizeof(struct xmem_error); out: valid bytes */
	int32_t error;			/* a negative errno; 0: no call has failed */
	int32_t cuda_result;		/* a CUresult; 0: no call of the driver has failed */
	const char *message;		/* "FUNCTION: SENTENCE", without "xmem_"; empty: no error */
	const char *cuda_name;		/* of cuda_result, such as "CUDA_ERROR_OUT_OF_MEMORY" */
};

/*
 * Get the last error of the calling thread and the driver's result, and forget both.
 * @ret_error: NULL, or the caller has set its size field.
 * Returns: a negative errno; 0: no call has failed since the error was last forgotten. -EINVAL can
 * also mean that this call failed: the size field is below sizeof(size_t).
 * Ownership: the message is valid until the thread's next xmem call; the name is constant.
 * Threads: each thread has its own last error. Since: 0.1.
 */
int xmem_get_last_error(struct xmem_error *ret_error);

/*
 * Get the last error and the driver's result without forgetting them.
 * Parameters, Returns, Ownership, Threads: as xmem_get_last_error. Since: 0.1.
 */
int xmem_peek_last_error(struct xmem_error *ret_error);

/* Forget the calling thread's last error and the driver's result. Since: 0.1. */
void xmem_clear_last_error(void);

#ifdef __cplusplus
}
#endif
#endif
