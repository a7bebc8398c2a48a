/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Requests as both hosts take them: how long the struct of each is, how short an
 * older caller's may be, which flags it knows. Pure. What a request does is the
 * hosts' business (kmod/, daemon/).
 */
#ifndef XM_REQUEST_H
#define XM_REQUEST_H

#include "protocol.h"

#define XM_REQUEST_BYTES	4096	/* the longest struct of a newer caller that is looked at */

union xm_request {
	struct {
		u32 size;
		u32 flags;
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
};

/* One kind of request, as this version knows it. */
struct xm_request_kind {
	u32 request;		/* XMEM_IOC_* */
	u16 bytes;		/* of its struct */
	u16 least;		/* of an older caller's */
	u16 reserved;		/* where its reserved u32 is; 0: there is none */
	bool answers;		/* something in the struct goes back to the caller */
	u32 flags;		/* that it knows */
};

/* NULL: there is no such request. */
const struct xm_request_kind *xm_request_find(u32 request);

/*
 * Is @size one that a caller may say? -EINVAL: too short; -E2BIG: longer than
 * anybody looks at. What a longer one has behind kind->bytes must be zero.
 */
int xm_request_size(const struct xm_request_kind *kind, u32 size);

/* Unknown flags, or a reserved field that is not 0: -EINVAL. @request is whole, zeros added. */
int xm_request_check(const struct xm_request_kind *kind, const union xm_request *request);

#endif
