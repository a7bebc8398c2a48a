/* SPDX-License-Identifier: MIT */
/*
 * The format of a frame, on which producer and consumers agree: planar YUV 4:2:0, 8 bits, one
 * buffer per frame, and its metadata.
 */
#ifndef DEMO_FRAME_H
#define DEMO_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xmem.h"

#define FRAME_MAX_SIDE		32768
#define FRAME_CHECKSUM		0	/* place in the metadata's user words */

struct frame {
	struct xmem_buffer *buffer;	/* NULL: no frame */
	int width;			/* of the luma plane, pixels */
	int height;
	const uint8_t *luma;		/* height rows of width */
	const uint8_t *cb;		/* half of both, rounded up */
	const uint8_t *cr;
	uint64_t checksum;		/* by its producer */
	bool corrupt;			/* its checksum was wrong */
	bool on_gpu;			/* the planes are NULL until gpu_frame_fetch */
	struct gpu_copy *copy;		/* gpu_frame.c: the place of the planes then */
};

/* Bytes of a frame; 0: such a frame cannot be. */
size_t frame_bytes(int width, int height);

/* XXH3 of the whole frame. */
uint64_t frame_checksum(const void *data, size_t bytes);

/*
 * Put into the metadata that a buffer holds frame number @number, with its checksum. @data: the
 * frame, in the buffer or elsewhere. false: xmem's last error says why.
 */
bool frame_describe(struct xmem_buffer *buffer, const void *data, int width, int height,
		    uint64_t number);

/* Understand a received buffer, trusting nothing but its size. false: it is no frame. */
bool frame_understand(struct frame *frame, struct xmem_buffer *buffer);

/* The planes of a frame whose size is known are in memory of the CPU, from @data on. */
void frame_find_planes(struct frame *frame, const uint8_t *data);

/* Are the contents what the producer made? The caller holds the frame. */
bool frame_intact(const struct frame *frame);

#endif
