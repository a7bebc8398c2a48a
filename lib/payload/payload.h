/* SPDX-License-Identifier: MIT */
/*
 * Payloads: the files that hold contents. What all kinds share (which file is mapped
 * where, who looks into it) is in payload.c; each kind brings a table and a file.
 *
 *   memfd.c   memory of the CPU, in a sealed memfd
 */
#ifndef XMEM_PAYLOAD_H
#define XMEM_PAYLOAD_H

#include "../private.h"

/* One payload file, mapped whole. Guarded by pool->lock. */
struct xl_mapping {
	struct xl_mapping *next;
	u32 payload;
	u32 users;		/* handles with a pointer into it */
	const struct xl_payload_kind *kind;
	bool owned;		/* made here: stays until the pool goes */
	char *base;
	u64 bytes;
};

/* One kind of payload. All return 0 or a negative errno that has been noted. */
struct xl_payload_kind {
	u32 storage;			/* enum xmem_storage */

	/*
	 * A new payload of @bytes, whose contents only this process can change from now on,
	 * mapped for writing. post: mapping->base and ->bytes are set; a descriptor, the
	 * caller's, or a negative errno.
	 */
	int (*make)(struct xl_mapping *mapping, u64 bytes);

	/* Map the payload that @fd is, for reading. pre: mapping->bytes. post: ->base. */
	int (*map)(struct xl_mapping *mapping, int fd);

	/* pre: mapped by one of the above. */
	void (*unmap)(struct xl_mapping *mapping);
};

extern const struct xl_payload_kind xl_payload_memfd;

/* A payload of @count buffers of @bytes each, attached: all of them or none. */
int xl_payload_make(struct xmem_pool *pool, u32 count, u64 bytes, u16 *ret_slot);

/* Make @buffer point at its contents; the slot is held or being written. */
int xl_payload_map(struct xmem_buffer *buffer);

/* Unmap mappings of payloads that are attached nowhere any more, and that no handle points into. */
void xl_payload_unmap_stale(struct xmem_pool *pool);
void xl_payload_unmap_all(struct xmem_pool *pool);

#endif
