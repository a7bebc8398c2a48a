/* SPDX-License-Identifier: MIT */
/*
 * Memory of GPUs in this process: what it has made, what a program has handed over, and what it has
 * opened of other processes. Each is one struct with a count, and the last one who puts it frees
 * or closes it, in any thread.
 *
 * All are in one register, found by the 64 bytes by which other processes name them. So each
 * allocation is opened once in a process, however many pools bring it, and the process that has
 * made it finds its own address. One lock covers the look, the opening and the entry, and
 * the removal and the closing, so that nothing is opened while it is being closed.
 */
#ifndef XMEM_CUDA_MEMORY_H
#define XMEM_CUDA_MEMORY_H

#include "lib/cuda/device.h"

/* By which mechanism others get it. */
enum xl_memory_kind {
	XL_MEMORY_FILE,		/* a descriptor, which keeps the memory */
	XL_MEMORY_HANDLE,	/* a handle of the driver's; it goes with its exporter */
	XL_MEMORY_POOL,		/* a descriptor of a memory pool, and a pointer into that */
};

/* Others get whole blocks of so many bytes, so memory that is made here has whole blocks. */
#define XL_MEMORY_BLOCK		(2ULL << 20)

typedef void xl_memory_done(void *user);

struct xl_memory {
	struct xl_memory *next;	/* in the register */
	struct xl_memory *mates;	/* taken: that are given back together with this one */
	u32 users;		/* under the register's lock */
	enum xl_memory_kind kind;
	bool made;		/* here; else it was opened, or is the program's: */
	bool taken;
	struct xl_gpu *gpu;
	u8 handle[XMEM_HANDLE_BYTES];
	u64 address;
	u64 bytes;
	CUmemoryPool pool;	/* POOL, opened: that it is from */
	xl_memory_done *done;	/* taken: to be called with user once all have put it; or NULL */
	void *user;
};

/* What the host says of memory that is to be opened. */
struct xl_memory_name {
	enum xl_memory_kind kind;
	const u8 *handle;
	u64 bytes;
};

/*
 * Make memory of at least @bytes, FILE or HANDLE. 0, or -errno, noted, and then nothing is left.
 * *ret_fd is the descriptor to be attached, the caller's, or -1.
 */
int xl_memory_make(struct xl_gpu *gpu, enum xl_memory_kind kind, u64 bytes,
		   struct xl_memory **ret, int *ret_fd);

/*
 * Open memory of another process, or find it; @fd stays the caller's. 0, or -errno, noted. The
 * caller is one more user.
 */
int xl_memory_open(struct xl_gpu *gpu, const struct xl_memory_name *name, int fd,
		   struct xl_memory **ret);

/*
 * Take the program's memory, of which @at is a part of @bytes: the whole allocation is found, and
 * the best mechanism for it. 0, or -errno, noted. *ret_offset is where @at is in it.
 */
int xl_memory_take(void *at, u64 bytes, struct xl_memory **ret, u64 *ret_offset, int *ret_fd);

/*
 * One user less. false: it was the last one of another process's memory, and the driver has not
 * closed that, so its owner must not free it before this process has ended. Under no lock of this
 * library, because it may call the program's `done`.
 */
bool xl_memory_put(struct xl_memory *memory);

/*
 * What the driver has failed to give back, and where that can be tried again without harm, is
 * tried again by this, and whenever memory is made or put.
 */
void xl_memory_retry(void);
/* Bytes of it that are there still, and of what was made and the driver failed to free for good. */
u64 xl_memory_stuck(void);

#endif
