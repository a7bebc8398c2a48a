// SPDX-License-Identifier: MIT
/*
 * The module xmem._torch: functions on numbers and capsules, which ../xmem/torch calls. Each one
 * that may ask the host does so without the GIL. Storages are told apart by their address.
 */
#include "torch.h"

#include <string.h>

struct state {
	/* dict: errno -> class; None: of all others. Set when the package is imported. */
	PyObject *errors;
};

/* ---- errors ---- */

static PyObject *raise_errno(PyObject *module, int err, const char *message)
{
	struct state *state = PyModule_GetState(module);
	PyObject *number = PyLong_FromLong(err), *class = NULL, *error = NULL;

	if (!number)
		return NULL;
	if (state->errors) {
		class = PyObject_GetItem(state->errors, number);
		if (!class && PyErr_ExceptionMatches(PyExc_KeyError)) {
			PyErr_Clear();
			class = PyObject_GetItem(state->errors, Py_None);
		}
	} else {
		class = Py_NewRef(PyExc_OSError);
	}
	if (class)
		error = PyObject_CallFunction(class, "Os", number, message);
	if (error)
		PyErr_SetObject(class, error);
	Py_XDECREF(error);
	Py_XDECREF(class);
	Py_DECREF(number);
	return NULL;
}

PyObject *xt_raise(PyObject *module)
{
	const char *message;
	int err = -xmem_get_last_error(&message);

	if (!err)			/* what has failed is this extension's own */
		return PyErr_NoMemory();
	return raise_errno(module, err, message);
}

/* Is the call to be made again, because a signal has ended it? Otherwise its error is raised. */
static bool again(PyObject *module)
{
	if (xmem_peek_last_error(NULL) == -EINTR)
		return !PyErr_CheckSignals();
	xt_raise(module);
	return false;
}

static PyObject *set_errors(PyObject *module, PyObject *classes)
{
	struct state *state = PyModule_GetState(module);
	PyObject *before = state->errors;

	if (!PyDict_Check(classes)) {
		PyErr_SetString(PyExc_TypeError, "set_errors wants a dict");
		return NULL;
	}
	Py_INCREF(classes);
	state->errors = classes;
	Py_XDECREF(before);
	Py_RETURN_NONE;
}

/* ---- capsules ---- */

/* Who has taken the contents has renamed the capsule. */
static void drop_capsule(PyObject *capsule)
{
	struct xt_dlpack *dlpack;

	if (!PyCapsule_IsValid(capsule, "dltensor"))
		return;
	dlpack = PyCapsule_GetPointer(capsule, "dltensor");
	dlpack->deleter(dlpack);
}

PyObject *xt_capsule(struct xt_dlpack *dlpack)
{
	PyObject *capsule = PyCapsule_New(dlpack, "dltensor", drop_capsule);

	if (!capsule)
		dlpack->deleter(dlpack);
	return capsule;
}

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

/*
 * join(name, existing, slots, clients, demand_bytes, cache_bytes, cache_ns) -> number of the pool
 */
static PyObject *join(PyObject *module, PyObject *args)
{
	struct xmem_pool_options options = {
		.size = sizeof(options), .flags = XMEM_OPEN_WRITER, .memory = XMEM_MEMORY_SHARED,
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
	} while (again(module));
	return NULL;
}

/* ---- buffers ---- */

/* make(pool, bytes, address) -> (capsule, token, bytes); with a copy of what is there, unless 0 */
static PyObject *make(PyObject *module, PyObject *args)
{
	struct xt_pool *pool;
	struct xt_hold *hold;
	unsigned long long contents;
	Py_ssize_t bytes;
	int number;

	if (!PyArg_ParseTuple(args, "inK:make", &number, &bytes, &contents))
		return NULL;
	pool = pool_at(number);
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
	} while (again(module));
	return NULL;
}

/* get(pool, token) -> (capsule, token, bytes); a reference that was set aside becomes the hold */
static PyObject *get(PyObject *module, PyObject *args)
{
	unsigned long long token;
	struct xt_pool *pool;
	struct xt_hold *hold;
	int number;

	if (!PyArg_ParseTuple(args, "iK:get", &number, &token))
		return NULL;
	pool = pool_at(number);
	if (!pool)
		return NULL;
	do {
		xmem_clear_last_error();
		Py_BEGIN_ALLOW_THREADS
		hold = xt_hold_get(pool, token);
		Py_END_ALLOW_THREADS
		if (hold)
			return give(hold);
	} while (again(module));
	return NULL;
}

static struct xt_hold *hold_of(PyObject *address)
{
	void *at = PyLong_AsVoidPtr(address);

	return at ? xt_hold_find(at) : NULL;
}

/* find(address) -> (name of the pool, token, bytes), or None: no storage of a pool begins there */
static PyObject *find(PyObject *module, PyObject *address)
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

/* offer(address) -> as find, after one reference has been set aside for whoever gets the token */
static PyObject *offer(PyObject *module, PyObject *address)
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
			raise_errno(module, ECHILD, "this tensor is its parent's, and was lost by "
				    "the fork that made this process");
	} while (err && !PyErr_Occurred() && again(module));
	xt_hold_put(hold);
	return found;
}

/* drop(pool, token): a reference that was set aside is not needed; True: there was one */
static PyObject *drop(PyObject *module, PyObject *args)
{
	unsigned long long token;
	struct xmem_pool *handle;
	struct xt_pool *pool;
	int number, err;

	if (!PyArg_ParseTuple(args, "iK:drop", &number, &token))
		return NULL;
	pool = pool_at(number);
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
	} while (again(module));
	return NULL;
}

