// SPDX-License-Identifier: MIT
/*
 * A client that writes, and GstBuffers of its memory. xmemsink has one while it is not in READY;
 * the buffer pools that it has proposed share it.
 *
 * The memory of a GstBuffer is wrapped memory, which every element can map, share and copy. The
 * GstMemory has an xg_frame attached, which names the buffer of xmem. When the last user drops the
 * memory, the buffer of xmem is released. When the GstBuffer arrives at xmemsink, the sink finds
 * the buffer of xmem by the xg_frame.
 */
#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "xmemgst.h"

struct xg_writer {
	gint references;
	GWeakRef element;		/* for its errors */
	guint slots;
	struct xg_gate flush;		/* shut while the element flushes or stops */
	/*
	 * An eventfd with the value 1 while no thread has the turn. Two threads that waited for
	 * xmem_pool_poll_fd at once would take each other's wake-ups. The turn protects the rest.
	 */
	int turn;
	struct xmem_pool *pool;		/* NULL: closed */
	int poll_fd;
	gsize bytes;			/* of the largest preallocated buffers */
};

struct xg_frame {
	struct xg_writer *writer;
	struct xmem_buffer *buffer;
};

static GQuark frame_quark(void)
{
	static gsize quark;

	if (g_once_init_enter(&quark))
		g_once_init_leave(&quark, g_quark_from_static_string("xmem-frame"));
	return quark;
}

/* ---- the client ---- */

struct xg_writer *xg_writer_open(GstElement *element, const char *name, const char *label,
				 guint slots, gint64 max_wait)
{
	struct xg_writer *writer = g_new0(struct xg_writer, 1);

	writer->references = 1;
	writer->slots = slots;
	writer->poll_fd = -1;
	g_weak_ref_init(&writer->element, element);
	xg_gate_init(&writer->flush);
	writer->turn = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
	if (writer->turn < 0)
		g_error("xmem: eventfd: %s", g_strerror(errno));
	writer->pool = xmem_pool_open(name, XMEM_OPTIONS(xmem_pool_options,
		.flags = XMEM_OPEN_WRITER, .label = label, .wait_bound_ns = max_wait));
	if (writer->pool)
		writer->poll_fd = xmem_pool_poll_fd(writer->pool);
	if (writer->poll_fd >= 0)
		return writer;
	xg_post_error(element, "Cannot open the pool");
	xg_writer_unref(writer);
	return NULL;
}

struct xg_writer *xg_writer_ref(struct xg_writer *writer)
{
	g_atomic_int_inc(&writer->references);
	return writer;
}

void xg_writer_unref(struct xg_writer *writer)
{
	if (!g_atomic_int_dec_and_test(&writer->references))
		return;
	xmem_pool_close(writer->pool);
	close(writer->turn);
	xg_gate_clear(&writer->flush);
	g_weak_ref_clear(&writer->element);
	g_free(writer);
}

/* FALSE: a gate is shut. */
static gboolean take_turn(struct xg_writer *writer, const struct xg_gate *flush,
			  const struct xg_gate *own)
{
	eventfd_t value;

	do {
		if (!xg_wait(writer->turn, POLLIN, flush, own))
			return FALSE;
	} while (eventfd_read(writer->turn, &value));
	return TRUE;
}

static void give_turn(struct xg_writer *writer)
{
	eventfd_write(writer->turn, 1);
}

void xg_writer_set_flushing(struct xg_writer *writer, gboolean flushing)
{
	if (flushing)
		xg_gate_shut(&writer->flush);
	else
		xg_gate_open(&writer->flush);
}

void xg_writer_close(struct xg_writer *writer)
{
	struct xmem_pool *pool;

	xg_gate_shut(&writer->flush);
	take_turn(writer, NULL, NULL);
	pool = writer->pool;
	writer->pool = NULL;
	give_turn(writer);
	xmem_pool_close(pool);
	xg_writer_unref(writer);
}

static GstFlowReturn fail(struct xg_writer *writer, const char *what)
{
	GstElement *element = g_weak_ref_get(&writer->element);

	if (element) {
		xg_post_error(element, what);
		gst_object_unref(element);
	}
	return GST_FLOW_ERROR;
}

/*
 * This function does not take the turn: upstream may have the turn while it waits for a buffer, and
 * gets one only after the sink has published others. The writer is not closed meanwhile, because
 * its element renders.
 */
GstFlowReturn xg_writer_wait_subscribers(struct xg_writer *writer, guint count,
					 const struct xg_gate *own)
{
	int fd = xmem_subscribers_poll_fd(writer->pool), err = fd;

	while (fd >= 0 && (err = xmem_wait_subscribers(writer->pool, count, 0)) == -EAGAIN)
		if (!xg_wait(fd, POLLIN, &writer->flush, own))
			return GST_FLOW_FLUSHING;
	return err < 0 ? fail(writer, "Cannot wait for subscribers") : GST_FLOW_OK;
}

