// SPDX-License-Identifier: MIT
/*
 * Functions of the module xmem._torch on pools, on the buffers that storages lie in, and on what is
 * set for the whole process. Each one that may ask the host does so without the GIL. Storages are
 * told apart by their address; doc_torch.h says what each function is for.
 */
#include "torch_message.h"

/* (capsule, token, bytes) of a hold whose share becomes the capsule's. */
static PyObject *give(struct xt_hold *hold)
{
	unsigned long long token = hold->token;
	Py_ssize_t bytes = hold->bytes;
	PyObject *capsule = xt_capsule(&hold->dlpack);

	return capsule ? Py_BuildValue("NKn", capsule, token, bytes) : NULL;
}

/* ---- pools ---- */

static struct xt_pool *pool_at(int number)
{
	struct xt_pool *pool = xt_pool_at(number);

	if (!pool)
		PyErr_Format(PyExc_ValueError, "this process has no pool number %d", number);
	return pool;
}

/* The pool, if it can still be used; NULL with an exception. */
static struct xt_pool *live_pool_at(PyObject *module, int number)
{
	struct xt_pool *pool = pool_at(number);

	if (!pool || !pool->gone || pool->handle)
		return pool;
	xt_raise_errno(module, ENOTCONN, "the host of this pool had gone when this process was "
		       "forked");
	return NULL;
}

PyObject *xt_call_join(PyObject *module, PyObject *args)
{
	struct xmem_pool_options options = {
		.size = sizeof(options), .flags = XMEM_OPEN_WRITER | XMEM_OPEN_SHARES,
	};
	unsigned long long demand, cache;
	long long cache_ns;
	struct xt_pool *pool;
	const char *name;
	int existing;

	if (!PyArg_ParseTuple(args, "spIIKKL:join", &name, &existing, &options.slots,
			      &options.clients, &demand, &cache, &cache_ns))
		return NULL;
	options.flags |= existing ? XMEM_OPEN_EXISTING : 0;
	options.demand_bytes = demand;
	options.cache_bytes = cache;
	options.cache_ns = cache_ns;
	do {
		xmem_clear_last_error();
		Py_BEGIN_ALLOW_THREADS
		pool = xt_pool_join(name, &options);
		Py_END_ALLOW_THREADS
		if (pool)
			return PyLong_FromLong(xt_pool_number(pool));
	} while (xt_again(module));
	return NULL;
}

PyObject *xt_call_gone(PyObject *module, PyObject *number)
{
	long at = PyLong_AsLong(number);
	struct xt_pool *pool;

	if (at == -1 && PyErr_Occurred())
		return NULL;
	pool = pool_at(at < 0 || at >= XT_POOLS ? -1 : at);
	return pool ? PyBool_FromLong(xt_pool_is_gone(pool)) : NULL;
}

/* ---- buffers ---- */

PyObject *xt_call_make(PyObject *module, PyObject *args)
{
	struct xt_pool *pool;
	struct xt_hold *hold;
	unsigned long long contents;
	Py_ssize_t bytes;
	int number;

	if (!PyArg_ParseTuple(args, "inK:make", &number, &bytes, &contents))
		return NULL;
	pool = live_pool_at(module, number);
	if (!pool)
		return NULL;
	if (bytes <= 0) {
		PyErr_SetString(PyExc_ValueError, "a buffer has at least one byte");
		return NULL;
	}
	do {
		xmem_clear_last_error();
		Py_BEGIN_ALLOW_THREADS
		hold = xt_hold_make(pool, bytes, (const void *)(uintptr_t)contents);
		Py_END_ALLOW_THREADS
		if (hold)
			return give(hold);
	} while (xt_again(module));
	return NULL;
}

struct xt_hold *xt_get(PyObject *module, int number, unsigned long long token)
{
	struct xt_pool *pool = live_pool_at(module, number);
	struct xt_hold *hold;

