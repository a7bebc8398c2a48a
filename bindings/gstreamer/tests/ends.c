// SPDX-License-Identifier: MIT
/* Tests of waits that end, of processes that end, and of errors. */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pipes.h"

/* ---- waiting, and its end ---- */

/*
 * Make a pipeline that needs a fifth buffer of the pool, while the test holds all four. If @more
 * needs the fifth one, it has the input for it when this returns: so it waits for it, or will.
 */
static GstElement *blocked(const char *more, guint inputs, struct xmem_subscription *subscription,
			   struct xmem_buffer *held[4])
{
	GstElement *to = pipe_new("videotestsrc ! " SMALL " ! identity name=i ! %s xmemsink name=k "
				  "pool=t slots=4 subscribers=1 sync=false max-wait=%"
				  G_GUINT64_FORMAT, more, G_MAXUINT64);
	struct seen *input = see(to, "i", "src");
	guint i;

	pipe_set(to, GST_STATE_PLAYING);
	for (i = 0; i < 4; i++)
		held[i] = next(subscription);
	see_wait(input, inputs);
	return to;
}

static void release_all(struct xmem_buffer *held[4])
{
	guint i;

	for (i = 0; i < 4; i++)
		xmem_release(held[i]);
}

static void end_blocked(const char *more, guint inputs, guint copies)
{
	struct xmem_pool *pool = watch("t");
	struct xmem_subscription *subscription = follow(pool, XMEM_SUBSCRIBE_WAITS);
	struct xmem_buffer *held[4];
	GstElement *to = blocked(more, inputs, subscription, held);

	ck_assert_uint_eq(pipe_number(to, "k", "copies"), copies);
	pipe_set(to, GST_STATE_PAUSED);
	pipe_set(to, GST_STATE_PLAYING);
	pipe_free(to);
	release_all(held);
	wait_alone(pool, 1);
	xmem_unsubscribe(subscription);
	xmem_pool_close(pool);
}

START_TEST(a_blocked_pipeline_ends)
{
	end_blocked("", 4, 0);
	end_blocked("queue ! ", 4, 0);
	end_blocked("videoconvert ! video/x-raw,format=RGB !", 5, 0);
	end_blocked("jpegenc ! jpegdec ! ", 5, 0);
	end_blocked("tee ! ", 5, 4);	/* which proposes no pool */
}
END_TEST

/* A flushing seek reaches the element that waits for a buffer. */
START_TEST(a_blocked_pipeline_goes_on)
{
	struct xmem_pool *pool = watch("t");
	struct xmem_subscription *subscription = follow(pool, XMEM_SUBSCRIBE_WAITS);
	struct xmem_buffer *held[4];
	GstElement *to = blocked("jpegenc ! jpegdec ! ", 5, subscription, held);
	guint i;

	ck_assert(gst_element_seek_simple(to, GST_FORMAT_TIME, GST_SEEK_FLAG_FLUSH, 0));
	release_all(held);
	for (i = 0; i < 50; i++)
		xmem_release(next(subscription));
	pipe_free(to);
	xmem_unsubscribe(subscription);
	wait_alone(pool, 1);
}
END_TEST

/* The source waits for a writer, and the sink for a subscriber: both can be stopped. */
START_TEST(waits_for_others_end)
{
	GstElement *from = pipe_new("xmemsrc pool=t ! fakesink");
	GstElement *to = pipe_new("videotestsrc ! " SMALL " ! xmemsink pool=u subscribers=1");
	guint i;

	for (i = 0; i < 3; i++) {
		pipe_set(from, GST_STATE_PLAYING);
		pipe_set(to, GST_STATE_PLAYING);
		gst_element_get_state(to, NULL, NULL, i * GST_MSECOND);
		pipe_set(from, i ? GST_STATE_PAUSED : GST_STATE_READY);
		pipe_set(to, i ? GST_STATE_PAUSED : GST_STATE_READY);
	}
	pipe_free(to);
	pipe_free(from);
}
END_TEST

/* The buffers that a pipeline keeps go with it. */
START_TEST(a_stopped_reader_holds_nothing)
{
	struct xmem_pool *pool = watch("t");
	GstElement *to = pipe_new("videotestsrc ! " SMALL " ! xmemsink pool=t slots=8 "
				  "subscribers=1 sync=false");
	GstElement *from = pipe_new("xmemsrc pool=t ! queue max-size-buffers=3 name=q ! "
				    "fakesink name=s");
	struct seen *read = see(from, "s", "sink"), *queued = see(from, "q", "sink");
	guint i;

	for (i = 0; i < 3; i++) {
		pipe_set(from, GST_STATE_PLAYING);
		pipe_set(to, GST_STATE_PLAYING);
		see_wait(queued, 4);
		read->stop_at = 0;
		gst_element_send_event(from, gst_event_new_flush_start());
		gst_element_send_event(from, gst_event_new_flush_stop(TRUE));
		pipe_set(from, GST_STATE_READY);
		pipe_set(to, GST_STATE_READY);
		wait_alone(pool, 1);
		see_drop(queued);
	}
	pipe_free(to);
	pipe_free(from);
}
END_TEST

