// SPDX-License-Identifier: MIT
/*
 * Pools: the memfd of each pool, which has the whole layout, and how clients join and end.
 * core/host.h says what the words in the pages mean.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/access.h"
#include "daemon.h"

/* ---- finding ---- */

struct xd_pool *xd_pool_by_name(struct xd_daemon *daemon, const char *name)
{
	u64 number = xm_name_number((const __u8 *)name);
	struct xd_pool *pool = daemon->pools;

	while (pool && (pool->nameless || (number ? pool->number != number : !*name ||
					   strncmp(pool->name, name, XMEM_NAME_BYTES))))
		pool = pool->next;
	return pool;
}

/* A drained pool of the same name loses it to the new pool. */
void xd_pool_take_name(struct xd_pool *pool)
{
	struct xd_pool *old;

	for (old = pool->next; old; old = old->next)
		if (!strncmp(old->name, pool->name, XMEM_NAME_BYTES))
			old->nameless = *pool->name;
}

u32 xd_pools_count(const struct xd_daemon *daemon)
{
	const struct xd_pool *pool;
	u32 count = 0;

	for (pool = daemon->pools; pool; pool = pool->next)
		count += !pool->nameless;
	return count;
}

struct xd_pool *xd_pool_after(struct xd_daemon *daemon, u64 number, bool named)
{
	struct xd_pool *pool, *next = NULL;

	for (pool = daemon->pools; pool; pool = pool->next)
		if (!(named && pool->nameless) && pool->number > number &&
		    (!next || pool->number < next->number))
			next = pool;
	return next;
}

/* ---- making ---- */

/*
 * The file of a pool's pages has the pool's name, or its number if it has none, so that
 * /proc/PID/maps shows which processes use which pool, and the tool finds the file.
 */
