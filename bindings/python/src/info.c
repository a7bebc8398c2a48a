// SPDX-License-Identifier: MIT
/*
 * Information about hosts, pools, clients, slots and contents: the structs of xmem/info.h and the
 * metadata, as objects that layout.c makes.
 */
#include "core.h"

#include <string.h>

/* An object of a struct that the library has filled in; its size says how much. */
#define OBJECT(state, id, info) xp_layout_object((state)->layouts[id], id, &(info), (info).size)

/* ---- hosts and pools ---- */

PyObject *xp_host(PyObject *module, PyObject *unused)
{
	struct xp_state *state = PyModule_GetState(module);
	struct xmem_host_info info = { .size = sizeof(info) };
	int err;

	Py_BEGIN_ALLOW_THREADS
	err = xmem_host_query(&info);
	Py_END_ALLOW_THREADS
	return err ? xp_raise(state) : OBJECT(state, XP_HOST_INFO, info);
}

/* The list of all pools of the host, which may be none. */
PyObject *xp_pools(PyObject *module, PyObject *unused)
{
	struct xp_state *state = PyModule_GetState(module);
	PyObject *list = PyList_New(0), *object;
	struct xmem_pool_entry entry;
	uint64_t after = 0;
	int err;

	while (list) {
		entry = (struct xmem_pool_entry){ .size = sizeof(entry) };
		Py_BEGIN_ALLOW_THREADS
		err = xmem_pool_next(after, &entry);
		Py_END_ALLOW_THREADS
		if (err == -ENOENT) {
			xmem_clear_last_error();
			return list;
		}
		if (err && xp_again(state, XMEM_FOREVER, NULL))
			continue;
		object = err ? NULL : OBJECT(state, XP_POOL_ENTRY, entry);
		if (!object || PyList_Append(list, object))
			Py_CLEAR(list);
		Py_XDECREF(object);
		after = entry.number;
	}
	return NULL;
}

/* ---- limits ---- */

/* A list of all limits. @pool: a pool that the caller has begun to use, or NULL. */
static PyObject *limits_of(struct xp_state *state, struct xmem_pool *pool)
{
	PyObject *list = PyList_New(0), *object;
	struct xmem_limit_info info = { .size = sizeof(info) };
	uint32_t number = 0;
	int err;

	while (list) {
		info.size = sizeof(info);
		Py_BEGIN_ALLOW_THREADS
		err = xmem_limit_next(pool, number, &info);
		Py_END_ALLOW_THREADS
		if (err == -ENOENT) {
			xmem_clear_last_error();
			return list;
		}
		object = err ? xp_raise(state) : OBJECT(state, XP_LIMIT_INFO, info);
		if (!object || PyList_Append(list, object))
			Py_CLEAR(list);
		Py_XDECREF(object);
		number = info.number + 1;
	}
	return NULL;
}

PyObject *xp_limits(PyObject *module, PyObject *unused)
{
	return limits_of(PyModule_GetState(module), NULL);
}

PyObject *xp_pool_limits(PyObject *object, PyObject *unused)
{
	struct xp_pool *self = (struct xp_pool *)object;
	struct xmem_pool *pool = xp_pool_begin(self);
	PyObject *list;

	if (!pool)
		return NULL;
	list = limits_of(self->state, pool);
	xp_pool_end(self);
	return list;
}

/* ---- one pool ---- */

/* The call may give back files that other clients have let go, by requests to the host. */
PyObject *xp_pool_stat(PyObject *object, PyObject *unused)
{
	struct xp_pool *self = (struct xp_pool *)object;
	struct xmem_pool_info info = { .size = sizeof(info) };
	struct xmem_pool *pool = xp_pool_begin(self);
	int err;

	if (!pool)
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	err = xmem_pool_stat(pool, &info);
	xp_pool_end(self);
	Py_END_ALLOW_THREADS
	return err ? xp_raise(self->state) : OBJECT(self->state, XP_POOL_INFO, info);
}

PyObject *xp_pool_client_info(PyObject *object, PyObject *client)
{
	struct xp_pool *self = (struct xp_pool *)object;
	struct xmem_client_info info = { .size = sizeof(info) };
	struct xmem_pool *pool;
	uint32_t number;
	int err;

	if (!xp_u32(client, &number))
		return NULL;
	pool = xp_pool_begin(self);
	if (!pool)
		return NULL;
	err = xmem_pool_client_info(pool, number, &info);
	xp_pool_end(self);
	if (err)
		return xp_raise(self->state);
	return OBJECT(self->state, XP_CLIENT_INFO, info);
}

