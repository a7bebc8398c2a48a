// SPDX-License-Identifier: MIT
/* Functions for both ends of the fast path of messages; see torch_message.h. */
#include "torch_message.h"

#include <string.h>

static const char *const given_names[XT_GIVEN] = {
	[XT_REDUCE] = "reduce", [XT_REBUILD] = "rebuild", [XT_FUNCTION] = "function",
	[XT_FINISH] = "finish", [XT_ADOPT] = "adopt", [XT_FUNCTION_MODES] = "function_modes",
	[XT_DISPATCH_MODES] = "dispatch_modes", [XT_TENSOR] = "tensor",
	[XT_PARAMETERS] = "parameter", [XT_STRIDED] = "strided", [XT_TYPES] = "types",
	[XT_UNTYPED] = "untyped", [XT_HAS_NAMES] = "has_names",
	[XT_FROM_CAPSULE] = "from_capsule", [XT_LOCK] = "lock",
};

static const char *const words[XT_WORDS] = {
	[XT_W_ACQUIRE] = "acquire", [XT_W_RELEASE] = "release",
	[XT_W_BACKWARD_HOOKS] = "_backward_hooks",
	[XT_W_DATA_PTR] = "data_ptr", [XT_W_DTYPE] = "dtype", [XT_W_IS_CONJ] = "is_conj",
	[XT_W_IS_LEAF] = "is_leaf", [XT_W_IS_NEG] = "is_neg", [XT_W_IS_NESTED] = "is_nested",
	[XT_W_LAYOUT] = "layout", [XT_W_REQUIRES_GRAD] = "requires_grad", [XT_W_SIZE] = "size",
	[XT_W_STORAGE_OFFSET] = "storage_offset", [XT_W_STRIDE] = "stride",
	[XT_W_WEAK_REF] = "_weak_ref",
};

/* The name of the pool that this process has installed; "": none. xt_lock guards it. */
static char installed[sizeof(((struct xt_pool *)NULL)->name)];

int xt_messages_make(struct xt_messages *is)
{
	int i;

	for (i = 0; i < XT_WORDS; i++) {
		is->words[i] = PyUnicode_InternFromString(words[i]);
		if (!is->words[i])
			return -1;
	}
	return 0;
}

int xt_messages_traverse(struct xt_messages *is, visitproc visit, void *arg)
{
	int i;

	for (i = 0; i < XT_GIVEN; i++)
		Py_VISIT(is->given[i]);
	for (i = 0; i < XT_WEAKS; i++)
		Py_VISIT(is->weak[i]);
	Py_VISIT(is->weak_type);
	for (i = 0; i < XT_POOLS; i++) {
		Py_VISIT(is->known[i]);
		Py_VISIT(is->remember[i]);
	}
	return 0;
}

void xt_messages_clear(struct xt_messages *is)
{
	int i;

	for (i = 0; i < XT_GIVEN; i++)
		Py_CLEAR(is->given[i]);
	for (i = 0; i < XT_WEAKS; i++)
		Py_CLEAR(is->weak[i]);
	Py_CLEAR(is->weak_type);
	for (i = 0; i < XT_POOLS; i++) {
		Py_CLEAR(is->known[i]);
		Py_CLEAR(is->remember[i]);
	}
	for (i = 0; i < XT_WORDS; i++)
		Py_CLEAR(is->words[i]);
}

PyObject *xt_say(struct xt_messages *is, PyObject *object, enum xt_word word)
{
	return PyObject_CallMethodObjArgs(object, is->words[word], NULL);
}

/* How many modes of a kind there are, or -1 and an exception. */
static int count(PyObject *modes)
{
	PyObject *number = PyObject_CallNoArgs(modes);
	long there = number ? PyLong_AsLong(number) : -1;

	Py_XDECREF(number);
	return there;
}

int xt_may_be_short(struct xt_messages *is)
{
	int modes = count(is->given[XT_FUNCTION_MODES]);

	if (!modes)
		modes = count(is->given[XT_DISPATCH_MODES]);
	return modes < 0 ? -1 : !modes;
}

bool xt_is_installed(const char *name)
{
	bool same;

	pthread_mutex_lock(&xt_lock);
	same = name ? !strcmp(installed, name) : *installed;
	pthread_mutex_unlock(&xt_lock);
	return same;
}

bool xt_is_whole(const int64_t *shape, const int64_t *strides, Py_ssize_t dimensions,
		 int64_t item, int64_t bytes)
{
	int64_t stride = 1;
	Py_ssize_t i;

	if (!item || bytes % item)
		return false;
	for (i = dimensions - 1; i >= 0; i--) {
		if (shape[i] <= 0 || strides[i] != stride || shape[i] > bytes / stride)
			return false;
		stride *= shape[i];
	}
	return stride == bytes / item;
}

Py_ssize_t xt_numbers(PyObject *tuple, int64_t *ret, Py_ssize_t room)
{
	Py_ssize_t count = PyTuple_Size(tuple), i;

	for (i = 0; i < count && i < room; i++) {
		ret[i] = PyLong_AsLongLong(PyTuple_GetItem(tuple, i));
		if (ret[i] == -1 && PyErr_Occurred())
			return -1;
	}
	return count;
}

/* ---- what is told ---- */

/* A child by fork calls this again, with a lock of its own. */
PyObject *xt_call_set_messages(PyObject *module, PyObject *given)
{
	struct xt_messages *is = &((struct xt_state *)PyModule_GetState(module))->messages;
	PyObject *item, *before;
	int i;

	if (!PyDict_Check(given)) {
		PyErr_SetString(PyExc_TypeError, "set_messages wants a dict");
		return NULL;
	}
	for (i = 0; i < XT_GIVEN; i++)
		if (!PyDict_GetItemString(given, given_names[i]))
			return PyErr_Format(PyExc_KeyError, "set_messages wants '%s'",
					    given_names[i]);
	for (i = 0; i < XT_GIVEN; i++) {
		item = PyDict_GetItemString(given, given_names[i]);
		before = is->given[i];
		is->given[i] = Py_NewRef(item);
		Py_XDECREF(before);
	}
	Py_RETURN_NONE;
}

PyObject *xt_call_set_known(PyObject *module, PyObject *args)
{
	struct xt_messages *is = &((struct xt_state *)PyModule_GetState(module))->messages;
	PyObject *known, *remember, *before;
	int number;

	if (!PyArg_ParseTuple(args, "iO!O:set_known", &number, &PyDict_Type, &known, &remember))
		return NULL;
	if (!xt_pool_at(number))
		return PyErr_Format(PyExc_ValueError, "this process has no pool number %d",
				    number);
	before = is->known[number];
	is->known[number] = Py_NewRef(known);
	Py_XDECREF(before);
	before = is->remember[number];
	is->remember[number] = Py_NewRef(remember);
	Py_XDECREF(before);
	Py_RETURN_NONE;
}

PyObject *xt_call_set_installed(PyObject *module, PyObject *name)
{
	const char *text = name == Py_None ? "" : PyUnicode_AsUTF8AndSize(name, NULL);

	if (!text)
		return NULL;
	pthread_mutex_lock(&xt_lock);
	/* No pool that a message can name has a longer name. */
	strncpy(installed, text, sizeof(installed) - 1);
	pthread_mutex_unlock(&xt_lock);
	Py_RETURN_NONE;
}
