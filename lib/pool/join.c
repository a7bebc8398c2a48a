// SPDX-License-Identifier: MIT
/* Joins a pool, and says why that has failed. refused.c has the messages about access. */
#include <stdio.h>
#include <string.h>

#include "core/access.h"
#include "lib/host/reach.h"
#include "lib/pool/host_info.h"
#include "lib/pool/join.h"

static int too_small(const char *name, const struct xmem_join_request *request)
{
	struct xmem_pool_entry there;

	if (request->flags & XMEM_JOIN_FD || !xl_pool_find(request, &there))
		return xl_fail(ERANGE,
			       "open %s: it is smaller than requested: at least %u slots, %u "
			       "clients, %u ring entries",
			       name, request->slots, request->clients, request->ring_entries);
	return xl_fail(
		ERANGE,
		"open %s: it has %u slots, %u clients and %u ring entries, but at least %u, %u "
		"and %u were requested; the first client that opens a pool decides",
		name, there.slots, there.clients_max, there.ring_entries, request->slots,
		request->clients, request->ring_entries);
}

/*
 * The pool is too small. Or its owner has asked for a stricter mode than the pool has.
 */
static int does_not_fit(const char *name, const struct xmem_join_request *request)
{
	struct xmem_pool_entry there;

	if (!request->mode || !xl_pool_find(request, &there) ||
	    !xm_access_fits(there.mode, there.gid, request))
		return too_small(name, request);
	return xl_fail(ERANGE, "open %s: it exists, with mode 0%03o and group %u, which let in "
			       "more than the requested mode 0%03o: change it by "
			       "xmem_pool_set_mode, or open it with a mode of 0",
		       name, there.mode, there.gid, request->mode);
}

/*
 * The pool has as many clients as it can have. How many of them are alive? The others have ended,
 * but their publications are held or in flight. The host lists pools even for processes that have
 * not joined.
 */
static int full(const char *name, const struct xmem_link *link,
		const struct xmem_join_request *request)
{
	struct xmem_pool_entry there;
	char space[XL_LIMIT_BYTES];
	const char *limit;
	u32 dead;

	if (request->flags & XMEM_JOIN_FD || !xl_pool_find(request, &there)) {
		limit = xl_limit_refused(link, space);
		return xl_fail(EUSERS, "open %s: %s", name,
			       limit ? limit : "it has as many clients as it can have");
	}
	dead = there.clients < there.clients_max ? there.clients_max - there.clients : 0;
	return xl_fail(EUSERS, "open %s: it has as many clients as it can have, which is %u: %u "
		       "are alive, and %u have ended whose publications others hold or have yet to "
		       "receive", name, there.clients_max, there.clients, dead);
}

int xl_join_failed(int err, const struct xmem_link *link, const struct xmem_join_request *request)
{
	const char *host = link->backend->name, *hint = NULL;
	char space[XL_POOL_BYTES], reach[XL_HINT_BYTES], limit[XL_LIMIT_BYTES];
	const char *name = xl_join_names(request, space);

	switch (-err) {
	case EEXIST:
		return xl_fail(EEXIST, "there is a %s on the %s host already", name, host);
	case ERANGE:
		return does_not_fit(name, request);
	case EUSERS:
		return full(name, link, request);
	case EDQUOT:
		hint = xl_limit_refused(link, limit);
		break;
	case ESHUTDOWN:
		hint = "it is drained: no client can join it, and its name is free when its last "
		       "client has left";
		break;
	case EINVAL:
		if (xm_name_number(request->name))
			hint = "a number (@N) stands for an existing pool, which only a reader can "
			       "join by it";
		break;
	case EBADF:
		hint = "this is not a descriptor from xmem_pool_fd, or the pool has ended since";
		break;
	}
	if (!hint)
		hint = xl_reach_hint(err, link, reach);
	return xl_fail(-err, "open %s: %s", name, hint ? hint : strerror(-err));
}

int xl_join(struct xmem_link *link, struct xmem_join_request *request, u64 deadline_ns)
{
	struct xmem_join_request first = *request;
	int tries, err = -ENODEV;
	bool refused = false;

	for (tries = 0; tries < XL_MAX_TRIES; tries++) {
		*request = first;
		refused = false;
		err = xl_reach(link, deadline_ns == ~0ULL);
		if (err)
			break;
		err = link->backend->request_until(link, XMEM_IOC_JOIN, request, deadline_ns);
		refused = err == -ENOENT || err == -EACCES || err == -EPERM || err == -EOPNOTSUPP;
		if (!err) {
			link->join = *request;
			return 0;
		}
		link->stopped = err == -ETIMEDOUT;
		if (err == -EDQUOT || err == -EUSERS)
			xl_limit_save(link);
		link->backend->close(link);
		if (err != -ENOTCONN)
			break;
	}
	return refused ? xl_join_refused(err, link, &first) : xl_join_failed(err, link, &first);
}
