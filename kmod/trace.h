/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tracepoints, under events/xmem: a client joins, ends and is buried, and in between the
 * process of one that was in quarantine exits; slots are attached and reclaimed; memory of a
 * GPU is opened, and closed by all; waiters are woken. Messages are not traced: they do not
 * pass through the kernel.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM xmem

#if !defined(XK_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define XK_TRACE_H

#include <linux/tracepoint.h>

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
DEFINE_EVENT(xk_client, xmem_client_end,
	TP_PROTO(u32 pool, u32 client, u64 incarnation), TP_ARGS(pool, client, incarnation));
DEFINE_EVENT(xk_client, xmem_client_exited,
	TP_PROTO(u32 pool, u32 client, u64 incarnation), TP_ARGS(pool, client, incarnation));
DEFINE_EVENT(xk_client, xmem_client_bury,
	TP_PROTO(u32 pool, u32 client, u64 incarnation), TP_ARGS(pool, client, incarnation));

TRACE_EVENT(xmem_attach,
	TP_PROTO(u32 pool, u32 client, u32 payload, u32 count),
	TP_ARGS(pool, client, payload, count),
	TP_STRUCT__entry(
		__field(u32, pool)
		__field(u32, client)
		__field(u32, payload)
		__field(u32, count)
	),
	TP_fast_assign(
		__entry->pool = pool;
		__entry->client = client;
		__entry->payload = payload;
		__entry->count = count;
	),
	TP_printk("pool=%u client=%u payload=%u slots=%u", __entry->pool, __entry->client,
		  __entry->payload, __entry->count)
);

TRACE_EVENT(xmem_reclaim,
	TP_PROTO(u32 pool, u32 slot, u32 payload),
	TP_ARGS(pool, slot, payload),
	TP_STRUCT__entry(
		__field(u32, pool)
		__field(u32, slot)
		__field(u32, payload)
	),
	TP_fast_assign(
		__entry->pool = pool;
		__entry->slot = slot;
		__entry->payload = payload;
	),
	TP_printk("pool=%u slot=%u payload=%u", __entry->pool, __entry->slot, __entry->payload)
);

DECLARE_EVENT_CLASS(xk_payload,
	TP_PROTO(u32 pool, u32 client, u32 payload),
	TP_ARGS(pool, client, payload),
	TP_STRUCT__entry(
		__field(u32, pool)
		__field(u32, client)
		__field(u32, payload)
	),
	TP_fast_assign(
		__entry->pool = pool;
		__entry->client = client;
		__entry->payload = payload;
	),
	TP_printk("pool=%u client=%u payload=%u", __entry->pool, __entry->client,
		  __entry->payload)
);

/* client: who opens it. */
DEFINE_EVENT(xk_payload, xmem_payload_open,
	TP_PROTO(u32 pool, u32 client, u32 payload), TP_ARGS(pool, client, payload));
/* It has gone, and nobody has it open any more. client: who attached it, maybe long ago. */
DEFINE_EVENT(xk_payload, xmem_payload_close,
	TP_PROTO(u32 pool, u32 client, u32 payload), TP_ARGS(pool, client, payload));

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

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
