/* SPDX-License-Identifier: MIT */
/* Messages about limits of the host: quota.c. */
#ifndef XMEM_HOST_QUOTA_H
#define XMEM_HOST_QUOTA_H

#include "lib/private.h"

#define XL_LIMIT_BYTES	400

/*
 * The plural of the limited thing, "pools" for example. NULL: a newer host has a limit that this
 * library does not know. *ret_bytes: the limit is a number of bytes.
 */
const char *xl_limit_what(const struct xmem_quota_request *request, bool *ret_bytes);

/*
 * Describe in @space the limit because of which the host last refused a request of @link with
 * EDQUOT. NULL: the host does not say, or does not answer within a second. Another thread may have
 * been refused since.
 */
const char *xl_limit_refused(const struct xmem_link *link, char space[XL_LIMIT_BYTES]);

/*
 * Keep this limit in link->refused, so that xl_limit_refused can describe it when the link is
 * closed.
 */
void xl_limit_save(struct xmem_link *link);

/* A message for the error of a request. For EDQUOT it names the limit. */
const char *xl_host_error(const struct xmem_pool *pool, int err, char space[XL_LIMIT_BYTES]);

#endif
