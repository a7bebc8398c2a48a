/* SPDX-License-Identifier: MIT */
/*
 * Frames and a socket in one epoll loop: it counts the frames of the pool "camera", and sends the
 * count to each program that connects to the Unix socket at the path in its argument.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <xmem.h>

static unsigned long frames;

/* Receive all frames that are there. 0: there are no more now; 1: the publisher has ended; -1. */
static int take_frames(struct xmem_subscription *subscription)
{
	struct xmem_buffer *frame;
	int err;

	while ((frame = xmem_receive(subscription, 0))) {
		printf("frame %lu: %zu bytes\n", ++frames, xmem_size(frame));
		xmem_release(frame);
	}
	err = xmem_peek_last_error(NULL);
	return err == -EAGAIN ? 0 : err == -EPIPE ? 1 : -1;
}

static void answer(int listener)
{
	char text[64];
	int peer = accept(listener, NULL, NULL);

	if (peer < 0)
		return;
	snprintf(text, sizeof(text), "%lu frames so far\n", frames);
	if (write(peer, text, strlen(text)) < 0)
		perror("event_loop: a peer");
	close(peer);
}

static int listen_at(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, 8))
		return -1;
	return fd;
}

static int loop(int epoll, int listener, struct xmem_subscription *subscription)
{
	struct epoll_event event;
	int over = 0;

	while (!over) {
		if (epoll_wait(epoll, &event, 1, -1) < 0 && errno != EINTR)
			return perror("event_loop"), -1;
		if (event.data.fd == listener)
			answer(listener);
		else
			over = take_frames(subscription);
	}
	return over;
}

int main(int argc, char **argv)
{
	struct xmem_pool *pool = xmem_pool_open("camera", NULL);
	struct epoll_event socket_event = { .events = EPOLLIN }, event = { .events = EPOLLIN };
	struct xmem_subscription *subscription;
	int epoll = epoll_create1(0), over = -1;
	struct xmem_error why = XMEM_INIT(why);

	socket_event.data.fd = argc == 2 ? listen_at(argv[1]) : -1;
	if (socket_event.data.fd < 0) {
		fprintf(stderr, "event_loop: usage: event_loop PATH, for a new socket\n");
		return 2;
	}
	subscription = pool ? xmem_subscribe(pool, NULL) : NULL;	/* waits for a publisher */
	event.data.fd = subscription ? xmem_pool_poll_fd(pool) : -1;
	if (event.data.fd >= 0 &&
	    !epoll_ctl(epoll, EPOLL_CTL_ADD, socket_event.data.fd, &socket_event) &&
	    !epoll_ctl(epoll, EPOLL_CTL_ADD, event.data.fd, &event)) {
		printf("following a publisher\n");
		over = loop(epoll, socket_event.data.fd, subscription);
	}
	if (over < 0) {
		xmem_get_last_error(&why);
		fprintf(stderr, "event_loop: %s\n", why.message);
		return 1;
	}
	printf("the publisher has ended\n");
	return 0;
}
