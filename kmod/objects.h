/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The objects of the module: a pool with its pages, queues and payloads, a client, and a request
 * under way. xk.h has the functions, and says which lock guards what.
 */
#ifndef XK_OBJECTS_H
#define XK_OBJECTS_H

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
struct xk_drops;
struct xk_kind;
struct xk_payer;
struct xk_stake;

#define XK_PAYLOAD_LISTS	64
#define XK_USER_QUOTAS		(XMEM_QUOTA_USER_MAPPINGS + 1)	/* those of a user */
#define XK_QUOTAS		(XMEM_QUOTA_CLIENT_LIMBO + 1)	/* all numbers below it */

/* What of a pool's access its owner may change: see access.c. */
struct xk_access {
	kgid_t gid;
	u32 mode;			/* XMEM_MODE_* */
};

/* What a payer was refused. */
struct xk_refusal {
	bool any;
	u32 quota;			/* enum xmem_quota */
	u32 level;			/* whose it is: see struct xmem_quota_request */
	u64 used, wanted, most;
};

/* Pages with the kernel's view of them. They are never given to a second client. */
struct xk_pages {
	union {
		struct xk_pages *next;		/* of a client's old pages, or its late ones */
		struct llist_node retired;	/* of those that are freed in a moment */
	};
	struct xk_payer *payer;		/* with a reference */
	u32 group;			/* of those: which; XMEM_MAX_GROUPS: the area */
	void *view;
	u32 count;
	struct page *page[];
};

/* What every client sees at one place of the layout: the table, a group, or an area. */
enum xk_chunk_kind { XK_TABLE, XK_AREA, XK_GROUP };
struct xk_chunk {
	enum xk_chunk_kind kind;	/* immutable; a table has no spare pages */
	struct xk_payer *payer;		/* with a reference; only a table's changes: stakes.c */

	/* Written under pool->lock and pages_lock, read under either. */
	struct xk_pages *now;
	struct xk_client *writer;	/* may map it writable; or NULL */

	struct xk_pages *spare;		/* pool->lock: takes over when the writer ends */

	/* Of those that have been taken away: reap.c. */
	struct xk_chunk *next;
	u32 place;			/* the group, or XMEM_MAX_GROUPS + the client's id */
};

/* Places where something is unmapped for all clients, at once: unmap.c. */
struct xk_places {
	DECLARE_BITMAP(groups, XMEM_MAX_GROUPS);
	DECLARE_BITMAP(areas, XMEM_MAX_CLIENTS);
};

/* A queue that clients make long: queues.c. */
struct xk_queue {
	wait_queue_head_t head;
	struct work_struct work;	/* wakes many */
	struct hrtimer timer;		/* queues that work */
	__poll_t late;			/* written under head.lock: for which events; 0: it is not
					 * to come */
	struct wait_queue_entry mark;	/* head.lock: those behind it have yet to be woken */
	struct kref *kref;		/* of what it is in: for the timer, then for the work */
	void (*release)(struct kref *kref);
};

/* Those who sleep until a waiters word of a pool changes: a few of each client, and all others. */
struct xk_word_queue {
	wait_queue_head_t few;
	struct xk_queue many;
};

/* All of a pool. Longer than the pool there are only those that are still to be woken. */
struct xk_queues {
	struct kref kref;		/* of the pool; see xk_queue */
	u32 count;
	struct xk_word_queue word[];
};

/*
 * Those who poll the descriptors of one client: its file, and those that POLL_FD has given. It
 * lives as long as the client's struct, and so outlives them all; longer only while it is to be
 * woken.
 */
struct xk_pollers {
	struct kref kref;		/* of the client; see xk_queue */
	struct xk_queue queue;
	struct xk_queue sleepers;	/* its threads in the request wait, whatever the word */
	struct hrtimer timer;		/* armed under look_lock: see xm_search_end */
	bool joint;			/* the client follows rings as one, or did so */
	struct rcu_head rcu;
};
#define XK_POLL_ALL	(EPOLLIN | EPOLLRDNORM | EPOLLOUT | EPOLLWRNORM | EPOLLHUP)

/* Others get the pool's lock after so much of end_work's. */
#define XK_BATCH	64

/* Whom the ends of clients concern: wait.c. */
struct xk_concerned {
	u64 ended[XMEM_CLIENT_WORDS];	/* those that have ended: a bitmap, as the next */
	u64 pollers[XMEM_CLIENT_WORDS];	/* their subscribers and their publishers, which may be
					 * forgotten by now */
	bool owners;			/* waiters for a slot, for room, or for subscribers */
};

