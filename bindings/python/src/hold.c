// SPDX-License-Identifier: MIT
/*
 * The last put of a hold, and the release of a handle that streams may still use.
 *
 * A call of the driver may wait for a lock that another thread has while it wants the GIL. So no
 * call of the driver is made with the GIL. Libraries drop views with the GIL or without it, and the
 * limited API cannot tell which. But every CPython has a function that can, by one of two names.
 */
#include "capi.h"
#include "hold.h"

#include <dlfcn.h>
#include <xmem/stream.h>

typedef PyThreadState *current_thread(void);

/*
 * Until 3.12, it gives the thread that has the GIL, whichever that is. If a second interpreter has
 * made this thread's state, it counts as without the GIL, and keeps it.
 */
static bool has_gil(void)
{
	static current_thread *current;		/* atomic */
	current_thread *get = __atomic_load_n(&current, __ATOMIC_RELAXED);
	PyThreadState *thread;

	if (!Py_IsInitialized())
		return false;
	if (!get) {
		get = (current_thread *)dlsym(RTLD_DEFAULT, "PyThreadState_GetUnchecked");
		if (!get)
			get = (current_thread *)dlsym(RTLD_DEFAULT, "_PyThreadState_UncheckedGet");
		__atomic_store_n(&current, get, __ATOMIC_RELAXED);
	}
	thread = get ? get() : NULL;
	return thread && thread == PyGILState_GetThisThreadState();
}

static void drop(struct xmem_buffer *buffer, void *stream)
{
	if (xmem_release_on(buffer, stream))
		xmem_release(buffer);
}

/* Each handle waits for one stream, so two streams need two handles. */
static void release(struct xmem_buffer *buffer, void *stream)
{
	struct xmem_buffer *other = NULL;

	if (stream && stream != XMEM_ALL_STREAMS) {
		other = xmem_clone(buffer);
		if (other)
			drop(other, stream);
		stream = NULL;
	}
	drop(buffer, stream);
}

void xp_release_on(struct xmem_buffer *buffer, void *stream)
{
	PyThreadState *thread = has_gil() ? PyEval_SaveThread() : NULL;

	release(buffer, stream);
	if (thread)
		PyEval_RestoreThread(thread);
}

void xp_hold_put(struct xp_hold *hold)
{
	if (atomic_fetch_sub_explicit(&hold->shares, 1, memory_order_acq_rel) != 1)
		return;
	if (hold->on_stream)
		xp_release_on(hold->buffer, XMEM_ALL_STREAMS);
	else
		xmem_release(hold->buffer);
	free(hold);
}
