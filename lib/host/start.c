// SPDX-License-Identifier: MIT
/*
 * Finding xmemd, starting it if nobody listens, and connecting to it.
 *
 * The daemon binds its address itself and then detaches, so that no process of the user has
 * the listening socket: a copy of it in a forked child would take connections and never
 * answer. If several daemons are started at once, one gets the address; the others see that
 * and end, and the processes that started them connect to the one.
 */
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/files.h"
#include "lib/host/address.h"
#include "lib/host/start.h"
#include "lib/host/wire.h"

#define MAX_TRIES	40	/* some 2 seconds in all */

extern char **environ;

/* Why the thread's last connect failed, if there is more to say than an error. */
static __thread char why[320] __attribute__((tls_model("initial-exec")));

/* ---- where it is ---- */

/* The file @name beside @file (a path), into @ret. Is it there and may be run? */
static bool beside(const char *file, const char *name, char *ret, size_t bytes)
{
	const char *slash = file ? strrchr(file, '/') : NULL;
	int length;

	if (!slash)
		return false;
	length = snprintf(ret, bytes, "%.*s%s", (int)(slash + 1 - file), file, name);
	return length > 0 && (size_t)length < bytes && !access(ret, X_OK);
}

/* The shared library's own file. NULL: the library is linked into the program. */
static const char *own_file(void)
{
	struct link_map *map = NULL;
	Dl_info info;

	if (!dladdr1((void *)xl_daemon_connect, &info, (void **)&map, RTLD_DL_LINKMAP) || !map)
		return NULL;
	/* It is empty for the program itself, and relative where LD_LIBRARY_PATH is. */
	return *map->l_name == '/' ? map->l_name : NULL;
}

/* Into @path, PATH_MAX bytes. 0, or -ENODEV: there is none, or it is not wanted. */
static int find_daemon(char *path)
{
	const char *given = getenv("XMEM_DAEMON");
	char self[PATH_MAX];
	ssize_t length;

	/* A caller with less rights than this program decides nothing about what is started. */
	if (getauxval(AT_SECURE))
		return beside(XMEM_LIBEXECDIR "/", "xmemd", path, PATH_MAX) ? 0 : -ENODEV;
	if (given && *given) {
		if (!strcmp(given, "none"))
			return -ENODEV;
		return (size_t)snprintf(path, PATH_MAX, "%s", given) < PATH_MAX ? 0 : -ENODEV;
	}
	/*
	 * From the library's folder the path may lead upwards, so that an installed tree can be
	 * moved. From a program's it must not: above that may be a folder like /tmp.
	 */
	if (beside(own_file(), "xmemd", path, PATH_MAX) ||
	    beside(own_file(), XMEM_LIBEXEC_FROM_LIB "/xmemd", path, PATH_MAX))
		return 0;
	length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	self[length > 0 ? length : 0] = '\0';
	if (beside(self, "xmemd", path, PATH_MAX) ||
	    beside(XMEM_LIBEXECDIR "/", "xmemd", path, PATH_MAX))
		return 0;
	return -ENODEV;
}

/* ---- starting it ---- */

/* Start it with default signal handling: it must not inherit what this process ignores. */
static int spawn(const char *path, pid_t *ret_pid)
{
	char *const argv[] = { (char *)path, "--daemon", NULL }, *const nothing[] = { NULL };
	posix_spawnattr_t how;
	sigset_t none, all;
	int err;

	err = posix_spawnattr_init(&how);
	if (err)
		return -err;
	sigemptyset(&none);
	sigfillset(&all);
	posix_spawnattr_setsigmask(&how, &none);
	posix_spawnattr_setsigdefault(&how, &all);
	posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	err = posix_spawn(ret_pid, path, NULL, &how, argv,
			  getauxval(AT_SECURE) ? nothing : environ);
	posix_spawnattr_destroy(&how);
	return err == ENOENT || err == EACCES || err == ENOEXEC ? -ENODEV : -err;
}

/* Say why a daemon has ended with that status instead of listening, if it is known. */
static void say_status(const struct xm_address *address, int status)
{
	if (status == XM_EXIT_LIMITS)
		snprintf(why, sizeof(why), "xmemd does not serve others with the hard limits of "
			 "this process (ulimit -H: CPU time, open files, file size, memory); raise "
			 "them, or have systemd start it (xmemd@.socket)");
	else if (status > XM_EXIT_LISTEN)
		snprintf(why, sizeof(why), "xmemd cannot listen in the folder %s: %s; make that a "
			 "folder in which this user can write, or set XMEM_SOCKET to the path of a "
			 "socket in another one", address->folder,
			 strerror(status - XM_EXIT_LISTEN));
}

