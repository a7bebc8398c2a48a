// SPDX-License-Identifier: GPL-2.0-only
/*
 * The binary files of /sys/class/xmem/poolN: slots, clients and devices, with a record for each
 * that the pool has room for. uapi.h has the records.
 *
 * A tool may read them all the time, and be throttled while it does. So it takes none of the
 * pool's locks but pages_lock, for the moment in which it copies what a client's struct says, and
 * keeps pages from being freed for no longer than one look takes.
 */
#include <linux/cred.h>
#include <linux/device.h>
#include <linux/sysfs.h>

#include "compat.h"
#include "xk.h"

#define XK_RECORD_BYTES	128
#define XK_LOOKS	4	/* at one record, until two have found the same */
#define XK_HOLDS	1024	/* so many are counted in one go */

union xk_record {
	u32 flags;			/* all but the head begin with it */
	struct xmem_shown head;
	struct xmem_shown_slot slot;
	struct xmem_shown_client client;
	struct xmem_shown_device device;
	u8 bytes[XK_RECORD_BYTES];
};

struct xk_records {
	struct bin_attribute attr;
	u32 (*count)(const struct xk_pool *pool);
	/* One look at it; @record is all zero. */
	void (*look)(struct xk_pool *pool, u32 index, union xk_record *record);
	/* NULL: it has none. Adds them to what the look has found. */
	void (*count_holds)(struct xk_pool *pool, u32 index, union xk_record *record);
};

static u32 xk_holds(const struct xk_pool *pool, u32 client, u32 slot)
{
	return xm_load(xm_hold(&pool->look, client, slot)) & XM_HOLD_COUNT;
}

/* ---- slots ---- */

static u32 xk_slots(const struct xk_pool *pool)
{
	return pool->look.slots;
}

static void xk_look_at_slot(struct xk_pool *pool, u32 s, union xk_record *record)
{
	const struct xm_map *map = &pool->look;
	const struct xmem_slot_row *row = xm_slot_row(map, s);
	struct xmem_shown_slot *slot = &record->slot;
	u64 word;

	slot->owner = xm_load(&row->owner);
	if (slot->owner == XMEM_OWNER_NONE)
		return;
	word = xm_load(&xm_slot(map, s)->state);
	slot->state = xm_state(word);
	slot->generation = xm_generation(word);
	slot->traits = xm_load(&row->traits);
	slot->length = xm_load(&row->length);
	slot->payload = xm_load(&row->payload);
	slot->claims = xm_claims_of(map, s);
}

/* Only the areas of those whose holds count there are looked at. */
static void xk_count_holds_on_slot(struct xk_pool *pool, u32 s, union xk_record *record)
{
	struct xmem_shown_slot *slot = &record->slot;
	int looker = xk_look_begin();
	u32 c, holds;

	for (c = 0; c < pool->look.clients && slot->owner != XMEM_OWNER_NONE; c++) {
		holds = xm_holds_count(&pool->look, c, s) ? xk_holds(pool, c, s) : 0;
		slot->holds += holds;
		slot->holders[c / 64] |= (u64)!!holds << c % 64;
	}
	xk_look_end(looker);
}

/* ---- clients ---- */

static u32 xk_clients(const struct xk_pool *pool)
{
	return pool->look.clients;
}

/* Whose process it is. The id's next client may have it by now: then the second look differs. */
static void xk_look_at_process(struct xk_pool *pool, u32 id, struct xmem_shown_client *client)
{
	const struct xk_client *who;
	kuid_t uid = INVALID_UID;

	spin_lock(&pool->pages_lock);
	who = pool->client[id];
	if (who) {
		client->pid = xk_pid_of_client(who);
		uid = who->uid;
	}
	spin_unlock(&pool->pages_lock);
	client->uid = from_kuid_munged(current_user_ns(), uid);
}

static void xk_look_at_client(struct xk_pool *pool, u32 id, union xk_record *record)
{
	const struct xmem_client_row *row = xm_client_row(&pool->look, id);
	struct xmem_shown_client *client = &record->client;

	client->state = xm_load_acquire(&row->state);
	if (client->state == XMEM_CLIENT_NONE)
		return;
	client->incarnation = xm_load(&row->incarnation);
	client->role = xm_load(&row->role);
	memcpy(client->label, row->label, XMEM_LABEL_BYTES - 1);
	if (xm_host_is_quarantined(&pool->host, id))
		client->flags |= XMEM_SHOWN_QUARANTINE;
	xk_look_at_process(pool, id, client);
}

