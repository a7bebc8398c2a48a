// SPDX-License-Identifier: MIT
#include "pipes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

gint64 patience(void)
{
	const char *percent = g_getenv("XMEM_TEST_PATIENCE");

	return (percent && *percent ? strtod(percent, NULL) : 100) * 1.2 * G_USEC_PER_SEC;
}

/* ---- pipelines ---- */

GstElement *pipe_new(const char *format, ...)
{
	GError *error = NULL;
	GstElement *pipe;
	gchar *text;
	va_list args;

	va_start(args, format);
	text = g_strdup_vprintf(format, args);
	va_end(args);
	pipe = gst_parse_launch(text, &error);
	ck_assert_msg(!error, "%s: %s", text, error ? error->message : "");
	g_free(text);
	return pipe;
}

void pipe_set(GstElement *pipe, GstState state)
{
	ck_assert_int_ne(gst_element_set_state(pipe, state), GST_STATE_CHANGE_FAILURE);
}

void pipe_free(GstElement *pipe)
{
	pipe_set(pipe, GST_STATE_NULL);
	gst_object_unref(pipe);
}

static GstMessage *wait_message(GstElement *pipe)
{
	GstBus *bus = gst_element_get_bus(pipe);
	GstMessage *message = gst_bus_timed_pop_filtered(bus, patience() * GST_USECOND,
							 GST_MESSAGE_EOS | GST_MESSAGE_ERROR);

	gst_object_unref(bus);
	ck_assert_msg(message != NULL, "neither the end nor an error comes");
	return message;
}

void pipe_wait(GstElement *pipe)
{
	GstMessage *message = wait_message(pipe);
	GError *error = NULL;
	gchar *debug = NULL;

	if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR)
		gst_message_parse_error(message, &error, &debug);
	ck_assert_msg(!error, "%s; %s", error ? error->message : "", debug);
	gst_message_unref(message);
}

gchar *pipe_error(GstElement *pipe, gchar **ret_debug)
{
	GstMessage *message = wait_message(pipe);
	GError *error = NULL;
	gchar *text;

	ck_assert_int_eq(GST_MESSAGE_TYPE(message), GST_MESSAGE_ERROR);
	gst_message_parse_error(message, &error, ret_debug);
	text = g_strdup(error->message);
	g_error_free(error);
	gst_message_unref(message);
	return text;
}

static GstElement *find(GstElement *pipe, const char *name)
{
	GstElement *element = gst_bin_get_by_name(GST_BIN(pipe), name);

	ck_assert_msg(element != NULL, "there is no element %s", name);
	gst_object_unref(element);
	return element;
}

guint64 pipe_number(GstElement *pipe, const char *element, const char *property)
{
	guint64 value;

	g_object_get(find(pipe, element), property, &value, NULL);
	return value;
}

GstPad *pipe_pad(GstElement *pipe, const char *element, const char *pad)
{
	GstPad *found = gst_element_get_static_pad(find(pipe, element), pad);

	ck_assert_ptr_nonnull(found);
	return found;
}

/* ---- buffers that pass a pad ---- */

static GstPadProbeReturn saw(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	GstBuffer *buffer = GST_PAD_PROBE_INFO_BUFFER(info);
	struct seen *seen = data;

	g_mutex_lock(&seen->lock);
	g_ptr_array_add(seen->buffers, seen->keep ? gst_buffer_ref(buffer) : NULL);
	g_ptr_array_add(seen->caps, gst_pad_get_current_caps(pad));
	g_cond_broadcast(&seen->changed);
	while (seen->stop_at && seen->buffers->len >= seen->stop_at)
		g_cond_wait(&seen->changed, &seen->lock);
	g_mutex_unlock(&seen->lock);
	return GST_PAD_PROBE_OK;
}

static void drop(gpointer buffer)
{
	if (buffer)
		gst_buffer_unref(buffer);
}

