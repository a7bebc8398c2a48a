// SPDX-License-Identifier: GPL-2.0-only
/*
 * The binary files of /sys/class/xmem/poolN: slots, clients and devices, with a record for each
 * that the pool has room for. uapi.h defines the records.
 *
 * A tool may read them all the time, and be throttled while it does. So a read takes none of the
 * pool's locks but look_lock, for one look, and pages_lock, for the moment in which it copies
 * fields of a client's struct.
 */
#include <linux/cred.h>
#include <linux/device.h>
#include <linux/slab.h>
#include <linux/sysfs.h>

#include "compat.h"
#include "xk.h"

#define XK_RECORD_BYTES	128
#define XK_TOGETHER	16	/* records: the holds of this many slots share a cache line */
#define XK_LOOKS	4	/* at one record, until two in a row are equal */
#define XK_HOLDS	1024	/* holds that are counted in one look */

union xk_record {
	u32 flags;			/* in all records but the head */
	struct xmem_shown head;
	struct xmem_shown_slot slot;
	struct xmem_shown_client client;
	struct xmem_shown_device device;
	u8 bytes[XK_RECORD_BYTES];
};

struct xk_records {
	struct bin_attribute attr;
	u32 (*count)(const struct xk_pool *pool);
	/* Take one look; @record is zeroed. */
	void (*look)(struct xk_pool *pool, u32 index, union xk_record *record);
	/*
	 * Add the holds to the result of the look, for the records of a batch in the bitmap @which;
	 * record[0] is that of @first. NULL: the records have no holds.
	 */
	void (*count_holds)(struct xk_pool *pool, u32 first, unsigned long which,
			    union xk_record *record);
};

/* Records that are read together. The number of the first is a multiple of XK_TOGETHER. */
struct xk_batch {
	union xk_record record[XK_TOGETHER];
	union xk_record before[XK_TOGETHER];	/* result of the first of two looks */
};

static u32 xk_holds(const struct xk_pool *pool, u32 client, u32 slot)
{
	return xm_holds_of(&pool->look, client, slot, xm_hold(&pool->look, client, slot));
}

/* ---- slots ---- */

static u32 xk_slots(const struct xk_pool *pool)
{
	return pool->look.slots;
}

static void xk_read_slot(struct xk_pool *pool, u32 s, union xk_record *record)
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

/*
 * Clients that exchange buffers write their holds all the time, and each read of a hold takes the
 * cache line from them. So the holds of all slots of a batch, which are in one group, are read
 * together, client by client, and only those of clients whose holds count in that group.
 */
static void xk_count_holds_on_slots(struct xk_pool *pool, u32 first, unsigned long which,
				    union xk_record *record)
{
	u32 c, i, holds;

	BUILD_BUG_ON(XMEM_GROUP_SLOTS % XK_TOGETHER);
	xk_look_begin(pool);
	for (c = 0; c < pool->look.clients; c++) {
		if (!xm_holds_count(&pool->look, c, first))
			continue;
		for_each_set_bit(i, &which, XK_TOGETHER) {
			if (record[i].slot.owner == XMEM_OWNER_NONE)
				continue;
			holds = xk_holds(pool, c, first + i);
			record[i].slot.holds += holds;
			record[i].slot.holders[c / 64] |= (u64)!!holds << c % 64;
		}
	}
	xk_look_end(pool);
}

/* ---- clients ---- */

static u32 xk_clients(const struct xk_pool *pool)
{
	return pool->look.clients;
}

/*
 * The process of a client. The next client of the id may have it by now: then the second look
 * differs.
 */
static void xk_read_process(struct xk_pool *pool, u32 id, struct xmem_shown_client *client)
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

static void xk_read_client(struct xk_pool *pool, u32 id, union xk_record *record)
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
	xk_read_process(pool, id, client);
}

static void xk_count_holds_of_client(struct xk_pool *pool, u32 id, union xk_record *record)
{
	u32 s, slots = xk_slots(pool);

	for (s = 0; s < slots;) {
		xk_look_begin(pool);
		do {
			if (xm_holds_count(&pool->look, id, s))
				record->client.holds += xk_holds(pool, id, s);
		} while (++s < slots && s % XK_HOLDS);
		xk_look_end(pool);
		cond_resched();
	}
	record->client.limbo_bytes = xk_limbo_of(pool, id);
}

static void xk_count_holds_of_clients(struct xk_pool *pool, u32 first, unsigned long which,
				      union xk_record *record)
{
	u32 i;

	for_each_set_bit(i, &which, XK_TOGETHER)
		if (record[i].client.state != XMEM_CLIENT_NONE)
			xk_count_holds_of_client(pool, first + i, &record[i]);
}

/* ---- devices ---- */

static u32 xk_devices(const struct xk_pool *pool)
{
	return XMEM_MAX_DEVICES;
}

static void xk_read_device(struct xk_pool *pool, u32 index, union xk_record *record)
{
	const struct xmem_device_row *row = xm_device_row(&pool->look, index + 1);
	struct xmem_shown_device *device = &record->device;

	memcpy(device->uuid, row->uuid, XMEM_UUID_BYTES);
	device->bytes = xm_load(&row->bytes);
	device->closing_bytes = xm_load(&row->closing_bytes);
}

/* ---- records ---- */

