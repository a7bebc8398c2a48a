// SPDX-License-Identifier: MIT
/*
 * The plugin of GStreamer. Each file calls only files above it:
 *
 *   gate.c        waiting for a descriptor, unless a gate is shut
 *   format.c      caps, and the descriptions of buffers
 *   writer.c      a client that writes, and GstBuffers of its memory
 *   bufferpool.c  the GstBufferPool that xmemsink proposes to the elements before it
 *   sink.c        the element xmemsink
 *   src.c         the element xmemsrc
 *   plugin.c      the entry of the plugin
 */
#ifndef XMEMGST_H
#define XMEMGST_H

#include <gst/base/gstbasesink.h>
#include <gst/base/gstpushsrc.h>
#include <gst/gst.h>
#include <gst/video/video.h>
#include <xmem.h>

GST_DEBUG_CATEGORY_EXTERN(xg_debug);
GST_DEBUG_CATEGORY_EXTERN(xg_performance);	/* GStreamer does not export its own */
#define GST_CAT_DEFAULT xg_debug

/* ---- gate.c ---- */

/*
 * A gate ends all waits behind it while it is shut. It is an eventfd, so that poll(2) waits for it
 * and for a descriptor of xmem together, in any number of threads.
 */
struct xg_gate {
	int fd;
};

void xg_gate_init(struct xg_gate *gate);
void xg_gate_clear(struct xg_gate *gate);
void xg_gate_shut(struct xg_gate *gate);
void xg_gate_open(struct xg_gate *gate);

/* Wait until the descriptor has one of these events. FALSE: a gate is shut. A gate may be NULL. */
gboolean xg_wait(int fd, short events, const struct xg_gate *one, const struct xg_gate *two);

/* ---- format.c ---- */

/*
 * Post the calling thread's last error of the library as the error of an element. @what: what the
 * element was doing.
 */
void xg_post_error(gpointer element, const char *what);

#if G_BYTE_ORDER == G_LITTLE_ENDIAN
#define XG_P010 "P010_10LE"
#else
#define XG_P010 "P010_10BE"
#endif
#define XG_VIDEO_CAPS GST_VIDEO_CAPS_MAKE("{ I420, NV12, YUY2, RGB, BGR, RGBA, BGRA, GRAY8, " \
	GST_VIDEO_NE(GRAY16) ", NV21, NV16, UYVY, YV12, Y42B, Y444, " \
	XG_P010 ", " GST_VIDEO_NE(P016) ", " GST_VIDEO_NE(RGBA64) " }")
#define XG_CAPS XG_VIDEO_CAPS "; application/octet-stream; image/jpeg; image/png"

/* Times of a frame: GST_CLOCK_TIME_NONE if there is none. */
struct xg_times {
	GstClockTime pts;		/* as the publisher's pipeline counts */
	GstClockTime duration;
	GstClockTime clock;		/* of CLOCK_MONOTONIC */
};

/* Get enum xmem_image_format; XMEM_IMAGE_NONE: there is none. */
guint32 xg_image_format(const GstVideoInfo *info);

/*
 * Does GStreamer's usual layout have the planes where xmem has them? In some places GStreamer
 * leaves room between planes or rows and xmem does not, but never the other way round. So it is
 * enough to compare the ends of the last planes.
 */
gboolean xg_is_usual_layout(const GstVideoInfo *info);

/* Where the planes are in a buffer of xmem that is described as this image. 0 or -errno. */
int xg_describe_image(struct xmem_buffer *buffer, const GstVideoInfo *info, gint stride,
		      gsize offset[GST_VIDEO_MAX_PLANES], gint strides[GST_VIDEO_MAX_PLANES]);

/* Describe the caps and the times. The image must be described before. 0 or -errno. */
int xg_describe_rest(struct xmem_buffer *buffer, const GstVideoInfo *info, const char *media_type,
		     const struct xg_times *times);

/* Does xg_read_caps make equal caps of these two? */
gboolean xg_equal_caps(const struct xmem_metadata *a, const struct xmem_metadata *b);

/* Make caps. *ret_info is filled for an image; for other contents its format is UNKNOWN. */
GstCaps *xg_read_caps(const struct xmem_metadata *metadata, GstVideoInfo *ret_info);

/* @published: of CLOCK_MONOTONIC, for contents without a time of their own; 0: none. */
void xg_read_times(const struct xmem_metadata *metadata, guint64 published,
		   struct xg_times *ret_times);

/* Map a time between CLOCK_MONOTONIC and a clock of GStreamer. */
GstClockTime xg_to_monotonic(GstClock *clock, GstClockTime time);
GstClockTime xg_from_monotonic(GstClock *clock, GstClockTime time);

/* ---- writer.c ---- */

struct xg_writer;

struct xg_writer *xg_writer_open(GstElement *element, const char *name, const char *label,
				 guint slots, gint64 max_wait);
/* Close the pool: no buffer can be acquired any more. The client ends with its last buffer. */
void xg_writer_close(struct xg_writer *writer);
struct xg_writer *xg_writer_ref(struct xg_writer *writer);
void xg_writer_unref(struct xg_writer *writer);
/* While the writer flushes, upstream gets GST_FLOW_FLUSHING instead of buffers. */
void xg_writer_set_flushing(struct xg_writer *writer, gboolean flushing);

/*
 * Wait until @count clients subscribe. @own: the caller's gate. Returns FLUSHING: a gate is shut;
 * ERROR: the function has posted an error.
 */
GstFlowReturn xg_writer_wait_subscribers(struct xg_writer *writer, guint count,
					 const struct xg_gate *own);

/* A GstBuffer for @bytes bytes. */
struct xg_shape {
	gsize bytes;
	gsize padding;			/* bytes that may be written behind them */
	const GstVideoInfo *info;	/* NULL: not an image */
	gboolean meta;			/* planes lie as in xmem, and a GstVideoMeta says where */
};

/*
 * Acquire a buffer. @waits: FALSE: do not wait, and return EOS if no buffer is free. Returns
 * FLUSHING: a gate is shut; ERROR: the function has posted an error.
 */
GstFlowReturn xg_writer_acquire(struct xg_writer *writer, const struct xg_shape *shape,
				gboolean waits, const struct xg_gate *own, GstBuffer **ret);

/*
 * Get the xmem buffer in which all contents of @buffer are. NULL: there is none, or it is another
 * writer's, or it is published already.
 */
struct xmem_buffer *xg_writer_buffer(struct xg_writer *writer, GstBuffer *buffer);

/* ---- bufferpool.c ---- */

GstBufferPool *xg_buffer_pool_new(struct xg_writer *writer);

/* ---- sink.c, src.c ---- */

GType xg_sink_get_type(void);
GType xg_src_get_type(void);

#endif
