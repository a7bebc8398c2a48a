/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * xmem: the interface between the host (xmem.ko or xmemd) and its clients.
 *
 * It describes first the pages, which every client maps and in which everything is
 * counted, then the requests. docs/design.md has the words and the promises, and
 * core/protocol.h the steps.
 *
 * Change log of the ABI:
 *   1  first light: pools, CPU payloads, rings, sleeping, end of a client
 *   2  structs that can grow: strides and feature words in the header, flags in every
 *      request, requests of any length from their minimum on, query, pools
 *   3  descriptors to poll, demotions and what an owner wants in its area, numbers of
 *      datagrams, whether the host lives
 *   4  claims, forwarding, addressed publications, writing in place, kinds of payload
 *   5  memory of GPUs: the device table, CUDA payloads, who has them open, ready words
 *   6  pids and uids are asked for, and not in the kernel's pages; processes in the rows; who may
 *      join: owner, group and mode of a pool, names of users, roles of descriptors; ids of
 *      payloads have 64 bits; clients can be ended by others, and pools closed to joins
 *   7  names of pools have up to 128 characters, and '/' among them
 */
#ifndef XMEM_UAPI_H
#define XMEM_UAPI_H

#include <linux/ioctl.h>
#include <linux/types.h>

#include "metadata.h"
#include "uapi/limits.h"
#include "uapi/pages.h"
#include "uapi/requests.h"
#include "uapi/join.h"
#include "uapi/slots.h"
#include "uapi/waits.h"
#include "uapi/clients.h"
#include "uapi/quota.h"
#include "uapi/shown.h"

#define XMEM_ABI	7	/* the newest that this header describes */
#define XMEM_ABI_OLDEST	7	/* the oldest that a host built with it still serves */
#define XMEM_MAGIC	0x6c6f6f706d656d78ULL	/* "xmempool" */

#endif