/* What end_work has been asked to reap. */
enum { XK_REAP_SOME = 1, XK_REAP_CLIENTS = 2, XK_REAP_ALL = 4 };

struct xk_pool {
	struct kref kref;
	refcount_t users;		/* 0: not in the list of pools; end_work empties it */
	struct list_head list;		/* pools_lock */
	u64 net;			/* number of the network namespace: pool.c; immutable, as
					 * all up to the next blank line */
	u64 serial;			/* from 1, never used again; set when it is listed */
	u32 number;			/* in sysfs and traces; used again */
	kuid_t owner;			/* who made it, */
	struct user_namespace *user_ns;	/* and where: with a reference */
	struct xk_payer *payer;		/* of who made it; with a reference */
	u64 limbo_bytes;		/* see join; 0: any number */
	struct xk_queues *queues;	/* see wait.c */
	atomic_long_t pages;		/* charged to it */

	spinlock_t access_lock;
	struct xk_access access;	/* access_lock */

	atomic_t owners;		/* so many clients of its owner join, or have not ended */
	struct list_head stakes;	/* stakes_lock: of users who have something of it */
	struct xk_stake *birth;		/* its maker's, until a client has joined; by xchg */
	bool charged;			/* pools_lock: it counts as one of the pools */
	u32 clients;			/* pools_lock: structs of clients that there are */
	u32 files;			/* written under pools_lock: of drivers, that it keeps or
					 * that are still being released */
	struct llist_head slow_drops;	/* those that are to be dropped: keep.c, as the next */
	struct work_struct slow_work;	/* while it is queued it has a reference */
	struct xk_drops *drops;		/* of all its other files: drops.c; immutable */

	struct mutex upgrade_lock;	/* inplace.c */
	struct mutex lock;		/* taken by the functions of lock.c, but by end_work */
	atomic_t lock_wanted;		/* so many wait for it */
	u64 lock_turns;			/* written under pool->lock: so often who waited got it */
	u64 lock_since;			/* pool->lock: when who has it for long took it */
	wait_queue_head_t lock_queue;	/* who has it for long, and waits for a turn of others */
	bool dead;			/* pool->lock: it has been emptied */
	bool drained;			/* set under pool->lock, for good: nobody joins it; also
					 * read without it */
	u32 reap;			/* pool->lock: what end_work is to reap, XK_REAP_* */
	DECLARE_BITMAP(asked, XMEM_MAX_SLOTS);	/* atomic: slots that it is to look at, too */
	atomic_t asked_all;		/* it is to look at all */
	struct xk_concerned concerned;	/* pool->lock: who is to be woken then */
	struct xm_host host;		/* pool->lock; but the map's pointers to the table
					 * (pool, client, row) are immutable */
	struct xm_map look;		/* the same map for who has not got the lock: between
					 * xk_look_begin and xk_look_end, only to read */
	void *nothing;			/* zeros, for that: where host.map says NULL */
	/*
	 * Written under both locks, read under either; referenced. From the join of a client until
	 * nobody has its area mapped any more, so longer than its row says.
	 */
	struct xk_client *client[XMEM_MAX_CLIENTS];
	struct xk_pollers __rcu *pollers[XMEM_MAX_CLIENTS];	/* pool->lock: of client[] */
	struct hlist_head payloads[XK_PAYLOAD_LISTS];	/* pool->lock: by id */
	u32 payload_count;		/* pool->lock: of files that all can map */
	u32 device_count;		/* pool->lock: of kinds with @device, closing ones too */
	u64 opening_last;		/* pool->lock: last number of an OPEN */

	spinlock_t pages_lock;
	struct xk_chunk *table;		/* immutable */
	/* Written under both locks, read under either. */
	struct xk_chunk *area[XMEM_MAX_CLIENTS];
	struct xk_chunk *group[XMEM_MAX_GROUPS];

	struct delayed_work claims_work;	/* claims.c; while it waits it has a reference */
	u64 claims_at;			/* pool->lock: when that runs; 0: it does not wait */

	struct delayed_work limbo_work;	/* limbo.c; while it waits it has a reference */
	struct xm_limbo_look limbo;	/* end_work's own, as the next */
	bool went_on;			/* its last run has left it to this one to say it is over */

	struct delayed_work end_work;	/* leave.c; queued under ends_lock */
	struct list_head end_node;	/* ends_lock, as all up to the next blank line: ends.c */
	wait_queue_head_t end_waiters;	/* has a lock of its own: who waits in xk_end_wait */
	u64 end_first, end_asked, end_done;	/* numbers */
	u64 end_others;			/* the last that was no collect's */
	u64 end_serves;			/* what the run that began last says when it is over */
	bool end_runs;			/* it is not over, */
	bool end_collects;		/* and collects alone had asked for it */
	bool end_queued;		/* a run comes at once */
	u64 end_began;			/* when the last one did */
	u64 end_rest;			/* until when collects wait */

