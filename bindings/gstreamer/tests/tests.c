// SPDX-License-Identifier: MIT
/*
 * Tests of the plugin, which is linked into this program. CK_RUN_CASE=name runs one test. With the
 * arguments "launch DESCRIPTION" it runs a pipeline, as the processes do that the tests kill.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pipes.h"

void gst_plugin_xmem_register(void);

static const char *program;

static void begin(void)
{
	gst_init(NULL, NULL);
	gst_plugin_xmem_register();
}

#define VIDEO(format, width, height) \
	"video/x-raw,format=" format ",width=" #width ",height=" #height ",framerate=30/1"
#define SMALL VIDEO("GRAY8", 64, 32)

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

/* ---- the program ---- */

static int launch(const char *description)
{
	GError *error = NULL;
	GstElement *pipe;
	GstMessage *message;

	begin();
	pipe = gst_parse_launch(description, &error);
	if (!pipe || error)
		return 2;
	gst_element_set_state(pipe, GST_STATE_PLAYING);
	message = gst_bus_timed_pop_filtered(gst_element_get_bus(pipe), GST_CLOCK_TIME_NONE,
					     GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
	gst_element_set_state(pipe, GST_STATE_NULL);
	return GST_MESSAGE_TYPE(message) != GST_MESSAGE_EOS;
}

static void add(Suite *suite, const char *name, const TTest *test)
{
	const char *patience = getenv("XMEM_TEST_PATIENCE");
	TCase *tcase = tcase_create(name);

	tcase_add_checked_fixture(tcase, begin, NULL);
	tcase_set_timeout(tcase, 3 * (patience && *patience ? strtod(patience, NULL) : 100));
	tcase_add_test(tcase, test);
	suite_add_tcase(suite, tcase);
}
#define ADD(name)	add(suite, #name, name)

int main(int argc, char **argv)
{
	Suite *suite = suite_create("gstreamer");
	SRunner *runner;
	int failed, run;

	program = argv[0];
	if (argc == 3 && !strcmp(argv[1], "launch"))
		return launch(argv[2]);
	ADD(nothing_is_copied);
	ADD(each_format_arrives_as_it_was);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	run = srunner_ntests_run(runner);
	printf("%d passed, %d failed, 0 skipped\n", run - failed, failed);
	srunner_free(runner);
	return failed || !run;
}