/* Start a daemon. When its first process has ended, it listens, or another daemon does. */
static int start_daemon(const struct xm_address *address)
{
	char path[PATH_MAX];
	int err, status;
	pid_t pid, got;

	err = find_daemon(path);
	if (!err)
		err = spawn(path, &pid);
	if (err)
		return err;
	do
		got = waitpid(pid, &status, 0);
	while (got < 0 && errno == EINTR);
	/* ECHILD: this program reaps all children itself, and connecting will tell. */
	if (got == pid && WIFEXITED(status))
		say_status(address, WEXITSTATUS(status));
	return got == pid && status ? -ENODEV : 0;
}

/* ---- reaching it ---- */

/*
 * A path of XMEM_SOCKET may be in a folder of others, so check that the daemon is this user's. In
 * this user's own folder it is, though root's service manager may listen for it.
 */
static int check_peer(const struct xm_address *address, int file)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);

	if (address->own_folder)
		return 0;
	if (getsockopt(file, SOL_SOCKET, SO_PEERCRED, &peer, &length))
		return -errno;
	return peer.uid == geteuid() ? 0 : -EPERM;
}

/* Is there something at the path that is no socket? No daemon removes it. */
static bool is_other_file(const struct xm_address *address)
{
	struct stat info;

	return !lstat(address->socket.sun_path, &info) && !S_ISSOCK(info.st_mode);
}

/* -ECONNREFUSED: nobody listens there. */
static int connect_once(struct xm_address *address)
{
	int file, err = xm_address_check(address);

	if (err)
		return err == -ENOENT ? -ECONNREFUSED : err;
	xl_fork_lock();
	file = xl_file_note(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
	xl_fork_unlock();
	if (file < 0)
		return -errno;
	/* This sleeps only if thousands wait already for a daemon that is stopped. */
	err = connect(file, (const struct sockaddr *)&address->socket, sizeof(address->socket)) ?
	      -errno : check_peer(address, file);
	if (!err)
		return file;
	xl_file_close(file);
	if (err == -ECONNREFUSED && is_other_file(address))
		return -ENOTSOCK;
	return err == -ENOENT ? -ECONNREFUSED : err;
}

static int connect_or_start(struct xm_address *address, bool start)
{
	int try, err;

	for (try = 0; try < MAX_TRIES; try++) {
		struct timespec pause = { 0, (try < 6 ? 1 << try : 64) * 1000000L };

		err = connect_once(address);
		if (err != -ECONNREFUSED)
			return err;
		if (!start)
			return -ENODEV;
		if (try) /* another one is about to listen, or to end */
			nanosleep(&pause, NULL);
		err = start_daemon(address);
		if (err)
			return err;
	}
	return -ENODEV;
}

/* Can no daemon ever listen there, whoever starts it? Say why. */
static bool is_no_place(const struct xm_address *address, int err)
{
	if (err == -ENOTSOCK)
		snprintf(why, sizeof(why), "%s is no socket; set XMEM_SOCKET to the path of one, "
			 "or of nothing yet", address->socket.sun_path);
	else if (err == -ENOTDIR || err == -ELOOP)
		snprintf(why, sizeof(why), "%s, in which xmemd is to listen, is no folder: %s; set "
			 "XMEM_SOCKET to the path of a socket in one", address->folder,
			 strerror(-err));
	else
		return false;
	return true;
}

int xl_daemon_connect(bool start)
{
	struct xm_address address;
	int err;

	*why = '\0';
	err = xm_address_find(&address);
	if (!err)
		err = connect_or_start(&address, start);
	if (err < 0 && *address.why)
		snprintf(why, sizeof(why), "%s", address.why);
	else if (is_no_place(&address, err))
		err = -ENODEV;
	else if (err == -EPERM || err == -EACCES)
		snprintf(why, sizeof(why), "%s is another user's; end that program, or set "
			 "XMEM_SOCKET to another name", address.socket.sun_path);
	return err;
}

const char *xl_daemon_why(void)
{
	return *why ? why : NULL;
}
