// SPDX-License-Identifier: MIT
/*
 * Pool: the part that parcels need. A parcel needs the handle until it is pickled or dropped, to
 * give back the reference that it has set aside. A program may close the pool before that: then
 * other calls no longer get the handle (xp_pool_begin), but it stays open for the parcels, and the
 * last of them closes it.
 */
#include "core.h"

#define TRIES	8	/* to give a reference back; a try fails only because of a signal */

PyObject *xp_pool_keep(PyObject *object, PyObject *unused)
{
	struct xp_pool *self = (struct xp_pool *)object;

	if (!xp_pool_begin(self))
		return NULL;
	__atomic_add_fetch(&self->shares, 1, __ATOMIC_RELAXED);
	xp_pool_end(self);
	Py_RETURN_NONE;
}

/* If the reference has expired or its buffer is gone, there is nothing to give back. */
static void drop_ref(struct xmem_pool *pool, uint64_t token)
{
	int tries;

	Py_BEGIN_ALLOW_THREADS
	for (tries = 0; tries < TRIES && xmem_drop_ref(pool, token) == -EINTR; tries++)
		;
	xmem_clear_last_error();
	Py_END_ALLOW_THREADS
}

PyObject *xp_pool_give_back(PyObject *object, PyObject *token)
{
	struct xp_pool *self = (struct xp_pool *)object;
	uint64_t number;

	if (!xp_token(token, &number))
		return NULL;
	if (number && self->forks == xp_forks)
		drop_ref(self->pool, number);
	xp_pool_put(self);
	Py_RETURN_NONE;
}
