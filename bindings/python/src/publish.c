// SPDX-License-Identifier: MIT
/*
 * Guard: calls that hand a buffer over. Each of them takes the handle: no other call may use the
 * guard meanwhile. Views that are alive keep the handle (XMEM_PUBLISH_KEEP), so that the memory
 * under them is neither reused nor unmapped.
 */
#include "core.h"

/*
 * Does a publish wait for the host or a stream? It does for contents written in place, and on GPUs.
 */
static bool waits(const struct xp_guard *self)
{
	return self->in_place || self->flags & (XMEM_BUFFER_CUDA | XMEM_BUFFER_ATTACHED);
}

/* -1 with an exception: the tensor or image that is described reaches beyond this part. */
static int check_part(struct xp_guard *self, const struct xmem_publish_options *options)
{
	struct xmem_metadata metadata;
	uint64_t bytes, first, skipped;
	PyObject *shape;

	if (!options->offset && !options->length)
		return 0;
	if (!xp_guard_look(self))
		return -1;
	if (xmem_metadata_view(self->buffer, &metadata)) {
		xp_raise(self->state);
		return -1;
	}
	/*
	 * A writer counts from the first byte of its contents, a reader from that of the whole
	 * buffer.
	 */
	first = self->mode == XP_WRITING ? 0 : metadata.offset;
	skipped = options->offset - first;
	if (options->offset < first || skipped > metadata.size)
		return 0;		/* the library then refuses the part as outside */
	bytes = options->length ? options->length : metadata.size - skipped;
	if (xmem_tensor_check(&metadata, bytes) != -ERANGE)
		return 0;
	shape = xp_shape(&metadata);
	if (shape)
		xp_raise_errno(self->state, ERANGE, "a part of %llu bytes does not hold the "
			       "contents that are described, of shape %R: describe what the part "
			       "is, or hand over all of it", (unsigned long long)bytes, shape);
	Py_XDECREF(shape);
	return -1;
}

/* @kept: the caller keeps the guard. @slow: the call may wait. */
static PyObject *hand_over(struct xp_guard *self, struct xmem_publish_options *options, bool kept,
			   bool slow)
{
	int64_t until = xp_until(options->timeout_ns);
	const uint32_t flags = options->flags;
	struct xmem_buffer *buffer;
	PyThreadState *thread;
	uint64_t token;
	bool keep;
	int err;

	if (check_part(self, options))
		return NULL;
	do {
		buffer = xp_guard_take(self, &keep);
		if (!buffer)
			return NULL;
		options->flags = flags | (keep || kept ? XMEM_PUBLISH_KEEP : 0);
		thread = slow || waits(self) ? PyEval_SaveThread() : NULL;
		err = xmem_publish(buffer, options, &token);
		if (thread)
			PyEval_RestoreThread(thread);
		if (!err)
			break;
		xp_guard_back(self);
	} while (xp_again(self->state, until, &options->timeout_ns));
	if (err)
		return NULL;
	if (!kept) {
		xp_guard_gone(self, keep);
	} else {
		xp_guard_back(self);
		self->mode = XP_READING;
		self->attached_on = self->in_place = false;
		xp_guard_view_changed(self);
	}
	return PyLong_FromUnsignedLongLong(token);
}

PyObject *xp_guard_publish(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "keep", "timestamp_ns", "offset", "length", "stream", NULL };
	struct xp_guard *self = (struct xp_guard *)object;
	struct xmem_publish_options options = XMEM_INIT(options);
	PyObject *given = Py_None;
	void *stream;
	int keep = false;

	if ((PyTuple_Size(args) || kwargs) &&
	    !xp_parse(args, kwargs, "|$pO&O&O&O:publish", names, &keep,
		      xp_token, &options.timestamp_ns, xp_token, &options.offset,
		      xp_token, &options.length, &given))
		return NULL;
	if (!xp_stream(given, &stream) || !xp_guard_write(self))
		return NULL;
	if (given != Py_None)
		options.stream = xp_some_stream(stream);
	else if (self->attached_on)
		options.stream = xp_some_stream(self->stream);
	return hand_over(self, &options, keep, options.stream);
}

PyObject *xp_guard_send(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "client", "keep", "timestamp_ns", "offset", "length", "timeout",
				 NULL };
	struct xmem_publish_options options = {
		.size = sizeof(options), .flags = XMEM_PUBLISH_CLIENT, .timeout_ns = XMEM_FOREVER,
	};
	int keep = false;

	if (!xp_parse(args, kwargs, "O&|$pO&O&O&O&:send", names, xp_u32, &options.client, &keep,
		      xp_token, &options.timestamp_ns, xp_token, &options.offset,
		      xp_token, &options.length, xp_timeout, &options.timeout_ns))
		return NULL;
	return hand_over((struct xp_guard *)object, &options, keep, true);
}

