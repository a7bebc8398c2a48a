// SPDX-License-Identifier: MIT
/*
 * The element xmemsink publishes each buffer that arrives. If upstream has written it into memory
 * of the pool that propose_allocation offers, nothing is copied.
 */
#include <string.h>

#include "xmemgst.h"

struct _XmemSink {
	GstBaseSink parent;
	gchar *pool, *label;
	guint slots, subscribers;
	guint64 max_wait, copies;

	struct xg_writer *writer;	/* NULL: stopped; the object lock protects it */
	struct xg_gate gate;		/* shut between unlock and unlock_stop */
	GstVideoInfo info;		/* of an image; its format is UNKNOWN for other contents */
	gchar *media_type;
	gboolean waited;		/* the subscribers have come */
	gboolean told;			/* that buffers of these caps are copied */
};

G_DECLARE_FINAL_TYPE(XmemSink, xg_sink, XG, SINK, GstBaseSink)
G_DEFINE_TYPE(XmemSink, xg_sink, GST_TYPE_BASE_SINK)

static GstStaticPadTemplate template = GST_STATIC_PAD_TEMPLATE("sink", GST_PAD_SINK,
							       GST_PAD_ALWAYS,
							       GST_STATIC_CAPS(XG_CAPS));

/* ---- properties ---- */

enum { POOL = 1, LABEL, SLOTS, SUBSCRIBERS, MAX_WAIT, COPIES };

static void set_property(GObject *object, guint id, const GValue *value, GParamSpec *spec)
{
	XmemSink *self = XG_SINK(object);

	GST_OBJECT_LOCK(self);
	switch (id) {
	case POOL: g_free(self->pool); self->pool = g_value_dup_string(value); break;
	case LABEL: g_free(self->label); self->label = g_value_dup_string(value); break;
	case SLOTS: self->slots = g_value_get_uint(value); break;
	case SUBSCRIBERS: self->subscribers = g_value_get_uint(value); break;
	case MAX_WAIT: self->max_wait = g_value_get_uint64(value); break;
	default: G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
	}
	GST_OBJECT_UNLOCK(self);
}

static void get_property(GObject *object, guint id, GValue *value, GParamSpec *spec)
{
	XmemSink *self = XG_SINK(object);

	GST_OBJECT_LOCK(self);
	switch (id) {
	case POOL: g_value_set_string(value, self->pool); break;
	case LABEL: g_value_set_string(value, self->label); break;
	case SLOTS: g_value_set_uint(value, self->slots); break;
	case SUBSCRIBERS: g_value_set_uint(value, self->subscribers); break;
	case MAX_WAIT: g_value_set_uint64(value, self->max_wait); break;
	case COPIES: g_value_set_uint64(value, self->copies); break;
	default: G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
	}
	GST_OBJECT_UNLOCK(self);
}

/* ---- beginning and end ---- */

static gboolean start(XmemSink *self)
{
	struct xg_writer *writer;

	if (!self->pool) {
		GST_ELEMENT_ERROR(self, RESOURCE, SETTINGS, ("The property 'pool' is not set."),
				  (NULL));
		return FALSE;
	}
	writer = xg_writer_open(GST_ELEMENT(self), self->pool, self->label, self->slots,
				MIN(self->max_wait, XMEM_FOREVER));
	GST_OBJECT_LOCK(self);
	self->writer = writer;
	self->copies = 0;
	GST_OBJECT_UNLOCK(self);
	gst_video_info_init(&self->info);
	self->waited = FALSE;
	return !!writer;
}

static void stop(XmemSink *self)
{
	struct xg_writer *writer;

	GST_OBJECT_LOCK(self);
	writer = g_steal_pointer(&self->writer);
	GST_OBJECT_UNLOCK(self);
	if (writer)
		xg_writer_close(writer);
	g_clear_pointer(&self->media_type, g_free);
}

/* The caller unreferences it. */
static struct xg_writer *get_writer(XmemSink *self)
{
	struct xg_writer *writer;

	GST_OBJECT_LOCK(self);
	writer = self->writer ? xg_writer_ref(self->writer) : NULL;
	GST_OBJECT_UNLOCK(self);
	return writer;
}

/*
 * Elements before this one may wait for a buffer of the pool. While they are flushed, and after
 * stop(), nothing is published, so these waits would not end: let them fail then.
 */
