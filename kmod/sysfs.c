// SPDX-License-Identifier: GPL-2.0-only
/*
 * /sys/class/xmem/poolN: what each pool has, its limits, its slots and clients.
 * For people and tools; nothing in xmem reads it. Files belong to the group that
 * may open the device, mode 0440.
 *
 * One work item per pool makes entries and removes them, without the pool's
 * lock: removal waits for readers, and readers take that lock. Removal has ended
 * before the pool is freed, so readers need no reference. Pools come and go as
 * any user likes, so they make no uevents.
 */
#include <linux/bitmap.h>
#include <linux/cred.h>
#include <linux/device.h>
#include <linux/kobject.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/slab.h>
#include <linux/sysfs.h>

#include "compat.h"
#include "xmem_private.h"

/* A directory of one slot or one client. */
struct xmem_node {
	struct kobject kobj;
	struct xmem_pool *pool;
	u32 index;			/* slot, or client id */
};

struct xmem_node_attribute {
	struct attribute attr;
	ssize_t (*show)(struct xmem_pool *pool, u32 index, char *page);	/* under pool->lock */
};

/* ---- a pool's own files ---- */

struct xmem_pool_attribute {
	struct device_attribute attr;
	ssize_t (*show)(struct xmem_pool *pool, char *page);		/* under pool->lock */
};

static ssize_t xmem_pool_show(struct device *device, struct device_attribute *attr, char *page)
{
	struct xmem_pool *pool = dev_get_drvdata(device);
	ssize_t n = -ENODEV;

	if (mutex_lock_killable(&pool->lock))
		return -EINTR;
	if (!pool->dead)
		n = container_of(attr, struct xmem_pool_attribute, attr)->show(pool, page);
	mutex_unlock(&pool->lock);
	return n;
}

#define XMEM_POOL_ATTRIBUTE(name_)								\
static struct xmem_pool_attribute xmem_pool_##name_ = {						\
	.attr = __ATTR(name_, 0440, xmem_pool_show, NULL), .show = xmem_pool_show_##name_,	\
}

/* A file with one number. */
#define XMEM_POOL_NUMBER(name_, value)								\
static ssize_t xmem_pool_show_##name_(struct xmem_pool *pool, char *page)			\
{												\
	return sysfs_emit(page, "%lld\n", (long long)(value));					\
}												\
XMEM_POOL_ATTRIBUTE(name_)

static ssize_t xmem_pool_show_name(struct xmem_pool *pool, char *page)
{
	return sysfs_emit(page, "%s\n", xmem_header(pool)->name);
}
XMEM_POOL_ATTRIBUTE(name);

static u32 xmem_count_slots(const struct xmem_pool *pool, bool of_host)
{
	const struct xm_map *map = &pool->host.map;
	u32 s, count = 0;

	for (s = 0; s < map->slots; s++)
		count += of_host ? map->row[s].owner == XMEM_OWNER_HOST : map->row[s].owner != XMEM_OWNER_NONE;
	return count;
}

static u64 xmem_count_bytes(const struct xmem_pool *pool)
{
	const struct xm_map *map = &pool->host.map;
	u64 bytes = 0;
	u32 s;

	for (s = 0; s < map->slots; s++)
		if (map->row[s].owner != XMEM_OWNER_NONE)
			bytes += map->row[s].length;
	return bytes;
}

static u32 xmem_count_clients(const struct xmem_pool *pool, u32 state)
{
	const struct xm_map *map = &pool->host.map;
	u32 c, count = 0;

	for (c = 0; c < map->clients; c++)
		count += map->client[c].state == state;
	return count;
}

XMEM_POOL_NUMBER(owner_uid, from_kuid_munged(current_user_ns(), pool->owner));
XMEM_POOL_NUMBER(slots_max, pool->host.map.slots);
XMEM_POOL_NUMBER(clients_max, pool->host.map.clients);
XMEM_POOL_NUMBER(ring_entries, pool->host.map.ring_mask + 1);
XMEM_POOL_NUMBER(attached, xmem_count_slots(pool, false));
XMEM_POOL_NUMBER(attached_bytes, xmem_count_bytes(pool));
XMEM_POOL_NUMBER(limbo, xmem_count_slots(pool, true));
XMEM_POOL_NUMBER(alive, xmem_count_clients(pool, XMEM_CLIENT_ALIVE));
XMEM_POOL_NUMBER(zombies, xmem_count_clients(pool, XMEM_CLIENT_ZOMBIE));
XMEM_POOL_NUMBER(payloads, pool->payload_count);
XMEM_POOL_NUMBER(payloads_max, xmem_max_payloads);
XMEM_POOL_NUMBER(page_bytes, atomic_long_read(&pool->pages) << PAGE_SHIFT);
XMEM_POOL_NUMBER(page_bytes_max, xmem_max_pool_bytes);

