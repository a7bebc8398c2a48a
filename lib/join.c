// SPDX-License-Identifier: MIT
/*
 * Joining a pool: the caller's options are checked, a host is reached, and a refusal
 * is put into words.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "join.h"

const char *xl_join_hint(int err)
{
	switch (-err) {
	case EINVAL:
		return "a name has at most 31 of [A-Za-z0-9._-], a ring 4 to 4096 entries, a power "
		       "of two";
	case ENOENT:	return "there is no such pool, and XMEM_OPEN_EXISTING was asked for";
	case EEXIST:	return "there is such a pool, and XMEM_OPEN_EXCLUSIVE was asked for";
	case EPERM:
		return "another user made it (XMEM_OPEN_FOREIGN joins it all the same), or runs "
		       "the daemon";
	case EUSERS:	return "the pool has as many clients as it can have";
	case EDQUOT:
		return "the host has as many pools, or clients of this process, as it may have";
	case ENODEV:
		return "neither /dev/xmem nor xmemd can be reached; see XMEM_BACKEND and "
		       "XMEM_DAEMON";
	case EPROTONOSUPPORT: return "the host speaks another version of xmem";
	case EACCES:	return "no permission for /dev/xmem: is the user in group xmem?";
	case EBADF:	return "not a pool's file";
	}
	return strerror(-err);
}

static int open_with(struct xmem_link *link, const struct xmem_backend *backend)
{
	int err;

	*link = (struct xmem_link){ .backend = backend };
	err = backend->open(link);
	if (err)
		backend->close(link);
	return err;
}

static int open_link(struct xmem_link *link)
{
	const char *insist = getenv("XMEM_BACKEND");
	int err;

	if (insist && !strcmp(insist, "daemon"))
		return open_with(link, &xmem_backend_daemon);
	err = open_with(link, &xmem_backend_kmod);
	if (err != -ENODEV || (insist && *insist))
		return err;
	return open_with(link, &xmem_backend_daemon);
}

int xl_check_environment(void)
{
	const char *insist = getenv("XMEM_BACKEND");

	if (insist && *insist && strcmp(insist, "kernel") && strcmp(insist, "daemon"))
		return xl_fail(EINVAL, "XMEM_BACKEND is kernel or daemon, not '%s'", insist);
	return 0;
}

/* A daemon about to leave for lack of work may drop a newcomer: knock again. */
int xl_join(struct xmem_link *link, struct xmem_join_request *request)
{
	struct xmem_join_request first = *request;
	int tries, err = -ENODEV;

	for (tries = 0; tries < 5; tries++) {
		*request = first;
		err = open_link(link);
		if (err)
			return err;
		err = link->backend->request(link, XMEM_IOC_JOIN, request);
		if (!err) {
			link->join = *request;
			return 0;
		}
		link->backend->close(link);
		if (err != -ENOTCONN)
			break;
	}
	return err;
}

int xl_join_options(const struct xmem_pool_options *options, struct xmem_join_request *request)
{
	struct xmem_pool_options o = { 0 };
	u32 i;

	if (options) {
		if (options->size != sizeof(o))
			return xl_fail(EINVAL, "xmem_pool_options: size is %zu, not %zu",
				       options->size, sizeof(o));
		o = *options;
	}
	if (o.flags &
	    ~(XMEM_OPEN_WRITER | XMEM_OPEN_EXISTING | XMEM_OPEN_EXCLUSIVE | XMEM_OPEN_FOREIGN))
		return xl_fail(EINVAL, "xmem_pool_options: unknown flags 0x%x", o.flags);
	if (o.wait_bound_ns < 0 || (o.wait_bound_ns && !(o.flags & XMEM_OPEN_WRITER)))
		return xl_fail(EINVAL,
			       "xmem_pool_options: wait_bound_ns is a writer's, and not negative");
	request->flags |= (o.flags & XMEM_OPEN_EXISTING ? XMEM_JOIN_EXISTING : 0) |
			  (o.flags & XMEM_OPEN_EXCLUSIVE ? XMEM_JOIN_EXCLUSIVE : 0) |
			  (o.flags & XMEM_OPEN_FOREIGN ? XMEM_JOIN_FOREIGN : 0);
	request->role = o.flags & XMEM_OPEN_WRITER ? XMEM_ROLE_WRITER : XMEM_ROLE_READER;
	request->slots = o.slots;
	request->clients = o.clients;
	request->ring_entries = o.ring_entries;
	request->wait_bound_ns = o.wait_bound_ns;
	snprintf((char *)request->label, sizeof(request->label), "%s",
		 o.label ? o.label : program_invocation_short_name);
	for (i = 0; request->label[i]; i++) {
		if (request->label[i] >= ' ' && request->label[i] <= '~')
			continue;
		if (o.label)
			return xl_fail(
				EINVAL,
				"xmem_pool_options: a label has printable ASCII characters only");
		request->label[i] = '_';	/* a program may be called anything */
	}
	return 0;
}
