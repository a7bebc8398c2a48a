// SPDX-License-Identifier: GPL-2.0-only
/*
 * What /proc/PID/fdinfo/FD says of the module's files, in the words of docs/abi/fdinfo.txt: the
 * pool, the client, its role, and what it holds. It is for people and tools, such as one that
 * looks for whoever keeps memory.
 *
 * A tool may read the fdinfo of every file of the machine, many times a second. So nothing here
 * takes a lock of the pool: who reads delays neither requests nor faults, nor the end of a client.
 * What is read meanwhile changes, so the numbers are those of about now.
 */
#include <linux/cred.h>
#include <linux/sched.h>
#include <linux/seq_file.h>

#include "xk.h"

/* Who waits for pages of ended clients waits for one look at so many slots, and not for all. */
#define XK_FDINFO_SLOTS	256

/* The pool's number is that of /sys/class/xmem/poolN, and of the tracepoints. */
void xk_fdinfo_pool(struct seq_file *m, const struct xk_pool *pool)
{
	seq_printf(m, "xmem-pool:\t%u\n", pool->number);
	seq_printf(m, "xmem-name:\t%.*s\n", XMEM_NAME_BYTES, xk_header(pool)->name);
	seq_printf(m, "xmem-owner-uid:\t%u\n",
		   from_kuid_munged(seq_user_ns(m), pool->owner));
}

/* In which roles a descriptor of a pool lets in. */
void xk_fdinfo_roles(struct seq_file *m, u32 roles)
{
	bool reader = roles & (1u << XMEM_ROLE_READER), writer = roles & (1u << XMEM_ROLE_WRITER);

	seq_printf(m, "xmem-roles:\t%s%s%s\n", reader ? "reader" : "",
		   reader && writer ? " " : "", writer ? "writer" : "");
}

/*
 * The client's holds of these slots. An id that has been buried may be another client's by now: its
 * row says so, at the latest before another area is placed there. So the row is looked at behind
 * the holds.
 */
static u64 xk_holds_among(const struct xk_client *client, u32 first, u32 end)
{
	const struct xm_map *map = &client->pool->look;
	const struct xmem_client_row *row = xm_client_row(map, client->id);
	int looker = xk_look_begin();
	u64 holds = 0;
	u32 s;

	for (s = first; s < end; s++)
		if (xm_holds_count(map, client->id, s))
			holds += xm_holds_of(map, client->id, s, xm_hold(map, client->id, s));
	xk_look_end(looker);
	smp_rmb();	/* pairs with xk_show_area, before which a row says who has gone */
	if (xm_load_acquire(&row->state) == XMEM_CLIENT_NONE ||
	    xm_load(&row->incarnation) != client->incarnation)
		return 0;
	return holds;
}

static u64 xk_count_holds(const struct xk_client *client)
{
	u32 slots = client->pool->look.slots, s;
	u64 holds = 0;

	for (s = 0; s < slots; s += XK_FDINFO_SLOTS) {
		holds += xk_holds_among(client, s, min(s + XK_FDINFO_SLOTS, slots));
		cond_resched();
	}
	return holds;
}

/* How many slots are its own. Rows are in the table, which stays as long as the pool's struct. */
static u32 xk_count_owned(const struct xk_client *client)
{
	const struct xm_map *map = &client->pool->host.map;
	u32 s, owned = 0;

	for (s = 0; s < map->slots; s++) {
		owned += xm_load(&xm_slot_row(map, s)->owner) == client->id;
		if (s % XK_FDINFO_SLOTS == 0)
			cond_resched();
	}
	return owned;
}

/* An ended client owns nothing; what it holds until its process has exited still counts. */
void xk_fdinfo_client(struct seq_file *m, const struct xk_client *client)
{
	bool ended = READ_ONCE(client->ended);

	xk_fdinfo_pool(m, client->pool);
	seq_printf(m, "xmem-client:\t%u\n", client->id);
	seq_printf(m, "xmem-incarnation:\t%llu\n", client->incarnation);
	seq_printf(m, "xmem-role:\t%s\n",
		   READ_ONCE(client->role) == XMEM_ROLE_WRITER ? "writer" : "reader");
	seq_printf(m, "xmem-state:\t%s\n", ended ? "ended" : "alive");
	seq_printf(m, "xmem-slots:\t%u\n", ended ? 0 : xk_count_owned(client));
	seq_printf(m, "xmem-holds:\t%llu\n", xk_count_holds(client));
	seq_printf(m, "xmem-mappings:\t%u\n", READ_ONCE(client->maps));
}
