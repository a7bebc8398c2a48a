// SPDX-License-Identifier: GPL-2.0-only
/*
 * /proc/PID/fdinfo/FD of the module's files, as docs/abi/fdinfo.txt describes it: the pool, the
 * client, its role, and its holds. It is for people and tools, for example a tool that looks for
 * the processes that keep memory.
 *
 * A tool may read the fdinfo of every file of the machine, many times a second. So nothing here
 * takes a lock of the pool but look_lock, for a look at a few slots, and pools_lock for a moment: a
 * reader delays neither requests nor faults, nor the end of a client.
 * The pages may change while they are read, so the numbers are approximate.
 */
#include <linux/sched.h>
#include <linux/seq_file.h>

#include "xk.h"

/* A look at the holds of this many slots is short (pages.c). */
#define XK_FDINFO_SLOTS	256

/* The number is that of /sys/class/xmem/poolN and of the tracepoints. */
void xk_fdinfo_pool(struct seq_file *m, u32 number)
{
	seq_printf(m, "xmem-pool:\t%u\n", number);
}

/* The roles that a descriptor of a pool grants. */
void xk_fdinfo_roles(struct seq_file *m, u32 roles)
{
	bool reader = roles & (1u << XMEM_ROLE_READER), writer = roles & (1u << XMEM_ROLE_WRITER);

	seq_printf(m, "xmem-roles:\t%s%s%s\n", reader ? "reader" : "",
		   reader && writer ? " " : "", writer ? "writer" : "");
}

/*
 * The client's holds of these slots. Another client may have the id by now: the row shows that
 * before another area is placed there. So the row is read after the holds.
 */
static u64 xk_holds_among(const struct xk_client *client, u32 first, u32 end)
{
	const struct xm_map *map = &client->pool->look;
	const struct xmem_client_row *row = xm_client_row(map, client->id);
	u64 holds = 0;
	u32 s;

	xk_look_begin(client->pool);
	for (s = first; s < end; s++)
		if (xm_holds_count(map, client->id, s))
			holds += xm_holds_of(map, client->id, s, xm_hold(map, client->id, s));
	xk_look_end(client->pool);
	smp_rmb();	/* pairs with xk_show_area: the row changes before it */
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

/* Holds of an ended client that stay until its process has exited still count. */
void xk_fdinfo_client(struct seq_file *m, const struct xk_client *client)
{
	xk_fdinfo_pool(m, client->pool->number);
	seq_printf(m, "xmem-client:\t%u\n", client->id);
	seq_printf(m, "xmem-incarnation:\t%llu\n", client->incarnation);
	seq_printf(m, "xmem-role:\t%s\n",
		   READ_ONCE(client->role) == XMEM_ROLE_WRITER ? "writer" : "reader");
	seq_printf(m, "xmem-state:\t%s\n", READ_ONCE(client->ended) ? "ended" : "alive");
	seq_printf(m, "xmem-holds:\t%llu\n", xk_count_holds(client));
}