static void xk_read_at(const struct xk_records *records, struct xk_pool *pool, u32 index,
		       union xk_record *record)
{
	memset(record, 0, sizeof(*record));
	xk_look_begin(pool);
	records->look(pool, index, record);
	xk_look_end(pool);
}

/*
 * If two looks are equal, everything in them was true at one time between them, because generations
 * and incarnations are never used again. The holds are counted between the two looks, so each of
 * them belongs to these contents, or to this client. The lock orders the three steps. The time
 * between the looks does not matter, nor what else is read meanwhile; so the records of a batch
 * share it. Returns a bitmap of the records that have changed.
 */
static unsigned long xk_read_twice(const struct xk_records *records, struct xk_pool *pool,
				   u32 first, unsigned long which, struct xk_batch *batch)
{
	unsigned long changed = 0;
	union xk_record after;
	u32 i;

	for_each_set_bit(i, &which, XK_TOGETHER) {
		xk_read_at(records, pool, first + i, &batch->before[i]);
		batch->record[i] = batch->before[i];
	}
	if (records->count_holds)
		records->count_holds(pool, first, which, batch->record);
	for_each_set_bit(i, &which, XK_TOGETHER) {
		xk_read_at(records, pool, first + i, &after);
		if (memcmp(&batch->before[i], &after, sizeof(after)))
			changed |= BIT(i);
	}
	return changed;
}

/* Read all records together, and then each that has changed alone, which takes less time. */
static void xk_batch_fill(const struct xk_records *records, struct xk_pool *pool, u32 first,
			  unsigned long which, struct xk_batch *batch)
{
	unsigned long changed = xk_read_twice(records, pool, first, which, batch), still;
	u32 i, looks;

	for_each_set_bit(i, &changed, XK_TOGETHER) {
		still = BIT(i);
		for (looks = 1; still && looks < XK_LOOKS; looks++)
			still = xk_read_twice(records, pool, first, still, batch);
		if (still)
			batch->record[i].flags |= XMEM_SHOWN_CHANGING;
	}
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

/* Copy the next bytes of the file, from @at and at most up to @end. Returns how many. */
static size_t xk_batch_read(const struct xk_records *records, struct xk_pool *pool,
			    struct xk_batch *batch, char *to, loff_t at, loff_t end)
{
	u32 count = records->count(pool), number, last, first;
	const u8 *from = batch->record[0].bytes;
	loff_t begin = 0;

	if (at < XK_RECORD_BYTES) {
		xk_head_fill(records, pool, &batch->record[0]);
		end = min_t(loff_t, end, XK_RECORD_BYTES);
	} else {
		number = xm_index(at / XK_RECORD_BYTES - 1, count);
		first = round_down(number, XK_TOGETHER);
		begin = (first + 1ULL) * XK_RECORD_BYTES;
		end = min_t(loff_t, end, begin + sizeof(batch->record));
		last = (end - 1 - begin) / XK_RECORD_BYTES;
		xk_batch_fill(records, pool, first, GENMASK(last, number - first), batch);
	}
	memcpy(to, from + (at - begin), end - at);
	return end - at;
}

/*
 * The kernel asks for at most a page at a time, and gives it to the reader only afterwards: so a
 * reader that faults or stops between two pages keeps nothing.
 */
static ssize_t xk_records_read(struct file *file, struct kobject *kobj,
			       XK_BIN_CONST struct bin_attribute *attr, char *to, loff_t at,
			       size_t bytes)
{
	const struct xk_records *records = container_of(attr, struct xk_records, attr);
	struct xk_pool *pool = dev_get_drvdata(kobj_to_dev(kobj));
	loff_t end = (records->count(pool) + 1ULL) * XK_RECORD_BYTES;
	struct xk_batch *batch;
	size_t done = 0;

	if (!xk_pool_is_shown(pool))
		return -EACCES;
	if (READ_ONCE(pool->dead))
		return -ENODEV;
	if (at < 0 || at >= end)
		return 0;
	bytes = min_t(u64, bytes, end - at);
	batch = kmalloc(sizeof(*batch), GFP_KERNEL);
	if (!batch)
		return -ENOMEM;
	while (done < bytes) {
		done += xk_batch_read(records, pool, batch, to + done, at + done, at + bytes);
		cond_resched();
	}
	kfree(batch);
	return done;
}

#define XK_POOL_RECORDS(name_, count_, look_, holds_)						\
static struct xk_records xk_pool_##name_ = {							\
	.attr = { .attr = { .name = #name_, .mode = 0444 }, .read = xk_records_read },		\
	.count = count_, .look = look_, .count_holds = holds_,					\
}

XK_POOL_RECORDS(slots, xk_slots, xk_read_slot, xk_count_holds_on_slots);
XK_POOL_RECORDS(clients, xk_clients, xk_read_client, xk_count_holds_of_clients);
XK_POOL_RECORDS(devices, xk_devices, xk_read_device, NULL);

static XK_BIN_CONST struct bin_attribute *XK_BIN_CONST xk_pool_bin_attrs[] = {
	&xk_pool_slots.attr, &xk_pool_clients.attr, &xk_pool_devices.attr,
	NULL
};

const struct attribute_group xk_records_group = { .bin_attrs = xk_pool_bin_attrs };
