/* SPDX-License-Identifier: MIT */
/*
 * Payloads: the files that hold contents.
 *
 *   payload.c   making buffers: how many share a file, and attaching all of them or none
 *   mapping.c   which files this process has mapped, where, and which of them have gone
 *   room.c      how much memory may still be allocated
 *   memfd.c     memory of the CPU, in sealed memfds of ordinary or of huge pages
 *   view.c      private views: what is held for reading, as memory that its holder may write
 *   idle.c      those that are nobody's, and mapped still
 *   cuda.c      memory of GPUs, which nobody maps, but the driver opens when it is first needed
 *
 * Finding the contents of a slot takes no lock. mappings.place has, for each slot, the number
 * of a payload and where that is mapped. It counts only if the slot's row names the same
 * payload. The argument why what it says is then true:
 *
 *   - Who asks holds the slot, or writes it. As long as it does, the host does not free the
 *     slot (P1), so the row keeps naming payload P, and P stays attached.
 *   - A mapping goes only if a look at all rows, under mappings.lock, finds no slot that names its
 *     payload. So the mapping of P stays. There is only one: mappings are entered under that lock,
 *     and a thread that finds another one of P there uses that one.
 *   - Only who holds or writes a slot writes its place, the address before the number (release;
 *     acquire on the other side). So all who write it at the same time write the same. One who
 *     wrote it for an earlier payload of the slot has put its hold before the slot got P, and
 *     the hold word orders that store before ours.
 *   - A place that names a payload which has gone never counts again, because the number of a
 *     payload is never used again in the pool.
 *
 * The same holds for mappings.device, which says where memory of a GPU is for the GPU. The place of
 * such a slot has no address, because the CPU finds nothing there.
 */
#ifndef XMEM_PAYLOAD_H
#define XMEM_PAYLOAD_H

#include <unistd.h>

#include "lib/private.h"

#define XL_MAX_BYTES	(1ULL << 46)	/* of one payload file */
#define XL_AT_PAGES	(32ULL << 10)	/* buffers of so many bytes begin at a page */
#define XL_FILE_BYTES	(16ULL << 20)	/* of one file, if more than one buffer shares it */

/* One payload file, mapped whole. Guarded by pool->mappings.lock, but for its last part. */
struct xl_mapping {
	struct xl_mapping *next;
	const struct xl_payload_kind *kind;
	u64 payload;
	u32 pass;		/* the last look at all rows that found it attached */
	bool owned;		/* made here: stays until it is given back, or the pool goes */
	bool advised;		/* in ordinary pages, with the wish for huge ones */
	bool shared;		/* made here, and other writers may map it writable, too */
	bool writable;		/* another's, mapped for writing since a get_mut; a word */
	char *base;		/* NULL: it is memory of a GPU: */
	struct xl_memory *memory;
	bool opened;		/* and another client's, which the host has noted */
	u32 flags;		/* and else XMEM_ATTACH_*, with which it was attached */
	struct xl_view *views;	/* private ones that are idle: idle.c guards them */
	u64 bytes;

	/* If it was made here, under owned.lock; words: demand.h. */
	struct xl_mapping *next_file;
	bool demand;		/* made on demand */
	bool going;		/* chosen to be given back */
	struct xl_chain *chain;	/* of its sizes */
	u32 slot;		/* the lowest that it had, once it is given back */
	u32 slots;		/* buffers */
	u64 buffer_bytes;	/* of each */
	u32 idle;		/* of these, at the last look */
	u32 evictable;		/* and of the others, at the last count (xl_count_evictable) */
	u64 newest;		/* the last place of the evictable ones */
	u64 idle_ns;		/* since when all of them are, by the looks so far; 0: not all */
	u64 sum, sum_before;	/* of the generations of the idle ones */
};

/* One kind of payload. All return 0 or a negative errno that has been noted. */
struct xl_payload_kind {
	u32 storage;			/* enum xmem_storage */

