/* SPDX-License-Identifier: MIT */
/*
 * Payloads: the memory that contents lie in.
 *
 *   payload.c   makes buffers: how many share a file, and attaches all of them or none
 *   mapping.c   maps files: which are mapped, where, and which of them have gone
 *   room.c      checks how much memory may still be allocated
 *   memfd.c     memory of the CPU: sealed memfds of ordinary or of huge pages
 *   view.c      private views: contents that are held for reading, as memory that may be written
 *   idle.c      private views without a handle, which are still mapped
 *   cuda.c      memory of GPUs, which the driver opens when it is first needed
 *   remnant.c   what the end of a pool with memory of GPUs needs
 *
 * Finding the contents of a slot takes no lock. For each slot, mappings.place has the number of a
 * payload and the address at which it is mapped. A place is valid only if the slot's row names its
 * payload. A valid place is right for these reasons:
 *
 *   - The client that asks holds the slot, or writes it. Until it stops, the host does not free the
 *     slot (P1). So the row goes on naming payload P, and P stays attached.
 *   - A mapping is removed only if a pass over all rows, under mappings.lock, finds no slot that
 *   names
 *     its payload. So the mapping of P stays. P has only one mapping: mappings are added under that
 *     lock, and a thread that finds one for P there uses it.
 *   - Only a thread whose client holds or writes a slot writes its place, first the address and
 *   then
 *     the number (release, and acquire on the other side). So all threads that write it at one time
 *     write the same values. A thread that wrote the place for an earlier payload of the slot put
 *     its hold before the slot got P, and the hold word orders that store before ours.
 *   - If the payload of a place has gone, the place is never valid again, because the number of a
 *     payload is never used again in the pool.
 *
 * The rule is also true for mappings.device, which has the addresses of memory of GPUs, for the
 * GPU. The place of such a slot has no address, because the CPU cannot read it.
 */
#ifndef XMEM_PAYLOAD_H
#define XMEM_PAYLOAD_H

#include <unistd.h>

#include "lib/private.h"

#define XL_MAX_BYTES	(1ULL << 46)	/* the most that one payload file may have */
#define XL_AT_PAGES	(32ULL << 10)	/* buffers of at least this size begin at a page */
#define XL_FILE_BYTES	(16ULL << 20)	/* the most for one file that several buffers share */

/*
 * One payload file, mapped whole. pool->mappings.lock guards all fields except those with another
 * rule.
 */
struct xl_mapping {
	struct xl_mapping *next;
	const struct xl_payload_kind *kind;
	u64 payload;
	u32 pass;		/* the last pass over all rows that found it attached */
	bool owned;		/* made here: it stays until it is given back, or the pool ends */
	bool advised;		/* in ordinary pages; the kernel was asked for huge ones */
	bool shared;		/* made here, and other writers may map it writable */
	bool writable;		/* another client's, and mapped for writing; atomic */
	char *base;		/* NULL: it is memory of a GPU: */
	struct xl_memory *memory;
	bool opened;		/* memory of a GPU of another client, which the host counts as
				 * open */
	u32 flags;		/* own memory of a GPU: the XMEM_ATTACH_* with which it was
				 * attached */
	struct xl_view *views;	/* idle private views; guarded by the lock of idle.c */
	u64 bytes;

	/* These are only used if it was made here. Under owned.lock; words: own/demand.h. */
	struct xl_mapping *next_file;
	bool demand;		/* made on demand */
	bool going;		/* chosen to be given back */
	struct xl_chain *chain;	/* of its sizes */
	u32 slot;		/* once it is given back: its lowest slot */
	u32 slots;		/* how many buffers it has */
	u64 buffer_bytes;	/* of each */
	u32 idle;		/* how many of them were idle at the last look */
	u32 evictable;		/* how many of the others were evictable at the last count
				 * (xl_count_evictable) */
	u64 newest;		/* the last place of the evictable ones */
	u64 idle_ns;		/* since when all buffers are idle, by the looks so far; 0: not
				 * all are */
	u64 sum, sum_before;	/* of the generations of the idle ones */
};

/* One kind of payload. All functions return 0 or a negative errno that has been noted. */
struct xl_payload_kind {
	u32 storage;			/* enum xmem_storage */

	/*
	 * Make a payload of at least @bytes, mapped for writing. From now on only this process can
	 * change its contents. NULL: it is made in another way. pre: mapping->advised, ->shared.
	 * post: mapping->base and ->bytes are set. Returns a descriptor, which the caller owns, or
	 * a negative errno.
	 */
	int (*make)(struct xl_mapping *mapping, u64 bytes);

