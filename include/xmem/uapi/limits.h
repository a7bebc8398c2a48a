/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/* The limits of the layout. A part of xmem/uapi.h. */
#ifndef XMEM_UAPI_LIMITS_H
#define XMEM_UAPI_LIMITS_H

#include <linux/types.h>

/* A pool's own limits are in its header. */
#define XMEM_MAX_SLOTS		65536	/* a token has 16 bits for the slot */
#define XMEM_MAX_CLIENTS	256	/* XMEM_CLIENT_WORDS bitmaps of 64 */
#define XMEM_CLIENT_WORDS	4
#define XMEM_MAX_RING		4096	/* entries; a power of two, at least 4 */
#define XMEM_GROUP_SLOTS	64	/* slots that share pages, and so an owner */
#define XMEM_MAX_GROUPS		(XMEM_MAX_SLOTS / XMEM_GROUP_SLOTS)
#define XMEM_NAME_MAX		128	/* characters of a pool's name */
#define XMEM_NAME_BYTES		136	/* a pool's name, and NULs up to a multiple of 8 */
#define XMEM_LABEL_BYTES	16	/* a client's label with its NUL */
#define XMEM_MAX_DEVICES	16	/* GPUs of one pool */
#define XMEM_UUID_BYTES		16	/* of a GPU, as its driver gives it */
#define XMEM_HANDLE_BYTES	64	/* a name of memory of a GPU */
#define XMEM_MAX_DEVICE_BYTES (1ULL << 48)	/* of one allocation */

#endif
