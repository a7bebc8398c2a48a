// SPDX-License-Identifier: MIT
/*
 * Pools: the memfd of each, which has the whole layout; the ends of their clients; and
 * wake-ups. core/host.h says what the words in the pages mean.
 */
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/host/futex.h"
#include "daemon.h"

/* ---- finding ---- */

struct xd_pool *xd_pool_by_name(struct xd_daemon *daemon, const char *name)
{
	struct xd_pool *pool = daemon->pools;

	while (pool && (!*name || pool->nameless || strncmp(pool->name, name, XMEM_NAME_BYTES)))
		pool = pool->next;
	return pool;
}

/* A new pool is found before a drained one of its name, which loses it now. */
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

struct xd_pool *xd_pool_after(struct xd_daemon *daemon, u64 number)
{
	struct xd_pool *pool, *next = NULL;

	for (pool = daemon->pools; pool; pool = pool->next)
		if (!pool->nameless && pool->number > number &&
		    (!next || pool->number < next->number))
			next = pool;
	return next;
}

int xd_new_memfd(const char *name, u64 bytes, int seals)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int err;

	if (fd < 0)
		return errno == EMFILE || errno == ENFILE ? -EDQUOT : -errno;
	seals |= F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	if (!ftruncate(fd, bytes) && !fcntl(fd, F_ADD_SEALS, seals))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

/* ---- making ---- */

/* The file of a pool's pages has its name, so that /proc/PID/maps says who is in which pool. */
static int make_pages(struct xd_pool *pool, const struct xmem_pool_header *header)
{
	char name[sizeof("xmem-pool:") + XMEM_NAME_BYTES];
	u64 bytes = header->total_bytes;
	char *front;

	snprintf(name, sizeof(name), "xmem-pool%s%.*s", header->name[0] ? ":" : "",
		 XMEM_NAME_BYTES, (const char *)header->name);
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
 * For tests: lay a pool out as a newer host would, whose rows, cursors, entries and
 * metadata are longer.
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
	if (daemon->pool_count >= XD_MAX_POOLS)
		return xd_refuse(daemon, XMEM_QUOTA_USER_POOLS, daemon->pool_count, XD_MAX_POOLS);
	widen(&header);
	header.owner_uid = geteuid();
	pool = calloc(1, sizeof(*pool));
	if (!pool)
		return -ENOMEM;
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
	pool->number = ++daemon->last_pool;
	pool->daemon = daemon;
	pool->next = daemon->pools;
	daemon->pools = pool;
	daemon->pool_count++;
	xd_alive_add(pool);
	*ret_pool = pool;
	return 0;
}

/* What its clients in quarantine kept goes with the pool, and so do their connections. */
static void forget_quarantined(struct xd_pool *pool)
{
	struct xd_connection *connection, *next;

	for (connection = pool->daemon->connections; connection; connection = next) {
		next = connection->next;
		if (connection->pool != pool)
			continue;
		connection->pool = NULL;
		if (connection->ended)
			xd_connection_end(pool->daemon, connection);
	}
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
	forget_quarantined(pool);
	xm_ready_end_all(&pool->host);
	xd_payload_drop_all(pool);
	xd_alive_remove(pool);
	munmap(pool->base - XD_FRONT_BYTES, XD_FRONT_BYTES + pool->layout.total_bytes);
	close(pool->pages);
	xd_keys_close(pool);
	free(pool->host.claims);
	free(pool);
}

/* ---- waking ---- */

void xd_wake(u32 *waiters)
{
	if (xm_disarm(waiters))
		xm_futex_wake_all(waiters);
}

/* Wake whatever the word says: its last waker may have died between the word and the wake. */
static void wake_anyhow(u32 *waiters)
{
	xm_disarm(waiters);
	xm_futex_wake_all(waiters);
}

void xd_pool_wake_owners(struct xd_pool *pool)
{
	const struct xm_map *map = &pool->host.map;
	u32 c;

	for (c = 0; c < map->clients; c++)
		xd_wake(&xm_client_row(map, c)->slots_waiters);
}

void xd_wake_rings(struct xd_pool *pool)
{
	const struct xm_map *map = &pool->host.map;
	u32 c;

	for (c = 0; c < map->clients; c++)
		xd_wake(&xm_client_row(map, c)->ring_waiters);
}

