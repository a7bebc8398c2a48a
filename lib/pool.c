// SPDX-License-Identifier: MIT
/*
 * Pools: joining and leaving, their handles' free list, what is in them, and
 * the few requests that everybody here makes of the host.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "private.h"

/* ---- time, requests ---- */

u64 xl_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

u64 xl_deadline(int64_t timeout_ns)
{
	return timeout_ns == XMEM_FOREVER ? ~0ULL : xl_now_ns() + (u64)timeout_ns;
}

int xl_waiters_arm(struct xmem_pool *pool, u32 kind, u32 client, u32 *ret_value)
{
	struct xmem_wait_request request = { .size = sizeof(request), .kind = kind, .client = client };
	int err = xl_request(pool, XMEM_IOC_ARM, &request);

	*ret_value = request.value;
	return err;
}

int xl_waiters_wait(struct xmem_pool *pool, u32 kind, u32 client, u32 value, u64 deadline_ns)
{
	struct xmem_wait_request request = {
		.size = sizeof(request), .kind = kind, .client = client, .value = value, .deadline_ns = deadline_ns,
	};

	return xl_request(pool, XMEM_IOC_WAIT, &request);
}

void xl_waiters_wake(struct xmem_pool *pool, u32 kind, u32 client)
{
	struct xmem_wait_request request = { .size = sizeof(request), .kind = kind, .client = client };

	/* It fails only where the host has gone: then its waiters find that out themselves. */
	xl_request(pool, XMEM_IOC_WAKE, &request);
}

void xl_do_pending(struct xmem_pool *pool, struct xm_pending pending)
{
	struct xmem_slot_request request = { .size = sizeof(request), .slot = pending.who };

	if (pending.what == XM_WAKE_OWNER)
		xl_waiters_wake(pool, XMEM_WAIT_SLOTS, pending.who);
	else if (pending.what == XM_TELL_HOST && !xl_request(pool, XMEM_IOC_COLLECT, &request))
		xl_payload_unmap_stale(pool);
}

/* ---- handles ---- */

static void destroy(struct xmem_pool *pool);

#define XL_BLOCK_HANDLES	64

struct xl_block {
	struct xl_block *next;
	struct xmem_buffer handle[XL_BLOCK_HANDLES];
};

/* Under pool->lock. They go when the pool goes: there are as many as were held at once. */
static bool refill(struct xmem_pool *pool)
{
	struct xl_block *block = aligned_alloc(_Alignof(struct xl_block), sizeof(*block));
	int i;

	if (!block) {
		xl_fail_fast(ENOMEM, "no memory for a buffer's handle");
		return false;
	}
	memset(block, 0, sizeof(*block));
	block->next = pool->blocks;
	pool->blocks = block;
	pool->made += XL_BLOCK_HANDLES;
	for (i = 0; i < XL_BLOCK_HANDLES; i++) {
		block->handle[i].pool = pool;
		block->handle[i].next = i + 1 < XL_BLOCK_HANDLES ? &block->handle[i + 1] : pool->spare;
	}
	pool->spare = &block->handle[0];
	return true;
}

struct xmem_buffer *xl_handle_new_locked(struct xmem_pool *pool)
{
	struct xmem_buffer *buffer;

	xl_lock(&pool->lock);
	buffer = pool->spare || refill(pool) ? xl_handle_pop(pool) : NULL;
	pool->out += pool->closed && buffer;
	xl_unlock(&pool->lock);
	return buffer;
}

void xl_handle_free_locked(struct xmem_buffer *buffer)
{
	struct xmem_pool *pool = buffer->pool;
	bool last;

	xl_lock(&pool->lock);
	xl_handle_push(pool, buffer);
	last = pool->closed && !--pool->out;
	xl_unlock(&pool->lock);
	if (unlikely(last))
		destroy(pool);
}

static void free_handles(struct xmem_pool *pool)
{
	struct xl_block *block;

	while ((block = pool->blocks)) {
		pool->blocks = block->next;
		free(block);
	}
}

/* ---- open ---- */

static const char *join_hint(int err)
{
	switch (-err) {
	case EINVAL:	return "a name has at most 31 of [A-Za-z0-9._-], a ring 4 to 4096 entries, a power of two";
	case ENOENT:	return "there is no such pool, and XMEM_OPEN_EXISTING was asked for";
	case EEXIST:	return "there is such a pool, and XMEM_OPEN_EXCLUSIVE was asked for";
	case EPERM:	return "another user made it (XMEM_OPEN_FOREIGN joins it all the same), or runs the daemon";
	case EUSERS:	return "the pool has as many clients as it can have";
	case EDQUOT:	return "the host has as many pools, or clients of this process, as it may have";
	case ENODEV:	return "neither /dev/xmem nor xmemd can be reached; see XMEM_BACKEND and XMEM_DAEMON";
	case EPROTONOSUPPORT: return "the host speaks another version of xmem";
	case EACCES:	return "no permission for /dev/xmem: is the user in group xmem?";
	case EBADF:	return "not a pool's file";
	}
	return strerror(-err);
}

