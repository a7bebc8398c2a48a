// SPDX-License-Identifier: MIT
/*
 * Requests, with the errnos that uapi.h names for them. Arm, wait and resolve are not here: the
 * library does them in the pages (lib/host/daemon.c), and the daemon refuses them. The library also
 * wakes clients itself, and tells the daemon only for the descriptors that are polled.
 */
#include <fcntl.h>
#include <linux/ioctl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "core/access.h"
#include "core/limbo.h"
#include "daemon.h"

static u64 random_word(void)
{
	u64 word = 0;

	while (getrandom(&word, sizeof(word), 0) != sizeof(word))
		;
	return word;
}

/* ---- query, pools ---- */

static int serve_query(struct xd_call *call)
{
	struct xmem_query_request *request = &call->request.query;

	xm_host_query(request);
	request->max_payloads = XD_MAX_PAYLOADS;
	request->max_pools = call->daemon->limits.pools;
	request->pools = xd_pools_count(call->daemon);
	memset(request->version, 0, sizeof(request->version));
	snprintf((char *)request->version, sizeof(request->version), "%s", XMEM_VERSION);
	return 0;
}

static int serve_pools(struct xd_call *call)
{
	struct xmem_pools_request *request = &call->request.pools;
	const struct xd_pool *pool = xd_pool_after(call->daemon, request->number, true);

	if (!pool)
		return -ENOENT;
	request->number = pool->number;
	request->owner_uid = geteuid();
	request->gid = getegid();
	request->mode = pool->mode;
	request->roles = xd_access_roles(pool);
	xm_host_describe(&pool->host, request);
	/* This is the daemon's own copy of the name: clients can write the copy in the header. */
	memcpy(request->name, pool->name, sizeof(request->name));
	return 0;
}

/* ---- join ---- */

static int check_join(const struct xd_call *call, const struct xmem_join_request *join)
{
	bool by_fd = join->flags & XMEM_JOIN_FD;
	struct xmem_pool_header unused;
	int err;

	if (call->from->pool)
		return -EISCONN;
	if (join->abi < XMEM_ABI_OLDEST || join->abi > XMEM_ABI)
		return -EPROTONOSUPPORT;
	if (join->flags & XMEM_JOIN_EXCLUSIVE && join->flags & (XMEM_JOIN_EXISTING | XMEM_JOIN_FD))
		return -EINVAL;
	if (by_fd ? join->name[0] != 0 : join->pool_fd != -1 || call->fd >= 0)
		return -EINVAL;
	/* The numbers are checked even if the pool already exists. */
	err = xm_host_layout(join, 4096, &unused);
	if (!err)
		err = xd_access_check(join);
	return !err && by_fd && call->fd < 0 ? -EBADF : err;
}

/*
 * The pool that the request names; it is created if that is allowed and needed. from->roles becomes
 * the mask of the roles in which the caller may join.
 */
static int pool_to_join(struct xd_call *call, struct xd_pool **ret_pool)
{
	const struct xmem_join_request *join = &call->request.join;
	u32 *roles = &call->from->roles;

	if (join->flags & XMEM_JOIN_FD) {
		*ret_pool = xd_pool_by_fd(call->daemon, call->fd, roles);
		return *ret_pool ? xd_access_permit(*ret_pool, join, roles) : -EBADF;
	}
	*ret_pool = xd_pool_by_name(call->daemon, (const char *)join->name);
	if (*ret_pool && join->flags & XMEM_JOIN_EXCLUSIVE) {
		if (!(*ret_pool)->drained)
			return -EEXIST;
	} else if (*ret_pool) {
		return xd_access_permit(*ret_pool, join, roles);
	}
	if (join->flags & XMEM_JOIN_EXISTING)
		return -ENOENT;
	*roles = XMEM_ROLES_ALL;
	return xd_pool_create(call->daemon, join, ret_pool);
}

static int serve_join(struct xd_call *call)
{
	struct xmem_join_request *join = &call->request.join;
	struct xd_pool *pool;
	int err;

	err = check_join(call, join);
	if (!err)
		err = pool_to_join(call, &pool);
	if (err)
		return err;
	err = xm_host_fits(&pool->host.map, join);
	if (!err)
		err = xm_access_fits(pool->mode, getegid(), join);
	if (err)
		return err;
	join->fd = -1;		/* the connection is the client */
	call->answer = fcntl(pool->pages, F_DUPFD_CLOEXEC, 0);
	err = call->answer < 0 ? -EDQUOT : xd_pool_join(pool, call->from, join);
	if (err) {
		xd_pool_drop(pool);	/* A pool that has clients stays. */
		return err;
	}
	if (join->flags & XMEM_JOIN_EXCLUSIVE)
		xd_pool_take_name(pool);
	join->owner_uid = geteuid();
	join->gid = getegid();
	join->mode = pool->mode;
	join->roles = call->from->roles;
	return 0;
}