PyObject *xp_guard_forward(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "keep", "timestamp_ns", "offset", "length", "timeout", NULL };
	struct xp_guard *self = (struct xp_guard *)object;
	struct xmem_publish_options options = {
		.size = sizeof(options), .timeout_ns = XMEM_FOREVER,
	};
	int keep = false;

	if (!xp_parse(args, kwargs, "|$pO&O&O&O&:forward", names, &keep,
		      xp_token, &options.timestamp_ns, xp_token, &options.offset,
		      xp_token, &options.length, xp_timeout, &options.timeout_ns) ||
	    !xp_guard_look(self))
		return NULL;
	if (self->mode == XP_WRITING)
		return xp_raise_errno(self->state, EPERM,
				      "forward: the guard is still being written: publish() it");
	return hand_over(self, &options, keep, true);
}

/* ---- writing in place ---- */

PyObject *xp_guard_get_mut(PyObject *object, PyObject *unused)
{
	struct xp_guard *self = (struct xp_guard *)object;
	struct xmem_buffer *buffer;
	bool shared;
	int err;

	do {
		buffer = xp_guard_take(self, &shared);
		if (!buffer)
			return NULL;
		if (shared) {
			xp_guard_back(self);
			return xp_raise_errno(self->state, EBUSY, "views of these contents are "
					      "alive, which would see them change");
		}
		Py_BEGIN_ALLOW_THREADS
		err = xmem_get_mut(buffer);
		Py_END_ALLOW_THREADS
		xp_guard_back(self);
		if (!err) {
			self->mode = XP_WRITING;
			self->in_place = true;
			xp_guard_view_changed(self);
			Py_INCREF(object);
			return object;
		}
	} while (xp_again(self->state, XMEM_FOREVER, NULL));
	return NULL;
}

/* ---- claims ---- */

/*
 * Forget the guard's handle and leave its reference behind; contents that are being written are
 * complete now. Views need a handle of their own, @ret_clone. 0 or -errno. Without the GIL.
 */
static int forget(struct xmem_buffer *buffer, bool *writing, bool viewed,
		  struct xmem_buffer **ret_clone)
{
	int err = *writing ? xmem_set_ref_count(buffer, 1, XP_LASTS_NS) : 0;

	*ret_clone = NULL;
	if (err)
		return err;
	*writing = false;
	*ret_clone = viewed ? xmem_clone(buffer) : NULL;
	if (viewed && !*ret_clone)
		return xmem_peek_last_error(NULL);
	err = xmem_forget(buffer);
	if (err)
		xmem_release(*ret_clone);
	return err;
}

PyObject *xp_guard_forget(PyObject *object, PyObject *unused)
{
	struct xp_guard *self = (struct xp_guard *)object;
	struct xmem_buffer *buffer, *clone;
	bool viewed, writing;
	int err;

	do {
		buffer = xp_guard_take(self, &viewed);
		if (!buffer)
			return NULL;
		writing = self->mode == XP_WRITING;
		Py_BEGIN_ALLOW_THREADS
		err = forget(buffer, &writing, viewed, &clone);
		Py_END_ALLOW_THREADS
		if (self->mode == XP_WRITING && !writing) {
			self->mode = XP_READING;
			self->counted = true;
			xp_guard_view_changed(self);
		}
		if (err)
			xp_guard_back(self);
	} while (err && xp_again(self->state, XMEM_FOREVER, NULL));
	if (err)
		return NULL;
	if (viewed) {
		self->buffer = clone;
		if (self->hold)
			self->hold->buffer = clone;
		self->counted = false;
	}
	self->forgotten = true;
	xp_guard_gone(self, viewed);
	Py_RETURN_NONE;
}

PyObject *xp_guard_set_ref_count(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "count", "lasts", NULL };
	struct xp_guard *self = (struct xp_guard *)object;
	struct xmem_buffer *buffer;
	int64_t lasts_ns = XP_LASTS_NS;
	uint32_t count;
	bool viewed;
	int err;

	if (!xp_parse(args, kwargs, "O&|O&:set_ref_count", names, xp_u32, &count,
		      xp_lasts, &lasts_ns))
		return NULL;
	do {
		buffer = xp_guard_take(self, &viewed);
		if (!buffer)
			return NULL;
		Py_BEGIN_ALLOW_THREADS
		err = xmem_set_ref_count(buffer, count, lasts_ns);
		Py_END_ALLOW_THREADS
		xp_guard_back(self);
		if (!err) {
			self->mode = XP_READING;
			self->counted = true;
			xp_guard_view_changed(self);
			Py_RETURN_NONE;
		}
	} while (xp_again(self->state, XMEM_FOREVER, NULL));
	return NULL;
}

PyObject *xp_guard_offer(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "more", "lasts", NULL };
	struct xp_guard *self = (struct xp_guard *)object;
	struct xmem_buffer *buffer;
	int64_t lasts_ns = XP_LASTS_NS;
	uint32_t more = 1;
	int err;

	if (!xp_parse(args, kwargs, "|O&O&:offer", names, xp_u32, &more,
		      xp_lasts, &lasts_ns))
		return NULL;
	for (buffer = xp_guard_begin(self); buffer; buffer = xp_guard_again(self)) {
		Py_BEGIN_ALLOW_THREADS
		err = xmem_offer(buffer, more, lasts_ns);
		Py_END_ALLOW_THREADS
		xp_guard_end(self);
		if (!err)
			Py_RETURN_NONE;
	}
	return NULL;
}