	/* Map the payload of @fd for reading. pre: mapping->bytes. post: ->base. */
	int (*map)(struct xl_mapping *mapping, int fd);

	/* pre: mapped by make or map. */
	void (*unmap)(struct xl_mapping *mapping);
};

/*
 * Map pages of a file, not for a child. If memory or maps are lacking, idle private views are
 * unmapped first. NULL: errno has the reason.
 */
char *xl_map_pages(int fd, u64 offset, u64 bytes, int protection, int flags);

/* The errno for a reader after a failed mmap: ENOMEM, even for locked memory; or EIO. */
int xl_map_error(int err);
/* A message for the errno of a failed mmap. */
const char *xl_map_why(int err);

extern const struct xl_payload_kind xl_payload_memfd;
extern const struct xl_payload_kind xl_payload_cuda;
extern const struct xl_payload_kind xl_payload_hugetlb;	/* make returns 0 if there are not enough
							 * huge pages */

/* ---- making (payload.c) ---- */

struct xl_buffers;
struct xl_making;

/* Where buffers are made: a row for the CPU (payload.c), and one for GPUs (cuda.c). */
struct xl_buffer_place {
	u64 alignment;		/* of each buffer; 0: pages or 64 bytes, as the size wants it */
	bool in_files;		/* RLIMIT_FSIZE limits the payloads */

	/*
	 * Make a payload of @bytes. 0, with mapping->kind and the rest set, and *ret_fd, which is
	 * -1 if there is no descriptor; or -errno, noted.
	 */
	int (*make)(struct xmem_pool *pool, struct xl_making *making, u64 bytes,
		    struct xl_mapping *mapping, int *ret_fd);

	/* Describe the payload in a request to attach it. */
	void (*describe)(const struct xl_mapping *mapping, struct xmem_attach_request *request);

	/*
	 * A message for the host's refusal to attach the file @fd. Call this before detaching, so
	 * that the message has the numbers at the failure. Returns -errno, noted.
	 */
	int (*refused)(struct xmem_pool *pool, const struct xl_buffers *buffers, int fd, int err);
};

extern const struct xl_buffer_place xl_place_cpu, xl_place_gpu;

/* Memory of a GPU, for one payload, which no pool has yet. */
struct xl_made {
	struct xl_memory *memory;
	int fd;			/* to attach; -1: it has none, or it was attached */
};

/* Parameters for making buffers. */
struct xl_buffers {
	const struct xl_buffer_place *place;
	struct xl_chain *chain;	/* that the buffers join */
	struct xl_gpu *gpu;	/* of xl_place_gpu */
	u32 attach_flags;	/* its XMEM_ATTACH_*, */
	struct xl_made *made;	/* and the memory of each payload, */
	u32 files;		/* of which there are so many */
	u32 count;
	u32 flags;		/* XMEM_MEMORY_* */
	bool ordinary;		/* use no huge pages of the system's pool, even if the flags want
				 * them */
	u64 bytes;		/* of each */
	u64 stride;		/* the distance between two; 0: whole pages if the size is at
				 * least a page or XL_AT_PAGES */
	u64 answer_by;		/* the deadline for the host's answers; 0: none */
	bool demand;		/* made for an acquire */
	u32 *ret_slots;		/* NULL, or where to store the slots that they get */
};

/* The buffers of one call, and how many of them are made. */
struct xl_making {
	struct xl_buffers buffers;	/* with their stride */
	u32 per_file;
	u32 done;			/* buffers, */
	u32 files;			/* and files */
	u64 looked;			/* bytes that were made when the free memory was last
					 * checked */
	struct xl_mapping *list;	/* of the new files */
};

/* The size of the huge pages of the system's pool. 0: it has none. */
u64 xl_huge_page_bytes(void);

/* The size of an ordinary page, which may be 4, 16 or 64 KiB on arm64. */
static inline u64 xl_page_bytes(void)
{
	return sysconf(_SC_PAGESIZE);
}

/*
 * Find out how many buffers share a file, and how far they are apart. 0 or -errno, noted. The
 * caller of xl_payload_make needs it for memory of GPUs, which it makes before.
 */
int xl_payload_shape(const struct xl_buffers *buffers, struct xl_making *ret);

/*
 * Make buffers and attach them: all of them or none. 0 or -errno, noted. Then memory of GPUs, which
 * buffers->made has, is the caller's as before.
 */
int xl_payload_make(struct xmem_pool *pool, const struct xl_buffers *buffers, u16 *ret_slot);

/* ---- mappings (mapping.c) ---- */

/* 0 or -errno, not noted. pre: pool->map. */
int xl_mappings_init(struct xmem_pool *pool);
/* Unmap all. No thread uses the pool any more. */
void xl_mappings_destroy(struct xmem_pool *pool);

