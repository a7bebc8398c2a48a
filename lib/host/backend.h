/* SPDX-License-Identifier: MIT */
/*
 * How the library reaches a host. There are two back ends, and each has a table of functions.
 *
 *   kmod.c     ioctl and mmap of /dev/xmem
 *   daemon.c   datagrams to xmemd, one memfd for all pages, futexes
 *
 * docs/design.md, "Two hosts", has the differences that a user can notice. All functions return 0
 * or a negative errno, and change nothing when they fail. Threads may call request, request_until,
 * post, settle, catch_up and poke of one link at once, but no other function.
 */
#ifndef XMEM_BACKEND_H
#define XMEM_BACKEND_H

#include "core/protocol.h"

struct xmem_backend;

/* One client's connection to its host. The caller fills it with zeros, then calls backend->open. */
struct xmem_link {
	const struct xmem_backend *backend;
	int file;			/* /dev/xmem, and after the join the client's file; or
					 * the socket */
	struct xm_map *map;		/* the pool's pages; set by backend->map */
	struct xmem_join_request join;		/* as answered */
	struct xmem_quota_request refused;	/* why the host refuses all requests; size 0: it
						 * does not */
	bool stopped;			/* the host does not answer, so close does not wait for
					 * it */
	void *private;			/* of the back end */
};

struct xmem_backend {
	const char *name;		/* "kernel", "daemon" */
	bool on_words;			/* threads sleep on the words themselves, not in the host */

	/*
	 * post: link->file is open and has not joined; the requests query and pools work. @start:
	 * start a daemon if none runs. -ENODEV: there is no such host here.
	 */
	int (*open)(struct xmem_link *link, bool start);

	/*
	 * Make the request XMEM_IOC_* with its struct, whose size field is set. Descriptors in the
	 * struct that the host reads stay the caller's; descriptors that the host writes become the
	 * caller's. pre: open. The kernel sleeps only for XMEM_OP_WAIT, which a signal ends, and
	 * for RESOLVE, about 1 ms. The daemon may be stopped; then a signal ends other requests
	 * too, with -EINTR.
	 */
	int (*request)(struct xmem_link *link, unsigned int request, void *argument);

	/*
	 * Like request, but at @deadline_ns of CLOCK_MONOTONIC it gives up with -ETIMEDOUT. If the
	 * host serves a request later that was given up because of the deadline or a signal, it is
	 * undone.
	 */
	int (*request_until)(struct xmem_link *link, unsigned int request, void *argument,
			     u64 deadline_ns);

	/*
	 * Send a request of a slot, an unsubscribe or a wake whose result does not matter. It does
	 * not wait, the request is never lost, and the host gets it before later requests of this
	 * link.
	 */
	void (*post)(struct xmem_link *link, unsigned int request, const void *argument);

	/*
	 * Wait until the host has served what was posted. If the host does nothing for
	 * @patience_ns, give up; so no caller may depend on the result. NULL: post returns only
	 * after the host has served it.
	 */
	void (*drain)(struct xmem_link *link, u64 patience_ns);

	/*
	 * Send posts that could not be sent before. Undo given-up requests that the host has served
	 * since. It does not wait, and returns how many answers have come so far. NULL: the host
	 * serves no request that was given up.
	 */
	u64 (*catch_up)(struct xmem_link *link);

	/*
	 * pre: joined, link->join as answered. post: *map is filled, all of it is readable, this
	 * client's area is writable; link->map = map.
	 */
	int (*map)(struct xmem_link *link, struct xm_map *map);

	/*
	 * pre: mapped, the group is this client's. post: map->group[group] is writable. It may be
	 * called again for a group that is mapped.
	 */
	int (*map_group)(struct xmem_link *link, u32 group);

	/*
	 * Make the host check its polled descriptors. It never waits, and any thread may call it.
	 * NULL: this host keeps them up to date by itself.
	 */
	void (*poke)(struct xmem_link *link);

	/*
	 * End the client: unmap all pages, close the file. It is also called after a failed open or
	 * map.
	 */
	void (*close)(struct xmem_link *link);

	/* In a forked child: drop what the child inherited. The host does not notice. */
	void (*forked)(struct xmem_link *link);
};

extern const struct xmem_backend xmem_backend_kmod;
extern const struct xmem_backend xmem_backend_daemon;

#endif