/* A list of the clients that follow this writer. */
static PyObject *subscribers_of(struct xp_state *state, struct xmem_pool *pool)
{
	struct xmem_subscriber_info info = { .client = 0 };
	PyObject *list = PyList_New(0), *object;
	uint32_t first = 0;
	int err;

	while (list) {
		info.size = sizeof(info);
		err = xmem_subscriber_next(pool, first, &info);
		if (err == -ENOENT) {
			xmem_clear_last_error();
			return list;
		}
		object = err ? xp_raise(state) : OBJECT(state, XP_SUBSCRIBER_INFO, info);
		if (!object || PyList_Append(list, object))
			Py_CLEAR(list);
		Py_XDECREF(object);
		first = info.client + 1;
	}
	return NULL;
}

PyObject *xp_pool_subscribers(PyObject *object, PyObject *unused)
{
	struct xp_pool *self = (struct xp_pool *)object;
	struct xmem_pool *pool = xp_pool_begin(self);
	PyObject *list;

	if (!pool)
		return NULL;
	list = subscribers_of(self->state, pool);
	xp_pool_end(self);
	return list;
}

PyObject *xp_pool_slot_info(PyObject *object, PyObject *slot)
{
	struct xp_pool *self = (struct xp_pool *)object;
	struct xmem_slot_info info = { .size = sizeof(info) };
	struct xmem_pool *pool;
	uint32_t number;
	int err;

	if (!xp_slot(slot, &number))
		return NULL;
	pool = xp_pool_begin(self);
	if (!pool)
		return NULL;
	err = xmem_pool_slot_info(pool, number, &info);
	xp_pool_end(self);
	if (err)
		return xp_raise(self->state);
	return OBJECT(self->state, XP_SLOT_INFO, info);
}

PyObject *xp_pool_device_info(PyObject *object, PyObject *device)
{
	struct xp_pool *self = (struct xp_pool *)object;
	struct xmem_device_info info = { .size = sizeof(info) };
	struct xmem_pool *pool;
	uint32_t number;
	int err;

	if (!xp_u32(device, &number))
		return NULL;
	pool = xp_pool_begin(self);
	if (!pool)
		return NULL;
	err = xmem_pool_device_info(pool, number, &info);
	xp_pool_end(self);
	if (err)
		return xp_raise(self->state);
	return OBJECT(self->state, XP_DEVICE_INFO, info);
}

PyObject *xp_pool_holds(PyObject *object, PyObject *args)
{
	struct xp_pool *self = (struct xp_pool *)object;
	struct xmem_pool *pool;
	uint32_t client, slot;
	int64_t holds;

	if (!PyArg_ParseTuple(args, "O&O&:holds", xp_u32, &client, xp_slot, &slot))
		return NULL;
	pool = xp_pool_begin(self);
	if (!pool)
		return NULL;
	holds = xmem_pool_holds(pool, client, slot);
	xp_pool_end(self);
	return holds < 0 ? xp_raise(self->state) : PyLong_FromLongLong(holds);
}

/* ---- contents ---- */

PyObject *xp_guard_metadata(PyObject *object, void *unused)
{
	struct xp_guard *self = (struct xp_guard *)object;
	struct xmem_buffer *buffer = xp_guard_look(self);
	struct xmem_metadata metadata;

	if (!buffer)
		return NULL;
	if (xmem_metadata_view(buffer, &metadata))
		return xp_raise(self->state);
	return xp_layout_object(self->state->layouts[XP_METADATA], XP_METADATA, &metadata,
				sizeof(metadata));
}

/* All words are read before any is stored, so an error changes none. */
PyObject *xp_guard_describe_user(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "id", "user", NULL };
	struct xp_guard *self = (struct xp_guard *)object;
	PyObject *id = Py_None, *user = Py_None, *item;
	uint64_t number = 0, words[8] = { 0 };
	struct xmem_metadata *metadata;
	struct xmem_buffer *buffer;
	Py_ssize_t count = 0, i;

	if (!xp_parse(args, kwargs, "|$OO:describe_user", names, &id, &user))
		return NULL;
	buffer = xp_guard_write(self);
	metadata = buffer ? xmem_metadata_mut(buffer) : NULL;
	if (!metadata)
		return buffer ? xp_raise(self->state) : NULL;
	if (id != Py_None && !xp_token(id, &number))
		return NULL;
	if (user != Py_None) {
		count = PySequence_Size(user);
		if (count < 0)
			return NULL;
		if (count > 8) {
			PyErr_Format(PyExc_ValueError, "there are 8 user words, not %zd", count);
			return NULL;
		}
		for (i = 0; i < count; i++) {
			item = PySequence_GetItem(user, i);
			if (!item)
				return NULL;
			if (!xp_token(item, &words[i])) {
				Py_DECREF(item);
				return NULL;
			}
			Py_DECREF(item);
		}
	}
	/* Python code called above may have published the buffer. */
	buffer = xp_guard_write(self);
	metadata = buffer ? xmem_metadata_mut(buffer) : NULL;
	if (!metadata)
		return buffer ? xp_raise(self->state) : NULL;
	if (id != Py_None)
		metadata->id = number;
	if (user != Py_None)
		memcpy(metadata->user, words, sizeof(words));
	Py_RETURN_NONE;
}