/* Add a mapping of this process's own payload, which no other thread knows yet. */
void xl_mapping_add(struct xmem_pool *pool, struct xl_mapping *mapping);
void xl_mappings_unmap(struct xl_mapping *list);
/* The mapping of a payload, or NULL. Under pool->mappings.lock. */
struct xl_mapping *xl_mapping_find(const struct xl_mappings *mappings, u64 payload);
/* Remove and unmap a mapping that was made here. Its slots are not used any more. */
void xl_mapping_remove(struct xmem_pool *pool, struct xl_mapping *mapping);
/* The mapping of a slot that this client owns. */
struct xl_mapping *xl_mapping_of(struct xl_mappings *mappings, u32 slot);

/*
 * Store in the place of @slot where its payload is. The slot is held or written, and has that
 * payload.
 */
void xl_place(struct xmem_pool *pool, u32 slot, const struct xl_mapping *mapping);

/*
 * The address at which @slot begins; the payload is mapped if necessary. NULL: the error is noted.
 * The slot is held or written.
 */
char *xl_payload_find(struct xmem_pool *pool, u32 slot);

/*
 * Unmap the payloads that are no longer attached to any slot. If none has gone since the last call,
 * this costs a load. Only slow paths call it.
 */
void xl_payload_unmap_stale(struct xmem_pool *pool);

/*
 * Unmap the payloads that are no longer attached, and close and free memory of GPUs like
 * xl_cuda_reap. Under no lock.
 */
void xl_payload_reap(struct xmem_pool *pool, u64 patience_ns);

/*
 * Like xl_payload_unmap_stale, for places where many payloads may go one by one: it does nothing
 * before an eighth of the mapped ones has gone.
 */
void xl_payload_unmap_some(struct xmem_pool *pool);

/*
 * A call has failed with @err. Unmap payloads that have gone. Returns whether to try the call
 * again.
 */
bool xl_payload_made_room(struct xmem_pool *pool, int err);

/*
 * Map the file of @fd. If memory or maps are lacking, payloads that have gone are unmapped. 0 or
 * -errno, noted.
 */
int xl_mapping_map(struct xmem_pool *pool, struct xl_mapping *mapping, int fd);

/*
 * Map the payloads of all slots in which @publisher publishes, so that xmem_data need not map them.
 * It waits for the host until @deadline_ns. 0 or -errno, noted; payloads that have been mapped stay
 * mapped.
 */
int xl_payload_ahead_all(struct xmem_pool *pool, u32 publisher, u64 deadline_ns);

/*
 * Map a payload, unless it is mapped: 0 or -errno, noted. Under no lock. If the client may write,
 * and the payload is @shared, xl_payload_make_writable can make the mapping writable.
 */
int xl_payload_map(struct xmem_pool *pool, u64 payload, bool shared, u64 deadline_ns);

/* Does @place have the payload that @row names? A held slot has a payload. */
static XL_INLINE bool xl_is_placed(const struct xl_place *place, const struct xmem_slot_row *row)
{
	return likely(xm_is_acquire(&place->payload, xm_load(&row->payload)));
}

/* The address of the payload that @row names, if @place has it; or NULL. */
static XL_INLINE char *xl_placed(const struct xl_place *place, const struct xmem_slot_row *row)
{
	if (unlikely(__atomic_load_n(&place->payload, __ATOMIC_ACQUIRE) != xm_load(&row->payload)))
		return NULL;
	return __atomic_load_n(&place->base, __ATOMIC_RELAXED);
}

/*
 * The address of the bytes of @slot, which is held or written; NULL: xl_payload_find finds it. The
 * offset is read before the payload's id, because an evicted client reads zeros from some moment
 * on. With an offset of zero, it would take the beginning of the file for this slot, and that may
 * be the contents of another slot.
 */
static XL_INLINE char *xl_payload_placed(struct xmem_pool *pool, u32 slot)
{
	const struct xmem_slot_row *row = xm_slot_row(&pool->map, slot);
	u64 offset = xm_load_acquire(&row->offset);
	char *base;

	XM_STEP(XM_STEP_ROW_OFFSET);
	base = xl_placed(&pool->mappings.place[slot], row);
	return likely(base) ? base + offset : NULL;
}

/*
 * Like xl_payload_find, but the contents are not read yet: memory of a GPU need not be opened. 0 or
 * -errno, noted.
 */
int xl_payload_find_ahead(struct xmem_pool *pool, u32 slot);

/*
 * Like xl_payload_ahead, but it does not ask the host. -EAGAIN: first map *ret_payload by
 * xl_payload_map, which needs no hold on the slot.
 */
