/* SPDX-License-Identifier: MIT */
/*
 * For the tests of CUDA payloads as hosts see them. They call no driver, and the files that stand
 * for memory of a GPU are memfds, or files of the device that FAKECUDA_DEVICE_FILE names.
 */
#ifndef XMEM_CONFORM_DEVICE_H
#define XMEM_CONFORM_DEVICE_H

#include "core/protocol.h"
#include "harness.h"

#define BYTES	4096

/*
 * device_host uses a host that takes such files (with the daemon, one of its own), or skips. The
 * other function makes such a file.
 */
void device_host(void);
int device_file(void);

/* A request that attaches @count slots of BYTES bytes of a new payload, of device @device. */
struct xmem_attach_request device_attach(int file, unsigned int flags, unsigned int count,
					 unsigned char device);

/* A payload request: its result; *ret may be NULL. */
int payload_of(struct raw *raw, uint64_t payload, unsigned int flags,
	       struct xmem_payload_request *ret);

/* Give back a slot that is FREE. */
int device_detach(struct raw *raw, unsigned int slot);

/* Publish nothing, but make the FREE slot of @raw LIVE: its token. */
uint64_t make_live(struct raw *raw, unsigned int slot);

struct xmem_device_row device_row(const struct raw *raw, unsigned int device);

#endif
