// SPDX-License-Identifier: MIT
/*
 * Bigarrays of contents. A view, its parts and its reshaped forms share a proxy, which is a user of
 * the handle: while one of them lives, the contents stay. A program that releases the buffer has no
 * use for the view any more, so the view becomes empty then, and only its parts keep the contents.
 */
#include <stdlib.h>

#include <caml/bigarray.h>
#include <caml/fail.h>
#include <caml/version.h>

#include "managed.h"

struct view {
	struct caml_ba_proxy proxy;		/* counts the arrays; first, so that it is both */
	struct managed *of;
};

/* One array less. The last one lets the contents go. */
static void finalise(value array)
{
	struct view *view = (struct view *)Caml_ba_array_val(array)->proxy;

	if (!view)
		return;
#if OCAML_VERSION >= 50000
	if (atomic_fetch_sub(&view->proxy.refcount, 1) > 1)
		return;
#else
	if (--view->proxy.refcount > 0)
		return;
#endif
	managed_drop(view->of);
	free(view);
}

/* Those of any Bigarray but the finaliser. caml_ba_sub and caml_ba_reshape hand them on. */
static struct custom_operations operations;

/* Once, before there are views. */
value xmem_ml_prepare_views(value unit)
{
	operations = *Custom_ops_val(caml_ba_alloc_dims(CAML_BA_CHAR, 1, NULL, (intnat)0));
	operations.finalize = finalise;
	return Val_unit;
}

/*
 * @address: of the first element.
 * @flags: the number of the kind; the layout is C's.
 * @bytes: memory that this process has for the view alone.
 */
value xmem_ml_view(value block, value address, value flags, value shape, value bytes)
{
	CAMLparam2(block, shape);
	struct managed *of = managed_share(block);
	mlsize_t i, rank = Wosize_val(shape);
	struct caml_ba_array *array;
	struct view *view;
	value it;

	view = calloc(1, sizeof(*view));
	if (!of || !view) {
		if (of)
			managed_drop(of);
		free(view);
		caml_raise_out_of_memory();
	}
	view->proxy.refcount = 1;
	view->proxy.data = (void *)Nativeint_val(address);
	view->of = of;
	it = caml_alloc_custom_mem(&operations, SIZEOF_BA_ARRAY + rank * sizeof(intnat),
				   Long_val(bytes));
	array = Caml_ba_array_val(it);
	array->data = view->proxy.data;
	array->num_dims = rank;
	array->flags = Int_val(flags) | CAML_BA_C_LAYOUT | CAML_BA_MAPPED_FILE;
	array->proxy = &view->proxy;
	for (i = 0; i < rank; i++)
		array->dim[i] = Long_val(Field(shape, i));
	CAMLreturn(it);
}

/* Returns: how many parts and reshaped forms of the view live. */
value xmem_ml_view_parts(value array)
{
	struct caml_ba_proxy *proxy = Caml_ba_array_val(array)->proxy;

	return Val_long(proxy ? proxy->refcount - 1 : 0);
}

/* Now every index is out of bounds. An array of rank 0 has no bounds, and stays as it is. */
value xmem_ml_view_empty(value array)
{
	struct caml_ba_array *it = Caml_ba_array_val(array);
	intnat i;

	if (!it->num_dims)
		return Val_unit;
	for (i = 0; i < it->num_dims; i++)
		it->dim[i] = 0;
	finalise(array);
	it->proxy = NULL;
	it->data = NULL;
	/* OCaml makes no proxy of its own for parts of memory that is not managed. */
	it->flags = (it->flags & ~CAML_BA_MANAGED_MASK) | CAML_BA_EXTERNAL;
	return Val_unit;
}
