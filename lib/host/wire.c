// SPDX-License-Identifier: MIT
/*
 * The datagrams between libxmem and xmemd (wire.h): their lengths, and their descriptors. Their
 * meanings are in daemon.c and in daemon/request.c.
 */
#include <linux/ioctl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/host/wire.h"

int xm_wire_take(const struct xm_request_kind *kind, const void *bytes, size_t length,
		 union xm_request *ret)
{
	const __u8 *byte = bytes;
	u32 size;
	size_t i;
	int err;

	if (length < sizeof(size))
		return -EINVAL;
	memcpy(&size, bytes, sizeof(size));
	err = xm_request_size(kind, size);
	if (err)
		return err;
	if (size > length)
		return -EFAULT;
	if (size < length)
		return -EINVAL;
	for (i = kind->bytes; i < size; i++)
		if (byte[i])
			return -E2BIG;
	memset(ret, 0, sizeof(*ret));
	memcpy(ret, bytes, size < kind->bytes ? size : kind->bytes);
	return xm_request_check(kind, ret);
}

/* ---- sending and receiving ---- */

union control {
	struct cmsghdr head;
	char space[CMSG_SPACE(2 * sizeof(int))];
};

int xm_wire_send(int socket, const struct xmem_message *head, const void *body, size_t length,
		 int file, int flags)
{
	struct iovec io[2] = { { (void *)head, sizeof(*head) }, { (void *)body, length } };
	struct msghdr message = { .msg_iov = io, .msg_iovlen = 2 };
	union control control = { 0 };
	ssize_t sent;

	if (file >= 0) {
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(sizeof(int));
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.head), &file, sizeof(file));
	}
	sent = sendmsg(socket, &message, flags | MSG_NOSIGNAL);
	if (sent >= 0)
		return 0;
	if (errno == ENOBUFS)
		return -ENOMEM;		/* the kernel has no memory for the datagram */
	return errno == EPIPE || errno == ECONNRESET ? -ENOTCONN : -errno;
}

static void take_files(struct msghdr *message, struct xm_datagram *datagram)
{
	struct cmsghdr *at;

	for (at = CMSG_FIRSTHDR(message); at; at = CMSG_NXTHDR(message, at)) {
		size_t bytes = at->cmsg_len - CMSG_LEN(0);

		if (at->cmsg_level != SOL_SOCKET || at->cmsg_type != SCM_RIGHTS ||
		    bytes > sizeof(datagram->file))
			continue;
		memcpy(datagram->file, CMSG_DATA(at), bytes);
		datagram->files = bytes / sizeof(int);
	}
	/*
	 * There is room for two. If fewer came and some were cut off, there was no free descriptor
	 * number.
	 */
	datagram->lost_file = message->msg_flags & MSG_CTRUNC && datagram->files < 2;
}

int xm_wire_receive(int socket, struct xm_datagram *ret, int flags)
{
	struct iovec io[2] = { { &ret->head, sizeof(ret->head) },
			       { ret->body, sizeof(ret->body) } };
	union control control;
	struct msghdr message = {
		.msg_iov = io,
		.msg_iovlen = 2,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t got;

	ret->files = 0;
	got = recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
	if (got < 0)
		return errno == ECONNRESET ? -ENOTCONN : -errno;
	take_files(&message, ret);
	ret->short_head = (size_t)got < sizeof(ret->head);
	if (ret->short_head)
		ret->head = (struct xmem_message){ 0 };
	ret->length = ret->short_head ? 0 : got - sizeof(ret->head);
	return got || ret->files || ret->lost_file ? 0 : -ENOTCONN;
}

/* ---- descriptors that are polled ---- */

#define MOST_DATAGRAMS	64	/* in a row, from a peer that never stops sending */

/* One such datagram is longer than the smallest send buffer, so usually one fills it. */
void xm_wire_fill(int socket)
{
	static const char nothing[4096];
	int i;

	for (i = 0; i < MOST_DATAGRAMS; i++)
		if (send(socket, nothing, sizeof(nothing), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
			break;
}

void xm_wire_drain(int socket)
{
	int i;

	for (i = 0; i < MOST_DATAGRAMS; i++)
		if (recv(socket, NULL, 0, MSG_DONTWAIT | MSG_TRUNC) <= 0)
			break;
}
