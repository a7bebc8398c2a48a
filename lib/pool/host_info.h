/* SPDX-License-Identifier: MIT */
/* What is known of pools without joining them: host_info.c. */
#ifndef XMEM_HOST_INFO_H
#define XMEM_HOST_INFO_H

#include "lib/host/quota.h"
#include "lib/private.h"

/*
 * One request of the host that would be used, on a connection of its own. 0 or -errno; *link says
 * which host it is. A daemon that leaves just then is asked no more; if no other runs by then,
 * that is -ENODEV.
 */
int xl_ask_host(struct xmem_link *link, unsigned int request, void *argument);
/* Note what it means that it failed. Returns @err. */
int xl_ask_failed(const char *what, int err, const struct xmem_link *link);

/*
 * The pool that a join asks for by name, as it is now; false: there is none that the caller may
 * join. No error is noted.
 */
bool xl_pool_find(const struct xmem_join_request *join, struct xmem_pool_entry *ret);

#endif
