// SPDX-License-Identifier: MIT
/*
 * Contexts: the primary one of each device, which is counted (rule 51), contexts that a program
 * creates, and the stack of each thread. A context that is destroyed stays readable, so that the
 * driver notices its use.
 */
#include <pthread.h>
#include <stdlib.h>

#include "capture.h"
#include "fake.h"

#define DEPTH 64

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;	/* counts, flags and peers */
static __thread struct fk_context *stack[DEPTH];
static __thread int depth;
static atomic_ulong last_id;

struct fk_context *fk_context_current(void)
{
	return depth ? stack[depth - 1] : NULL;
}

bool fk_context_valid(const struct fk_context *context)
{
	return context && context->magic == FK_CONTEXT_MAGIC;
}

static void set_current(struct fk_context *context)
{
	if (depth)
		depth--;
	if (context)
		stack[depth++] = context;
}

static void destroy(struct fk_context *context)
{
	fk_stream_drain(context);
	fk_stream_context_gone(context);
	fk_memory_context_gone(context);
	context->magic = 0;
	context->peers = 0;
}

FK_DEFINE(cuDevicePrimaryCtxRetain, 7000, cuDevicePrimaryCtxRetain, FK_INIT,
	  CUcontext *ret_context, CUdevice ordinal)
{
	struct fk_device *device = fk_device(ordinal);

	FK_ENTER(cuDevicePrimaryCtxRetain);
	device = fk_device(ordinal);
	if (!ret_context)
		return FK_INVALID_VALUE;
	if (!device)
		return FK_INVALID_DEVICE;
	pthread_mutex_lock(&lock);
	if (!device->primary_refs++) {
		device->primary.flags = device->primary_flags;
		device->primary.id = atomic_fetch_add(&last_id, 1) + 1;
		device->primary.magic = FK_CONTEXT_MAGIC;
	}
	pthread_mutex_unlock(&lock);
	*ret_context = &device->primary;
	return FK_OK;
}

static CUresult release(CUdevice ordinal)
{
	struct fk_device *device = fk_device(ordinal);
	unsigned int refs;

	if (!device)
		return FK_INVALID_DEVICE;
	pthread_mutex_lock(&lock);
	refs = device->primary_refs;
	if (refs)
		device->primary_refs--;
	pthread_mutex_unlock(&lock);
	if (!refs)
		return FK_INVALID_CONTEXT;
	if (refs == 1)
		destroy(&device->primary);
	return FK_OK;
}

FK_DEFINE(cuDevicePrimaryCtxRelease, 11000, cuDevicePrimaryCtxRelease_v2, FK_INIT,
	  CUdevice device)
{
	FK_ENTER(cuDevicePrimaryCtxRelease_v2);
	return release(device);
}

FK_DEFINE(cuDevicePrimaryCtxRelease, 7000, cuDevicePrimaryCtxRelease, FK_INIT, CUdevice device)
{
	FK_ENTER(cuDevicePrimaryCtxRelease);
	return release(device);
}

FK_DEFINE(cuDevicePrimaryCtxGetState, 7000, cuDevicePrimaryCtxGetState, FK_INIT, CUdevice ordinal,
	  unsigned int *ret_flags, int *ret_active)
{
	FK_ENTER(cuDevicePrimaryCtxGetState);
	if (!fk_device(ordinal))
		return FK_INVALID_DEVICE;
	if (!ret_flags || !ret_active)
		return FK_INVALID_VALUE;
	*ret_flags = fk_device(ordinal)->primary_flags;
	*ret_active = fk_device(ordinal)->primary_refs != 0;
	return FK_OK;
}

FK_DEFINE(cuDevicePrimaryCtxSetFlags, 11000, cuDevicePrimaryCtxSetFlags_v2, FK_INIT,
	  CUdevice ordinal, unsigned int flags)
{
	FK_ENTER(cuDevicePrimaryCtxSetFlags_v2);
	if (!fk_device(ordinal))
		return FK_INVALID_DEVICE;
	fk_device(ordinal)->primary_flags = flags;
	return FK_OK;
}