static void set_flushing(XmemSink *self, gboolean flushing)
{
	struct xg_writer *writer = get_writer(self);

	if (!writer)
		return;
	xg_writer_set_flushing(writer, flushing);
	xg_writer_unref(writer);
}

/* The client lives as long as that of xmemsrc: in PAUSED and PLAYING. */
static GstStateChangeReturn change_state(GstElement *element, GstStateChange change)
{
	XmemSink *self = XG_SINK(element);
	GstStateChangeReturn result;

	if (change == GST_STATE_CHANGE_READY_TO_PAUSED && !start(self))
		return GST_STATE_CHANGE_FAILURE;
	result = GST_ELEMENT_CLASS(xg_sink_parent_class)->change_state(element, change);
	if (change == GST_STATE_CHANGE_PAUSED_TO_READY ||
	    (change == GST_STATE_CHANGE_READY_TO_PAUSED && result == GST_STATE_CHANGE_FAILURE))
		stop(self);
	return result;
}

static gboolean event(GstBaseSink *sink, GstEvent *event)
{
	if (GST_EVENT_TYPE(event) == GST_EVENT_FLUSH_START)
		set_flushing(XG_SINK(sink), TRUE);
	if (GST_EVENT_TYPE(event) == GST_EVENT_FLUSH_STOP)
		set_flushing(XG_SINK(sink), FALSE);
	return GST_BASE_SINK_CLASS(xg_sink_parent_class)->event(sink, event);
}

static gboolean unlock(GstBaseSink *sink)
{
	xg_gate_shut(&XG_SINK(sink)->gate);
	return TRUE;
}

static gboolean unlock_stop(GstBaseSink *sink)
{
	xg_gate_open(&XG_SINK(sink)->gate);
	return TRUE;
}

/* ---- caps, and the proposed pool ---- */

static gboolean set_caps(GstBaseSink *sink, GstCaps *caps)
{
	XmemSink *self = XG_SINK(sink);
	const gchar *name = gst_structure_get_name(gst_caps_get_structure(caps, 0));

	gst_video_info_init(&self->info);
	self->told = FALSE;
	g_free(self->media_type);
	self->media_type = g_strdup(name);
	return !!strcmp(name, "video/x-raw") || gst_video_info_from_caps(&self->info, caps);
}

static gboolean propose_allocation(GstBaseSink *sink, GstQuery *query)
{
	struct xg_writer *writer;
	GstBufferPool *pool;
	gboolean need_pool;
	GstVideoInfo info;
	GstCaps *caps;

	gst_query_parse_allocation(query, &caps, &need_pool);
	if (!caps || !gst_video_info_from_caps(&info, caps))
		return TRUE;		/* other contents are copied */
	gst_query_add_allocation_meta(query, GST_VIDEO_META_API_TYPE, NULL);
	writer = need_pool ? get_writer(XG_SINK(sink)) : NULL;
	if (!writer)
		return TRUE;
	pool = xg_buffer_pool_new(writer);	/* upstream configures it */
	gst_query_add_allocation_pool(query, pool, info.size, 0, 0);
	gst_object_unref(pool);
	xg_writer_unref(writer);
	return TRUE;
}

/* ---- publishing ---- */

static void tell_copy(XmemSink *self, const char *why)
{
	GST_OBJECT_LOCK(self);
	self->copies++;
	GST_OBJECT_UNLOCK(self);
	if (!self->told)
		GST_CAT_WARNING_OBJECT(xg_performance, self, "buffers are copied: %s", why);
	self->told = TRUE;
}

/* Can the planes of @buffer be described where they are? Then they are described. */
static gboolean describe_planes(XmemSink *self, GstBuffer *buffer, struct xmem_buffer *xmem)
{
	const GstVideoMeta *meta = gst_buffer_get_video_meta(buffer);
	const gint *strides = meta ? meta->stride : self->info.stride;
	const gsize *offsets = meta ? meta->offset : self->info.offset;
	gsize offset[GST_VIDEO_MAX_PLANES];
	gint stride[GST_VIDEO_MAX_PLANES];
	guint i;

	if (strides[0] < 0 || offsets[0] ||
	    xg_describe_image(xmem, &self->info, strides[0], offset, stride))
		return FALSE;
	for (i = 0; i < GST_VIDEO_INFO_N_PLANES(&self->info); i++)
		if (offset[i] != offsets[i] || stride[i] != strides[i])
			return FALSE;
	return TRUE;
}

