// SPDX-License-Identifier: MIT
/*
 * Tests of contents, times and losses, and the program. The plugin is linked into it.
 * CK_RUN_CASE=name runs one test. With the arguments "launch DESCRIPTION" the program runs a
 * pipeline, as the processes do that the tests kill.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pipes.h"

void gst_plugin_xmem_register(void);

const char *program;

static void begin(void)
{
	gst_init(NULL, NULL);
	gst_plugin_xmem_register();
}

/* Each test runs in a process of its own, and has a daemon of its own. */
static void begin_alone(void)
{
	gchar *socket = g_strdup_printf("%s-%d", g_getenv("XMEM_SOCKET"), getpid());

	g_setenv("XMEM_SOCKET", socket, TRUE);
	g_free(socket);
	begin();
}

/* ---- contents ---- */

/* The memory that upstream writes, the one that is published and the one that arrives are one. */
START_TEST(nothing_is_copied)
{
	GstElement *to = pipe_new("videotestsrc num-buffers=3 ! " VIDEO("I420", 320, 240)
				  " ! xmemsink name=k pool=t subscribers=1 sync=false");
	GstElement *from = pipe_new("xmemsrc name=c pool=t leaky=false ! fakesink name=s");
	struct seen *written = see(to, "k", "sink"), *read = see(from, "s", "sink");
	guint i;

	written->keep = read->keep = TRUE;
	pipe_set(from, GST_STATE_PLAYING);
	pipe_set(to, GST_STATE_PLAYING);
	pipe_wait(to);
	see_wait(read, 3);
	for (i = 0; i < 3; i++) {
		GstMapInfo a, b;

		ck_assert(gst_buffer_map(see_buffer(written, i), &a, GST_MAP_READ));
		ck_assert(gst_buffer_map(see_buffer(read, i), &b, GST_MAP_READ));
		ck_assert_str_eq(place_of(a.data), place_of(b.data));
		ck_assert_ptr_ne(a.data, b.data);
		gst_buffer_unmap(see_buffer(written, i), &a);
		gst_buffer_unmap(see_buffer(read, i), &b);
	}
	ck_assert_uint_eq(pipe_number(to, "k", "copies"), 0);
	ck_assert_uint_eq(pipe_number(from, "c", "copies"), 0);
	see_drop(written);
	see_drop(read);
	pipe_free(to);
	pipe_wait(from);
	pipe_free(from);
}
END_TEST

static const char *const formats[] = {
	"GRAY8", "GRAY16_LE", "RGB", "BGR", "RGBA", "BGRA", "YUY2", "UYVY", "I420", "NV12", "NV21",
	"NV16", "P010_10LE", "P016_LE", "YV12", "Y42B", "Y444", "RGBA64_LE",
};

static void compare(const char *format, guint width, guint height, gboolean meta)
{
	gchar *test = g_strdup_printf("videotestsrc num-buffers=2 pattern=ball ! video/x-raw,"
				      "format=%s,width=%u,height=%u,framerate=25/2,"
				      "pixel-aspect-ratio=4/3,interlace-mode=progressive",
				      format, width, height);
	GstElement *to = pipe_new("%s ! xmemsink name=k pool=t subscribers=1 sync=false", test);
	GstElement *from = pipe_new("xmemsrc name=c pool=t leaky=false ! fakesink name=s");
	GstElement *plain = pipe_new("%s ! fakesink name=s", test);
	struct seen *read = see(from, "s", "sink"), *want = see(plain, "s", "sink");
	gboolean plain_layout = width % 16 == 0 && height % 2 == 0;
	guint i;

	read->keep = want->keep = TRUE;
	if (meta)
		take_meta(from, "s");
	pipe_set(from, GST_STATE_PLAYING);
	pipe_set(to, GST_STATE_PLAYING);
	pipe_set(plain, GST_STATE_PLAYING);
	pipe_wait(to);
	pipe_wait(plain);
	see_wait(read, 2);
	for (i = 0; i < 2; i++) {
		GstCaps *a = g_ptr_array_index(read->caps, i), *b = want->caps->pdata[i];

		ck_assert_msg(gst_caps_can_intersect(a, b) && gst_caps_get_size(a) == 1,
			      "%s for %s", gst_caps_to_string(a), gst_caps_to_string(b));
		same_pixels(see_buffer(read, i), a, see_buffer(want, i), b);
	}
	ck_assert_uint_eq(pipe_number(to, "k", "copies"), 0);
	if (meta || plain_layout)
		ck_assert_uint_eq(pipe_number(from, "c", "copies"), 0);
	see_drop(read);
	see_drop(want);
	pipe_free(plain);
	pipe_free(to);
	pipe_wait(from);
	pipe_free(from);
	g_free(test);
}

