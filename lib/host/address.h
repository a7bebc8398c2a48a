/* SPDX-License-Identifier: MIT */
/* Where xmemd listens: address.c. The library and the daemon compile it. */
#ifndef XMEM_ADDRESS_H
#define XMEM_ADDRESS_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>

#define XM_ADDRESS_BYTES	sizeof(((struct sockaddr_un *)0)->sun_path)

/* A user's folder, with the user's number: the first one if it is there, else the second one. */
#define XM_FOLDER_RUN		"/run/xmem-%u"
#define XM_FOLDER_TMP		"/tmp/xmem-%u"

struct xm_address {
	struct sockaddr_un socket;
	char folder[XM_ADDRESS_BYTES];	/* of the socket, and of its lock */
	const char *name;		/* in the folder; points into .socket */
	bool own_folder;		/* the folder is xmem's own, and so it is checked */
	char why[320];			/* what is wrong, after an error */
};

/*
 * Fill *ret: XMEM_SOCKET as a path if it has a '/', else as a name in this user's folder.
 * 0; -ENAMETOOLONG; -EINVAL: XMEM_SOCKET names no file.
 */
int xm_address_find(struct xm_address *ret);

/*
 * Can nobody else put anything into the folder? It is a directory, no link, this user's, and
 * closed to others. 0; -ENOENT: it is not there; -EPERM or another -errno.
 */
int xm_address_check(struct xm_address *address);

#endif