static int open_with(struct xmem_link *link, const struct xmem_backend *backend)
{
	int err;

	*link = (struct xmem_link){ .backend = backend };
	err = backend->open(link);
	if (err)
		backend->close(link);
	return err;
}

static int open_link(struct xmem_link *link)
{
	const char *insist = getenv("XMEM_BACKEND");
	int err;

	if (insist && !strcmp(insist, "daemon"))
		return open_with(link, &xmem_backend_daemon);
	err = open_with(link, &xmem_backend_kmod);
	if (err != -ENODEV || (insist && *insist))
		return err;
	return open_with(link, &xmem_backend_daemon);
}

static int check_environment(void)
{
	const char *insist = getenv("XMEM_BACKEND");

	if (insist && *insist && strcmp(insist, "kernel") && strcmp(insist, "daemon"))
		return xl_fail(EINVAL, "XMEM_BACKEND is kernel or daemon, not '%s'", insist);
	return 0;
}

/* A daemon about to leave for lack of work may drop a newcomer: knock again. */
static int join(struct xmem_link *link, struct xmem_join_request *request)
{
	struct xmem_join_request first = *request;
	int tries, err = -ENODEV;

	for (tries = 0; tries < 5; tries++) {
		*request = first;
		err = open_link(link);
		if (err)
			return err;
		err = link->backend->request(link, XMEM_IOC_JOIN, request);
		if (!err) {
			link->join = *request;
			return 0;
		}
		link->backend->close(link);
		if (err != -ENOTCONN)
			break;
	}
	return err;
}

static int options_to_join(const struct xmem_pool_options *options, struct xmem_join_request *request)
{
	struct xmem_pool_options o = { 0 };
	u32 i;

	if (options) {
		if (options->size != sizeof(o))
			return xl_fail(EINVAL, "xmem_pool_options: size is %zu, not %zu", options->size, sizeof(o));
		o = *options;
	}
	if (o.flags & ~(XMEM_OPEN_WRITER | XMEM_OPEN_EXISTING | XMEM_OPEN_EXCLUSIVE | XMEM_OPEN_FOREIGN))
		return xl_fail(EINVAL, "xmem_pool_options: unknown flags 0x%x", o.flags);
	if (o.wait_bound_ns < 0 || (o.wait_bound_ns && !(o.flags & XMEM_OPEN_WRITER)))
		return xl_fail(EINVAL, "xmem_pool_options: wait_bound_ns is a writer's, and not negative");
	request->flags |= (o.flags & XMEM_OPEN_EXISTING ? XMEM_JOIN_EXISTING : 0) |
			  (o.flags & XMEM_OPEN_EXCLUSIVE ? XMEM_JOIN_EXCLUSIVE : 0) |
			  (o.flags & XMEM_OPEN_FOREIGN ? XMEM_JOIN_FOREIGN : 0);
	request->role = o.flags & XMEM_OPEN_WRITER ? XMEM_ROLE_WRITER : XMEM_ROLE_READER;
	request->slots = o.slots;
	request->clients = o.clients;
	request->ring_entries = o.ring_entries;
	request->wait_bound_ns = o.wait_bound_ns;
	snprintf((char *)request->label, sizeof(request->label), "%s", o.label ? o.label : program_invocation_short_name);
	for (i = 0; request->label[i]; i++) {
		if (request->label[i] >= ' ' && request->label[i] <= '~')
			continue;
		if (o.label)
			return xl_fail(EINVAL, "xmem_pool_options: a label has printable ASCII characters only");
		request->label[i] = '_';	/* a program may be called anything */
	}
	return 0;
}

static void destroy(struct xmem_pool *pool)
{
	xl_process_unregister(pool);
	xl_payload_unmap_all(pool);
	pool->link.backend->close(&pool->link);
	free_handles(pool);
	free(pool->owner.own);
	free(pool);
}

static struct xmem_pool *open_pool(const char *what, struct xmem_join_request *request,
				   const struct xmem_pool_options *options)
{
	struct xmem_pool *pool;
	int err;

	if (check_environment() || options_to_join(options, request))
		return NULL;
	pool = calloc(1, sizeof(*pool));
	if (!pool) {
		xl_fail(ENOMEM, "no memory for a pool's handle");
		return NULL;
	}
	pthread_mutex_init(&pool->lock.mutex, NULL);
	pthread_mutex_init(&pool->slow.mutex, NULL);
	pthread_mutex_init(&pool->owner.lock.mutex, NULL);
	err = join(&pool->link, request);
	if (err)
		goto err_free;
	err = pool->link.backend->map(&pool->link, &pool->map);
	if (err)
		goto err_link;
	pool->me = request->client;
	pool->role = request->role;
	pool->out = 1;
	err = xl_owner_init(pool, request->wait_bound_ns);
	if (err)
		goto err_link;
	err = xl_process_register(pool);
	if (err)
		goto err_owner;
	return pool;

err_owner:
	free(pool->owner.own);
err_link:
	pool->link.backend->close(&pool->link);
err_free:
	free(pool);
	xl_fail(-err, "%s: %s", what, join_hint(err));
	return NULL;
}

