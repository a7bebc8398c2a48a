/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * What a publisher says about the contents of a buffer: shape, type and so on.
 * The metadata lies in pages that the publisher can write and all clients can
 * read, so a reader must not trust it more than it trusts the publisher.
 */
#ifndef XMEM_METADATA_H
#define XMEM_METADATA_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdint.h>
#endif

/* Where contents are. */
enum xmem_storage {
	XMEM_STORAGE_CPU = 0		/* memory of the CPU */
};

/* All fields but size and offset are the publisher's to use as it likes. */
struct xmem_metadata {
	uint64_t id;
	uint32_t storage;		/* enum xmem_storage */
	uint32_t device;		/* 0 for the CPU */
	uint32_t dtype;			/* type of an element; a number of the user's choice */
	uint32_t ndim;			/* valid places of shape and strides, at most 8 */
	int64_t shape[8];		/* elements */
	int64_t strides[8];		/* bytes */
	uint64_t size;			/* bytes of contents; xmem_publish sets it */
	uint64_t offset;		/* bytes of the buffer before them; xmem_publish sets it */
	char content_type[32];		/* NUL-terminated, for example "video/x-raw,gray8" */
	char producer[32];		/* NUL-terminated */
	uint64_t user[8];
	uint64_t reserved[27];		/* must be 0 */
};

#endif
