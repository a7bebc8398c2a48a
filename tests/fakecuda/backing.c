// SPDX-License-Identifier: MIT
/*
 * Memory of a device: a memfd, or, if FAKECUDA_DEVICE_FILE names a device, an open file of it, so
 * that a host sees a character device as it does with a real driver. Such a device gives memory to
 * each open file: one ioctl sets its size, once, and another returns it (the module is
 * tests/kernel/gpu). The file is the memory, so the memory lives as long as any process has the
 * file open or mapped (rule 38).
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/ioctl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "memory.h"

#define GPU_SET_BYTES	_IOW(0xb8, 1, uint64_t)
#define GPU_GET_BYTES	_IOR(0xb8, 2, uint64_t)

pthread_mutex_t memory_lock = PTHREAD_MUTEX_INITIALIZER;
static struct fk_backing *backings;	/* memory_lock */

/* Memory that is shared by a handle is found through /proc, where a device would be opened anew. */
static int file_create(size_t bytes, enum fk_kind kind)
{
	const char *path = kind == FK_LEGACY ? NULL : fk_option("DEVICE_FILE", NULL);
	uint64_t size = bytes;
	int fd;

	if (!path)
		return fk_file_create("fakecuda", bytes);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0 && ioctl(fd, GPU_SET_BYTES, &size)) {
		close(fd);
		return -1;
	}
	return fd;
}

static size_t file_bytes(int fd)
{
	uint64_t bytes = 0;
	struct stat st;

	if (fstat(fd, &st))
		return 0;
	if (S_ISREG(st.st_mode))
		return st.st_size;
	/* Another driver's device gets no ioctl of ours, which it might take for its own. */
	if (!S_ISCHR(st.st_mode) || !fk_option("DEVICE_FILE", NULL))
		return 0;
	return ioctl(fd, GPU_GET_BYTES, &bytes) ? 0 : bytes;
}

static struct fk_control *control_map(int fd, size_t bytes)
{
	void *map = mmap(NULL, FK_CONTROL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, bytes);

	if (map == MAP_FAILED)
		return NULL;
	madvise(map, FK_CONTROL_BYTES, MADV_DONTFORK);
	return map;
}

/* Takes @fd over. */
static struct fk_backing *make_locked(int fd, size_t bytes)
{
	struct fk_backing *backing = calloc(1, sizeof(*backing));

	if (backing)
		backing->control = control_map(fd, bytes);
	if (!backing || !backing->control) {
		free(backing);
		close(fd);
		return NULL;
	}
	backing->fd = fd;
	backing->bytes = bytes;
	backing->handles = 1;
	backing->next = backings;
	backings = backing;
	return backing;
}

CUresult fk_backing_create_locked(struct fk_device *device, size_t bytes, enum fk_kind kind,
				  unsigned int handle_types, struct fk_backing **ret_backing)
{
	size_t charge = kind == FK_POOL ? 0 : bytes;	/* a pool's allocations are charged */
	struct fk_backing *backing;
	int fd;

	if (bytes > device->bytes || fk_device_used(device) + charge > device->bytes)
		return FK_OUT_OF_MEMORY;
	fd = file_create(bytes + FK_CONTROL_BYTES, kind);
	if (fd < 0)
		return FK_OUT_OF_MEMORY;
	backing = make_locked(fd, bytes);
	if (!backing)
		return FK_OUT_OF_MEMORY;
	fk_device_charge(device, charge);
	backing->charged = device;
	backing->control->bytes = bytes;
	backing->control->charged = true;
	backing->control->kind = kind;
	backing->control->device_index = device->index;
	backing->control->uuid = device->uuid;
	backing->control->handle_types = handle_types;
	backing->control->owner = *fk_self();
	backing->control->magic = FK_CONTROL_MAGIC;
	*ret_backing = backing;
	return FK_OK;
}

struct fk_backing *fk_backing_open_locked(int fd)
{
	size_t bytes = file_bytes(fd);
	struct fk_backing *backing;
	int own;

	if (bytes <= FK_CONTROL_BYTES || bytes % 4096)
		return NULL;
	own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (own < 0)
		return NULL;
	bytes -= FK_CONTROL_BYTES;
	backing = make_locked(own, bytes);
	if (backing && (backing->control->magic != FK_CONTROL_MAGIC ||
			backing->control->bytes != bytes)) {
		fk_backing_put_locked(backing);
		return NULL;
	}
	return backing;
}

bool fk_backing_is_handle_locked(const struct fk_backing *wanted)
{
	for (struct fk_backing *backing = backings; backing; backing = backing->next)
		if (backing == wanted)
			return backing->handles && backing->control->kind == FK_VMM;
	return false;
}

void fk_backing_put_locked(struct fk_backing *backing)
{
	struct fk_backing **at = &backings;

	if (backing->handles)
		backing->handles--;
	if (backing->handles || backing->mappings)
		return;
	while (*at != backing)
		at = &(*at)->next;
	*at = backing->next;
	if (backing->charged)
		backing->control->charged = false;
	if (backing->charged && backing->control->kind != FK_POOL)
		fk_device_charge(backing->charged, -(ssize_t)backing->bytes);
	munmap(backing->control, FK_CONTROL_BYTES);
	close(backing->fd);
	free(backing);
}

int fk_backing_export(const struct fk_backing *backing)
{
	return fcntl(backing->fd, F_DUPFD_CLOEXEC, 0);
}
