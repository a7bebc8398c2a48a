// SPDX-License-Identifier: MIT
/*
 * The element xmemsrc receives publications. A GstBuffer wraps the contents without a copy, and the
 * publication is held until the last user drops this memory.
 */
#include <errno.h>
#include <poll.h>

#include "xmemgst.h"

struct _XmemSrc {
	GstPushSrc parent;
	gchar *pool_name, *label;
	gboolean leaky, reconnect;
	guint64 lost, copies;

	struct xmem_pool *pool;
	struct xmem_subscription *subscription;
	int poll_fd;
	struct xg_gate gate;		/* shut between unlock and unlock_stop */
	gboolean followed;		/* a writer has been there */
	gboolean has_caps;		/* from here on: of the last buffer */
	struct xmem_metadata metadata;
	guint32 publisher;
	guint64 sequence;
	GstVideoInfo info;
	gboolean takes_meta;		/* downstream reads GstVideoMeta */
	gboolean told;			/* that buffers of these caps are copied */
};

G_DECLARE_FINAL_TYPE(XmemSrc, xg_src, XG, SRC, GstPushSrc)
G_DEFINE_TYPE(XmemSrc, xg_src, GST_TYPE_PUSH_SRC)

static GstStaticPadTemplate template = GST_STATIC_PAD_TEMPLATE("src", GST_PAD_SRC,
							       GST_PAD_ALWAYS,
							       GST_STATIC_CAPS(XG_CAPS));

/* ---- properties ---- */

enum { POOL = 1, LABEL, LEAKY, RECONNECT, LOST, COPIES };

static void set_property(GObject *object, guint id, const GValue *value, GParamSpec *spec)
{
	XmemSrc *self = XG_SRC(object);

	GST_OBJECT_LOCK(self);
	switch (id) {
	case POOL: g_free(self->pool_name); self->pool_name = g_value_dup_string(value); break;
	case LABEL: g_free(self->label); self->label = g_value_dup_string(value); break;
	case LEAKY: self->leaky = g_value_get_boolean(value); break;
	case RECONNECT: self->reconnect = g_value_get_boolean(value); break;
	default: G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
	}
	GST_OBJECT_UNLOCK(self);
}

static void get_property(GObject *object, guint id, GValue *value, GParamSpec *spec)
{
	XmemSrc *self = XG_SRC(object);

	GST_OBJECT_LOCK(self);
	switch (id) {
	case POOL: g_value_set_string(value, self->pool_name); break;
	case LABEL: g_value_set_string(value, self->label); break;
	case LEAKY: g_value_set_boolean(value, self->leaky); break;
	case RECONNECT: g_value_set_boolean(value, self->reconnect); break;
	case LOST: g_value_set_uint64(value, self->lost); break;
	case COPIES: g_value_set_uint64(value, self->copies); break;
	default: G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
	}
	GST_OBJECT_UNLOCK(self);
}

/* ---- beginning and end ---- */

static gboolean stop(GstBaseSrc *src)
{
	XmemSrc *self = XG_SRC(src);

	xmem_unsubscribe(g_steal_pointer(&self->subscription));
	xmem_pool_close(g_steal_pointer(&self->pool));
	return TRUE;
}

/*
 * The subscription lasts (XMEM_SUBSCRIBE_LASTS), so this function does not wait for a writer.
 * create() waits instead, because unlock() can end that wait. With such a subscription xmem does
 * not report the end of all writers, so receive() looks for it.
 */
static gboolean start(GstBaseSrc *src)
{
	XmemSrc *self = XG_SRC(src);
	guint32 waits = self->leaky ? 0 : XMEM_SUBSCRIBE_WAITS;

	if (!self->pool_name) {
		GST_ELEMENT_ERROR(self, RESOURCE, SETTINGS, ("The property 'pool' is not set."),
				  (NULL));
		return FALSE;
	}
	self->followed = self->has_caps = FALSE;
	self->lost = self->copies = 0;
	self->publisher = XMEM_NOBODY;
	self->pool = xmem_pool_open(self->pool_name, XMEM_OPTIONS(xmem_pool_options,
		.flags = XMEM_OPEN_READER));
	self->subscription = !self->pool ? NULL : xmem_subscribe(self->pool,
		XMEM_OPTIONS(xmem_subscribe_options, .flags = XMEM_SUBSCRIBE_LASTS | waits,
			     .label = self->label));
	self->poll_fd = !self->subscription ? -1 : xmem_subscription_poll_fd(self->subscription);
	if (self->poll_fd >= 0)
		return TRUE;
	xg_post_error(self, "Cannot follow the pool");
	stop(src);
	return FALSE;
}

