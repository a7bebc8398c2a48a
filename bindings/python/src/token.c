// SPDX-License-Identifier: MIT
/*
 * Pool: the calls that name a token, or a slot: getting a buffer, references that are set aside for
 * who gets it, and taking a publication back.
 */
#include "core.h"

/* ---- getting ---- */

typedef struct xmem_buffer *get_function(struct xmem_pool *pool, uint64_t number);

static struct xmem_buffer *get_slot(struct xmem_pool *pool, uint64_t number)
{
	return xmem_get_slot(pool, number);
}

/* The GIL is released, since a get that takes a claim asks the host. */
static struct xmem_buffer *get_once(struct xp_pool *self, get_function *call, uint64_t number)
{
	struct xmem_pool *pool = xp_pool_begin(self);
	struct xmem_buffer *buffer;

	if (!pool)
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	buffer = call(pool, number);
	xp_pool_end(self);
	Py_END_ALLOW_THREADS
	return buffer;
}

static PyObject *get(PyObject *object, get_function *call, uint64_t number)
{
	struct xp_pool *self = (struct xp_pool *)object;
	struct xmem_buffer *buffer;

	do {
		buffer = get_once(self, call, number);
		if (buffer)
			return xp_guard_new(self->state, object, buffer, XP_READING);
	} while (!PyErr_Occurred() && xp_again(self->state, XMEM_FOREVER, NULL));
	return NULL;
}

PyObject *xp_pool_get(PyObject *self, PyObject *token)
{
	uint64_t number;

	return xp_token(token, &number) ? get(self, xmem_get, number) : NULL;
}

PyObject *xp_pool_get_slot(PyObject *self, PyObject *slot)
{
	uint32_t number;

	return xp_u32(slot, &number) ? get(self, get_slot, number) : NULL;
}

/* ---- references, and taking back ---- */

static PyObject *with_token(PyObject *object, PyObject *token,
			    int (*call)(struct xmem_pool *pool, uint64_t token))
{
	struct xp_pool *self = (struct xp_pool *)object;
	struct xmem_pool *pool;
	uint64_t number;
	int err;

	if (!xp_token(token, &number))
		return NULL;
	do {
		pool = xp_pool_begin(self);
		if (!pool)
			return NULL;
		Py_BEGIN_ALLOW_THREADS
		err = call(pool, number);
		xp_pool_end(self);
		Py_END_ALLOW_THREADS
		if (err >= 0)
			Py_RETURN_NONE;
	} while (xp_again(self->state, XMEM_FOREVER, NULL));
	return NULL;
}

PyObject *xp_pool_add_ref(PyObject *self, PyObject *token)
{
	return with_token(self, token, xmem_add_ref);
}

PyObject *xp_pool_drop_ref(PyObject *self, PyObject *token)
{
	return with_token(self, token, xmem_drop_ref);
}

PyObject *xp_pool_void_claims(PyObject *self, PyObject *token)
{
	return with_token(self, token, xmem_void_claims);
}

PyObject *xp_pool_claims(PyObject *object, PyObject *token)
{
	struct xp_pool *self = (struct xp_pool *)object;
	struct xmem_pool *pool;
	uint64_t number;
	int claims;

	if (!xp_token(token, &number))
		return NULL;
	pool = xp_pool_begin(self);
	if (!pool)
		return NULL;
	claims = xmem_claims(pool, number);
	xp_pool_end(self);
	return claims < 0 ? xp_raise(self->state) : PyLong_FromLong(claims);
}

PyObject *xp_pool_retract(PyObject *self, PyObject *token)
{
	return with_token(self, token, xmem_retract);
}
