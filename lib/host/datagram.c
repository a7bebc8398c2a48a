// SPDX-License-Identifier: MIT
/*
 * Receives a datagram, and records its descriptors so that a forked child closes them
 * (base/files.h).
 */
#include <errno.h>
#include <sys/socket.h>

#include "lib/base/files.h"
#include "lib/host/wire.h"

/* Wait for a datagram without taking it, because a thread must not wait under the fork lock. */
static int wait_for_datagram(int socket, int flags)
{
	char byte;

	if (recv(socket, &byte, sizeof(byte), flags | MSG_PEEK) >= 0)
		return 0;
	return errno == ECONNRESET ? -ENOTCONN : -errno;
}

int xl_file_receive(int socket, struct xm_datagram *ret, int flags)
{
	u32 i;
	int err;

	do {
		err = wait_for_datagram(socket, flags);
		if (err)
			return err;
		xl_fork_lock();
		err = xm_wire_receive(socket, ret, flags | MSG_DONTWAIT);
		for (i = 0; !err && i < ret->files; i++)
			xl_file_record(ret->file[i]);
		xl_fork_unlock();
	} while (err == -EAGAIN && !(flags & MSG_DONTWAIT));
	return err;
}
