/* SPDX-License-Identifier: MIT */
/*
 * The library's own descriptors. A forked child must not keep them: a socket or file would keep the
 * parent's client alive, and a payload would keep its memory. The library records each descriptor
 * when it makes it, until it closes it, and the child closes all recorded ones. No thread may fork
 * between making and recording a descriptor, so both happen under the fork lock (fork.c):
 *
 *	xl_fork_lock();
 *	fd = xl_file_record(memfd_create(...));
 *	xl_fork_unlock();
 *	...
 *	xl_file_close(fd);
 */
#ifndef XMEM_FILES_H
#define XMEM_FILES_H

#include "lib/base/fork.h"

struct xm_datagram;

/* Record a descriptor, and return it. A negative one is only returned. Under the fork lock. */
int xl_file_record(int fd);

/* The descriptor becomes the program's: forget it without closing it. */
void xl_file_forget(int fd);

/* Close the descriptor, and keep errno. */
void xl_file_close(int fd);

/* Like xm_wire_receive; it records the descriptors that come with the datagram. */
int xl_file_receive(int socket, struct xm_datagram *ret, int flags);

#endif
