/* SPDX-License-Identifier: MIT */
/*
 * Allocations and copies to or from user memory that fail: the kernel fails the nth one of a
 * thread. Only debug kernels can do it.
 */
#ifndef XMEM_KERNEL_FAILING_H
#define XMEM_KERNEL_FAILING_H

#include <stdbool.h>

/* The knob of the calling thread, or -1 if the kernel has none. */
int failing_open(void);
/* Lets all of them fail, and logs none. Returns NULL, or the knob that cannot be set. */
const char *failing_prepare(void);
/* The nth one from now on fails. With 0, none does. */
void failing_arm(int knob, unsigned int n);
/* Did the nth one fail? If not, there were fewer than n. From now on none fails. */
bool failing_disarm(int knob);

#endif
