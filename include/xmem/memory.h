/* SPDX-License-Identifier: MIT */
/*
 * The memory of buffers: its kinds, and when it is made and given back. A part of xmem.h.
 *
 * xmem_acquire and xmem_acquire_cuda make buffers on demand, up to demand_bytes of struct
 * xmem_pool_options in each place (CPU or GPU). The buffers lie in files. A file whose buffers are
 * all unused is kept for later acquires as far as cache_bytes and cache_ns allow (xmem_memory(7)).
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
#define XMEM_MEMORY_LEGACY	(1u << 4)	/* shared by IPC handles, not by descriptors */

/* The buffers that xmem_preallocate makes. */
struct xmem_preallocate_options {
	size_t size;			/* sizeof(struct xmem_preallocate_options) */
	uint32_t flags;			/* XMEM_MEMORY_* */
	int32_t device_id;		/* the GPU's number in this process; else 0 */
	uint32_t *ret_slots;		/* NULL, or an array for the `count` slot numbers */
};

/*
 * Make @count buffers of @bytes bytes: allocate all of their memory now, and attach them to the
 * pool. After that, xmem_acquire (or xmem_acquire_cuda on that GPU) makes no buffers on demand if
 * demand_bytes of struct xmem_pool_options is 0. Every writer can
 * write contents in place once it alone holds them (xmem_get_mut), unless the memory is
 * XMEM_MEMORY_SEALED.
 * Returns: 0, or an error, and then no buffer has been made:
 *	-EINVAL	a number is 0 or too large, or a flag does not fit the others
 *	-ENOSPC	the pool has too few free slots for so many buffers of this writer
 *	-EDQUOT	also: the pool has memory of 16 other GPUs
 *	-EFBIG	a buffer is larger than the files that this process may make (RLIMIT_FSIZE)
 *	-ENOMEM	a cgroup, the machine or the GPU has too little memory left; the message names it
 *	-EPERM, -E2BIG, -EMFILE, -EINTR
 *	-ENODEV, -EOPNOTSUPP, -ECHILD, -EIO  with XMEM_MEMORY_CUDA: as all functions of cuda.h
 *	-EMEDIUMTYPE  the host does not take descriptors of this driver
 * Since: 0.1.
 */
int xmem_preallocate(struct xmem_pool *pool, size_t bytes, uint32_t count,
		     const struct xmem_preallocate_options *options);

#define XMEM_KEEP_ALL	UINT64_MAX

/*
 * Find buffers that are no longer used, and give memory back to the system, now.
 * @pool: NULL: each open pool of this process. Preallocated buffers go only with a pool.
 * @keep: bytes of unused files that may stay, the most recently used first; XMEM_KEEP_ALL: all.
 * @ret_bytes: how many bytes have been given back; or NULL.
 * Returns: how many buffers of this writer were found; or -EBADF, -ECHILD; -EINTR: a signal handler
 * ran while another thread made buffers (not with XMEM_KEEP_ALL). Since: 0.4.
 */
int xmem_collect(struct xmem_pool *pool, uint64_t keep, uint64_t *ret_bytes);

/*
 * Limbo: used buffers whose *owner*, the client that made them, has ended; and *overdue* buffers,
 * which all subscribers have received, which some client still holds, and which the owner needs.
 */
struct xmem_limbo {
	size_t size;			/* valid bytes */
	uint32_t ended;			/* buffers whose owner has ended */
	uint32_t overdue;		/* buffers that their owner wants back */
	uint64_t bytes_ended;
	uint64_t bytes_overdue;
	uint64_t ended_age_ns;		/* since the first of these owners ended */
	uint64_t overdue_age_ns;	/* since an owner first needed one of them */
};

typedef void xmem_limbo_function(struct xmem_pool *pool, const struct xmem_limbo *limbo,
				 void *user);

/*
 * Call a function when a pool has more than @bytes bytes or @count buffers in limbo. xmem_collect,
 * xmem_pool_stat and an xmem_acquire that finds nothing check this, and call it in their thread.
 * @call: called with @user each time that a limit is newly passed; NULL: call nothing any more. It
 *	may call every function but xmem_pool_close, and must return.
 * Returns: 0, or -EINVAL, -ECHILD. Threads: any; another may still run the previous function.
 * Since: 0.4.
 */
int xmem_limbo_hook(struct xmem_pool *pool, uint64_t bytes, uint32_t count,
		    xmem_limbo_function *call, void *user);

#ifdef __cplusplus
}
#endif
#endif
