// SPDX-License-Identifier: MIT
/*
 * The receiver's end of the fast path: a message becomes a tensor. The fast path is for a storage
 * that is not alive in this process, if nothing fails. Otherwise the message takes the slow path
 * from the start, which raises the errors.
 */
#include "torch_message.h"

#include <string.h>

struct letter {
	struct xt_head head;
	int64_t shape[XT_DIMENSIONS];
	char name[sizeof(((struct xt_pool *)NULL)->name)];
	int pool;		/* the number of the pool */
	bool refused;		/* the library has not given its buffer, or its reference */
};

/* Can the message be read, and does it name a pool that exists here? */
static bool understand(struct letter *letter, const char *text, size_t bytes)
{
	size_t shape, name;

	if (bytes < sizeof(letter->head))
		return false;
	memcpy(&letter->head, text, sizeof(letter->head));
	shape = letter->head.dimensions * sizeof(*letter->shape);
	if (shape > sizeof(letter->shape) || bytes < sizeof(letter->head) + shape)
		return false;
	memcpy(letter->shape, text + sizeof(letter->head), shape);
	name = bytes - sizeof(letter->head) - shape;
	if (name >= sizeof(letter->name))
		return false;
	memcpy(letter->name, text + bytes - name, name);
	letter->name[name] = '\0';
	letter->pool = xt_pool_named(letter->name);
	return letter->pool >= 0;
}

/* Is a tensor of the letter's shape and type all of the buffer? */
static bool fits(const struct letter *letter, const struct xt_hold *hold)
{
	int64_t strides[XT_DIMENSIONS], stride = 1;
	int i;

	for (i = letter->head.dimensions - 1; i >= 0; i--) {
		strides[i] = stride;
		if (__builtin_mul_overflow(stride, letter->shape[i], &stride))
			return false;
	}
	return xt_is_whole(letter->shape, strides, letter->head.dimensions,
			   (letter->head.type & 0xff) / 8, hold->bytes);
}

/* The tensor in a buffer that this process did not have. NULL with an exception. */
static PyObject *get(struct xt_messages *is, PyObject *module, struct letter *letter)
{
	struct xt_hold *hold = xt_get(module, letter->pool, letter->head.token);
	PyObject *capsule, *tensor;

	letter->refused = !hold && xt_is_error(module);
	if (!hold)
		return NULL;
	if (!fits(letter, hold)) {
		xt_hold_put(hold);
		PyErr_SetString(PyExc_ValueError, "the message of a tensor does not fit its "
				"buffer");
		return NULL;
	}
	xt_hold_describe(hold, letter->head.type, letter->head.dimensions, letter->shape);
	capsule = xt_capsule(&hold->dlpack);
	tensor = capsule ? PyObject_CallFunctionObjArgs(is->given[XT_FROM_CAPSULE], capsule,
							 NULL) : NULL;
	Py_XDECREF(capsule);
	return tensor;
}

/* Remember the tensor's storage. @before: the token was known before. 0, or -1 and an exception. */
static int remember(struct xt_messages *is, const struct letter *letter, PyObject *token,
		    bool before, PyObject *tensor)
{
	PyObject *storage, *call, *done = NULL;
	int err = -1;

	storage = PyObject_CallFunctionObjArgs(is->given[XT_UNTYPED], tensor, NULL);
	if (!storage)
		return -1;
	if (before) {
		done = xt_weak_of(is, storage);
		if (done)
			err = PyDict_SetItem(is->known[letter->pool], token, done);
	} else {
		call = Py_NewRef(is->remember[letter->pool]);
		done = PyObject_CallFunctionObjArgs(call, token, storage, NULL);
		err = done ? 0 : -1;
		Py_DECREF(call);
	}
	Py_XDECREF(done);
	Py_DECREF(storage);
	return err;
}

/* A new reference to an item of a dict. NULL, perhaps with an exception: there is none. */
static PyObject *look_up(PyObject *dict, PyObject *key)
{
#ifdef Py_GIL_DISABLED
	PyObject *found;

	PyDict_GetItemRef(dict, key, &found);
	return found;
#else
	return Py_XNewRef(PyDict_GetItemWithError(dict, key));
#endif
}

/* Under the lock. NULL without an exception: the storage is alive, or nobody knows of the pool. */
static PyObject *find(struct xt_messages *is, PyObject *module, struct letter *letter,
		      PyObject *token)
{
	PyObject *known = is->known[letter->pool], *ref, *tensor;
	int expired;

	if (!known)
		return NULL;
	ref = look_up(known, token);
	if (!ref && PyErr_Occurred())
		return NULL;
	expired = ref ? xt_weak_is_expired(is, ref) : 1;
	tensor = expired > 0 ? get(is, module, letter) : NULL;
	if (tensor && remember(is, letter, token, ref, tensor) < 0)
		Py_CLEAR(tensor);
	Py_XDECREF(ref);
	return tensor;
}

/* As get_tensor_locked, by a thread that does not have the lock yet. */
static PyObject *find_locked(struct xt_messages *is, PyObject *module, struct letter *letter)
{
	PyObject *lock = Py_NewRef(is->given[XT_LOCK]), *token, *tensor = NULL, *said;
	PyObject *type, *value, *trace;

	token = PyLong_FromUnsignedLongLong(letter->head.token);
	said = token ? xt_say(is, lock, XT_W_ACQUIRE) : NULL;
	if (said) {
		Py_DECREF(said);
		tensor = find(is, module, letter, token);
		PyErr_Fetch(&type, &value, &trace);
		said = xt_say(is, lock, XT_W_RELEASE);
		Py_XDECREF(said);
		PyErr_Restore(type, value, trace);
	}
	Py_XDECREF(token);
	Py_DECREF(lock);
	return tensor;
}

/* Apply the flags of the message, and adopt its pool. The reference to the tensor is consumed. */
static PyObject *finish(struct xt_messages *is, const struct letter *letter, PyObject *tensor)
{
	int flags = letter->head.flags;
	PyObject *said;

	if (flags & XT_KEPT || !xt_is_installed(letter->name)) {
		said = PyObject_CallFunction(is->given[XT_ADOPT], "sO", letter->name,
					     flags & XT_KEPT ? Py_False : Py_True);
		if (!said)
			Py_CLEAR(tensor);
		Py_XDECREF(said);
	}
	if (!tensor || !flags)
		return tensor;
	said = PyObject_CallFunction(is->given[XT_FINISH], "Oi", tensor, flags);
	Py_DECREF(tensor);
	return said;
}

PyObject *xt_call_rebuild(PyObject *module, PyObject *message)
{
	struct xt_messages *is = &((struct xt_state *)PyModule_GetState(module))->messages;
	struct letter letter = { .refused = false };
	PyObject *tensor = NULL;
	Py_ssize_t bytes;
	char *text;

	if (!is->given[XT_REBUILD]) {
		PyErr_SetString(PyExc_RuntimeError, "set_messages() has not been called");
		return NULL;
	}
	if (PyBytes_AsStringAndSize(message, &text, &bytes) < 0)
		return NULL;
	if (understand(&letter, text, bytes) && xt_may_be_short(is) > 0)
		tensor = find_locked(is, module, &letter);
	if (tensor)
		return finish(is, &letter, tensor);
	if (PyErr_Occurred()) {
		/*
		 * It is the exception of a signal handler, for example, or the reference has been
		 * taken.
		 */
		if (!letter.refused)
			return NULL;
		PyErr_Clear();
	}
	return PyObject_CallFunctionObjArgs(is->given[XT_REBUILD], message, NULL);
}