	DECLARE_BITMAP(moving, XMEM_MAX_GROUPS);	/* pool->lock: some see old pages of it */
	struct xk_chunk *leaving;	/* end_work's own, as the next: reap.c */
	struct xk_client *buried;
	struct device *device;		/* sysfs.c; until the next has removed it */
	struct work_struct sysfs_work;	/* while it is queued it has a reference */
};

#define XK_FIRST_KICKS	1
#define XK_NEXT_KICKS	2	/* so it stays odd */

/* What a client that others have ended has not lost yet; see xk_unmap_evicted. */
enum {
	XK_EVICT_OVER = 0,		/* nothing any more, or it is not evicted */
	XK_EVICT_LOOKS,			/* what it has mapped to read */
	XK_EVICT_STORES,		/* that, and what it stores into; it sees what others see */
};

struct xk_client {
	struct kref kref;		/* of its files, and of the pool's client table */
	struct xk_pool *pool;		/* with a reference; immutable, as all up to the next
					 * blank line */
	u32 id;
	u64 incarnation;
	u32 role;
	u32 roles;			/* that it may pass on by pool_fd; set when it joins */
	bool by_fd;			/* it joined by a descriptor; set then, too */
	bool owns;			/* its user is the pool's owner */
	struct mm_struct *mm;		/* grabbed, so that no other mm gets this address */
	struct pid *pid;
	kuid_t uid;
	struct xk_payer *payer;		/* with a reference */
	struct xk_stake *stake;		/* of the payer, as long as there are */
	refcount_t files;		/* its own, and those of its poll_fd */
	struct inode *inode;		/* its address space has every mapping of this client */
	struct page *zero;		/* what it reads where there is no chunk; see pages.c */
	struct page *scratch;		/* what it writes after its end */
	struct xk_pollers *pollers;
	atomic_t waiting;		/* so many of its threads are in the request wait */
	atomic_t kicks;			/* how often their waits were ended; never 0 */
	ktime_t clock_offset;		/* its CLOCK_MONOTONIC less the initial namespace's */

	bool ended;			/* pages_lock; also read without it: it is set once */
	u64 ended_ns;			/* set before ended: when that was */
	u32 reason;			/* likewise: why others have ended it, XMEM_REASON_* */
	u8 evicting;			/* pages_lock, set before ended: what it still maps, see
					 * unmap.c; only end_work changes it then */
	bool let_go;			/* set last, with release order: end_work may go on */
	u64 had_holds;			/* set before let_go: what it has let go of */
	u32 area_maps;			/* pages_lock: VMAs of mm that map the area writable */
	u32 maps;			/* pages_lock: all VMAs of its inode, in whichever mm */
	struct pid *sharer;		/* pages_lock: another process that ran in mm; or NULL */
	struct mutex attach_lock;	/* attach.c */
	struct xm_followed followed;	/* written under pool->lock, read without it */
	spinlock_t look_lock;		/* poll.c, as the next; and for its pollers' timer */
	struct xm_search nothing;	/* look_lock: the last search in vain */
	u32 nothing_armed;		/* look_lock: the value of slots_waiters then; or 0 */

	struct xk_pages *old;		/* end_work's own: its pages, when others have copies */
	struct xk_client *next;		/* end_work's own: of those that have been buried */
	struct xk_pages *late;		/* pool->lock: what its GPU may write until it has exited */
	bool exit_watched;		/* pool->lock: exit_wait is in the queue of its pid */
	struct wait_queue_entry exit_wait;
};

/* Pools that drop files at a time: each may keep a thread of the kernel for long. */
#define XK_DROPPING_POOLS	256

/* A file that is kept for others. It is dropped by a work item: see keep.c. */
struct xk_keep {
	struct kref kref;
	struct file *file;
	struct file *guard;		/* NULL, or open as well, for nobody: see xk_memfd_own */
	struct xk_pool *pool;		/* immutable, without a reference */
	bool counted;			/* it is a driver's: pool->files has it */
	struct llist_node node;		/* in pool->drops, or if it is counted in slow_drops */
};

/*
 * A payload: a file, memory of a GPU, or both. pool->lock guards it from its entry on. A kind that
 * notes more has a struct that begins with this one.
 */
