/* SPDX-License-Identifier: MIT */
/* What receive.c needs of subscribe.c. */
#ifndef XMEM_SUBSCRIBE_H
#define XMEM_SUBSCRIBE_H

#include "private.h"

/* Tell the host, once, that this subscription has ended. */
void xl_tell_unsubscribed(struct xmem_subscription *subscription);

#endif
