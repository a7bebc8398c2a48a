// SPDX-License-Identifier: MIT
/*
 * The sender's end of the fast path: a tensor becomes a message. It uses a reference that was set
 * aside ahead (torch_offer.c), so it makes no request and does not wait. Every other tensor takes
 * the slow path, which raises the errors. The contents of a guard that is being written are in no
 * hold.
 */
#include "torch_message.h"

#include <string.h>

struct message {
	struct xt_head head;
	int64_t shape[XT_DIMENSIONS];
	char name[sizeof(((struct xt_pool *)NULL)->name)];
};

/* The truth of a bool, whose reference is consumed. -1: an exception. */
static int truth(PyObject *object)
{
	int is_true = object ? PyObject_IsTrue(object) : -1;

	Py_XDECREF(object);
	return is_true;
}

static int attribute(struct xt_messages *is, PyObject *tensor, enum xt_word word)
{
	return truth(PyObject_GetAttr(tensor, is->words[word]));
}

/* Is the tensor fully described by its memory, shape, type and flags? Or -1. */
static int is_plain(struct xt_messages *is, PyObject *tensor, uint8_t *flags)
{
	int grad, leaf, names, neg;

	if (attribute(is, tensor, XT_W_IS_NESTED) || attribute(is, tensor, XT_W_BACKWARD_HOOKS))
		return PyErr_Occurred() ? -1 : 0;
	names = is->given[XT_HAS_NAMES] == Py_None ? 0 :
		truth(PyObject_CallFunctionObjArgs(is->given[XT_HAS_NAMES], tensor, NULL));
	if (names)
		return names < 0 ? -1 : 0;
	grad = attribute(is, tensor, XT_W_REQUIRES_GRAD);
	leaf = grad > 0 ? attribute(is, tensor, XT_W_IS_LEAF) : 1;
	neg = truth(xt_say(is, tensor, XT_W_IS_NEG));
	if (grad < 0 || leaf < 0 || neg < 0)
		return -1;
	*flags |= (grad ? XT_REQUIRES_GRAD : 0) | (neg ? XT_NEG : 0);
	return leaf;
}

/* Is its type one of those of DLPack? Quantized types are not. Or -1. */
static int has_type(struct xt_messages *is, PyObject *tensor, struct message *message)
{
	PyObject *dtype = PyObject_GetAttr(tensor, is->words[XT_W_DTYPE]), *number;
	int conj;

	if (!dtype)
		return -1;
	number = PyDict_GetItemWithError(is->given[XT_TYPES], dtype);
	Py_DECREF(dtype);
	if (!number)
		return PyErr_Occurred() ? -1 : 0;
	message->head.type = PyLong_AsLong(number);
	if (message->head.type >> 8 != XT_DLPACK_COMPLEX)
		return 1;
	conj = truth(xt_say(is, tensor, XT_W_IS_CONJ));
	message->head.flags |= conj > 0 ? XT_CONJ : 0;
	return conj < 0 ? -1 : 1;
}

/* The numbers of a tuple, whose reference is consumed. */
static Py_ssize_t take_numbers(PyObject *tuple, int64_t *ret)
{
	Py_ssize_t count = tuple ? xt_numbers(tuple, ret, XT_DIMENSIONS) : -1;

	Py_XDECREF(tuple);
	return count;
}

/* Is the tensor all that lies in the buffer? Or -1. */
static int is_all(struct xt_messages *is, PyObject *tensor, size_t bytes, struct message *message)
{
	int64_t strides[XT_DIMENSIONS];
	Py_ssize_t dimensions, count;
	int moved;

	moved = truth(xt_say(is, tensor, XT_W_STORAGE_OFFSET));
	if (moved)
		return moved < 0 ? -1 : 0;
	dimensions = take_numbers(xt_say(is, tensor, XT_W_SIZE), message->shape);
	count = dimensions < 0 ? -1 : take_numbers(xt_say(is, tensor, XT_W_STRIDE), strides);
	if (count < 0)
		return -1;
	message->head.dimensions = dimensions;
	return dimensions <= XT_DIMENSIONS && count == dimensions &&
	       xt_is_whole(message->shape, strides, dimensions, (message->head.type & 0xff) / 8,
			   bytes);
}