START_TEST(each_format_arrives_as_it_was)
{
	guint i;

	for (i = 0; i < G_N_ELEMENTS(formats); i++) {
		compare(formats[i], 64, 32, FALSE);
		compare(formats[i], 35, 17, TRUE);
		compare(formats[i], 35, 17, FALSE);
	}
}
END_TEST

/* Upstream does not take the pool: each buffer is copied once. */
START_TEST(other_memory_is_copied)
{
	GstElement *to = pipe_new("videotestsrc num-buffers=5 ! " SMALL
				  " ! xmemsink name=k pool=t subscribers=1 sync=false");
	GstElement *from = pipe_new("xmemsrc name=c pool=t leaky=false ! fakesink name=s");
	struct seen *written = see(to, "k", "sink"), *read = see(from, "s", "sink");
	guint i;

	written->keep = read->keep = TRUE;
	take_no_pool(to, "k");
	pipe_set(from, GST_STATE_PLAYING);
	pipe_set(to, GST_STATE_PLAYING);
	pipe_wait(to);
	see_wait(read, 5);
	for (i = 0; i < 5; i++)
		same_pixels(see_buffer(written, i), written->caps->pdata[i], see_buffer(read, i),
			    read->caps->pdata[i]);
	ck_assert_uint_eq(pipe_number(to, "k", "copies"), 5);
	ck_assert_uint_eq(pipe_number(from, "c", "copies"), 0);
	pipe_free(to);
	pipe_free(from);
}
END_TEST

/*
 * Upstream does not write GstVideoMeta, so its planes are not where xmem has them. It must not take
 * all buffers of the pool, because the sink needs one to copy to.
 */
START_TEST(planes_elsewhere_are_copied)
{
	GstElement *to = pipe_new("videotestsrc num-buffers=40 ! " VIDEO("I420", 35, 17)
				  " ! queue ! xmemsink name=k pool=t slots=4 subscribers=1 "
				  "sync=false max-wait=%" G_GUINT64_FORMAT, G_MAXUINT64);
	GstElement *from = pipe_new("xmemsrc pool=t leaky=false ! fakesink name=s");
	struct seen *written = see(to, "k", "sink"), *read = see(from, "s", "sink");
	GstMapInfo map;
	guint i;

	written->keep = TRUE;
	take_no_meta(to, "k");
	pipe_set(from, GST_STATE_PLAYING);
	pipe_set(to, GST_STATE_PLAYING);
	pipe_wait(to);
	see_wait(read, 40);
	ck_assert_uint_eq(pipe_number(to, "k", "copies"), 40);
	for (i = 0; i < 40; i++) {
		ck_assert(gst_buffer_map(see_buffer(written, i), &map, GST_MAP_READ));
		ck_assert_msg(g_str_has_prefix(place_of(map.data), "00:00:0 "), "%s",
			      place_of(map.data));	/* no file */
		gst_buffer_unmap(see_buffer(written, i), &map);
	}
	pipe_free(to);
	pipe_free(from);
}
END_TEST

/* A buffer that arrives again has other times, so it is published as another buffer. */
START_TEST(a_buffer_that_comes_again_is_copied)
{
	GstElement *to = pipe_new("videotestsrc num-buffers=1 ! " SMALL " ! imagefreeze "
				  "num-buffers=6 ! xmemsink name=k pool=t subscribers=1 "
				  "sync=false");
	GstElement *from = pipe_new("xmemsrc pool=t leaky=false ! fakesink name=s");
	struct seen *read = see(from, "s", "sink");
	guint i;

	read->keep = TRUE;
	pipe_set(from, GST_STATE_PLAYING);
	pipe_set(to, GST_STATE_PLAYING);
	pipe_wait(to);
	see_wait(read, 6);
	for (i = 1; i < 6; i++) {
		same_pixels(see_buffer(read, 0), read->caps->pdata[0], see_buffer(read, i),
			    read->caps->pdata[i]);
		ck_assert_uint_gt(GST_BUFFER_PTS(see_buffer(read, i)),
				  GST_BUFFER_PTS(see_buffer(read, i - 1)));
	}
	ck_assert_uint_ge(pipe_number(to, "k", "copies"), 5);
	pipe_free(to);
	pipe_free(from);
}
END_TEST

