/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Requests, as both hosts accept them: the length of each struct, the shortest struct of an older
 * caller, and the flags that the request knows. Pure. The hosts say what a request does (kmod/,
 * daemon/).
 */
#ifndef XM_REQUEST_H
#define XM_REQUEST_H

#include "protocol.h"

/* A host accepts no longer struct, however new its caller is. */
#define XM_REQUEST_BYTES	4096

union xm_request {
	struct {
		u32 size;
		u32 flags;
		u32 op;			/* of kinds with ops */
	};
	struct xmem_query_request query;
	struct xmem_pools_request pools;
	struct xmem_join_request join;
	struct xmem_pool_fd_request pool_fd;
	struct xmem_attach_request attach;
	struct xmem_payload_request payload;
	struct xmem_subscribe_request subscribe;
	struct xmem_unsubscribe_request unsubscribe;
	struct xmem_wait_request wait;
	struct xmem_slot_request slot;
	struct xmem_poll_fd_request poll_fd;
	struct xmem_claim_request claim;
	struct xmem_upgrade_request upgrade;
	struct xmem_access_request access;
	struct xmem_quota_request quota;
	struct xmem_client_request client;
	struct xmem_evict_request evict;
	struct xmem_grant_request grant;
};

/* One kind of request, as this version knows it. */
struct xm_request_kind {
	u32 request;		/* XMEM_IOC_* */
	u16 bytes;		/* length of its struct */
	u16 least;		/* the shortest struct of an older caller */
	u16 reserved;		/* offset of its reserved u32; 0: it has none */
	u8 ops;			/* its op is below this; 0: it has no op */
	u8 answers;		/* mask of ops for which the host writes an answer into the
				 * struct; without ops: 1 if it writes one */
	bool unjoined;		/* the caller need not have joined a pool */
	u32 flags;		/* flags that it knows */
};

/* NULL: there is no such request. */
const struct xm_request_kind *xm_request_find(u32 request);

/*
 * May a caller's struct have @size bytes? -EINVAL: it is too short; -E2BIG: it is longer than any
 * host accepts. If it is longer than kind->bytes, the rest must be zero.
 */
int xm_request_size(const struct xm_request_kind *kind, u32 size);

/*
 * Check op, flags and reserved field: -EINVAL if op or a flag is unknown, or the field is not 0.
 * @request is the whole struct; the caller has extended a shorter one with zeros.
 */
int xm_request_check(const struct xm_request_kind *kind, const union xm_request *request);

/* Does the host write something into this struct, which has been checked? */
static inline bool xm_request_answers(const struct xm_request_kind *kind,
				      const union xm_request *request)
{
	return kind->answers >> (kind->ops ? request->op : 0) & 1;
}

#endif
