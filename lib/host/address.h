/* SPDX-License-Identifier: MIT */
/* The address of xmemd: address.c. The library and the daemon compile it. */
#ifndef XMEM_ADDRESS_H
#define XMEM_ADDRESS_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>

#define XM_ADDRESS_BYTES	sizeof(((struct sockaddr_un *)0)->sun_path)

/* The folder of the user with that number: the first if it exists, otherwise the second. */
#define XM_FOLDER_RUN		"/run/xmem-%u"
#define XM_FOLDER_TMP		"/tmp/xmem-%u"

struct xm_address {
	struct sockaddr_un socket;
	char folder[XM_ADDRESS_BYTES];	/* of the socket and of its lock file */
	const char *name;		/* in the folder; points into .socket */
	bool own_folder;		/* the folder is xmem's own, so it is checked */
	char why[320];			/* what is wrong, after an error */
};

/*
 * Fill *ret. If XMEM_SOCKET has a '/', it is a path, otherwise a name in this user's folder.
 * Returns 0, -ENAMETOOLONG, or -EINVAL: XMEM_SOCKET names no file.
 */
int xm_address_find(struct xm_address *ret);

/*
 * Can only this user put files into the folder? It must be a directory and no link, and belong to
 * this user and be closed to others. 0; -ENOENT: there is none; -EPERM or another -errno.
 */
int xm_address_check(struct xm_address *address);

#endif
