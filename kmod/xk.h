/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The common header of the module's files: which file may call which, which lock protects what, and
 * the functions of each file. The structs are in objects.h.
 *
 * The bookkeeping in the pages is not done here but in core/, which is pure. The module adds what
 * the core cannot have: memory, files, waiting, and the knowledge that a client has ended.
 *
 * Layers. A file calls only files on earlier lines; tests/check-layers.sh reads this table and
 * checks it. A lower file tells a higher one something through a work item of the pool, which the
 * higher file has prepared.
 *
 *   core/            the bookkeeping in the pages
 *   trace.c          the tracepoints
 *   users.c          what each user, and all together, may have, and how much they have
 *   payers.c         which users pay for what a process makes
 *   inode.c          an inode for each client
 *   pages.c          the shared pages: chunks, and how they are replaced
 *   access.c         who may join a pool
 *   queues.c         the queue of a client: its sleeping threads, and its pollers
 *   lock.c           the lock of a pool, and how end_work shares it
 *   ends.c           cleanup that is under way, and its waiters
 *   pool.c           pools: made, found by name, counted, freed
 *   client.c         clients: made, found by id, locked, freed
 *   unmap.c          what clients have mapped, and removing it
 *   exited.c         the exit of a client's process
 *   wait.c           waiting and waking by the waiters words
 *   keep.c           payloads, and how their files are dropped
 *   payload.c        the table of a pool's payloads
 *   readonly.c       files that clients can only map for reading
 *   files.c          payloads that are memfds
 *   dmabuf.c         payloads that are dma-bufs
 *   drivers.c        the drivers whose files may be payloads
 *   cuda.c           payloads that are memory of a GPU
 *   opened.c         the request payload; payloads that clients have open
 *   sysfs.c          the folders of pools in sysfs
 *   fdinfo.c         /proc/PID/fdinfo
 *   reap.c           reaping what ended clients have left
 *   claims.c         claims: their memory, and their deadlines
 *   moved.c          the pages of a client that has ended
 *   leave.c          the end of a client and of a pool
 *   evict.c          the requests evict and grant
 *   pool_fd.c        descriptors of a pool
 *   join.c           the request join
 *   attach.c         the request attach, and detaching
 *   subscribe.c      the requests subscribe and unsubscribe
 *   slot.c           the request slot
 *   query.c          the requests query, pools and quota
 *   inplace.c        the request upgrade
 *   poll.c           poll(), and the request poll_fd
 *   mmap.c           mmap(), and faults
 *   ioctl.c          which function serves which request
 *   device.c         /dev/xmem, and the clients' files
 *   module.c         init and exit of the module
 *
 * Locks, outermost first
 *
 *   mmap_lock             of any process. ->mmap, ->fault and a VMA's ->close run under it. It
 *                         is never taken under a lock of ours, so no user memory is touched
 *                         under one.
 *   xk_client.attach_lock serialises the attaches of one client
 *   xk_pool.upgrade_lock  serialises the upgrades of one pool
 *   xk_pool.end_work      not a lock, but a request that lacks something waits for it as for a
 *                         lock, until end_work has freed what ended clients have left (ends.c), and
 *                         the fault of an evicted client waits until end_work has unmapped its
 *                         pages (unmap.c). A process that ends never waits for it.
 *   i_mmap_rwsem, page locks  of each client's inode, and of the pool's pages: unmapping and
 *                         faults take them. A client's process that is throttled may hold
 *                         them for long, so they are never taken under pool->lock.
 *   xk_pool.lock          the pool: its host words, chunks, payloads and client table
 *   xk_pool.look_lock     xk_pool.look, which poll, fdinfo and sysfs read
 *   xk_pool.pages_lock    what a fault reads: which pages are where, which client may write
 *                         them, which clients have ended
 *   pools_lock            the tables of pools (pool.c); nobody looks at more than a few pools under
 *                         it
 *   xk_pool.access_lock   the group and mode of the pool
 *   xk_users.xa_lock      the users, and how much each of them has (users.c)
 *   xk_payer.lock         what each payer was last refused (payers.c)
 *   ends_lock             what end_work has been asked for, in all pools, when it runs, and which
 *                         clients and pools of each user have ended (ends.c)
 *
 * poll and sysfs take none of these locks, except look_lock, pages_lock and (sysfs) access_lock,
 * for a moment. They read the pages through xk_pool.look, between xk_look_begin and xk_look_end
 * (pages.c). The fields of the structs that they read are written only once.
 *
 * Lifetime. A pool is *used* by its clients that have not ended and, until it is drained, by
 * descriptors of the pool. When the last use goes, the name is free at once, and end_work empties
 * the pool. The struct and the pool table stay as long as anything points to them (kref), so a
 * request can read host words without a lock. A descriptor has only the pool's serial number.
 *
 * A join makes a client's file on an inode of its own. All mappings of the client are in the
 * address space of that inode, so they cost nobody else anything once the client has ended.
 *
 * A client in quarantine stays in its pool's table until its process has exited, or until the pool
 * is emptied, whether its file is open or not. It keeps neither the pool used nor the module
 * loaded.
 *
 * A pool counts for its maker until its folder has been removed, which is the last step of its end.
 * A file of a client that has ended keeps the table and the client's queue.
 *
 * Nothing allocates memory under xk_pool.lock, because end_work takes that lock to free memory, and
 * an allocation may have to wait for memory to be freed.
 */