static int make_pages(struct xd_pool *pool, const struct xmem_pool_header *header)
{
	char name[sizeof("xmem-pool:") + XMEM_NAME_BYTES];
	u64 bytes = header->total_bytes;
	char *front;

	if (header->name[0])
		snprintf(name, sizeof(name), "xmem-pool:%.*s", XMEM_NAME_BYTES,
			 (const char *)header->name);
	else
		snprintf(name, sizeof(name), "xmem-pool@%" PRIu64, (uint64_t)pool->number);
	pool->pages = xd_new_memfd(name, bytes, 0);
	if (pool->pages < 0)
		return pool->pages;
	front = mmap(NULL, XD_FRONT_BYTES + bytes, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (front == MAP_FAILED)
		goto err_close;
	pool->base = mmap(front + XD_FRONT_BYTES, bytes, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_FIXED, pool->pages, 0);
	if (pool->base == MAP_FAILED)
		goto err_unmap;
	madvise(pool->base, bytes, MADV_DONTDUMP);
	pool->layout = *header;
	*(struct xmem_pool_header *)pool->base = *header;
	return 0;

err_unmap:
	munmap(front, XD_FRONT_BYTES + bytes);
err_close:
	close(pool->pages);
	return -ENOMEM;
}

#ifdef XMEM_STEPS
/*
 * For tests: lay a pool out as a newer host would, with longer rows, cursors, entries and metadata.
 */
static void widen(struct xmem_pool_header *header)
{
	const char *wide = getenv("XMEMD_WIDE");

	if (!wide || strcmp(wide, "1"))
		return;
	header->client_row_stride += 64;
	header->slot_row_stride += 8;
	header->cursor_stride += 64;
	header->entry_stride += 24;
	header->metadata_stride += 40;
	xm_layout_place(header, sysconf(_SC_PAGESIZE));
}
#else
static void widen(struct xmem_pool_header *header)
{
}
#endif

int xd_pool_create(struct xd_daemon *daemon, const struct xmem_join_request *join,
		   struct xd_pool **ret_pool)
{
	struct xmem_pool_header header;
	struct xd_pool *pool;
	int err;

	err = xm_host_layout(join, sysconf(_SC_PAGESIZE), &header);
	if (err)
		return err;
	if (daemon->pool_count >= daemon->limits.pools)
		return xd_refuse(daemon, XMEM_QUOTA_USER_POOLS, daemon->pool_count,
				 daemon->limits.pools);
	widen(&header);
	header.owner_uid = geteuid();
	pool = calloc(1, sizeof(*pool));
	if (!pool)
		return -ENOMEM;
	pool->number = ++daemon->last_pool;
	err = make_pages(pool, &header);
	if (err) {
		free(pool);
		return err;
	}
	memcpy(pool->name, header.name, sizeof(pool->name));
	pool->mode = join->mode ? join->mode : XMEM_MODE_DEFAULT;
	xd_keys_init(pool);
	xm_host_init(&pool->host, (struct xmem_pool_header *)pool->base);
	xm_map_init(&pool->host.map, pool->base, &header);
	pool->host.one_user = true;
	pool->daemon = daemon;
	pool->next = daemon->pools;
	daemon->pools = pool;
	daemon->pool_count++;
	xd_alive_add(pool);
	*ret_pool = pool;
	return 0;
}

void xd_pool_drop(struct xd_pool *pool)
{
	struct xd_pool **at = &pool->daemon->pools;

	if (pool->clients)
		return;
	while (*at != pool)
		at = &(*at)->next;
	*at = pool->next;
	pool->daemon->pool_count--;
	xm_ready_end_all(&pool->host);
	xd_payload_drop_all(pool);
	xd_alive_remove(pool);
	munmap(pool->base - XD_FRONT_BYTES, XD_FRONT_BYTES + pool->layout.total_bytes);
	close(pool->pages);
	xd_keys_close(pool);
	free(pool->host.claims);
	free(pool);
}

/* ---- clients ---- */

/* Another client of the same process that has not ended, or XM_NO_CLIENT. */
static u32 sibling_of(const struct xd_pool *pool, const struct xd_connection *from)
{
	const struct xd_connection *other;

	for (other = pool->daemon->connections; other; other = other->next)
		if (other->pool == pool && !other->ended && other->pid == from->pid)
			return other->client;
	return XM_NO_CLIENT;
}

int xd_pool_join(struct xd_pool *pool, struct xd_connection *from, struct xmem_join_request *join)
{
	struct xm_joiner who = {
		.pid = from->pid, .uid = geteuid(), .sibling = sibling_of(pool, from),
	};
	int client = xm_host_free_client(&pool->host);
	int err;

	if (client < 0) {
		xd_pool_reap(pool);
		client = xm_host_free_client(&pool->host);
	}
	if (client < 0) {
		xd_refuse(pool->daemon, XMEM_QUOTA_POOL_CLIENTS, pool->layout.clients,
			  pool->layout.clients);
		return client;
	}
	xm_role_decide(from->roles, join);
	err = xm_host_join(&pool->host, client, join, &who);
	if (err)
		return err;
	join->total_bytes = pool->layout.total_bytes;
	from->pool = pool;
	from->client = client;
	from->role = join->role;
	from->incarnation = join->incarnation;
	pool->clients++;
	xd_wake(&pool->host.map.pool->clients_waiters);
	if (join->role == XMEM_ROLE_WRITER)
		xd_wake_rings(pool);
	return 0;
}

/* Has the client's process exited, with all its threads, files and mappings? */
static bool has_exited(const struct xd_connection *from)
{
	struct pollfd look = { .fd = from->process, .events = POLLIN };

	return poll(&look, 1, 0) > 0;
}

/* The client's process has exited, so no GPU works for the client any more (I9). */
static void end_quarantine(struct xd_pool *pool, u32 client)
{
	xm_host_exited(&pool->host, client);
	xd_cuda_left(pool, client);
}

/*
 * The pool is reaped once, after the last noted end. Waiters have been woken by then, and may be
 * queued behind this process on the same processor: hence the yield.
 */
static void reap_after_ends(struct xd_pool *pool)
{
	if (pool->ending)
		return;
	sched_yield();
	xd_reap_begin(pool);
	pool->daemon->ending++;
	xd_claims_left(pool);
}

bool xd_pool_reap_on(struct xd_pool *pool)
{
	u32 steps;

	for (steps = 0; steps < XD_REAP_STEPS && xd_reap_step(pool); steps++)
		;
	if (pool->reap.stage)
		return false;
	pool->daemon->ending--;
	xd_wake_everybody(pool);
	xd_polls_look(pool);
	xd_pool_check(pool);
	return true;
}

void xd_pool_leave(struct xd_pool *pool, struct xd_connection *from)
{
	xm_host_end(&pool->host, from->client);
	if (has_exited(from))
		end_quarantine(pool, from->client);
	xm_host_limbo(&pool->host, xd_now_ns());
	xd_pool_wake_owners(pool);
	xd_wake_rings(pool);
	xd_polls_drop(from);
	pool->clients--;
	if (!xm_host_is_quarantined(&pool->host, from->client))
		from->pool = NULL;
	reap_after_ends(pool);
}

void xd_pool_exited(struct xd_pool *pool, struct xd_connection *from)
{
	end_quarantine(pool, from->client);
	from->pool = NULL;
	reap_after_ends(pool);
}