/* Published contents are read-only, both before the sink and behind the source. */
START_TEST(published_memory_cannot_be_written)
{
	GstElement *to = pipe_new("videotestsrc num-buffers=1 ! " VIDEO("I420", 64, 32)
				  " ! xmemsink name=k pool=t subscribers=2 sync=false");
	GstElement *from = pipe_new("xmemsrc pool=t leaky=false ! videobalance brightness=1 ! "
				    "fakesink name=s");
	struct xmem_pool *pool = watch("t");
	struct xmem_subscription *subscription = follow(pool, XMEM_SUBSCRIBE_WAITS);
	struct seen *written = see(to, "k", "sink"), *read = see(from, "s", "sink");
	struct xmem_buffer *buffer;
	GstMemory *memory;
	GstMapInfo map;
	gsize i;

	written->keep = read->keep = TRUE;
	pipe_set(from, GST_STATE_PLAYING);
	pipe_set(to, GST_STATE_PLAYING);
	buffer = next(subscription);
	see_wait(read, 1);
	memory = gst_buffer_peek_memory(see_buffer(written, 0), 0);
	ck_assert(!gst_memory_map(memory, &map, GST_MAP_WRITE));
	ck_assert(gst_memory_map(memory, &map, GST_MAP_READ));
	ck_assert_int_eq(memcmp(map.data, xmem_data(buffer), map.size), 0);
	gst_memory_unmap(memory, &map);
	ck_assert(gst_buffer_map(see_buffer(read, 0), &map, GST_MAP_READ));
	for (i = 0; i < map.size && ((const guint8 *)xmem_data(buffer))[i] == map.data[i]; i++)
		;
	ck_assert_uint_lt(i, map.size);	/* videobalance has written elsewhere */
	gst_buffer_unmap(see_buffer(read, 0), &map);
	xmem_release(buffer);
	pipe_free(to);
	pipe_free(from);
}
END_TEST

/* ---- caps ---- */

START_TEST(caps_change_on_the_way)
{
	GstElement *to = pipe_new("videotestsrc num-buffers=9 ! capsfilter name=f caps=" SMALL
				  " ! xmemsink name=k pool=t subscribers=1 sync=false");
	GstElement *from = pipe_new("xmemsrc name=c pool=t leaky=false ! fakesink name=s");
	struct seen *written = see(to, "f", "src"), *read = see(from, "s", "sink");
	const char *caps[] = { VIDEO("RGB", 128, 64), VIDEO("I420", 32, 16) };
	GstElement *filter = gst_bin_get_by_name(GST_BIN(to), "f");
	GstVideoInfo info;
	guint i;

	written->stop_at = 3;
	read->keep = TRUE;
	pipe_set(from, GST_STATE_PLAYING);
	pipe_set(to, GST_STATE_PLAYING);
	for (i = 0; i < 2; i++) {
		see_wait(written, 3 * (i + 1));
		gst_util_set_object_arg(G_OBJECT(filter), "caps", caps[i]);
		g_mutex_lock(&written->lock);
		written->stop_at = i ? 0 : 6;
		g_cond_broadcast(&written->changed);
		g_mutex_unlock(&written->lock);
	}
	pipe_wait(to);
	see_wait(read, 9);
	for (i = 0; i < 9; i++) {
		ck_assert_msg(gst_caps_can_intersect(written->caps->pdata[i],
						     read->caps->pdata[i]),
			      "%s for %s", gst_caps_to_string(read->caps->pdata[i]),
			      gst_caps_to_string(written->caps->pdata[i]));
		ck_assert(gst_video_info_from_caps(&info, read->caps->pdata[i]));
		ck_assert_uint_ge(gst_buffer_get_size(see_buffer(read, i)), info.size);
	}
	ck_assert(!gst_caps_is_equal(read->caps->pdata[0], read->caps->pdata[8]));
	ck_assert_uint_eq(pipe_number(to, "k", "copies"), 0);
	ck_assert_uint_eq(pipe_number(from, "c", "lost"), 0);
	gst_object_unref(filter);
	pipe_free(to);
	pipe_free(from);
}
END_TEST