#ifndef XK_PRIVATE_H
#define XK_PRIVATE_H

#include "objects.h"

struct seq_file;
struct xk_user;

#define XK_VERSION		"0.5.0"

/* Prototypes, in the order of the table above. users.c */
const char *xk_quota_name(u32 quota);
ssize_t xk_users_print(char *page);
bool xk_nothing_charged(void);

/* payers.c */
struct xk_payer *xk_payer_new(void);
struct xk_payer *xk_payer_of_client(const struct xk_payer *payer);
struct xk_payer *xk_payer_get(struct xk_payer *payer);
void xk_payer_put(struct xk_payer *payer);
int xk_charge(struct xk_payer *payer, const struct xk_pool *pool, u32 quota, u64 n);
void xk_uncharge(struct xk_payer *payer, u32 quota, u64 n);
int xk_refuse(struct xk_payer *payer, const struct xk_pool *pool, u32 quota, u64 used, u64 wanted,
	      u64 most);
void xk_refused(struct xk_payer *payer, struct xk_refusal *ret);
void xk_refused_to_join(struct xk_payer *payer, struct xk_payer *client);
kuid_t xk_payer_quota(const struct xk_payer *payer, bool all, u32 quota, u64 *ret_used,
		      u64 *ret_most);
kuid_t xk_payer_uid(const struct xk_payer *payer, u32 level);

/* inode.c */
struct inode *xk_inode_new(void);
void xk_inode_put(struct inode *inode);
struct file *xk_inode_file(struct inode *inode, const struct file_operations *ops, void *private);

/* pages.c */
int xk_look_prepare(struct xk_pool *pool);
void xk_look_free(struct xk_pool *pool);
void xk_look_begin(struct xk_pool *pool);
void xk_look_end(struct xk_pool *pool);
#ifdef XMEM_DEBUG
void xk_look_slowly(struct xk_pool *pool);
#else
static inline void xk_look_slowly(struct xk_pool *pool) { }
#endif
void xk_show_area(struct xk_pool *pool, u32 client, void *view);
void xk_show_group(struct xk_pool *pool, u32 group, void *view);
struct xk_chunk *xk_chunk_new(struct xk_pool *pool, struct xk_payer *payer, u64 bytes,
			      enum xk_chunk_kind kind);
void xk_chunk_free(struct xk_pool *pool, struct xk_chunk *chunk);
void xk_chunk_place(struct xk_pool *pool, struct xk_chunk **place, struct xk_chunk *chunk,
		    struct xk_client *writer);
void xk_chunk_lend(struct xk_pool *pool, struct xk_chunk *chunk, struct xk_pages *spare,
		   struct xk_client *writer);
struct xk_chunk *xk_chunk_take(struct xk_pool *pool, struct xk_chunk **place);
void *xk_chunk_copy(struct xk_chunk *chunk);
struct xk_pages *xk_chunk_swap(struct xk_pool *pool, struct xk_chunk *chunk);
void xk_page_drain(struct page *page);
void xk_pages_drain(const struct xk_pages *pages);
void xk_pool_drain(struct xk_pool *pool);
struct xk_pages *xk_pages_new(struct xk_pool *pool, struct xk_payer *payer, u32 count);
void xk_pages_free(struct xk_pool *pool, struct xk_pages *pages);
bool xk_may_write(struct xk_pool *pool, const struct xk_client *client, u64 from, u64 to);
struct page *xk_page_get(const struct xk_client *client, bool write, u64 offset, bool *ret_locked);

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

