/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * xmem: the interface between the host (xmem.ko or xmemd) and its clients.
 *
 * Its parts are in xmem/uapi/: the pages that every client maps and in which everything is counted,
 * and the requests. docs/design.md has the words and the promises, and core/protocol.h the steps.
 *
 * Change log of the ABI:
 *   1  first light: pools, CPU payloads, rings, sleeping, end of a client
 *   2  structs that can grow: strides and feature words in the header, flags in every
 *      request, requests of any length from their minimum on, query, pools
 *   3  descriptors to poll, demotions and the wishes of an owner in its area, numbers of
 *      datagrams, whether the host lives
 *   4  claims, forwarding, addressed publications, writing in place, kinds of payload
 *   5  memory of GPUs: the device table, CUDA payloads, their openers, ready words
 *   6  requests for pids and uids, which leave the kernel's pages; processes in the rows;
 *      permission to join: owner, group and mode of a pool, names of users, roles of
 *      descriptors; payload ids of 64 bits; eviction of clients, pools that are drained
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

#define XMEM_ABI	7	/* the newest that this header describes */
#define XMEM_ABI_OLDEST	7	/* the oldest that a host built with it still serves */
#define XMEM_MAGIC	0x6c6f6f706d656d78ULL	/* "xmempool" */

#endif