static gboolean is_image(const XmemSink *self)
{
	return GST_VIDEO_INFO_FORMAT(&self->info) != GST_VIDEO_FORMAT_UNKNOWN;
}

static gboolean copy_image(XmemSink *self, GstBuffer *to, GstBuffer *from)
{
	GstVideoFrame source, target;
	gboolean copied = FALSE;

	if (!gst_video_frame_map(&source, &self->info, from, GST_MAP_READ))
		return FALSE;
	if (gst_video_frame_map(&target, &self->info, to, GST_MAP_WRITE)) {
		copied = gst_video_frame_copy(&target, &source);
		gst_video_frame_unmap(&target);
	}
	gst_video_frame_unmap(&source);
	return copied;
}

static GstFlowReturn copy(XmemSink *self, GstBuffer *from, GstBuffer **ret)
{
	gsize bytes = gst_buffer_get_size(from), copied;
	struct xg_shape shape = { .bytes = bytes };
	GstFlowReturn flow;

	if (is_image(self))
		shape = (struct xg_shape){
			.bytes = self->info.size, .info = &self->info, .meta = TRUE,
		};
	flow = xg_writer_acquire(self->writer, &shape, TRUE, &self->gate, ret);
	if (flow != GST_FLOW_OK)
		return flow;
	if (is_image(self)) {
		copied = copy_image(self, *ret, from) ? bytes : 0;
	} else {
		GstMapInfo map = { 0 };

		copied = gst_buffer_map(*ret, &map, GST_MAP_WRITE) ?
			 gst_buffer_extract(from, 0, map.data, bytes) : 0;
		gst_buffer_unmap(*ret, &map);
	}
	if (copied == bytes)
		return GST_FLOW_OK;
	gst_clear_buffer(ret);
	GST_ELEMENT_ERROR(self, STREAM, FORMAT, ("A buffer of %zu bytes cannot be read.", bytes),
			  (NULL));
	return GST_FLOW_ERROR;
}

static void get_times(XmemSink *self, GstBuffer *buffer, struct xg_times *ret)
{
	GstBaseSink *sink = GST_BASE_SINK(self);
	GstClock *clock = gst_element_get_clock(GST_ELEMENT(self));
	GstClockTime running = GST_CLOCK_TIME_NONE;

	*ret = (struct xg_times){
		.pts = GST_BUFFER_PTS(buffer), .duration = GST_BUFFER_DURATION(buffer),
		.clock = GST_CLOCK_TIME_NONE,
	};
	if (sink->segment.format == GST_FORMAT_TIME && GST_CLOCK_TIME_IS_VALID(ret->pts))
		running = gst_segment_to_running_time(&sink->segment, GST_FORMAT_TIME, ret->pts);
	if (clock && GST_CLOCK_TIME_IS_VALID(running))
		ret->clock = xg_to_monotonic(clock, running +
					     gst_element_get_base_time(GST_ELEMENT(self)));
	g_clear_object(&clock);
}

/*
 * Publish @buffer, whose memory is @xmem. Elements that hold the buffer keep it, but from now on
 * they cannot write into it.
 */
static GstFlowReturn publish(XmemSink *self, GstBuffer *buffer, struct xmem_buffer *xmem,
			     const struct xg_times *times)
{
	int err = xg_describe_rest(xmem, is_image(self) ? &self->info : NULL, self->media_type,
				   times);

	GST_MINI_OBJECT_FLAG_SET(gst_buffer_peek_memory(buffer, 0), GST_MEMORY_FLAG_READONLY);
	if (!err)
		err = xmem_publish(xmem, XMEM_OPTIONS(xmem_publish_options,
			.flags = XMEM_PUBLISH_KEEP, .length = gst_buffer_get_size(buffer),
			.timestamp_ns = g_get_monotonic_time() * 1000), NULL);
	if (!err)
		return GST_FLOW_OK;
	xg_post_error(self, "Cannot publish a buffer");
	return GST_FLOW_ERROR;
}

