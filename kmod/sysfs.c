// SPDX-License-Identifier: GPL-2.0-only
/*
 * /sys/class/xmem: a folder for each pool, with the same text files in each, and a file about the
 * users. It is for people and tools, such as xmem top. docs/abi/sysfs.txt lists the files.
 *
 * The files of a pool have mode 0444, but only the pool's owner and users whom its mode admits read
 * them: each read checks that mode, which may change. A tool may read the files all the time, and
 * be throttled while it does. So a read takes none of the pool's locks but look_lock, for one line,
 * and access_lock and pages_lock, for the moment in which it copies a few numbers.
 */
#include <linux/cred.h>
#include <linux/device.h>
#include <linux/init.h>
#include <linux/slab.h>
#include <linux/sysfs.h>

#include "compat.h"
#include "xk.h"

#define XK_LOOKS	4	/* at most so many at one line, until two in a row are equal */

static int xk_pool_may_read(struct xk_pool *pool)
{
	if (!xk_pool_is_shown(pool))
		return -EACCES;
	return READ_ONCE(pool->dead) ? -ENODEV : 0;
}

/* ---- files with one value ---- */

static struct xk_access xk_access_now(struct xk_pool *pool)
{
	struct xk_access now;

	xk_access_of(pool, &now.gid, &now.mode);
	return now;
}

#define XK_POOL_VALUE(name_, format, value)							\
static ssize_t name_##_show(struct device *device, struct device_attribute *attr, char *page)	\
{												\
	struct xk_pool *pool = dev_get_drvdata(device);						\
												\
	return xk_pool_may_read(pool) ?: sysfs_emit(page, format "\n", value);			\
}												\
static DEVICE_ATTR_RO(name_)

XK_POOL_VALUE(name, "%s", xk_header(pool)->name);
XK_POOL_VALUE(owner_uid, "%u", from_kuid_munged(current_user_ns(), pool->owner));
XK_POOL_VALUE(gid, "%u", from_kgid_munged(current_user_ns(), xk_access_now(pool).gid));
XK_POOL_VALUE(mode, "%04o", xk_access_now(pool).mode);
XK_POOL_VALUE(slots_max, "%u", pool->look.slots);
XK_POOL_VALUE(clients_max, "%u", pool->look.clients);
XK_POOL_VALUE(ring_entries, "%u", pool->look.ring_mask + 1);
XK_POOL_VALUE(payloads, "%u", READ_ONCE(pool->payload_count));
XK_POOL_VALUE(payload_bytes, "%llu", xm_load(&xk_header(pool)->payload_bytes));
XK_POOL_VALUE(kept_bytes, "%llu", xm_load(&xk_header(pool)->kept_bytes));
XK_POOL_VALUE(huge_bytes, "%llu", xm_load(&xk_header(pool)->huge_bytes));
XK_POOL_VALUE(device_files, "%u", READ_ONCE(pool->device_count));
XK_POOL_VALUE(page_bytes, "%lu", atomic_long_read(&pool->pages) << PAGE_SHIFT);

static struct attribute *xk_pool_attrs[] = {
	&dev_attr_name.attr, &dev_attr_owner_uid.attr, &dev_attr_gid.attr, &dev_attr_mode.attr,
	&dev_attr_slots_max.attr, &dev_attr_clients_max.attr, &dev_attr_ring_entries.attr,
	&dev_attr_payloads.attr, &dev_attr_payload_bytes.attr, &dev_attr_kept_bytes.attr,
	&dev_attr_huge_bytes.attr, &dev_attr_device_files.attr, &dev_attr_page_bytes.attr,
	NULL
};

/* ---- files with a line for each buffer or client ---- */

/* All lines of a file have this length, so the offset of a line says which slot or client it is. */
#define XK_LINE_BYTES(clients)	(120 + DIV_ROUND_UP(clients, 32) * 9)

struct xk_lines {
	struct bin_attribute attr;
	const char *heading;
	u32 (*count)(const struct xk_pool *pool);
	/* Print the line of slot or client @index as scnprintf does, without its end. */
	int (*print)(struct xk_pool *pool, u32 index, char *line, int bytes);
};

static u32 xk_slots(const struct xk_pool *pool)
{
	return pool->look.slots;
}

static u32 xk_clients(const struct xk_pool *pool)
{
	return pool->look.clients;
}

/* Count the holds on a slot. @holders: a bitmap of the clients that have them. */
static u64 xk_count_holds(const struct xm_map *map, u32 slot, unsigned long *holders)
{
	u64 holds = 0;
	u32 c, n;

	bitmap_zero(holders, XMEM_MAX_CLIENTS);
	for (c = 0; c < map->clients; c++) {
		if (!xm_holds_count(map, c, slot))
			continue;
		n = xm_holds_of(map, c, slot, xm_hold(map, c, slot));
		holds += n;
		if (n)
			__set_bit(c, holders);
	}
	return holds;
}

