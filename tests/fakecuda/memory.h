/* SPDX-License-Identifier: MIT */
/*
 * The memory behind an address of device memory, for the memory half of the driver.
 *
 * Words: a backing is memory, a file (a memfd, or one of FAKECUDA_DEVICE_FILE). A span is a range
 * of addresses that is taken. A mapping puts a backing into a span, and says which devices may
 * access it. Behind its memory, the file of each backing has a control area, which all processes
 * that map the file see: its owner, the exported parts, and the processes that have those open.
 *
 * One lock guards all of this in a process: memory_lock. The caller of a function with _locked
 * holds it.
 */
#ifndef FAKE_MEMORY_H
#define FAKE_MEMORY_H

#include <pthread.h>

#include "fake.h"

#define FK_BLOCK_BYTES	(2ul << 20)	/* also the granularity of virtual memory management */
#define FK_MAX_EXPORTS	256
#define FK_MAX_OPENERS	256

extern pthread_mutex_t memory_lock;

/* ---- Backings: backing.c ---- */

enum fk_kind { FK_LEGACY = 1, FK_VMM, FK_POOL };

struct fk_export {
	atomic_ulong generation;	/* 0: free, or the exported memory is freed */
	uint64_t offset, bytes;
};

/* One process that has one export open. It counts once opens is not 0. */
struct fk_opener {
	atomic_int pid;			/* 0: free */
	uint32_t index;			/* of the export */
	uint64_t generation, start_time;
	atomic_int opens;
	/*
	 * A close names only an address, and may mean either of two exports of one block. Then it
	 * is recorded for both, and neither is blamed for the other.
	 */
	atomic_int closes;
};

struct fk_control {
	uint64_t magic;			/* FK_CONTROL_MAGIC */
	uint64_t bytes;			/* of memory */
	enum fk_kind kind;
	int32_t device_index;
	uint32_t handle_types;
	bool charged;			/* to its owner, until the owner has released it */
	CUuuid uuid;			/* of the device */
	struct fk_process owner;	/* the process that made it */
	uint64_t address;		/* where the owner mapped it first */
	struct fk_export exports[FK_MAX_EXPORTS];
	struct fk_opener openers[FK_MAX_OPENERS];
};
#define FK_CONTROL_MAGIC 0x66616b65636f6e74ULL
#define FK_CONTROL_BYTES (((sizeof(struct fk_control) + 4095) / 4096) * 4096)

struct fk_backing {
	struct fk_backing *next;	/* in the list of all of this process */
	int fd;
	size_t bytes;
	struct fk_control *control;
	unsigned int handles;		/* by cuMemCreate, import, retain: until released */
	unsigned int mappings;
	struct fk_device *charged;	/* the device that it is charged to; NULL: an import */
};

/* FK_OK: a new one with one handle, filled with zeros. */
CUresult fk_backing_create_locked(struct fk_device *device, size_t bytes, enum fk_kind kind,
				  unsigned int handle_types, struct fk_backing **ret_backing);
/* @fd stays the caller's. NULL: that is no file of this driver. */
struct fk_backing *fk_backing_open_locked(int fd);
void fk_backing_put_locked(struct fk_backing *backing);	/* handles - 1 */
bool fk_backing_is_handle_locked(const struct fk_backing *backing);
int fk_backing_export(const struct fk_backing *backing);	/* a descriptor, or -1 */
size_t fk_device_used(const struct fk_device *device);		/* usage.c */
void fk_device_charge(struct fk_device *device, ssize_t bytes);
/* Does that process share FAKECUDA_STATE with this one, or has it done so? */
bool fk_usage_knows(const struct fk_process *process);
/* Memory beyond that, which is in files only. Device by index of the machine. */
size_t fk_orphans_used(int device);				/* orphan.c */

/* ---- Addresses: arena.c ---- */

struct fk_pin {
	unsigned int users;
};

enum fk_span_kind { FK_SPAN_BLOCK, FK_SPAN_IMPORT, FK_SPAN_RESERVED, FK_SPAN_POOL };

struct fk_opened {
	unsigned int index;		/* of the export */
	uint64_t generation;
	size_t offset, bytes;		/* where the caller got it, and its size */
	unsigned int opens, frees;	/* frees: those that streams have yet to make, too */
	struct fk_opener *opener;
};

struct fk_span {
	struct fk_pin pin;		/* first */
	CUdeviceptr base;
	size_t bytes;
	enum fk_span_kind kind;
	struct fk_context *context;	/* in which it was made; NULL: none */
	struct fk_alloc *allocs;	/* of blocks and pools: by address */
	struct fk_opened *opened;	/* of imports */
	unsigned int opened_count;
	struct fk_pool *pool;
	bool managed;			/* the CPU has it at the same addresses */
	uint64_t id;
};