	/*
	 * A new payload of at least @bytes, whose contents only this process can change from
	 * now on, mapped for writing. NULL: there is another way. pre: mapping->advised, ->shared.
	 * post: mapping->base and ->bytes are set; a descriptor, the caller's, or a negative errno.
	 */
	int (*make)(struct xl_mapping *mapping, u64 bytes);

	/* Map the payload that @fd is, for reading. pre: mapping->bytes. post: ->base. */
	int (*map)(struct xl_mapping *mapping, int fd);

	/* pre: mapped by one of the above. */
	void (*unmap)(struct xl_mapping *mapping);
};

/*
 * Map pages of a file, not for a child. If memory or maps are lacking, idle private views go first.
 * NULL: errno says why.
 */
char *xl_map_pages(int fd, u64 offset, u64 bytes, int protection, int flags);

/* What an error of mmap is to a reader: ENOMEM, of locked memory too; or EIO. */
int xl_map_error(int err);
/* The error of mmap in words. */
const char *xl_map_why(int err);

extern const struct xl_payload_kind xl_payload_memfd;
extern const struct xl_payload_kind xl_payload_cuda;
extern const struct xl_payload_kind xl_payload_hugetlb;	/* 0: there are not enough huge pages */

/* ---- making (payload.c) ---- */

/* Buffers that are to be made in memory of a GPU. */
struct xl_gpu_buffers {
	struct xl_gpu *gpu;
	struct xl_chain *chain;
	u32 flags;		/* XMEM_ATTACH_* */
};

/* Buffers that are to be made. */
struct xl_buffers {
	const struct xl_gpu_buffers *cuda;	/* NULL: in memory of the CPU */
	u32 count;
	u32 flags;		/* XMEM_MEMORY_* */
	bool ordinary;		/* no huge pages of the system's pool, whatever the flags say */
	u64 bytes;		/* of each */
	u64 stride;		/* to the next; 0: whole pages from a page or XL_AT_PAGES on */
	u64 answer_by;		/* how long the host is waited for; 0: until it answers */
	bool demand;		/* an acquire needs them */
	u32 *ret_slots;		/* NULL, or which slots they have got */
};

/* How long are the huge pages of the system's pool? 0: it has none. */
u64 xl_huge_page_bytes(void);

/* Of an ordinary page, which on arm64 may be 4, 16 or 64 KiB. */
static inline u64 xl_page_bytes(void)
{
	return sysconf(_SC_PAGESIZE);
}

/* They are made and attached: all of them or none. 0 or -errno, noted. */
int xl_payload_make(struct xmem_pool *pool, const struct xl_buffers *buffers, u16 *ret_slot);

/* ---- mappings (mapping.c) ---- */

/* 0 or -errno, not noted. pre: pool->map. */
int xl_mappings_init(struct xmem_pool *pool);
/* Unmap all. Nobody uses the pool any more. */
void xl_mappings_destroy(struct xmem_pool *pool);

/* Keep a mapping of this process's own payload, which no other thread knows yet. */
void xl_mapping_add(struct xmem_pool *pool, struct xl_mapping *mapping);
void xl_mappings_unmap(struct xl_mapping *list);
/* That of a payload, or NULL. Under pool->mappings.lock. */
struct xl_mapping *xl_mapping_find(struct xmem_pool *pool, u64 payload);
/* Unmap one that was made here, in which nobody uses a slot any more. */
void xl_mapping_remove(struct xmem_pool *pool, struct xl_mapping *mapping);
/* The mapping of a slot that this client owns. */
struct xl_mapping *xl_mapping_of(struct xmem_pool *pool, u32 slot);

/* Note where the payload of @slot is. The slot is held or written, and has that payload. */
void xl_place(struct xmem_pool *pool, u32 slot, const struct xl_mapping *mapping);

/* Where @slot begins, found or mapped; NULL: the error is noted. The slot is held or written. */
char *xl_payload_find(struct xmem_pool *pool, u32 slot);