/* ---- GstBuffers ---- */

static void drop_frame(gpointer data)
{
	struct xg_frame *frame = data;

	xmem_release(frame->buffer);
	xg_writer_unref(frame->writer);
	g_free(frame);
}

static GstBuffer *wrap(struct xg_writer *writer, struct xmem_buffer *buffer, void *data,
		       const struct xg_shape *shape)
{
	struct xg_frame *frame = g_new(struct xg_frame, 1);
	GstBuffer *wrapped = gst_buffer_new();
	GstMemory *memory;

	*frame = (struct xg_frame){ .writer = xg_writer_ref(writer), .buffer = buffer };
	memory = gst_memory_new_wrapped(0, data, shape->bytes + shape->padding, 0, shape->bytes,
					NULL, NULL);
	gst_mini_object_set_qdata(GST_MINI_OBJECT(memory), frame_quark(), frame, drop_frame);
	gst_buffer_append_memory(wrapped, memory);
	return wrapped;
}

/*
 * Make `slots` buffers of this size, unless there are such buffers. Smaller ones stay until the
 * client ends. So each new set is at least twice as large as the one before: then all old sets
 * together are no larger than the new one. The caller has the turn.
 */
static GstFlowReturn preallocate(struct xg_writer *writer, gsize bytes)
{
	gsize larger = MAX(bytes, 2 * writer->bytes);

	if (bytes <= writer->bytes)
		return GST_FLOW_OK;
	if (xmem_preallocate(writer->pool, larger, writer->slots, NULL))
		return fail(writer, "Cannot make the buffers");
	writer->bytes = larger;
	return GST_FLOW_OK;
}

/* Acquire a buffer of xmem. The caller has the turn. */
static GstFlowReturn acquire(struct xg_writer *writer, gsize bytes, gboolean waits,
			     const struct xg_gate *own, struct xmem_buffer **ret)
{
	GstFlowReturn flow = preallocate(writer, bytes);
	int err;

	while (flow == GST_FLOW_OK) {
		*ret = xmem_acquire(writer->pool, bytes, 0);
		if (*ret)
			return GST_FLOW_OK;
		err = xmem_peek_last_error(NULL);
		if (err == -EINTR)
			continue;
		if (err != -EAGAIN)
			flow = fail(writer, "Cannot acquire a buffer");
		else if (!waits)
			flow = GST_FLOW_EOS;
		else if (!xg_wait(writer->poll_fd, POLLOUT, &writer->flush, own))
			flow = GST_FLOW_FLUSHING;
	}
	return flow;
}

GstFlowReturn xg_writer_acquire(struct xg_writer *writer, const struct xg_shape *shape,
				gboolean waits, const struct xg_gate *own, GstBuffer **ret)
{
	gsize offset[GST_VIDEO_MAX_PLANES] = { 0 };
	gint stride[GST_VIDEO_MAX_PLANES] = { 0 };
	const GstVideoInfo *info = shape->info;
	struct xmem_buffer *buffer = NULL;
	void *data = NULL;
	GstFlowReturn flow = GST_FLOW_FLUSHING;

	if (!take_turn(writer, &writer->flush, own))
		return GST_FLOW_FLUSHING;
	if (writer->pool)
		flow = acquire(writer, shape->bytes + shape->padding, waits, own, &buffer);
	give_turn(writer);
	if (flow != GST_FLOW_OK)
		return flow;
	data = xmem_data_mut(buffer);
	if (!data || (info && shape->meta && xg_describe_image(buffer, info,
			GST_VIDEO_INFO_PLANE_STRIDE(info, 0), offset, stride))) {
		fail(writer, "Cannot use a buffer");
		xmem_release(buffer);
		return GST_FLOW_ERROR;
	}
	*ret = wrap(writer, buffer, data, shape);
	if (info && shape->meta)
		gst_buffer_add_video_meta_full(*ret, GST_VIDEO_FRAME_FLAG_NONE,
					       GST_VIDEO_INFO_FORMAT(info),
					       GST_VIDEO_INFO_WIDTH(info),
					       GST_VIDEO_INFO_HEIGHT(info),
					       GST_VIDEO_INFO_N_PLANES(info), offset, stride);
	return GST_FLOW_OK;
}

struct xmem_buffer *xg_writer_buffer(struct xg_writer *writer, GstBuffer *buffer)
{
	struct xg_frame *frame;
	GstMemory *memory;
	gsize offset;

	if (gst_buffer_n_memory(buffer) != 1)
		return NULL;
	memory = gst_buffer_peek_memory(buffer, 0);
	frame = gst_mini_object_get_qdata(GST_MINI_OBJECT(memory), frame_quark());
	gst_memory_get_sizes(memory, &offset, NULL);
	if (!frame || frame->writer != writer || offset || xmem_token(frame->buffer))
		return NULL;
	return frame->buffer;
}
