/* SPDX-License-Identifier: MIT */
/*
 * The last error of a thread. A part of xmem.h, which says how functions fail.
 */
#ifndef XMEM_API_ERROR_H
#define XMEM_API_ERROR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Get the last error of the calling thread, and forget it.
 * @ret_message: a sentence about it, empty if there is none; may be NULL.
 * Returns: a negative errno; 0: no call has failed since the error was last forgotten.
 * Ownership: the message is the library's and valid until the thread's next xmem call.
 * Threads: each thread has its own last error. Since: 0.1.
 */
int xmem_get_last_error(const char **ret_message);

/*
 * Get the last error of the calling thread without forgetting it.
 * Parameters, Returns, Ownership, Threads: as xmem_get_last_error. Since: 0.1.
 */
int xmem_peek_last_error(const char **ret_message);

/*
 * Forget the last error of the calling thread.
 * Threads: each thread has its own last error. Since: 0.1.
 */
void xmem_clear_last_error(void);

#ifdef __cplusplus
}
#endif
#endif