/* Downstream refuses the caps: that is told, and the buffer is not held any more. */
START_TEST(refused_caps_hold_nothing)
{
	GstElement *to = pipe_new("videotestsrc ! " SMALL " ! xmemsink pool=t subscribers=1 "
				  "sync=false");
	GstElement *from = pipe_new("xmemsrc pool=t ! video/x-raw,format=RGB ! fakesink");
	struct xmem_pool *pool = watch("t");
	gchar *debug, *message;

	pipe_set(from, GST_STATE_PLAYING);
	pipe_set(to, GST_STATE_PLAYING);
	message = pipe_error(from, &debug);
	ck_assert_msg(strstr(debug, "not-negotiated"), "%s; %s", message, debug);
	pipe_free(to);
	pipe_set(from, GST_STATE_READY);
	wait_alone(pool, 1);
	pipe_free(from);
}
END_TEST

/* Programs without GStreamer describe the frames that they publish, and read descriptions. */
START_TEST(programs_without_gstreamer)
{
	GstElement *from = pipe_new("xmemsrc pool=t leaky=false ! fakesink name=s"), *to;
	struct seen *read = see(from, "s", "sink");
	struct xmem_subscriber_info subscriber = XMEM_INIT(subscriber);
	struct xmem_image image = XMEM_INIT(image);
	struct xmem_metadata metadata;
	struct xmem_pool *pool = xmem_pool_open("t", XMEM_OPTIONS(xmem_pool_options,
		.flags = XMEM_OPEN_WRITER, .wait_bound_ns = XMEM_FOREVER));
	struct xmem_buffer *buffer;
	GstVideoInfo info;

	read->keep = TRUE;
	take_meta(from, "s");
	pipe_set(from, GST_STATE_PLAYING);
	ck_assert_int_ge(xmem_wait_subscribers(pool, 1, XMEM_FOREVER), 1);
	ck_assert_int_eq(xmem_subscriber_next(pool, 0, &subscriber), 0);
	ck_assert_uint_eq(subscriber.waits, 1);		/* it is not leaky */
	buffer = xmem_acquire(pool, 100 * 8, XMEM_FOREVER);
	memset(xmem_data_mut(buffer), 7, 800);
	ck_assert_int_eq(xmem_describe_image(buffer, XMEM_IMAGE_GRAY8, 30, 8, 100), 0);
	ck_assert_int_eq(xmem_publish(buffer, NULL, NULL), 0);
	buffer = xmem_acquire(pool, 5, XMEM_FOREVER);
	ck_assert_int_eq(xmem_publish(buffer, NULL, NULL), 0);
	see_wait(read, 2);
	ck_assert(gst_video_info_from_caps(&info, read->caps->pdata[0]));
	ck_assert_int_eq(GST_VIDEO_INFO_WIDTH(&info), 30);
	ck_assert_int_eq(gst_buffer_get_video_meta(see_buffer(read, 0))->stride[0], 100);
	ck_assert_str_eq(gst_caps_to_string(read->caps->pdata[1]), "application/octet-stream");
	ck_assert_uint_eq(gst_buffer_get_size(see_buffer(read, 1)), 5);
	see_drop(read);
	xmem_pool_close(pool);
	pipe_wait(from);
	pipe_free(from);

	pool = watch("t");
	to = pipe_new("videotestsrc num-buffers=1 ! " VIDEO("NV12", 30, 7)
		      " ! xmemsink pool=t label=cam subscribers=1 sync=false");
	pipe_set(to, GST_STATE_PLAYING);
	buffer = next(follow(pool, 0));
	ck_assert_int_eq(xmem_image_view(buffer, 0, &image), 0);
	ck_assert_uint_eq(image.format, XMEM_IMAGE_NV12);
	ck_assert_uint_eq(image.width, 30);
	ck_assert_int_eq(xmem_metadata_view(buffer, &metadata), 0);
	ck_assert_str_eq(metadata.producer, "cam");
	ck_assert_str_eq(metadata.clock, "CLOCK_MONOTONIC");
	ck_assert_uint_ne(metadata.timestamp_ns, 0);
	xmem_release(buffer);
	pipe_free(to);
}
END_TEST

