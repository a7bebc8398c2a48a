/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the module's files share: the structs of a pool, of its pages and of a client,
 * which file may call which, and which lock guards what.
 *
 * What is counted in the pages is not done here but in core/, which is pure. The
 * module adds what the core cannot have: memory, files, waiting, and the knowledge
 * that a client has ended.
 *
 * Layers. A file calls only what is defined in the lines above its own or, in its
 * own line, further left; tests/check-layers.sh reads this table and checks it.
 * What a lower file must tell a higher one goes through a work item in the pool,
 * which the higher file has prepared.
 *
 *   core/                                        the bookkeeping in the pages
 *   trace.c users.c limits.c inode.c pages.c     who pays; files, pages, and how many there may be
 *   access.c                                     who may join a pool
 *   queues.c pollers.c                           long queues, and how they are woken
 *   drops.c                                      files that are dropped one after the other
 *   stakes.c lock.c ends.c pool.c client.c       objects: made, found, locked, freed; for
 *   unmap.c exited.c                             whom pools count; who waits for their ends; what
 *                                                clients have mapped; has a process exited?
 *   wait.c keep.c payload.c                      what a pool has besides its pages
 *   files.c dmabuf.c drivers.c cuda.c kinds.c    the kinds of payload, a file for each; drivers.c:
 *                                                whose devices' files may be payloads
 *   opened.c                                     who gets payloads
 *   sysfs_text.c sysfs_records.c sysfs.c         what is shown
 *   fdinfo.c
 *   reap.c claims.c limbo.c moved.c leave.c      the end of claims, a client and a pool; who
 *                                                holds too much of what they have left
 *   evict.c                                      the end of clients and pools, by others; grants
 *   pool_fd.c join.c attach.c subscribe.c        what a process asks for
 *   slot.c query.c inplace.c
 *   poll.c mmap.c                                what it polls, what it maps
 *   ioctl.c                                      which request is done by which function
 *   device.c module.c                            /dev/xmem, the clients' files; the module's
 *                                                init and exit
 *
 * Locks, outermost first
 *
 *   mmap_lock             of any process; ->mmap, ->fault and a VMA's ->close run
 *                         under it. It is never taken below a lock of ours, so user
 *                         memory is touched under none.
 *   xk_client.attach_lock attaches of one client, one at a time
 *   xk_pool.upgrade_lock  of upgrades, one at a time
 *   xk_pool.end_work      not a lock, but who lacks what ended clients have left waits for it
 *                         like one (ends.c), and who stores into what it is
 *                         losing to it, in its fault (unmap.c); who ends does not
 *   i_mmap_rwsem, page locks  of each client's inode, of the pool's pages: taken when
 *                         something is unmapped, and by faults. A client's process that is
 *                         throttled may have them for long, so never below the next.
 *   xk_pool.lock          the pool: its host words, chunks, payloads, client table
 *   xk_pool.pages_lock    what a fault looks at; who may write; who has ended
 *   xk_client.look_lock   what its last poll found, and the timer of its pollers
 *   pools_lock            the list of pools, and which count as pools (pool.c)
 *   xk_pool.access_lock   who may join: group and mode
 *   stakes_lock           for whom pools count (stakes.c)
 *   pid->wait_pidfd.lock  of a client's process: exited.c, which runs below tasklist_lock, too
 *   shares_lock           what users have of what all share (limits.c)
 *   users_lock, xk_payer.lock  who pays, and what it was last refused (users.c)
 *   ends_lock             what has been asked of end_work, in all pools, and when it runs (ends.c)
 *
 * Who polls or reads sysfs takes none of these but look_lock, and pages_lock for a moment: it reads
 * by xk_pool.look, between xk_look_begin and xk_look_end (pages.c). What it reads of the structs is
 * written once.
 *
 * Lifetime. A pool is *used* by its clients that have not ended and by descriptors of
 * the pool. When the last use goes, the name is free at once and end_work empties the
 * pool. The struct, the pool table and the wait queues stay as long as anything points
 * to them (kref), so that a request reads host words without a lock.
 *
 * A client's file is made by join, on an inode of its own: what the client maps is in the
 * address space of that inode, and costs nobody else anything once the client has ended.
 *
 * A client in quarantine stays in its pool's table until its process has exited, whether its
 * file is open or not, or until the pool is emptied. It keeps neither the pool used nor the
 * module loaded.
 *
 * The struct of a pool stays also while files of drivers that it had are being released, and the
 * pool counts in max_pools until then, and until the structs of its clients have gone: a file of a
 * client that has ended keeps the table and the queues.
 *
 * Nothing allocates memory under xk_pool.lock: end_work takes it to free memory, and when
 * memory runs out an allocation may have to wait for that.
 */