XMEM_API struct xmem_pool *xmem_pool_open(const char *name, const struct xmem_pool_options *options)
{
	struct xmem_join_request request = { .size = sizeof(request), .abi = XMEM_ABI, .pool_fd = -1 };
	char what[80];

	if (name && strlen(name) >= XMEM_NAME_BYTES) {
		xl_fail(EINVAL, "open pool '%.40s...': %s", name, join_hint(-EINVAL));
		return NULL;
	}
	memcpy(request.name, name ? name : "", name ? strlen(name) : 0);
	snprintf(what, sizeof(what), "open pool '%s'", name ? name : "");
	return open_pool(what, &request, options);
}

XMEM_API struct xmem_pool *xmem_pool_open_fd(int file, const struct xmem_pool_options *options)
{
	struct xmem_join_request request = {
		.size = sizeof(request), .abi = XMEM_ABI, .pool_fd = file, .flags = XMEM_JOIN_FD,
	};

	return open_pool("open a pool's file", &request, options);
}

XMEM_API int xmem_pool_fd(struct xmem_pool *pool)
{
	struct xmem_pool_fd_request request = { .size = sizeof(request) };
	int err;

	if (!pool)
		return xl_fail_fast(EINVAL, "xmem_pool_fd: no pool");
	if (!xl_alive(pool))
		return xl_fail_forked();
	err = xl_request(pool, XMEM_IOC_POOL_FD, &request);
	return err ? xl_fail(-err, "a file of the pool: %s", strerror(-err)) : request.fd;
}

/* Under pool->lock. Handles are not counted while the pool is open: that would be two stores for each. */
static u64 handles_in_use(const struct xmem_pool *pool)
{
	const struct xmem_buffer *buffer;
	u64 spare = 0;

	for (buffer = pool->spare; buffer; buffer = buffer->next)
		spare++;
	return pool->made - spare;
}

void xl_pool_unshare(struct xmem_pool *pool)
{
	bool last = false;

	xl_lock(&pool->lock);
	if (!--pool->out) {
		pool->closed = true;
		pool->out = handles_in_use(pool);
		last = !pool->out;
	}
	xl_unlock(&pool->lock);
	if (last)
		destroy(pool);
}

XMEM_API void xmem_pool_close(struct xmem_pool *pool)
{
	if (pool && xl_alive(pool))
		xl_pool_unshare(pool);
}

XMEM_API const char *xmem_pool_backend(struct xmem_pool *pool)
{
	return pool ? pool->link.backend->name : NULL;
}

XMEM_API int xmem_pool_client(struct xmem_pool *pool)
{
	if (!pool)
		return xl_fail_fast(EINVAL, "xmem_pool_client: no pool");
	return xl_alive(pool) ? (int)pool->me : xl_fail_forked();
}

/* ---- stat ---- */

static u64 holds_of(const struct xm_map *map, u32 slot)
{
	u64 holds = 0;
	u32 c;

	for (c = 0; c < map->clients; c++)
		if (xm_bit(map->pool->counted, c))
			holds += xm_load(xm_hold(map, c, slot)) & XM_HOLD_COUNT;
	return holds;
}

static void stat_slot(const struct xm_map *map, u32 slot, struct xmem_pool_info *stat)
{
	u32 owner = xm_load(&xm_slot_row(map, slot)->owner);
	u64 holds = holds_of(map, slot);

	stat->holds += holds;
	stat->held += holds != 0;
	if (owner == XMEM_OWNER_NONE)
		return;
	stat->attached++;
	stat->bytes += xm_slot_row(map, slot)->length;
	stat->limbo += owner == XMEM_OWNER_HOST;
	switch (xm_state(xm_load(&xm_slot(map, slot)->state))) {
	case XMEM_SLOT_FREE:	stat->free++; break;
	case XMEM_SLOT_WRITING:	stat->writing++; break;
	default:		stat->live++; break;
	}
}

XMEM_API int xmem_pool_stat(struct xmem_pool *pool, struct xmem_pool_info *ret_stat)
{
	struct xmem_pool_info stat = { .size = sizeof(stat) };
	u32 i;

	if (!pool || !ret_stat || ret_stat->size != sizeof(stat))
		return xl_fail_fast(EINVAL, "xmem_pool_stat: no pool, or size is not sizeof(struct xmem_pool_info)");
	if (!xl_alive(pool))
		return xl_fail_forked();
	stat.slots = pool->map.slots;
	for (i = 0; i < pool->map.slots; i++)
		stat_slot(&pool->map, i, &stat);
	for (i = 0; i < pool->map.clients; i++) {
		stat.clients += xm_load(&xm_client_row(&pool->map, i)->state) == XMEM_CLIENT_ALIVE;
		stat.zombies += xm_load(&xm_client_row(&pool->map, i)->state) == XMEM_CLIENT_ZOMBIE;
	}
	*ret_stat = stat;
	return 0;
}