/* queues.c */
int xk_queues_init(void);
void xk_queues_exit(void);
void xk_sleep_begin(struct xk_queue *queue, u32 number, struct xk_sleeper *sleeper);
void xk_sleep_end(struct xk_queue *queue, u32 number, struct xk_sleeper *sleeper);
void xk_queue_wake(struct xk_queue *queue, u32 number);
void xk_queue_poll(struct xk_queue *queue, __poll_t events);
bool xk_queue_poll_by(struct xk_queue *queue, __poll_t events, kuid_t user);
void xk_queue_call(struct xk_queue *queue, __poll_t events);
void xk_queue_poll_at(struct xk_client *client);
struct xk_queue *xk_queue_new(u32 clients, kuid_t user);
void xk_queue_free(struct xk_queue *queue);

/* lock.c */
void xk_lock_prepare(struct xk_pool *pool);
void xk_pool_lock(struct xk_pool *pool);
int __must_check xk_pool_lock_killable(struct xk_pool *pool);
bool xk_pool_trylock(struct xk_pool *pool);
bool xk_lock_is_wanted(const struct xk_pool *pool);
void xk_pool_lock_long(struct xk_pool *pool);
void xk_pool_let_in(struct xk_pool *pool);

/* ends.c */
extern struct workqueue_struct *xk_end_wq;	/* for end_work only */
void xk_end_owe(struct xk_user *user);
void xk_end_paid(struct xk_user *user);
void xk_end_begins(struct xk_client *client);
void xk_end_serves(struct xk_client *client);
void xk_end_ask(struct xk_pool *pool, bool collect);
void xk_end_start(struct xk_pool *pool);
void xk_end_done(struct xk_pool *pool);
int xk_end_wait(struct xk_pool *pool);
bool xk_end_retry(struct xk_pool *pool, u64 done);
bool xk_ends_retry(struct xk_call *call, int err);
void xk_end_leaves(struct xk_pool *pool);
void xk_end_left(struct xk_pool *pool);

/* pool.c */
extern struct workqueue_struct *xk_wq;		/* for claims */
int xk_pools_init(void);
void xk_pools_exit(void);
struct xk_pool *xk_pool_new(const struct xmem_join_request *join, struct xk_payer *payer);
void xk_pool_discard(struct xk_pool *pool);
struct xk_pool *xk_pool_find(const struct xmem_join_request *join, u32 *ret_roles);
bool xk_pool_is_callers(const struct xmem_join_request *join);
struct xk_pool *xk_pool_enlist(struct xk_pool *new, const struct xmem_join_request *join,
			       u32 *ret_roles, struct xk_pool **ret_old);
void xk_pool_relist(struct xk_pool *old);
bool xk_pool_is_shown(struct xk_pool *pool);
struct xk_pool *xk_pool_after(u64 serial);
u32 xk_pools_count(void);
void xk_pool_get(struct xk_pool *pool);
void xk_pool_put(struct xk_pool *pool);
struct xk_pool *xk_pool_get_used(struct xk_pool *pool);
void xk_pool_joins(struct xk_pool *pool);
void xk_pool_unjoin(struct xk_pool *pool);
void xk_pool_unuse(struct xk_pool *pool);
struct xk_pool *xk_pool_of_serial(u64 serial);
bool xk_pool_number(u64 serial, u32 *ret_number);
void xk_pool_descriptor_add(struct xk_pool *pool);
void xk_pool_descriptor_drop(u64 serial);
void xk_pool_close(struct xk_pool *pool);
void xk_pool_uncharge(struct xk_pool *pool);

/* client.c */
pid_t xk_pid_of_client(const struct xk_client *client);
u32 xk_client_sibling(const struct xk_client *client);
int xk_client_begin(struct xk_call *call);
struct xk_client *xk_client_new(struct xk_pool *pool, u32 role, struct xk_payer *payer);
void xk_client_put(struct xk_client *client);
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
void xk_unmap_evicted(struct xk_pool *pool);

/* exited.c */
bool xk_has_exited(const struct xk_client *client);
void xk_exits_prepare(struct xk_pool *pool);
void xk_exit_watch(struct xk_client *client);
void xk_exits_stop(struct xk_pool *pool);

/* wait.c */
int xk_clock_prepare(struct xk_pool *pool);
void xk_clock_set(struct xk_pool *pool);
void xk_wake_pollers_of(struct xk_pool *pool, u32 client, __poll_t events);
void xk_wake(struct xk_pool *pool, u32 kind, u32 client);
void xk_wake_owners(struct xk_pool *pool);
void xk_wake_rings(struct xk_pool *pool);
void xk_wake_newcomers(struct xk_pool *pool);
void xk_end_concerns(struct xk_pool *pool, u32 client);
void xk_end_concerns_owners(struct xk_pool *pool);
void xk_wake_concerned(struct xk_pool *pool);
int __must_check xk_pause(void);
int xk_wait_begin(struct xk_call *call);

