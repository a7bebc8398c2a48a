// SPDX-License-Identifier: GPL-2.0-only
/*
 * The device /dev/xmem and its open files. An open file can do nothing until it joins
 * a pool (join.c); ioctl.c dispatches its requests.
 */
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "xk.h"

static int xk_open(struct inode *inode, struct file *filp)
{
	struct xk_file *file = kzalloc(sizeof(*file), GFP_KERNEL_ACCOUNT);

	if (!file)
		return -ENOMEM;
	file->payer = xk_payer_new();
	if (!file->payer)
		goto err_file;
	file->pollers = xk_pollers_new();
	if (!file->pollers)
		goto err_payer;
	mutex_init(&file->lock);
	file->file = filp;
	filp->private_data = file;
	return nonseekable_open(inode, filp);

err_payer:
	xk_payer_put(file->payer);
err_file:
	kfree(file);
	return -ENOMEM;
}

/* A process closes a descriptor of the file. It may be the client, about to go. */
static int xk_flush(struct file *filp, fl_owner_t id)
{
	struct xk_file *file = filp->private_data;
	struct xk_client *client = smp_load_acquire(&file->client);

	if (client)
		xk_client_left(client);
	return 0;
}

static int xk_release(struct inode *inode, struct file *filp)
{
	struct xk_file *file = filp->private_data;

	if (file->client) {
		xk_client_end(file->client);
		xk_client_put(file->client);
	}
	xk_pollers_put(file->pollers);
	xk_payer_put(file->payer);
	mutex_destroy(&file->lock);
	kfree(file);
	return 0;
}

/* Before it has joined there is no pool to speak of. */
static void xk_show_fdinfo(struct seq_file *m, struct file *filp)
{
	const struct xk_file *file = filp->private_data;
	const struct xk_client *client = smp_load_acquire(&file->client);

	if (client)
		xk_fdinfo_client(m, client);
	else
		seq_puts(m, "xmem-state:\tunjoined\n");
}

/* There is no compat_ioctl: the host is for 64-bit processes, others get ENOTTY. */
static const struct file_operations xk_fops = {
	.owner = THIS_MODULE,
	.open = xk_open,
	.flush = xk_flush,
	.release = xk_release,
	.unlocked_ioctl = xk_ioctl,
	.mmap = xk_mmap,
	.poll = xk_poll,
	.show_fdinfo = xk_show_fdinfo,
	.llseek = noop_llseek,
};

static struct miscdevice xk_misc = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "xmem",
	.fops = &xk_fops,
};

int __init xk_device_init(void)
{
	return misc_register(&xk_misc);
}

void __exit xk_device_exit(void)
{
	misc_deregister(&xk_misc);
}