/* The state word is read first, so no hold that is counted is one of earlier contents. */
static int xk_print_slot(struct xk_pool *pool, u32 s, char *line, int bytes)
{
	static const char *const states[8] = {
		[XMEM_SLOT_FREE] = "free", [XMEM_SLOT_WRITING] = "writing",
		[XMEM_SLOT_LIVE] = "live", [XMEM_SLOT_SCANNING] = "scanning",
		[XMEM_SLOT_UPGRADED] = "upgraded",
	};
	const struct xm_map *map = &pool->look;
	const struct xmem_slot_row *row = xm_slot_row(map, s);
	u64 word = xm_load_acquire(&xm_slot(map, s)->state), holds;
	DECLARE_BITMAP(holders, XMEM_MAX_CLIENTS);
	u32 owner = xm_load(&row->owner);
	char who[12] = "host";

	if (owner == XMEM_OWNER_NONE)
		return scnprintf(line, bytes, "%5u     -", s);
	holds = xk_count_holds(map, s, holders);
	if (owner != XMEM_OWNER_HOST)
		snprintf(who, sizeof(who), "%u", owner);
	return scnprintf(line, bytes, "%5u %5s %-8s %12llu %8llu %10llu %08x %6u %6llu %*pb", s,
			 who, states[xm_state(word)] ?: "wrong", xm_generation(word),
			 xm_load(&row->payload), xm_load(&row->length), xm_load(&row->traits),
			 xm_claims_of(map, s), holds, (int)map->clients, holders);
}

/* pool->client[id] may be a later client than the row's: then the second look differs. */
static int xk_print_client(struct xk_pool *pool, u32 id, char *line, int bytes)
{
	const struct xmem_client_row *row = xm_client_row(&pool->look, id);
	static const char *const roles[] = {
		[XMEM_ROLE_READER] = "reader", [XMEM_ROLE_WRITER] = "writer",
		[XMEM_ROLE_EITHER] = "either",
	};
	const u32 state = xm_load_acquire(&row->state), role = xm_load(&row->role);
	const struct xk_client *client;
	kuid_t uid = INVALID_UID;
	pid_t pid = 0;

	if (state == XMEM_CLIENT_NONE)
		return scnprintf(line, bytes, "%6u -", id);
	spin_lock(&pool->pages_lock);
	client = pool->client[id];
	if (client) {
		pid = xk_pid_of_client(client);
		uid = client->uid;
	}
	spin_unlock(&pool->pages_lock);
	return scnprintf(line, bytes, "%6u %-10s %-6s %8d %10u %11llu %.*s", id,
			 xm_host_is_quarantined(&pool->host, id) ? "quarantine" :
			 state == XMEM_CLIENT_ALIVE ? "alive" : "zombie",
			 role < ARRAY_SIZE(roles) && roles[role] ? roles[role] : "-", pid,
			 from_kuid_munged(current_user_ns(), uid), xm_load(&row->incarnation),
			 XMEM_LABEL_BYTES, row->label);
}

static void xk_line_print(const struct xk_lines *lines, struct xk_pool *pool, u32 number,
			  char *line, int bytes)
{
	int n;

	if (number) {
		xk_look_begin(pool);
		n = lines->print(pool, xm_index(number - 1, lines->count(pool)), line, bytes);
		xk_look_end(pool);
	} else {
		n = scnprintf(line, bytes, "%s", lines->heading);
	}
	memset(line + n, ' ', bytes - 1 - n);
	line[bytes - 1] = '\n';
}

/*
 * If two looks in a row are equal, both were at one use of the slot or id, because generations and
 * incarnations are never used again. So the holds that the first look has counted are holds of the
 * contents in the line, which were still there at the second. If no two looks in a row are equal,
 * the line ends in '!'.
 */
static void xk_line_read(const struct xk_lines *lines, struct xk_pool *pool, u32 number,
			 char *line, int bytes)
{
	char before[XK_LINE_BYTES(XMEM_MAX_CLIENTS)];
	u32 looks;

	xk_line_print(lines, pool, number, line, bytes);
	for (looks = 1; looks < XK_LOOKS; looks++) {
		memcpy(before, line, bytes);
		xk_line_print(lines, pool, number, line, bytes);
		if (!memcmp(before, line, bytes))
			return;
	}
	line[bytes - 2] = '!';
}

/*
 * The kernel asks for at most a page at a time, and gives it to the reader only afterwards. So a
 * reader that faults or stops between two pages keeps no lock. Only a read that asks for less than
 * a line gets a part of one, so readers of whole files see each line at one moment.
 */