/* ---- the end of others ---- */

START_TEST(the_next_writer_follows)
{
	GstElement *from = pipe_new("xmemsrc pool=t leaky=false reconnect=true ! fakesink name=s");
	struct seen *read = see(from, "s", "sink");
	GstElement *to;
	guint i;

	read->keep = TRUE;
	pipe_set(from, GST_STATE_PLAYING);
	for (i = 0; i < 3; i++) {
		read->stop_at = 2 * i + 1;	/* the writer ends before its second frame */
		to = pipe_new("videotestsrc num-buffers=2 ! " SMALL " ! xmemsink pool=t "
			      "subscribers=1 sync=false");
		pipe_set(to, GST_STATE_PLAYING);
		pipe_wait(to);
		see_wait(read, 2 * i + 1);
		pipe_free(to);
		see_continue(read);
		see_wait(read, 2 * (i + 1));
	}
	for (i = 0; i < 6; i++)
		ck_assert_int_eq(GST_BUFFER_FLAG_IS_SET(see_buffer(read, i),
							GST_BUFFER_FLAG_DISCONT), i % 2 == 0);
	see_drop(read);
	pipe_free(from);
}
END_TEST

static pid_t start(const char *description)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	execl(program, program, "launch", description, NULL);
	_exit(127);
}

static void kill_it(pid_t pid)
{
	int status;

	ck_assert_int_eq(kill(pid, SIGKILL), 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "status %x", status);
}

/* All publishers have ended: receive what they have left. */
static void drain(struct xmem_subscription *subscription)
{
	struct xmem_subscription_info info = XMEM_INIT(info);

	do {
		xmem_release(xmem_receive(subscription, 0));
		ck_assert_int_eq(xmem_subscription_stat(subscription, &info), 0);
	} while (info.follows);
}

/* Either pipeline is killed after a random number of frames. */
START_TEST(killed_pipelines_leak_nothing)
{
	struct xmem_pool *pool = watch("t");
	struct xmem_subscription *subscription = follow(pool, XMEM_SUBSCRIBE_WAITS);
	GRand *random = g_rand_new();
	pid_t to, from;
	gint i, frames;

	for (i = 0; i < 8; i++) {
		from = start("xmemsrc pool=t leaky=false ! queue ! fakesink sync=true");
		to = start("videotestsrc ! " SMALL " ! queue max-size-buffers=2 ! xmemsink pool=t "
			   "slots=8 subscribers=2 sync=false max-wait=100000000");
		for (frames = g_rand_int_range(random, 1, 40); frames; frames--)
			xmem_release(next(subscription));
		kill_it(i % 2 ? to : from);
		for (frames = i % 2 ? 0 : 20; frames; frames--)	/* the writer goes on */
			xmem_release(next(subscription));
		kill_it(i % 2 ? from : to);
		drain(subscription);
		wait_alone(pool, 1);
	}
	g_rand_free(random);
}
END_TEST

/* The source of a killed writer ends. */
START_TEST(a_killed_writer_is_the_end)
{
	GstElement *from = pipe_new("xmemsrc pool=t ! fakesink name=s");
	struct seen *read = see(from, "s", "sink");
	pid_t to;

	pipe_set(from, GST_STATE_PLAYING);
	to = start("videotestsrc ! " SMALL " ! xmemsink pool=t subscribers=1");
	see_wait(read, 3);
	kill_it(to);
	pipe_wait(from);
	pipe_free(from);
}
END_TEST

/* ---- errors ---- */

static void fails(const char *description, const char *words, const char *more)
{
	GstElement *pipe = pipe_new("%s", description);
	gchar *debug, *message;

	gst_element_set_state(pipe, GST_STATE_PLAYING);
	message = pipe_error(pipe, &debug);
	ck_assert_msg(strstr(message, words), "%s", message);
	ck_assert_msg(strstr(debug, more), "%s", debug);
	g_free(message);
	g_free(debug);
	pipe_free(pipe);
}

START_TEST(errors_say_what_is_wrong)
{
	fails("videotestsrc ! xmemsink", "The property 'pool' is not set.", "");
	fails("xmemsrc ! fakesink", "The property 'pool' is not set.", "");
	fails("videotestsrc ! xmemsink pool=a//b", "Cannot open the pool: pool_open: ",
	      "Invalid argument (errno 22)");
	fails("xmemsrc pool=nobody:b ! fakesink", "Cannot follow the pool: pool_open: ",
	      "errno ");
	fails("videotestsrc ! video/x-raw,width=8000,height=8000,format=RGBA64_LE ! "
	      "xmemsink pool=t slots=512", "Cannot make the buffers: preallocate: ",
	      "Cannot allocate memory (errno 12)");
}
END_TEST

void ends_tests(Suite *suite)
{
	ADD(a_blocked_pipeline_ends);
	ADD(a_blocked_pipeline_goes_on);
	ADD(waits_for_others_end);
	ADD(a_stopped_reader_holds_nothing);
	ADD(the_next_writer_follows);
	ADD(killed_pipelines_leak_nothing);
	ADD(a_killed_writer_is_the_end);
	ADD(errors_say_what_is_wrong);
}
