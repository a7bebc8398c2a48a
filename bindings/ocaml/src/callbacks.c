// SPDX-License-Identifier: MIT
/*
 * Functions of OCaml that the library calls. The library can call from any thread, with or without
 * the runtime lock, and in a finaliser, which may not run OCaml. So the trampolines only note the
 * calls, and the next call of the binding makes them.
 */
#include <stdlib.h>

#include "managed.h"

#include <caml/threads.h>

struct noted {
	struct noted *next;
	long id;				/* of the function, in callbacks.ml */
	struct xmem_limbo limbo;
};

static _Atomic(struct noted *) noted;		/* the newest first */

/* Without memory the call is lost; limbo is told of again when there is more. */
static void note(void *id, const struct xmem_limbo *limbo)
{
	struct noted *it = calloc(1, sizeof(*it));

	if (!it)
		return;
	it->id = (long)id;
	if (limbo)
		it->limbo = *limbo;
	it->next = atomic_load(&noted);
	while (!atomic_compare_exchange_weak(&noted, &it->next, it))
		;
}

static void limbo_trampoline(struct xmem_pool *pool, const struct xmem_limbo *limbo, void *id)
{
	note(id, limbo);
}

static void done_trampoline(void *id)
{
	note(id, NULL);
}

bool callbacks_noted(void)
{
	return atomic_load(&noted) != NULL;
}

/* Returns: the address of the calls that were noted, the newest first; 0: none. */
value xmem_ml_noted(value unit)
{
	return caml_copy_nativeint((intnat)atomic_exchange(&noted, NULL));
}

/* Returns: (next, id, limbo) of a call, whose memory callbacks_free frees. */
value xmem_ml_noted_one(value address)
{
	CAMLparam0();
	CAMLlocal3(next, limbo, all);
	struct noted *it = (void *)Nativeint_val(address);

	next = caml_copy_nativeint((intnat)it->next);
	limbo = caml_copy_nativeint((intnat)&it->limbo);
	all = caml_alloc_tuple(3);
	Store_field(all, 0, next);
	Store_field(all, 1, Val_long(it->id));
	Store_field(all, 2, limbo);
	CAMLreturn(all);
}

value xmem_ml_noted_free(value address)
{
	free((void *)Nativeint_val(address));
	return Val_unit;
}

/* @id: 0: no function. */
value xmem_ml_limbo_hook(value pool, value bytes, value count, value id)
{
	return Val_int(xmem_limbo_hook((void *)Nativeint_val(pool), Long_val(bytes),
				       Long_val(count), Long_val(id) ? limbo_trampoline : NULL,
				       (void *)Long_val(id)));
}

value xmem_ml_attach_cuda(value pool, value ptr, value bytes, value flags, value id)
{
	void *of = (void *)Nativeint_val(pool), *at = (void *)Nativeint_val(ptr);
	long size = Long_val(bytes), bits = Long_val(flags), number = Long_val(id);
	struct xmem_buffer *buffer;

	caml_release_runtime_system();
	buffer = xmem_attach_cuda(of, at, size, bits, number ? done_trampoline : NULL,
				  (void *)number);
	caml_acquire_runtime_system();
	return caml_copy_nativeint((intnat)xmem_ml_note(BUFFER, buffer));
}
