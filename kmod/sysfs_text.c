// SPDX-License-Identifier: GPL-2.0-only
/*
 * The text files of /sys/class/xmem/poolN: the settings of a pool, and the sums over its slots
 * and clients. sysfs_records.c has each slot, client and GPU.
 *
 * A user that may join a pool by its name may read its files. They have mode 0444, and each read
 * checks the pool's mode, which may change. If the pool changes during a read, the result may mix
 * two moments.
 */
#include <linux/cred.h>
#include <linux/device.h>
#include <linux/sysfs.h>

#include "core/limbo.h"
#include "xk.h"

struct xk_pool_attribute {
	struct device_attribute attr;
	ssize_t (*show)(struct xk_pool *pool, char *page);
};

static ssize_t xk_pool_show(struct device *device, struct device_attribute *attr, char *page)
{
	struct xk_pool *pool = dev_get_drvdata(device);

	if (!xk_pool_is_shown(pool))
		return -EACCES;
	if (READ_ONCE(pool->dead))
		return -ENODEV;
	return container_of(attr, struct xk_pool_attribute, attr)->show(pool, page);
}

#define XK_POOL_ATTRIBUTE(name_)								\
static struct xk_pool_attribute xk_pool_##name_ = {						\
	.attr = __ATTR(name_, 0444, xk_pool_show, NULL), .show = xk_pool_show_##name_,	\
}

/* A file with one number. */
#define XK_POOL_NUMBER(name_, value)								\
static ssize_t xk_pool_show_##name_(struct xk_pool *pool, char *page)			\
{												\
	return sysfs_emit(page, "%lld\n", (long long)(value));					\
}												\
XK_POOL_ATTRIBUTE(name_)

static ssize_t xk_pool_show_name(struct xk_pool *pool, char *page)
{
	return sysfs_emit(page, "%s\n", xk_header(pool)->name);
}
XK_POOL_ATTRIBUTE(name);

static u32 xk_count_slots(const struct xk_pool *pool)
{
	const struct xm_map *map = &pool->look;
	u32 s, count = 0;

	for (s = 0; s < map->slots; s++)
		count += xm_load(&xm_slot_row(map, s)->owner) != XMEM_OWNER_NONE;
	return count;
}

static u64 xk_count_bytes(const struct xk_pool *pool)
{
	const struct xm_map *map = &pool->look;
	u64 bytes = 0;
	u32 s;

	for (s = 0; s < map->slots; s++)
		if (xm_load(&xm_slot_row(map, s)->owner) != XMEM_OWNER_NONE)
			bytes += xm_load(&xm_slot_row(map, s)->length);
	return bytes;
}

static u32 xk_count_clients(const struct xk_pool *pool, u32 state)
{
	const struct xm_map *map = &pool->look;
	u32 c, count = 0;

	for (c = 0; c < map->clients; c++)
		count += xm_load(&xm_client_row(map, c)->state) == state;
	return count;
}

static struct xm_limbo xk_count_ended(const struct xk_pool *pool)
{
	struct xm_limbo limbo = { .ended = 0 };

	xm_limbo_count_ended(&pool->look, &limbo);
	return limbo;
}

/* Everything else here is in the table. This reads groups and areas, one group in a look. */
static struct xm_limbo xk_count_overdue(struct xk_pool *pool)
{
	struct xm_limbo limbo = { .overdue = 0 };
	u32 g;

	for (g = 0; g < pool->look.groups; g++) {
		xk_look_begin(pool);
		xm_limbo_count_overdue(&pool->look, g, &limbo);
		xk_look_end(pool);
		cond_resched();
	}
	return limbo;
}

/* The clock of @since may be that of another time namespace. */
static u64 xk_age(u64 since)
{
	u64 now = ktime_get_ns();

	return since && since < now ? now - since : 0;
}

static kgid_t xk_gid_of(struct xk_pool *pool)
{
	kgid_t gid;
	u32 mode;

	xk_access_of(pool, &gid, &mode);
	return gid;
}

/* The mode, as chmod writes it. */
static ssize_t xk_pool_show_mode(struct xk_pool *pool, char *page)
{
	kgid_t gid;
	u32 mode;

	xk_access_of(pool, &gid, &mode);
	return sysfs_emit(page, "%04o\n", mode);
}
XK_POOL_ATTRIBUTE(mode);

XK_POOL_NUMBER(owner_uid, from_kuid_munged(current_user_ns(), pool->owner));
XK_POOL_NUMBER(gid, from_kgid_munged(current_user_ns(), xk_gid_of(pool)));
XK_POOL_NUMBER(slots_max, pool->look.slots);
XK_POOL_NUMBER(clients_max, pool->look.clients);
XK_POOL_NUMBER(ring_entries, pool->look.ring_mask + 1);
XK_POOL_NUMBER(attached, xk_count_slots(pool));
XK_POOL_NUMBER(attached_bytes, xk_count_bytes(pool));
XK_POOL_NUMBER(limbo, xk_count_ended(pool).ended);
XK_POOL_NUMBER(limbo_bytes, xk_count_ended(pool).ended_bytes);
XK_POOL_NUMBER(limbo_age_ns, xk_age(xk_count_ended(pool).ended_ns));
XK_POOL_NUMBER(overdue, xk_count_overdue(pool).overdue);
XK_POOL_NUMBER(overdue_bytes, xk_count_overdue(pool).overdue_bytes);
XK_POOL_NUMBER(overdue_age_ns, xk_age(xk_count_overdue(pool).overdue_ns));
XK_POOL_NUMBER(alive, xk_count_clients(pool, XMEM_CLIENT_ALIVE));
XK_POOL_NUMBER(zombies, xk_count_clients(pool, XMEM_CLIENT_ZOMBIE));
XK_POOL_NUMBER(payloads, READ_ONCE(pool->payload_count));
XK_POOL_NUMBER(device_files, READ_ONCE(pool->device_count));
XK_POOL_NUMBER(payload_bytes, xm_load(&xk_header(pool)->payload_bytes));
XK_POOL_NUMBER(kept_bytes, xm_load(&xk_header(pool)->kept_bytes));
XK_POOL_NUMBER(huge_bytes, xm_load(&xk_header(pool)->huge_bytes));
XK_POOL_NUMBER(page_bytes, atomic_long_read(&pool->pages) << PAGE_SHIFT);

static struct attribute *xk_pool_attrs[] = {
	&xk_pool_name.attr.attr, &xk_pool_owner_uid.attr.attr, &xk_pool_gid.attr.attr,
	&xk_pool_mode.attr.attr, &xk_pool_slots_max.attr.attr,
	&xk_pool_clients_max.attr.attr, &xk_pool_ring_entries.attr.attr,
	&xk_pool_attached.attr.attr, &xk_pool_attached_bytes.attr.attr,
	&xk_pool_limbo.attr.attr, &xk_pool_limbo_bytes.attr.attr,
	&xk_pool_limbo_age_ns.attr.attr,
	&xk_pool_overdue.attr.attr,
	&xk_pool_overdue_bytes.attr.attr, &xk_pool_overdue_age_ns.attr.attr,
	&xk_pool_alive.attr.attr, &xk_pool_zombies.attr.attr,
	&xk_pool_payloads.attr.attr, &xk_pool_device_files.attr.attr,
	&xk_pool_payload_bytes.attr.attr, &xk_pool_kept_bytes.attr.attr,
	&xk_pool_huge_bytes.attr.attr,
	&xk_pool_page_bytes.attr.attr,
	NULL
};

const struct attribute_group xk_text_group = { .attrs = xk_pool_attrs };