/* keep.c */
int xk_keep_init(void);
void xk_keep_exit(void);
void xk_keep_prepare(struct xk_pool *pool);
struct xk_payload *xk_payload_new(const struct xk_client *client, const struct xk_kind *kind,
				  const struct xk_offer *offer, u32 flags);
void xk_payload_put(struct xk_payload *payload);
struct xk_payload *xk_keep_get(struct xk_payload *payload);
void xk_keep_put(struct xk_payload *payload);
void xk_keep_later(struct xk_payload *payload);
void xk_keep_drop(struct xk_payload *payload);

/* payload.c */
void xk_payload_enter(struct xk_pool *pool, struct xk_payload *payload,
		      const struct xm_payload *what, const struct xmem_attach_request *request);
struct xk_payload *xk_payload_forget(struct xk_pool *pool, struct xk_payload *payload);
struct xk_payload *xk_payload_by_id(struct xk_pool *pool, u64 id);
struct xk_payload *xk_payload_drop_slots(struct xk_pool *pool, u64 id, u32 slots);
void xk_payload_drop_all(struct xk_pool *pool);

/* readonly.c */
struct file *xk_readonly_of(const struct file *file);
int xk_readonly_mmap(struct file *file, struct vm_area_struct *vma);
int xk_readonly_release(struct inode *inode, struct file *file);
struct file *xk_readonly_new(const char *name, const struct file_operations *ops,
			     struct file *other);

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

/* opened.c */
void xk_opened_end(struct xk_pool *pool, u32 client);
int xk_payload_begin(struct xk_call *call);
void xk_payload_finish(struct xk_call *call, int err);

/* sysfs.c */
int xk_sysfs_init(void);
void xk_sysfs_exit(void);
int xk_sysfs_show(struct xk_pool *pool);
void xk_sysfs_hide(struct xk_pool *pool);

/* fdinfo.c */
void xk_fdinfo_pool(struct seq_file *m, u32 number);
void xk_fdinfo_roles(struct seq_file *m, u32 roles);
void xk_fdinfo_client(struct seq_file *m, const struct xk_client *client);

/* reap.c */
void xk_late_free(struct xk_pool *pool, struct xk_client *client);
bool xk_reclaim_slot(struct xk_pool *pool, u32 slot);
void xk_reclaim_later(struct xk_pool *pool, u32 slot);
void xk_reclaim_all(struct xk_pool *pool);
bool xk_bury_ended(struct xk_pool *pool);
void xk_reap(struct xk_pool *pool);
void xk_reap_finish(struct xk_pool *pool);
void xk_lock_yield(struct xk_pool *pool, u32 *done, u32 weight);
void xk_empty_pool(struct xk_pool *pool);

/* claims.c */
void xk_claims_prepare(struct xk_pool *pool);
void xk_claims_left(struct xk_pool *pool);
void xk_claims_stop(struct xk_pool *pool);
int xk_claim_begin(struct xk_call *call);

/* moved.c */
void xk_move_pages(struct xk_pool *pool, struct xk_client *client, u32 *done);
void xk_leave_pages(struct xk_pool *pool);

/* leave.c */
void xk_leave_prepare(struct xk_pool *pool);
void xk_client_end(struct xk_client *client);
void xk_client_joined(struct xk_client *client, u64 incarnation);
bool xk_client_evict(struct xk_client *client, u64 incarnation, u32 reason);
void xk_client_unmapped(struct xk_client *client, bool keeps);
void xk_client_left(struct xk_client *client);
void xk_client_closed(struct xk_client *client);

/* evict.c */
int xk_evict_begin(struct xk_call *call);
int xk_grant_begin(struct xk_call *call);

/* pool_fd.c */
struct xk_pool *xk_pool_of_fd(int fd, u32 *ret_roles);
int xk_pool_fd_begin(struct xk_call *call);

/* join.c */
int xk_join_begin(struct xk_call *call);

/* attach.c */
int xk_attach_begin(struct xk_call *call);
int xk_detach(struct xk_client *client, const struct xmem_slot_request *request);

/* subscribe.c */
int xk_subscribe_begin(struct xk_call *call);
int xk_unsubscribe_begin(struct xk_call *call);

/* slot.c */
int xk_slot_begin(struct xk_call *call);

/* inplace.c */
int xk_upgrade_begin(struct xk_call *call);

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
