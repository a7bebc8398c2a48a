// SPDX-License-Identifier: MIT
/*
 * The listening socket: a starter passes it, or it is bound here. If somebody removes the bound
 * socket, it is bound again.
 *
 * A daemon must hold the lock beside the socket before it binds. If several daemons start at once,
 * exactly one gets the lock and replaces the socket that a killed daemon has left. The kernel drops
 * the lock with the last process that has it, so it is never stale.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/host/address.h"
#include "daemon.h"

static struct xm_address address;
static struct stat bound;		/* the socket's file, if it was bound here */
static int lock_fd = -1;

const char *xd_listen_why(void)
{
	return *address.why ? address.why : NULL;
}

/* ---- passed ---- */

int xd_listen_passed(int fd)
{
	int listens = 0, type = 0;
	socklen_t length = sizeof(int);

	if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) ||
	    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length))
		return -errno;
	if (!listens || type != SOCK_SEQPACKET)
		return -EINVAL;
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	return fcntl(fd, F_SETFL, O_NONBLOCK) ? -errno : fd;
}

/* ---- the lock ---- */

static void lock_path(char *ret, size_t bytes)
{
	snprintf(ret, bytes, "%s.lock", address.socket.sun_path);
}

/* Does the locked file still have its name? A daemon that exits removes its lock. */
static bool still_named(int fd, const char *path)
{
	struct stat locked, named;

	return !fstat(fd, &locked) && !lstat(path, &named) && locked.st_dev == named.st_dev &&
	       locked.st_ino == named.st_ino;
}

/* -EADDRINUSE: another daemon has the lock. */
static int take_lock(void)
{
	char path[XM_ADDRESS_BYTES + 8];
	int fd, err;

	lock_path(path, sizeof(path));
	for (;;) {
		fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd < 0)
			return -errno;
		if (flock(fd, LOCK_EX | LOCK_NB)) {
			err = errno == EWOULDBLOCK ? -EADDRINUSE : -errno;
			close(fd);
			return err;
		}
		if (still_named(fd, path))
			break;
		close(fd);
	}
	lock_fd = fd;
	return 0;
}

/* ---- binding ---- */

static int make_folder(void)
{
	int err;

	if (!address.own_folder)
		return 0;
	if (mkdir(address.folder, 0700) && errno != EEXIST) {
		err = -errno;
		snprintf(address.why, sizeof(address.why), "cannot make the folder %s: %s",
			 address.folder, strerror(-err));
		return err;
	}
	return xm_address_check(&address);
}

/* A service manager may listen there without the lock. */
static bool somebody_listens(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool listens = fd >= 0 && (!connect(fd, (struct sockaddr *)&address.socket,
					    sizeof(address.socket)) || errno == EAGAIN);

	if (fd >= 0)
		close(fd);
	return listens;
}

/* Remove the socket that a killed daemon has left. -EADDRINUSE: something else has the address. */
static int remove_stale(void)
{
	const char *path = address.socket.sun_path;
	struct stat info;

	if (lstat(path, &info))
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(info.st_mode) || info.st_uid != geteuid() || somebody_listens())
		return -EADDRINUSE;
	return unlink(path) ? -errno : 0;
}

static int bind_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	mode_t old = umask(077);
	int err = 0;

	if (fd < 0 || bind(fd, (struct sockaddr *)&address.socket, sizeof(address.socket)) ||
	    lstat(address.socket.sun_path, &bound) || listen(fd, SOMAXCONN))
		err = -errno;
	umask(old);
	if (!err)
		return fd;
	if (fd >= 0)
		close(fd);
	return err;
}

int xd_listen(void)
{
	int err = xm_address_find(&address);

	if (!err)
		err = make_folder();
	if (!err)
		err = take_lock();
	if (!err)
		err = remove_stale();
	return err ? err : bind_socket();
}

/* ---- bound anew ---- */

static bool is_bound(void)
{
	struct stat info;

	return !lstat(address.socket.sun_path, &info) && info.st_dev == bound.st_dev &&
	       info.st_ino == bound.st_ino;
}

/*
 * A folder that XMEM_SOCKET names is not watched. A script that removes its temporary folder would
 * otherwise find a new socket in it.
 */
int xd_listen_watch(void)
{
	int fd;

	if (lock_fd < 0 || !address.own_folder)
		return -1;
	fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (fd < 0)
		return -1;
	inotify_add_watch(fd, address.socket.sun_path, IN_ATTRIB | IN_MOVE_SELF);
	inotify_add_watch(fd, address.folder, IN_MOVE_SELF);
	return fd;
}

/* The lock may have been removed together with the socket. */
static int lock_anew(void)
{
	char path[XM_ADDRESS_BYTES + 8];

	lock_path(path, sizeof(path));
	if (lock_fd >= 0 && still_named(lock_fd, path))
		return 0;
	if (lock_fd >= 0)
		close(lock_fd);
	lock_fd = -1;
	return take_lock();
}

int xd_listen_anew(void)
{
	int err;

	if (is_bound())
		return -EEXIST;
	err = make_folder();
	if (!err)
		err = lock_anew();
	if (!err)
		err = remove_stale();
	return err ? err : bind_socket();
}

int xd_listen_lock(void)
{
	return lock_fd;
}

void xd_listen_end(void)
{
	char path[XM_ADDRESS_BYTES + 8];

	if (lock_fd < 0)
		return;
	/* A service manager may have put its own socket there. */
	if (is_bound())
		unlink(address.socket.sun_path);
	lock_path(path, sizeof(path));
	if (still_named(lock_fd, path))
		unlink(path);
}
