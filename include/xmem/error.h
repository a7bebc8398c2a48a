/* SPDX-License-Identifier: MIT */
/* The last error of a thread. A part of xmem.h, which says how functions fail. */
#ifndef XMEM_API_ERROR_H
#define XMEM_API_ERROR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The driver's result is that of the last call of the GPUs' driver that failed in this library. A
 * later error that has nothing to do with CUDA leaves it as it is. 3, CUDA_ERROR_NOT_INITIALIZED,
 * is also the result if there is no driver, if it is too old, and in a forked child.
 */
struct xmem_error {
	size_t size;			/* in: sizeof(struct xmem_error); out: valid bytes */
	int32_t error;			/* a negative errno; 0: no call has failed */
	int32_t cuda_result;		/* a CUresult; 0: no call of the driver has failed */
	const char *message;		/* the function without "xmem_", a colon, and a sentence
					 * about the error; empty if there is none */
	const char *cuda_name;		/* of cuda_result, such as "CUDA_ERROR_OUT_OF_MEMORY";
					 * "CUDA_SUCCESS" if it is 0 */
};

/*
 * Get the last error of the calling thread and the driver's result, and forget both.
 * @ret_error: its size field is set; may be NULL.
 * Returns: a negative errno; 0: no call has failed since the error was last forgotten. -EINVAL is
 * also the error of this call if the size field is smaller than itself.
 * Ownership: the message is the library's and valid until the thread's next xmem call; the name is
 * constant. Threads: each thread has its own last error. Since: 0.1.
 */
int xmem_get_last_error(struct xmem_error *ret_error);

/*
 * Get the last error and the driver's result without forgetting them.
 * Parameters, Returns, Ownership, Threads: as xmem_get_last_error. Since: 0.1.
 */
int xmem_peek_last_error(struct xmem_error *ret_error);

/*
 * Forget the last error of the calling thread, and the driver's result.
 * Threads: each thread has its own last error. Since: 0.1.
 */
void xmem_clear_last_error(void);

#ifdef __cplusplus
}
#endif
#endif