FK_DEFINE(cuDevicePrimaryCtxReset, 11000, cuDevicePrimaryCtxReset_v2, FK_INIT, CUdevice ordinal)
{
	struct fk_device *device;

	FK_ENTER(cuDevicePrimaryCtxReset_v2);
	device = fk_device(ordinal);
	if (!device)
		return FK_INVALID_DEVICE;
	if (device->primary_refs) {
		destroy(&device->primary);
		device->primary.magic = FK_CONTEXT_MAGIC;
	}
	return FK_OK;
}

FK_DEFINE(cuCtxGetCurrent, 4000, cuCtxGetCurrent, FK_INIT, CUcontext *ret_context)
{
	FK_ENTER(cuCtxGetCurrent);
	if (!ret_context)
		return FK_INVALID_VALUE;
	*ret_context = fk_context_current();
	return FK_OK;
}

FK_DEFINE(cuCtxSetCurrent, 4000, cuCtxSetCurrent, FK_INIT, CUcontext context)
{
	FK_ENTER(cuCtxSetCurrent);
	if (context && !fk_context_valid(context))
		return FK_INVALID_CONTEXT;
	set_current(context);
	return FK_OK;
}

FK_DEFINE(cuCtxPushCurrent, 4000, cuCtxPushCurrent_v2, FK_INIT, CUcontext context)
{
	FK_ENTER(cuCtxPushCurrent_v2);
	if (!fk_context_valid(context))
		return FK_INVALID_CONTEXT;
	if (depth == DEPTH)
		return FK_OUT_OF_MEMORY;
	stack[depth++] = context;
	return FK_OK;
}

FK_DEFINE(cuCtxPopCurrent, 4000, cuCtxPopCurrent_v2, FK_INIT, CUcontext *ret_context)
{
	FK_ENTER(cuCtxPopCurrent_v2);
	if (!depth)
		return FK_INVALID_CONTEXT;
	depth--;
	if (ret_context)
		*ret_context = stack[depth];
	return FK_OK;
}

FK_DEFINE(cuCtxGetDevice, 2000, cuCtxGetDevice, FK_CONTEXT, CUdevice *ret_device)
{
	FK_ENTER(cuCtxGetDevice);
	if (!ret_device)
		return FK_INVALID_VALUE;
	*ret_device = fk_device_current()->ordinal;
	return FK_OK;
}

FK_DEFINE(cuCtxGetDevice, 13000, cuCtxGetDevice_v2, FK_INIT, CUdevice *ret_device,
	  CUcontext context)
{
	FK_ENTER(cuCtxGetDevice_v2);
	context = context ? context : fk_context_current();
	if (!ret_device)
		return FK_INVALID_VALUE;
	if (!fk_context_valid(context))
		return FK_INVALID_CONTEXT;
	*ret_device = context->device->ordinal;
	return FK_OK;
}

FK_DEFINE(cuCtxGetId, 12000, cuCtxGetId, FK_INIT, CUcontext context, unsigned long long *ret_id)
{
	FK_ENTER(cuCtxGetId);
	context = context ? context : fk_context_current();
	if (!fk_context_valid(context))
		return FK_INVALID_CONTEXT;
	if (!ret_id)
		return FK_INVALID_VALUE;
	*ret_id = context->id;
	return FK_OK;
}

FK_DEFINE(cuCtxGetFlags, 7000, cuCtxGetFlags, FK_CONTEXT, unsigned int *ret_flags)
{
	FK_ENTER(cuCtxGetFlags);
	if (!ret_flags)
		return FK_INVALID_VALUE;
	*ret_flags = fk_context_current()->flags;
	return FK_OK;
}

FK_DEFINE(cuCtxGetApiVersion, 3020, cuCtxGetApiVersion, FK_INIT, CUcontext context,
	  unsigned int *ret_version)
{
	FK_ENTER(cuCtxGetApiVersion);
	if (!fk_context_valid(context ? context : fk_context_current()))
		return FK_INVALID_CONTEXT;
	if (!ret_version)
		return FK_INVALID_VALUE;
	*ret_version = 3020;
	return FK_OK;
}

