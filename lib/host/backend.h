/* SPDX-License-Identifier: MIT */
/*
 * How the library reaches a host: two back ends, one table each.
 *
 *   kmod.c     ioctl and mmap of /dev/xmem
 *   daemon.c   datagrams to xmemd, one memfd for all pages, futexes
 *
 * Differences that a user can notice: docs/design.md, "Two hosts". All functions return 0 or
 * a negative errno, and change nothing when they fail. Only request may be called by several
 * threads at once.
 */
#ifndef XMEM_BACKEND_H
#define XMEM_BACKEND_H

#include "core/protocol.h"

struct xmem_backend;

/* One client's connection to its host. Zeroed by the caller, then backend->open. */
struct xmem_link {
	const struct xmem_backend *backend;
	int file;			/* of /dev/xmem, then the client's; or the socket */
	struct xm_map *map;		/* the pool's pages; set by backend->map */
	struct xmem_join_request join;		/* as answered */
	struct xmem_quota_request refused;	/* why the host takes no request; size 0: it does */
	bool stopped;			/* the host does not answer: close does not wait for it */
	void *private;			/* the back end's own */
};

struct xmem_backend {
	const char *name;		/* "kernel", "daemon" */
	bool on_words;			/* threads sleep on the words themselves, not in poll() */

	/*
	 * post: link->file is open and has not joined; query and pools may be asked of it.
	 * @start: start a daemon if none runs. -ENODEV: there is no such host here.
	 */
	int (*open)(struct xmem_link *link, bool start);

	/*
	 * One of XMEM_IOC_* with its struct, whose size field is set. Descriptors in
	 * structs that go in stay the caller's; those that come out become the caller's.
	 * pre: open. The kernel sleeps only for XMEM_IOC_WAIT (interruptible), and RESOLVE (about
	 * 1 ms). The daemon may be stopped: then a signal ends the others too, with -EINTR.
	 */
	int (*request)(struct xmem_link *link, unsigned int request, void *argument);

	/*
	 * The same, but not for longer than until @deadline_ns of CLOCK_MONOTONIC (-ETIMEDOUT).
	 * What was given up, so or by a signal, is undone if the host serves it later.
	 */
	int (*request_until)(struct xmem_link *link, unsigned int request, void *argument,
			     u64 deadline_ns);

	/*
	 * A request of a slot, an unsubscribe or a wake, whose result nobody wants. It waits for
	 * nothing, is never lost, and the host gets it before later requests of this link.
	 */
	void (*post)(struct xmem_link *link, unsigned int request, const void *argument);

	/*
	 * Wait until the host has served what was posted, but no longer than @patience_ns for one
	 * that does nothing: nobody may depend on it. NULL: a post has been served when it returns.
	 */
	void (*settle)(struct xmem_link *link, u64 patience_ns);

	/*
	 * Send what could not be posted before, and undo what the host has served since, of
	 * requests that were given up. It waits for nothing, and returns how many answers have
	 * come so far. NULL: the host serves none of them.
	 */
	u64 (*catch_up)(struct xmem_link *link);

	/*
	 * pre: joined, link->join as answered. post: *map is filled, all of it is readable, this
	 * client's area is writable; link->map = map.
	 */
	int (*map)(struct xmem_link *link, struct xm_map *map);

	/*
	 * pre: mapped, the group is this client's. post: map->group[group] is writable. May be
	 * called again for the same group.
	 */
	int (*map_group)(struct xmem_link *link, u32 group);

	/*
	 * Make the host look at its descriptors that are polled. It never waits, and any
	 * thread may call it. NULL: this host keeps them true without being told.
	 */
	void (*poke)(struct xmem_link *link);

	/* End the client: unmap all, close the file. Also called after a failed open or map. */
	void (*close)(struct xmem_link *link);

	/* In a forked child: drop what it inherited, without telling the host. */
	void (*forked)(struct xmem_link *link);
};

extern const struct xmem_backend xmem_backend_kmod;
extern const struct xmem_backend xmem_backend_daemon;

#endif