static gboolean unlock(GstBaseSrc *src)
{
	xg_gate_shut(&XG_SRC(src)->gate);
	return TRUE;
}

static gboolean unlock_stop(GstBaseSrc *src)
{
	xg_gate_open(&XG_SRC(src)->gate);
	return TRUE;
}

static gboolean is_seekable(GstBaseSrc *src)
{
	return FALSE;
}

/* There is nothing to negotiate: the caps are those of the contents that arrive. */
static gboolean negotiate(GstBaseSrc *src)
{
	return TRUE;
}

/* The latency is that of a camera: a frame is complete when the next one begins. */
static gboolean query(GstBaseSrc *src, GstQuery *query)
{
	XmemSrc *self = XG_SRC(src);
	GstClockTime frame = 0;

	if (GST_QUERY_TYPE(query) != GST_QUERY_LATENCY)
		return GST_BASE_SRC_CLASS(xg_src_parent_class)->query(src, query);
	GST_OBJECT_LOCK(self);
	if (self->has_caps && self->info.fps_n > 0)
		frame = gst_util_uint64_scale_int(GST_SECOND, self->info.fps_d, self->info.fps_n);
	GST_OBJECT_UNLOCK(self);
	gst_query_set_latency(query, TRUE, frame, GST_CLOCK_TIME_NONE);
	return TRUE;
}

/* ---- receiving ---- */

/* Nothing is left to receive. Have all writers ended? */
static gboolean is_over(XmemSrc *self, const struct xmem_subscription_info *info)
{
	self->followed |= info->follows > 0;
	return self->followed && !info->follows && !self->reconnect;
}

/* Wait for the next publication. EOS: there will be none. */
static GstFlowReturn receive(XmemSrc *self, struct xmem_buffer **ret)
{
	struct xmem_subscription_info info = XMEM_INIT(info);
	int err;

	for (;;) {
		*ret = xmem_receive(self->subscription, 0);
		if (*ret)
			return GST_FLOW_OK;
		err = xmem_peek_last_error(NULL);
		if (err == -EINTR)
			continue;
		if (err != -EAGAIN) {
			xg_post_error(self, "Cannot receive");
			return GST_FLOW_ERROR;
		}
		xmem_subscription_stat(self->subscription, &info);
		if (is_over(self, &info))
			return GST_FLOW_EOS;
		if (!xg_wait(self->poll_fd, POLLIN, &self->gate, NULL))
			return GST_FLOW_FLUSHING;
	}
}

/* ---- caps ---- */

static gboolean asks_for_meta(XmemSrc *self, GstCaps *caps)
{
	GstQuery *query = gst_query_new_allocation(caps, FALSE);
	gboolean takes = gst_pad_peer_query(GST_BASE_SRC_PAD(self), query) &&
			 gst_query_find_allocation_meta(query, GST_VIDEO_META_API_TYPE, NULL);

	gst_query_unref(query);
	return takes;
}

static GstFlowReturn set_caps(XmemSrc *self, const struct xmem_metadata *metadata)
{
	GstVideoInfo info;
	GstCaps *caps;
	gboolean is_set;

	if (self->has_caps && xg_equal_caps(&self->metadata, metadata))
		return GST_FLOW_OK;
	caps = xg_read_caps(metadata, &info);
	if (!caps)
		return GST_FLOW_NOT_NEGOTIATED;
	GST_OBJECT_LOCK(self);
	self->info = info;
	self->metadata = *metadata;
	self->has_caps = TRUE;
	GST_OBJECT_UNLOCK(self);
	self->told = FALSE;
	is_set = gst_base_src_set_caps(GST_BASE_SRC(self), caps);
	if (is_set && GST_VIDEO_INFO_FORMAT(&info) != GST_VIDEO_FORMAT_UNKNOWN)
		self->takes_meta = asks_for_meta(self, caps);
	if (is_set)
		gst_element_post_message(GST_ELEMENT(self),
					 gst_message_new_latency(GST_OBJECT(self)));
	gst_caps_unref(caps);
	return is_set ? GST_FLOW_OK : GST_FLOW_NOT_NEGOTIATED;
}

