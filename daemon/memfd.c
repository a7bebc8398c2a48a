// SPDX-License-Identifier: MIT
/*
 * New files in memory: the pages of a pool, and the keys that let a process in.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon.h"

int xd_new_memfd(const char *name, u64 bytes, int seals)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int err;

	if (fd < 0)
		return errno == EMFILE || errno == ENFILE ? -EDQUOT : -errno;
	seals |= F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	if (!ftruncate(fd, bytes) && !fcntl(fd, F_ADD_SEALS, seals))
		return fd;
	err = -errno;
	close(fd);
	return err;
}
