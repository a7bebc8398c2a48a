/* SPDX-License-Identifier: MIT */
/*
 * The library's own threads, which the program does not know of, and which call the driver and
 * functions of the program. They must not do so while the process ends, because the driver ends
 * too. So each of them stops at its next step, and the ending process waits a moment for this.
 */
#ifndef XMEM_CUDA_OWN_H
#define XMEM_CUDA_OWN_H

#include "core/env.h"

/* Between these two, the calling thread is one of the library's own. */
void xl_own_begin(void);
void xl_own_end(void);

/* If exit has begun, one of these threads never returns from here. Under no lock. */
void xl_own_park(void);

/* The process ends: stop these threads. */
void xl_own_stop(void);

extern u32 xl_own_stopped __attribute__((visibility("hidden")));	/* atomic; for tests */

#endif
