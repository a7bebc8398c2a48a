/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The objects of the module: a pool with its pages, queues and payloads, a client, and a request
 * that is being served. xk.h has the functions, and says which lock protects what.
 */
#ifndef XK_OBJECTS_H
#define XK_OBJECTS_H

#include <linux/hashtable.h>
#include <linux/hrtimer.h>
#include <linux/ioctl.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/poll.h>
#include <linux/spinlock.h>
#include <linux/uidgid.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "core/host.h"
#include "core/limbo.h"
#include "core/poll.h"
#include "core/request.h"

struct device;
struct xk_call;
struct xk_client;
struct xk_kind;
struct xk_payer;

#define XK_USER_QUOTAS		(XMEM_QUOTA_USER_PAGE_BYTES + 1)	/* quotas of a user */
#define XK_QUOTAS		(XMEM_QUOTA_CLIENT_MAPPINGS + 1)	/* more than any number */

/* The part of a pool's access rules that its owner may change: see access.c. */
struct xk_access {
	kgid_t gid;
	u32 mode;			/* XMEM_MODE_* */
};

/* The last refusal of a payer. */
struct xk_refusal {
	bool any;
	u32 quota;			/* enum xmem_quota */
	u32 level;			/* which user refused: see struct xmem_quota_request */
	u64 used, wanted, most;
};

/* Pages and the kernel's mapping of them. They are never given to a second client. */
struct xk_pages {
	struct xk_pages *next;		/* in a client's list old or late */
	struct xk_payer *payer;		/* with a reference */
	u32 group;			/* in old or late: which group; XMEM_MAX_GROUPS: the area */
	void *view;
	u32 count;
	struct page *page[];
};

/* The pages that every client sees at one place of the layout: the table, a group, or an area. */
enum xk_chunk_kind { XK_TABLE, XK_AREA, XK_GROUP };
struct xk_chunk {
	enum xk_chunk_kind kind;	/* immutable; a table has no spare pages */
	struct xk_payer *payer;		/* with a reference; immutable */

	/* Written under pool->lock and pages_lock, read under either. */
	struct xk_pages *now;
	struct xk_client *writer;	/* may map it writable; or NULL */

	struct xk_pages *spare;		/* pool->lock: takes over when the writer ends */

	/* Only of chunks that have been removed: reap.c. */
	struct xk_chunk *next;
	u32 place;			/* the group, or XMEM_MAX_GROUPS + the client's id */
};

/* Places that are unmapped for all clients at once: unmap.c. */
struct xk_places {
	DECLARE_BITMAP(groups, XMEM_MAX_GROUPS);
	DECLARE_BITMAP(areas, XMEM_MAX_CLIENTS);
};

/* Lines of a client's sleepers: of all of them, for each word, and for each ring's word. */
enum { XK_LINE_ALL, XK_LINE_CLIENTS, XK_LINE_SLOTS, XK_LINE_RINGS };
struct xk_line {
	struct list_head places;	/* struct xk_place, by node; the oldest first */
	u64 turn;			/* how often it was woken */
};

struct xk_place {
	struct list_head node;		/* queue->lock, like all fields: in its line, or empty */
	u64 turn;			/* the line's when it was entered */
	struct xk_sleeper *sleeper;
};

/* A thread in the request wait. It leaves both lines at once. */
struct xk_sleeper {
	struct task_struct *task;
	struct xk_place own, all;	/* in the line of its word, and in that of all */
};

/*
 * The queue of one client: queues.c. It lives as long as the client's struct, so it outlives the
 * client's files; it outlives the client's struct only while its work item runs.
 */
struct xk_queue {
	struct kref kref;		/* of the client, and of the work while it is queued */
	struct rcu_head rcu;
	kuid_t user;			/* of the client; immutable */
	bool joint;			/* the client follows rings as one, or has done so */

	wait_queue_head_t pollers;	/* of its file, and of the files of POLL_FD */
	atomic_t late;			/* the events for which the work will wake them */
	struct delayed_work work;
	struct wait_queue_entry mark;	/* pollers.lock: in the queue where the work has stopped */
	__poll_t called;		/* pollers.lock: the events for which it calls pollers */
	bool slow;			/* only the work writes it: its last run took long */
	unsigned long rests_until;	/* in jiffies; only the work writes it */
	struct hrtimer timer;		/* set when a thread arms slots_waiters */