/* ---- payloads ---- */

/*
 * The payload that the request names: one that the caller has attached, or a new one of the file
 * sent.
 */
static int payload_to_attach(struct xd_call *call, struct xd_payload **ret_payload)
{
	const struct xmem_attach_request *request = &call->request.attach;
	struct xd_connection *from = call->from;
	u64 id = request->payload;
	int err;

	if (id) {
		if (call->fd >= 0 || request->fd != -1)
			return -EINVAL;
		*ret_payload = xd_payload_find(from->pool, id);
		if (!*ret_payload || !(*ret_payload)->slots)
			return -ENOENT;		/* or the payload is closing */
		return (*ret_payload)->incarnation == from->incarnation ? 0 : -EPERM;
	}
	if (request->fd < 0 && call->fd >= 0)
		return -EINVAL;
	if (request->fd >= 0 && call->fd < 0)
		return -EBADF;
	if (request->flags & XMEM_ATTACH_CUDA)
		err = xd_cuda_new(from->pool, call->fd, from->incarnation, request, ret_payload);
	else
		err = xd_payload_new(from->pool, call->fd, from->incarnation,
				     request->flags, ret_payload);
	if (err)
		return err;
	call->fd = -1;	/* The payload owns it now. */
	(*ret_payload)->owner = from->client;
	return 0;
}

/*
 * The ring of an ended client may have been received to its end without a message to the daemon.
 * Its free slots can then serve other writers.
 */
static bool leaves_more(struct xd_pool *pool)
{
	u32 c;

	for (c = 0; c < pool->host.map.clients; c++)
		if (xm_host_can_bury(&pool->host, c)) {
			xd_pool_reap(pool);
			return true;
		}
	return false;
}

/*
 * Attach slots to the caller. If its own groups are full, it gets a group that belongs to nobody,
 * which is enough for any request, or else groups that ended clients have left.
 */
static int attach_slots(struct xd_call *call, struct xm_payload *what)
{
	struct xm_host *host = &call->from->pool->host;
	struct xmem_attach_request *request = &call->request.attach;
	u32 me = call->from->client;
	int err, group;

	while ((err = xm_host_attach(host, me, what, random_word(), request)) == -ENOSPC) {
		group = xm_host_free_group(host, me, request->count);
		if (group < 0 && leaves_more(call->from->pool))
			group = xm_host_free_group(host, me, request->count);
		if (group < 0)
			return group;
		xm_host_give_group(host, group, me);
	}
	if (err == -EDQUOT)
		return xd_refuse(call->daemon, XMEM_QUOTA_POOL_DEVICES, XMEM_MAX_DEVICES,
				 XMEM_MAX_DEVICES);
	return err;
}

/* Attach slots of @payload, and describe a new CUDA payload. */
static int attach_payload(struct xd_call *call, struct xd_payload *payload)
{
	const struct xmem_attach_request *request = &call->request.attach;
	bool new_cuda = payload->cuda && !payload->slots;
	struct xm_payload what = {
		.id = payload->id, .traits = payload->traits, .bytes = payload->bytes,
		.device = new_cuda ? request->device : NULL,
	};
	int err = attach_slots(call, &what);

	if (err)
		return err;
	payload->traits = what.traits;
	if (new_cuda)
		xm_cuda_init(payload->cuda, &what, request);
	xd_payload_use(call->from->pool, payload, request->count);
	return 0;
}

static int serve_attach(struct xd_call *call)
{
	struct xd_payload *payload;
	int err;

	if (call->from->role != XMEM_ROLE_WRITER)
		return -EPERM;
	err = xm_host_attach_check(&call->request.attach);
	if (!err)
		err = payload_to_attach(call, &payload);
	if (err)
		return err;
	err = attach_payload(call, payload);
	if (err && !payload->slots)
		xd_payload_discard(payload);
	return err;
}

/*
 * The seals of a shared file do not prevent a process from opening a read-only descriptor again for
 * writing. But any process that can do so belongs to the daemon's user, and can write the owner's
 * memory as well.
 */
static bool may_write(const struct xd_connection *from, const struct xd_payload *payload)
{
	if (payload->access != O_RDWR)
		return false;
	if (payload->traits & XMEM_TRAIT_SHARED)
		return from->role != XMEM_ROLE_READER;
	return payload->incarnation == from->incarnation;
}

