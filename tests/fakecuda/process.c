// SPDX-License-Identifier: MIT
/*
 * The identity of a process, whether it still lives, and memory that other processes find by a
 * handle. There is no broker: a killed process leaves nothing behind that could disturb others.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fake.h"

/* Of "self" or a pid. 0: there is none, or it is a zombie, which has no memory any more. */
static uint64_t start_time(const char *who)
{
	char path[64], text[1024], *end;
	unsigned long long time = 0;
	ssize_t bytes;
	char status;
	int fd;

	snprintf(path, sizeof(path), "/proc/%s/stat", who);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	bytes = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (bytes <= 0)
		return 0;
	text[bytes] = 0;
	end = strrchr(text, ')');	/* the name before it may hold any character */
	if (!end || sscanf(end + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d"
			   " %*d %*d %*d %*d %llu", &status, &time) != 2)
		return 0;
	return status == 'Z' || status == 'X' ? 0 : time;
}

static uint64_t pid_namespace(void)
{
	struct stat st;

	/* Tests cannot always make a namespace, so a switch can pretend one. */
	if (fk_option("PID_NAMESPACE", NULL))
		return fk_option_number("PID_NAMESPACE", 0);
	return stat("/proc/self/ns/pid", &st) ? 0 : st.st_ino;
}

const struct fk_process *fk_self(void)
{
	static struct fk_process self;
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

	pthread_mutex_lock(&lock);
	if (self.pid != getpid()) {
		/* /proc may belong to another pid namespace, where our pid is another process. */
		self.start_time = start_time("self");
		self.pid_namespace = pid_namespace();
		self.pid = getpid();
	}
	pthread_mutex_unlock(&lock);
	return &self;
}

bool fk_process_is_self(const struct fk_process *process)
{
	const struct fk_process *self = fk_self();

	return process->pid == self->pid && process->pid_namespace == self->pid_namespace &&
		process->start_time == self->start_time;
}

bool fk_process_lives(const struct fk_process *process)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", process->pid);
	return process->start_time && start_time(pid) == process->start_time;
}

uint64_t fk_generation(void)
{
	static atomic_ulong last;

	return atomic_fetch_add(&last, 1) + 1;
}

int fk_file_create(const char *name, size_t bytes)
{
	int fd = memfd_create(name, MFD_CLOEXEC);

	if (fd >= 0 && ftruncate(fd, bytes)) {
		close(fd);
		return -1;
	}
	return fd;
}

bool fk_name_file(int fd, struct fk_name *ret_name)
{
	struct stat st;

	if (fstat(fd, &st))
		return false;
	*ret_name = (struct fk_name) {
		.owner = *fk_self(), .fd = fd, .device = st.st_dev, .inode = st.st_ino,
	};
	return true;
}

int fk_name_open(const struct fk_name *name)
{
	char path[64];
	struct stat st;
	int fd;

	if (!fk_process_lives(&name->owner))
		return -1;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", name->owner.pid, name->fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (!fstat(fd, &st) && (uint32_t)st.st_dev == name->device && st.st_ino == name->inode &&
	    fk_process_lives(&name->owner))
		return fd;
	close(fd);
	return -1;
}
