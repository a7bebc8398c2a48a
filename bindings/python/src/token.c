// SPDX-License-Identifier: MIT
/*
 * Pool: the calls that name contents, by their token or by the index of their slot: getting a
 * buffer, references that are set aside for who gets it, and taking a publication back.
 *
 * A number below 65536 is an index, for no token is so small: it means what is in that slot at the
 * moment of the call.
 */
#include "core.h"

#define TRIES	64		/* to get what is in a slot, while its contents change each time */

static bool is_index(uint64_t number)
{
	return number < 65536;
}

/*
 * The token that @number is, or that of the contents of that slot. 0, or -errno of the library's;
 * 1: there are none.
 */
static int token_of(struct xmem_pool *pool, uint64_t number, uint64_t *ret)
{
	struct xmem_slot_info info = { .size = sizeof(info), .token = number };
	int err = is_index(number) ? xmem_pool_slot_info(pool, number, &info) : 0;

	*ret = info.token;
	return err || *ret ? err : 1;
}

static PyObject *refuse_empty(struct xp_pool *self, uint64_t number)
{
	return xp_raise_errno(self->state, ESTALE, "there is nothing in slot %d: its buffer is "
			      "free, or it is being written", (int)number);
}

/* ---- getting ---- */

/* Without the GIL, since a get that takes a claim asks the host. *ret_empty: nothing is there. */
static struct xmem_buffer *get(struct xmem_pool *pool, uint64_t number, bool *ret_empty)
{
	struct xmem_buffer *buffer;
	uint64_t token;
	int tries, err;

	*ret_empty = false;
	if (!is_index(number))
		return xmem_get(pool, number);
	for (tries = 0; tries < TRIES; tries++) {
		buffer = xmem_get_slot(pool, number);
		if (buffer || xmem_peek_last_error(NULL) != -ERANGE)
			return buffer;
		err = token_of(pool, number, &token);	/* nobody has set anything aside */
		*ret_empty = err == 1;
		if (err)
			return NULL;
		buffer = xmem_get(pool, token);
		if (buffer || xmem_peek_last_error(NULL) != -ESTALE)
			return buffer;
	}
	return NULL;
}

PyObject *xp_pool_get(PyObject *object, PyObject *given)
{
	struct xp_pool *self = (struct xp_pool *)object;
	struct xmem_buffer *buffer;
	struct xmem_pool *pool;
	uint64_t number;
	bool empty;

	if (!xp_token(given, &number))
		return NULL;
	do {
		pool = xp_pool_begin(self);
		if (!pool)
			return NULL;
		Py_BEGIN_ALLOW_THREADS
		buffer = get(pool, number, &empty);
		xp_pool_end(self);
		Py_END_ALLOW_THREADS
		if (buffer)
			return xp_guard_new(self->state, object, buffer, XP_READING);
		if (empty)
			return refuse_empty(self, number);
	} while (xp_again(self->state, XMEM_FOREVER, NULL));
	return NULL;
}

/* ---- references, and taking back ---- */

typedef int token_function(struct xmem_pool *pool, uint64_t token);

/* Returns the result of @call, which is not negative, or -1 with an exception. */
static int call_by(PyObject *object, PyObject *given, token_function *call)
{
	struct xp_pool *self = (struct xp_pool *)object;
	struct xmem_pool *pool;
	uint64_t number, token;
	int empty, result = -1;

	if (!xp_token(given, &number))
		return -1;
	do {
		pool = xp_pool_begin(self);
		if (!pool)
			return -1;
		Py_BEGIN_ALLOW_THREADS
		empty = token_of(pool, number, &token);
		if (!empty)
			result = call(pool, token);
		xp_pool_end(self);
		Py_END_ALLOW_THREADS
		if (!empty && result >= 0)
			return result;
		if (empty == 1)
			refuse_empty(self, number);
	} while (empty != 1 && xp_again(self->state, XMEM_FOREVER, NULL));
	return -1;
}

static PyObject *none_by(PyObject *self, PyObject *given, token_function *call)
{
	return call_by(self, given, call) < 0 ? NULL : Py_NewRef(Py_None);
}

PyObject *xp_pool_add_ref(PyObject *self, PyObject *number)
{
	return none_by(self, number, xmem_add_ref);
}

PyObject *xp_pool_release(PyObject *self, PyObject *number)
{
	return none_by(self, number, xmem_drop_ref);
}

PyObject *xp_pool_void_claims(PyObject *self, PyObject *number)
{
	return none_by(self, number, xmem_void_claims);
}

PyObject *xp_pool_retract(PyObject *self, PyObject *number)
{
	return none_by(self, number, xmem_retract);
}

PyObject *xp_pool_claims(PyObject *self, PyObject *number)
{
	int claims = call_by(self, number, xmem_claims);

	return claims < 0 ? NULL : PyLong_FromLong(claims);
}

/* ---- guards by number ---- */

/*
 * A program that names a buffer to its pool has asked a guard for the number. So that guard is
 * found again: which of them set_ref_count() of the pool counts in. The pool does not keep it.
 */
int xp_guard_note_number(struct xp_guard *self, struct xmem_buffer *buffer)
{
	PyObject *slot, *ref;
	int err = -1;

	if (!self->pool || !PyObject_TypeCheck(self->pool, self->state->pool))
		return 0;
	slot = PyLong_FromLong(xmem_slot(buffer));
	ref = slot ? PyWeakref_NewRef((PyObject *)self, NULL) : NULL;
	if (ref)
		err = PyDict_SetItem(((struct xp_pool *)self->pool)->numbered, slot, ref);
	Py_XDECREF(ref);
	Py_XDECREF(slot);
	return err;
}

PyObject *xp_pool_get_numbered(PyObject *self, void *unused)
{
	return Py_NewRef(((struct xp_pool *)self)->numbered);
}
