// SPDX-License-Identifier: MIT
/* Attributes of memory pools, and which devices may access their memory. */
#include "pool.h"

FK_DEFINE(cuMemPoolGetAttribute, 11020, cuMemPoolGetAttribute, FK_WORK, struct fk_pool *pool,
	  int attribute, void *ret_value)
{
	FK_ENTER(cuMemPoolGetAttribute);
	if (attribute < 1 || attribute > USED_HIGH || !ret_value)
		return FK_INVALID_VALUE;
	pthread_mutex_lock(&memory_lock);
	pool = fk_pool_find_locked(pool);
	if (pool && attribute < RELEASE_THRESHOLD)
		*(int *)ret_value = pool->attribute[attribute];
	else if (pool)
		*(uint64_t *)ret_value = pool->attribute[attribute];
	pthread_mutex_unlock(&memory_lock);
	return pool ? FK_OK : FK_INVALID_VALUE;
}

static CUresult set_attribute_locked(struct fk_pool *pool, int attribute, uint64_t value)
{
	if (!pool || attribute == RESERVED_CURRENT || attribute == USED_CURRENT ||
	    (attribute > RELEASE_THRESHOLD && value))
		return FK_INVALID_VALUE;
	pool->attribute[attribute] = value;
	return FK_OK;
}

FK_DEFINE(cuMemPoolSetAttribute, 11020, cuMemPoolSetAttribute, FK_WORK, struct fk_pool *pool,
	  int attribute, const void *value)
{
	uint64_t number;
	CUresult err;

	FK_ENTER(cuMemPoolSetAttribute);
	if (attribute < 1 || attribute > USED_HIGH || !value)
		return FK_INVALID_VALUE;
	number = *(int *)value;
	if (attribute >= RELEASE_THRESHOLD)
		number = *(uint64_t *)value;
	pthread_mutex_lock(&memory_lock);
	err = set_attribute_locked(fk_pool_find_locked(pool), attribute, number);
	pthread_mutex_unlock(&memory_lock);
	return err;
}

FK_DEFINE(cuMemPoolTrimTo, 11020, cuMemPoolTrimTo, FK_WORK, struct fk_pool *pool, size_t least)
{
	FK_ENTER(cuMemPoolTrimTo);
	pthread_mutex_lock(&memory_lock);
	pool = fk_pool_find_locked(pool);
	pthread_mutex_unlock(&memory_lock);
	return pool ? FK_OK : FK_INVALID_VALUE;
}

static CUresult set_access_locked(struct fk_pool *pool, const CUmemAccessDesc *desc)
{
	struct fk_device *device = desc->location.type == FK_DEVICE ?
		fk_device(desc->location.id) : NULL;

	if (!pool || !device || desc->flags == 2 || desc->flags > 3)
		return FK_INVALID_VALUE;
	if (!fk_device_peers(device->index, pool->device->index))
		return FK_INVALID_DEVICE;
	if (device == pool->device && desc->flags != 3)
		return FK_INVALID_VALUE;	/* access of its own device cannot be taken */
	fk_mapping_find_locked(pool->span->base)->access[device->ordinal] = desc->flags;
	return FK_OK;
}

FK_DEFINE(cuMemPoolSetAccess, 11020, cuMemPoolSetAccess, FK_WORK, struct fk_pool *pool,
	  const CUmemAccessDesc *desc, size_t count)
{
	CUresult err = FK_OK;

	FK_ENTER(cuMemPoolSetAccess);
	if (!desc || !count)
		return FK_INVALID_VALUE;
	pthread_mutex_lock(&memory_lock);
	pool = fk_pool_find_locked(pool);
	for (size_t i = 0; i < count && !err; i++)
		err = set_access_locked(pool, &desc[i]);
	pthread_mutex_unlock(&memory_lock);
	return err;
}

FK_DEFINE(cuMemPoolGetAccess, 11020, cuMemPoolGetAccess, FK_WORK, unsigned int *ret_flags,
	  struct fk_pool *pool, const CUmemLocation *location)
{
	FK_ENTER(cuMemPoolGetAccess);
	if (!ret_flags || !location || location->type != FK_DEVICE || !fk_device(location->id))
		return FK_INVALID_VALUE;
	pthread_mutex_lock(&memory_lock);
	pool = fk_pool_find_locked(pool);
	if (pool)
		*ret_flags = fk_mapping_find_locked(pool->span->base)->access[location->id];
	pthread_mutex_unlock(&memory_lock);
	return pool ? FK_OK : FK_INVALID_VALUE;
}
