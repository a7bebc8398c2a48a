// SPDX-License-Identifier: MIT
/*
 * Caps, and the descriptions of buffers. An image is described as xmem describes images, so that
 * programs without GStreamer read it. The numbers that such a description lacks are in the
 * publisher's fields of the metadata (user):
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "xmemgst.h"

enum {
	USER_MAGIC,		/* MAGIC: the others are valid */
	USER_PTS,		/* GST_CLOCK_TIME_NONE: none */
	USER_DURATION,		/* GST_CLOCK_TIME_NONE: none */
	USER_RATE,		/* frames per second: numerator << 32 | denominator */
	USER_ASPECT,		/* of a pixel: numerator << 32 | denominator */
	USER_COLOR,		/* five enums of gst/video: see pack_color */
	USER_CAPS_FIRST = USER_RATE,
};

#define MAGIC 0x31545347ULL	/* "GST1" */

static const struct {
	guint32 image;
	GstVideoFormat video;
} formats[] = {
#if G_BYTE_ORDER == G_LITTLE_ENDIAN
#define NATIVE(name) GST_VIDEO_FORMAT_ ## name ## LE
#else
#define NATIVE(name) GST_VIDEO_FORMAT_ ## name ## BE
#endif
	{ XMEM_IMAGE_GRAY8, GST_VIDEO_FORMAT_GRAY8 },
	{ XMEM_IMAGE_GRAY16, NATIVE(GRAY16_) },
	{ XMEM_IMAGE_RGB8, GST_VIDEO_FORMAT_RGB },
	{ XMEM_IMAGE_BGR8, GST_VIDEO_FORMAT_BGR },
	{ XMEM_IMAGE_RGBA8, GST_VIDEO_FORMAT_RGBA },
	{ XMEM_IMAGE_BGRA8, GST_VIDEO_FORMAT_BGRA },
	{ XMEM_IMAGE_YUYV, GST_VIDEO_FORMAT_YUY2 },
	{ XMEM_IMAGE_UYVY, GST_VIDEO_FORMAT_UYVY },
	{ XMEM_IMAGE_I420, GST_VIDEO_FORMAT_I420 },
	{ XMEM_IMAGE_NV12, GST_VIDEO_FORMAT_NV12 },
	{ XMEM_IMAGE_NV21, GST_VIDEO_FORMAT_NV21 },
	{ XMEM_IMAGE_NV16, GST_VIDEO_FORMAT_NV16 },
	{ XMEM_IMAGE_P010, NATIVE(P010_10) },
	{ XMEM_IMAGE_P016, NATIVE(P016_) },
	{ XMEM_IMAGE_YV12, GST_VIDEO_FORMAT_YV12 },
	{ XMEM_IMAGE_I422, GST_VIDEO_FORMAT_Y42B },
	{ XMEM_IMAGE_I444, GST_VIDEO_FORMAT_Y444 },
	{ XMEM_IMAGE_RGBA64, NATIVE(RGBA64_) },
};

guint32 xg_image_format(const GstVideoInfo *info)
{
	guint i;

	for (i = 0; i < G_N_ELEMENTS(formats); i++)
		if (formats[i].video == GST_VIDEO_INFO_FORMAT(info))
			return formats[i].image;
	return XMEM_IMAGE_NONE;
}

static GstVideoFormat video_format(guint32 image)
{
	guint i;

	for (i = 0; i < G_N_ELEMENTS(formats); i++)
		if (formats[i].image == image)
			return formats[i].video;
	return GST_VIDEO_FORMAT_UNKNOWN;
}

/* ---- errors ---- */

void xg_post_error(gpointer element, const char *what)
{
	struct xmem_error why = XMEM_INIT(why);
	GstResourceError code = GST_RESOURCE_ERROR_FAILED;
	gchar *debug;

	xmem_get_last_error(&why);
	switch (-why.error) {
	case ENOENT: code = GST_RESOURCE_ERROR_NOT_FOUND; break;
	case EACCES: case EPERM: code = GST_RESOURCE_ERROR_NOT_AUTHORIZED; break;
	case ENOSPC: case ENOMEM: case EDQUOT: code = GST_RESOURCE_ERROR_NO_SPACE_LEFT; break;
	case ENODEV: case ENOTCONN: code = GST_RESOURCE_ERROR_OPEN_READ_WRITE; break;
	case EINVAL: case ERANGE: code = GST_RESOURCE_ERROR_SETTINGS; break;
	}
	debug = g_strdup_printf("%s: %s (errno %d)", what, g_strerror(-why.error), -why.error);
	gst_element_message_full(GST_ELEMENT(element), GST_MESSAGE_ERROR, GST_RESOURCE_ERROR, code,
				 g_strdup_printf("%s: %s.", what, why.message), debug, __FILE__,
				 __func__, __LINE__);
}