	if (!pool)
		return NULL;
	do {
		xmem_clear_last_error();
		Py_BEGIN_ALLOW_THREADS
		hold = xt_hold_get(pool, token);
		Py_END_ALLOW_THREADS
		if (hold)
			return hold;
	} while (xt_again(module));
	return NULL;
}

PyObject *xt_call_get(PyObject *module, PyObject *args)
{
	unsigned long long token;
	struct xt_hold *hold;
	int number;

	if (!PyArg_ParseTuple(args, "iK:get", &number, &token))
		return NULL;
	hold = xt_get(module, number, token);
	return hold ? give(hold) : NULL;
}

PyObject *xt_call_get_tensor(PyObject *module, PyObject *args)
{
	int64_t shape[XT_DIMENSIONS], place[1 + XT_DIMENSIONS];
	PyObject *shape_tuple, *place_tuple, *capsule;
	Py_ssize_t dimensions, places;
	unsigned int type;
	unsigned long long token;
	struct xt_hold *hold;
	bool whole;
	int number;

	if (!PyArg_ParseTuple(args, "iKIO!O!:get_tensor", &number, &token, &type, &PyTuple_Type,
			      &place_tuple, &PyTuple_Type, &shape_tuple))
		return NULL;
	dimensions = xt_numbers(shape_tuple, shape, XT_DIMENSIONS);
	places = xt_numbers(place_tuple, place, 1 + XT_DIMENSIONS);
	if (dimensions < 0 || places < 0)
		return NULL;
	hold = xt_get(module, number, token);
	if (!hold)
		return NULL;
	whole = dimensions <= XT_DIMENSIONS && places == 1 + dimensions && !place[0] &&
		xt_is_whole(shape, place + 1, dimensions, (type & 0xff) / 8, hold->bytes);
	if (whole)
		xt_hold_describe(hold, type, dimensions, shape);
	capsule = xt_capsule(&hold->dlpack);
	return capsule ? Py_BuildValue("NO", capsule, whole ? Py_True : Py_False) : NULL;
}

static struct xt_hold *hold_of(PyObject *address)
{
	void *at = PyLong_AsVoidPtr(address);

	return at ? xt_hold_find(at) : NULL;
}

PyObject *xt_call_find(PyObject *module, PyObject *address)
{
	struct xt_hold *hold = hold_of(address);
	PyObject *found;

	if (!hold) {
		if (PyErr_Occurred())
			return NULL;
		Py_RETURN_NONE;
	}
	found = Py_BuildValue("sKn", hold->pool->name, (unsigned long long)hold->token,
			      (Py_ssize_t)hold->bytes);
	xt_hold_put(hold);
	return found;
}

PyObject *xt_call_offer(PyObject *module, PyObject *address)
{
	struct xt_hold *hold = hold_of(address);
	PyObject *found = NULL;
	int err;

	if (!hold) {
		if (PyErr_Occurred())
			return NULL;
		Py_RETURN_NONE;
	}
	do {
		xmem_clear_last_error();
		Py_BEGIN_ALLOW_THREADS
		err = xt_hold_offer(hold);
		Py_END_ALLOW_THREADS
		if (!err)
			found = Py_BuildValue("sKn", hold->pool->name,
					      (unsigned long long)hold->token,
					      (Py_ssize_t)hold->bytes);
		else if (!hold->buffer)
			xt_raise_errno(module, ECHILD, "this tensor is its parent's, and was lost "
				       "by the fork that made this process");
	} while (err && !PyErr_Occurred() && xt_again(module));
	xt_hold_put(hold);
	return found;
}

PyObject *xt_call_drop(PyObject *module, PyObject *args)
{
	unsigned long long token;
	struct xmem_pool *handle;
	struct xt_pool *pool;
	int number, err;

	if (!PyArg_ParseTuple(args, "iK:drop", &number, &token))
		return NULL;
	pool = live_pool_at(module, number);
	if (!pool)
		return NULL;
	do {
		Py_BEGIN_ALLOW_THREADS
		handle = xt_pool_handle(pool);
		err = handle ? xmem_drop_ref(handle, token) : -1;
		Py_END_ALLOW_THREADS
		if (!err)
			Py_RETURN_TRUE;
		if (err == -ERANGE)
			Py_RETURN_FALSE;	/* its time has passed */
	} while (xt_again(module));
	return NULL;
}