struct seen *see(GstElement *pipe, const char *element, const char *pad)
{
	GstPad *where = pipe_pad(pipe, element, pad);
	struct seen *seen = g_new0(struct seen, 1);

	seen->buffers = g_ptr_array_new_with_free_func(drop);
	seen->caps = g_ptr_array_new_with_free_func((GDestroyNotify)gst_caps_unref);
	gst_pad_add_probe(where, GST_PAD_PROBE_TYPE_BUFFER, saw, seen, NULL);
	gst_object_unref(where);
	return seen;
}

void see_wait(struct seen *seen, guint count)
{
	gint64 end = g_get_monotonic_time() + patience();

	g_mutex_lock(&seen->lock);
	while (seen->buffers->len < count)
		ck_assert_msg(g_cond_wait_until(&seen->changed, &seen->lock, end),
			      "%u buffers come instead of %u", seen->buffers->len, count);
	g_mutex_unlock(&seen->lock);
}

void see_continue(struct seen *seen)
{
	g_mutex_lock(&seen->lock);
	seen->stop_at = 0;
	g_cond_broadcast(&seen->changed);
	g_mutex_unlock(&seen->lock);
}

void see_drop(struct seen *seen)
{
	g_mutex_lock(&seen->lock);
	g_ptr_array_set_size(seen->buffers, 0);
	g_ptr_array_set_size(seen->caps, 0);
	g_mutex_unlock(&seen->lock);
}

GstBuffer *see_buffer(struct seen *seen, guint i)
{
	GstBuffer *buffer;

	g_mutex_lock(&seen->lock);
	ck_assert_uint_lt(i, seen->buffers->len);
	buffer = g_ptr_array_index(seen->buffers, i);
	g_mutex_unlock(&seen->lock);
	return buffer;
}

static void map_frame(GstVideoFrame *frame, GstBuffer *buffer, GstCaps *caps)
{
	GstVideoInfo info;

	ck_assert(gst_video_info_from_caps(&info, caps));
	ck_assert(gst_video_frame_map(frame, &info, buffer, GST_MAP_READ));
}

static void same_component(GstVideoFrame *one, GstVideoFrame *two, gint c)
{
	gint bytes = (GST_VIDEO_FRAME_COMP_DEPTH(one, c) + 7) / 8, row, column;
	gint step = GST_VIDEO_FRAME_COMP_PSTRIDE(one, c);
	guint8 *a, *b;

	for (row = 0; row < GST_VIDEO_FRAME_COMP_HEIGHT(one, c); row++) {
		a = (guint8 *)GST_VIDEO_FRAME_COMP_DATA(one, c) +
		    row * GST_VIDEO_FRAME_COMP_STRIDE(one, c);
		b = (guint8 *)GST_VIDEO_FRAME_COMP_DATA(two, c) +
		    row * GST_VIDEO_FRAME_COMP_STRIDE(two, c);
		for (column = 0; column < GST_VIDEO_FRAME_COMP_WIDTH(one, c); column++)
			ck_assert_msg(!memcmp(a + column * step, b + column * step, bytes),
				      "%s: component %d differs in row %d, column %d",
				      GST_VIDEO_INFO_NAME(&one->info), c, row, column);
	}
}

void same_pixels(GstBuffer *a, GstCaps *a_caps, GstBuffer *b, GstCaps *b_caps)
{
	GstVideoFrame one, two;
	guint component;

	map_frame(&one, a, a_caps);
	map_frame(&two, b, b_caps);
	ck_assert_int_eq(GST_VIDEO_FRAME_FORMAT(&one), GST_VIDEO_FRAME_FORMAT(&two));
	ck_assert_int_eq(GST_VIDEO_FRAME_WIDTH(&one), GST_VIDEO_FRAME_WIDTH(&two));
	ck_assert_int_eq(GST_VIDEO_FRAME_HEIGHT(&one), GST_VIDEO_FRAME_HEIGHT(&two));
	for (component = 0; component < GST_VIDEO_FRAME_N_COMPONENTS(&one); component++)
		same_component(&one, &two, component);
	gst_video_frame_unmap(&one);
	gst_video_frame_unmap(&two);
}