static struct attribute *xmem_pool_attrs[] = {
	&xmem_pool_name.attr.attr, &xmem_pool_owner_uid.attr.attr, &xmem_pool_slots_max.attr.attr,
	&xmem_pool_clients_max.attr.attr, &xmem_pool_ring_entries.attr.attr, &xmem_pool_attached.attr.attr,
	&xmem_pool_attached_bytes.attr.attr, &xmem_pool_limbo.attr.attr, &xmem_pool_alive.attr.attr,
	&xmem_pool_zombies.attr.attr, &xmem_pool_payloads.attr.attr, &xmem_pool_payloads_max.attr.attr,
	&xmem_pool_page_bytes.attr.attr, &xmem_pool_page_bytes_max.attr.attr,
	NULL
};
ATTRIBUTE_GROUPS(xmem_pool);

/* ---- slots/N ---- */

#define XMEM_NODE_ATTRIBUTE(kind, name_)							\
static struct xmem_node_attribute xmem_##kind##_##name_ = {					\
	.attr = { .name = #name_, .mode = 0440 }, .show = xmem_##kind##_show_##name_,		\
}

static u32 xmem_holds(const struct xmem_pool *pool, u32 client, u32 slot)
{
	if (!xm_bit(xmem_header(pool)->counted, client))
		return 0;
	return xm_load(xm_hold(&pool->host.map, client, slot)) & XM_HOLD_COUNT;
}

static u64 xmem_state_word(const struct xmem_pool *pool, u32 slot)
{
	const struct xm_map *map = &pool->host.map;

	return map->group[slot / XMEM_GROUP_SLOTS] ? xm_load(&xm_slot(map, slot)->state) : 0;
}

static ssize_t xmem_slot_show_state(struct xmem_pool *pool, u32 slot, char *page)
{
	static const char *const names[8] = { "free", "writing", "live", "scanning", "upgraded", "?", "?", "?" };

	return sysfs_emit(page, "%s\n", names[xm_state(xmem_state_word(pool, slot))]);
}
XMEM_NODE_ATTRIBUTE(slot, state);

static ssize_t xmem_slot_show_generation(struct xmem_pool *pool, u32 slot, char *page)
{
	return sysfs_emit(page, "%llu\n", xm_generation(xmem_state_word(pool, slot)));
}
XMEM_NODE_ATTRIBUTE(slot, generation);

static ssize_t xmem_slot_show_size(struct xmem_pool *pool, u32 slot, char *page)
{
	return sysfs_emit(page, "%llu\n", pool->host.map.row[slot].length);
}
XMEM_NODE_ATTRIBUTE(slot, size);

static ssize_t xmem_slot_show_owner(struct xmem_pool *pool, u32 slot, char *page)
{
	u32 owner = pool->host.map.row[slot].owner;

	if (owner >= XMEM_OWNER_HOST)
		return sysfs_emit(page, "%s\n", owner == XMEM_OWNER_HOST ? "host" : "none");
	return sysfs_emit(page, "%u\n", owner);
}
XMEM_NODE_ATTRIBUTE(slot, owner);

static ssize_t xmem_slot_show_refs(struct xmem_pool *pool, u32 slot, char *page)
{
	u64 refs = 0;
	u32 c;

	for (c = 0; c < pool->host.map.clients; c++)
		refs += xmem_holds(pool, c, slot);
	return sysfs_emit(page, "%llu\n", refs);
}
XMEM_NODE_ATTRIBUTE(slot, refs);

/* The ids of the clients that hold it. */
static ssize_t xmem_slot_show_holders(struct xmem_pool *pool, u32 slot, char *page)
{
	ssize_t n = 0;
	u32 c;

	for (c = 0; c < pool->host.map.clients; c++)
		if (xmem_holds(pool, c, slot))
			n += sysfs_emit_at(page, n, n ? " %u" : "%u", c);
	return n + sysfs_emit_at(page, n, "\n");
}
XMEM_NODE_ATTRIBUTE(slot, holders);

static struct attribute *xmem_slot_attrs[] = {
	&xmem_slot_state.attr, &xmem_slot_generation.attr, &xmem_slot_size.attr,
	&xmem_slot_owner.attr, &xmem_slot_refs.attr, &xmem_slot_holders.attr,
	NULL
};
ATTRIBUTE_GROUPS(xmem_slot);

/* ---- clients/N ---- */

static ssize_t xmem_client_show_pid(struct xmem_pool *pool, u32 id, char *page)
{
	struct xmem_client *client = pool->client[id];

	/* 0 where the reader's namespace does not have it. */
	return sysfs_emit(page, "%d\n", client ? pid_nr_ns(client->pid, task_active_pid_ns(current)) : 0);
}
XMEM_NODE_ATTRIBUTE(client, pid);

