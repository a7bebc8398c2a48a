// SPDX-License-Identifier: MIT
/*
 * The pools that this process has joined. Each stays joined until the process ends, because tensors
 * may come and go at any time, and because the pool must outlive the process that made it. A child
 * by fork joins again when it first needs a pool.
 */
#include "torch.h"

#include <string.h>

static struct xt_pool pools[XT_POOLS];
static int count;			/* of pools that have a name; atomic, like their handles */
/* Guards the rest, and is held during requests to a host. A child has one of its own. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct xt_pool *find(const char *name)
{
	int i;

	for (i = 0; i < count; i++)
		if (!pools[i].gone && !strcmp(pools[i].name, name))
			return &pools[i];
	return NULL;
}

int xt_pool_named(const char *name)
{
	int i, there = __atomic_load_n(&count, __ATOMIC_ACQUIRE);

	for (i = 0; i < there; i++)
		if (!__atomic_load_n(&pools[i].gone, __ATOMIC_RELAXED) &&
		    !strcmp(pools[i].name, name))
			return i;
	return -1;
}

/* A request about the token 0 changes nothing, and shows whether there is a host. */
bool xt_pool_is_gone(struct xt_pool *pool)
{
	struct xmem_pool *handle = __atomic_load_n(&pool->handle, __ATOMIC_ACQUIRE);

	if (handle && xmem_claims(handle, 0) == -ENOTCONN)
		__atomic_store_n(&pool->gone, true, __ATOMIC_RELAXED);
	xmem_clear_last_error();
	return __atomic_load_n(&pool->gone, __ATOMIC_RELAXED);
}

void xt_pools_look(void)
{
	int i, there = __atomic_load_n(&count, __ATOMIC_ACQUIRE);

	for (i = 0; i < there; i++)
		xt_pool_is_gone(&pools[i]);
}

/* pre: lock is held */
static struct xmem_pool *join_anew(struct xt_pool *pool)
{
	if (!pool->handle && pool->inherited && !pool->gone) {
		__atomic_store_n(&pool->handle, xmem_pool_reopen(pool->inherited),
				 __ATOMIC_RELEASE);
		if (pool->handle) {
			xmem_pool_close(pool->inherited);
			pool->inherited = NULL;
		}
	}
	return pool->handle;
}

struct xmem_pool *xt_pool_handle(struct xt_pool *pool)
{
	struct xmem_pool *handle = __atomic_load_n(&pool->handle, __ATOMIC_ACQUIRE);

	if (handle)
		return handle;
	pthread_mutex_lock(&lock);
	handle = join_anew(pool);
	pthread_mutex_unlock(&lock);
	return handle;
}

static struct xt_pool *join(const char *name, const struct xmem_pool_options *options)
{
	struct xt_pool *pool = find(name);
	struct xmem_pool *handle;

	if (pool)
		return join_anew(pool) ? pool : NULL;
	handle = xmem_pool_open(name, options);
	if (!handle)
		return NULL;
	if (count == XT_POOLS) {
		xmem_pool_close(handle);
		xmem_clear_last_error();
		return NULL;
	}
	pool = &pools[count];
	strncpy(pool->name, name, sizeof(pool->name) - 1);
	pool->handle = handle;
	__atomic_store_n(&count, count + 1, __ATOMIC_RELEASE);
	return pool;
}

struct xt_pool *xt_pool_join(const char *name, const struct xmem_pool_options *options)
{
	struct xt_pool *pool;

	pthread_mutex_lock(&lock);
	pool = join(name, options);
	pthread_mutex_unlock(&lock);
	return pool;
}

struct xt_pool *xt_pool_at(int number)
{
	int there = __atomic_load_n(&count, __ATOMIC_ACQUIRE);

	return number >= 0 && number < there ? &pools[number] : NULL;
}

int xt_pool_number(const struct xt_pool *pool)
{
	return pool - pools;
}

/*
 * Another thread of the parent may have been joining a pool: the pool is either complete or absent
 * here.
 */
void xt_pools_forked(void)
{
	int i;

	for (i = 0; i < count; i++) {
		if (!pools[i].handle)
			continue;
		pools[i].inherited = pools[i].handle;
		pools[i].handle = NULL;
	}
	pthread_mutex_init(&lock, NULL);
}