PyObject *xt_call_claims(PyObject *module, PyObject *args)
{
	unsigned long long token;
	struct xmem_pool *handle;
	struct xt_pool *pool;
	int number, count;

	if (!PyArg_ParseTuple(args, "iK:claims", &number, &token))
		return NULL;
	pool = live_pool_at(module, number);
	if (!pool)
		return NULL;
	handle = xt_pool_handle(pool);
	count = handle ? xmem_claims(handle, token) : -1;
	return count < 0 ? xt_raise(module) : PyLong_FromLong(count);
}

PyObject *xt_call_pool_stat(PyObject *module, PyObject *args)
{
	struct xmem_pool_info info = { .size = sizeof(info) };
	struct xmem_pool *handle;
	struct xt_pool *pool;
	int number, err = -1;

	if (!PyArg_ParseTuple(args, "i:stat", &number))
		return NULL;
	pool = live_pool_at(module, number);
	if (!pool)
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	handle = xt_pool_handle(pool);
	if (handle) {
		xmem_collect(handle, XMEM_KEEP_ALL, NULL);
		err = xmem_pool_stat(handle, &info);
	}
	Py_END_ALLOW_THREADS
	if (err < 0)
		return xt_raise(module);
	return Py_BuildValue("{s:I,s:I,s:K,s:K,s:K,s:I}", "clients", info.clients, "held",
			     info.held, "holds", (unsigned long long)info.holds, "claims",
			     (unsigned long long)info.claims, "bytes_files",
			     (unsigned long long)info.bytes_files, "limbo", info.limbo);
}

PyObject *xt_call_set_in_flight(PyObject *module, PyObject *ns)
{
	long long timeout_ns = PyLong_AsLongLong(ns);

	if (timeout_ns == -1 && PyErr_Occurred())
		return NULL;
	xt_set_in_flight(timeout_ns < 0 ? XMEM_FOREVER : timeout_ns);
	Py_RETURN_NONE;
}

PyObject *xt_call_holds(PyObject *module, PyObject *unused)
{
	return PyLong_FromSize_t(xt_holds_count());
}

/* ---- fork, allocators ---- */

/*
 * The second call keeps the GIL and finds holds that Python threads have made meanwhile. One thread
 * forks at a time (../xmem/torch/installing.py).
 */
PyObject *xt_call_fork_offer(PyObject *module, PyObject *unused)
{
	Py_BEGIN_ALLOW_THREADS
	xt_fork_offer();
	Py_END_ALLOW_THREADS
	xt_fork_offer();
	Py_RETURN_NONE;
}

PyObject *xt_call_fork_restore(PyObject *module, PyObject *unused)
{
	size_t lost, copied;

	Py_BEGIN_ALLOW_THREADS
	lost = xt_fork_restore(&copied);
	Py_END_ALLOW_THREADS
	return Py_BuildValue("nn", (Py_ssize_t)lost, (Py_ssize_t)copied);
}

PyObject *xt_call_allocate_from(PyObject *module, PyObject *args)
{
	struct xt_pool *pool = NULL;
	Py_ssize_t most;
	int number;

	if (!PyArg_ParseTuple(args, "in:allocate_from", &number, &most))
		return NULL;
	if (number >= 0) {
		pool = pool_at(number);
		if (!pool)
			return NULL;
	}
	xt_allocate_from(pool, most < 0 ? 0 : most);
	Py_RETURN_NONE;
}

PyObject *xt_call_allocator(PyObject *module, PyObject *unused)
{
	return Py_BuildValue("KK", (unsigned long long)(uintptr_t)xt_allocate,
			     (unsigned long long)(uintptr_t)xt_free);
}
