/* SPDX-License-Identifier: MIT */
/* Frames of the pool "camera" in a GLib main loop, between other sources of events. */
#include <errno.h>
#include <glib-unix.h>
#include <stdio.h>
#include <xmem.h>

static GMainLoop *loop;
static int status;

static void stop(int with)
{
	status = with;
	g_main_loop_quit(loop);
}

static gboolean frames_came(gint fd, GIOCondition condition, gpointer data)
{
	struct xmem_subscription *frames = data;
	struct xmem_buffer *frame;
	struct xmem_error why = XMEM_INIT(why);

	(void)fd;
	(void)condition;
	while ((frame = xmem_receive(frames, 0))) {
		printf("%zu bytes\n", xmem_size(frame));
		xmem_release(frame);
	}
	switch (xmem_get_last_error(&why)) {
	case -EAGAIN:
		return G_SOURCE_CONTINUE;
	case -EPIPE:
		printf("the publisher has ended\n");
		stop(0);
		break;
	default:
		fprintf(stderr, "glib_loop: %s\n", why.message);
		stop(1);
	}
	return G_SOURCE_REMOVE;
}

/* Other work of the program. */
static gboolean tick(gpointer data)
{
	(void)data;
	printf("tick\n");
	return G_SOURCE_CONTINUE;
}

int main(void)
{
	struct xmem_pool *pool = xmem_pool_open("camera", NULL);
	struct xmem_subscription *frames = pool ? xmem_subscribe(pool, NULL) : NULL;
	int fd = frames ? xmem_subscription_poll_fd(frames) : -1;
	struct xmem_error why = XMEM_INIT(why);

	if (fd < 0) {
		xmem_get_last_error(&why);
		fprintf(stderr, "glib_loop: %s\n", why.message);
		return 1;
	}
	printf("following a publisher\n");
	loop = g_main_loop_new(NULL, FALSE);
	g_unix_fd_add(fd, G_IO_IN, frames_came, frames);
	g_timeout_add(100, tick, NULL);
	g_main_loop_run(loop);
	g_main_loop_unref(loop);
	xmem_unsubscribe(frames);
	xmem_pool_close(pool);
	return status;
}
