/* SPDX-License-Identifier: MIT */
/* Connecting to xmemd, and starting it if it does not run: start.c. */
#ifndef XMEM_DAEMON_START_H
#define XMEM_DAEMON_START_H

#include <stdbool.h>

/*
 * Connect to the daemon of this user. Returns a socket, or -errno. -ENODEV: there is no daemon, and
 * it is not to be started (@start is false) or cannot be; -EPERM: a program of another user has its
 * address.
 */
int xl_daemon_connect(bool start);

/* A message for the thread's last failure of xl_daemon_connect, or NULL. */
const char *xl_daemon_why(void);

#endif