	spinlock_t lock;		/* the lines, and what waits in them */
	struct xk_line line[];		/* lock; see XK_LINE_* */
};

#define XK_POLL_ALL	(EPOLLIN | EPOLLRDNORM | EPOLLOUT | EPOLLWRNORM | EPOLLHUP)

/* After this much work end_work lets others take the pool's lock. */
#define XK_BATCH	64

/* The clients that ends of other clients concern: wait.c. */
struct xk_concerned {
	u64 ended[XMEM_CLIENT_WORDS];	/* bitmap: clients that have ended */
	u64 pollers[XMEM_CLIENT_WORDS];	/* bitmap: their subscribers and publishers, which the
					 * rows may no longer show */
	bool owners;			/* wake waiters for a slot, for room, or for subscribers */
};

/* Payloads whose files a work item drops: keep.c. */
struct xk_drops {
	struct llist_head files;
	struct work_struct work;
};

struct xk_pool {
	struct kref kref;
	refcount_t users;		/* 0: not in the list of pools; end_work empties it */
	struct hlist_node named;	/* pools_lock: pool.c */
	u64 net;			/* number of the network namespace (pool.c); immutable,
					 * like all fields up to the next blank line */
	u64 serial;			/* from 1, never used again; set when it is listed */
	u32 number;			/* in sysfs and traces; reused */
	kuid_t owner;			/* its maker */
	struct user_namespace *user_ns;	/* the maker's; with a reference */
	struct xk_payer *payer;		/* the maker's; with a reference */
	atomic_long_t pages;		/* number of its own pages, for sysfs */

	spinlock_t access_lock;		/* like pages_lock: the locks are listed in xk.h */
	struct xk_access access;	/* access_lock */

	atomic_t owners;		/* number of its owner's clients that are joining or have
					 * not ended */
	u32 descriptors;		/* pools_lock: of pool_fd. All together are one use, until
					 * the pool is drained */
	struct xk_drops releases;	/* of drivers; the work has a reference while queued */

	struct mutex upgrade_lock;	/* inplace.c */
	struct mutex lock;		/* taken through the functions of lock.c */
	atomic_t lock_wanted;		/* number of waiters for the lock */
	u64 lock_turns;			/* written under pool->lock: how often a waiter has got
					 * it */
	u64 lock_since;			/* pool->lock: when a long holder took it */
	wait_queue_head_t lock_queue;	/* a long holder that waits until a waiter has had the
					 * lock */
	bool dead;			/* pool->lock: it has been emptied */
	bool drained;			/* set under pool->lock and pools_lock, for good: nobody may
					 * join; also read without a lock */
	bool reap_all;			/* pool->lock: end_work is to look at all slots */
	DECLARE_BITMAP(asked, XMEM_MAX_SLOTS);	/* atomic: slots that end_work is to look at */
	struct xk_concerned concerned;	/* pool->lock: clients to be woken after that */
	struct xm_host host;		/* pool->lock; but the map's pointers to the table (pool,
					 * client, row) are immutable */
	rwlock_t look_lock;
	atomic_t slow_looks;		/* only a module for tests uses it: pages.c */
	struct xm_map look;		/* a copy of the map for reading without pool->lock; its
					 * areas and groups are written under both locks */
	void *nothing;			/* zeros that `look` shows where host.map has NULL */
	/*
	 * Written under both locks, read under either; with a reference. A client is here from its
	 * join until nobody has its area mapped any more, so longer than its row says.
	 */
	struct xk_client *client[XMEM_MAX_CLIENTS];
	struct xk_queue __rcu *queue[XMEM_MAX_CLIENTS];	/* pool->lock: of client[] */
	DECLARE_HASHTABLE(payloads, 6);	/* pool->lock: by id */
	u32 payload_count;		/* pool->lock: files that all clients can map */
	u32 device_count;		/* pool->lock: payloads of kinds with @device, even
					 * closing ones */
	u64 opening_last;		/* pool->lock: last number of an OPEN */

	spinlock_t pages_lock;		/* see xk.h */
	struct xk_chunk *table;		/* immutable */
	/* Written under both locks, read under either. */
	struct xk_chunk *area[XMEM_MAX_CLIENTS];
	struct xk_chunk *group[XMEM_MAX_GROUPS];

	struct delayed_work claims_work;	/* claims.c; holds a reference while it waits */
	bool claims_tick;		/* pool->lock: claims_work waits or runs */
	u32 claims_at;			/* pool->lock: the first slot of its next run */

