// SPDX-License-Identifier: GPL-2.0-only
/*
 * /sys/class/xmem/poolN: what a pool has, its limits, its slots, clients and GPUs. It is
 * for people and tools; nothing in xmem reads it. Who may join a pool by its name may read
 * its files: they have mode 0444, and each look at one asks the pool's mode, which may change.
 *
 * Readers take no lock of the pool: they may be throttled, and they look at much. What they read
 * may be of two moments, if the pool changes meanwhile.
 *
 * One work item per pool makes and removes entries. Removal waits for readers, and the pool is
 * freed after it, so readers need no reference. There are no uevents, because any user can make
 * pools come and go.
 */
#include <linux/bitmap.h>
#include <linux/cred.h>
#include <linux/device.h>
#include <linux/init.h>
#include <linux/kobject.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/slab.h>
#include <linux/sysfs.h>

#include "compat.h"
#include "core/limbo.h"
#include "xk.h"

/* A directory of one slot, one client or one GPU. */
struct xk_node {
	struct kobject kobj;
	struct xk_payer *payer;		/* of whoever has what it shows; with a reference */
	struct xk_pool *pool;
	u32 index;			/* slot, client id, or number of the device */
};

struct xk_node_attribute {
	struct attribute attr;
	ssize_t (*show)(struct xk_pool *pool, u32 index, char *page);
};

/* ---- a pool's own files ---- */

struct xk_pool_attribute {
	struct device_attribute attr;
	ssize_t (*show)(struct xk_pool *pool, char *page);
};

/* Its owner may look, too, whatever the mode is. */
static bool xk_may_look(struct xk_pool *pool)
{
	return xk_access_owns(pool) || xk_access_roles(pool);
}

