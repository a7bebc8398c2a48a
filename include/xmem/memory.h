/* SPDX-License-Identifier: MIT */
/*
 * The memory of buffers: its kinds, when it is made, and when it goes back to the system. A part of
 * xmem.h, whose rules for errors, handles, threads and structs hold here too.
 */
#ifndef XMEM_MEMORY_H
#define XMEM_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct xmem_pool;

/* The kind of memory. The last two are for memory of a GPU. */
#define XMEM_MEMORY_HUGE	(1u << 0)	/* in huge pages, where the system has some */
#define XMEM_MEMORY_SEALED	(1u << 1)	/* only this writer can ever write it */
#define XMEM_MEMORY_CUDA	(1u << 2)	/* of the GPU `device_id` */
#define XMEM_MEMORY_READERS	(1u << 3)	/* readers get it too, not only writers */
#define XMEM_MEMORY_LEGACY	(1u << 4)	/* by the driver's IPC handles, also where there are
						 * descriptors */

/* All fields but size may be 0. */
struct xmem_preallocate_options {
	size_t size;			/* sizeof(struct xmem_preallocate_options) */
	uint32_t flags;			/* XMEM_MEMORY_* */
	int32_t device_id;		/* with XMEM_MEMORY_CUDA: this process's number of the GPU,
					 * as CUDA counts them */
	uint32_t *ret_slots;		/* NULL, or room for as many numbers as buffers are made:
					 * the slots that they have got (xmem_slot) */
};

/*
 * Make buffers: allocate their memory, all of it now, and attach them to the pool. A writer does so
 * before it acquires, and may do so again. After that, xmem_acquire makes no buffers on demand,
 * unless demand_bytes of struct xmem_pool_options says how many bytes it may. Buffers on a GPU are
 * for xmem_acquire_cuda alone.
 * @bytes: bytes of each.
 * @count: buffers to make.
 * @options: NULL stands for options that are all zero.
 *
 * The buffers take slots of groups that belong to this writer alone; when those are full, the
 * writer gets a further group of 64 slots. A file has at most 64 buffers and, unless one buffer is
 * larger, about 16 MB; with more than 1024 large buffers it has as many as it takes for 1024 files.
 * When this writer has ended, a buffer that somebody still uses keeps its whole file (bytes_kept of
 * struct xmem_pool_info).
 *
 * The memory cgroups of this process, up to the root, and MemAvailable of the machine are looked
 * at first, and again after each 16 MB, so that too large a number fails instead of getting a
 * process killed. Programs that allocate at the same moment can still pass a limit together.
 *
 * Every writer of the pool can write the contents in place once it alone holds them (xmem_get_mut),
 * and readers can only read them. So the writers of a pool trust each other: one that breaks the
 * rules can write contents that others hold. With XMEM_MEMORY_SEALED nobody but this writer can
 * ever write the file, and xmem_get_mut says EOPNOTSUPP.
 *
 * With XMEM_MEMORY_HUGE the files lie in huge pages of the system's pool of them (hugetlb, of the
 * default size) if that has enough free ones. Else they lie in ordinary memory, and the kernel is
 * asked to use huge pages for it where it can (MADV_HUGEPAGE). bytes_huge and bytes_advised of
 * struct xmem_pool_info say which it was. A file takes whole huge pages, and buffers of 32 kB and
 * more begin at a page.
 *
 * With XMEM_MEMORY_CUDA the buffers begin at multiples of 512 bytes and share allocations of about
 * 16 MB; an allocation has whole blocks of 2 MB, in which nothing else lies. Memory is exported as
 * a descriptor where the GPU can do that. The host keeps the descriptor, so what is published
 * outlives this process, and needs neither a common PID namespace nor a right to trace. With
 * XMEM_MEMORY_LEGACY, and where there are no descriptors, it goes by the driver's IPC handles. Such
 * memory cannot be written in place, and ends when this client calls xmem_pool_close; a client that
 * accesses it later gets EOWNERDEAD. A process that opens memory of a GPU
 * can write it, for there is no way to open it for reading only. So only writers of the pool get
 * it, unless XMEM_MEMORY_READERS says that its readers are trusted as well; and XMEM_MEMORY_SEALED
 * holds there as long as all keep to the rules.
 *
 * Returns: 0, or an error, and then no buffer has been made:
 *	-EINVAL	a number is 0 or larger than the pool can have; a flag has no meaning, or does not
 *		fit the others; `device_id` is not 0, and XMEM_MEMORY_CUDA is not given
 *	-E2BIG	as xmem_pool_open
 *	-EPERM	this client is a reader
 *	-ENOSPC	the pool has too few free slots for a writer to get so many
 *	-EDQUOT	a limit of the host is reached; or the pool has memory of 16 other GPUs: when one of
 *		them has none left in the pool, it makes room
 *	-EFBIG	one buffer is larger than the files that this process may make (RLIMIT_FSIZE)
 *	-ENOMEM	a cgroup, the machine or the GPU has too little memory left; the message names it
 *	-EMFILE, -EINTR
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
 * Buffers that are made on demand. When no buffer of about the wanted size is free, xmem_acquire
 * makes one, unless demand_bytes of struct xmem_pool_options, or the memory that is left, forbids
 * it. The size is rounded up by an eighth at most (or to 64 bytes); small buffers share files. A
 * free buffer that is at most a quarter larger is used again, the smallest first, before one is
 * made. A free one that is larger still, or the publication of a subscriber that may lose it, is
 * used when none can be made.
 *
 * Files in which no buffer is used stay for later acquires, and are given back to the system,
 * those first that have been unused longest:
 *	- beyond cache_bytes, when another file is made
 *	- after cache_ns, in a later xmem_acquire that does not find a buffer of its size ready;
 *	  if the program polls, or another client has to be told, also in other acquires and in
 *	  xmem_publish. A writer that does none of these keeps its files until
 *	  xmem_collect
 *	- when another buffer needs the room within demand_bytes, or memory, files or slots run out,
 *	  xmem_attach_fd's too
 *	- when xmem_collect says so
 * With XMEM_MEMORY_HUGE in `memory` of struct xmem_pool_options a file lies in huge pages of the
 * system's pool if it leaves at most an eighth of them unused: that of one large buffer, and those
 * of smaller ones of which there are many. Others lie in ordinary memory, with the kernel asked to
 * use huge pages for those that are as long as one of these. With XMEM_MEMORY_SEALED they are as
 * those that xmem_preallocate makes with it: only this writer can ever write them.
 *
 * Clients that have mapped such a file unmap it as the comment on xmem_pool_stat says.
 */