static void xk_count_holds_of_client(struct xk_pool *pool, u32 id, union xk_record *record)
{
	u32 s, slots = xk_slots(pool);
	int looker;

	if (record->client.state == XMEM_CLIENT_NONE)
		return;
	for (s = 0; s < slots;) {
		looker = xk_look_begin();
		do {
			if (xm_holds_count(&pool->look, id, s))
				record->client.holds += xk_holds(pool, id, s);
		} while (++s < slots && s % XK_HOLDS);
		xk_look_end(looker);
		cond_resched();
	}
	looker = xk_look_begin();
	record->client.limbo_bytes = xm_limbo_of(&pool->look, id);
	xk_look_end(looker);
}

/* ---- devices ---- */

static u32 xk_devices(const struct xk_pool *pool)
{
	return XMEM_MAX_DEVICES;
}

static void xk_look_at_device(struct xk_pool *pool, u32 index, union xk_record *record)
{
	const struct xmem_device_row *row = xm_device_row(&pool->look, index + 1);
	struct xmem_shown_device *device = &record->device;

	memcpy(device->uuid, row->uuid, XMEM_UUID_BYTES);
	device->bytes = xm_load(&row->bytes);
	device->closing_bytes = xm_load(&row->closing_bytes);
}

/* ---- records ---- */

static void xk_look_at(const struct xk_records *records, struct xk_pool *pool, u32 index,
		       union xk_record *record)
{
	int looker = xk_look_begin();

	memset(record, 0, sizeof(*record));
	records->look(pool, index, record);
	xk_look_end(looker);
}

/*
 * Two looks that find the same have between them a moment at which all of it was so: generations
 * and incarnations are never used again. The holds are counted there: each of them was one of
 * these contents, or of this client. SRCU orders the three.
 */
static void xk_record_fill(const struct xk_records *records, struct xk_pool *pool, u32 index,
			   union xk_record *record)
{
	union xk_record before, after;
	u32 looks = 0;
	bool same;

	do {
		xk_look_at(records, pool, index, record);
		before = *record;
		if (records->count_holds)
			records->count_holds(pool, index, record);
		xk_look_at(records, pool, index, &after);
		same = !memcmp(&before, &after, sizeof(before));
	} while (!same && ++looks < XK_LOOKS);
	if (!same)
		record->flags |= XMEM_SHOWN_CHANGING;
}

static void xk_head_fill(const struct xk_records *records, const struct xk_pool *pool,
			 union xk_record *record)
{
	memset(record, 0, sizeof(*record));
	record->head.header_bytes = XK_RECORD_BYTES;
	record->head.record_bytes = XK_RECORD_BYTES;
	record->head.records = records->count(pool);
	record->head.abi = XMEM_ABI;
}

/*
 * The kernel asks for at most a page at a time, and gives it to the reader only afterwards: so
 * whoever faults, or stops, between two pages keeps nothing.
 */
static ssize_t xk_records_read(struct file *file, struct kobject *kobj,
			       XK_BIN_CONST struct bin_attribute *attr, char *to, loff_t at,
			       size_t bytes)
{
	const struct xk_records *records = container_of(attr, struct xk_records, attr);
	struct xk_pool *pool = dev_get_drvdata(kobj_to_dev(kobj));
	u32 count = records->count(pool), number, skip, n;
	loff_t end = (count + 1) * XK_RECORD_BYTES;
	union xk_record record;
	size_t done;

	if (!xk_pool_is_shown(pool))
		return -EACCES;
	if (READ_ONCE(pool->dead))
		return -ENODEV;
	if (at < 0 || at >= end)
		return 0;
	bytes = min_t(u64, bytes, end - at);
	for (done = 0; done < bytes; done += n, at += n) {
		number = at / XK_RECORD_BYTES;
		skip = at % XK_RECORD_BYTES;
		n = min_t(size_t, XK_RECORD_BYTES - skip, bytes - done);
		if (number)
			xk_record_fill(records, pool, xm_index(number - 1, count), &record);
		else
			xk_head_fill(records, pool, &record);
		memcpy(to + done, record.bytes + skip, n);
		cond_resched();
	}
	return done;
}

#define XK_POOL_RECORDS(name_, count_, look_, holds_)						\
static struct xk_records xk_pool_##name_ = {							\
	.attr = { .attr = { .name = #name_, .mode = 0444 }, .read = xk_records_read },		\
	.count = count_, .look = look_, .count_holds = holds_,					\
}

XK_POOL_RECORDS(slots, xk_slots, xk_look_at_slot, xk_count_holds_on_slot);
XK_POOL_RECORDS(clients, xk_clients, xk_look_at_client, xk_count_holds_of_client);
XK_POOL_RECORDS(devices, xk_devices, xk_look_at_device, NULL);

static XK_BIN_CONST struct bin_attribute *XK_BIN_CONST xk_pool_bin_attrs[] = {
	&xk_pool_slots.attr, &xk_pool_clients.attr, &xk_pool_devices.attr,
	NULL
};

const struct attribute_group xk_records_group = { .bin_attrs = xk_pool_bin_attrs };
