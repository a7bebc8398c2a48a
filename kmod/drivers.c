// SPDX-License-Identifier: GPL-2.0-only
/*
 * The drivers whose files may be payloads: drivers of GPUs that the administrator lists by the
 * numbers of their character devices. Such a file stands for memory of the GPU. The driver gives it
 * out for that purpose, and frees the memory with the file. The module does not know what else such
 * a file can do, so the list must have no other devices: a file that can hold other files might
 * hold one of ours, and then neither would ever be released.
 */
#include <linux/fs.h>
#include <linux/kdev_t.h>
#include <linux/module.h>
#include <linux/spinlock.h>
#include <linux/string.h>

#include "xk.h"

#define XK_MAX_DRIVERS	16

struct xk_drivers {
	u32 count;
	dev_t number[XK_MAX_DRIVERS];
};

static DEFINE_SPINLOCK(drivers_lock);
/* drivers_lock. The device of the descriptors that NVIDIA's driver exports (/dev/nvidiactl). */
static struct xk_drivers drivers = { .count = 1, .number = { MKDEV(195, 255) } };

/* ---- the parameter ---- */

/* Parse a list of "major:minor", separated by commas; it may be empty. */
static int xk_drivers_parse(const char *text, struct xk_drivers *list)
{
	unsigned int major, minor;
	int length;

	text = skip_spaces(text);
	if (!*text)
		return 0;
	for (;; text++) {
		if (sscanf(text, "%u:%u%n", &major, &minor, &length) != 2)
			return -EINVAL;
		if (major >= 1U << (32 - MINORBITS) || minor > MINORMASK)
			return -ERANGE;
		if (list->count == XK_MAX_DRIVERS)
			return -ENOSPC;
		list->number[list->count++] = MKDEV(major, minor);
		text += length;
		if (*text != ',')
			return *skip_spaces(text) ? -EINVAL : 0;
	}
}

static int xk_drivers_set(const char *value, const struct kernel_param *param)
{
	struct xk_drivers list = { .count = 0 };
	int err = xk_drivers_parse(value, &list);

	if (err)
		return err;
	spin_lock(&drivers_lock);
	drivers = list;
	spin_unlock(&drivers_lock);
	return 0;
}

static int xk_drivers_get(char *page, const struct kernel_param *param)
{
	int n = 0;
	u32 i;

	spin_lock(&drivers_lock);
	for (i = 0; i < drivers.count; i++)
		n += scnprintf(page + n, PAGE_SIZE - n, i ? ",%u:%u" : "%u:%u",
			       MAJOR(drivers.number[i]), MINOR(drivers.number[i]));
	spin_unlock(&drivers_lock);
	return n + scnprintf(page + n, PAGE_SIZE - n, "\n");
}

static const struct kernel_param_ops xk_drivers_ops = {
	.set = xk_drivers_set, .get = xk_drivers_get,
};
module_param_cb(device_files, &xk_drivers_ops, NULL, 0644);
MODULE_PARM_DESC(device_files, "devices whose files may be payloads, as major:minor,...");

/* ---- checking a file ---- */

static bool xk_is_listed(dev_t number)
{
	bool listed = false;
	u32 i;

	spin_lock(&drivers_lock);
	for (i = 0; i < drivers.count; i++)
		listed |= drivers.number[i] == number;
	spin_unlock(&drivers_lock);
	return listed;
}

/*
 * May this file be kept as a payload? Never one of the module's own, whatever is listed: it keeps
 * the module loaded, and the payer of what is made through it.
 */
bool xk_is_device_file(const struct file *file)
{
	const struct inode *inode = file_inode(file);

	return S_ISCHR(inode->i_mode) && file->f_op->owner != THIS_MODULE &&
	       xk_is_listed(inode->i_rdev);
}
