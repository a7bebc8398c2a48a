/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Labels as topics: which writers a client wants to follow as one. The client writes this into its
 * own area, so that a host does not wake it for other writers that join.
 */
#ifndef XM_LABEL_H
#define XM_LABEL_H

#include "protocol.h"

/* A label, or the beginning of a label followed by '*'. All zero: any label. */
struct xm_label {
	union {
		char bytes[XMEM_LABEL_BYTES];
		u64 words[XMEM_LABEL_BYTES / 8];
	};
};

/*
 * Read a client's label from its row. The label is valid only if the client still exists after
 * that.
 */
static inline struct xm_label xm_label_of(const struct xm_map *map, u32 client)
{
	const struct xmem_client_row *row = xm_client_row(map, client);
	struct xm_label label;
	u32 i;

	for (i = 0; i < XMEM_LABEL_BYTES; i++)
		label.bytes[i] = xm_load(&row->label[i]);
	label.bytes[XMEM_LABEL_BYTES - 1] = 0;
	return label;
}

/*
 * The label that a client wants, from its area. The client can change it at any time, so it is read
 * once.
 */
static inline struct xm_label xm_wanted_label(const struct xm_map *map, u32 client)
{
	const struct xmem_ring *ring = xm_ring(map, client);

	return (struct xm_label){
		.words = { xm_load(&ring->wanted_label[0]), xm_load(&ring->wanted_label[1]) },
	};
}

static inline void xm_want_label(const struct xm_map *map, u32 me, const struct xm_label *label)
{
	struct xmem_ring *ring = xm_ring(map, me);

	xm_store(&ring->wanted_label[0], label->words[0]);
	xm_store(&ring->wanted_label[1], label->words[1]);
}

/* Does @label match @wanted? */
static inline bool xm_label_fits(const struct xm_label *wanted, const struct xm_label *label)
{
	u32 i;

	if (!wanted->bytes[0])
		return true;
	for (i = 0; i < XMEM_LABEL_BYTES; i++) {
		bool last = i + 1 == XMEM_LABEL_BYTES || !wanted->bytes[i + 1];

		if (wanted->bytes[i] == '*' && last)
			return true;
		if (wanted->bytes[i] != label->bytes[i])
			return false;
		if (!label->bytes[i])
			break;
	}
	return true;
}

#endif
