/* SPDX-License-Identifier: MIT */
/* Frames of the pool "camera" in a libuv loop, beside other handles. */
#include <errno.h>
#include <stdio.h>
#include <uv.h>
#include <xmem.h>

static int result;

static void frames_came(uv_poll_t *handle, int status, int events)
{
	struct xmem_subscription *frames = handle->data;
	struct xmem_buffer *frame;
	struct xmem_error why = XMEM_INIT(why);

	(void)status;
	(void)events;
	while ((frame = xmem_receive(frames, 0))) {
		printf("%zu bytes\n", xmem_size(frame));
		xmem_release(frame);
	}
	switch (xmem_get_last_error(&why)) {
	case -EAGAIN:
		return;
	case -EPIPE:
		printf("the publisher has ended\n");
		break;
	default:
		fprintf(stderr, "uv_loop: %s\n", why.message);
		result = 1;
	}
	uv_stop(handle->loop);
}

/* Other work of the program. */
static void tick(uv_timer_t *timer)
{
	(void)timer;
	printf("tick\n");
}

int main(void)
{
	struct xmem_pool *pool = xmem_pool_open("camera", NULL);
	struct xmem_subscription *frames = pool ? xmem_subscribe(pool, NULL) : NULL;
	int fd = frames ? xmem_subscription_poll_fd(frames) : -1;
	uv_loop_t *loop = uv_default_loop();
	uv_timer_t timer;
	uv_poll_t watch;
	struct xmem_error why = XMEM_INIT(why);

	if (fd < 0) {
		xmem_get_last_error(&why);
		fprintf(stderr, "uv_loop: %s\n", why.message);
		return 1;
	}
	printf("following a publisher\n");
	uv_poll_init(loop, &watch, fd);
	watch.data = frames;
	uv_poll_start(&watch, UV_READABLE, frames_came);
	uv_timer_init(loop, &timer);
	uv_timer_start(&timer, tick, 100, 100);
	uv_run(loop, UV_RUN_DEFAULT);
	uv_poll_stop(&watch);		/* before the descriptor goes */
	xmem_unsubscribe(frames);
	xmem_pool_close(pool);
	return result;
}
