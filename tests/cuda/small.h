/* SPDX-License-Identifier: MIT */
/*
 * Small drivers do things that a whole one never does: each call counts itself and does nothing,
 * the first one returns the result that the test sets, and some drivers lack a call. See small.c.
 */
#ifndef XMEM_CUDA_SMALL_H
#define XMEM_CUDA_SMALL_H

/* The state of one driver. The test has it in memory that it shares with its children. */
struct small {
	unsigned long calls;		/* of all functions; atomic, as the next two */
	unsigned long starts;		/* of cuInit */
	unsigned long releases;		/* of cuDevicePrimaryCtxRelease_v2 */
	int start;			/* what cuInit returns */
	int release;			/* what the release returns */
	int devices, version;
	void (*in_start)(void);		/* called by cuInit; or NULL */
};

/* The driver's own function: from now on it uses that struct. */
typedef void small_use_function(struct small *small);

#endif