static ssize_t xk_lines_read(struct file *file, struct kobject *kobj,
			     XK_BIN_CONST struct bin_attribute *attr, char *to, loff_t at,
			     size_t bytes)
{
	const struct xk_lines *lines = container_of(attr, struct xk_lines, attr);
	struct xk_pool *pool = dev_get_drvdata(kobj_to_dev(kobj));
	const size_t width = XK_LINE_BYTES(pool->look.clients);
	const loff_t end = (lines->count(pool) + 1ULL) * width;
	char line[XK_LINE_BYTES(XMEM_MAX_CLIENTS)];
	int err = xk_pool_may_read(pool);
	size_t done = 0, from, n;

	while (!err && at < end && done < bytes) {
		from = at % width;
		n = min(width - from, bytes - done);
		if (done && n < width)
			break;
		xk_line_read(lines, pool, at / width, line, width);
		memcpy(to + done, line + from, n);
		done += n;
		at += n;
		cond_resched();
	}
	return err ?: done;
}

#define XK_POOL_LINES(name_, count_, print_, heading_)						\
static struct xk_lines xk_pool_##name_ = {							\
	.attr = { .attr = { .name = #name_, .mode = 0444 }, .read = xk_lines_read },		\
	.count = count_, .print = print_, .heading = heading_,					\
}

static const char buffers_heading[] =
	" slot owner state      generation  payload     length   traits claims  holds holders";
XK_POOL_LINES(buffers, xk_slots, xk_print_slot, buffers_heading);
XK_POOL_LINES(clients, xk_clients, xk_print_client,
	      "client state      role        pid        uid incarnation label");

static XK_BIN_CONST struct bin_attribute *XK_BIN_CONST xk_pool_bin_attrs[] = {
	&xk_pool_buffers.attr, &xk_pool_clients.attr,
	NULL
};

static const struct attribute_group xk_pool_group = {
	.attrs = xk_pool_attrs, .bin_attrs = xk_pool_bin_attrs,
};

/* ---- the class ---- */

static ssize_t users_show(XK_CLASS_CONST struct class *class,
			  XK_CLASS_CONST struct class_attribute *attr, char *page)
{
	return xk_users_print(page);
}

static CLASS_ATTR_RO(users);

static struct attribute *xk_class_attrs[] = { &class_attr_users.attr, NULL };
ATTRIBUTE_GROUPS(xk_class);

static const struct attribute_group *xk_pool_groups[] = {
	&xk_pool_group,
	NULL
};

static void xk_device_release(struct device *device)
{
	kfree(device);
}

static struct class xk_class = {
	.name = "xmem",
	.class_groups = xk_class_groups,
	.dev_groups = xk_pool_groups,
	.dev_release = xk_device_release,
};

/* ---- the folder of a pool ---- */

/*
 * The join that makes a pool makes its folder. No memory cgroup pays for the memory that sysfs
 * takes for a folder, but it is equal for all pools, so the limits of pools bound it. A work item
 * removes the folder, because removing waits for readers; so readers need no reference to the pool.
 * There are no uevents, because any user can make and end pools at any rate.
 *
 * A throttled reader delays the removal for as long as it likes. So removals have a work queue of
 * their own, in which nothing else waits. A pool counts for its maker until its folder is removed.
 */

/* How many folders can be removed at a time; each that is being read takes a kernel thread. */
#define XK_LEAVING_FOLDERS	512

static struct workqueue_struct *folder_wq;

static void xk_sysfs_remove(struct work_struct *work)
{
	struct xk_pool *pool = container_of(work, struct xk_pool, sysfs_work);

	device_unregister(pool->device);
	pool->device = NULL;
	xk_pool_uncharge(pool);
	xk_pool_put(pool);
}

/* Make the folder of a pool that nobody else knows yet. */
int xk_sysfs_show(struct xk_pool *pool)
{
	struct device *device = kzalloc(sizeof(*device), GFP_KERNEL_ACCOUNT);
	int err;

	if (!device)
		return -ENOMEM;
	device_initialize(device);
	device->class = &xk_class;
	dev_set_drvdata(device, pool);
	dev_set_uevent_suppress(device, true);
	device_set_pm_not_required(device);
	err = dev_set_name(device, "pool%u", pool->number) ?: device_add(device);
	if (err) {
		put_device(device);
		return err;
	}
	INIT_WORK(&pool->sysfs_work, xk_sysfs_remove);
	pool->device = device;
	return 0;
}

/* The pool has been emptied. Any lock may be held. */
void xk_sysfs_hide(struct xk_pool *pool)
{
	xk_pool_get(pool);
	queue_work(folder_wq, &pool->sysfs_work);
}

int __init xk_sysfs_init(void)
{
	int err;

	folder_wq = alloc_workqueue("xmem_sysfs", WQ_UNBOUND, XK_LEAVING_FOLDERS);
	if (!folder_wq)
		return -ENOMEM;
	err = class_register(&xk_class);
	if (err)
		destroy_workqueue(folder_wq);
	return err;
}

/* All pools have been emptied. This waits for folders that are still being read. */
void xk_sysfs_exit(void)
{
	destroy_workqueue(folder_wq);
	class_unregister(&xk_class);
}
