/* SPDX-License-Identifier: MIT */
/*
 * Threads of the library's own that call the driver and the program's functions, of which the
 * program does not know. When the process ends they must not do so any more, because the driver
 * ends too: each stops at its next step, and the process waits a moment for what it is doing.
 */
#ifndef XMEM_CUDA_OWN_H
#define XMEM_CUDA_OWN_H

#include "core/env.h"

/* This thread is one of them, from the first to the second. */
void xl_own_begin(void);
void xl_own_end(void);

/* Has exit begun? Then one of these threads never returns from here. Under no lock. */
void xl_own_step(void);

/* The process ends. */
void xl_own_stop(void);

extern u32 xl_own_stopped __attribute__((visibility("hidden")));	/* atomic; for tests */

#endif
