/* SPDX-License-Identifier: MIT */
/*
 * The memory of buffers: its kinds, when it is made, and when it goes back to the system. A part of
 * xmem.h, whose general rules apply.
 */
#ifndef XMEM_MEMORY_H
#define XMEM_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct xmem_pool;

/* The kind of memory. The last three are for GPUs. */
#define XMEM_MEMORY_HUGE	(1u << 0)	/* in huge pages, where the system has some */
#define XMEM_MEMORY_SEALED	(1u << 1)	/* only this writer can ever write it */
#define XMEM_MEMORY_CUDA	(1u << 2)	/* of the GPU `device_id` */
#define XMEM_MEMORY_READERS	(1u << 3)	/* readers get it too, not only writers */
#define XMEM_MEMORY_LEGACY	(1u << 4)	/* shared by the driver's IPC handles, even if the
						 * GPU can export descriptors */

/* All fields but size may be 0. */
struct xmem_preallocate_options {
	size_t size;			/* sizeof(struct xmem_preallocate_options) */
	uint32_t flags;			/* XMEM_MEMORY_* */
	int32_t device_id;		/* with XMEM_MEMORY_CUDA: this process's number of the GPU,
					 * as CUDA counts them */
	uint32_t *ret_slots;		/* NULL, or room for `count` numbers: the slots of the new
					 * buffers (xmem_slot) */
};

/*
 * Make buffers: allocate their memory, all of it now, and attach them to the pool. After that,
 * xmem_acquire (with XMEM_MEMORY_CUDA: xmem_acquire_cuda on that GPU) makes no buffers on demand
 * unless demand_bytes of struct xmem_pool_options says how many bytes. A writer may call this more
 * than once.
 * @bytes: bytes of each buffer.
 * @count: buffers to make.
 * @options: NULL stands for options that are all zero.
 *
 * The buffers take slots of groups of 64 that belong to this writer alone. The writers of a pool
 * have to trust each other: every writer can write contents in place once it alone holds them
 * (xmem_get_mut), unless the memory is XMEM_MEMORY_SEALED. Readers can only read. XMEM_MEMORY_HUGE
 * takes huge pages if the system's pool has enough free ones, and ordinary memory otherwise.
 *
 * Buffers on a GPU (XMEM_MEMORY_CUDA) are for xmem_acquire_cuda alone. A process that opens memory
 * of a GPU can write it, so readers get it only with XMEM_MEMORY_READERS. With XMEM_MEMORY_LEGACY,
 * and where the GPU cannot export descriptors, the memory cannot be written in place, and ends with
 * this client's xmem_pool_close (EOWNERDEAD for clients that access it later).
 *
 * Returns: 0, or an error, and then no buffer has been made:
 *	-EINVAL	a number is 0 or larger than the pool can have; a flag has no meaning, or does not
 *		fit the others; `device_id` is not 0, and XMEM_MEMORY_CUDA is not given
 *	-EPERM	this client is a reader
 *	-ENOSPC	the pool has too few free slots for so many buffers of this writer
 *	-EDQUOT	a limit of the host is reached; or the pool has memory of 16 other GPUs, and must
 *		give back all its memory of one of them first
 *	-EFBIG	one buffer is larger than the files that this process may make (RLIMIT_FSIZE)
 *	-ENOMEM	a cgroup, the machine or the GPU has too little memory left; the message names it.
 *		For a GPU, all pools of this process have first given back the unused memory there
 *		that was made on demand, and the memory there that other processes have closed
 *	-E2BIG, -EMFILE, -EINTR
 * and with XMEM_MEMORY_CUDA
 *	-ENODEV	there is no driver, or no such GPU; the message says why
 *	-EOPNOTSUPP  this GPU, or its driver, has no way to share memory
 *	-EMEDIUMTYPE  the host does not take descriptors of this driver (docs/environment.md)
 *	-ECHILD	as all functions of cuda.h
 *	-EIO	the driver failed; xmem_get_last_error says how
 * Threads: any. Since: 0.1.
 */
int xmem_preallocate(struct xmem_pool *pool, size_t bytes, uint32_t count,
		     const struct xmem_preallocate_options *options);

/*
 * xmem_acquire and xmem_acquire_cuda make buffers on demand, up to demand_bytes of struct
 * xmem_pool_options. This limit counts separately for the CPU and for each GPU. On a GPU, files
 * consist of whole blocks of 2 MiB, and small buffers of one size share a block. Unused files stay
 * for later acquires within cache_bytes and cache_ns (xmem_memory(7)).
 */

#define XMEM_KEEP_ALL	UINT64_MAX

/*
 * Find buffers that are no longer used, and give memory back to the system, now.
 * @pool: NULL: each open pool of this process. Then preallocated buffers stay. Another allocator of
 *	this process that lacks memory calls this function so.
 * @keep: bytes of this writer's unused files that may stay, the most recently used first;
 *	XMEM_KEEP_ALL: all. A reader has none.
 * @ret_bytes: how many bytes have been given back; or NULL.
 *
 * An acquire that finds nothing, and the release of a buffer's last handle, find unused buffers by
 * themselves. Make this call if the memory has to go back, or xmem_pool_stat has to be exact, at a
 * certain moment. With a pool, this call gives back preallocated buffers too. Afterwards
 * xmem_acquire may fail with ENOSPC if it makes no buffers on demand.
 *
 * Returns: how many buffers of this writer were found; or -EBADF, -ECHILD; -EINTR: a signal
 * handler ran while another thread made buffers (not with XMEM_KEEP_ALL). Threads: any. Since: 0.4.
 */
int xmem_collect(struct xmem_pool *pool, uint64_t keep, uint64_t *ret_bytes);

/*
 * Limbo: buffers that are used longer than they should be. Either their owner has ended, and
 * clients hold them or have yet to receive them. Or they are *overdue*: their owner has found no
 * buffer, or has collected, and clients hold them although no subscriber has yet to receive them.
 */
struct xmem_limbo {
	size_t size;			/* valid bytes */
	uint32_t ended;			/* buffers whose owner has ended */
	uint32_t overdue;		/* buffers that their owner wants back */
	uint64_t bytes_ended;
	uint64_t bytes_overdue;
	uint64_t ended_age_ns;		/* since the first of these owners ended */
	uint64_t overdue_age_ns;	/* since an owner first missed one of them */
};

typedef void xmem_limbo_function(struct xmem_pool *pool, const struct xmem_limbo *limbo,
				 void *user);

/*
 * Call a function when a pool has too much in limbo. The library checks this in xmem_collect and
 * xmem_pool_stat of this handle, and in an xmem_acquire that finds nothing. The function runs in
 * that thread.
 * @bytes, @count: there is too much when there are more bytes or more buffers than these.
 * @call: called each time that it becomes too much; NULL: call nothing any more.
 * @user: passed to it.
 *
 * The function may call every function but xmem_pool_close. It must return: longjmp, an exception
 * or pthread_exit would leave the call unfinished for ever, and xmem_pool_close would wait for it.
 *
 * Returns: 0, or -EINVAL, -ECHILD. Threads: any; another thread may still be in the function that
 * was set before. Since: 0.4.
 */
int xmem_limbo_hook(struct xmem_pool *pool, uint64_t bytes, uint32_t count,
		    xmem_limbo_function *call, void *user);

#ifdef __cplusplus
}
#endif
#endif