/* Nobody waits for what an id would do that no client has; @ended had one until now. */
static void wake_everybody(struct xd_pool *pool, u32 ended)
{
	const struct xm_map *map = &pool->host.map;
	u32 c;

	wake_anyhow(&map->pool->clients_waiters);
	for (c = 0; c < map->clients; c++) {
		struct xmem_client_row *row = xm_client_row(map, c);

		if (c != ended && xm_load(&row->state) == XMEM_CLIENT_NONE)
			continue;
		wake_anyhow(&row->ring_waiters);
		wake_anyhow(&row->slots_waiters);
	}
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
	if (client < 0)
		return client;
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

/* Has the client's process exited, with all of its threads, files and mappings? */
static bool has_exited(const struct xd_connection *from)
{
	struct pollfd look = { .fd = from->process, .events = POLLIN };

	return poll(&look, 1, 0) > 0;
}

/* Nothing on a GPU works for the client any more (I9). */
static void end_quarantine(struct xd_pool *pool, u32 client)
{
	xm_host_exited(&pool->host, client);
	xd_cuda_left(pool, client);
}

/*
 * Who waits is woken before the slots are searched for what else is free now. It may be queued
 * behind this process, on the same processor, hence the yield.
 */
void xd_pool_leave(struct xd_pool *pool, struct xd_connection *from)
{
	xm_host_end(&pool->host, from->client, xd_cuda_has_open(pool, from->client));
	if (has_exited(from))
		end_quarantine(pool, from->client);
	xm_host_limbo(&pool->host, xd_now_ns());
	xd_payload_owner_ended(pool, from->incarnation);
	xd_pool_wake_owners(pool);
	xd_wake_rings(pool);
	sched_yield();
	xd_claims_left(pool);
	xd_pool_reap(pool);
	wake_everybody(pool, from->client);
	xd_polls_drop(from);
	xd_polls_look(pool);
	xd_pool_check(pool);
	pool->clients--;
	if (pool->clients && !xm_host_is_quarantined(&pool->host, from->client))
		from->pool = NULL;
	xd_pool_drop(pool);
}

void xd_pool_exited(struct xd_pool *pool, struct xd_connection *from)
{
	end_quarantine(pool, from->client);
	xd_pool_reap(pool);
	wake_everybody(pool, from->client);
	xd_polls_look(pool);
	xd_pool_check(pool);
	from->pool = NULL;
}

/* Replace pages by fresh ones, for something may still have the old ones pinned. */
static void replace_pages(struct xd_pool *pool, void *at, u64 bytes)
{
	if (fallocate(pool->pages, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		      (char *)at - pool->base, bytes))
		memset(at, 0, bytes);
}

/* ---- freeing what only ended clients have used ---- */

/* true: slots may be free now that were in flight in its ring. */
static bool bury(struct xd_pool *pool, u32 client)
{
	enum xm_buried buried = xm_host_bury(&pool->host, client);

	if (buried != XM_BURIED)
		return buried == XM_BURIED_RING;
	replace_pages(pool, pool->host.map.area[client], pool->layout.area_stride);
	return true;
}

/* true: there were some to bury. */
static bool bury_all(struct xd_pool *pool)
{
	bool any = false;
	u32 i;

	for (i = 0; i < pool->host.map.clients; i++)
		any |= bury(pool, i);
	return any;
}

/* Free those of the suspects that nobody uses. true: there were some. */
static bool sweep(struct xd_pool *pool)
{
	struct xm_sweep sweep = { .stage = 0 };
	bool any = false;
	u64 payload;
	int slot;

	while ((slot = xm_host_sweep(&pool->host, &sweep, &payload)) != -ENOENT) {
		if (slot < 0)
			continue;
		xd_payload_put(pool, payload, 1);
		any = true;
	}
	return any;
}

/* Any writer may wait for slots, and this is a group of them. */
static void free_group(struct xd_pool *pool, u32 group)
{
	if (!xm_host_idle_group(&pool->host, group))
		return;
	xm_host_return_group(&pool->host, group);
	replace_pages(pool, pool->host.map.group[group], pool->layout.group_stride);
	xd_pool_wake_owners(pool);
}

/*
 * Rings come first: a slot may be in flight in a ring that nobody follows any more. They come
 * again after each sweep, because a subscriber may receive the rest of a ring meanwhile. It then
 * asks for a look at the slot that it puts; but if the sweep has freed that slot, the daemon does
 * not look, and nobody asks for the ring again.
 */
void xd_pool_reap(struct xd_pool *pool)
{
	const struct xm_map *map = &pool->host.map;
	bool gone = bury_all(pool), more;
	u32 i;

	do {
		xm_host_suspect_all(&pool->host);
		sweep(pool);
		more = bury_all(pool);
		gone |= more;
	} while (more);
	for (i = 0; i < map->groups; i++)
		free_group(pool, i);
	if (gone)
		xd_wake(&map->pool->clients_waiters);
}

/*
 * Only this slot can have become free by that put, and the ring in which it was published can
 * have been received to its end. If it has, that frees other slots too, once for each ring.
 */
void xd_pool_collect(struct xd_pool *pool, u32 slot)
{
	const struct xm_map *map = &pool->host.map;
	const struct xmem_slot_row *row = xm_slot_row(map, slot);
	u32 tenant = row->tenant;
	bool any;

	if (row->owner != XMEM_OWNER_HOST)
		return;
	if (tenant < map->clients && bury(pool, tenant)) {
		xd_wake(&map->pool->clients_waiters);
		xd_pool_reap(pool);
		return;
	}
	xm_host_suspect(&pool->host, slot);
	any = sweep(pool);
	free_group(pool, slot / XMEM_GROUP_SLOTS);
	/* As in xd_pool_reap: another subscriber may have received the rest meanwhile. */
	if (any && bury_all(pool)) {
		xd_wake(&map->pool->clients_waiters);
		xd_pool_reap(pool);
	}
}

void xd_pool_check(const struct xd_pool *pool)
{
	const char *wrong;

	if (!pool->daemon->check)
		return;
	wrong = xm_host_is_valid(&pool->host);
	if (!wrong)
		wrong = xd_cuda_is_valid(pool);
	if (!wrong)
		return;
	fprintf(stderr, "xmemd: pool '%s': %s\n", pool->name, wrong);
	abort();
}
