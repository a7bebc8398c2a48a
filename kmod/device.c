// SPDX-License-Identifier: GPL-2.0-only
/*
 * The files. /dev/xmem is a factory: an open file of it serves queries and joins. Each join makes a
 * client and a file of that client, which serves all other requests. ioctl.c dispatches the
 * requests of both.
 */
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>

#include "xk.h"

/* ---- a client's file ---- */

/* A process closes a descriptor of the file. It may be the client's process, about to exit. */
static int xk_client_flush(struct file *filp, fl_owner_t id)
{
	xk_client_left(filp->private_data);
	xk_client_closed(filp->private_data);
	return 0;
}

/* Also the end of a join whose answer did not reach the caller. */
static int xk_client_release(struct inode *inode, struct file *filp)
{
	struct xk_client *client = filp->private_data;

	xk_client_end(client);
	xk_client_put(client);
	return 0;
}

static void xk_client_show(struct seq_file *m, struct file *filp)
{
	xk_fdinfo_client(m, filp->private_data);
}

static long xk_client_ioctl(struct file *filp, unsigned int cmd, unsigned long arg)
{
	struct xk_client *client = filp->private_data;
	struct xk_call call = { .file = filp, .client = client, .payer = client->payer };

	return xk_ioctl(&call, cmd, (void __user *)arg);
}

/* There is no compat_ioctl: the host is for 64-bit processes; others get ENOTTY. */
static const struct file_operations xk_client_fops = {
	.owner = THIS_MODULE,
	.flush = xk_client_flush,
	.release = xk_client_release,
	.unlocked_ioctl = xk_client_ioctl,
	.mmap = xk_mmap,
	.poll = xk_poll,
	.show_fdinfo = xk_client_show,
	.llseek = noop_llseek,
};

/* ---- the device ---- */

/*
 * The user that opens the device pays for what is made through the file, even if another process
 * joins through it.
 */
static int xk_device_open(struct inode *inode, struct file *filp)
{
	filp->private_data = xk_payer_new();
	return filp->private_data ? nonseekable_open(inode, filp) : -ENOMEM;
}

static int xk_device_release(struct inode *inode, struct file *filp)
{
	xk_payer_put(filp->private_data);
	return 0;
}

static long xk_device_ioctl(struct file *filp, unsigned int cmd, unsigned long arg)
{
	struct xk_call call = {
		.file = filp, .payer = filp->private_data, .joined_ops = &xk_client_fops,
	};

	return xk_ioctl(&call, cmd, (void __user *)arg);
}

static const struct file_operations xk_device_fops = {
	.owner = THIS_MODULE,
	.open = xk_device_open,
	.release = xk_device_release,
	.unlocked_ioctl = xk_device_ioctl,
	.llseek = noop_llseek,
};

static struct miscdevice xk_misc = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "xmem",
	.fops = &xk_device_fops,
};

int __init xk_device_init(void)
{
	return misc_register(&xk_misc);
}

void __exit xk_device_exit(void)
{
	misc_deregister(&xk_misc);
}
