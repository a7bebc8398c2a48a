/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the module's files share: a pool with its pages, a client, the pages
 * themselves, and who may touch what under which lock.
 *
 * The bookkeeping in the pages is not here but in host.c, which is pure. The
 * module adds what it cannot have: memory, files, sleep, and knowing who is dead.
 *
 * Locks, outermost first
 *
 *   mmap_lock               of any process; ->mmap, ->fault and the VMAs' ->close
 *                           run under it. Never taken below a lock of ours but
 *                           file->lock, so user memory is touched under no other.
 *   xmem_file.lock          joining by one file
 *   xmem_pool.end_work      not a lock, but waited for like one by a client's end
 *   xmem_pool.lock          the pool: its host words, chunks, payloads, client table
 *   (i_mmap_rwsem, page locks)
 *   xmem_pool.pages_lock    what a fault looks at; who may write; who has ended
 *   pools_lock              the list of pools
 *
 * Lifetime. A pool is *used* by clients that have not ended and by pool files;
 * when the last goes its name is free at once and end_work empties it. The
 * struct, the pool region and the wait queues stay as long as anything points
 * to them (kref), so a request needs no lock to read host words.
 *
 * Memory is not allocated under pool->lock: the end of a client waits for that
 * lock, and who allocates may wait for that end (out of memory).
 */
#ifndef XMEM_PRIVATE_H
#define XMEM_PRIVATE_H

#include <linux/ioctl.h>
#include <linux/kobject.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/poll.h>
#include <linux/spinlock.h>
#include <linux/uidgid.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "core/host.h"

struct xmem_client;
struct xmem_node;

#define XMEM_PAYLOAD_LISTS	64

/* Pages with the kernel's view of them. Never given to a second client. */
struct xmem_pages {
	void *view;
	u32 count;
	struct page *page[];
};

/* What all see at one place of the layout: the region, a group, or an area. */
struct xmem_chunk {
	struct xmem_pages *now;		/* written under pool->lock and pages_lock, read under either */
	struct xmem_pages *spare;	/* takes over when the writer ends; pool->lock */
	struct xmem_client *writer;	/* may map it writable, or NULL; as now */
};

struct xmem_pool {
	struct kref kref;
	refcount_t users;		/* 0: no longer in the list of pools; end_work empties it */
	struct list_head list;		/* pools_lock */
	struct net *net;		/* immutable, as all up to the next blank line */
	u32 number;
	kuid_t owner;			/* who made it */
	kgid_t gid;			/* of the device file through which; may read sysfs */
	struct inode *inode;		/* its address space has every mapping of this pool */
	struct page *zero;		/* what readers see where there is no chunk */
	wait_queue_head_t *queues;	/* see wait.c */
	atomic_long_t pages;		/* charged to it */

	struct mutex lock;
	bool dead;			/* pool->lock: has been emptied */
	struct xm_host host;		/* pool->lock; its map's pool, client, row: immutable pointers */
	struct xmem_client *client[XMEM_MAX_CLIENTS];	/* pool->lock; holds a reference; also of zombies */
	struct hlist_head payloads[XMEM_PAYLOAD_LISTS];	/* pool->lock: by id */
	u32 payload_count;		/* pool->lock */
	u32 payload_last;		/* pool->lock: last id given */

	spinlock_t pages_lock;
	struct xmem_chunk *region;	/* immutable */
	struct xmem_chunk *area[XMEM_MAX_CLIENTS];	/* written under both locks, read under either */
	struct xmem_chunk *group[XMEM_MAX_GROUPS];	/* the same */

	struct work_struct end_work;	/* leave.c */
	struct work_struct sysfs_work;	/* sysfs.c, which alone has what follows */
	struct device *device;
	struct kobject *slots_dir;
	struct kobject *clients_dir;
	struct xmem_node **slot_node;	/* [as many as are shown] */
	unsigned long *slots_shown;	/* bitmap of as many */
	struct xmem_node *client_node[XMEM_MAX_CLIENTS];
};

struct xmem_client {
	struct kref kref;		/* its file, and the pool's table */
	struct xmem_pool *pool;		/* immutable, as all up to the next blank line; holds a reference */
	u32 id;
	u64 incarnation;
	u32 role;
	struct mm_struct *mm;		/* grabbed: the pointer stays unique */
	struct pid *pid;
	kuid_t uid;

	bool ended;			/* pages_lock; also read without, it never goes back */
	u32 area_maps;			/* pages_lock: VMAs of mm that map the area writable */
	u32 maps;			/* pages_lock: all VMAs of mm */
	u64 follows[XMEM_CLIENT_WORDS];	/* pool->lock: publishers subscribed to, also ended ones */
};

/* An open file of /dev/xmem: nothing until it joins. */
struct xmem_file {
	struct mutex lock;		/* serialises joining */
	struct xmem_client *client;	/* set once, with release; then immutable */
	struct file *file;
};

/* A payload file; pool->lock but for kref. */
struct xmem_payload_file {
	struct kref kref;
	struct hlist_node node;
	u32 id;
	u32 slots;			/* that have it; the pool's reference goes with the last */
	u64 incarnation;		/* of the client that attached it */
	u64 bytes;
	struct file *file;
	struct work_struct drop;
};

