// SPDX-License-Identifier: MIT
/*
 * Finds xmemd, starts it if it does not run, and connects to it.
 *
 * The daemon binds its address itself, and then detaches. So no process of the user has the
 * listening socket: a copy of it in a forked child would accept connections and never answer. If
 * several daemons are started at once, one gets the address. The others notice this and end, and
 * the processes that started them connect to the first.
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

/*
 * The reason for the failure of the thread's last connect, if there is more to say than an errno.
 */
static __thread char why[320] __attribute__((tls_model("initial-exec")));

/* ---- where it is ---- */

/*
 * Put the path of the file @name beside the file @file into @ret. Is it there, and may it be run?
 */
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
	/* The name is empty for the program itself, and relative if LD_LIBRARY_PATH is. */
	return *map->l_name == '/' ? map->l_name : NULL;
}

/*
 * Find the path of xmemd; @path has PATH_MAX bytes. 0, or -ENODEV: there is none, or it is not
 * wanted.
 */
static int find_daemon(char *path)
{
	const char *given = getenv("XMEM_DAEMON");
	char self[PATH_MAX];
	ssize_t length;

	/*
	 * A caller with fewer rights than this program must not choose the program that is started.
	 */
	if (getauxval(AT_SECURE))
		return beside(XMEM_LIBEXECDIR "/", "xmemd", path, PATH_MAX) ? 0 : -ENODEV;
	if (given && *given) {
		if (!strcmp(given, "none"))
			return -ENODEV;
		return (size_t)snprintf(path, PATH_MAX, "%s", given) < PATH_MAX ? 0 : -ENODEV;
	}
	/*
	 * The path may lead upwards from the library's folder, so that an installed tree can be
	 * moved. From a program's folder it must not: the folder above may be one like /tmp.
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

/* Start it with default signal handling, so that it does not inherit ignored signals. */
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

/* Describe why a daemon ended with @status instead of listening, if the status says it. */
static void explain_status(const struct xm_address *address, int status)
{
	if (status == XM_EXIT_LIMITS)
		snprintf(why, sizeof(why), "xmemd cannot serve other processes with the hard "
			 "limits of this process (ulimit -H: CPU time, open files, file size, "
			 "memory); raise them, or have systemd start it (xmemd@.socket)");
	else if (status > XM_EXIT_LISTEN)
		snprintf(why, sizeof(why), "xmemd cannot listen in the folder %s: %s; make that a "
			 "folder in which this user can write, or set XMEM_SOCKET to the path of a "
			 "socket in another one", address->folder,
			 strerror(status - XM_EXIT_LISTEN));
}

/* Start a daemon. When its first process has ended, this daemon listens, or another one does. */
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
	/*
	 * ECHILD: this program reaps all children itself. Then the connect shows whether it runs.
	 */
	if (got == pid && WIFEXITED(status))
		explain_status(address, WEXITSTATUS(status));
	return got == pid && status ? -ENODEV : 0;
}

/* ---- reaching it ---- */

/*
 * XMEM_SOCKET may be a path in a folder of other users, so check that the daemon is this user's. In
 * the user's own folder it is, although root's service manager may listen for it.
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

/* Is there a file at the path that is no socket? No daemon removes it. */
static bool is_other_file(const struct xm_address *address)
{
	struct stat info;

	return !lstat(address->socket.sun_path, &info) && !S_ISSOCK(info.st_mode);
}

/* -ECONNREFUSED: no process listens there. */
static int connect_once(struct xm_address *address)
{
	int file, err = xm_address_check(address);

	if (err)
		return err == -ENOENT ? -ECONNREFUSED : err;
	xl_fork_lock();
	file = xl_file_record(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
	xl_fork_unlock();
	if (file < 0)
		return -errno;
	/* This sleeps only if thousands of processes already wait for a daemon that is stopped. */
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
		if (try) /* another daemon is about to listen, or to end */
			nanosleep(&pause, NULL);
		err = start_daemon(address);
		if (err)
			return err;
	}
	return -ENODEV;
}

/* Is it impossible for any daemon to listen there? Describe the reason. */
static bool is_no_place(const struct xm_address *address, int err)
{
	if (err == -ENOTSOCK)
		snprintf(why, sizeof(why), "%s is no socket; set XMEM_SOCKET to the path of "
			 "a socket, or to a path at which there is nothing yet",
			 address->socket.sun_path);
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
		snprintf(why, sizeof(why), "%s belongs to a program of another user; end that "
			 "program, or set XMEM_SOCKET to another name", address.socket.sun_path);
	return err;
}

const char *xl_daemon_why(void)
{
	return *why ? why : NULL;
}
