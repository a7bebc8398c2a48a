/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The host's bookkeeping: what the kernel module and the daemon do in the pages
 * when a client joins, attaches, subscribes and ends. Pure like protocol.h.
 *
 * The caller (kmod/pool.c, daemon) brings pages, files, a lock, sleep, and
 * the knowledge that a client has ended; it calls all of this under one lock
 * per pool, except xm_host_waiters, xm_arm and xm_disarm, and in the daemon's
 * clients xm_host_resolve, which only look and compare-and-swap.
 */
#ifndef XM_HOST_H
#define XM_HOST_H

#include "protocol.h"

#define XM_MAX_ZOMBIES	8	/* rings of dead publishers that one subscriber may keep */

/*
 * generation_first of a slot without a tenant: no token is in its range, whatever
 * the state word in its owner's page says (P5).
 */
#define XM_NO_GENERATIONS	(~0ULL)

struct xm_host {
	struct xm_map map;
	u64 incarnations;			/* last one given */
	u32 group_owner[XMEM_MAX_GROUPS];	/* client id, XMEM_OWNER_NONE or XMEM_OWNER_HOST */
};

/*
 * The layout of a pool as @join asks for it, into *header (all but owner_uid).
 * -EINVAL: a number out of its range, a name with a strange character.
 */
int xm_host_layout(const struct xmem_join_request *join, u64 page_bytes, struct xmem_pool_header *header);

/*
 * Where every part begins, by the capacities and strides that are in *header. A
 * part of xm_host_layout; tests make rows, cursors, entries and metadata longer.
 */
void xm_layout_place(struct xmem_pool_header *header, u64 page_bytes);

/*
 * Is this the header of a pool of @bytes that this version can use? For a client,
 * which knows only that a host has made it. -EPROTONOSUPPORT.
 */
int xm_layout_check(const struct xmem_pool_header *pool, u64 bytes);

/* Does a pool that is there have what @join asks for? -ERANGE: a capacity is smaller. */
int xm_host_fits(const struct xm_map *map, const struct xmem_join_request *join);

/* What every host says to a query; it adds its own limits. */
void xm_host_query(struct xmem_query_request *request);

/* A pool as `pools` shows it: all but number and owner_uid. Reads host words alone. */
void xm_host_describe(const struct xm_host *host, struct xmem_pools_request *request);

/* Take up a header whose table is zeroed and at least groups_offset bytes long. */
void xm_host_init(struct xm_host *host, struct xmem_pool_header *pool);

/* A mapping's view of a layout: @base is where offset 0 is, all parts follow. */
void xm_map_init(struct xm_map *map, void *base);

/* ---- clients ---- */

/* An id for a new client, or -EUSERS. The caller gives it a zeroed area, then joins it. */
int xm_host_free_client(const struct xm_host *host);

/* @join is checked here: role, label, wait_bound_ns. -EINVAL. Fills join's outputs. */
int xm_host_join(struct xm_host *host, u32 client, struct xmem_join_request *join, u32 pid, u32 uid);

/*
 * Errors as uapi.h says for the request. After either the caller wakes the
 * publisher's slots_waiters: a cursor moved, and its owner may have gone to
 * sleep for that (I5). After unsubscribe it reaps too, if that is a zombie.
 */
int xm_host_subscribe(struct xm_host *host, u32 me, struct xmem_subscribe_request *request);
int xm_host_unsubscribe(struct xm_host *host, u32 me, const struct xmem_unsubscribe_request *request);

/*
 * A client has ended and can store no more (its pages are the host's own by
 * now). Its slots become the host's, its cursors and holds go, its ring is
 * repaired; it stays a zombie while that is in flight. The caller then makes
 * other mappings see these pages, calls xm_host_reap and wakes everybody.
 */
void xm_host_end(struct xm_host *host, u32 client);

/* A zombie that nobody follows any more is forgotten: true, and its area may go. */
bool xm_host_bury(struct xm_host *host, u32 client);

/* ---- slots ---- */

/* How many slots can @me attach without a further group? */
u32 xm_host_spare_slots(const struct xm_host *host, u32 me);

/* A group that nobody has, or -ENOSPC. The caller gives it zeroed pages, then to @me. */
int xm_host_free_group(const struct xm_host *host);
void xm_host_give_group(struct xm_host *host, u32 group, u32 me);

/*
 * Give request->count spare slots to @me. @bytes: length of the payload file;
 * @random: from the caller's generator. -EINVAL, -ERANGE; -ENOSPC: too few spare.
 */
int xm_host_attach(struct xm_host *host, u32 me, u32 payload, u64 bytes, u64 random, struct xmem_attach_request *request);

/* The fields that xm_host_attach would refuse, before any file is looked at. */
int xm_host_attach_check(const struct xmem_attach_request *request);

/* A FREE slot of @me goes back: its payload's id in *ret_payload. -EINVAL, -EPERM, -EBUSY. */
int xm_host_detach(struct xm_host *host, u32 me, const struct xmem_slot_request *request, u32 *ret_payload);

/* If @slot is the host's and nobody has it any more, free it: its payload's id, else 0. */
u32 xm_host_reclaim(struct xm_host *host, u32 slot);

/* A group of an ended client without slots goes back: true, and its pages may go. */
bool xm_host_idle_group(struct xm_host *host, u32 group);

/*
 * Resolve for a holder: @word is what the state word was a while (1 ms) ago.
 * -EPERM: @me holds nothing there; -EAGAIN: it moved by itself; 0: LIVE.
 */
int xm_host_resolve(const struct xm_host *host, u32 me, u32 slot, u64 word);

/* The next tenancy's generations for a WRITING or FREE slot of @me. */
int xm_host_renew(struct xm_host *host, u32 me, u64 random, struct xmem_slot_request *request);

/* The waiters word of a request, or NULL and *err. @arm: it is for arming. */
u32 *xm_host_waiters(const struct xm_host *host, u32 me, const struct xmem_wait_request *request, bool arm, int *err);

/* ---- debugging ---- */

/* The invariants of the host's own words. NULL, or what is wrong. Slow; under the lock. */
const char *xm_host_is_valid(const struct xm_host *host);

#endif
