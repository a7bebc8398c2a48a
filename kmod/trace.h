/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tracepoints, under events/xmem: a pool is made and ends; a client joins, is evicted, ends, is
 * buried, and the process of a quarantined client exits; slots are attached and reclaimed; memory
 * of a GPU is opened, and closed by all; waiters are woken; a limit is reached. Messages are not
 * traced, because they do not pass through the kernel. examples/trace/ uses the tracepoints.
 *
 * pool is the number in /sys/class/xmem/poolN. Strings are arrays of fixed length, because the
 * arguments of __assign_str differ between kernels.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM xmem

#if !defined(XK_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define XK_TRACE_H

#include <linux/string.h>
#include <linux/tracepoint.h>

#define XK_LIMIT_BYTES	24	/* of a limit's name, with its NUL */
#define XK_NO_POOL	(-1)	/* refused before the pool has a number */

TRACE_EVENT(xmem_pool_create,
	TP_PROTO(u32 pool, u32 owner, const u8 *name, u32 slots, u32 clients, u32 ring_entries),
	TP_ARGS(pool, owner, name, slots, clients, ring_entries),
	TP_STRUCT__entry(
		__field(u32, pool)
		__field(u32, owner)	/* uid in the initial user namespace */
		__array(char, name, XMEM_NAME_BYTES)
		__field(u32, slots)
		__field(u32, clients)
		__field(u32, ring_entries)
	),
	TP_fast_assign(
		__entry->pool = pool;
		__entry->owner = owner;
		memcpy(__entry->name, name, XMEM_NAME_BYTES);
		__entry->slots = slots;
		__entry->clients = clients;
		__entry->ring_entries = ring_entries;
	),
	TP_printk("pool=%u owner=%u name=%s slots=%u clients=%u ring_entries=%u", __entry->pool,
		  __entry->owner, __entry->name, __entry->slots, __entry->clients,
		  __entry->ring_entries)
);

DECLARE_EVENT_CLASS(xk_pool,
	TP_PROTO(u32 pool),
	TP_ARGS(pool),
	TP_STRUCT__entry(__field(u32, pool)),
	TP_fast_assign(__entry->pool = pool;),
	TP_printk("pool=%u", __entry->pool)
);

/* Nobody uses it any more, and it has been emptied. */
DEFINE_EVENT(xk_pool, xmem_pool_end, TP_PROTO(u32 pool), TP_ARGS(pool));

DECLARE_EVENT_CLASS(xk_client,
	TP_PROTO(u32 pool, u32 client, u64 incarnation),
	TP_ARGS(pool, client, incarnation),
	TP_STRUCT__entry(
		__field(u32, pool)
		__field(u32, client)
		__field(u64, incarnation)
	),
	TP_fast_assign(
		__entry->pool = pool;
		__entry->client = client;
		__entry->incarnation = incarnation;
	),
	TP_printk("pool=%u client=%u incarnation=%llu", __entry->pool, __entry->client,
		  __entry->incarnation)
);

DEFINE_EVENT(xk_client, xmem_client_join,
	TP_PROTO(u32 pool, u32 client, u64 incarnation), TP_ARGS(pool, client, incarnation));
DEFINE_EVENT(xk_client, xmem_client_exited,
	TP_PROTO(u32 pool, u32 client, u64 incarnation), TP_ARGS(pool, client, incarnation));
DEFINE_EVENT(xk_client, xmem_client_bury,
	TP_PROTO(u32 pool, u32 client, u64 incarnation), TP_ARGS(pool, client, incarnation));

/*
 * Another client or the module ends it; reason: XMEM_REASON_* of uapi.h. xmem_client_end follows.
 */
TRACE_EVENT(xmem_client_evict,
	TP_PROTO(u32 pool, u32 client, u64 incarnation, u32 reason),
	TP_ARGS(pool, client, incarnation, reason),
	TP_STRUCT__entry(
		__field(u32, pool)
		__field(u32, client)
		__field(u64, incarnation)
		__field(u32, reason)
	),
	TP_fast_assign(
		__entry->pool = pool;
		__entry->client = client;
		__entry->incarnation = incarnation;
		__entry->reason = reason;
	),
	TP_printk("pool=%u client=%u incarnation=%llu reason=%u", __entry->pool, __entry->client,
		  __entry->incarnation, __entry->reason)
);

/*
 * holds, slots: what the client had. duration_ns: from the moment at which its requests began to
 * fail until its holds no longer count and its slots belong to the host.
 */