static ssize_t xmem_client_show_uid(struct xmem_pool *pool, u32 id, char *page)
{
	struct xmem_client *client = pool->client[id];

	if (!client)
		return -ENODEV;
	return sysfs_emit(page, "%u\n", from_kuid_munged(current_user_ns(), client->uid));
}
XMEM_NODE_ATTRIBUTE(client, uid);

static ssize_t xmem_client_show_label(struct xmem_pool *pool, u32 id, char *page)
{
	return sysfs_emit(page, "%.*s\n", XMEM_LABEL_BYTES, pool->host.map.client[id].label);
}
XMEM_NODE_ATTRIBUTE(client, label);

static ssize_t xmem_client_show_role(struct xmem_pool *pool, u32 id, char *page)
{
	return sysfs_emit(page, "%s\n", pool->host.map.client[id].role == XMEM_ROLE_WRITER ? "writer" : "reader");
}
XMEM_NODE_ATTRIBUTE(client, role);

static ssize_t xmem_client_show_state(struct xmem_pool *pool, u32 id, char *page)
{
	static const char *const names[] = { "none", "alive", "zombie" };

	return sysfs_emit(page, "%s\n", names[min_t(u32, pool->host.map.client[id].state, 2)]);
}
XMEM_NODE_ATTRIBUTE(client, state);

static ssize_t xmem_client_show_holds(struct xmem_pool *pool, u32 id, char *page)
{
	u64 holds = 0;
	u32 s;

	for (s = 0; s < pool->host.map.slots; s++)
		holds += xmem_holds(pool, id, s);
	return sysfs_emit(page, "%llu\n", holds);
}
XMEM_NODE_ATTRIBUTE(client, holds);

static struct attribute *xmem_client_attrs[] = {
	&xmem_client_pid.attr, &xmem_client_uid.attr, &xmem_client_label.attr,
	&xmem_client_role.attr, &xmem_client_state.attr, &xmem_client_holds.attr,
	NULL
};
ATTRIBUTE_GROUPS(xmem_client);

/* ---- directories ---- */

static ssize_t xmem_node_show(struct kobject *kobj, struct attribute *attr, char *page)
{
	struct xmem_node *node = container_of(kobj, struct xmem_node, kobj);
	struct xmem_pool *pool = node->pool;
	ssize_t n = -ENODEV;

	if (mutex_lock_killable(&pool->lock))
		return -EINTR;
	if (!pool->dead)
		n = container_of(attr, struct xmem_node_attribute, attr)->show(pool, node->index, page);
	mutex_unlock(&pool->lock);
	return n;
}

static void xmem_node_release(struct kobject *kobj)
{
	kfree(container_of(kobj, struct xmem_node, kobj));
}

static void xmem_node_ownership(XM_OWNERSHIP_CONST struct kobject *kobj, kuid_t *uid, kgid_t *gid)
{
	*uid = GLOBAL_ROOT_UID;
	*gid = container_of(kobj, struct xmem_node, kobj)->pool->gid;
}

static const struct sysfs_ops xmem_node_ops = { .show = xmem_node_show };

static struct kobj_type xmem_slot_type = {
	.release = xmem_node_release,
	.sysfs_ops = &xmem_node_ops,
	.default_groups = xmem_slot_groups,
	.get_ownership = xmem_node_ownership,
};

static struct kobj_type xmem_client_type = {
	.release = xmem_node_release,
	.sysfs_ops = &xmem_node_ops,
	.default_groups = xmem_client_groups,
	.get_ownership = xmem_node_ownership,
};

static struct xmem_node *xmem_node_new(struct xmem_pool *pool, struct kobject *parent, struct kobj_type *type,
				       u32 index)
{
	struct xmem_node *node = kzalloc(sizeof(*node), GFP_KERNEL);

	if (!node)
		return NULL;
	node->pool = pool;
	node->index = index;
	if (!kobject_init_and_add(&node->kobj, type, parent, "%u", index))
		return node;
	kobject_put(&node->kobj);
	return NULL;
}

/* Makes @*place what it should be. What cannot be made is tried again at the next change. */
static void xmem_node_set(struct xmem_pool *pool, struct xmem_node **place, struct kobject *parent,
			  struct kobj_type *type, u32 index, bool wanted)
{
	if (wanted == !!*place)
		return;
	if (wanted) {
		*place = xmem_node_new(pool, parent, type, index);
	} else {
		kobject_del(&(*place)->kobj);	/* waits for readers */
		kobject_put(&(*place)->kobj);
		*place = NULL;
	}
}

