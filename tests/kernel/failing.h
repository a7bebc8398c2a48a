/* SPDX-License-Identifier: MIT */
/*
 * Allocations and copies to or from user memory that fail: the kernel fails the nth of one
 * thread. Only debug kernels can do it.
 */
#ifndef XMEM_KERNEL_FAILING_H
#define XMEM_KERNEL_FAILING_H

#include <stdbool.h>

/* The knob of the calling thread; or -1: the kernel has none. */
int failing_open(void);
/* Everything may fail, without a word in the log for each. NULL, or the knob that cannot be set. */
const char *failing_prepare(void);
/* The nth from now on fails; 0: none does. */
void failing_arm(int knob, unsigned int n);
/* Did the nth fail? If not, that many would have had to follow. None fails from now on. */
bool failing_disarm(int knob);

#endif
