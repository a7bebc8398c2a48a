// SPDX-License-Identifier: MIT
/* Waiting for a descriptor, unless a gate is shut. */
#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "xmemgst.h"

void xg_gate_init(struct xg_gate *gate)
{
	gate->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (gate->fd < 0)
		g_error("xmem: eventfd: %s", g_strerror(errno));	/* as g_malloc does */
}

void xg_gate_clear(struct xg_gate *gate)
{
	close(gate->fd);
}

void xg_gate_shut(struct xg_gate *gate)
{
	eventfd_write(gate->fd, 1);
}

void xg_gate_open(struct xg_gate *gate)
{
	eventfd_t value;

	eventfd_read(gate->fd, &value);
}

gboolean xg_wait(int fd, short events, const struct xg_gate *one, const struct xg_gate *two)
{
	struct pollfd fds[] = {
		{ .fd = fd, .events = events },
		{ .fd = one ? one->fd : -1, .events = POLLIN },
		{ .fd = two ? two->fd : -1, .events = POLLIN },
	};

	while (poll(fds, G_N_ELEMENTS(fds), -1) < 0 && errno == EINTR)
		;
	return !(fds[1].revents | fds[2].revents);
}