/* Metadata that no buffer can have: that is told, and the buffer is not held any more. */
START_TEST(an_impossible_image_is_not_held)
{
	GstElement *from = pipe_new("xmemsrc pool=t ! fakesink");
	struct xmem_pool *pool = xmem_pool_open("t", XMEM_OPTIONS(xmem_pool_options,
		.flags = XMEM_OPEN_WRITER));
	struct xmem_buffer *buffer;
	gchar *debug, *message;

	pipe_set(from, GST_STATE_PLAYING);
	ck_assert_int_ge(xmem_wait_subscribers(pool, 1, XMEM_FOREVER), 1);
	buffer = xmem_acquire(pool, 100, XMEM_FOREVER);
	ck_assert_int_eq(xmem_describe_image(buffer, XMEM_IMAGE_GRAY8, 10, 10, 0), 0);
	xmem_metadata_mut(buffer)->image_height = 11;
	ck_assert_int_eq(xmem_publish(buffer, NULL, NULL), 0);
	message = pipe_error(from, &debug);
	ck_assert_msg(strstr(message, "Cannot read a buffer: image_view: "), "%s", message);
	ck_assert_msg(strstr(debug, "Bad message (errno 74)"), "%s", debug);
	wait_alone(pool, 2);
	pipe_free(from);
}
END_TEST

START_TEST(bytes_and_files_arrive)
{
	gchar *file = g_build_filename(g_get_tmp_dir(), "xmem-gst-bytes", NULL), *bytes, *copied;
	gchar *other = g_strconcat(file, "-copy", NULL);
	GstElement *to = pipe_new("filesrc location=%s blocksize=10007 ! xmemsink name=k pool=t "
				  "subscribers=1", file);
	GstElement *from = pipe_new("xmemsrc pool=t leaky=false ! filesink location=%s", other);
	GstElement *jpeg = pipe_new("videotestsrc num-buffers=4 ! " VIDEO("I420", 320, 240)
				    " ! jpegenc ! xmemsink pool=t subscribers=1 sync=false");
	GstElement *decode = pipe_new("xmemsrc pool=t leaky=false ! jpegdec ! fakesink name=s");
	struct seen *read = see(decode, "s", "sink");
	gsize i, length = 300000, copied_length;

	bytes = g_malloc(length);
	for (i = 0; i < length; i++)
		bytes[i] = i * i >> 8;
	ck_assert(g_file_set_contents(file, bytes, length, NULL));
	pipe_set(from, GST_STATE_PLAYING);
	pipe_set(to, GST_STATE_PLAYING);
	pipe_wait(to);
	pipe_free(to);
	pipe_wait(from);
	pipe_free(from);
	ck_assert(g_file_get_contents(other, &copied, &copied_length, NULL));
	ck_assert_uint_eq(copied_length, length);
	ck_assert_int_eq(memcmp(bytes, copied, length), 0);
	unlink(file);
	unlink(other);

	pipe_set(decode, GST_STATE_PLAYING);
	pipe_set(jpeg, GST_STATE_PLAYING);
	pipe_wait(jpeg);
	pipe_free(jpeg);
	pipe_wait(decode);
	ck_assert_uint_eq(read->buffers->len, 4);
	pipe_free(decode);
}
END_TEST

/* ---- times and losses ---- */

/* The frame's time on the clock of the machine is one in both pipelines. */
START_TEST(times_are_those_of_the_machine)
{
	GstElement *to = pipe_new("videotestsrc num-buffers=3 timestamp-offset=70000000 ! " SMALL
				  " ! xmemsink name=k pool=t subscribers=1 sync=false");
	GstElement *from = pipe_new("xmemsrc pool=t leaky=false ! fakesink name=s");
	struct seen *written = see(to, "k", "sink"), *read = see(from, "s", "sink");
	guint i;

	written->keep = read->keep = TRUE;
	pipe_set(from, GST_STATE_PLAYING);
	pipe_set(to, GST_STATE_PLAYING);
	pipe_wait(to);
	see_wait(read, 3);
	ck_assert_uint_ne(gst_element_get_base_time(from), 0);
	for (i = 0; i < 3; i++) {
		ck_assert_uint_eq(GST_BUFFER_PTS(see_buffer(written, i)) +
				  gst_element_get_base_time(to),
				  GST_BUFFER_PTS(see_buffer(read, i)) +
				  gst_element_get_base_time(from));
		ck_assert_uint_eq(GST_BUFFER_DURATION(see_buffer(written, i)),
				  GST_BUFFER_DURATION(see_buffer(read, i)));
	}
	see_drop(written);
	see_drop(read);
	pipe_free(to);
	pipe_free(from);
}
END_TEST