FK_DEFINE(cuCtxSynchronize, 2000, cuCtxSynchronize, FK_CONTEXT, void)
{
	CUresult spoilt;

	FK_ENTER(cuCtxSynchronize);
	spoilt = fk_capture_spoil_all(fk_context_current());
	if (spoilt)
		return spoilt;
	fk_stream_drain(fk_context_current());
	return fk_sticky();
}

/* ---- Contexts that a program creates; only tests do ---- */

static CUresult create(struct fk_context **ret_context, unsigned int flags, CUdevice ordinal)
{
	struct fk_context *context;

	if (!ret_context)
		return FK_INVALID_VALUE;
	if (!fk_device(ordinal))
		return FK_INVALID_DEVICE;
	context = calloc(1, sizeof(*context));
	if (!context || depth == DEPTH) {
		free(context);
		return FK_OUT_OF_MEMORY;
	}
	context->device = fk_device(ordinal);
	context->flags = flags;
	context->id = atomic_fetch_add(&last_id, 1) + 1;
	context->magic = FK_CONTEXT_MAGIC;
	stack[depth++] = context;
	*ret_context = context;
	return FK_OK;
}

FK_DEFINE(cuCtxCreate, 3020, cuCtxCreate_v2, FK_INIT, CUcontext *ret_context, unsigned int flags,
	  CUdevice device)
{
	FK_ENTER(cuCtxCreate_v2);
	return create(ret_context, flags, device);
}

FK_DEFINE(cuCtxCreate, 11040, cuCtxCreate_v3, FK_INIT, CUcontext *ret_context,
	  void *affinity, int affinities, unsigned int flags, CUdevice device)
{
	FK_ENTER(cuCtxCreate_v3);
	return affinities ? FK_NOT_SUPPORTED : create(ret_context, flags, device);
}

FK_DEFINE(cuCtxCreate, 12050, cuCtxCreate_v4, FK_INIT, CUcontext *ret_context, void *parameters,
	  unsigned int flags, CUdevice device)
{
	FK_ENTER(cuCtxCreate_v4);
	return parameters ? FK_NOT_SUPPORTED : create(ret_context, flags, device);
}

FK_DEFINE(cuCtxDestroy, 4000, cuCtxDestroy_v2, FK_INIT, CUcontext context)
{
	FK_ENTER(cuCtxDestroy_v2);
	if (!fk_context_valid(context) || context->primary)
		return FK_INVALID_CONTEXT;
	if (fk_context_current() == context)
		depth--;
	destroy(context);	/* never freed: it may be on the stacks of threads */
	return FK_OK;
}

/* ---- Peers ---- */

FK_DEFINE(cuCtxEnablePeerAccess, 4000, cuCtxEnablePeerAccess, FK_CONTEXT, CUcontext peer,
	  unsigned int flags)
{
	struct fk_context *mine = fk_context_current();
	CUresult err = FK_OK;
	uint32_t bit;

	FK_ENTER(cuCtxEnablePeerAccess);
	if (flags)
		return FK_INVALID_VALUE;
	if (!fk_context_valid(peer) || peer->device == mine->device)
		return FK_INVALID_CONTEXT;
	if (!fk_device_peers(mine->device->index, peer->device->index))
		return FK_PEER_ACCESS_UNSUPPORTED;
	bit = 1u << peer->device->ordinal;
	pthread_mutex_lock(&lock);
	if (mine->peers & bit)
		err = FK_PEER_ACCESS_ALREADY_ENABLED;
	else if (__builtin_popcount(mine->peers) >= fk_option_number("MAX_PEERS", 8))
		err = FK_TOO_MANY_PEERS;
	else
		mine->peers |= bit;
	pthread_mutex_unlock(&lock);
	return err;
}

FK_DEFINE(cuCtxDisablePeerAccess, 4000, cuCtxDisablePeerAccess, FK_CONTEXT, CUcontext peer)
{
	struct fk_context *mine = fk_context_current();
	uint32_t bit;

	FK_ENTER(cuCtxDisablePeerAccess);
	if (!fk_context_valid(peer))
		return FK_INVALID_CONTEXT;
	bit = 1u << peer->device->ordinal;
	if (!(mine->peers & bit))
		return FK_PEER_ACCESS_NOT_ENABLED;
	mine->peers &= ~bit;
	return FK_OK;
}
