// SPDX-License-Identifier: GPL-2.0-only
/*
 * Payload files: what may be attached, who gets it how, and letting go of it.
 *
 * Only memfds that nobody can shrink, punch or write through a new mapping: so
 * readers need not fear SIGBUS or change, and there are no cycles of files.
 * Nobody gets a file with more access than it was attached with.
 */
#include <linux/cred.h>
#include <linux/file.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "compat.h"
#include "xk.h"
#include "trace.h"

/* ---- which files ---- */

static const struct file_operations *shmem_file_ops;	/* of every memfd in ordinary pages */

/* Modules cannot name these; every file made by shmem_file_setup() has them. */
int xk_payload_init(void)
{
	struct file *file = shmem_file_setup("xmem", 0, 0);

	if (IS_ERR(file))
		return PTR_ERR(file);
	shmem_file_ops = file->f_op;
	fput(file);
	return 0;
}

/* Is it a memfd? The mount is the kernel's own, so no file of a tmpfs is taken for one. */
static bool xk_memfd_seals(const struct file *file, unsigned int *seals)
{
	struct inode *inode = file_inode(file);

	if (!(inode->i_sb->s_flags & SB_KERNMOUNT) || !S_ISREG(inode->i_mode))
		return false;
	if (file->f_op != shmem_file_ops)
		return xk_hugetlb_seals(inode, seals);
	*seals = xk_shmem_seals(inode);
	return true;
}

static int xk_payload_check(const struct file *file)
{
	const unsigned int size = F_SEAL_SHRINK | F_SEAL_GROW, write = F_SEAL_FUTURE_WRITE | F_SEAL_WRITE;
	struct inode *inode = file_inode(file);
	unsigned int seals;

	if (!xk_memfd_seals(file, &seals))
		return -EMEDIUMTYPE;
	if ((seals & size) != size || !(seals & write))
		return -ENOEXEC;
	/* No holes: each reader would pay for filling them, or be killed. Sealed, it gets no new ones. */
	return xk_has_all_pages(inode);
}

/* ---- references ---- */

/* The last drop of a file is not done in anybody's system call, nor in a dying process. */
static void xk_payload_drop_work(struct work_struct *work)
{
	struct xk_payload_file *payload = container_of(work, struct xk_payload_file, drop);

	__fput_sync(payload->file);
	kfree(payload);
}

static void xk_payload_release(struct kref *kref)
{
	struct xk_payload_file *payload = container_of(kref, struct xk_payload_file, kref);

	queue_work(xk_wq, &payload->drop);
}

static void xk_payload_put(struct xk_payload_file *payload)
{
	kref_put(&payload->kref, xk_payload_release);
}

static struct xk_payload_file *xk_payload_by_id(struct xk_pool *pool, u32 id)
{
	struct xk_payload_file *payload;

	lockdep_assert_held(&pool->lock);
	hlist_for_each_entry(payload, &pool->payloads[id % XK_PAYLOAD_LISTS], node)
		if (payload->id == id)
			return payload;
	return NULL;
}

/* Out of the pool's table; its reference is the caller's. */
static void xk_payload_leave(struct xk_pool *pool, struct xk_payload_file *payload)
{
	lockdep_assert_held(&pool->lock);
	hlist_del(&payload->node);
	pool->payload_count--;
}

void xk_payload_drop_slot(struct xk_pool *pool, u32 id)
{
	struct xk_payload_file *payload = xk_payload_by_id(pool, id);

	if (WARN_ON(!payload) || --payload->slots)
		return;
	xk_payload_leave(pool, payload);
	xk_payload_put(payload);
}

void xk_payload_drop_all(struct xk_pool *pool)
{
	struct xk_payload_file *payload;
	struct hlist_node *next;
	u32 i;

	for (i = 0; i < XK_PAYLOAD_LISTS; i++) {
		hlist_for_each_entry_safe(payload, next, &pool->payloads[i], node) {
			xk_payload_leave(pool, payload);
			xk_payload_put(payload);
		}
	}
}

/* ---- attach ---- */

