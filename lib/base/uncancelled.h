/* SPDX-License-Identifier: MIT */
/*
 * No function of the library is a cancellation point. If pthread_cancel ended a thread inside such
 * a function, a lock would stay taken, a wait counted, or a descriptor open. So the library calls
 * cancellation points of the C library (read, write, poll, send, open, close, nanosleep and so on)
 * only while cancellation is off. A block that calls one begins with
 *
 *	XL_UNCANCELLED;
 *
 * At the end of the block, however it is left, the former cancel state is restored. Under the fork
 * lock, cancellation is off as well. The test P9_no_function_is_a_cancellation_point finds places
 * without this macro.
 */
#ifndef XMEM_UNCANCELLED_H
#define XMEM_UNCANCELLED_H

#include <pthread.h>

static inline int xl_cancel_off(void)
{
	int before;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	return before;
}

static inline void xl_cancel_as(const int *before)
{
	pthread_setcancelstate(*before, NULL);
}

#define XL_UNCANCELLED \
	__attribute__((cleanup(xl_cancel_as), unused)) const int xl_before_ = xl_cancel_off()

#endif
