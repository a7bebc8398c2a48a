// SPDX-License-Identifier: MIT
/* Tools of the tests: pipelines, the buffers that they let pass, and the pool seen from outside. */
#ifndef PIPES_H
#define PIPES_H

#include <check.h>
#include <gst/gst.h>
#include <gst/video/video.h>
#include <xmem.h>

#define VIDEO(format, width, height) \
	"video/x-raw,format=" format ",width=" #width ",height=" #height ",framerate=30/1"
#define SMALL VIDEO("GRAY8", 64, 32)

/* Microseconds; only against hangs. XMEM_TEST_PATIENCE is a percentage of it. */
gint64 patience(void);

extern const char *program;		/* its path */

void add_test(Suite *suite, const char *name, const TTest *test);
#define ADD(name)	add_test(suite, #name, name)
void ends_tests(Suite *suite);

/* ---- pipelines ---- */

/* Make a pipeline of a description as gst-launch-1.0 has, without an error, and in state NULL. */
GstElement *pipe_new(const char *format, ...) G_GNUC_PRINTF(1, 2);
/* The state is reached, or for PAUSED and PLAYING will be: NO_PREROLL and ASYNC are fine. */
void pipe_set(GstElement *pipe, GstState state);
void pipe_free(GstElement *pipe);
/* Wait for the end of the stream. The test fails after an error. */
void pipe_wait(GstElement *pipe);
/* Wait for an error, and return its message, which the caller frees. */
gchar *pipe_error(GstElement *pipe, gchar **ret_debug);
guint64 pipe_number(GstElement *pipe, const char *element, const char *property);
/* Get a pad that the caller unreferences. */
GstPad *pipe_pad(GstElement *pipe, const char *element, const char *pad);

/* ---- buffers that pass a pad ---- */

struct seen {
	GMutex lock;
	GCond changed;
	guint stop_at;			/* the pad blocks at this buffer, from 1 on; 0: at none */
	gboolean keep;			/* references of the buffers are kept */
	GPtrArray *buffers;		/* of GstBuffer: those that have passed */
	GPtrArray *caps;		/* of GstCaps: one for each of them */
};

/* See what passes the pad of an element in a pipe. It lives as long as the test. */
struct seen *see(GstElement *pipe, const char *element, const char *pad);
/* Wait until so many buffers have come to the pad. */
void see_wait(struct seen *seen, guint count);
void see_continue(struct seen *seen);
/* Drop the buffers that are kept. */
void see_drop(struct seen *seen);
GstBuffer *see_buffer(struct seen *seen, guint i);

/* Fail if the visible pixels of two images differ. */
void same_pixels(GstBuffer *a, GstCaps *a_caps, GstBuffer *b, GstCaps *b_caps);

/* Let an element say that it reads GstVideoMeta; that it proposes nothing; or only a pool. */
void take_meta(GstElement *pipe, const char *element);
void take_no_pool(GstElement *pipe, const char *element);
void take_no_meta(GstElement *pipe, const char *element);

/* ---- the pool from outside ---- */

/* Join a pool as a reader; follow all writers, for ever. @flags: XMEM_SUBSCRIBE_WAITS or 0. */
struct xmem_pool *watch(const char *pool);
struct xmem_subscription *follow(struct xmem_pool *pool, guint32 flags);
/* Wait until the pool has so many clients, with this one. Then nothing is held and in limbo. */
void wait_alone(struct xmem_pool *pool, guint clients);
struct xmem_buffer *next(struct xmem_subscription *subscription);
/* Where a file is mapped: "device:inode offset" of an address. The caller frees it. */
gchar *place_of(const void *address);

#endif
