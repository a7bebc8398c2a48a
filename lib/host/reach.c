// SPDX-License-Identifier: MIT
/*
 * Chooses a host: the kernel if there is /dev/xmem, otherwise the daemon, unless XMEM_BACKEND
 * demands one of them. And messages for failures.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "lib/host/reach.h"
#include "lib/host/start.h"

/* The value of XMEM_BACKEND; NULL: it is not set. */
static const char *insisted(void)
{
	const char *backend = getenv("XMEM_BACKEND");

	return backend && *backend ? backend : NULL;
}

int xl_check_environment(void)
{
	const char *backend = insisted();

	if (backend && strcmp(backend, "kernel") && strcmp(backend, "daemon"))
		return xl_fail(EINVAL, "XMEM_BACKEND is kernel or daemon, not '%s'", backend);
	return 0;
}

static int open_with(struct xmem_link *link, const struct xmem_backend *backend, bool start)
{
	int err;

	*link = (struct xmem_link){ .backend = backend };
	err = backend->open(link, start);
	if (err)
		backend->close(link);
	return err;
}

int xl_reach(struct xmem_link *link, bool start)
{
	const char *backend = insisted();
	int err;

	if (backend && !strcmp(backend, "daemon"))
		return open_with(link, &xmem_backend_daemon, start);
	err = open_with(link, &xmem_backend_kmod, start);
	if (err != -ENODEV || backend)
		return err;
	return open_with(link, &xmem_backend_daemon, start);
}

const char *xl_device(void)
{
	const char *path = secure_getenv("XMEM_DEVICE");

	return path && *path ? path : "/dev/xmem";
}

/* The value of XMEM_DAEMON; NULL: it is not set. */
static const char *daemon_set(void)
{
	const char *path = secure_getenv("XMEM_DAEMON");

	return path && *path ? path : NULL;
}

#define WHY_BYTES	150

/* Why can xmemd not be started, and what can the user do? */
static const char *no_start(char space[WHY_BYTES])
{
	const char *path = daemon_set();

	if (!path && getauxval(AT_SECURE))
		return "cannot be started; install it, because a program with more rights than "
		       "its caller starts no other";
	if (!path && access("/proc/self/exe", F_OK))
		return "cannot be found without /proc; mount that, or set XMEM_DAEMON to its path";
	if (!path)
		return "cannot be started; install it, or set XMEM_DAEMON to its path";
	if (!strcmp(path, "none"))
		return "is not started, which XMEM_DAEMON=none forbids; start it, or unset "
		       "XMEM_DAEMON";
	snprintf(space, WHY_BYTES,
		 "cannot be started: XMEM_DAEMON=%.60s is no xmemd that can run; correct it, "
		 "or unset it",
		 path);
	return space;
}

static const char *no_host(const struct xmem_link *link, char space[XL_HINT_BYTES])
{
	char why[WHY_BYTES];

	if (link->backend == &xmem_backend_kmod)
		snprintf(space, XL_HINT_BYTES,
			 "there is no device %.60s, on which XMEM_BACKEND=kernel insists; load the "
			 "module xmem",
			 xl_device());
	else if (insisted())
		snprintf(space, XL_HINT_BYTES,
			 "xmemd, on which XMEM_BACKEND=daemon insists, does not run and %s",
			 no_start(why));
	else
		snprintf(space, XL_HINT_BYTES,
			 "there is no device %.60s (load the module xmem), and the daemon xmemd "
			 "does not run and %s",
			 xl_device(), no_start(why));
	return space;
}

const char *xl_nothing_runs(const struct xmem_link *link, char space[XL_HINT_BYTES])
{
	if (link->backend == &xmem_backend_kmod)
		snprintf(space, XL_HINT_BYTES, "there is no device %.60s", xl_device());
	else if (insisted())
		return "there is no daemon of this user";
	else
		snprintf(space, XL_HINT_BYTES,
			 "there is neither a device %.60s nor a daemon of this user", xl_device());
	return space;
}

static const char *no_access(char space[XL_HINT_BYTES])
{
	snprintf(space, XL_HINT_BYTES,
		 "this user may not open %.60s; add it to the device's group", xl_device());
	return space;
}

static const char *no_device(char space[XL_HINT_BYTES])
{
	snprintf(space, XL_HINT_BYTES,
		 "%.60s is no xmem device that knows this request; correct XMEM_DEVICE, or "
		 "update the module xmem",
		 xl_device());
	return space;
}

const char *xl_reach_hint(int err, const struct xmem_link *link, char space[XL_HINT_BYTES])
{
	bool kernel = link->backend == &xmem_backend_kmod;

	if (!kernel && xl_daemon_why())
		return xl_daemon_why();
	switch (-err) {
	case ENODEV:
		return no_host(link, space);
	case EACCES:
		return kernel ? no_access(space) : NULL;
	case EDQUOT:
		return "a limit of the host is reached (xmem limits lists them)";
	case EINTR:
		return "a signal handler ran before the host had answered";
	case ENOTTY:
		return kernel ? no_device(space) : NULL;
	case ENOTCONN:
		return "the host has gone; try again";
	case EPROTONOSUPPORT:
		return "the host speaks another version of xmem's protocol; update the older one";
	}
	return NULL;
}
