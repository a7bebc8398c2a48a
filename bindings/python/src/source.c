// SPDX-License-Identifier: MIT
/*
 * One description of contents that are copied into a guard; see source.h.
 */
#include "source.h"

#include <string.h>

/* ---- types ---- */

/*
 * Name the type as numpy does, or else as the struct module does, because the caller knows these
 * names.
 */
static int refuse(PyObject *from, const char *format, const char *why)
{
	PyObject *type = PyObject_GetAttrString(from, "dtype");

	if (type) {
		PyErr_Format(PyExc_TypeError, "elements of type %S are not copied: %s", type, why);
		Py_DECREF(type);
	} else {
		PyErr_Clear();
		PyErr_Format(PyExc_TypeError, "elements of type '%s' (as the struct module calls "
			     "it) are not copied: %s", format, why);
	}
	return -1;
}

/* The type for a letter of the struct module that means a number. 0: it is no such letter. */
static uint32_t number_of(char letter, Py_ssize_t item_bytes)
{
	static const struct { const char *letters; uint32_t code; } kinds[] = {
		{ "bhilqn", XMEM_DTYPE_CODE_INT }, { "cBHILQN", XMEM_DTYPE_CODE_UINT },
		{ "efd", XMEM_DTYPE_CODE_FLOAT }, { "?", XMEM_DTYPE_CODE_BOOL },
	};
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (strchr(kinds[i].letters, letter))
			return XMEM_DTYPE(kinds[i].code, item_bytes * 8, 1);
	return 0;
}

static bool is_foreign(char order)
{
	if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
		return order == '>' || order == '!';
	return order == '<';
}

/* Take the type of an element from a format; -1 with TypeError. */
static int take_format(struct xp_source *ret, PyObject *from, const char *format)
{
	const char *letter = format ? format : "B";
	bool foreign = is_foreign(*letter), many;

	if (*letter && strchr("@=<>!^|", *letter))
		letter++;
	many = *letter >= '0' && *letter <= '9';
	letter += strspn(letter, "0123456789");
	if (*letter == 'O')
		return refuse(from, format, "they are addresses of this process's objects");
	if (*letter == 'T' || (*letter && *letter != 'Z' && letter[1]))
		return refuse(from, format, "a record is no number; copy its fields into guards of "
			      "their own, or give the bytes, as memoryview(...).cast('B')");
	if (*letter == 'u' || *letter == 'w' || *letter == 'U')
		return refuse(from, format, "text is no number; encode it, and give the bytes");
	if (foreign && ret->item_bytes > 1 && !(*letter && strchr("spx", *letter)))
		return refuse(from, format, "they have the other byte order; convert them first, "
			      "as array.astype(array.dtype.newbyteorder('='))");
	ret->dtype = 0;
	if (*letter == 'Z' && (letter[1] == 'f' || letter[1] == 'd') && !letter[2])
		ret->dtype = XMEM_DTYPE(XMEM_DTYPE_CODE_COMPLEX, ret->item_bytes * 8, 1);
	else if (*letter && !many)
		ret->dtype = number_of(*letter, ret->item_bytes);
	if (ret->dtype || (*letter && strchr("spxgZ", *letter)))
		return 0;
	return refuse(from, format, "xmem does not know it");
}

/* ---- where it comes from ---- */

int xp_source_buffer(struct xp_source *ret, PyObject *from, const Py_buffer *view, uint32_t dtype)
{
	Py_ssize_t step = view->itemsize;
	int i;

	for (i = 0; view->suboffsets && i < view->ndim; i++) {
		if (view->suboffsets[i] >= 0) {
			PyErr_SetString(PyExc_BufferError, "this buffer is in pieces: copy it into "
					"one first");
			return -1;
		}
	}
	*ret = (struct xp_source){
		.data = view->buf, .dtype = dtype, .ndim = view->ndim,
		.item_bytes = view->itemsize, .bytes = view->len,
	};
	/* Arrays of ctypes lend no strides, although they are asked for them. */
	for (i = view->ndim; i--; step *= view->shape[i]) {
		ret->shape[i] = view->shape[i];
		ret->strides[i] = view->strides ? view->strides[i] : step;
	}
	return dtype ? 0 : take_format(ret, from, view->format);
}

/* -1 with BufferError: no memory has so many bytes. */
static int take_shape(struct xp_source *ret, const struct dl_tensor *tensor)
{
	bool empty = false, wrong = false;
	int64_t step = 1;
	int i;

	for (i = 0; i < tensor->ndim; i++)
		empty |= !tensor->shape[i];
	for (i = tensor->ndim; i--;) {
		ret->shape[i] = tensor->shape[i];
		wrong |= tensor->shape[i] < 0 ||
			 __builtin_mul_overflow(tensor->strides ? tensor->strides[i] : step,
						ret->item_bytes, &ret->strides[i]);
		wrong |= !empty &&
			 (__builtin_mul_overflow(step, tensor->shape[i], &step) ||
			  __builtin_mul_overflow(ret->bytes, tensor->shape[i], &ret->bytes));
	}
	if (empty)
		ret->bytes = 0;
	if (wrong)
		PyErr_SetString(PyExc_BufferError, "the shape of this tensor has a negative "
				"length, or more bytes than a process can have");
	return wrong ? -1 : 0;
}

int xp_source_tensor(struct xp_source *ret, const struct dl_tensor *tensor)
{
	int64_t bits = (int64_t)tensor->dtype.bits * tensor->dtype.lanes;
	bool on_cpu = tensor->device.type == DL_CPU || tensor->device.type == DL_CUDA_HOST;

	if (!on_cpu || !bits || bits % 8 || tensor->ndim < 0 || tensor->ndim > PyBUF_MAX_NDIM) {
		PyErr_SetString(PyExc_BufferError, on_cpu ? "the elements of this tensor are not "
				"whole bytes, or it has too many dimensions" : "this tensor is not "
				"in memory of the CPU: copy it there first");
		return -1;
	}
	*ret = (struct xp_source){
		.data = (const char *)tensor->data + tensor->byte_offset, .ndim = tensor->ndim,
		.dtype = XMEM_DTYPE(tensor->dtype.code, tensor->dtype.bits, tensor->dtype.lanes),
		.item_bytes = bits / 8, .bytes = bits / 8,
	};
	return take_shape(ret, tensor);
}

/* ---- how it lies ---- */

bool xp_source_is_dense(const struct xp_source *source)
{
	Py_ssize_t step = source->item_bytes;
	int i;

	for (i = source->ndim; i--; step *= source->shape[i])
		if (source->shape[i] > 1 && source->strides[i] != step)
			return !source->bytes;
	return true;
}

bool xp_source_overlaps(const struct xp_source *source, const void *data, size_t bytes)
{
	uintptr_t first = (uintptr_t)source->data, end = first + source->item_bytes;
	Py_ssize_t span;
	int i;

	if (!source->bytes || !bytes)
		return false;
	for (i = 0; i < source->ndim; i++) {
		span = (source->shape[i] - 1) * source->strides[i];
		if (span < 0)
			first += span;
		else
			end += span;
	}
	return first < (uintptr_t)data + bytes && (uintptr_t)data < end;
}
