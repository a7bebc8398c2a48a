/* SPDX-License-Identifier: MIT */
/*
 * No function of the library is a cancellation point. A thread that pthread_cancel ended in the
 * middle of one would leave a lock taken, a wait counted, or a descriptor open. The C library's
 * cancellation points (read, write, poll, send, open, close, nanosleep and so on) are therefore
 * called only while cancellation is off. A block that calls one begins with
 *
 *	XL_UNCANCELLED;
 *
 * and what cancellation was before is restored at the block's end, however it is left. With the
 * fork lock cancellation is off as well. P9_no_function_is_a_cancellation_point finds those that
 * were forgotten.
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