/* ---- GstBuffers ---- */

static void release(gpointer buffer)
{
	xmem_release(buffer);
}

/* For a downstream that does not read GstVideoMeta: it would look for the planes elsewhere. */
static GstBuffer *copy_image(XmemSrc *self, GstBuffer *from)
{
	GstBuffer *to = gst_buffer_new_allocate(NULL, self->info.size, NULL);
	GstVideoFrame source, target;

	if (!self->told)
		GST_CAT_WARNING_OBJECT(xg_performance, self, "buffers are copied: downstream "
				       "does not read GstVideoMeta");
	self->told = TRUE;
	GST_OBJECT_LOCK(self);
	self->copies++;
	GST_OBJECT_UNLOCK(self);
	gst_video_frame_map(&source, &self->info, from, GST_MAP_READ);
	gst_video_frame_map(&target, &self->info, to, GST_MAP_WRITE);
	gst_video_frame_copy(&target, &source);
	gst_video_frame_unmap(&target);
	gst_video_frame_unmap(&source);
	gst_buffer_unref(from);
	return to;
}

static GstBuffer *add_planes(XmemSrc *self, GstBuffer *buffer, const struct xmem_image *image)
{
	gsize offset[GST_VIDEO_MAX_PLANES] = { 0 };
	gint stride[GST_VIDEO_MAX_PLANES] = { 0 };
	gboolean usual = gst_buffer_get_size(buffer) >= self->info.size;
	guint32 i;

	for (i = 0; i < image->planes; i++) {
		offset[i] = (const guint8 *)image->plane[i].data -
			    (const guint8 *)image->plane[0].data;
		stride[i] = image->plane[i].stride;
		usual &= offset[i] == self->info.offset[i] && stride[i] == self->info.stride[i];
	}
	gst_buffer_add_video_meta_full(buffer, GST_VIDEO_FRAME_FLAG_NONE,
				       GST_VIDEO_INFO_FORMAT(&self->info), image->width,
				       image->height, image->planes, offset, stride);
	return usual || self->takes_meta ? buffer : copy_image(self, buffer);
}

static void set_times(XmemSrc *self, GstBuffer *buffer, const struct xmem_metadata *metadata,
		      guint64 published)
{
	GstClock *clock = gst_element_get_clock(GST_ELEMENT(self));
	GstClockTime base = gst_element_get_base_time(GST_ELEMENT(self)), time;
	struct xg_times times;

	xg_read_times(metadata, published, &times);
	GST_BUFFER_DURATION(buffer) = times.duration;
	if (clock && GST_CLOCK_TIME_IS_VALID(times.clock) &&
	    !gst_base_src_get_do_timestamp(GST_BASE_SRC(self))) {
		time = xg_from_monotonic(clock, times.clock);
		GST_BUFFER_PTS(buffer) = time > base ? time - base : 0;
	}
	g_clear_object(&clock);
}

/* Mark a buffer if publications before it were lost, or if its publisher is another one. */
static void set_discont(XmemSrc *self, GstBuffer *buffer, const struct xmem_buffer_info *xmem)
{
	struct xmem_subscription_info info = XMEM_INIT(info);

	if (xmem->publisher != self->publisher || xmem->sequence != self->sequence + 1)
		GST_BUFFER_FLAG_SET(buffer, GST_BUFFER_FLAG_DISCONT);
	xmem_subscription_stat(self->subscription, &info);
	GST_OBJECT_LOCK(self);
	self->lost = info.lost;
	GST_OBJECT_UNLOCK(self);
	self->publisher = xmem->publisher;
	self->sequence = xmem->sequence;
	self->followed = TRUE;
}

