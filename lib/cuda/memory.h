/* SPDX-License-Identifier: MIT */
/*
 * Memory of GPUs in this process. There are three sorts: made by the library, handed over by the
 * program (*taken*), and opened from another process. Each is one struct with a count of users. The
 * last user that puts it frees or closes it, in any thread.
 *
 * All structs are in one register, which finds them by the 64 bytes that name them between
 * processes. So a process opens each allocation once, even if several pools use it, and the process
 * that made it finds its own address. register.h says how threads open and close one allocation one
 * after the other, although no lock is held while the driver is called.
 */
#ifndef XMEM_CUDA_MEMORY_H
#define XMEM_CUDA_MEMORY_H

#include "lib/cuda/device.h"

/* The mechanism by which other processes get the memory. */
enum xl_memory_kind {
	XL_MEMORY_FILE,		/* by a descriptor, which keeps the memory */
	XL_MEMORY_HANDLE,	/* by a handle of the driver; the memory ends with its exporter */
	XL_MEMORY_POOL,		/* by a descriptor of a memory pool, and a pointer into this pool */
};

/*
 * Other processes get whole blocks of this size, so memory that is made here consists of whole
 * blocks.
 */
#define XL_MEMORY_BLOCK		(2ULL << 20)

typedef void xl_memory_done(void *user);

struct xl_memory {
	struct xl_memory *next;	/* in the register */
	struct xl_memory *mates;	/* taken: other memory that is given back together with
					 * this one */
	u32 users;		/* under the register's lock */
	bool changing;		/* a thread opens or closes it; under that lock */
	enum xl_memory_kind kind;
	bool made;		/* by this process; if neither made nor taken, it was opened */
	bool taken;		/* handed over by the program */
	struct xl_gpu *gpu;
	u8 handle[XMEM_HANDLE_BYTES];
	u64 address;
	u64 bytes;
	bool shared;		/* the driver has let the GPU's peers access it */
	CUmemoryPool pool;	/* POOL, opened: the pool of the memory */
	xl_memory_done *done;	/* taken: called with @user when all users have put it; or NULL */
	void *user;
};

/* How the host describes memory that is to be opened. */
struct xl_memory_name {
	enum xl_memory_kind kind;
	const u8 *handle;
	u64 bytes;
};

/*
 * Make memory of at least @bytes, FILE or HANDLE. 0, or -errno, noted; then nothing is left.
 * *ret_fd is the descriptor to attach, which belongs to the caller, or -1.
 */
int xl_memory_make(struct xl_gpu *gpu, enum xl_memory_kind kind, u64 bytes,
		   struct xl_memory **ret, int *ret_fd);

/* How many bytes memory of at least @bytes takes on the GPU. */
u64 xl_memory_bytes(const struct xl_gpu *gpu, u64 bytes);

/* How many bytes are free on the GPU, for all processes. 0, or -errno, noted. */
int xl_memory_free_bytes(struct xl_gpu *gpu, u64 *ret);

/*
 * Open memory of another process, or find it if it is open already. @fd stays the caller's. The
 * caller becomes one more user. 0, or -errno, noted.
 */
int xl_memory_open(struct xl_gpu *gpu, const struct xl_memory_name *name, int fd,
		   struct xl_memory **ret);

/*
 * Take over the program's memory, of which @at is a part of @bytes: find the whole allocation, and
 * the best mechanism for it. *ret_offset is the offset of @at in it. 0, or -errno, noted.
 */
int xl_memory_take(void *at, u64 bytes, struct xl_memory **ret, u64 *ret_offset, int *ret_fd);

/*
 * Let the peers of its GPU access memory that has just been mapped, if the driver can do that
 * without their contexts.
 */
void xl_memory_share(struct xl_memory *memory);
/*
 * May work on @gpu use the address of the memory? If the driver gives access only on demand, demand
 * it. 0, or -errno, noted: EXDEV.
 */
int xl_memory_reach(const struct xl_memory *memory, struct xl_gpu *gpu);

/*
 * Drop one user. false: it was the last user of another process's memory, and the driver failed to
 * close it. Then the owner must not free the memory before this process has ended. It may call the
 * program's `done`, so the caller holds no lock of this library.
 */
bool xl_memory_put(struct xl_memory *memory);

/*
 * Try again to free memory that the driver failed to free, if a second try is harmless. Making and
 * putting memory try this too.
 */
void xl_memory_retry(void);
/* How many bytes of such memory are there, and of memory that was made and can never be freed? */
u64 xl_memory_stuck(void);

#endif