#ifndef XK_PRIVATE_H
#define XK_PRIVATE_H

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

struct attribute_group;
struct device;
struct seq_file;
struct xk_call;
struct xk_client;
struct xk_drops;
struct xk_kind;
struct xk_payer;
struct xk_stake;

#define XK_VERSION		"0.5.0"
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
	u64 followers[XMEM_CLIENT_WORDS];	/* who has followed them: may be forgotten by now */
	bool owners;			/* who waits for a slot, or for room */
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
	struct xk_keep *keep;		/* with a reference; or NULL: there is no file */
	struct xk_payer *payer;		/* with a reference */
};

/* What an attach brings. check makes of the caller's file what is to be kept. */
struct xk_offer {
	struct file *file;		/* with a reference; or NULL: there is none */
	u64 bytes;
	u32 traits;			/* XMEM_TRAIT_*, but for those that the flags say */
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
	bool waited;			/* for ends of others: ends.c */
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

/* Prototypes, in the order of the table above. users.c */
struct xk_payer *xk_payer_new(void);
struct xk_payer *xk_payer_of_client(const struct xk_payer *payer);
struct xk_payer *xk_payer_get(struct xk_payer *payer);
void xk_payer_put(struct xk_payer *payer);
int xk_charge(struct xk_payer *payer, const struct xk_pool *pool, u32 quota, u64 n);
void xk_charge_anyhow(struct xk_payer *payer, u32 quota, u64 n);
void xk_uncharge(struct xk_payer *payer, u32 quota, u64 n);
int xk_share(struct xk_payer *payer, const struct xk_pool *pool, u32 quota, u32 share, u64 n,
	     u64 free);
bool xk_payers_are_one(const struct xk_payer *a, const struct xk_payer *b);
bool xk_payers_meet(const struct xk_payer *a, const struct xk_payer *b);
bool xk_is_guest(const struct xk_pool *pool, const struct xk_payer *payer);
int xk_share_of_pool(struct xk_payer *payer, const struct xk_pool *pool, u32 share, u32 has,
		     u32 taken, u32 most);
int xk_refuse(struct xk_payer *payer, const struct xk_pool *pool, u32 quota, u64 used, u64 wanted,
	      u64 most);
void xk_refused(struct xk_payer *payer, struct xk_refusal *ret);
void xk_refused_to_join(struct xk_payer *payer, struct xk_payer *client);
const char *xk_quota_name(u32 quota);
u64 xk_user_most(u32 quota);
bool xk_user_is_over(const struct xk_payer *payer, u32 quota, u64 n);
u64 xk_user_used(const struct xk_payer *payer, u32 quota);
kuid_t xk_payer_uid(const struct xk_payer *payer, u32 level);
ssize_t xk_users_print(char *page);
bool xk_no_users(void);

/* limits.c */
extern unsigned int xk_max_pools, xk_max_payloads, xk_max_device_files;
extern unsigned long xk_max_pool_bytes, xk_max_bytes, xk_max_limbo_bytes;
int xk_charge_pool(struct xk_payer *payer);
void xk_uncharge_pool(void);
int xk_charge_stake(struct xk_pool *pool, struct xk_payer *payer);
int xk_charge_pages(struct xk_pool *pool, struct xk_payer *payer, unsigned long pages);
void xk_uncharge_pool_pages(struct xk_pool *pool, unsigned long pages);
void xk_uncharge_freed_pages(struct xk_payer *payer, unsigned long pages);
void xk_uncharge_pages(struct xk_pool *pool, struct xk_payer *payer, unsigned long pages);
u64 xk_limbo_most(const struct xk_pool *pool);
void xk_host_quota(u32 quota, u64 *ret_used, u64 *ret_most);
bool xk_nothing_charged(void);

/* inode.c */
struct inode *xk_inode_new(void);
void xk_inode_put(struct inode *inode);
struct file *xk_inode_file(struct inode *inode, const struct file_operations *ops, void *private);

/* pages.c */
int xk_pages_init(void);
void xk_pages_exit(void);
int xk_look_prepare(struct xk_pool *pool);
void xk_look_free(struct xk_pool *pool);
int __must_check xk_pages_settle(void);
int __must_check xk_look_begin(void);
void xk_look_end(int looker);
#ifdef XMEM_DEBUG
void xk_look_slowly(const struct xk_pool *pool);
#else
static inline void xk_look_slowly(const struct xk_pool *pool) { }
#endif
void xk_show_area(struct xk_pool *pool, u32 client, void *view);
void xk_show_group(struct xk_pool *pool, u32 group, void *view);
struct xk_chunk *xk_chunk_new(struct xk_pool *pool, struct xk_payer *payer, u64 bytes,
			      enum xk_chunk_kind kind);
void xk_chunk_pass(struct xk_chunk *table, struct xk_payer *payer);
void xk_chunk_free(struct xk_pool *pool, struct xk_chunk *chunk);
void xk_chunk_place(struct xk_pool *pool, struct xk_chunk **place, struct xk_chunk *chunk,
		    struct xk_client *writer);
struct xk_chunk *xk_chunk_take(struct xk_pool *pool, struct xk_chunk **place);
void *xk_chunk_copy(struct xk_chunk *chunk);
struct xk_pages *xk_chunk_swap(struct xk_pool *pool, struct xk_chunk *chunk);
void xk_page_drain(struct page *page);
void xk_pages_drain(const struct xk_pages *pages);
void xk_pool_drain(struct xk_pool *pool);
void xk_pages_free(struct xk_pool *pool, struct xk_pages *pages);
void xk_pages_retire(struct xk_pool *pool, struct xk_pages *pages);
void xk_chunk_retire(struct xk_pool *pool, struct xk_chunk *chunk);
bool xk_may_write(struct xk_pool *pool, const struct xk_client *client, u64 from, u64 to);
struct page *xk_page_get(const struct xk_client *client, bool write, u64 offset);
bool xk_page_is_current(const struct xk_client *client, bool write, u64 offset,
			const struct page *page);

/* access.c */
int xk_access_prepare(struct xk_pool *pool, const struct xmem_join_request *join);
void xk_access_free(struct xk_pool *pool);
void xk_access_of(struct xk_pool *pool, kgid_t *ret_gid, u32 *ret_mode);
bool xk_access_owns(const struct xk_pool *pool);
bool xk_access_administers(const struct xk_pool *pool);
u32 xk_access_roles(struct xk_pool *pool);
int xk_access_fits(struct xk_pool *pool, const struct xmem_join_request *join);
u32 xk_access_roles_by_file(struct xk_pool *pool, u32 roles);
int xk_access_begin(struct xk_call *call);
void xk_access_finish(struct xk_call *call, int err);

/* queues.c */
int xk_queues_init(void);
void xk_queues_exit(void);
void xk_queue_wake(struct xk_queue *queue, __poll_t events);
void xk_queue_prepare(struct xk_queue *queue, struct kref *kref,
		      void (*release)(struct kref *kref));
void xk_queue_stop(struct xk_queue *queue);
struct xk_queues *xk_queues_new(u32 count);
void xk_queues_free(struct xk_queues *queues);

/* pollers.c */
struct xk_pollers *xk_pollers_new(void);
void xk_pollers_free(struct xk_pollers *pollers);
void xk_pollers_wake(struct xk_pollers *pollers, __poll_t events);

/* drops.c */
int xk_drops_init(void);
void xk_drops_exit(void);
void xk_drop_now(struct xk_keep *keep);
struct xk_drops *xk_drops_new(void);
void xk_drops_put(struct xk_drops *drops);
void xk_drops_add(struct xk_drops *drops, struct xk_keep *keep);

/* stakes.c */
struct xk_stake *xk_stake_first(struct xk_pool *pool);
struct xk_stake *xk_stake_take(struct xk_pool *pool, struct xk_payer *payer);
void xk_stake_drop(struct xk_pool *pool, struct xk_stake *stake);
void xk_stakes_sweep(struct xk_pool *pool);

/* lock.c */
void xk_lock_prepare(struct xk_pool *pool);
void xk_pool_lock(struct xk_pool *pool);
int __must_check xk_pool_lock_killable(struct xk_pool *pool);
void xk_pool_lock_long(struct xk_pool *pool);
void xk_pool_let_in(struct xk_pool *pool);

/* ends.c */
extern struct workqueue_struct *xk_end_wq;	/* only for end_work */
void xk_end_ask(struct xk_pool *pool, bool collect);
void xk_end_begins(struct xk_pool *pool);
void xk_end_goes_on(struct xk_pool *pool);
void xk_end_over(struct xk_pool *pool);
int xk_end_wait(struct xk_pool *pool);
bool xk_end_comes(const struct xk_pool *pool);
bool xk_ends_bring(struct xk_call *call, int err);

/* pool.c */
extern struct workqueue_struct *xk_wq;		/* for the other work of pools */
int xk_pools_init(void);
void xk_pools_exit(void);
struct xk_pool *xk_pool_new(const struct xmem_join_request *join, struct xk_payer *payer);
void xk_pool_discard(struct xk_pool *pool);
void xk_pool_born(struct xk_pool *pool);
struct xk_pool *xk_pool_find(const struct xmem_join_request *join, u32 *ret_roles);
bool xk_pool_is_callers(const struct xmem_join_request *join);
struct xk_pool *xk_pool_enlist(struct xk_pool *new, const struct xmem_join_request *join,
			       u32 *ret_roles, struct xk_pool **ret_old);
void xk_pool_relist(struct xk_pool *old);
void xk_pools_look(void);
bool xk_pool_is_shown(struct xk_pool *pool);
struct xk_pool *xk_pool_after(u64 serial);
u32 xk_pools_count(void);
void xk_pool_get(struct xk_pool *pool);
void xk_pool_put(struct xk_pool *pool);
struct xk_pool *xk_pool_get_used(struct xk_pool *pool);
void xk_pool_joins(struct xk_pool *pool);
void xk_pool_unjoin(struct xk_pool *pool);
void xk_pool_unuse(struct xk_pool *pool);
void xk_pool_queue_end(struct xk_pool *pool);
void xk_pool_queue_collect(struct xk_pool *pool);
void xk_pool_client_comes(struct xk_pool *pool);
void xk_pool_client_goes(struct xk_pool *pool);
void xk_pool_file_comes(struct xk_pool *pool);
void xk_pool_file_goes(struct xk_pool *pool);

/* client.c */
pid_t xk_pid_of_client(const struct xk_client *client);
u32 xk_client_sibling(const struct xk_client *client);
u64 xk_limbo_of(const struct xk_pool *pool, u32 id);
u64 xk_client_limbo(struct xk_pool *pool, u32 id, u64 incarnation);
int xk_client_begin(struct xk_call *call);
struct xk_client *xk_client_new(struct xk_pool *pool, u32 role, struct xk_payer *payer);
void xk_client_put(struct xk_client *client);
void xk_client_close(struct xk_client *client);
struct xk_client *xk_client_of(struct xk_pool *pool, u32 id);
void xk_client_place(struct xk_pool *pool, u32 id, struct xk_client *client);
bool xk_client_is_gone(const struct xk_client *client);
int xk_client_check(const struct xk_client *client);
int __must_check xk_client_lock(struct xk_client *client);
int __must_check xk_client_lock_mapped(struct xk_client *client);

/* unmap.c */
void xk_places_add(struct xk_places *places, u32 place);
void xk_unmap_place(struct xk_pool *pool, u32 place);
void xk_unmap_places(struct xk_pool *pool, const struct xk_places *places);
void xk_unmap_ended(struct xk_client *client);
int xk_evicted_wait(const struct xk_client *client);
void xk_unmap_evicted(struct xk_pool *pool);

/* exited.c */
bool xk_exit_watch(struct xk_client *client);
void xk_exit_forget(struct xk_client *client);

/* wait.c */
int xk_queues_prepare(struct xk_pool *pool);
int xk_clock_prepare(struct xk_pool *pool);
void xk_clock_set(struct xk_pool *pool);
void xk_wake(struct xk_pool *pool, u32 kind, u32 client);
void xk_wake_owners(struct xk_pool *pool);
void xk_wake_rings(struct xk_pool *pool);
void xk_wake_newcomers(struct xk_pool *pool);
void xk_end_concerns(struct xk_pool *pool, u32 client);
void xk_end_concerns_owners(struct xk_pool *pool);
void xk_wake_concerned(struct xk_pool *pool);
int __must_check xk_pause(void);
int xk_arm_begin(struct xk_call *call);
int xk_wait_begin(struct xk_call *call);
int xk_wake_begin(struct xk_call *call);

/* keep.c */
int xk_keep_init(void);
void xk_keep_exit(void);
int xk_keep_prepare(struct xk_pool *pool);
struct xk_keep *xk_keep_new(struct xk_pool *pool, struct file *file);
void xk_keep_discard(struct xk_keep *keep);
void xk_keep_count(struct xk_keep *keep);
struct xk_keep *xk_keep_get(struct xk_keep *keep);
void xk_keep_put(struct xk_keep *keep);

/* payload.c */
struct xk_payload *xk_payload_new(const struct xk_client *client, const struct xk_kind *kind,
				  const struct xk_offer *offer, u32 flags);
void xk_payload_discard(struct xk_payload *payload);
u32 xk_payload_devices(const struct xk_pool *pool);
int xk_payload_number(struct xk_pool *pool, struct xk_payload *payload);
void xk_payload_enter(struct xk_pool *pool, struct xk_payload *payload,
		      const struct xm_payload *what, const struct xmem_attach_request *request);
void xk_payload_forget(struct xk_pool *pool, struct xk_payload *payload);
struct xk_payload *xk_payload_by_id(struct xk_pool *pool, u64 id);
void xk_payload_owner_ended(struct xk_pool *pool, u64 incarnation);
void xk_payload_drop_slots(struct xk_pool *pool, u64 id, u32 slots);
void xk_payload_drop_all(struct xk_pool *pool);

/* files.c */
extern const struct xk_kind xk_kind_memfd, xk_kind_hugetlb;
int xk_files_init(void);
int xk_file_serve(struct xk_call *call, struct xk_payload *payload);

/* dmabuf.c */
extern const struct xk_kind xk_kind_dmabuf;

/* drivers.c */
bool xk_is_device_file(const struct file *file);

/* cuda.c */
extern const struct xk_kind xk_kind_cuda;

/* kinds.c */
const struct xk_kind *xk_kind_of(const struct xmem_attach_request *request,
				 struct xk_offer *offer);

/* opened.c */
bool xk_opened_any(struct xk_pool *pool, u32 client);
void xk_opened_end(struct xk_pool *pool, u32 client);
int xk_payload_begin(struct xk_call *call);
void xk_payload_finish(struct xk_call *call, int err);

/* sysfs_text.c */
extern const struct attribute_group xk_text_group;

/* sysfs_records.c */
extern const struct attribute_group xk_records_group;

/* sysfs.c */
int xk_sysfs_init(void);
void xk_sysfs_exit(void);
int xk_sysfs_show(struct xk_pool *pool);
void xk_sysfs_hide(struct xk_pool *pool);

/* fdinfo.c */
void xk_fdinfo_pool(struct seq_file *m, const struct xk_pool *pool);
void xk_fdinfo_roles(struct seq_file *m, u32 roles);
void xk_fdinfo_client(struct seq_file *m, const struct xk_client *client);

/* reap.c */
void xk_late_free(struct xk_pool *pool, struct xk_client *client);
bool xk_reclaim_slot(struct xk_pool *pool, u32 slot);
void xk_reclaim_later(struct xk_pool *pool, u32 slot);
void xk_reclaim_all(struct xk_pool *pool);
void xk_bury(struct xk_pool *pool);
int xk_reap_wait(struct xk_pool *pool);
void xk_reap(struct xk_pool *pool);
void xk_reap_finish(struct xk_pool *pool);
void xk_let_others(struct xk_pool *pool, u32 *done, u32 weight);
void xk_empty_pool(struct xk_pool *pool);

/* claims.c */
void xk_claims_prepare(struct xk_pool *pool);
void xk_claims_left(struct xk_pool *pool);
void xk_claims_limit(struct xk_pool *pool);
void xk_claims_stop(struct xk_pool *pool);
int xk_claim_begin(struct xk_call *call);

/* limbo.c */
void xk_limbo_prepare(struct xk_pool *pool);
bool xk_limbo_is_much(struct xk_pool *pool);
struct xk_client *xk_limbo_next(struct xk_pool *pool, u32 *at);
void xk_limbo_tell(const struct xk_client *client);
void xk_limbo_stop(struct xk_pool *pool);

/* moved.c */
void xk_move_pages(struct xk_pool *pool, struct xk_client *client, u32 *done);
void xk_leave_pages(struct xk_pool *pool);

/* leave.c */
void xk_leave_prepare(struct xk_pool *pool);
void xk_client_end(struct xk_client *client);
void xk_client_joined(struct xk_client *client, u64 incarnation);
bool xk_client_evict(struct xk_client *client, u64 incarnation, u32 reason);
void xk_client_mapped(struct xk_client *client);
void xk_client_unmapped(struct xk_client *client);
void xk_client_left(struct xk_client *client);
void xk_client_closed(struct xk_client *client);

/* evict.c */
int xk_evict_begin(struct xk_call *call);
int xk_drain_begin(struct xk_call *call);
int xk_grant_begin(struct xk_call *call);

/* pool_fd.c */
struct xk_pool *xk_pool_of_fd(int fd, u32 *ret_roles);
int xk_pool_fd_begin(struct xk_call *call);
int xk_narrow_begin(struct xk_call *call);

/* join.c */
int xk_join_begin(struct xk_call *call);
void xk_join_finish(struct xk_call *call, int err);

/* attach.c */
int xk_attach_begin(struct xk_call *call);
void xk_attach_finish(struct xk_call *call, int err);
int xk_detach_begin(struct xk_call *call);

/* subscribe.c */
int xk_subscribe_begin(struct xk_call *call);
void xk_subscribe_finish(struct xk_call *call, int err);
int xk_unsubscribe_begin(struct xk_call *call);

/* slot.c */
int xk_resolve_begin(struct xk_call *call);
int xk_collect_begin(struct xk_call *call);
int xk_renew_begin(struct xk_call *call);

/* inplace.c */
int xk_upgrade_begin(struct xk_call *call);
void xk_upgrade_finish(struct xk_call *call, int err);

/* query.c */
int xk_query_begin(struct xk_call *call);
int xk_pools_begin(struct xk_call *call);
int xk_quota_begin(struct xk_call *call);

/* poll.c */
__poll_t xk_poll(struct file *filp, struct poll_table_struct *table);
int xk_poll_fd_begin(struct xk_call *call);

/* mmap.c */
int xk_mmap(struct file *filp, struct vm_area_struct *vma);

/* ioctl.c */
long xk_ioctl(struct xk_call *call, unsigned int cmd, void __user *argument);

/* device.c */
int xk_device_init(void);
void xk_device_exit(void);

#endif