static GstFlowReturn hand_over(XmemSink *self, GstBuffer *buffer)
{
	struct xmem_buffer *xmem = xg_writer_buffer(self->writer, buffer);
	GstBuffer *ours = NULL;
	GstFlowReturn flow;
	struct xg_times times;

	get_times(self, buffer, &times);
	if (!xmem || (is_image(self) && !describe_planes(self, buffer, xmem))) {
		flow = copy(self, buffer, &ours);
		if (flow != GST_FLOW_OK)
			return flow;
		tell_copy(self, xmem ? "the planes are not where xmem has them" :
			  "they are not of the pool that this element proposes");
		buffer = ours;
		xmem = xg_writer_buffer(self->writer, ours);
	}
	flow = publish(self, buffer, xmem, &times);
	gst_clear_buffer(&ours);
	return flow;
}

static GstFlowReturn render(GstBaseSink *sink, GstBuffer *buffer)
{
	XmemSink *self = XG_SINK(sink);
	GstFlowReturn flow;

	if (!gst_buffer_get_size(buffer))
		return GST_FLOW_OK;	/* a gap */
	do {
		flow = GST_FLOW_OK;
		if (!self->waited && self->subscribers)
			flow = xg_writer_wait_subscribers(self->writer, self->subscribers,
							  &self->gate);
		self->waited |= flow == GST_FLOW_OK;
		if (flow == GST_FLOW_OK)
			flow = hand_over(self, buffer);
		/*
		 * unlock() has shut the gate, because the element pauses or flushes. The next call
		 * waits until a pause is over; after a flush it fails.
		 */
	} while (flow == GST_FLOW_FLUSHING &&
		 (flow = gst_base_sink_wait_preroll(sink)) == GST_FLOW_OK);
	return flow;
}

/* ---- the class ---- */

static void finalize(GObject *object)
{
	XmemSink *self = XG_SINK(object);

	g_free(self->pool);
	g_free(self->label);
	xg_gate_clear(&self->gate);
	G_OBJECT_CLASS(xg_sink_parent_class)->finalize(object);
}

static void install_properties(GObjectClass *class)
{
	const GParamFlags flags = G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS |
				  GST_PARAM_MUTABLE_READY;

	g_object_class_install_property(class, POOL, g_param_spec_string("pool", "Pool",
		"Name of the pool, which is made if there is none", NULL, flags));
	g_object_class_install_property(class, LABEL, g_param_spec_string("label", "Label",
		"Name of this writer, up to 15 characters (NULL: the program's name)", NULL,
		flags));
	g_object_class_install_property(class, SLOTS, g_param_spec_uint("slots", "Slots",
		"Number of buffers that all elements and subscribers together can hold", 2, 512,
		16, flags));
	g_object_class_install_property(class, SUBSCRIBERS, g_param_spec_uint("subscribers",
		"Subscribers", "Number of subscribers to wait for before the first buffer", 0, 255,
		0, flags));
	g_object_class_install_property(class, MAX_WAIT, g_param_spec_uint64("max-wait",
		"Longest wait", "Nanoseconds to wait for slow subscribers that are not leaky",
		0, G_MAXUINT64, GST_SECOND, flags));
	g_object_class_install_property(class, COPIES, g_param_spec_uint64("copies", "Copies",
		"Number of buffers that were copied because upstream had not written into the "
		"pool", 0, G_MAXUINT64, 0, G_PARAM_READABLE | G_PARAM_STATIC_STRINGS));
}

static void xg_sink_class_init(XmemSinkClass *class)
{
	GObjectClass *object_class = G_OBJECT_CLASS(class);
	GstElementClass *element_class = GST_ELEMENT_CLASS(class);
	GstBaseSinkClass *sink_class = GST_BASE_SINK_CLASS(class);

	object_class->set_property = set_property;
	object_class->get_property = get_property;
	object_class->finalize = finalize;
	install_properties(object_class);
	gst_element_class_add_static_pad_template(element_class, &template);
	gst_element_class_set_static_metadata(element_class, "xmem sink", "Sink",
		"Publishes buffers to other processes, without a copy", "xmem");
	element_class->change_state = change_state;
	sink_class->event = event;
	sink_class->unlock = unlock;
	sink_class->unlock_stop = unlock_stop;
	sink_class->set_caps = set_caps;
	sink_class->propose_allocation = propose_allocation;
	sink_class->render = render;
}

static void xg_sink_init(XmemSink *self)
{
	self->slots = 16;
	self->max_wait = GST_SECOND;
	xg_gate_init(&self->gate);
	/* The last sample would hold one of the slots. */
	gst_base_sink_set_last_sample_enabled(GST_BASE_SINK(self), FALSE);
}
