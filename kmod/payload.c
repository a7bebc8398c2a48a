// SPDX-License-Identifier: GPL-2.0-only
/*
 * Payload files: which files may be attached, who may open them how, and when the pool
 * drops them. attach.c gives slots to their owners.
 *
 * A payload is a memfd that nobody can shrink, punch or write through a new mapping. So
 * no reader gets SIGBUS or sees contents change, and files cannot hold each other in a
 * cycle. Nobody gets a file with more access than it was attached with. A shared one is a
 * memfd that writers can write and punch, too; so readers do not get it at all. dmabuf.c has
 * what else is taken.
 */
#include <linux/cred.h>
#include <linux/file.h>
#include <linux/slab.h>

#include "compat.h"
#include "xk.h"

/* ---- which files ---- */

static const struct file_operations *shmem_file_ops;	/* of every memfd in ordinary pages */

/* Modules cannot name these operations, but every file of shmem_file_setup() has them. */
int xk_payload_init(void)
{
	struct file *file = shmem_file_setup("xmem", 0, 0);

	if (IS_ERR(file))
		return PTR_ERR(file);
	shmem_file_ops = file->f_op;
	fput(file);
	return 0;
}

/*
 * Is it a memfd? If so, *seals are its seals. The mount must be the kernel's own, so that
 * no file of a tmpfs is taken for a memfd.
 */
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

static int xk_payload_check(const struct file *file, bool shared, u32 *ret_traits)
{
	/* Nobody could read what is published in it, or a shared one could not be written. */
	const fmode_t mode = shared ? FMODE_READ | FMODE_WRITE : FMODE_READ;
	struct inode *inode = file_inode(file);
	unsigned int seals;
	int err;

	BUILD_BUG_ON(XM_SEAL_SEAL != F_SEAL_SEAL || XM_SEAL_SHRINK != F_SEAL_SHRINK ||
		     XM_SEAL_GROW != F_SEAL_GROW || XM_SEAL_WRITE != F_SEAL_WRITE ||
		     XM_SEAL_FUTURE_WRITE != F_SEAL_FUTURE_WRITE);
	if (xk_is_dmabuf(file) && !shared) {
		*ret_traits = XMEM_TRAIT_DMABUF;
		return 0;
	}
	if (!xk_memfd_seals(file, &seals))
		return -EMEDIUMTYPE;
	if ((file->f_mode & mode) != mode)
		return -EACCES;
	err = xm_seals_check(seals, shared);
	if (err)
		return err;
	*ret_traits = (shared ? XMEM_TRAIT_SHARED : 0) |
		      (seals & F_SEAL_WRITE ? XMEM_TRAIT_CONSTANT : 0) |
		      (file->f_op != shmem_file_ops ? XMEM_TRAIT_HUGE : 0);
	/*
	 * A reader would have to fill a hole at its own expense, or be killed for it. The
	 * seals prevent new holes.
	 */
	return xk_has_all_pages(inode);
}

/* ---- references ---- */

/* The last reference to a file is dropped in no system call and in no dying process. */
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

struct xk_payload_file *xk_payload_by_id(struct xk_pool *pool, u32 id)
{
	struct xk_payload_file *payload;

	lockdep_assert_held(&pool->lock);
	hlist_for_each_entry(payload, &pool->payloads[id % XK_PAYLOAD_LISTS], node)
		if (payload->id == id)
			return payload;
	return NULL;
}

/* Takes @payload out of the pool's table. The table's reference becomes the caller's. */
static void xk_payload_leave(struct xk_pool *pool, struct xk_payload_file *payload)
{
	lockdep_assert_held(&pool->lock);
	hlist_del(&payload->node);
	pool->payload_count--;
	xm_host_payload_goes(&pool->host, payload->bytes, payload->traits, payload->kept);
}

/* The client @incarnation has ended: counts what others keep of its files, before the reaping. */
void xk_payload_owner_ended(struct xk_pool *pool, u64 incarnation)
{
	struct xk_payload_file *payload;
	u32 i;

	lockdep_assert_held(&pool->lock);
	for (i = 0; i < XK_PAYLOAD_LISTS; i++) {
		hlist_for_each_entry(payload, &pool->payloads[i], node) {
			if (payload->incarnation != incarnation)
				continue;
			payload->kept = true;
			xm_host_payload_kept(&pool->host, payload->bytes);
		}
	}
}

/* So many slots do not use payload @id any more. */
void xk_payload_drop_slots(struct xk_pool *pool, u32 id, u32 slots)
{
	struct xk_payload_file *payload = xk_payload_by_id(pool, id);

	if (WARN_ON(!payload || payload->slots < slots))
		return;
	payload->slots -= slots;
	if (payload->slots)
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

/* ---- making one ---- */

/* Not in the pool's table yet. Takes over the caller's reference to @file only on success. */
struct xk_payload_file *xk_payload_new(struct file *file, u64 incarnation, bool shared)
{
	struct xk_payload_file *payload;
	u32 traits;
	int err = xk_payload_check(file, shared, &traits);

	if (err)
		return ERR_PTR(err);
	payload = kzalloc(sizeof(*payload), GFP_KERNEL_ACCOUNT);
	if (!payload)
		return ERR_PTR(-ENOMEM);
	kref_init(&payload->kref);
	payload->incarnation = incarnation;
	payload->traits = traits;
	payload->bytes = traits & XMEM_TRAIT_DMABUF ? xk_dmabuf_bytes(file) :
						      i_size_read(file_inode(file));
	payload->file = file;
	INIT_WORK(&payload->drop, xk_payload_drop_work);
	return payload;
}

/* Gives @payload the id that it has if it enters the table before the lock is let go. */
int xk_payload_number(struct xk_pool *pool, struct xk_payload_file *payload)
{
	lockdep_assert_held(&pool->lock);
	if (pool->payload_count >= xk_max_payloads || pool->payload_last == U32_MAX)
		return -EDQUOT;
	payload->id = pool->payload_last + 1;
	return 0;
}

/* Gives the table @payload, whose id is never used again, and the caller's reference. */
void xk_payload_enter(struct xk_pool *pool, struct xk_payload_file *payload)
{
	lockdep_assert_held(&pool->lock);
	pool->payload_last = payload->id;
	pool->payload_count++;
	hlist_add_head(&payload->node, &pool->payloads[payload->id % XK_PAYLOAD_LISTS]);
	xm_host_payload_comes(&pool->host, payload->bytes, payload->traits);
}

/* ---- the request: a descriptor of a payload ---- */

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

/*
 * Opens the file anew, so that neither position nor flags are shared. dentry_open checks
 * no permission; the access of the file that was attached decides.
 */
static struct file *xk_payload_open(const struct xk_client *client,
				    const struct xk_payload_file *payload, bool write)
{
	bool shared = payload->traits & XMEM_TRAIT_SHARED;
	fmode_t had = payload->file->f_mode;

	if (!(had & FMODE_READ) || (write && !(had & FMODE_WRITE)))
		return ERR_PTR(-EACCES);
	/* A shared file forbids nobody to open a read-only descriptor anew for writing. */
	if (shared ? client->role != XMEM_ROLE_WRITER :
		     write && payload->incarnation != client->incarnation)
		return ERR_PTR(-EACCES);
	if (payload->traits & XMEM_TRAIT_DMABUF)
		return xk_dmabuf_open(payload->file);
	return dentry_open(&payload->file->f_path, (write ? O_RDWR : O_RDONLY) | O_LARGEFILE,
			   current_cred());
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