static ssize_t xk_pool_show(struct device *device, struct device_attribute *attr, char *page)
{
	struct xk_pool *pool = dev_get_drvdata(device);
	int looker;
	ssize_t n;

	if (!xk_may_look(pool))
		return -EACCES;
	if (READ_ONCE(pool->dead))
		return -ENODEV;
	looker = xk_look_begin();
	n = container_of(attr, struct xk_pool_attribute, attr)->show(pool, page);
	xk_look_end(looker);
	return n;
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

static u32 xk_count_slots(const struct xk_pool *pool, bool of_host)
{
	const struct xm_map *map = &pool->look;
	u32 s, count = 0;

	for (s = 0; s < map->slots; s++)
		if (of_host)
			count += xm_load(&xm_slot_row(map, s)->owner) == XMEM_OWNER_HOST;
		else
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

static struct xm_limbo xk_count_limbo(const struct xk_pool *pool)
{
	struct xm_limbo limbo;

	xm_limbo_count(&pool->look, &limbo);
	return limbo;
}

/* The clock of whoever said @since may be another one, in a time namespace. */
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

/* As chmod has it. */
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
XK_POOL_NUMBER(attached, xk_count_slots(pool, false));
XK_POOL_NUMBER(attached_bytes, xk_count_bytes(pool));
XK_POOL_NUMBER(limbo, xk_count_slots(pool, true));
XK_POOL_NUMBER(limbo_bytes, xk_count_limbo(pool).ended_bytes);
XK_POOL_NUMBER(limbo_age_ns, xk_age(xk_count_limbo(pool).ended_ns));
XK_POOL_NUMBER(limbo_bytes_max, xk_limbo_most(pool));
XK_POOL_NUMBER(overdue, xk_count_limbo(pool).overdue);
XK_POOL_NUMBER(overdue_bytes, xk_count_limbo(pool).overdue_bytes);
XK_POOL_NUMBER(overdue_age_ns, xk_age(xk_count_limbo(pool).overdue_ns));
XK_POOL_NUMBER(alive, xk_count_clients(pool, XMEM_CLIENT_ALIVE));
XK_POOL_NUMBER(zombies, xk_count_clients(pool, XMEM_CLIENT_ZOMBIE));
XK_POOL_NUMBER(payloads, READ_ONCE(pool->payload_count));
XK_POOL_NUMBER(payloads_max, READ_ONCE(xk_max_payloads));
XK_POOL_NUMBER(device_files, xk_payload_devices(pool));
XK_POOL_NUMBER(device_files_max, READ_ONCE(xk_max_device_files));
XK_POOL_NUMBER(payload_bytes, xm_load(&xk_header(pool)->payload_bytes));
XK_POOL_NUMBER(kept_bytes, xm_load(&xk_header(pool)->kept_bytes));
XK_POOL_NUMBER(huge_bytes, xm_load(&xk_header(pool)->huge_bytes));
XK_POOL_NUMBER(page_bytes, atomic_long_read(&pool->pages) << PAGE_SHIFT);
XK_POOL_NUMBER(page_bytes_max, READ_ONCE(xk_max_pool_bytes));

static struct attribute *xk_pool_attrs[] = {
	&xk_pool_name.attr.attr, &xk_pool_owner_uid.attr.attr, &xk_pool_gid.attr.attr,
	&xk_pool_mode.attr.attr, &xk_pool_slots_max.attr.attr,
	&xk_pool_clients_max.attr.attr, &xk_pool_ring_entries.attr.attr,
	&xk_pool_attached.attr.attr, &xk_pool_attached_bytes.attr.attr,
	&xk_pool_limbo.attr.attr, &xk_pool_limbo_bytes.attr.attr,
	&xk_pool_limbo_age_ns.attr.attr, &xk_pool_limbo_bytes_max.attr.attr,
	&xk_pool_overdue.attr.attr,
	&xk_pool_overdue_bytes.attr.attr, &xk_pool_overdue_age_ns.attr.attr,
	&xk_pool_alive.attr.attr, &xk_pool_zombies.attr.attr,
	&xk_pool_payloads.attr.attr, &xk_pool_payloads_max.attr.attr,
	&xk_pool_device_files.attr.attr, &xk_pool_device_files_max.attr.attr,
	&xk_pool_payload_bytes.attr.attr, &xk_pool_kept_bytes.attr.attr,
	&xk_pool_huge_bytes.attr.attr,
	&xk_pool_page_bytes.attr.attr, &xk_pool_page_bytes_max.attr.attr,
	NULL
};
ATTRIBUTE_GROUPS(xk_pool);

/* ---- slots/N ---- */

#define XK_NODE_ATTRIBUTE(kind, name_)							\
static struct xk_node_attribute xk_##kind##_##name_ = {					\
	.attr = { .name = #name_, .mode = 0444 }, .show = xk_##kind##_show_##name_,		\
}

static u32 xk_holds(const struct xk_pool *pool, u32 client, u32 slot)
{
	if (!xm_holds_count(&pool->look, client, slot))
		return 0;
	return xm_load(xm_hold(&pool->look, client, slot)) & XM_HOLD_COUNT;
}

static u64 xk_state_word(const struct xk_pool *pool, u32 slot)
{
	const struct xm_map *map = &pool->look;

	return xm_load(&xm_slot(map, slot)->state);
}

static ssize_t xk_slot_show_state(struct xk_pool *pool, u32 slot, char *page)
{
	static const char *const names[8] = {
		"free", "writing", "live", "scanning", "upgraded", "?", "?", "?"
	};

	return sysfs_emit(page, "%s\n", names[xm_state(xk_state_word(pool, slot))]);
}
XK_NODE_ATTRIBUTE(slot, state);

static ssize_t xk_slot_show_generation(struct xk_pool *pool, u32 slot, char *page)
{
	return sysfs_emit(page, "%llu\n", xm_generation(xk_state_word(pool, slot)));
}
XK_NODE_ATTRIBUTE(slot, generation);

static ssize_t xk_slot_show_size(struct xk_pool *pool, u32 slot, char *page)
{
	return sysfs_emit(page, "%llu\n", xm_load(&xm_slot_row(&pool->look, slot)->length));
}
XK_NODE_ATTRIBUTE(slot, size);

static ssize_t xk_slot_show_owner(struct xk_pool *pool, u32 slot, char *page)
{
	u32 owner = xm_load(&xm_slot_row(&pool->look, slot)->owner);

	if (owner >= XMEM_OWNER_HOST)
		return sysfs_emit(page, "%s\n", owner == XMEM_OWNER_HOST ? "host" : "none");
	return sysfs_emit(page, "%u\n", owner);
}
XK_NODE_ATTRIBUTE(slot, owner);

static ssize_t xk_slot_show_refs(struct xk_pool *pool, u32 slot, char *page)
{
	u64 refs = 0;
	u32 c;

	for (c = 0; c < pool->look.clients; c++)
		refs += xk_holds(pool, c, slot);
	return sysfs_emit(page, "%llu\n", refs);
}
XK_NODE_ATTRIBUTE(slot, refs);

/* References that are set aside for clients yet unknown. */
static ssize_t xk_slot_show_claims(struct xk_pool *pool, u32 slot, char *page)
{
	return sysfs_emit(page, "%u\n", xm_claims_of(&pool->look, slot));
}
XK_NODE_ATTRIBUTE(slot, claims);

/* The ids of the clients that hold the slot. */
static ssize_t xk_slot_show_holders(struct xk_pool *pool, u32 slot, char *page)
{
	ssize_t n = 0;
	u32 c;

	for (c = 0; c < pool->look.clients; c++)
		if (xk_holds(pool, c, slot))
			n += sysfs_emit_at(page, n, n ? " %u" : "%u", c);
	return n + sysfs_emit_at(page, n, "\n");
}
XK_NODE_ATTRIBUTE(slot, holders);

static ssize_t xk_slot_show_storage(struct xk_pool *pool, u32 slot, char *page)
{
	bool cuda = xm_load(&xm_slot_row(&pool->look, slot)->traits) & XMEM_TRAIT_CUDA;

	return sysfs_emit(page, "%s\n", cuda ? "cuda" : "cpu");
}
XK_NODE_ATTRIBUTE(slot, storage);

/* The directory below devices/; 0: the CPU. */
static ssize_t xk_slot_show_device(struct xk_pool *pool, u32 slot, char *page)
{
	u32 traits = xm_load(&xm_slot_row(&pool->look, slot)->traits);

	return sysfs_emit(page, "%u\n", xm_device(traits));
}
XK_NODE_ATTRIBUTE(slot, device);

static struct attribute *xk_slot_attrs[] = {
	&xk_slot_state.attr, &xk_slot_generation.attr, &xk_slot_size.attr,
	&xk_slot_owner.attr, &xk_slot_refs.attr, &xk_slot_holders.attr,
	&xk_slot_claims.attr, &xk_slot_storage.attr, &xk_slot_device.attr,
	NULL
};
ATTRIBUTE_GROUPS(xk_slot);

/* ---- clients/N ---- */

static ssize_t xk_client_show_pid(struct xk_pool *pool, u32 id, char *page)
{
	const struct xk_client *client;
	pid_t pid;

	spin_lock(&pool->pages_lock);
	client = pool->client[id];
	pid = client ? xk_pid_of_client(client) : 0;
	spin_unlock(&pool->pages_lock);
	return sysfs_emit(page, "%d\n", pid);
}
XK_NODE_ATTRIBUTE(client, pid);

static ssize_t xk_client_show_uid(struct xk_pool *pool, u32 id, char *page)
{
	const struct xk_client *client;
	kuid_t uid = INVALID_UID;

	spin_lock(&pool->pages_lock);
	client = pool->client[id];
	if (client)
		uid = client->uid;
	spin_unlock(&pool->pages_lock);
	if (!client)
		return -ENODEV;
	return sysfs_emit(page, "%u\n", from_kuid_munged(current_user_ns(), uid));
}
XK_NODE_ATTRIBUTE(client, uid);

static ssize_t xk_client_show_label(struct xk_pool *pool, u32 id, char *page)
{
	return sysfs_emit(page, "%.*s\n", XMEM_LABEL_BYTES,
			  xm_client_row(&pool->look, id)->label);
}
XK_NODE_ATTRIBUTE(client, label);

static ssize_t xk_client_show_role(struct xk_pool *pool, u32 id, char *page)
{
	u32 role = xm_load(&xm_client_row(&pool->look, id)->role);

	return sysfs_emit(page, "%s\n", role == XMEM_ROLE_WRITER ? "writer" : "reader");
}
XK_NODE_ATTRIBUTE(client, role);

static ssize_t xk_client_show_state(struct xk_pool *pool, u32 id, char *page)
{
	static const char *const names[] = { "none", "alive", "zombie" };

	u32 state = xm_load(&xm_client_row(&pool->look, id)->state);

	return sysfs_emit(page, "%s\n", names[min_t(u32, state, 2)]);
}
XK_NODE_ATTRIBUTE(client, state);

static ssize_t xk_client_show_holds(struct xk_pool *pool, u32 id, char *page)
{
	u64 holds = 0;
	u32 s;

	for (s = 0; s < pool->look.slots; s++)
		holds += xk_holds(pool, id, s);
	return sysfs_emit(page, "%llu\n", holds);
}
XK_NODE_ATTRIBUTE(client, holds);

static ssize_t xk_client_show_limbo_bytes(struct xk_pool *pool, u32 id, char *page)
{
	return sysfs_emit(page, "%llu\n", xm_limbo_of(&pool->look, id));
}
XK_NODE_ATTRIBUTE(client, limbo_bytes);

/* 1: the client has ended, and its process may still use GPUs. */
static ssize_t xk_client_show_quarantine(struct xk_pool *pool, u32 id, char *page)
{
	return sysfs_emit(page, "%u\n", xm_host_is_quarantined(&pool->host, id));
}
XK_NODE_ATTRIBUTE(client, quarantine);

static struct attribute *xk_client_attrs[] = {
	&xk_client_pid.attr, &xk_client_uid.attr, &xk_client_label.attr,
	&xk_client_role.attr, &xk_client_state.attr, &xk_client_holds.attr,
	&xk_client_limbo_bytes.attr, &xk_client_quarantine.attr,
	NULL
};
ATTRIBUTE_GROUPS(xk_client);

/* ---- devices/N ---- */

static const struct xmem_device_row *xk_gpu(const struct xk_pool *pool, u32 device)
{
	return xm_device_row(&pool->look, device);
}

static ssize_t xk_gpu_show_uuid(struct xk_pool *pool, u32 device, char *page)
{
	return sysfs_emit(page, "%pUb\n", xk_gpu(pool, device)->uuid);
}
XK_NODE_ATTRIBUTE(gpu, uuid);

static ssize_t xk_gpu_show_bytes(struct xk_pool *pool, u32 device, char *page)
{
	return sysfs_emit(page, "%llu\n", xm_load(&xk_gpu(pool, device)->bytes));
}
XK_NODE_ATTRIBUTE(gpu, bytes);

static ssize_t xk_gpu_show_closing_bytes(struct xk_pool *pool, u32 device, char *page)
{
	return sysfs_emit(page, "%llu\n", xm_load(&xk_gpu(pool, device)->closing_bytes));
}
XK_NODE_ATTRIBUTE(gpu, closing_bytes);

static struct attribute *xk_gpu_attrs[] = {
	&xk_gpu_uuid.attr, &xk_gpu_bytes.attr, &xk_gpu_closing_bytes.attr,
	NULL
};
ATTRIBUTE_GROUPS(xk_gpu);

/* ---- directories ---- */

static ssize_t xk_node_show(struct kobject *kobj, struct attribute *attr, char *page)
{
	struct xk_node *node = container_of(kobj, struct xk_node, kobj);
	struct xk_pool *pool = node->pool;
	const struct xk_node_attribute *shown = container_of(attr, struct xk_node_attribute, attr);
	int looker;
	ssize_t n;

	if (!xk_may_look(pool))
		return -EACCES;
	if (READ_ONCE(pool->dead))
		return -ENODEV;
	looker = xk_look_begin();
	n = shown->show(pool, node->index, page);
	xk_look_end(looker);
	return n;
}

static void xk_node_release(struct kobject *kobj)
{
	kfree(container_of(kobj, struct xk_node, kobj));
}

static const struct sysfs_ops xk_node_ops = { .show = xk_node_show };

static struct kobj_type xk_slot_type = {
	.release = xk_node_release,
	.sysfs_ops = &xk_node_ops,
	.default_groups = xk_slot_groups,
};

static struct kobj_type xk_client_type = {
	.release = xk_node_release,
	.sysfs_ops = &xk_node_ops,
	.default_groups = xk_client_groups,
};

static struct kobj_type xk_gpu_type = {
	.release = xk_node_release,
	.sysfs_ops = &xk_node_ops,
	.default_groups = xk_gpu_groups,
};

/* ---- who pays ---- */

/* A folder, and so many files in it. */
static u32 xk_node_entries(const struct kobj_type *type)
{
	if (type == &xk_slot_type)
		return ARRAY_SIZE(xk_slot_attrs);	/* its NULL stands for the folder */
	return type == &xk_client_type ? ARRAY_SIZE(xk_client_attrs) : ARRAY_SIZE(xk_gpu_attrs);
}

/* With the folders slots, clients and devices, and with the kernel's own uevent and subsystem. */
#define XK_POOL_ENTRIES	(ARRAY_SIZE(xk_pool_attrs) + 3 + 2)

/* The payer of who has the slot or the client, with a reference. The pool pays for its GPUs. */
static struct xk_payer *xk_node_payer(struct xk_pool *pool, const struct kobj_type *type,
				      u32 index)
{
	u32 owner = index;
	struct xk_payer *payer;

	mutex_lock(&pool->lock);
	if (type == &xk_slot_type)
		owner = xm_slot_row(&pool->host.map, index)->owner;
	payer = type != &xk_gpu_type && owner < XMEM_MAX_CLIENTS && pool->client[owner] ?
		pool->client[owner]->payer : pool->payer;
	xk_payer_get(payer);
	mutex_unlock(&pool->lock);
	return payer;
}

static void xk_node_free(struct xk_node *node, const struct kobj_type *type)
{
	struct xk_payer *payer = node->payer;

	kobject_put(&node->kobj);
	xk_uncharge(payer, XMEM_QUOTA_USER_ENTRIES, xk_node_entries(type));
	xk_payer_put(payer);
}

/* The kernel counts none of what it allocates for an entry but ours: hence the limit. */
static struct xk_node *xk_node_make(struct xk_pool *pool, struct kobject *parent,
				    struct kobj_type *type, u32 index, struct xk_payer *payer)
{
	struct xk_node *node = kzalloc(sizeof(*node), GFP_KERNEL_ACCOUNT);

	if (!node)
		return NULL;
	node->pool = pool;
	node->index = index;
	node->payer = payer;
	if (!kobject_init_and_add(&node->kobj, type, parent, "%u", index))
		return node;
	kobject_put(&node->kobj);
	return NULL;
}

static struct xk_node *xk_node_new(struct xk_pool *pool, struct kobject *parent,
				   struct kobj_type *type, u32 index)
{
	struct xk_payer *payer = xk_node_payer(pool, type, index);
	u32 entries = xk_node_entries(type);
	struct mem_cgroup *before;
	struct xk_node *node;

	/* Slots have the most entries by far. They leave half to pools and clients. */
	if (type == &xk_slot_type && xk_user_is_half_full(payer, XMEM_QUOTA_USER_ENTRIES))
		goto err_payer;
	if (xk_charge(payer, pool, XMEM_QUOTA_USER_ENTRIES, entries))
		goto err_payer;
	before = xk_payer_enter(payer);
	node = xk_node_make(pool, parent, type, index, payer);
	xk_payer_leave(before);
	if (node)
		return node;
	xk_uncharge(payer, XMEM_QUOTA_USER_ENTRIES, entries);
err_payer:
	xk_payer_put(payer);
	return NULL;
}

/* Makes or removes the node at @place. If making it fails, the next change tries again. */
static void xk_node_set(struct xk_pool *pool, struct xk_node **place, struct kobject *parent,
			struct kobj_type *type, u32 index, bool wanted)
{
	if (wanted == !!*place)
		return;
	if (wanted) {
		*place = xk_node_new(pool, parent, type, index);
	} else {
		kobject_del(&(*place)->kobj);	/* waits for readers */
		xk_node_free(*place, type);
		*place = NULL;
	}
}

static void xk_device_release(struct device *device)
{
	kfree(device);
}

/* ---- users ---- */

static ssize_t users_show(XK_CLASS_CONST struct class *class,
			  XK_CLASS_CONST struct class_attribute *attr, char *page)
{
	return xk_users_print(page);
}

static CLASS_ATTR_RO(users);

static struct attribute *xk_class_attrs[] = { &class_attr_users.attr, NULL };
ATTRIBUTE_GROUPS(xk_class);

static struct class xk_class = {
	.name = "xmem",
	.class_groups = xk_class_groups,
	.dev_groups = xk_pool_groups,
	.dev_release = xk_device_release,
};

static void xk_device_make(struct xk_pool *pool)
{
	struct device *device = kzalloc(sizeof(*device), GFP_KERNEL_ACCOUNT);

	if (!device)
		return;
	device_initialize(device);
	device->class = &xk_class;
	dev_set_drvdata(device, pool);
	dev_set_uevent_suppress(device, true);
	device_set_pm_not_required(device);
	if (dev_set_name(device, "pool%u", pool->number) || device_add(device))
		goto err_device;
	pool->slots_dir = kobject_create_and_add("slots", &device->kobj);
	pool->clients_dir = kobject_create_and_add("clients", &device->kobj);
	pool->devices_dir = kobject_create_and_add("devices", &device->kobj);
	if (!pool->slots_dir || !pool->clients_dir || !pool->devices_dir)
		goto err_dirs;
	pool->device = device;
	return;

err_dirs:
	kobject_put(pool->slots_dir);
	kobject_put(pool->clients_dir);
	kobject_put(pool->devices_dir);
	device_del(device);
err_device:
	put_device(device);
}

static void xk_device_add(struct xk_pool *pool)
{
	struct mem_cgroup *before;

	if (xk_charge(pool->payer, pool, XMEM_QUOTA_USER_ENTRIES, XK_POOL_ENTRIES))
		return;
	before = xk_payer_enter(pool->payer);
	xk_device_make(pool);
	xk_payer_leave(before);
	if (!pool->device)
		xk_uncharge(pool->payer, XMEM_QUOTA_USER_ENTRIES, XK_POOL_ENTRIES);
}

/* The nodes of its slots, clients and GPUs have been removed before. */
static void xk_device_remove(struct xk_pool *pool)
{
	kobject_put(pool->slots_dir);
	kobject_put(pool->clients_dir);
	kobject_put(pool->devices_dir);
	device_unregister(pool->device);
	pool->device = NULL;
	xk_uncharge(pool->payer, XMEM_QUOTA_USER_ENTRIES, XK_POOL_ENTRIES);
}

/* ---- the work ---- */

static u32 xk_shown_slots(const struct xk_pool *pool)
{
	return min(xk_max_sysfs_slots, pool->host.map.slots);
}

/* The first row without a UUID ends the table. */
static u32 xk_count_devices(const struct xm_map *map)
{
	u32 n = 0;

	while (n < XMEM_MAX_DEVICES &&
	       memchr_inv(xm_device_row(map, n + 1)->uuid, 0, XMEM_UUID_BYTES))
		n++;
	return n;
}

/* What should be shown now. false: nothing, because the pool has been emptied. */
static bool xk_sysfs_wanted(struct xk_pool *pool, unsigned long *slots, unsigned long *clients,
			    u32 *ret_devices)
{
	const struct xm_map *map = &pool->host.map;
	bool dead;
	u32 i;

	mutex_lock(&pool->lock);
	dead = pool->dead;
	for (i = 0; i < xk_shown_slots(pool) && !dead; i++)
		if (xm_slot_row(map, i)->owner != XMEM_OWNER_NONE)
			__set_bit(i, slots);
	for (i = 0; i < map->clients && !dead; i++)
		if (xm_client_row(map, i)->state != XMEM_CLIENT_NONE)
			__set_bit(i, clients);
	*ret_devices = dead ? 0 : xk_count_devices(map);
	mutex_unlock(&pool->lock);
	return !dead;
}

static void xk_sysfs_update(struct xk_pool *pool, unsigned long *slots)
{
	DECLARE_BITMAP(clients, XMEM_MAX_CLIENTS) = { 0 };
	u32 devices, i;
	bool wanted = xk_sysfs_wanted(pool, slots, clients, &devices);

	if (wanted && !pool->device)
		xk_device_add(pool);
	if (!pool->device)
		return;
	for (i = 0; i < xk_shown_slots(pool); i++)
		xk_node_set(pool, &pool->slot_node[i], pool->slots_dir, &xk_slot_type, i,
			    test_bit(i, slots));
	for (i = 0; i < pool->host.map.clients; i++)
		xk_node_set(pool, &pool->client_node[i], pool->clients_dir, &xk_client_type, i,
			    test_bit(i, clients));
	for (i = 0; i < XMEM_MAX_DEVICES; i++)
		xk_node_set(pool, &pool->device_node[i], pool->devices_dir, &xk_gpu_type,
			    i + 1, i < devices);
	if (!wanted)
		xk_device_remove(pool);
}

static void xk_sysfs_work(struct work_struct *work)
{
	struct xk_pool *pool = container_of(work, struct xk_pool, sysfs_work);

	bitmap_zero(pool->slots_shown, xk_shown_slots(pool));
	xk_sysfs_update(pool, pool->slots_shown);
	xk_pool_put(pool);
}

int xk_sysfs_prepare(struct xk_pool *pool)
{
	u32 count = max(xk_shown_slots(pool), 1U);

	INIT_WORK(&pool->sysfs_work, xk_sysfs_work);
	pool->slot_node = kvcalloc(count, sizeof(*pool->slot_node), GFP_KERNEL_ACCOUNT);
	pool->slots_shown = bitmap_zalloc(count, GFP_KERNEL_ACCOUNT);
	return pool->slot_node && pool->slots_shown ? 0 : -ENOMEM;
}

/* Asks for the work after a change of what is shown. Any lock may be held. */
void xk_sysfs_sync(struct xk_pool *pool)
{
	xk_pool_get(pool);
	if (!queue_work(xk_wq, &pool->sysfs_work))
		xk_pool_put(pool);
}

int __init xk_sysfs_init(void)
{
	return class_register(&xk_class);
}

void xk_sysfs_exit(void)
{
	class_unregister(&xk_class);
}