/*
 * Unmap the payloads that are attached nowhere any more. It costs a load unless a payload has
 * gone since the last time. It is for ways that are slow anyhow.
 */
void xl_payload_unmap_stale(struct xmem_pool *pool);

/* The same, and close and free what is on GPUs, as xl_cuda_settle. Under no lock. */
void xl_payload_settle(struct xmem_pool *pool, u64 patience_ns);

/*
 * The same as the first where many payloads may go one by one: not before an eighth of the mapped
 * number.
 */
void xl_payload_unmap_some(struct xmem_pool *pool);

/* Is it of use to try once more what has failed with @err? Payloads that have gone are unmapped. */
bool xl_payload_made_room(struct xmem_pool *pool, int err);

/* Map the file of @fd, if need be in the place of payloads that have gone. 0 or -errno, noted. */
int xl_mapping_map(struct xmem_pool *pool, struct xl_mapping *mapping, int fd);

/*
 * Map the payloads of all slots in which @publisher publishes, so that xmem_data does not have
 * to. 0 or -errno, noted; what has been mapped stays. The host is waited for until @deadline_ns.
 */
int xl_payload_ahead_all(struct xmem_pool *pool, u32 publisher, u64 deadline_ns);

/*
 * Map a payload, unless it is mapped: 0 or -errno, noted. Under no lock. A client that may write
 * maps a @shared one such that xl_payload_let_write can make it writable.
 */
int xl_payload_map(struct xmem_pool *pool, u64 payload, bool shared, u64 deadline_ns);

/* Does @place know where the payload that @row names is mapped? A held slot has a payload. */
static XL_INLINE bool xl_is_placed(const struct xl_place *place, const struct xmem_slot_row *row)
{
	return likely(xm_is_acquire(&place->payload, xm_load(&row->payload)));
}

/* Where the payload that @row names is mapped, as far as @place knows; or NULL. */
static XL_INLINE char *xl_placed(const struct xl_place *place, const struct xmem_slot_row *row)
{
	if (unlikely(__atomic_load_n(&place->payload, __ATOMIC_ACQUIRE) != xm_load(&row->payload)))
		return NULL;
	return __atomic_load_n(&place->base, __ATOMIC_RELAXED);
}

/*
 * Where the bytes of @slot begin, which is held or written; NULL: the error is noted. The offset is
 * read before the payload's id: an evicted client finds zeros from one moment on, and would take
 * the beginning of the file for this slot, which may be another's contents.
 */
static XL_INLINE char *xl_payload_data(struct xmem_pool *pool, u32 slot)
{
	const struct xmem_slot_row *row = xm_slot_row(&pool->map, slot);
	u64 offset = xm_load_acquire(&row->offset);
	char *base;

	XM_STEP(XM_STEP_ROW_OFFSET);
	base = xl_placed(&pool->mappings.place[slot], row);
	return likely(base) ? base + offset : xl_payload_find(pool, slot);
}

/* The same for contents that nobody looks at yet: 0 or -errno, noted. */
int xl_payload_find_ahead(struct xmem_pool *pool, u32 slot);

/*
 * As xl_payload_ahead, but without the host: -EAGAIN if *ret_payload has to be mapped first, by
 * xl_payload_map. That needs no hold on the slot.
 */
int xl_payload_find_mapped(struct xmem_pool *pool, u32 slot, u64 *ret_payload, bool *ret_shared);

/*
 * Let this process write the mapping of the shared payload that @slot is in, which is held: until
 * then a stray store meets SIGSEGV. 0 or -errno, noted. pre: mapped (xl_payload_ahead), on the CPU.
 */
int xl_payload_let_write(struct xmem_pool *pool, u32 slot);

/*
 * Map the payload of @slot, which is held, unless it is mapped. Memory of a GPU is opened later,
 * because who passes a buffer on need not have that GPU. 0 or -errno, noted.
 */