struct fk_mapping {
	struct fk_span *span;
	CUdeviceptr base;
	size_t bytes;
	struct fk_backing *backing;
	uint8_t access[FK_MAX_DEVICES];	/* of enum fk_access, by ordinal */
};

/* A piece of a block or of a pool. */
struct fk_alloc {
	struct fk_alloc *next;
	CUdeviceptr base;
	size_t bytes;			/* as asked for */
	size_t taken;			/* with what rounding adds */
	uint64_t generation;
	int export;			/* its index; -1: never exported */
	bool freeing;			/* a stream will free it */
	bool ready;			/* a stream has allocated it */
};

/* @avoid: an address that it must not get, or 0. NULL: none is left. */
struct fk_span *fk_span_create_locked(size_t bytes, size_t alignment, CUdeviceptr hint,
				      CUdeviceptr avoid, enum fk_span_kind kind);
/* Unmaps the mappings in it, too; pins must have been waited for. */
void fk_span_free_locked(struct fk_span *span);
struct fk_span *fk_span_find_locked(CUdeviceptr ptr);
struct fk_span *fk_span_next_locked(const struct fk_span *after);	/* NULL: the first */
/* Waits without the lock: if it returns true, find the span again. */
bool fk_pin_waited_locked(struct fk_pin *pin);

CUresult fk_map_locked(struct fk_span *span, CUdeviceptr base, struct fk_backing *backing);
void fk_unmap_locked(struct fk_mapping *mapping);
struct fk_mapping *fk_mapping_find_locked(CUdeviceptr ptr);
/* The first one at or above @ptr. */
struct fk_mapping *fk_mapping_above_locked(CUdeviceptr ptr);
void *fk_shadow(CUdeviceptr ptr);
void fk_arena_stop_locked(void);

/* First fit for @taken bytes in a block or pool; false: no room. */
struct fk_alloc *fk_alloc_make_locked(struct fk_span *span, size_t bytes, size_t alignment);
struct fk_alloc *fk_alloc_find_locked(const struct fk_span *span, CUdeviceptr ptr);
void fk_alloc_free_locked(struct fk_span *span, struct fk_alloc *alloc);

/* Which allocation, or import from a pool, has the address? */
bool fk_piece_find_locked(const struct fk_span *span, CUdeviceptr ptr, CUdeviceptr *ret_base,
			  size_t *ret_bytes);

/* ---- Exports, and the processes that have them open: opener.c ---- */

/* Exports an allocation; once for all calls. -1: no room. */
int fk_export_locked(struct fk_control *control, struct fk_span *span, struct fk_alloc *alloc);
/* No process can open it any more. Returns how many living processes still have it open. */
unsigned int fk_export_end(struct fk_control *control, unsigned int index);
/* FK_OK, or why not: it is freed, or there are too many. Takes @ret_opened over. */
CUresult fk_opened_add_locked(struct fk_span *span, struct fk_control *control,
			      unsigned int index, uint64_t generation, size_t offset);
/* False: nothing is open at that offset. */
bool fk_opened_remove_locked(struct fk_span *span, size_t offset);
/* Note a free that is to come. false: as many as opens have been noted. */
bool fk_opened_free_locked(struct fk_span *span, size_t offset);
unsigned int fk_opened_count_locked(const struct fk_span *span);

/* ---- Memory of the CPU: host.c ---- */

/* NULL: not registered, and *ret_why. */
void *fk_host_at_locked(CUdeviceptr ptr, size_t bytes, enum fk_access access,
			struct fk_pin **ret_pin, CUresult *ret_why);
bool fk_host_registered_locked(CUdeviceptr ptr, CUdeviceptr *ret_base, size_t *ret_bytes);
void fk_host_stop_locked(void);

/* ---- A page that stays while it is registered: kept.c ---- */

struct fk_kept;
/* NULL: it is not a single page of a shared mapping, or the kernel does not let us keep it. */
struct fk_kept *fk_kept_new(CUdeviceptr base, size_t bytes);
void fk_kept_put(struct fk_kept *kept);
/* Has the address another page now? */
bool fk_kept_is_replaced(const struct fk_kept *kept);
/* pre: it has. The old page, as this process sees it. Under memory_lock. */
void *fk_kept_old(struct fk_kept *kept, enum fk_access access);

/* ---- Pools: pool.c ---- */

/* Is it a pointer of a pool? Then *ret_err is the result of freeing it. */
bool fk_pool_free(CUstream stream, CUdeviceptr ptr, bool wait, CUresult *ret_err);

#endif
