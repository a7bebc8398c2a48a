// SPDX-License-Identifier: MIT
/*
 * CUDA payloads: which descriptors are accepted as memory of a GPU, and which clients have it open.
 * Decisions that need numbers alone are in core/cuda.c.
 *
 * The driver is not called here. A descriptor is kept and handed on as the same open file, by which
 * the driver recognises the memory. A handle is 64 bytes that only the driver understands. When the
 * last descriptor of a file is closed here, xmemd's only thread waits as long as the driver takes.
 */
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "daemon.h"

/* ---- which files are a driver's ---- */

/* Read a number that @end follows. false: there is none, or it is too large for a device. */
static bool take_number(const char **at, char end, u32 *ret)
{
	char *behind;
	unsigned long number;

	if (**at < '0' || **at > '9')
		return false;
	number = strtoul(*at, &behind, 10);
	if (*behind != end || number > 0xfffff)
		return false;
	*at = behind;
	*ret = number;
	return true;
}

/* Take one word of the list; it has @length bytes. */
static bool take_word(struct xd_device_files *files, const char *word, size_t length)
{
	char copy[32];
	const char *at = copy;
	u32 major, minor;

	if (length >= sizeof(copy))
		return false;
	memcpy(copy, word, length);
	copy[length] = 0;
	if (!strcmp(copy, "memfd"))
		return files->memfd = true;
	if (!strcmp(copy, "dmabuf"))
		return files->dmabuf = true;
	if (files->count == XD_DEVICE_FILES || !take_number(&at, ':', &major))
		return false;
	at++;
	if (!take_number(&at, 0, &minor))
		return false;
	files->number[files->count++] = makedev(major, minor);
	return true;
}

bool xd_device_files_take(struct xd_device_files *files, const char *list)
{
	size_t length;

	*files = (struct xd_device_files){ .memfd = false };
	for (;;) {
		length = strcspn(list, ",");
		if (length && !take_word(files, list, length))
			return false;
		if (!list[length])
			return true;
		list += length + 1;
	}
}

/* A dma-buf is memory of some device, and of a file system of its own. */
static bool is_dmabuf(int fd)
{
	struct statfs system;

	return !fstatfs(fd, &system) && system.f_type == DMA_BUF_MAGIC;
}

/* 0 if the descriptor is of one of these files, and so stands for memory of a GPU. */
static int check_file(const struct xd_device_files *files, int fd)
{
	struct stat info;
	u32 i;

	if (fcntl(fd, F_GETFL) & O_PATH)
		return -EBADF;		/* it can only name the file */
	if (fstat(fd, &info))
		return -errno;
	if (files->memfd && fcntl(fd, F_GET_SEALS) >= 0)
		return 0;
	if (files->dmabuf && is_dmabuf(fd))
		return 0;
	for (i = 0; S_ISCHR(info.st_mode) && i < files->count; i++)
		if (info.st_rdev == files->number[i])
			return 0;
	return -EMEDIUMTYPE;
}

/* ---- payloads ---- */

int xd_cuda_new(struct xd_pool *pool, int fd, u64 incarnation,
		const struct xmem_attach_request *request, struct xd_payload **ret_payload)
{
	struct xd_payload *payload;
	struct xm_cuda *cuda;
	int err = fd < 0 ? 0 : check_file(&pool->daemon->device_files, fd);

	if (err)
		return err;
	cuda = calloc(1, sizeof(*cuda));
	if (!cuda)
		return -ENOMEM;
	err = xd_payload_make(pool, fd, incarnation, &payload);
	if (err) {
		free(cuda);
		return err;
	}
	payload->cuda = cuda;
	payload->bytes = request->bytes;
	payload->traits = xm_attach_traits(request->flags);
	*ret_payload = payload;
	return 0;
}

/* ---- openers ---- */

int xd_cuda_serve(struct xd_call *call, struct xd_payload *payload)
{
	struct xmem_payload_request *request = &call->request.payload;
	struct xd_connection *from = call->from;
	struct xm_asker asker = {
		.client = from->client, .role = from->role, .number = call->number,
	};
	struct xm_cuda *cuda = payload->cuda;
	int err;

	if (request->flags == XMEM_PAYLOAD_CLOSE && request->bytes &&
	    !xm_cuda_is_opened_by(cuda, from->client, request->bytes))
		return -ENOENT;		/* that request has not opened it */
	/* This may fail, so it comes before the payload counts as open. */
	if (request->flags & XMEM_PAYLOAD_OPEN && payload->fd >= 0) {
		call->answer = fcntl(payload->fd, F_DUPFD_CLOEXEC, 0);
		if (call->answer < 0)
			return -EDQUOT;
	}
	cuda->ended = !xm_host_lives(&from->pool->host, payload->owner, payload->incarnation);
	err = xm_cuda_serve(&from->pool->host, cuda, &asker, request);
	if (!err)
		xd_payload_closed(from->pool, payload);
	return err;
}

void xd_cuda_left(struct xd_pool *pool, u32 client)
{
	struct xd_payload *payload, *next;
	u32 i;

	for (i = 0; i < XD_PAYLOAD_LISTS && pool->host.books[client].opens; i++) {
		for (payload = pool->payloads[i]; payload; payload = next) {
			next = payload->next;
			if (!payload->cuda)
				continue;
			xm_cuda_unopen(&pool->host, payload->cuda, client);
			xd_payload_closed(pool, payload);
		}
	}
}

/* ---- debugging ---- */

const char *xd_cuda_is_valid(const struct xd_pool *pool)
{
	u64 bytes[XMEM_MAX_DEVICES + 1] = { 0 }, closing[XMEM_MAX_DEVICES + 1] = { 0 };
	const struct xd_payload *payload;
	const struct xm_cuda *cuda;
	u32 i;

	for (i = 0; i < XD_PAYLOAD_LISTS; i++) {
		for (payload = pool->payloads[i]; payload; payload = payload->next) {
			if (!payload->cuda)
				continue;
			cuda = payload->cuda;
			if (cuda->closing != !payload->slots || (cuda->closing && payload->fd >= 0))
				return "a CUDA payload is closing, and has slots or a file";
			bytes[xm_device(cuda->traits)] += cuda->bytes;
			closing[xm_device(cuda->traits)] += cuda->closing ? cuda->bytes : 0;
		}
	}
	for (i = 1; i <= XMEM_MAX_DEVICES; i++) {
		const struct xmem_device_row *row = xm_device_row(&pool->host.map, i);

		if (row->bytes != bytes[i] || row->closing_bytes != closing[i])
			return "the device table has other bytes than the payloads";
	}
	return NULL;
}