/* ---- describing ---- */

int xg_describe_image(struct xmem_buffer *buffer, const GstVideoInfo *info, gint stride,
		      gsize offset[GST_VIDEO_MAX_PLANES], gint strides[GST_VIDEO_MAX_PLANES])
{
	struct xmem_image image = XMEM_INIT(image);
	guint32 i;
	int err;

	err = xmem_describe_image(buffer, xg_image_format(info), GST_VIDEO_INFO_WIDTH(info),
				  GST_VIDEO_INFO_HEIGHT(info), stride);
	if (!err)
		err = xmem_image_view(buffer, 0, &image);
	if (err)
		return err;
	for (i = 0; i < image.planes; i++) {
		offset[i] = (const guint8 *)image.plane[i].data -
			    (const guint8 *)image.plane[0].data;
		strides[i] = image.plane[i].stride;
	}
	return 0;
}

gboolean xg_is_usual_layout(const GstVideoInfo *info)
{
	guint last = GST_VIDEO_INFO_N_COMPONENTS(info) - 1;
	guint plane = GST_VIDEO_INFO_N_PLANES(info) - 1;
	gsize end = info->offset[plane] + (gsize)info->stride[plane] *
		    (GST_VIDEO_INFO_COMP_HEIGHT(info, last) - 1) +
		    GST_VIDEO_INFO_COMP_WIDTH(info, last) * GST_VIDEO_INFO_COMP_PSTRIDE(info, last);

	return !plane || (gint64)end == xmem_image_bytes(xg_image_format(info), info->width,
							 info->height, info->stride[0]);
}

static guint64 pack(gint high, gint low)
{
	return (guint64)(guint32)high << 32 | (guint32)low;
}

static guint64 pack_color(const GstVideoInfo *info)
{
	const GstVideoColorimetry *color = &info->colorimetry;

	return (guint64)color->range | (guint64)color->matrix << 8 |
	       (guint64)color->transfer << 16 | (guint64)color->primaries << 24 |
	       (guint64)(info->chroma_site & 0xff) << 32 |
	       (guint64)info->interlace_mode << 40;
}

static void unpack_color(guint64 packed, GstVideoInfo *info)
{
	info->colorimetry = (GstVideoColorimetry){
		.range = packed & 0xff, .matrix = packed >> 8 & 0xff,
		.transfer = packed >> 16 & 0xff, .primaries = packed >> 24 & 0xff,
	};
	info->chroma_site = packed >> 32 & 0xff;
	info->interlace_mode = packed >> 40 & 0xff;
}

int xg_describe_rest(struct xmem_buffer *buffer, const GstVideoInfo *info, const char *media_type,
		     const struct xg_times *times)
{
	struct xmem_metadata *metadata = xmem_metadata_mut(buffer);
	struct xmem_source source = XMEM_INIT(source);

	if (!metadata)
		return xmem_peek_last_error(NULL);
	memset(metadata->user, 0, sizeof(metadata->user));
	metadata->user[USER_MAGIC] = MAGIC;
	metadata->user[USER_PTS] = times->pts;
	metadata->user[USER_DURATION] = times->duration;
	if (info) {
		metadata->user[USER_RATE] = pack(info->fps_n, info->fps_d);
		metadata->user[USER_ASPECT] = pack(info->par_n, info->par_d);
		metadata->user[USER_COLOR] = pack_color(info);
	} else {
		source.content_type = media_type;
	}
	source.timestamp_ns = GST_CLOCK_TIME_IS_VALID(times->clock) ? times->clock : 0;
	return xmem_describe_source(buffer, &source);
}

/* ---- reading ---- */

gboolean xg_equal_caps(const struct xmem_metadata *a, const struct xmem_metadata *b)
{
	return a->image == b->image && a->image_width == b->image_width &&
	       a->image_height == b->image_height && a->user[USER_MAGIC] == b->user[USER_MAGIC] &&
	       !strcmp(a->content_type, b->content_type) &&
	       !memcmp(a->user + USER_CAPS_FIRST, b->user + USER_CAPS_FIRST,
		       sizeof(a->user) - USER_CAPS_FIRST * sizeof(*a->user));
}