union xmem_request {
	u32 size;
	struct xmem_join join;
	struct xmem_pool_file pool_file;
	struct xmem_attach attach;
	struct xmem_payload payload;
	struct xmem_subscribe subscribe;
	struct xmem_unsubscribe unsubscribe;
	struct xmem_sleep sleep;
	struct xmem_slot slot;
};

/* One request on its way. */
struct xmem_call {
	struct xmem_file *file;
	struct xmem_client *client;	/* the caller; join: the new one */
	union xmem_request u;
	struct file *give;		/* to become a descriptor of the caller's */
};

/* main.c */
extern unsigned int xmem_max_pools, xmem_max_payloads, xmem_max_sysfs_slots;
extern unsigned long xmem_max_pool_bytes, xmem_max_bytes;
extern struct workqueue_struct *xmem_end_wq;	/* end_work alone */
extern struct workqueue_struct *xmem_wq;	/* the rest: sysfs, last drops of files */
struct inode *xmem_inode_new(void);

/* ioctl.c */
long xmem_ioctl(struct file *filp, unsigned int cmd, unsigned long arg);
void xmem_pause(void);

/* join.c */
int xmem_join_begin(struct xmem_call *call);
void xmem_join_finish(struct xmem_call *call, int err);
int xmem_pool_file_begin(struct xmem_call *call);
void xmem_client_put(struct xmem_client *client);
int __must_check xmem_client_lock(struct xmem_client *client);
int __must_check xmem_client_lock_mapped(struct xmem_client *client);

/* pool.c */
struct xmem_pool *xmem_pool_open(const struct xmem_join *join, kgid_t group);
struct xmem_pool *xmem_pool_get_used(struct xmem_pool *pool);
void xmem_pool_unuse(struct xmem_pool *pool);
void xmem_pool_get(struct xmem_pool *pool);
void xmem_pool_put(struct xmem_pool *pool);
int xmem_pool_charge(struct xmem_pool *pool, unsigned long pages);
void xmem_pool_uncharge(struct xmem_pool *pool, unsigned long pages);
bool xmem_pools_none(void);

/* pages.c */
struct xmem_chunk *xmem_chunk_new(struct xmem_pool *pool, u64 bytes, bool spare);
void xmem_chunk_free(struct xmem_pool *pool, struct xmem_chunk *chunk);
void xmem_chunk_place(struct xmem_pool *pool, struct xmem_chunk **place, struct xmem_chunk *chunk,
		      struct xmem_client *writer);
struct xmem_chunk *xmem_chunk_take(struct xmem_pool *pool, struct xmem_chunk **place);
void *xmem_chunk_copy(struct xmem_chunk *chunk);
struct xmem_pages *xmem_chunk_turn(struct xmem_pool *pool, struct xmem_chunk *chunk);
void xmem_pages_settle(const struct xmem_pages *pages);
void xmem_pages_free(struct xmem_pool *pool, struct xmem_pages *pages);
void xmem_zap_area(struct xmem_pool *pool, u32 client);
void xmem_zap_groups(struct xmem_pool *pool, u32 first, u32 last);
bool xmem_may_write(struct xmem_pool *pool, const struct xmem_client *client, u64 from, u64 to);
struct page *xmem_page_get(struct xmem_pool *pool, const struct xmem_client *writer, u64 offset);
bool xmem_page_is_current(struct xmem_pool *pool, const struct xmem_client *writer, u64 offset,
			  const struct page *page);

/* mmap.c */
int xmem_mmap(struct file *filp, struct vm_area_struct *vma);

/* payload.c */
int xmem_payload_init(void);
int xmem_attach_begin(struct xmem_call *call);
void xmem_attach_finish(struct xmem_call *call, int err);
int xmem_detach_begin(struct xmem_call *call);
int xmem_payload_begin(struct xmem_call *call);
void xmem_payload_drop_slot(struct xmem_pool *pool, u32 id);
void xmem_payload_drop_all(struct xmem_pool *pool);

/* leave.c */
void xmem_client_end(struct xmem_client *client);
void xmem_client_unmapped(struct xmem_client *client);
void xmem_client_left(struct xmem_client *client);
void xmem_pool_queue_end(struct xmem_pool *pool);
void xmem_end_work(struct work_struct *work);
bool xmem_reclaim_slot(struct xmem_pool *pool, u32 slot);
void xmem_reap(struct xmem_pool *pool);

/* wait.c */
int xmem_queues_init(struct xmem_pool *pool);
int xmem_arm_begin(struct xmem_call *call);
int xmem_wait_begin(struct xmem_call *call);
int xmem_wake_begin(struct xmem_call *call);
void xmem_wake(struct xmem_pool *pool, u32 kind, u32 client);
void xmem_wake_everybody(struct xmem_pool *pool);
__poll_t xmem_poll(struct file *filp, struct poll_table_struct *table);

/* sysfs.c */
int xmem_sysfs_init(void);
void xmem_sysfs_exit(void);
void xmem_sysfs_sync(struct xmem_pool *pool);
void xmem_sysfs_work(struct work_struct *work);
int xmem_sysfs_prepare(struct xmem_pool *pool);

static inline struct xmem_pool_header *xmem_header(const struct xmem_pool *pool)
{
	return pool->host.map.pool;
}

#endif
