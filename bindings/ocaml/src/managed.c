// SPDX-License-Identifier: MIT
/*
 * Managed handles: a custom block whose finaliser drops the handle. The finaliser is one of C, so
 * that it runs right after a minor collection; the functions of Gc.finalise would keep a block
 * through it. A finaliser may neither wait nor call OCaml. So it releases buffers itself, and puts
 * subscriptions and pools into a list, which the next call of this library works off.
 */
#include <stdlib.h>
#include <time.h>

#include <caml/fail.h>
#include <caml/signals.h>
#include <caml/threads.h>

#include "managed.h"

static _Atomic long live;			/* buffers that this process has not dropped */
static _Atomic(struct managed *) later;		/* handles to end, the newest first */

static void put_later(struct managed *it)
{
	it->next = atomic_load(&later);
	while (!atomic_compare_exchange_weak(&later, &it->next, it))
		;
}

/* One user less; the last one drops the handle. */
void managed_drop(struct managed *it)
{
	if (atomic_fetch_sub(&it->users, 1) > 1)
		return;
	if (it->kind != BUFFER) {
		put_later(it);
		return;
	}
	if (it->handle) {
		xmem_release(it->handle);
		atomic_fetch_sub(&live, 1);
	}
	free(it);
}

static void finalise(value block)
{
	struct managed *it = atomic_exchange(&MANAGED(block), NULL);

	if (it)
		managed_drop(it);
}

static struct custom_operations operations = {
	.identifier = "xmem.handle",
	.finalize = finalise,
	.compare = custom_compare_default,
	.hash = custom_hash_default,
	.serialize = custom_serialize_default,
	.deserialize = custom_deserialize_default,
	.compare_ext = custom_compare_ext_default,
	.fixed_length = custom_fixed_length_default,
};

/*
 * The bytes of which the collector has to know. Shared memory of the CPU is the pool's: its slots,
 * not its bytes, run out, and the policy for slots looks after them.
 */
static size_t bytes_of(struct xmem_buffer *buffer)
{
	struct xmem_buffer_info info = XMEM_INIT(info);

	if (xmem_buffer_stat(buffer, &info) || !(info.flags & XMEM_BUFFER_CUDA))
		return 0;
	return info.capacity;
}

value xmem_ml_manage(value kind, value handle)
{
	void *raw = (void *)Nativeint_val(handle);
	struct managed *it = malloc(sizeof(*it));
	size_t bytes = 0;
	value block;

	if (!it)
		caml_raise_out_of_memory();
	it->kind = Int_val(kind);
	atomic_init(&it->users, 1);
	atomic_init(&it->handle, raw);
	if (it->kind == BUFFER) {
		bytes = bytes_of(raw);
		atomic_fetch_add(&live, 1);
	}
	block = caml_alloc_custom_mem(&operations, sizeof(it), bytes);
	MANAGED(block) = it;
	return block;
}

/* The program drops the handle now. A view of the contents keeps its hold. */
value xmem_ml_drop(value block)
{
	finalise(block);
	return Val_unit;
}

/* C has taken the handle. */
value xmem_ml_gone(value block)
{
	struct managed *it = atomic_load(&MANAGED(block));

	if (it && atomic_exchange(&it->handle, NULL))
		atomic_fetch_sub(&live, 1);
	finalise(block);
	return Val_unit;
}

value xmem_ml_views(value block)
{
	struct managed *it = atomic_load(&MANAGED(block));

	return Val_long(it ? atomic_load(&it->users) - 1 : 0);
}

value xmem_ml_live(value unit)
{
	return Val_long(atomic_load(&live));
}

value xmem_ml_pending(value unit)
{
	return Val_bool(atomic_load(&later) != NULL);
}

/* End what finalisers have found. It may wait for the host, so other threads go on. */
value xmem_ml_end_pending(value unit)
{
	struct managed *it, *next;

	caml_release_runtime_system();
	for (it = atomic_exchange(&later, NULL); it; it = next) {
		next = it->next;
		if (it->kind == POOL)
			xmem_pool_close(it->handle);
		else
			xmem_unsubscribe(it->handle);
		free(it);
	}
	caml_acquire_runtime_system();
	return Val_unit;
}

/* Functions for signals that have come run now, and can raise exceptions. */
value xmem_ml_signals(value unit)
{
	caml_process_pending_actions();
	return Val_unit;
}

value xmem_ml_now(value unit)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return Val_long(now.tv_sec * 1000000000L + now.tv_nsec);
}