static void set_fraction(guint64 packed, gint *n, gint *d)
{
	gint32 high = packed >> 32, low = packed;

	if (high >= 0 && low > 0) {
		*n = high;
		*d = low;
	}
}

static GstCaps *image_caps(const struct xmem_metadata *metadata, GstVideoFormat format,
			   GstVideoInfo *info)
{
	if (!gst_video_info_set_format(info, format, metadata->image_width,
				       metadata->image_height))
		return NULL;
	if (metadata->user[USER_MAGIC] == MAGIC) {
		set_fraction(metadata->user[USER_RATE], &info->fps_n, &info->fps_d);
		set_fraction(metadata->user[USER_ASPECT], &info->par_n, &info->par_d);
		unpack_color(metadata->user[USER_COLOR], info);
	}
	return gst_video_info_to_caps(info);
}

GstCaps *xg_read_caps(const struct xmem_metadata *metadata, GstVideoInfo *ret_info)
{
	GstVideoFormat format = video_format(metadata->image);
	static GstStaticCaps others = GST_STATIC_CAPS(XG_CAPS);
	GstCaps *caps = NULL, *known;

	gst_video_info_init(ret_info);
	if (format != GST_VIDEO_FORMAT_UNKNOWN)
		return image_caps(metadata, format, ret_info);
	known = gst_static_caps_get(&others);
	if (g_str_has_prefix(metadata->content_type, "image/"))
		caps = gst_caps_from_string(metadata->content_type);
	if (caps && !gst_caps_is_subset(caps, known))
		gst_clear_caps(&caps);
	gst_caps_unref(known);
	return caps ? caps : gst_caps_new_empty_simple("application/octet-stream");
}

/* ---- times ---- */

static GstClockTime now(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return GST_TIMESPEC_TO_TIME(time);
}

/* Move a time by the present distance of two clocks. */
static GstClockTime move(GstClockTime time, GstClockTime from, GstClockTime to)
{
	if (to >= from)
		return time + (to - from);
	return time >= from - to ? time - (from - to) : 0;
}

static gboolean is_monotonic(GstClock *clock)
{
	GstClockType type;

	if (!GST_IS_SYSTEM_CLOCK(clock))
		return FALSE;
	g_object_get(clock, "clock-type", &type, NULL);
	return type == GST_CLOCK_TYPE_MONOTONIC;
}

GstClockTime xg_to_monotonic(GstClock *clock, GstClockTime time)
{
	if (is_monotonic(clock))
		return time;
	return move(time, gst_clock_get_time(clock), now(CLOCK_MONOTONIC));
}

GstClockTime xg_from_monotonic(GstClock *clock, GstClockTime time)
{
	if (is_monotonic(clock))
		return time;
	return move(time, now(CLOCK_MONOTONIC), gst_clock_get_time(clock));
}

void xg_read_times(const struct xmem_metadata *metadata, guint64 published,
		   struct xg_times *ret_times)
{
	static const struct {
		const char *name;
		clockid_t clock;
	} clocks[] = {
		{ "CLOCK_MONOTONIC", CLOCK_MONOTONIC }, { "CLOCK_REALTIME", CLOCK_REALTIME },
		{ "CLOCK_BOOTTIME", CLOCK_BOOTTIME }, { "CLOCK_TAI", CLOCK_TAI },
	};
	gboolean ours = metadata->user[USER_MAGIC] == MAGIC;
	guint i;

	*ret_times = (struct xg_times){
		.pts = ours ? metadata->user[USER_PTS] : GST_CLOCK_TIME_NONE,
		.duration = ours ? metadata->user[USER_DURATION] : GST_CLOCK_TIME_NONE,
		.clock = published ? published : GST_CLOCK_TIME_NONE,
	};
	for (i = 0; metadata->timestamp_ns && i < G_N_ELEMENTS(clocks); i++)
		if (!strcmp(metadata->clock, clocks[i].name))
			ret_times->clock = i ? move(metadata->timestamp_ns, now(clocks[i].clock),
						    now(CLOCK_MONOTONIC)) : metadata->timestamp_ns;
}
