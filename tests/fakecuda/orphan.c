// SPDX-License-Identifier: MIT
/*
 * Memory that is charged to no process any more and still takes room: its exporter has released it,
 * or has ended, and some process, which need not use this driver, has its file open. A real driver
 * keeps such memory until the last descriptor is closed. Files are found in /proc; those of another
 * device driver (FAKECUDA_DEVICE_FILE) show nothing there.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "memory.h"

#define MAX_FILES 4096

struct search {
	int device;			/* index of the machine */
	size_t bytes;
	unsigned int files;
	ino_t inode[MAX_FILES];		/* of those already counted */
};

static bool seen_before(struct search *search, ino_t inode)
{
	for (unsigned int i = 0; i < search->files; i++)
		if (search->inode[i] == inode)
			return true;
	if (search->files < MAX_FILES)
		search->inode[search->files++] = inode;
	return false;
}

static bool read_control(int fd, off_t bytes, struct fk_control *ret)
{
	return bytes > (off_t)FK_CONTROL_BYTES &&
	       pread(fd, ret, sizeof(*ret), bytes - FK_CONTROL_BYTES) == sizeof(*ret) &&
	       ret->magic == FK_CONTROL_MAGIC;
}

static void look_at_file(struct search *search, const char *path)
{
	static struct fk_control control;	/* fk_orphans_used's lock */
	char target[64];
	ssize_t length = readlink(path, target, sizeof(target) - 1);
	struct stat st;
	int fd;

	target[length > 0 ? length : 0] = '\0';
	if (strcmp(target, "/memfd:fakecuda (deleted)"))
		return;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (!fstat(fd, &st) && !seen_before(search, st.st_ino) &&
	    read_control(fd, st.st_size, &control) && control.kind != FK_POOL &&
	    control.device_index == search->device && fk_usage_knows(&control.owner) &&
	    (!control.charged || !fk_process_lives(&control.owner)))
		search->bytes += control.bytes;
	close(fd);
}

static void look_at_process(struct search *search, const char *pid)
{
	char folder[300], path[600];
	struct dirent *entry;
	DIR *files;

	snprintf(folder, sizeof(folder), "/proc/%s/fd", pid);
	files = opendir(folder);
	while (files && (entry = readdir(files))) {
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		look_at_file(search, path);
	}
	if (files)
		closedir(files);
}

size_t fk_orphans_used(int device)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;	/* guards search */
	static struct search search;
	struct dirent *entry;
	DIR *processes;
	size_t bytes;

	pthread_mutex_lock(&lock);
	search.device = device;
	search.bytes = search.files = 0;
	processes = opendir("/proc");
	while (processes && (entry = readdir(processes)))
		if (*entry->d_name >= '1' && *entry->d_name <= '9')
			look_at_process(&search, entry->d_name);
	if (processes)
		closedir(processes);
	bytes = search.bytes;
	pthread_mutex_unlock(&lock);
	return bytes;
}
