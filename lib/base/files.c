// SPDX-License-Identifier: MIT
/* The list of the library's own descriptors, which a forked child closes. files.h has the rules. */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/files.h"

/*
 * The number of a descriptor is not enough. If the program closes a descriptor of the library, the
 * number may be that of another file by the time of the fork, and the child must keep that file.
 */
struct noted {
	int fd;
	dev_t device;
	ino_t inode;
};

/* The list; under the fork lock. */
static struct noted *files;
static size_t count, room;

static void forked(void)
{
	struct stat info;

	for (; count; count--) {
		const struct noted *one = &files[count - 1];

		if (!fstat(one->fd, &info) && info.st_dev == one->device &&
		    info.st_ino == one->inode)
			close(one->fd);
	}
}

static struct xl_fork_hook hook = { .child = forked };

/* find returns an index, or count if the descriptor is not in the list. */
static size_t find(int fd)
{
	size_t i;

	for (i = 0; i < count && files[i].fd != fd; i++)
		;
	return i;
}

/* Without memory the descriptor is not recorded. Only then would a child keep it. */
static void make_room(void)
{
	size_t more = room ? 2 * room : 16;
	struct noted *larger;

	if (count < room)
		return;
	larger = realloc(files, more * sizeof(*files));
	if (!larger)
		return;
	files = larger;
	room = more;
}

int xl_file_record(int fd)
{
	int saved = errno;
	struct stat info;
	size_t at;

	if (fd < 0)
		return fd;
	xl_fork_add(&hook);
	make_room();
	at = find(fd);
	if (at < room && !fstat(fd, &info)) {
		files[at] = (struct noted){ fd, info.st_dev, info.st_ino };
		count += at == count;
	}
	errno = saved;
	return fd;
}

static void forget(int fd)
{
	size_t at = find(fd);

	if (at < count)
		files[at] = files[--count];
}

void xl_file_forget(int fd)
{
	xl_fork_lock();
	forget(fd);
	xl_fork_unlock();
}

void xl_file_close(int fd)
{
	int saved = errno;

	xl_fork_lock();
	forget(fd);
	close(fd);
	xl_fork_unlock();
	errno = saved;
}
