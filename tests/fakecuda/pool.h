/* SPDX-License-Identifier: MIT */
/* Shared by the files about memory pools. */
#ifndef FAKE_POOL_H
#define FAKE_POOL_H

#include "memory.h"
#include "vmm.h"

/* Attributes by number; those below are 32 bits wide. */
enum { RELEASE_THRESHOLD = 4, RESERVED_CURRENT, RESERVED_HIGH, USED_CURRENT, USED_HIGH };

struct fk_pool {
	struct fk_pool *next;		/* in the list of all; memory_lock guards all fields */
	struct fk_span *span;		/* NULL: it is gone */
	struct fk_device *device;
	unsigned int handle_types;
	bool is_default, imported, destroyed;
	uint64_t attribute[9];		/* by number */
};

/* The pool that the caller means, or NULL if there is no such one. */
struct fk_pool *fk_pool_find_locked(struct fk_pool *wanted);
/* Takes the backing over. */
CUresult fk_pool_make_locked(struct fk_backing *backing, struct fk_device *device,
			     CUdeviceptr avoid, struct fk_pool **ret_pool);
struct fk_control *fk_pool_control_locked(const struct fk_pool *pool);
/* Forgets a destroyed pool once none of its memory is used any more. */
void fk_pool_reap_locked(struct fk_pool *pool);

#endif
