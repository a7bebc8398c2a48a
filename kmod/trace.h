/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tracepoints, under events/xmem, with which a buffer can be followed: a client joins, is evicted,
 * ends; slots are attached, and reclaimed after the end of their owner; a limit is reached.
 * Messages are not traced, because they do not pass through the kernel. examples/trace/ uses the
 * tracepoints.
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

TRACE_EVENT(xmem_client_join,
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
