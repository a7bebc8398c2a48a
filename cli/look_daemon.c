// SPDX-License-Identifier: MIT
/*
 * Looking at the pools of xmemd. The daemon has a memfd with the pages of each pool, and this user
 * can open it by /proc/PID/fd. It is copied, and no client is made. A look at a mapping would get
 * memory for pages that nobody has used yet. xmem trace, which looks too often for that, maps them:
 * it reads the holds of clients on slots with contents alone.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/look.h"
#include "core/host.h"
#include "lib/host/address.h"
#include "lib/host/wire.h"

#define PAGES	"/memfd:xmem-pool"
#define HOST_SECONDS	10

/* ---- the daemon and its files ---- */

/* The process that answers at that address. Another one may have made the socket. */
static pid_t daemon_at(const struct xm_address *address)
{
	struct xmem_query_request query = { .size = sizeof(query) };
	struct xmem_message head = { .request = XMEM_IOC_QUERY, .number = 1 };
	char answer[512], control[CMSG_SPACE(sizeof(struct ucred))];
	const struct timeval wait = { HOST_SECONDS, 0 };
	struct ucred sender = { 0 };
	struct cmsghdr *credentials;
	struct iovec part = { answer, sizeof(answer) };
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	int file = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), on = 1;

	if (file < 0)
		return 0;
	setsockopt(file, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
	setsockopt(file, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	if (!connect(file, (const struct sockaddr *)&address->socket, sizeof(address->socket)) &&
	    !xm_wire_send(file, &head, &query, sizeof(query), -1, 0) &&
	    recvmsg(file, &message, MSG_CMSG_CLOEXEC) > 0) {
		credentials = CMSG_FIRSTHDR(&message);
		if (credentials && credentials->cmsg_type == SCM_CREDENTIALS)
			memcpy(&sender, CMSG_DATA(credentials), sizeof(sender));
	}
	close(file);
	return sender.uid == geteuid() ? sender.pid : 0;
}

/* The descriptors of the daemon that have pages, by the names of these files. */
static json_t *files;
static char folder[32];

static bool is_newer(int in, const char *fd, json_int_t than)
{
	struct stat a, b;
	char other[24];

	snprintf(other, sizeof(other), "%" JSON_INTEGER_FORMAT, than);
	if (fstatat(in, fd, &a, 0) || fstatat(in, other, &b, 0))
		return false;
	return a.st_ctim.tv_sec != b.st_ctim.tv_sec ? a.st_ctim.tv_sec > b.st_ctim.tv_sec :
						      a.st_ctim.tv_nsec > b.st_ctim.tv_nsec;
}

/* A drained pool has lost its name to a later one, whose file is therefore newer. */
static void add_file(int in, const char *fd)
{
	char name[512];
	ssize_t length = readlinkat(in, fd, name, sizeof(name) - 1);
	json_t *known;

	if (length < 0 || strncmp(name, PAGES, sizeof(PAGES) - 1))
		return;
	name[length] = '\0';
	known = json_object_get(files, name);
	if (!known || is_newer(in, fd, json_integer_value(known)))
		cli_set_number(files, name, strtoul(fd, NULL, 10));
}

int look_daemon_begin(json_t *sample)
{
	struct xm_address address;
	struct dirent *entry;
	pid_t pid = 0;
	DIR *all;

	if (!xm_address_find(&address))
		pid = daemon_at(&address);
	snprintf(folder, sizeof(folder), "/proc/%d/fd", pid);
	all = pid ? opendir(folder) : NULL;
	if (!all) {
		char *why = cli_format("xmemd cannot be looked at: %s", !pid ?
				       "its process is not in this PID namespace, or has just "
				       "ended" : strerror(errno));

		cli_set(sample, "error", cli_text(why, SIZE_MAX));
		free(why);
		return -EACCES;
	}
	json_decref(files);
	files = cli_object();
	while ((entry = readdir(all)))
		add_file(dirfd(all), entry->d_name);
	closedir(all);
	return 0;
}

/* A copy of the file, in which unused pages take no memory. MAP_FAILED: there was no memory. */
static void *copy_of(int file, size_t bytes)
{
	char *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	off_t at = 0, end;
	ssize_t got;

	while (base != MAP_FAILED && (at = lseek(file, at, SEEK_DATA)) >= 0) {
		end = lseek(file, at, SEEK_HOLE);
		got = end > at ? pread(file, base + at, end - at, at) : 0;
		if (got <= 0)
			break;
		at += got;
	}
	return base;
}

/* The file with the pages of that pool, or -1: it has just ended. */
static int open_pages(const json_t *pool)
{
	const char *given = json_string_value(json_object_get(pool, "name"));
	char *name = given ? cli_format(PAGES ":%s (deleted)", given) :
		     cli_format(PAGES "@%" JSON_INTEGER_FORMAT " (deleted)",
				look_number(pool, "number"));
	json_t *fd = json_object_get(files, name);
	char *path = cli_format("%s/%" JSON_INTEGER_FORMAT, folder, json_integer_value(fd));
	int file = fd ? open(path, O_RDONLY | O_CLOEXEC) : -1;

	free(path);
	free(name);
	return file;
}

/* Read-only, as they change. */
static void *shared(int file, size_t bytes)
{
	return mmap(NULL, bytes, PROT_READ, MAP_SHARED, file, 0);
}

/* Get the pages of that pool by copy_of or shared. MAP_FAILED: it has just ended. */
static void *get_pages(const json_t *pool, void *(*get)(int file, size_t bytes),
		       struct xm_map *map, size_t *ret_bytes)
{
	int file = open_pages(pool);
	struct xmem_pool_header header;
	void *base = MAP_FAILED;
	struct stat info;

	if (file >= 0 && !fstat(file, &info) && info.st_size)
		base = get(file, info.st_size);
	if (base != MAP_FAILED && xm_map_take(map, base, info.st_size, 0, &header)) {
		munmap(base, info.st_size);
		base = MAP_FAILED;
	}
	if (base != MAP_FAILED)
		*ret_bytes = info.st_size;
	if (file >= 0)
		close(file);
	return base;
}

const struct xm_map *look_daemon_map(const json_t *pool)
{
	static struct xm_map map;
	size_t bytes;

	return get_pages(pool, shared, &map, &bytes) == MAP_FAILED ? NULL : &map;
}

void look_daemon(json_t *pool, const json_t *before)
{
	struct xm_map map;
	size_t bytes;
	void *base = get_pages(pool, copy_of, &map, &bytes);

	if (base == MAP_FAILED)
		return;
	look_pages(&map, pool, before);
	munmap(base, bytes);
}
