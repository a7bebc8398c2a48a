// SPDX-License-Identifier: MIT
/*
 * The GstBufferPool that xmemsink proposes to the elements before it. It keeps no buffers itself:
 * each acquire is one of xmem, and a buffer that is dropped is released.
 */
#include "xmemgst.h"

struct _XgBufferPool {
	GstBufferPool parent;
	struct xg_writer *writer;
	struct xg_gate gate;		/* shut while the pool is flushing */
	GstVideoInfo info;		/* of an image */
	struct xg_shape shape;		/* set_config sets it */
};

G_DECLARE_FINAL_TYPE(XgBufferPool, xg_buffer_pool, XG, BUFFER_POOL, GstBufferPool)
G_DEFINE_TYPE(XgBufferPool, xg_buffer_pool, GST_TYPE_BUFFER_POOL)

static const gchar **get_options(GstBufferPool *pool)
{
	static const gchar *options[] = { GST_BUFFER_POOL_OPTION_VIDEO_META, NULL };

	return options;
}

/* Memory is aligned to 64 bytes. A pool that cannot do what is asked is not used. */
static gboolean set_config(GstBufferPool *pool, GstStructure *config)
{
	XgBufferPool *self = XG_BUFFER_POOL(pool);
	GstAllocationParams params = { 0 };
	guint size, min, max;
	GstCaps *caps;

	if (!gst_buffer_pool_config_get_params(config, &caps, &size, &min, &max) || !caps ||
	    !gst_video_info_from_caps(&self->info, caps))
		return FALSE;
	if (gst_buffer_pool_config_get_allocator(config, NULL, &params) &&
	    (params.align > 63 || params.prefix))
		return FALSE;
	size = MAX(size, self->info.size);
	self->shape = (struct xg_shape){
		.bytes = size,
		.padding = params.padding,
		.info = &self->info,
		.meta = gst_buffer_pool_config_has_option(config,
							  GST_BUFFER_POOL_OPTION_VIDEO_META),
	};
	gst_buffer_pool_config_set_params(config, caps, size, min, max);
	return GST_BUFFER_POOL_CLASS(xg_buffer_pool_parent_class)->set_config(pool, config);
}

/* The parent's would make buffers in advance; those of xmem are made already. */
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
