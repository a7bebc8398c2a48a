// SPDX-License-Identifier: MIT
/*
 * The address of xmemd: a socket in a folder that only its user can write, so that no program of
 * another user can take its place. The folder depends neither on a login nor on the network
 * namespace: processes that share the folder share pools.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/host/address.h"

/*
 * This user's number outside of its user namespace. So a user that is root in a namespace has
 * another folder than root. In nested namespaces only the innermost is undone, which is enough to
 * keep the folder apart from root's.
 */
static unsigned int outer_uid(void)
{
	FILE *file = fopen("/proc/self/uid_map", "re");
	unsigned int inside, outside, count, uid = geteuid(), found = uid;

	if (!file)
		return uid;
	while (fscanf(file, "%u %u %u", &inside, &outside, &count) == 3)
		if (uid >= inside && uid - inside < count)
			found = outside + (uid - inside);
	fclose(file);
	return found;
}

/*
 * Only root makes folders in /run. So a folder there is the place that root has chosen for this
 * user, even if another process listens in it. Services with a /tmp of their own find it as well.
 */
static bool is_in_run(const char *folder, unsigned int uid)
{
	struct stat info;

	return !lstat(folder, &info) || (!uid && !faccessat(AT_FDCWD, "/run", W_OK, AT_EACCESS));
}

/* The folder for sockets without a path. It does not change between boot and shutdown. */
static void find_folder(char *ret, size_t bytes)
{
	unsigned int uid = outer_uid();

	snprintf(ret, bytes, XM_FOLDER_RUN, uid);
	if (!is_in_run(ret, uid))
		snprintf(ret, bytes, XM_FOLDER_TMP, uid);
}

static int too_long(struct xm_address *address)
{
	snprintf(address->why, sizeof(address->why),
		 "XMEM_SOCKET is too long for an address: a socket's path has at most %zu "
		 "characters", XM_ADDRESS_BYTES - 1);
	return -ENAMETOOLONG;
}

int xm_address_find(struct xm_address *ret)
{
	const char *given = secure_getenv("XMEM_SOCKET"), *slash;
	int length = 0;

	*ret = (struct xm_address){ .socket.sun_family = AF_UNIX };
	if (!given || !*given)
		given = "xmemd";
	slash = strrchr(given, '/');
	ret->own_folder = !slash;
	if (slash)
		length = snprintf(ret->folder, sizeof(ret->folder), "%.*s",
				  slash > given ? (int)(slash - given) : 1, given);
	else
		find_folder(ret->folder, sizeof(ret->folder));
	if (length < 0 || (size_t)length >= sizeof(ret->folder))
		return too_long(ret);
	if (slash)
		length = snprintf(ret->socket.sun_path, XM_ADDRESS_BYTES, "%s", given);
	else
		length = snprintf(ret->socket.sun_path, XM_ADDRESS_BYTES, "%s/%s", ret->folder,
				  given);
	if ((size_t)length >= XM_ADDRESS_BYTES)
		return too_long(ret);
	ret->name = strrchr(ret->socket.sun_path, '/') + 1;
	if (*ret->name && strcmp(ret->name, ".") && strcmp(ret->name, ".."))
		return 0;
	snprintf(ret->why, sizeof(ret->why), "XMEM_SOCKET=%.100s names no file", given);
	return -EINVAL;
}

/* Describe what is wrong with the folder, and return -EPERM. */
static int refuse(struct xm_address *address, const char *what, const char *remedy)
{
	snprintf(address->why, sizeof(address->why),
		 "%s, in which this user's xmemd listens, %s; %s, or set XMEM_SOCKET to the path "
		 "of a socket elsewhere", address->folder, what, remedy);
	return -EPERM;
}

int xm_address_check(struct xm_address *address)
{
	struct stat info;
	int folder, err = 0;

	if (!address->own_folder)
		return 0;	/* the peer is checked instead: see lib/host/start.c and
				 * daemon/connection.c */
	folder = open(address->folder, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (folder < 0 && (errno == ENOTDIR || errno == ELOOP))
		return refuse(address, "is no folder", "remove it");
	if (folder < 0)
		return -errno;
	if (fstat(folder, &info))
		err = -errno;
	else if (info.st_uid != geteuid())
		err = refuse(address, "belongs to another user", "have that user remove it");
	else if (info.st_mode & 077)
		err = refuse(address, "is open to other users", "close it by chmod 700");
	close(folder);
	return err;
}
