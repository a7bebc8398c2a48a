/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Ready words at the end of a client; host.h has the functions for hosts. Pure. */
#ifndef XM_READY_H
#define XM_READY_H

#include "host.h"

/*
 * The client ends: its groups become late. true: the GPU has yet to write contents of their slots
 * and then the ready words, so the client is quarantined.
 */
bool xm_mark_late(struct xm_host *host, u32 client);

/*
 * The groups of the client are late no longer: its process has exited, or had nothing to write.
 * Clients that wait for one of these ready words go on, and see the reason.
 */
void xm_clear_late(struct xm_host *host, u32 client);

#endif
