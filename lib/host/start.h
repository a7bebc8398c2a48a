/* SPDX-License-Identifier: MIT */
/* Reaching xmemd, which is started if nobody listens; see start.c. */
#ifndef XMEM_DAEMON_START_H
#define XMEM_DAEMON_START_H

/*
 * A socket connected to the daemon of this user, or -errno. -ENODEV: there is
 * none and it cannot be started; -EPERM: somebody else sits at its address.
 */
int xl_daemon_connect(void);

#endif
