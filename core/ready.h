/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the end of a client asks about ready words; host.h has what hosts ask. Pure.
 */
#ifndef XM_READY_H
#define XM_READY_H

#include "host.h"

/*
 * The client ends: its groups are late. true: there are slots in them that its GPU has yet to
 * write, and then their ready words, so the client is quarantined.
 */
bool xm_note_late(struct xm_host *host, u32 client);

/*
 * Its groups are late no more: its process has exited, or had nothing to write. Whoever waits for
 * one of its ready words goes on, and sees why.
 */
void xm_end_late(struct xm_host *host, u32 client);

#endif
