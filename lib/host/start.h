/* SPDX-License-Identifier: MIT */
/* Connecting to xmemd, and starting it if nobody listens: start.c. */
#ifndef XMEM_DAEMON_START_H
#define XMEM_DAEMON_START_H

#include <stdbool.h>

/*
 * A socket connected to the daemon of this user, or -errno. -ENODEV: there is
 * none, and it is not to be started (@start is false) or cannot be; -EPERM: another
 * user's program has its address.
 */
int xl_daemon_connect(bool start);

/* More words for the thread's last error of it, or NULL. */
const char *xl_daemon_why(void);

#endif
