// SPDX-License-Identifier: MIT
/* All streams of a GPU: all.h. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#include "lib/cuda/own.h"
#include "lib/gpu/all.h"
#include "lib/gpu/order.h"

#define NAP_NS	1000000		/* while a stream is captured */

/*
 * A GPU's event, and the stream that waits for it. They are made once, and kept until the context
 * ends. Threads use both without a lock: if another thread records the event before this one's
 * stream is told to wait for it, the stream waits for later work as well.
 */
struct all {
	CUevent event;
	CUstream stream;
};

static struct all *all_of[XL_MAX_GPUS];		/* by ordinal; atomic */

static void destroy(struct all *all)
{
	if (all->stream)
		xl_cuda()->stream_destroy(all->stream);
	if (all->event)
		xl_cuda()->event_destroy(all->event);
	free(all);
}

/* Unless another thread is first. */
static CUresult make(struct all **at)
{
	struct all *made = calloc(1, sizeof(*made)), *first = NULL;
	CUresult result;

	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = xl_cuda()->event_create(&made->event, CU_EVENT_DISABLE_TIMING);
	if (!result)
		result = xl_cuda()->stream_create(&made->stream, CU_STREAM_NON_BLOCKING);
	if (result || !__atomic_compare_exchange_n(at, &first, made, false, __ATOMIC_ACQ_REL,
						   __ATOMIC_ACQUIRE))
		destroy(made);
	return result;
}

/* The default stream is ordered with all blocking streams, so it knows of their captures. */
static CUresult check_captures(void)
{
	CUstreamCaptureStatus status;
	CUresult result = xl_cuda()->stream_is_capturing(CU_STREAM_LEGACY, &status);

	return result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT ? result : CUDA_SUCCESS;
}

CUresult xl_all_streams(struct xl_gpu *gpu, CUstream *ret)
{
	struct all **at, *all;
	CUresult result;

	if (!xl_cuda_has(XL_CUDA_EVENTS) || gpu->ordinal >= XL_MAX_GPUS)
		return CUDA_ERROR_NOT_SUPPORTED;
	at = &all_of[gpu->ordinal];
	result = check_captures();
	if (!result && unlikely(!xm_load(at)))
		result = make(at);
	if (result)
		return result;
	all = xm_load_acquire(at);
	result = xl_cuda()->ctx_record_event(xm_load(&gpu->context), all->event);
	if (!result)
		result = xl_cuda()->stream_wait_event(all->stream, all->event, 0);
	*ret = all->stream;
	return result;
}

/* ---- dropping in a thread ---- */

/*
 * The thread of a GPU waits for handles in turns. Handles that are given while it waits for one
 * turn belong to the next one, because the wait need not cover their work.
 */
struct late {
	struct xl_lock lock;		/* guards what follows; no other code runs under it */
	bool there;			/* the thread is there */
	bool given;			/* handles have been given for the next turn */
	u32 next;			/* that turn: 0 or 1 */
	struct xl_gpu *gpu;
	void (*drop)(struct xmem_buffer *buffer);
	char turn[2];			/* a handle's leaves_in is the address of one of them */
};

static struct late late_of[XL_MAX_GPUS];	/* by ordinal */

/* NULL: no handle is left, and the thread must end. */
static char *take_turn(struct late *late)
{
	char *turn = NULL;

	xl_lock(&late->lock);
	if (late->given) {
		turn = &late->turn[late->next];
		late->next = !late->next;
	}
	late->there = late->given;
	late->given = false;
	xl_unlock(&late->lock);
	return turn;
}

static CUresult wait_once(struct xl_gpu *gpu)
{
	struct xl_gpu_scope scope;
	CUresult result = xl_order_enter(gpu, &scope);

	if (result)
		return result;
	result = check_captures();
	if (!result)
		result = xl_cuda()->ctx_synchronize();
	xl_gpu_leave(&scope);
	return result;
}

/* In a lost context no work runs any more. After other errors the work may still run. */
static void wait_for_all(struct xl_gpu *gpu)
{
	const struct timespec nap = { .tv_nsec = NAP_NS };
	CUresult result;

	for (;;) {
		xl_own_park();
		result = wait_once(gpu);
		if (!result || xl_cuda_is_lost(result))
			return;
		nanosleep(&nap, NULL);
	}
}

struct drop {
	const char *turn;
	void (*call)(struct xmem_buffer *buffer);
};

static void drop_of_turn(struct xmem_buffer *buffer, void *user)
{
	const struct drop *drop = user;

	if (xm_load(&buffer->leaves_in) == drop->turn)
		drop->call(buffer);
}

static void *drop_late(void *user)
{
	struct late *late = user;
	struct drop drop = { .call = late->drop };

	prctl(PR_SET_NAME, "xmem-late");
	xl_own_begin();
	while ((drop.turn = take_turn(late))) {
		wait_for_all(late->gpu);
		xl_handles_leaving(drop_of_turn, &drop);
	}
	xl_own_end();
	return NULL;
}

/* Under the lock. false: there is no memory for a thread. */
static bool start(struct late *late)
{
	sigset_t all, before;
	pthread_t thread;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);	/* signals are for the program's threads */
	late->there = !pthread_create(&thread, NULL, drop_late, late);
	if (late->there)
		pthread_detach(thread);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return late->there;
}

bool xl_all_drop_late(struct xl_gpu *gpu, void (*drop)(struct xmem_buffer *buffer),
		      struct xmem_buffer *buffer)
{
	struct late *late = &late_of[gpu->ordinal];
	bool given;

	xl_lock(&late->lock);
	late->gpu = gpu;
	late->drop = drop;
	given = late->there || start(late);
	if (given) {
		xm_store(&buffer->leaves_in, &late->turn[late->next]);
		late->given = true;
	}
	xl_unlock(&late->lock);
	return given;
}