	struct delayed_work exit_work;	/* exited.c; holds a reference while it waits */
	unsigned long exit_delay;	/* lock: in jiffies, less 1, until it looks again */

	struct delayed_work end_work;	/* leave.c; queued under ends_lock */
	wait_queue_head_t end_waiters;	/* threads in xk_end_wait and xk_fault_wait; has a lock of
					 * its own */
	u64 end_asked, end_done;	/* ends_lock, like all fields up to the next blank line:
					 * numbers of what was asked for (ends.c) */
	u64 end_others;			/* the last one that was not asked for by a collect */
	u64 end_serves;			/* the number that is done when the run that began last
					 * is over */
	bool end_runs;			/* a run is not over */
	bool end_collects;		/* only collects have asked for that run */
	bool end_queued;		/* a run is queued without delay */
	u64 end_began;			/* when the last run began */
	u64 end_rest;			/* collects wait until then */

	DECLARE_BITMAP(moving, XMEM_MAX_GROUPS);	/* pool->lock: groups of which some
							 * clients see old pages */
	struct xk_chunk *leaving;	/* only end_work uses it: reap.c */
	struct xk_client *buried;
	struct xk_payer *served;	/* of clients that this run has ended; with references */
	struct device *device;		/* sysfs.c; until sysfs_work has removed it */
	struct work_struct sysfs_work;	/* sysfs.c; holds a reference while it is queued */
};

#define XK_FIRST_KICKS	1
#define XK_NEXT_KICKS	2	/* so that it stays odd */

/* The mappings that an evicted client still has; see xk_unmap_evicted. */
enum {
	XK_EVICT_OVER = 0,		/* nothing, or it is not evicted */
	XK_EVICT_LOOKS,			/* what it maps read-only */
	XK_EVICT_STORES,		/* also what it can write; it sees what others see */
};

struct xk_client {
	struct kref kref;		/* held by its files and by the pool's client table */
	struct xk_pool *pool;		/* with a reference; immutable, like all fields up to the
					 * next blank line */
	u32 id;
	u64 incarnation;
	u32 role;
	u32 roles;			/* that it may pass on by pool_fd; set at the join */
	bool by_fd;			/* it joined by a descriptor; set at the join */
	bool owns;			/* its user is the pool's owner */
	struct mm_struct *mm;		/* grabbed, so that no other mm can have this address */
	struct pid *pid;
	kuid_t uid;
	struct xk_payer *payer;		/* with a reference */
	struct inode *inode;		/* its address space has all mappings of this client */
	struct page *zero;		/* what it reads where there is no chunk; see pages.c */
	struct page *scratch;		/* what it writes after its end */
	struct xk_queue *queue;
	atomic_t kicks;			/* how often their waits were ended; never 0 */
	ktime_t clock_offset;		/* its CLOCK_MONOTONIC minus the initial namespace's */

	bool ended;			/* pages_lock; set once, so also read without it */
	u64 ended_ns;			/* set before ended: when it ended */
	u32 reason;			/* set before ended: why others have ended it,
					 * XMEM_REASON_* */
	u8 evicting;			/* pages_lock; XK_EVICT_*; later only end_work changes it */
	bool let_go;			/* set last, with release order: end_work may continue */
	u64 had_holds;			/* set before let_go: how many holds it has dropped */
	u32 area_maps;			/* pages_lock: VMAs of mm that map the area writable */
	u32 maps;			/* pages_lock: all VMAs of its inode, in any mm */
	struct mutex attach_lock;	/* attach.c */
	struct xm_followed followed;	/* written under pool->lock, read without it */

	struct xk_pages *old;		/* only end_work: its old pages, when others see copies */
	struct xk_client *next;		/* only end_work: in the list of buried clients */
	struct xk_pages *late;		/* pool->lock: old pages that its GPU may write until the
					 * process has exited */
	bool exit_watched;		/* pool->lock: exit_work was armed for its process */
};

/*
 * A payload: a file, memory of a GPU, or both. pool->lock protects it from its entry into the table
 * on. A kind that needs more fields has a struct that begins with this one.
 */
