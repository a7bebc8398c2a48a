// SPDX-License-Identifier: GPL-2.0-only
/*
 * Descriptors of a pool: pool_fd makes one for a client's pool, or from another descriptor with
 * fewer roles. A process joins by one with XMEM_JOIN_FD. Descriptors keep a pool in use until it is
 * drained. After the pool's end they keep nothing of it.
 *
 * A file of this kind never changes, because several processes may share it: descriptors can be
 * sent over sockets.
 */
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/slab.h>

#include "core/access.h"
#include "xk.h"

struct xk_pool_file {
	u64 serial;			/* of the pool */
	u32 roles;			/* in which a process that has it may join */
};

static int xk_pool_fd_release(struct inode *inode, struct file *file)
{
	struct xk_pool_file *own = file->private_data;

	xk_pool_descriptor_drop(own->serial);
	kfree(own);
	return 0;
}

static void xk_pool_fd_show(struct seq_file *m, struct file *file)
{
	const struct xk_pool_file *own = file->private_data;
	u32 number;

	if (xk_pool_number(own->serial, &number))
		xk_fdinfo_pool(m, number);
	xk_fdinfo_roles(m, own->roles);
}

static const struct file_operations xk_pool_fd_fops = {
	.owner = THIS_MODULE,
	.release = xk_pool_fd_release,
	.show_fdinfo = xk_pool_fd_show,
	.llseek = noop_llseek,
};

/* Give the caller a new file. It takes over the caller's use of @pool, even if this fails. */
static int xk_pool_give(struct xk_call *call, struct xk_pool *pool, u32 roles)
{
	struct xk_pool_file *own = kmalloc(sizeof(*own), GFP_KERNEL_ACCOUNT);
	int err = -ENOMEM;

	if (!own)
		goto out;
	*own = (struct xk_pool_file){ .serial = pool->serial, .roles = roles };
	call->give = anon_inode_getfile("[xmem-pool]", &xk_pool_fd_fops, own,
					O_RDWR | O_CLOEXEC);
	err = PTR_ERR_OR_ZERO(call->give);
	if (err) {
		call->give = NULL;
		kfree(own);
	} else {
		xk_pool_descriptor_add(pool);
	}
out:
	xk_pool_unuse(pool);
	return err;
}

/* Find the pool of a descriptor, with a use for the caller, and the roles of the file. */
struct xk_pool *xk_pool_of_fd(int fd, u32 *ret_roles)
{
	struct file *file = fget(fd);
	struct xk_pool *pool = ERR_PTR(-EBADF);

	if (!file)
		return pool;
	if (file->f_op == &xk_pool_fd_fops) {
		const struct xk_pool_file *own = file->private_data;

		pool = xk_pool_of_serial(own->serial);
		*ret_roles = own->roles;
	}
	fput(file);
	return pool;
}

/*
 * The roles that the client may pass on: of the roles that the mode gave it, those that the mode
 * still gives. The owner may pass on what it had when it joined.
 */
static u32 xk_client_roles(const struct xk_client *client)
{
	if (client->by_fd || xk_access_owns(client->pool))
		return client->roles;
	return client->roles & xk_access_roles(client->pool);
}

/* The pool of a client, with a use for the caller, and the roles that the client may pass on. */
static struct xk_pool *xk_pool_of_client(struct xk_client *client, u32 *ret_roles)
{
	struct xk_pool *pool;
	int err = xk_client_check(client);

	if (err)
		return ERR_PTR(err);
	*ret_roles = xk_client_roles(client);
	err = xk_client_lock(client);
	/* The client may be ending, but the pool is used until end_work has this lock. */
	if (err)
		return ERR_PTR(err);
	pool = xk_pool_get_used(client->pool);
	mutex_unlock(&client->pool->lock);
	return IS_ERR(pool) ? ERR_PTR(-ENOTCONN) : pool;
}

int xk_pool_fd_begin(struct xk_call *call)
{
	struct xmem_pool_fd_request *request = &call->u.pool_fd;
	bool narrow = request->flags & XMEM_POOL_FD_NARROW;
	struct xk_pool *pool;
	u32 has;
	int err;

	/* A process that was given a client's file, to poll it, gets nothing else by it. */
	if (call->client && call->client->mm != current->mm)
		return -EPERM;
	if (!narrow && request->pool_fd)
		return -EINVAL;
	pool = narrow ? xk_pool_of_fd(request->pool_fd, &has) :
			xk_pool_of_client(call->client, &has);
	if (IS_ERR(pool))
		return PTR_ERR(pool);
	err = has ? xm_roles_narrow(has, request->roles, &request->roles) : -EACCES;
	if (err) {
		xk_pool_unuse(pool);
		return err;
	}
	return xk_pool_give(call, pool, request->roles);
}