/* From the descriptor, not in the pool yet. Takes the file over only on success. */
static struct xk_payload_file *xk_payload_new(struct file *file, u64 incarnation)
{
	struct xk_payload_file *payload;
	int err = xk_payload_check(file);

	if (err)
		return ERR_PTR(err);
	payload = kzalloc(sizeof(*payload), GFP_KERNEL_ACCOUNT);
	if (!payload)
		return ERR_PTR(-ENOMEM);
	kref_init(&payload->kref);
	payload->incarnation = incarnation;
	payload->bytes = i_size_read(file_inode(file));
	payload->file = file;
	INIT_WORK(&payload->drop, xk_payload_drop_work);
	return payload;
}

/* A new one gets its id, which is never used again. The pool's reference is the caller's. */
static int xk_payload_enter(struct xk_pool *pool, struct xk_payload_file *payload)
{
	lockdep_assert_held(&pool->lock);
	if (pool->payload_count >= xk_max_payloads || pool->payload_last == U32_MAX)
		return -EDQUOT;
	payload->id = ++pool->payload_last;
	pool->payload_count++;
	hlist_add_head(&payload->node, &pool->payloads[payload->id % XK_PAYLOAD_LISTS]);
	return 0;
}

/* One of the caller's own, to add slots to. */
static struct xk_payload_file *xk_payload_own(struct xk_client *client, u32 id)
{
	struct xk_payload_file *payload = xk_payload_by_id(client->pool, id);

	if (!payload)
		return ERR_PTR(-ENOENT);
	return payload->incarnation == client->incarnation ? payload : ERR_PTR(-EPERM);
}

static int xk_attach_locked(struct xk_client *client, struct xk_payload_file *new, struct xmem_attach_request *request)
{
	struct xk_pool *pool = client->pool;
	struct xk_payload_file *payload = new;
	int err;

	if (new) {
		err = xk_payload_enter(pool, new);
		if (err)
			return err;
	} else {
		payload = xk_payload_own(client, request->payload);
		if (IS_ERR(payload))
			return PTR_ERR(payload);
	}
	err = xm_host_attach(&pool->host, client->id, payload->id, payload->bytes, get_random_u64(), request);
	if (!err) {
		payload->slots += request->count;
	} else if (new) {
		xk_payload_leave(pool, new);	/* the caller frees it; nobody has seen its id */
		pool->payload_last--;
	}
	return err;
}

/* A group more for the client, if it has too few slots. May let go of the pool's lock: -EAGAIN, look again. */
static int xk_grow(struct xk_client *client, u32 count, struct xk_chunk **spare)
{
	struct xk_pool *pool = client->pool;
	int group;

	if (xm_host_spare_slots(&pool->host, client->id) >= count)
		return 0;
	group = xm_host_free_group(&pool->host);
	if (group < 0)
		return group;
	if (!*spare) {
		mutex_unlock(&pool->lock);
		*spare = xk_chunk_new(pool, xk_header(pool)->group_stride, true);
		return -EAGAIN;
	}
	xk_chunk_place(pool, &pool->group[group], *spare, client);
	xk_zap_groups(pool, group, group);
	pool->host.map.group[group] = (*spare)->now->view;
	xm_host_give_group(&pool->host, group, client->id);
	*spare = NULL;
	return 0;
}

/* The pool's lock, with slots enough. */
static int xk_attach_lock(struct xk_client *client, u32 count)
{
	struct xk_chunk *spare = NULL;
	int err;

	do {
		err = xk_client_lock_mapped(client);
		if (err)
			break;
		err = xk_grow(client, count, &spare);
		if (err && err != -EAGAIN)
			mutex_unlock(&client->pool->lock);
		if (IS_ERR(spare))
			return PTR_ERR(spare);
	} while (err == -EAGAIN);
	if (spare)
		xk_chunk_free(client->pool, spare);
	return err;
}

static int xk_attach(struct xk_client *client, struct xk_payload_file *new, struct xmem_attach_request *request)
{
	int err = xk_attach_lock(client, request->count);

	if (err)
		return err;
	err = xk_attach_locked(client, new, request);
	mutex_unlock(&client->pool->lock);
	if (err)
		return err;
	trace_xmem_attach(client->pool->number, client->id, request->payload, request->count);
	xk_sysfs_sync(client->pool);
	return 0;
}