TRACE_EVENT(xmem_client_end,
	TP_PROTO(u32 pool, u32 client, u64 incarnation, u64 holds, u32 slots, u64 duration_ns),
	TP_ARGS(pool, client, incarnation, holds, slots, duration_ns),
	TP_STRUCT__entry(
		__field(u32, pool)
		__field(u32, client)
		__field(u64, incarnation)
		__field(u64, holds)
		__field(u64, duration_ns)
		__field(u32, slots)
	),
	TP_fast_assign(
		__entry->pool = pool;
		__entry->client = client;
		__entry->incarnation = incarnation;
		__entry->holds = holds;
		__entry->duration_ns = duration_ns;
		__entry->slots = slots;
	),
	TP_printk("pool=%u client=%u incarnation=%llu holds=%llu slots=%u duration_ns=%llu",
		  __entry->pool, __entry->client, __entry->incarnation, __entry->holds,
		  __entry->slots, __entry->duration_ns)
);

TRACE_EVENT(xmem_attach,
	TP_PROTO(u32 pool, u32 client, u64 payload, u32 count),
	TP_ARGS(pool, client, payload, count),
	TP_STRUCT__entry(
		__field(u32, pool)
		__field(u32, client)
		__field(u64, payload)
		__field(u32, count)
	),
	TP_fast_assign(
		__entry->pool = pool;
		__entry->client = client;
		__entry->payload = payload;
		__entry->count = count;
	),
	TP_printk("pool=%u client=%u payload=%llu slots=%u", __entry->pool, __entry->client,
		  __entry->payload, __entry->count)
);

TRACE_EVENT(xmem_reclaim,
	TP_PROTO(u32 pool, u32 slot, u64 payload),
	TP_ARGS(pool, slot, payload),
	TP_STRUCT__entry(
		__field(u32, pool)
		__field(u32, slot)
		__field(u64, payload)
	),
	TP_fast_assign(
		__entry->pool = pool;
		__entry->slot = slot;
		__entry->payload = payload;
	),
	TP_printk("pool=%u slot=%u payload=%llu", __entry->pool, __entry->slot, __entry->payload)
);

DECLARE_EVENT_CLASS(xk_payload,
	TP_PROTO(u32 pool, u32 client, u64 payload),
	TP_ARGS(pool, client, payload),
	TP_STRUCT__entry(
		__field(u32, pool)
		__field(u32, client)
		__field(u64, payload)
	),
	TP_fast_assign(
		__entry->pool = pool;
		__entry->client = client;
		__entry->payload = payload;
	),
	TP_printk("pool=%u client=%u payload=%llu", __entry->pool, __entry->client,
		  __entry->payload)
);

/* client: the one that opens it. */
DEFINE_EVENT(xk_payload, xmem_payload_open,
	TP_PROTO(u32 pool, u32 client, u64 payload), TP_ARGS(pool, client, payload));
/*
 * It has no slots, and no client has it open any more. client: the one that attached it, which may
 * have ended long ago.
 */
DEFINE_EVENT(xk_payload, xmem_payload_close,
	TP_PROTO(u32 pool, u32 client, u64 payload), TP_ARGS(pool, client, payload));

TRACE_EVENT(xmem_wake,
	TP_PROTO(u32 pool, u32 kind, u32 client),
	TP_ARGS(pool, kind, client),
	TP_STRUCT__entry(
		__field(u32, pool)
		__field(u32, kind)
		__field(u32, client)
	),
	TP_fast_assign(
		__entry->pool = pool;
		__entry->kind = kind;
		__entry->client = client;
	),
	TP_printk("pool=%u kind=%u client=%u", __entry->pool, __entry->kind, __entry->client)
);

/*
 * A request is refused because of a limit: a parameter of the module, or a capacity of the pool.
 * wanted: how many, or how many bytes, there would have been; for slots, how many more; most: how
 * many there may be.
 */
TRACE_EVENT(xmem_limit,
	TP_PROTO(s32 pool, const char *limit, u64 wanted, u64 most),
	TP_ARGS(pool, limit, wanted, most),
	TP_STRUCT__entry(
		__field(s32, pool)	/* or XK_NO_POOL */
		__array(char, limit, XK_LIMIT_BYTES)
		__field(u64, wanted)
		__field(u64, most)
	),
	TP_fast_assign(
		__entry->pool = pool;
		strscpy_pad(__entry->limit, limit, XK_LIMIT_BYTES);
		__entry->wanted = wanted;
		__entry->most = most;
	),
	TP_printk("pool=%d limit=%s wanted=%llu most=%llu", __entry->pool, __entry->limit,
		  __entry->wanted, __entry->most)
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