static int serve_payload(struct xd_call *call)
{
	struct xmem_payload_request *request = &call->request.payload;
	bool write = request->flags & XMEM_PAYLOAD_WRITE;
	struct xd_connection *from = call->from;
	struct xd_payload *payload;
	int err;

	payload = xd_payload_find(from->pool, request->payload);
	if (!payload)
		return -ENOENT;
	if (payload->cuda)
		return xd_cuda_serve(call, payload);
	err = xm_payload_file_check(request);
	if (err)
		return err;
	if (write && !may_write(from, payload))
		return -EACCES;
	call->answer = xd_payload_open(payload, write);
	if (call->answer < 0)
		return call->answer;
	request->fd = -1;
	request->bytes = payload->bytes;
	request->traits = payload->traits;
	return 0;
}

/* ---- rings, slots ---- */

/*
 * A cursor has moved. The publisher may be sleeping until a cursor moves (I5), and so may the
 * owners of buffers that it has forwarded. The publisher may also be sleeping until it has
 * subscribers.
 */
static int serve_subscribe(struct xd_call *call)
{
	struct xmem_subscribe_request *request = &call->request.subscribe;
	struct xm_host *host = &call->from->pool->host;
	int err = xm_host_subscribe(host, call->from->client, request);

	if (err)
		return err;
	xm_follow_begin(&call->from->followed, request->publisher, request->flags);
	xd_pool_wake_owners(call->from->pool);
	return 0;
}

/* Slots that only this subscriber kept in flight are free now. */
static int serve_unsubscribe(struct xd_call *call)
{
	const struct xmem_unsubscribe_request *request = &call->request.unsubscribe;
	struct xd_pool *pool = call->from->pool;
	const struct xm_map *map = &pool->host.map;
	int err;

	if (request->flags)
		return xm_follow_update(&call->from->followed, request);
	err = xm_host_unsubscribe(&pool->host, call->from->client, request);
	xm_follow_end(map, &call->from->followed, call->from->client, request);
	if (err)
		return err;
	xd_pool_reap(pool);
	xd_pool_wake_owners(pool);
	xd_wake(&map->pool->clients_waiters);
	return 0;
}

static int collect(struct xd_call *call)
{
	struct xd_pool *pool = call->from->pool;
	u64 *collects = &xm_ring(&pool->host.map, call->from->client)->collects;

	/* First the word, then the slots: a subscriber that puts a slot after this asks again. */
	if (xm_xchg_full(collects, XMEM_COLLECTS_NONE) == XMEM_COLLECTS_MORE)
		xd_pool_reap(pool);
	else
		xd_pool_collect(pool, call->request.slot.slot);
	return 0;
}

/* The group stays the caller's until the caller ends: no other client gets its pages. */
static int detach(struct xd_call *call)
{
	const struct xmem_slot_request *request = &call->request.slot;
	struct xd_connection *from = call->from;
	struct xm_host *host = &from->pool->host;
	u64 id = xm_host_payload_of(host, request->slot);
	const struct xd_payload *payload = xd_payload_find(from->pool, id);
	int count;

	count = xm_host_detach(host, from->client, request, payload ? payload->slots : 0, &id);
	if (count > 0)
		xd_payload_put(from->pool, id, count);
	return count < 0 ? count : 0;
}

static int serve_slot(struct xd_call *call)
{
	struct xm_host *host = &call->from->pool->host;
	struct xmem_slot_request *request = &call->request.slot;
	int err = xm_slot_check(&host->map, request);

	if (err)
		return err;
	switch (request->op) {
	case XMEM_OP_RESOLVE:
		return -EOPNOTSUPP;
	case XMEM_OP_COLLECT:
		return collect(call);
	case XMEM_OP_RENEW:
		return xm_host_renew(host, call->from->client, random_word(), request);
	}
	return detach(call);
}

/*
 * When writing in place ends, the slot may be free for its owner. If its owner has ended, the slot
 * may be free for good.
 */
static int serve_upgrade(struct xd_call *call)
{
	struct xmem_upgrade_request *request = &call->request.upgrade;
	struct xd_pool *pool = call->from->pool;
	const struct xm_map *map = &pool->host.map;
	int err = xm_host_upgrade(&pool->host, call->from->client, request);
	u32 owner;

	if (err || !request->flags)
		return err;
	owner = xm_load(&xm_slot_row(map, request->slot)->owner);
	if (owner < map->clients)
		xd_wake(&xm_client_row(map, owner)->slots_waiters);
	else
		xd_pool_collect(pool, request->slot);
	return 0;
}

/* A client may see pid and uid: it is of the same user and mostly sees the same processes. */
static int serve_client(struct xd_call *call)
{
	struct xmem_client_request *request = &call->request.client;
	const struct xm_host *host = &call->from->pool->host;
	const struct xmem_client_row *row;
	int err = xm_host_client(host, request, &row);

	if (err)
		return err;
	request->pid = xm_load(&row->pid);
	request->uid = xm_load(&row->uid);
	if (request->flags & XMEM_CLIENT_LIMBO)
		request->limbo_bytes = xm_limbo_of(&host->map, request->client);
	return 0;
}