/* A slow reader loses frames, and the next buffer says so. */
START_TEST(losses_are_discontinuities)
{
	GstElement *to = pipe_new("videotestsrc num-buffers=100 ! " SMALL
				  " ! xmemsink name=k pool=t slots=4 subscribers=1 sync=false");
	GstElement *from = pipe_new("xmemsrc name=c pool=t ! fakesink name=s");
	struct seen *written = see(to, "k", "sink"), *read = see(from, "s", "sink");
	guint64 lost;
	guint i;

	read->keep = TRUE;
	written->stop_at = 2;
	read->stop_at = 1;
	pipe_set(from, GST_STATE_PLAYING);
	pipe_set(to, GST_STATE_PLAYING);
	see_wait(read, 1);
	see_continue(written);
	pipe_wait(to);
	see_continue(read);
	pipe_free(to);
	pipe_wait(from);
	lost = pipe_number(from, "c", "lost");
	ck_assert_uint_ge(lost, 50);
	ck_assert_uint_eq(read->buffers->len + lost, 100);
	for (i = 1; i < read->buffers->len; i++) {
		GstBuffer *a = see_buffer(read, i - 1), *b = see_buffer(read, i);
		GstClockTime gap = GST_BUFFER_PTS(b) - GST_BUFFER_PTS(a);

		ck_assert_int_eq(GST_BUFFER_FLAG_IS_SET(b, GST_BUFFER_FLAG_DISCONT),
				 gap > GST_BUFFER_DURATION(a) * 3 / 2);
	}
	see_drop(read);
	pipe_free(from);
}
END_TEST

/* A slow reader that is not leaky gets all. */
START_TEST(writers_wait_for_those_who_ask)
{
	GstElement *to = pipe_new("videotestsrc num-buffers=100 ! " SMALL " ! xmemsink pool=t "
				  "slots=4 subscribers=1 sync=false max-wait=%" G_GUINT64_FORMAT,
				  G_MAXUINT64);
	GstElement *from = pipe_new("xmemsrc name=c pool=t leaky=false ! fakesink name=s");
	struct seen *read = see(from, "s", "sink");

	read->stop_at = 1;
	pipe_set(from, GST_STATE_PLAYING);
	pipe_set(to, GST_STATE_PLAYING);
	see_wait(read, 1);
	see_continue(read);
	pipe_wait(to);
	pipe_free(to);
	pipe_wait(from);
	ck_assert_uint_eq(pipe_number(from, "c", "lost"), 0);
	ck_assert_uint_eq(read->buffers->len, 100);
	pipe_free(from);
}
END_TEST

/* ---- the program ---- */

static int launch(const char *description)
{
	GstMessage *message;
	GstElement *pipe;
	int failed;
	GstBus *bus;

	begin();
	pipe = gst_parse_launch(description, NULL);
	if (!pipe)
		return 2;
	bus = gst_element_get_bus(pipe);
	gst_element_set_state(pipe, GST_STATE_PLAYING);
	message = gst_bus_timed_pop_filtered(bus, GST_CLOCK_TIME_NONE,
					     GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
	failed = GST_MESSAGE_TYPE(message) != GST_MESSAGE_EOS;
	gst_message_unref(message);
	gst_element_set_state(pipe, GST_STATE_NULL);
	gst_object_unref(bus);
	gst_object_unref(pipe);
	gst_deinit();
	return failed;
}

void add_test(Suite *suite, const char *name, const TTest *test)
{
	TCase *tcase = tcase_create(name);

	tcase_add_checked_fixture(tcase, begin_alone, NULL);
	tcase_set_timeout(tcase, 3 * patience() / G_USEC_PER_SEC);
	tcase_add_test(tcase, test);
	suite_add_tcase(suite, tcase);
}

int main(int argc, char **argv)
{
	SRunner *runner;
	int failed, run;
	Suite *suite;

	program = argv[0];
	if (argc == 3 && !strcmp(argv[1], "launch"))
		return launch(argv[2]);
	suite = suite_create("gstreamer");
	ADD(nothing_is_copied);
	ADD(each_format_arrives_as_it_was);
	ADD(other_memory_is_copied);
	ADD(planes_elsewhere_are_copied);
	ADD(a_buffer_that_comes_again_is_copied);
	ADD(published_memory_cannot_be_written);
	ADD(caps_change_on_the_way);
	ADD(refused_caps_hold_nothing);
	ADD(programs_without_gstreamer);
	ADD(an_impossible_image_is_not_held);
	ADD(bytes_and_files_arrive);
	ADD(times_are_those_of_the_machine);
	ADD(losses_are_discontinuities);
	ADD(writers_wait_for_those_who_ask);
	ends_tests(suite);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	run = srunner_ntests_run(runner);
	printf("%d passed, %d failed, 0 skipped\n", run - failed, failed);
	srunner_free(runner);
	return failed || !run;
}
