// SPDX-License-Identifier: MIT
/*
 * What parcels need of their pool: its handle, until they are pickled or dropped, to give back what
 * they have set aside. A program may close the pool before that: then no other call finds the
 * handle any more (xp_pool_begin), and it stays for the parcels, of which the last one closes it.
 */
#include "core.h"

#define TRIES	8	/* to give a reference back; each fails only because a signal came */

PyObject *xp_pool_keep(PyObject *object, PyObject *unused)
{
	struct xp_pool *self = (struct xp_pool *)object;

	if (!xp_pool_begin(self))
		return NULL;
	__atomic_add_fetch(&self->shares, 1, __ATOMIC_RELAXED);
	xp_pool_end(self);
	Py_RETURN_NONE;
}

/* Its time may have passed, or its buffer be gone: then there is nothing to give back. */
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