static XL_INLINE int xl_payload_ahead(struct xmem_pool *pool, u32 slot)
{
	if (likely(xl_is_placed(&pool->mappings.place[slot], xm_slot_row(&pool->map, slot))))
		return 0;
	return xl_payload_find_ahead(pool, slot);
}

/* Do what xm_put or xm_receive left pending (I5). */
void xl_do_pending(struct xmem_pool *pool, struct xm_pending pending);

static inline void xl_do(struct xmem_pool *pool, struct xm_pending pending)
{
	if (unlikely(pending.what != XM_NOTHING))
		xl_do_pending(pool, pending);
}

/* ---- memory of GPUs (cuda.c) ---- */

/* Make memory for buffers. 0, with *ret_fd as xl_memory_make says, or -errno, noted. */
int xl_cuda_make(struct xmem_pool *pool, const struct xl_gpu_buffers *buffers, u64 bytes,
		 struct xl_mapping *mapping, int *ret_fd);
/* Put what says what it is into a request to attach it. */
void xl_cuda_describe(const struct xl_mapping *mapping, struct xmem_attach_request *request);

/* Why the host has not attached it: -errno, noted. */
int xl_cuda_attach_refused(struct xmem_pool *pool, const struct xl_gpu *gpu, int err);

/* Places for device addresses, made if need be. 0, or -ENOMEM, noted. */
int xl_cuda_places(struct xmem_pool *pool);
void xl_cuda_place(struct xmem_pool *pool, u32 slot, const struct xl_mapping *mapping);

/* The GPU of a slot with these traits. NULL: noted, such as that it is hidden here. */
struct xl_gpu *xl_payload_gpu(struct xmem_pool *pool, u32 traits);

/* Open the payload of @slot, which is held or written. 0 or -errno, noted. */
int xl_cuda_open(struct xmem_pool *pool, u32 slot);

/*
 * Nobody here uses a mapping of a GPU any more, and it is in no list: it is closed by the next
 * xl_cuda_settle, because the driver may wait for the GPU then.
 */
void xl_cuda_drop(struct xmem_pool *pool, struct xl_mapping *mapping);

/*
 * Close what has been dropped, and tell the host. This client's own that others may have open stays
 * until they have closed it. It may call a program's function, so no lock may be held. The host is
 * asked for @patience_ns at most; 0: briefly (request.h).
 */
void xl_cuda_settle_slowly(struct xmem_pool *pool, u64 patience_ns);

static inline void xl_cuda_settle(struct xmem_pool *pool, u64 patience_ns)
{
	const struct xl_mappings *mappings = &pool->mappings;

	if (unlikely(__atomic_load_n(&mappings->dropped, __ATOMIC_RELAXED) ||
		     __atomic_load_n(&mappings->closing, __ATOMIC_RELAXED)))
		xl_cuda_settle_slowly(pool, patience_ns);
}

/*
 * The client ends: close all. What others may have open is returned, and the caller's. Under no
 * lock, and nobody else uses the pool.
 */
struct xl_mapping *xl_cuda_end(struct xmem_pool *pool);
/* Nobody has these open any more: free them, or give them back. */
void xl_cuda_end_all(struct xl_mapping *list);
/* Drop all mappings of GPUs. */
void xl_mappings_drop_cuda(struct xmem_pool *pool);

/* ---- memory (room.c) ---- */

/* What leaves least: how much of its limit is left, and where that limit is written. */
struct xl_room {
	u64 left;
	u64 limit;
	char what[256];
};

/* Both folders are given for tests. Nothing is known: left is ~0. */
void xl_room_find(const char *proc, const char *cgroups, struct xl_room *ret);

/* May @bytes more be allocated, as far as one can see? 0, or -ENOMEM, noted. */
int xl_room_check(u64 bytes);

/* How long are the huge pages that the kernel makes of ordinary memory? */
u64 xl_transparent_page_bytes(void);

#endif