static GstFlowReturn wrap(XmemSrc *self, struct xmem_buffer *xmem, GstBuffer **ret)
{
	struct xmem_buffer_info info = XMEM_INIT(info);
	struct xmem_image image = XMEM_INIT(image);
	struct xmem_metadata metadata;
	gsize bytes = xmem_size(xmem);
	const void *data = xmem_data(xmem);
	GstFlowReturn flow;
	GstBuffer *buffer;

	if (!data || xmem_metadata_view(xmem, &metadata) || xmem_buffer_stat(xmem, &info) ||
	    (metadata.image && xmem_image_view(xmem, 0, &image))) {
		xg_post_error(self, "Cannot read a buffer");
		return GST_FLOW_ERROR;
	}
	flow = set_caps(self, &metadata);
	if (flow != GST_FLOW_OK)
		return flow;
	buffer = gst_buffer_new_wrapped_full(GST_MEMORY_FLAG_READONLY, (gpointer)data, bytes, 0,
					     bytes, xmem, release);
	if (GST_VIDEO_INFO_FORMAT(&self->info) != GST_VIDEO_FORMAT_UNKNOWN)
		buffer = add_planes(self, buffer, &image);
	set_times(self, buffer, &metadata, info.timestamp_ns);
	set_discont(self, buffer, &info);
	*ret = buffer;
	return GST_FLOW_OK;
}

static GstFlowReturn create(GstPushSrc *src, GstBuffer **ret)
{
	XmemSrc *self = XG_SRC(src);
	struct xmem_buffer *xmem;
	GstFlowReturn flow = receive(self, &xmem);

	if (flow != GST_FLOW_OK)
		return flow;
	flow = wrap(self, xmem, ret);
	if (flow != GST_FLOW_OK)
		xmem_release(xmem);
	return flow;
}

/* ---- the class ---- */

static void finalize(GObject *object)
{
	XmemSrc *self = XG_SRC(object);

	g_free(self->pool_name);
	g_free(self->label);
	xg_gate_clear(&self->gate);
	G_OBJECT_CLASS(xg_src_parent_class)->finalize(object);
}

static void install_properties(GObjectClass *class)
{
	const GParamFlags only_read = G_PARAM_READABLE | G_PARAM_STATIC_STRINGS;
	const GParamFlags flags = only_read | G_PARAM_WRITABLE | GST_PARAM_MUTABLE_READY;

	g_object_class_install_property(class, POOL, g_param_spec_string("pool", "Pool",
		"Name of the pool, which is made if there is none", NULL, flags));
	g_object_class_install_property(class, LABEL, g_param_spec_string("label", "Label",
		"Receive only from writers with this label (NULL: from all)", NULL, flags));
	g_object_class_install_property(class, LEAKY, g_param_spec_boolean("leaky", "Leaky",
		"Lose buffers rather than let writers wait", TRUE, flags));
	g_object_class_install_property(class, RECONNECT, g_param_spec_boolean("reconnect",
		"Reconnect", "Wait for the next writer when all have ended (FALSE: EOS)", FALSE,
		flags));
	g_object_class_install_property(class, LOST, g_param_spec_uint64("lost", "Lost",
		"Number of buffers that were lost", 0, G_MAXUINT64, 0, only_read));
	g_object_class_install_property(class, COPIES, g_param_spec_uint64("copies", "Copies",
		"Number of buffers that were copied because downstream does not read GstVideoMeta",
		0, G_MAXUINT64, 0, only_read));
}

static void xg_src_class_init(XmemSrcClass *class)
{
	GObjectClass *object_class = G_OBJECT_CLASS(class);
	GstElementClass *element_class = GST_ELEMENT_CLASS(class);
	GstBaseSrcClass *src_class = GST_BASE_SRC_CLASS(class);

	object_class->set_property = set_property;
	object_class->get_property = get_property;
	object_class->finalize = finalize;
	install_properties(object_class);
	gst_element_class_add_static_pad_template(element_class, &template);
	gst_element_class_set_static_metadata(element_class, "xmem source", "Source",
		"Receives buffers from other processes, without a copy", "xmem");
	src_class->start = start;
	src_class->stop = stop;
	src_class->unlock = unlock;
	src_class->unlock_stop = unlock_stop;
	src_class->is_seekable = is_seekable;
	src_class->negotiate = negotiate;
	src_class->query = query;
	GST_PUSH_SRC_CLASS(class)->create = create;
}

static void xg_src_init(XmemSrc *self)
{
	self->leaky = TRUE;
	xg_gate_init(&self->gate);
	gst_base_src_set_live(GST_BASE_SRC(self), TRUE);
	gst_base_src_set_format(GST_BASE_SRC(self), GST_FORMAT_TIME);
}