#define XMEM_KEEP_ALL	UINT64_MAX

/*
 * Find buffers that nobody uses any more, and give memory back to the system, now.
 * @keep: bytes of this writer's unused files that may stay; those that were used last stay.
 *	XMEM_KEEP_ALL: all stay. A reader has none.
 * @ret_bytes: how many bytes have been given back; or NULL.
 *
 * The call finds unused buffers of this writer, for later acquires. It also finds buffers that
 * ended owners have left and that this client could hold; the host frees these a moment later. An
 * acquire that finds nothing does this by itself, and so does the release of the last handle of a
 * buffer. So xmem_collect is for a program that wants the memory or the numbers to be right at a
 * moment of its choice. Memory of this pool that
 * xmem_data_private (copy.h) has kept mapped is unmapped.
 *
 * Then unused buffers go, preallocated ones too. A file goes only as a whole, so buffers stay while
 * another one of their file is used. After that xmem_acquire may fail with ENOSPC where it did not
 * before, if it makes none on demand. Memory of GPUs counts, and goes, as files do. That which
 * others still have open by a handle counts, and goes once they have closed it; that which the
 * driver fails to give back does not count.
 *
 * Returns: how many buffers of this writer were found; or -EINVAL, -ECHILD; -EINTR: a signal
 * handler ran while another thread made buffers (not with XMEM_KEEP_ALL).
 * Threads: any. Since: 0.4.
 */
int xmem_collect(struct xmem_pool *pool, uint64_t keep, uint64_t *ret_bytes);

/*
 * Limbo: buffers that are used longer than they should be. Either their owner has ended, and
 * somebody holds them or has yet to receive them; or they are *overdue*: their owner has found no
 * buffer, or has collected, no subscriber has yet to receive them, and others hold them.
 */
struct xmem_limbo {
	size_t size;			/* of what is valid */
	uint32_t ended;			/* buffers whose owner has ended */
	uint32_t overdue;		/* buffers that their owner wants back */
	uint64_t bytes_ended;
	uint64_t bytes_overdue;
	uint64_t ended_age_ns;		/* since the first of these owners has ended */
	uint64_t overdue_age_ns;	/* since an owner first found that it misses one of them */
};

typedef void xmem_limbo_function(struct xmem_pool *pool, const struct xmem_limbo *limbo,
				 void *user);

/*
 * Be told when a pool has more than so much in limbo.
 * @bytes, @count: it is too much when there are more bytes than that, or more buffers.
 * @call: the function to call then, each time that it becomes too much; NULL: nothing any more.
 * @user: handed on to it.
 *
 * It is looked at in xmem_acquire when that finds nothing, xmem_collect and xmem_pool_stat of this
 * handle, and the function is called there, by the thread that calls these.
 * It may call every function but xmem_pool_close, and says itself whom it wants to blame:
 * xmem_pool_client_info and xmem_pool_slot_info say who holds what. It must return: if it leaves
 * by longjmp, an exception or pthread_exit, the call goes on for ever, and xmem_pool_close waits
 * for that. Cancellation is off in it, and its changes of errno and of the last error are undone.
 *
 * Returns: 0, or -EINVAL, -ECHILD.
 * Threads: any; another one may still be in the function that was set before. Since: 0.4.
 */
int xmem_limbo_hook(struct xmem_pool *pool, uint64_t bytes, uint32_t count,
		    xmem_limbo_function *call, void *user);

#ifdef __cplusplus
}
#endif
#endif