static gboolean is_allocation(GstPadProbeInfo *info)
{
	return GST_QUERY_TYPE(GST_PAD_PROBE_INFO_QUERY(info)) == GST_QUERY_ALLOCATION;
}

static GstPadProbeReturn give_meta(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	if (!is_allocation(info))
		return GST_PAD_PROBE_OK;
	gst_query_add_allocation_meta(GST_PAD_PROBE_INFO_QUERY(info), GST_VIDEO_META_API_TYPE,
				      NULL);
	return GST_PAD_PROBE_HANDLED;
}

static GstPadProbeReturn give_nothing(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	return is_allocation(info) ? GST_PAD_PROBE_DROP : GST_PAD_PROBE_OK;
}

static GstPadProbeReturn remove_meta(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	if (is_allocation(info))
		gst_query_remove_nth_allocation_meta(GST_PAD_PROBE_INFO_QUERY(info), 0);
	return GST_PAD_PROBE_OK;
}

static void probe_queries(GstElement *pipe, const char *element, GstPadProbeType when,
			  GstPadProbeCallback call)
{
	GstPad *pad = pipe_pad(pipe, element, "sink");

	gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_QUERY_DOWNSTREAM | when, call, NULL, NULL);
	gst_object_unref(pad);
}

void take_meta(GstElement *pipe, const char *element)
{
	probe_queries(pipe, element, GST_PAD_PROBE_TYPE_PUSH, give_meta);
}

void take_no_pool(GstElement *pipe, const char *element)
{
	probe_queries(pipe, element, GST_PAD_PROBE_TYPE_PUSH, give_nothing);
}

void take_no_meta(GstElement *pipe, const char *element)
{
	probe_queries(pipe, element, GST_PAD_PROBE_TYPE_PULL, remove_meta);
}

/* ---- the pool from outside ---- */

static void *made(void *handle)
{
	struct xmem_error why = XMEM_INIT(why);

	if (!handle)
		xmem_get_last_error(&why);
	ck_assert_msg(handle != NULL, "%s", why.message);
	return handle;
}

struct xmem_pool *watch(const char *pool)
{
	return made(xmem_pool_open(pool, XMEM_OPTIONS(xmem_pool_options,
		.flags = XMEM_OPEN_READER, .label = "watch")));
}

struct xmem_subscription *follow(struct xmem_pool *pool, guint32 flags)
{
	return made(xmem_subscribe(pool, XMEM_OPTIONS(xmem_subscribe_options,
		.flags = XMEM_SUBSCRIBE_LASTS | flags)));
}

struct xmem_buffer *next(struct xmem_subscription *subscription)
{
	return made(xmem_receive(subscription, patience() * 1000));
}

void wait_alone(struct xmem_pool *pool, guint clients)
{
	gint64 end = g_get_monotonic_time() + patience();
	struct xmem_pool_info info = XMEM_INIT(info);

	for (;;) {
		ck_assert_int_eq(xmem_pool_stat(pool, &info), 0);
		if (info.clients == clients && !info.holds && !info.limbo)
			return;
		ck_assert_msg(g_get_monotonic_time() < end, "%u clients, %lu holds, %u in limbo",
			      info.clients, (unsigned long)info.holds, info.limbo);
		g_usleep(1000);
	}
}

gchar *place_of(const void *address)
{
	unsigned long begin, end, offset, inode, at = (unsigned long)address;
	FILE *maps = fopen("/proc/self/maps", "r");
	gchar *place = NULL;
	char device[16], line[512];

	while (!place && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %*s %lx %15s %lu", &begin, &end, &offset, device,
			   &inode) == 5 && at >= begin && at < end)
			place = g_strdup_printf("%s:%lu %lx", device, inode, at - begin + offset);
	fclose(maps);
	return place;
}
