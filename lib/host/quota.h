/* SPDX-License-Identifier: MIT */
/* Which limit of the host was reached, in words: limits.c. */
#ifndef XMEM_LIMITS_H
#define XMEM_LIMITS_H

#include "lib/private.h"

#define XL_LIMIT_BYTES	400

/*
 * What is limited, such as "pools"; NULL: a newer host has a limit that this library does not
 * know. *ret_bytes: it is counted in bytes.
 */
const char *xl_limit_what(const struct xmem_quota_request *request, bool *ret_bytes);

/*
 * The limit because of which the host has last said EDQUOT to @link, in @space. NULL: it does not
 * say, or does not answer within a second. Another thread may have been refused since.
 */
const char *xl_limit_refused(const struct xmem_link *link, char space[XL_LIMIT_BYTES]);

/* Keep in link->refused what xl_limit_refused says, for when the link is closed. */
void xl_limit_note(struct xmem_link *link);

/* What the error of a request means, in words: that limit, if it is EDQUOT. */
const char *xl_host_error(const struct xmem_pool *pool, int err, char space[XL_LIMIT_BYTES]);

#endif
