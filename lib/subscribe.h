/* SPDX-License-Identifier: MIT */
/* What receive.c needs of subscribe.c. */
#ifndef XMEM_SUBSCRIBE_H
#define XMEM_SUBSCRIBE_H

#include "private.h"

/*
 * The publisher has ended: find out whether the host has dropped the ring before all of it
 * was received, and count what is lost. Under the subscription's lock, before the host is
 * told.
 */
void xl_note_end(struct xmem_subscription *subscription);

/* Tell the host, once, that this subscription has ended; @wait for a moment until it knows. */
void xl_tell_unsubscribed(struct xmem_subscription *subscription, bool wait);

#endif