int xl_payload_find_mapped(struct xmem_pool *pool, u32 slot, u64 *ret_payload, bool *ret_shared);

/*
 * Make the mapping of the shared payload of @slot writable, which is held. Before this, a stray
 * store gets SIGSEGV. 0 or -errno, noted. pre: mapped (xl_payload_ahead), memory of the CPU.
 */
int xl_payload_make_writable(struct xmem_pool *pool, u32 slot);

/*
 * Map the payload of @slot, which is held, unless it is mapped. Memory of a GPU is opened later,
 * because a client that only passes the buffer on need not have this GPU. 0 or -errno, noted.
 */
static XL_INLINE int xl_payload_ahead(struct xmem_pool *pool, u32 slot)
{
	if (likely(xl_is_placed(&pool->mappings.place[slot], xm_slot_row(&pool->map, slot))))
		return 0;
	return xl_payload_find_ahead(pool, slot);
}

/* Do the work that xm_put or xm_receive has left to the caller (I5). */
void xl_do_pending(struct xmem_pool *pool, struct xm_pending pending);

static inline void xl_do(struct xmem_pool *pool, struct xm_pending pending)
{
	if (unlikely(pending.what != XM_NOTHING))
		xl_do_pending(pool, pending);
}

/* ---- memory of GPUs (cuda.c) ---- */

/* Describe the memory in a request to attach it. */
void xl_cuda_describe(const struct xl_mapping *mapping, struct xmem_attach_request *request);

/* A message for the host's refusal to attach the memory behind @fd. Returns -errno, noted. */
int xl_cuda_attach_refused(struct xmem_pool *pool, const struct xl_gpu *gpu, int fd, int err);

/* Allocate the places for addresses of GPUs, unless that is done. 0, or -ENOMEM, noted. */
int xl_cuda_places(struct xmem_pool *pool);
void xl_cuda_place(struct xmem_pool *pool, u32 slot, const struct xl_mapping *mapping);

/* The GPU of a slot with these traits. NULL, noted: for example, it is hidden from this process. */
struct xl_gpu *xl_payload_gpu(struct xmem_pool *pool, u32 traits);

/* Open the payload of @slot, which is held or written. 0 or -errno, noted. */
int xl_cuda_open(struct xmem_pool *pool, u32 slot);
/*
 * May work on @gpu use the address of that slot's memory, which is open? 0, or -errno, noted.
 */
int xl_cuda_reach(struct xmem_pool *pool, u32 slot, struct xl_gpu *gpu);

/*
 * A mapping of a GPU is not used here any more, and is in no list. The next xl_cuda_reap closes
 * it, because the driver may wait for the GPU then.
 */
void xl_cuda_drop(struct xmem_pool *pool, struct xl_mapping *mapping);

/*
 * Close the mappings that have been dropped, and tell the host. An own payload that other clients
 * may have open stays until they have closed it. This may call a function of the program, so no
 * lock may be held. The host is asked for @patience_ns at most; 0: briefly (host/request.h).
 */
void xl_cuda_reap_slowly(struct xmem_pool *pool, u64 patience_ns);

static inline void xl_cuda_reap(struct xmem_pool *pool, u64 patience_ns)
{
	const struct xl_mappings *mappings = &pool->mappings;

	if (unlikely(__atomic_load_n(&mappings->dropped, __ATOMIC_RELAXED) ||
		     __atomic_load_n(&mappings->closing, __ATOMIC_RELAXED)))
		xl_cuda_reap_slowly(pool, patience_ns);
}

/*
 * The client ends: close all memory of GPUs. Returns the list of own payloads that other clients
 * may have open; the caller owns it. Under no lock, and no other thread uses the pool.
 */
struct xl_mapping *xl_cuda_end(struct xmem_pool *pool);
/* No other client has these payloads open any more: free the memory, or give it back. */
void xl_cuda_end_all(struct xl_mapping *list);
/* Drop all mappings of GPUs. */
void xl_mappings_drop_cuda(struct xmem_pool *pool);

/* ---- memory (room.c) ---- */

/* The limit that leaves the least memory. */
struct xl_room {
	u64 left;		/* how much it leaves; ~0: no limit is known */
	u64 limit;
	char what[256];		/* the file that has it */
};

/* Find this limit. The folders are parameters for tests. */
void xl_room_find(const char *proc, const char *cgroups, struct xl_room *ret);

/* Do the known limits leave @bytes more? 0, or -ENOMEM, noted. */
int xl_room_check(u64 bytes);

/* The size of the huge pages that the kernel makes of ordinary memory. */
u64 xl_transparent_page_bytes(void);

#endif