static void xmem_device_release(struct device *device)
{
	kfree(device);
}

static void xmem_device_ownership(XM_OWNERSHIP_CONST struct device *device, kuid_t *uid, kgid_t *gid)
{
	struct xmem_pool *pool = dev_get_drvdata(device);

	*uid = GLOBAL_ROOT_UID;
	*gid = pool->gid;
}

static struct class xmem_class = {
	.name = "xmem",
	.dev_groups = xmem_pool_groups,
	.dev_release = xmem_device_release,
	.get_ownership = xmem_device_ownership,
};

static void xmem_device_add(struct xmem_pool *pool)
{
	struct device *device = kzalloc(sizeof(*device), GFP_KERNEL);

	if (!device)
		return;
	device_initialize(device);
	device->class = &xmem_class;
	dev_set_drvdata(device, pool);
	dev_set_uevent_suppress(device, true);
	device_set_pm_not_required(device);
	if (dev_set_name(device, "pool%u", pool->number) || device_add(device))
		goto err_device;
	pool->slots_dir = kobject_create_and_add("slots", &device->kobj);
	pool->clients_dir = kobject_create_and_add("clients", &device->kobj);
	if (!pool->slots_dir || !pool->clients_dir)
		goto err_dirs;
	pool->device = device;
	return;

err_dirs:
	kobject_put(pool->slots_dir);
	kobject_put(pool->clients_dir);
	device_del(device);
err_device:
	put_device(device);
}

/* Its slots and clients have gone before. */
static void xmem_device_remove(struct xmem_pool *pool)
{
	kobject_put(pool->slots_dir);
	kobject_put(pool->clients_dir);
	device_unregister(pool->device);
	pool->device = NULL;
}

/* ---- the work ---- */

static u32 xmem_shown_slots(const struct xmem_pool *pool)
{
	return min(xmem_max_sysfs_slots, pool->host.map.slots);
}

int xmem_sysfs_prepare(struct xmem_pool *pool)
{
	u32 count = max(xmem_shown_slots(pool), 1U);

	pool->slot_node = kvcalloc(count, sizeof(*pool->slot_node), GFP_KERNEL_ACCOUNT);
	pool->slots_shown = bitmap_zalloc(count, GFP_KERNEL_ACCOUNT);
	return pool->slot_node && pool->slots_shown ? 0 : -ENOMEM;
}

/* What should be shown now. true: the pool is there at all. */
static bool xmem_sysfs_wanted(struct xmem_pool *pool, unsigned long *slots, unsigned long *clients)
{
	const struct xm_map *map = &pool->host.map;
	bool dead;
	u32 i;

	mutex_lock(&pool->lock);
	dead = pool->dead;
	for (i = 0; i < xmem_shown_slots(pool) && !dead; i++)
		if (map->row[i].owner != XMEM_OWNER_NONE)
			__set_bit(i, slots);
	for (i = 0; i < map->clients && !dead; i++)
		if (map->client[i].state != XMEM_CLIENT_NONE)
			__set_bit(i, clients);
	mutex_unlock(&pool->lock);
	return !dead;
}

static void xmem_sysfs_update(struct xmem_pool *pool, unsigned long *slots)
{
	DECLARE_BITMAP(clients, XMEM_MAX_CLIENTS) = { 0 };
	bool wanted = xmem_sysfs_wanted(pool, slots, clients);
	u32 i;

	if (wanted && !pool->device)
		xmem_device_add(pool);
	if (!pool->device)
		return;
	for (i = 0; i < xmem_shown_slots(pool); i++)
		xmem_node_set(pool, &pool->slot_node[i], pool->slots_dir, &xmem_slot_type, i, test_bit(i, slots));
	for (i = 0; i < pool->host.map.clients; i++)
		xmem_node_set(pool, &pool->client_node[i], pool->clients_dir, &xmem_client_type, i,
			      test_bit(i, clients));
	if (!wanted)
		xmem_device_remove(pool);
}

void xmem_sysfs_work(struct work_struct *work)
{
	struct xmem_pool *pool = container_of(work, struct xmem_pool, sysfs_work);

	bitmap_zero(pool->slots_shown, xmem_shown_slots(pool));
	xmem_sysfs_update(pool, pool->slots_shown);
	xmem_pool_put(pool);
}

/* Something has changed that is shown; under any lock, and without. */
void xmem_sysfs_sync(struct xmem_pool *pool)
{
	xmem_pool_get(pool);
	if (!queue_work(xmem_wq, &pool->sysfs_work))
		xmem_pool_put(pool);
}

int xmem_sysfs_init(void)
{
	return class_register(&xmem_class);
}

void xmem_sysfs_exit(void)
{
	class_unregister(&xmem_class);
}