struct xk_payload {
	const struct xk_kind *kind;	/* immutable */
	struct hlist_node node;
	u64 id;
	u32 slots;			/* that use it; with the last the file goes */
	u32 traits;			/* XMEM_TRAIT_* */
	u64 incarnation;		/* of the client that attached it */
	u32 owner;			/* its id */
	u64 bytes;
	bool kept;			/* that client has ended */
	bool writable;			/* immutable: the file was attached with write access */
	struct xk_keep *keep;		/* with a reference; or NULL: there is no file */
	struct xk_payer *payer;		/* with a reference */
};

/* What an attach brings. check makes of the caller's file what is to be kept. */
struct xk_offer {
	struct file *file;		/* with a reference; or NULL: there is none */
	struct file *guard;		/* the same: see xk_memfd_own */
	u64 bytes;
	u32 traits;			/* XMEM_TRAIT_*, but for those that the flags say */
	bool writable;			/* who may have a writable file may get one of this */
};

/*
 * A kind of payload. This is all in which kinds differ, and kinds.c lists them: nothing else asks
 * of what kind a payload is.
 *
 * check and open are called without a lock, and may sleep. All others run under pool->lock. None
 * runs in a process because it ends: what the end of a client needs of a kind (opened, exited, and
 * goes when its slots are reaped) end_work asks for. NULL: there is nothing to do.
 */
struct xk_kind {
	size_t bytes;			/* of its struct */
	/*
	 * Memory of a GPU, which a client has open until it says so or its process has exited. It
	 * counts among device_files until its file is released, and stands in the device table.
	 */
	bool device;

	/*
	 * Takes what an attach brings, or says why not. -EMEDIUMTYPE: it is of no such kind. On
	 * success it may have put another file in the place of the caller's, whose reference it
	 * has dropped then.
	 */
	int (*check)(const struct xmem_attach_request *request, struct xk_offer *offer);
	/* It enters the table; its slots have been attached as @what says. */
	void (*enter)(struct xk_pool *pool, struct xk_payload *payload,
		      const struct xm_payload *what, const struct xmem_attach_request *request);

	/*
	 * The request payload: checks what the caller may, and fills the answer but for the
	 * descriptor. post: call->keep if there is to be one; call->opening if there is something
	 * to undo. It may free the payload.
	 */
	int (*serve)(struct xk_call *call, struct xk_payload *payload);
	/* Then: the file that the caller gets of call->keep, with a reference. */
	struct file *(*open)(const struct xk_call *call);
	/* The caller did not get the answer, and has not ended. It may free the payload. */
	void (*undo)(struct xk_call *call, struct xk_payload *payload);

	/* Its last slot has gone: xk_payload_forget, now or later. */
	void (*goes)(struct xk_pool *pool, struct xk_payload *payload);
	/* A client has ended. Has it this open, and may it use it until its process has exited? */
	bool (*opened)(const struct xk_payload *payload, u32 client);
	/* Now that has exited, too. It may free the payload. */
	void (*exited)(struct xk_pool *pool, struct xk_payload *payload, u32 client);
};

/* One request while it is being done. */
struct xk_call {
	struct file *file;		/* by which it comes */
	struct xk_client *client;	/* whose file that is; NULL: it is the device's */
	struct xk_payer *payer;		/* of that file */
	const struct file_operations *joined_ops;	/* join: of the file that it makes */
	union xm_request u;
	struct file *give;		/* becomes a descriptor of the caller */
	bool passed;			/* others have that file too: it is not new */
	bool waited;			/* for ends of others: ends.c, as the next */
	u64 runs;			/* how many runs of end_work were over when it began */
	int fd;				/* the number that it will have there; -1: none yet */
	struct xk_pool *displaced;	/* join: whose name the new pool has taken, with a
					 * reference; or NULL */
	struct xk_keep *keep;		/* with a reference while that is being done; or NULL */
	u64 opening;			/* payload, OPEN that has been done: its number; or 0 */
	struct xk_access access_before;	/* access that has been done, as the next */
	struct xk_access access_now;
};

/* Every payload of @pool; @i: a u32, @next: a struct hlist_node *. The payload may be freed. */
#define xk_for_each_payload(pool, i, next, payload)					\
	for ((i) = 0; (i) < XK_PAYLOAD_LISTS; (i)++)					\
		hlist_for_each_entry_safe(payload, next, &(pool)->payloads[i], node)

#define XK_MAPS	32	/* mappings of one client, besides one for each group of the pool */

static inline u32 xk_most_maps(const struct xk_pool *pool)
{
	return XK_MAPS + pool->host.map.groups;
}

static inline struct xmem_pool_header *xk_header(const struct xk_pool *pool)
{
	return pool->host.map.pool;
}

#endif
