/* SPDX-License-Identifier: MIT */
/* Information about the host and its pools, without joining one: host_info.c. */
#ifndef XMEM_HOST_INFO_H
#define XMEM_HOST_INFO_H

#include "lib/host/quota.h"
#include "lib/private.h"

/*
 * Make one request to the host that would be used, on a connection of its own. 0 or -errno; *link
 * says which host it is. If a daemon ends at this moment, another one is asked; if none runs, the
 * result is -ENODEV.
 */
int xl_ask_host(struct xmem_link *link, unsigned int request, void *argument);
/* Fail with a message for the error of xl_ask_host. Returns @err. */
int xl_ask_failed(const char *what, int err, const struct xmem_link *link);

/*
 * Find the pool that a join names. false: there is none that the caller may join; no error is
 * noted.
 */
bool xl_pool_find(const struct xmem_join_request *join, struct xmem_pool_entry *ret);

#endif
