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

static void drop_buffer(void *handle)
{
	if (!handle)
		return;
	xmem_release(handle);
	atomic_fetch_sub(&live, 1);
}

/*
 * The handle that this thread has made last, until a block has it. If a signal has come meanwhile,
 * its function runs before that. The function's exception would lose the handle, so Managed.made
 * drops the handle then.
 */
static _Thread_local struct {
	void *handle;
	enum kind kind;
} unclaimed;

void *xmem_ml_note(int kind, void *handle)
{
	unclaimed.handle = handle;
	unclaimed.kind = kind;
	return handle;
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
	drop_buffer(it->handle);
	free(it);
}

static void finalise(value block)
{
	struct managed *it;

	if (atomic_load(&BLOCK(block)->handle))
		drop_buffer(atomic_exchange(&BLOCK(block)->handle, NULL));
	if (!atomic_load(&BLOCK(block)->shared))
		return;
	it = atomic_exchange(&BLOCK(block)->shared, NULL);
	if (it)
		managed_drop(it);
}

static struct managed *new_managed(enum kind kind, void *handle, long users)
{
	struct managed *it = malloc(sizeof(*it));

	if (!it)
		return NULL;
	it->kind = kind;
	atomic_init(&it->users, users);
	atomic_init(&it->handle, handle);
	return it;
}

struct managed *managed_share(value block)
{
	struct managed *it = atomic_load(&BLOCK(block)->shared);
	void *handle;

	if (it) {
		atomic_fetch_add(&it->users, 1);
		return it;
	}
	handle = atomic_exchange(&BLOCK(block)->handle, NULL);
	if (!handle)
		return NULL;
	it = new_managed(BUFFER, handle, 2);
	if (it)
		atomic_store(&BLOCK(block)->shared, it);
	else
		atomic_store(&BLOCK(block)->handle, handle);
	return it;
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

value xmem_ml_claim(value unit)
{
	unclaimed.handle = NULL;
	return Val_unit;
}

value xmem_ml_drop_unclaimed(value unit)
{
	void *handle = unclaimed.handle;
	struct managed *it;

	unclaimed.handle = NULL;
	if (!handle)
		return Val_unit;
	if (unclaimed.kind == BUFFER) {
		xmem_release(handle);
		return Val_unit;
	}
	it = new_managed(unclaimed.kind, handle, 1);
	if (it)
		managed_drop(it);
	return Val_unit;
}

/*
 * The bytes of which the collector has to know. Shared memory of the CPU is the pool's: its slots,
 * not its bytes, run out, and the policy for slots looks after them. Metadata says where published
 * contents are, and acquire resets it; @look is set for other handles.
 */
static size_t bytes_of(struct xmem_buffer *buffer, bool look)
{
	const struct xmem_metadata *metadata = xmem_metadata_ptr(buffer);
	struct xmem_buffer_info info = XMEM_INIT(info);

	if (!look && metadata && metadata->storage == XMEM_STORAGE_CPU)
		return 0;
	if (xmem_buffer_stat(buffer, &info) || !(info.flags & XMEM_BUFFER_CUDA))
		return 0;
	return info.capacity;
}

value xmem_ml_manage(value kind, intnat handle, value look)
{
	struct managed *it = NULL;
	bool is_buffer = Int_val(kind) == BUFFER;
	size_t bytes = is_buffer ? bytes_of((void *)handle, Bool_val(look)) : 0;
	value block;

	if (!is_buffer) {
		it = new_managed(Int_val(kind), (void *)handle, 1);
		if (!it)
			caml_raise_out_of_memory();
	}
	block = bytes ? caml_alloc_custom_mem(&operations, sizeof(struct block), bytes) :
		caml_alloc_custom(&operations, sizeof(struct block), 0, 1);
	atomic_init(&BLOCK(block)->handle, is_buffer ? (void *)handle : NULL);
	atomic_init(&BLOCK(block)->shared, it);
	if (is_buffer)
		atomic_fetch_add(&live, 1);
	unclaimed.handle = NULL;
	return block;
}

value xmem_ml_manage_byte(value kind, value handle, value look)
{
	return xmem_ml_manage(kind, Nativeint_val(handle), look);
}

/* The program drops the handle now. A view of the contents keeps its hold. */
value xmem_ml_drop(value block)
{
	finalise(block);
	return Val_unit;
}

/* C has taken the handle. No view shows the contents. */
value xmem_ml_gone(value block)
{
	struct managed *it = atomic_load(&BLOCK(block)->shared);

	if (atomic_exchange(it ? &it->handle : &BLOCK(block)->handle, NULL))
		atomic_fetch_sub(&live, 1);
	if (it)
		finalise(block);
	return Val_unit;
}

value xmem_ml_live(value unit)
{
	return Val_long(atomic_load(&live));
}

value xmem_ml_pending(value unit)
{
	return Val_bool(atomic_load(&later) || callbacks_noted());
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