/* claims(pool, token) -> how many references are set aside */
static PyObject *claims(PyObject *module, PyObject *args)
{
	unsigned long long token;
	struct xmem_pool *handle;
	struct xt_pool *pool;
	int number, count;

	if (!PyArg_ParseTuple(args, "iK:claims", &number, &token))
		return NULL;
	pool = pool_at(number);
	if (!pool)
		return NULL;
	handle = xt_pool_handle(pool);
	count = handle ? xmem_claims(handle, token) : -1;
	return count < 0 ? xt_raise(module) : PyLong_FromLong(count);
}

/* stat(pool) -> a dict of what there is in the pool, of all processes together */
static PyObject *pool_stat(PyObject *module, PyObject *args)
{
	struct xmem_pool_info info = { .size = sizeof(info) };
	struct xmem_pool *handle;
	struct xt_pool *pool;
	int number, err = -1;

	if (!PyArg_ParseTuple(args, "i:stat", &number))
		return NULL;
	pool = pool_at(number);
	if (!pool)
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	handle = xt_pool_handle(pool);
	if (handle) {
		xmem_collect(handle);
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

/* set_in_flight(ns): how long references last that are set aside; negative: for ever */
static PyObject *set_in_flight(PyObject *module, PyObject *ns)
{
	long long timeout_ns = PyLong_AsLongLong(ns);

	if (timeout_ns == -1 && PyErr_Occurred())
		return NULL;
	xt_set_in_flight(timeout_ns < 0 ? XMEM_FOREVER : timeout_ns);
	Py_RETURN_NONE;
}

/* holds() -> buffers that storages of this process lie in */
static PyObject *holds(PyObject *module, PyObject *unused)
{
	return PyLong_FromSize_t(xt_holds_count());
}

/* ---- fork, allocators ---- */

/* The second call finds what Python's threads made meanwhile; it keeps the GIL, as fork does. */
static PyObject *fork_offer(PyObject *module, PyObject *unused)
{
	Py_BEGIN_ALLOW_THREADS
	xt_fork_offer();
	Py_END_ALLOW_THREADS
	xt_fork_offer();
	Py_RETURN_NONE;
}

/* fork_restore() -> how many buffers the child has lost */
static PyObject *fork_restore(PyObject *module, PyObject *unused)
{
	size_t lost;

	Py_BEGIN_ALLOW_THREADS
	lost = xt_fork_restore();
	Py_END_ALLOW_THREADS
	return PyLong_FromSize_t(lost);
}

/* allocate_from(pool, most): -1: from none; most: buffers at a time */
static PyObject *allocate_from(PyObject *module, PyObject *args)
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

/* allocator() -> addresses of the functions that allocate and free */
static PyObject *allocator(PyObject *module, PyObject *unused)
{
	return Py_BuildValue("KK", (unsigned long long)(uintptr_t)xt_allocate,
			     (unsigned long long)(uintptr_t)xt_free);
}

/* ---- the module ---- */

static PyMethodDef functions[] = {
	{ "set_errors", set_errors, METH_O, NULL },
	{ "join", join, METH_VARARGS, NULL },
	{ "make", make, METH_VARARGS, NULL },
	{ "get", get, METH_VARARGS, NULL },
	{ "find", find, METH_O, NULL },
	{ "offer", offer, METH_O, NULL },
	{ "drop", drop, METH_VARARGS, NULL },
	{ "claims", claims, METH_VARARGS, NULL },
	{ "set_in_flight", set_in_flight, METH_O, NULL },
	{ "stat", pool_stat, METH_VARARGS, NULL },
	{ "guard_capsule", xt_guard_capsule, METH_O, NULL },
	{ "cuda_share", xt_cuda_share, METH_VARARGS, NULL },
	{ "cuda_get", xt_cuda_get, METH_VARARGS, NULL },
	{ "cuda_drain", xt_cuda_drain, METH_NOARGS, NULL },
	{ "cuda_use", xt_cuda_use, METH_VARARGS, NULL },
	{ "holds", holds, METH_NOARGS, NULL },
	{ "fork_offer", fork_offer, METH_NOARGS, NULL },
	{ "fork_restore", fork_restore, METH_NOARGS, NULL },
	{ "allocate_from", allocate_from, METH_VARARGS, NULL },
	{ "allocator", allocator, METH_NOARGS, NULL },
	{ NULL, NULL, 0, NULL }
};

static int execute(PyObject *module)
{
	int err = xt_fork_register();

	if (err)
		raise_errno(module, -err, strerror(-err));
	return err ? -1 : 0;
}

static int traverse(PyObject *module, visitproc visit, void *arg)
{
	Py_VISIT(((struct state *)PyModule_GetState(module))->errors);
	return 0;
}

static int clear(PyObject *module)
{
	Py_CLEAR(((struct state *)PyModule_GetState(module))->errors);
	return 0;
}

static PyModuleDef_Slot slots[] = {
	{ Py_mod_exec, execute },
#ifdef Py_mod_gil
	{ Py_mod_gil, Py_MOD_GIL_NOT_USED },	/* what is here has locks of its own */
#endif
	{ 0, NULL }
};

static struct PyModuleDef definition = {
	PyModuleDef_HEAD_INIT,
	.m_name = "xmem._torch",
	.m_doc = "Memory of pools for storages of torch; use xmem.torch.",
	.m_size = sizeof(struct state),
	.m_methods = functions,
	.m_slots = slots,
	.m_traverse = traverse,
	.m_clear = clear,
};

PyMODINIT_FUNC PyInit__torch(void);

PyMODINIT_FUNC PyInit__torch(void)
{
	return PyModuleDef_Init(&definition);
}