/* (function, (message,)), for a pickler. */
static PyObject *tuple_of(struct xt_messages *is, const struct message *message)
{
	size_t shape = message->head.dimensions * sizeof(*message->shape);
	size_t name = strlen(message->name);
	char text[sizeof(*message)], *at = text;
	PyObject *bytes, *arguments, *both;

	at = (char *)memcpy(at, &message->head, sizeof(message->head)) + sizeof(message->head);
	at = (char *)memcpy(at, message->shape, shape) + shape;
	at = (char *)memcpy(at, message->name, name) + name;
	bytes = PyBytes_FromStringAndSize(text, at - text);
	arguments = bytes ? PyTuple_Pack(1, bytes) : NULL;
	both = arguments ? PyTuple_Pack(2, is->given[XT_FUNCTION], arguments) : NULL;
	Py_XDECREF(arguments);
	Py_XDECREF(bytes);
	return both;
}

/*
 * The hold of a tensor's storage, with a share for the caller; or NULL, perhaps with an exception.
 */
static struct xt_hold *hold_of(struct xt_messages *is, PyObject *tensor)
{
	PyObject *storage, *address = NULL;
	void *at = NULL;

	storage = PyObject_CallFunctionObjArgs(is->given[XT_UNTYPED], tensor, NULL);
	if (storage)
		address = xt_say(is, storage, XT_W_DATA_PTR);
	if (address)
		at = PyLong_AsVoidPtr(address);
	Py_XDECREF(address);
	Py_XDECREF(storage);
	return at ? xt_hold_find(at) : NULL;
}

static PyObject *reduce_held(struct xt_messages *is, PyObject *tensor, struct xt_hold *hold,
			     struct message *message)
{
	PyObject *both;

	if (hold->gpu || is_plain(is, tensor, &message->head.flags) <= 0 ||
	    has_type(is, tensor, message) <= 0 || is_all(is, tensor, hold->bytes, message) <= 0)
		return NULL;
	message->head.token = hold->token;
	memcpy(message->name, hold->pool->name, sizeof(message->name));
	message->head.flags |= xt_is_installed(NULL) ? 0 : XT_KEPT;
	both = tuple_of(is, message);
	if (both && !xt_hold_spend(hold))
		Py_CLEAR(both);
	return both;
}

/* NULL without an exception: the tensor takes the slow path. */
static PyObject *reduce(struct xt_messages *is, PyObject *tensor)
{
	struct message message = { 0 };
	struct xt_hold *hold = NULL;
	PyObject *layout, *both;

	if ((PyObject *)Py_TYPE(tensor) == is->given[XT_PARAMETERS])
		message.head.flags = XT_PARAMETER;
	else if ((PyObject *)Py_TYPE(tensor) != is->given[XT_TENSOR])
		return NULL;
	if (xt_may_be_short(is) <= 0)
		return NULL;
	layout = PyObject_GetAttr(tensor, is->words[XT_W_LAYOUT]);
	if (layout == is->given[XT_STRIDED])	/* other tensors have no storage */
		hold = hold_of(is, tensor);
	Py_XDECREF(layout);
	if (!hold)
		return NULL;
	both = reduce_held(is, tensor, hold, &message);
	xt_hold_put(hold);
	return both;
}

PyObject *xt_call_reduce(PyObject *module, PyObject *tensor)
{
	struct xt_messages *is = &((struct xt_state *)PyModule_GetState(module))->messages;
	PyObject *both;

	if (!is->given[XT_REDUCE]) {
		PyErr_SetString(PyExc_RuntimeError, "set_messages() has not been called");
		return NULL;
	}
	both = reduce(is, tensor);
	if (both)
		return both;
	PyErr_Clear();		/* torch refuses again on the slow path, which raises the error */
	return PyObject_CallFunctionObjArgs(is->given[XT_REDUCE], tensor, NULL);
}