struct xk_payload {
	const struct xk_kind *kind;	/* immutable */
	struct kref kref;		/* of the table, and of the file while it is open */
	struct hlist_node node;
	u64 id;
	u32 slots;			/* number of slots that use it; the last one releases the
					 * file */
	u32 traits;			/* XMEM_TRAIT_* */
	u64 incarnation;		/* of the client that attached it */
	u32 owner;			/* that client's id */
	u64 bytes;
	bool writable;			/* immutable: the file was attached with write access */
	bool open;			/* the table uses the file */
	struct xk_payer *payer;		/* with a reference; immutable, like the next */
	struct xk_pool *pool;		/* without a reference */

	/* The file that the module keeps for clients: keep.c. */
	refcount_t uses;		/* by the table, by requests, by a work item */
	struct file *file;		/* or NULL: there is none */
	struct file *guard;		/* NULL, or another open file that only prevents leases:
					 * see xk_memfd_own */
	bool truncates;			/* its pages go with the last slot */
	struct llist_node drop;		/* in struct xk_drops */
};

/* The payload that an attach offers. check replaces the caller's file by the one to be kept. */
struct xk_offer {
	struct file *file;		/* with a reference; or NULL: there is none */
	struct file *guard;		/* with a reference; or NULL: see xk_memfd_own */
	u64 bytes;
	u32 traits;			/* XMEM_TRAIT_*, without those that the flags decide */
	bool writable;			/* clients that may write can get a writable file */
};

/*
 * A kind of payload. All differences between kinds are here, and attach.c lists the kinds: no other
 * code asks of which kind a payload is.
 *
 * check and open are called without a lock and may sleep. The others run under pool->lock. None of
 * them runs in a process that is ending: end_work calls what the end of a client needs (exited,
 * and goes when its slots are reaped). NULL: there is nothing to do.
 */
struct xk_kind {
	size_t bytes;			/* of its struct */
	/*
	 * Memory of a GPU, which a client has open until it closes it or its process has exited. It
	 * counts until its file is released, and it has a row in the device table.
	 */
	bool device;
	bool driver;			/* the ->release of its files is a driver's */

	/*
	 * Accepts what an attach offers, or says why not. -EMEDIUMTYPE: it is of another kind. On
	 * success it may have replaced the caller's file by another one; it has then dropped the
	 * reference to the caller's.
	 */
	int (*check)(const struct xmem_attach_request *request, struct xk_offer *offer);
	/* The payload enters the table; its slots have been attached as @what says. */
	void (*enter)(struct xk_pool *pool, struct xk_payload *payload,
		      const struct xm_payload *what, const struct xmem_attach_request *request);

	/*
	 * Serves the request payload: checks the caller's rights and fills in the answer except for
	 * the descriptor. It sets call->keep if there is to be a descriptor, and call->opening if
	 * there is something to undo. It may free the payload.
	 */
	int (*serve)(struct xk_call *call, struct xk_payload *payload);
	/* After serve: returns the file that the caller gets for call->keep, with a reference. */
	struct file *(*open)(const struct xk_call *call);
	/* The answer did not reach the caller, which has not ended. It may free the payload. */
	void (*undo)(struct xk_call *call, struct xk_payload *payload);

	/* Its last slot has gone: returns what xk_payload_forget returns, or NULL. */
	struct xk_payload *(*goes)(struct xk_pool *pool, struct xk_payload *payload);
	/* A client has ended, and its process has exited. It may free the payload. */
	void (*exited)(struct xk_pool *pool, struct xk_payload *payload, u32 client);
};

/* A request that is being served. */
struct xk_call {
	struct file *file;		/* the file that it was sent to */
	struct xk_client *client;	/* that file's client; NULL: it is the device's file */
	struct xk_payer *payer;		/* of that file */
	const struct file_operations *joined_ops;	/* join: for the new file */
	union xm_request u;
	struct file *give;		/* the caller gets a descriptor of it */
	bool passed;			/* that file is not new: others have it, too */
	bool waited;			/* it has waited for the cleanup of its user: ends.c */
	int fd;				/* the number of the descriptor; -1: none yet */
	struct xk_pool *displaced;	/* join: the pool whose name the new pool has taken, with
					 * a reference; or NULL */
	struct xk_payload *keep;	/* the request uses its file; or NULL */
	u64 opening;			/* payload: the number of a served OPEN; or 0 */
};

#define XK_MAPS	32	/* mappings of one client, plus one for each group of the pool */

static inline u32 xk_most_maps(const struct xk_pool *pool)
{
	return XK_MAPS + pool->host.map.groups;
}

static inline struct xmem_pool_header *xk_header(const struct xk_pool *pool)
{
	return pool->host.map.pool;
}

#endif