int xk_attach_begin(struct xk_call *call)
{
	struct xmem_attach_request *request = &call->u.attach;
	struct xk_payload_file *new;
	struct file *file;
	int err;

	if (call->client->role != XMEM_ROLE_WRITER)
		return -EPERM;
	err = xm_host_attach_check(request);
	if (err)
		return err;
	if (request->payload)
		return request->fd == -1 ? xk_attach(call->client, NULL, request) : -EINVAL;
	file = fget(request->fd);
	if (!file)
		return -EBADF;
	new = xk_payload_new(file, call->client->incarnation);
	err = PTR_ERR_OR_ZERO(new);
	if (!err)
		err = xk_attach(call->client, new, request);
	if (!err)
		return 0;
	if (!IS_ERR(new))
		kfree(new);
	fput(file);
	return err;
}

/* The slot's group stays the client's until its end: its pages are nobody else's. */
static int xk_detach_locked(struct xk_client *client, const struct xmem_slot_request *request)
{
	u32 payload;
	int err = xm_host_detach(&client->pool->host, client->id, request, &payload);

	if (!err)
		xk_payload_drop_slot(client->pool, payload);
	return err;
}

/* The caller did not get the answer: he never had these slots. (What he guessed and took he keeps.) */
void xk_attach_finish(struct xk_call *call, int err)
{
	struct xk_client *client = call->client;
	struct xmem_slot_request slot = { .size = sizeof(slot) };
	u32 i;

	if (!err)
		return;
	xk_pause();			/* see xk_renew_begin */
	if (xk_client_lock(client))
		return;
	for (i = 0; i < call->u.attach.count; i++) {
		slot.slot = call->u.attach.slot[i];
		xk_detach_locked(client, &slot);
	}
	mutex_unlock(&client->pool->lock);
	xk_sysfs_sync(client->pool);
}

int xk_detach_begin(struct xk_call *call)
{
	int err;

	xk_pause();			/* see xk_renew_begin */
	err = xk_client_lock(call->client);
	if (err)
		return err;
	err = xk_detach_locked(call->client, &call->u.slot);
	mutex_unlock(&call->client->pool->lock);
	if (!err)
		xk_sysfs_sync(call->client->pool);
	return err;
}

/* ---- payload ---- */

static struct xk_payload_file *xk_payload_find(struct xk_client *client, u32 id)
{
	struct xk_payload_file *payload;
	int err = xk_client_lock(client);

	if (err)
		return ERR_PTR(err);
	payload = xk_payload_by_id(client->pool, id);
	if (payload)
		kref_get(&payload->kref);
	mutex_unlock(&client->pool->lock);
	return payload ? payload : ERR_PTR(-ENOENT);
}

/* A file of its own, so that neither position nor flags are shared; dentry_open asks nobody for permission. */
static struct file *xk_payload_open(const struct xk_client *client, const struct xk_payload_file *payload,
				      bool write)
{
	fmode_t had = payload->file->f_mode;

	if (!(had & FMODE_READ) || (write && !(had & FMODE_WRITE)))
		return ERR_PTR(-EACCES);
	if (write && payload->incarnation != client->incarnation)
		return ERR_PTR(-EACCES);
	return dentry_open(&payload->file->f_path, (write ? O_RDWR : O_RDONLY) | O_LARGEFILE, current_cred());
}

int xk_payload_begin(struct xk_call *call)
{
	struct xmem_payload_request *request = &call->u.payload;
	struct xk_payload_file *payload;
	struct file *file;

	if (request->flags & ~XMEM_PAYLOAD_WRITE)
		return -EINVAL;
	payload = xk_payload_find(call->client, request->payload);
	if (IS_ERR(payload))
		return PTR_ERR(payload);
	file = xk_payload_open(call->client, payload, request->flags & XMEM_PAYLOAD_WRITE);
	request->bytes = payload->bytes;
	xk_payload_put(payload);
	if (IS_ERR(file))
		return PTR_ERR(file);
	call->give = file;
	return 0;
}