/* ---- polling ---- */

static int serve_poll_fd(struct xd_call *call)
{
	call->answer = xd_poll_new(call->from, &call->request.poll_fd);
	call->request.poll_fd.fd = -1;
	return call->answer < 0 ? call->answer : 0;
}

/* The sender has woken the clients that sleep on the word; xd_serve looks at those that poll. */
static int serve_wait(struct xd_call *call)
{
	const struct xmem_wait_request *request = &call->request.wait;
	int err;

	if (request->op == XMEM_OP_KICK)	/* the sender does this itself */
		return xm_kick_check(request);
	if (request->op != XMEM_OP_WAKE)
		return -EOPNOTSUPP;
	return xm_host_waiters(&call->from->pool->host, call->from->client, request, &err) ?
	       0 : err;
}

static int serve_claim(struct xd_call *call)
{
	return xd_claim(call);
}

static int serve_quota(struct xd_call *call)
{
	return xd_quota(call);
}

/* ---- all ---- */

static int (*const servers[])(struct xd_call *call) = {
	[_IOC_NR(XMEM_IOC_JOIN)]	= serve_join,
	[_IOC_NR(XMEM_IOC_POOL_FD)]	= xd_pool_fd_serve,
	[_IOC_NR(XMEM_IOC_ATTACH)]	= serve_attach,
	[_IOC_NR(XMEM_IOC_PAYLOAD)]	= serve_payload,
	[_IOC_NR(XMEM_IOC_SUBSCRIBE)]	= serve_subscribe,
	[_IOC_NR(XMEM_IOC_UNSUBSCRIBE)]	= serve_unsubscribe,
	[_IOC_NR(XMEM_IOC_WAIT)]	= serve_wait,
	[_IOC_NR(XMEM_IOC_SLOT)]	= serve_slot,
	[_IOC_NR(XMEM_IOC_QUERY)]	= serve_query,
	[_IOC_NR(XMEM_IOC_POOLS)]	= serve_pools,
	[_IOC_NR(XMEM_IOC_POLL_FD)]	= serve_poll_fd,
	[_IOC_NR(XMEM_IOC_CLAIM)]	= serve_claim,
	[_IOC_NR(XMEM_IOC_UPGRADE)]	= serve_upgrade,
	[_IOC_NR(XMEM_IOC_ACCESS)]	= xd_access_serve,
	[_IOC_NR(XMEM_IOC_QUOTA)]	= serve_quota,
	[_IOC_NR(XMEM_IOC_CLIENT)]	= serve_client,
	[_IOC_NR(XMEM_IOC_EVICT)]	= xd_evict_serve,
	[_IOC_NR(XMEM_IOC_GRANT)]	= xd_grant_serve,
};

bool xd_needs_all_ends(const struct xd_call *call)
{
	switch (call->code) {
	case XMEM_IOC_JOIN:
	case XMEM_IOC_POOLS:
	case XMEM_IOC_QUERY:
		return true;
	case XMEM_IOC_POOL_FD:
		return call->request.pool_fd.flags & XMEM_POOL_FD_NARROW;
	case XMEM_IOC_QUOTA:
		return !(call->request.quota.flags & XMEM_QUOTA_REFUSED);
	case XMEM_IOC_ATTACH:
	case XMEM_IOC_POLL_FD:
		return xd_quota_reached(call->daemon);
	}
	return false;
}

int xd_take(struct xd_call *call, u32 request, const void *body, size_t length)
{
	const struct xm_request_kind *kind = xm_request_find(request);
	u32 number = _IOC_NR(request);
	int err;

	if (!kind || number >= sizeof(servers) / sizeof(*servers) || !servers[number])
		return -ENOTTY;
	err = xm_wire_take(kind, body, length, &call->request);
	if (err)
		return err;
	if (!kind->unjoined && !call->from->pool)
		return -ENOTCONN;
	if (call->fd >= 0 && request != XMEM_IOC_JOIN && request != XMEM_IOC_ATTACH &&
	    request != XMEM_IOC_POOL_FD)
		return -EINVAL;
	call->code = request;
	return 0;
}

int xd_serve(struct xd_call *call)
{
	int err = servers[_IOC_NR(call->code)](call);

	/*
	 * Any request may have disarmed words, and may stand for a `wake` that found no room in the
	 * socket.
	 */
	if (call->from->pool) {
		xd_polls_look(call->from->pool);
		xd_pool_check(call->from->pool);
	}
	return err;
}
