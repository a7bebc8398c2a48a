// SPDX-License-Identifier: MIT
/*
 * The GstBufferPool that xmemsink proposes to the elements before it. It keeps no buffers itself:
 * each acquire takes a buffer of xmem, and when the last element drops the buffer, it is released.
 */
#include "xmemgst.h"

struct _XgBufferPool {
	GstBufferPool parent;
	struct xg_writer *writer;
	struct xg_gate gate;		/* shut while the pool is flushing */
	GstVideoInfo info;		/* of an image */
	struct xg_shape shape;		/* set_config sets it, and the next two */
	GstAllocationParams params;
	gboolean plain;			/* buffers are not of xmem, and xmemsink will copy them */
};

G_DECLARE_FINAL_TYPE(XgBufferPool, xg_buffer_pool, XG, BUFFER_POOL, GstBufferPool)
G_DEFINE_TYPE(XgBufferPool, xg_buffer_pool, GST_TYPE_BUFFER_POOL)

static const gchar **get_options(GstBufferPool *pool)
{
	static const gchar *options[] = { GST_BUFFER_POOL_OPTION_VIDEO_META, NULL };

	return options;
}

/*
 * The pool takes every configuration. If the planes must be where xmem does not have them, or the
 * memory must be aligned to more than 64 bytes, the pool gives ordinary memory, and xmemsink copies
 * each image into a buffer of xmem. With buffers of xmem instead, upstream could take all of them,
 * and the copy would find none.
 */
static gboolean set_config(GstBufferPool *pool, GstStructure *config)
{
	XgBufferPool *self = XG_BUFFER_POOL(pool);
	guint size, min, max;
	gboolean meta;
	GstCaps *caps;

	if (!gst_buffer_pool_config_get_params(config, &caps, &size, &min, &max) || !caps ||
	    !gst_video_info_from_caps(&self->info, caps))
		return FALSE;
	gst_allocation_params_init(&self->params);
	gst_buffer_pool_config_get_allocator(config, NULL, &self->params);
	meta = gst_buffer_pool_config_has_option(config, GST_BUFFER_POOL_OPTION_VIDEO_META);
	self->plain = self->params.align > 63 || self->params.prefix ||
		      !(meta || xg_is_usual_layout(&self->info));
	size = MAX(size, self->info.size);
	self->shape = (struct xg_shape){
		.bytes = size, .padding = self->params.padding,
		.info = &self->info, .meta = meta,
	};
	gst_buffer_pool_config_set_params(config, caps, size, min, max);
	return GST_BUFFER_POOL_CLASS(xg_buffer_pool_parent_class)->set_config(pool, config);
}

/* The parent's start would make buffers in advance, but writer.c makes those of xmem. */
static gboolean start(GstBufferPool *pool)
{
	return TRUE;
}

static GstFlowReturn acquire(GstBufferPool *pool, GstBuffer **ret,
			     GstBufferPoolAcquireParams *params)
{
	XgBufferPool *self = XG_BUFFER_POOL(pool);
	gboolean waits = !params || !(params->flags & GST_BUFFER_POOL_ACQUIRE_FLAG_DONTWAIT);

	if (GST_BUFFER_POOL_IS_FLUSHING(pool))
		return GST_FLOW_FLUSHING;
	if (self->plain) {
		*ret = gst_buffer_new_allocate(NULL, self->shape.bytes, &self->params);
		return *ret ? GST_FLOW_OK : GST_FLOW_ERROR;
	}
	return xg_writer_acquire(self->writer, &self->shape, waits, &self->gate, ret);
}

static void release(GstBufferPool *pool, GstBuffer *buffer)
{
	gst_buffer_unref(buffer);
}

static void flush_start(GstBufferPool *pool)
{
	xg_gate_shut(&XG_BUFFER_POOL(pool)->gate);
}

static void flush_stop(GstBufferPool *pool)
{
	xg_gate_open(&XG_BUFFER_POOL(pool)->gate);
}

static void finalize(GObject *object)
{
	XgBufferPool *self = XG_BUFFER_POOL(object);

	xg_writer_unref(self->writer);
	xg_gate_clear(&self->gate);
	G_OBJECT_CLASS(xg_buffer_pool_parent_class)->finalize(object);
}

static void xg_buffer_pool_class_init(XgBufferPoolClass *class)
{
	GstBufferPoolClass *pool_class = GST_BUFFER_POOL_CLASS(class);

	G_OBJECT_CLASS(class)->finalize = finalize;
	pool_class->get_options = get_options;
	pool_class->set_config = set_config;
	pool_class->start = start;
	pool_class->acquire_buffer = acquire;
	pool_class->release_buffer = release;
	pool_class->flush_start = flush_start;
	pool_class->flush_stop = flush_stop;
}

static void xg_buffer_pool_init(XgBufferPool *self)
{
	xg_gate_init(&self->gate);
}

GstBufferPool *xg_buffer_pool_new(struct xg_writer *writer)
{
	XgBufferPool *self = g_object_new(xg_buffer_pool_get_type(), NULL);

	self->writer = xg_writer_ref(writer);
	return GST_BUFFER_POOL(g_object_ref_sink(self));
}
