/* SPDX-License-Identifier: MIT */
/*
 * The library's own descriptors, which a forked child must not keep: a socket or file would keep
 * the parent's client alive, and a payload its memory. They are noted from the moment when they
 * are made until they are closed, and the child closes them. Between making and noting one no
 * thread may fork, hence the fork lock (fork.c):
 *
 *	xl_fork_lock();
 *	fd = xl_file_note(memfd_create(...));
 *	xl_fork_unlock();
 *	...
 *	xl_file_close(fd);
 */
#ifndef XMEM_FILES_H
#define XMEM_FILES_H

#include "lib/base/fork.h"

struct xm_datagram;

/* Note a descriptor; returns it. Nothing is done if it is negative. Under the fork lock. */
int xl_file_note(int fd);

/* It is the user's from now on. */
void xl_file_forget(int fd);

/* Close it, and keep errno. */
void xl_file_close(int fd);

/* As xm_wire_receive; the descriptors that come are noted. */
int xl_file_receive(int socket, struct xm_datagram *ret, int flags);

#endif
