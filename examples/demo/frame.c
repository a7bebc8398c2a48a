/* SPDX-License-Identifier: MIT */
/*
 * Frames in buffers: size, metadata, checksum. See frame.h.
 */
#include <xxhash.h>

#include "frame.h"

static size_t chroma_bytes(int width, int height)
{
	return (size_t)((width + 1) / 2) * (size_t)((height + 1) / 2);
}

size_t frame_bytes(int width, int height)
{
	if (width < 1 || height < 1 || width > FRAME_MAX_SIDE || height > FRAME_MAX_SIDE)
		return 0;
	return (size_t)xmem_image_bytes(XMEM_IMAGE_I420, (uint32_t)width, (uint32_t)height, 0);
}

uint64_t frame_checksum(const void *data, size_t bytes)
{
	return XXH3_64bits(data, bytes);
}

bool frame_describe(struct xmem_buffer *buffer, const void *data, int width, int height,
		    uint64_t number)
{
	struct xmem_metadata *metadata;

	if (xmem_describe_image(buffer, XMEM_IMAGE_I420, (uint32_t)width, (uint32_t)height, 0) ||
	    xmem_describe_source(buffer, XMEM_OPTIONS(xmem_source,
						      .producer = "xmem demo, ffmpeg")))
		return false;
	metadata = xmem_metadata_mut(buffer);
	metadata->id = number;
	metadata->user[FRAME_CHECKSUM] = frame_checksum(data, frame_bytes(width, height));
	return true;
}

void frame_find_planes(struct frame *frame, const uint8_t *data)
{
	frame->luma = data;
	frame->cb = data + (size_t)frame->width * (size_t)frame->height;
	frame->cr = frame->cb + chroma_bytes(frame->width, frame->height);
}

/* An I420 image whose planes follow each other and have no padding. */
static bool take_size(struct frame *frame, const struct xmem_metadata *metadata, size_t bytes)
{
	uint32_t height = metadata->image_height, width = metadata->image_width;

	if (metadata->image != XMEM_IMAGE_I420 || metadata->image_stride != width ||
	    width < 1 || width > FRAME_MAX_SIDE || height < 1 || height > FRAME_MAX_SIDE ||
	    frame_bytes((int)width, (int)height) != bytes)
		return false;
	frame->width = (int)width;
	frame->height = (int)height;
	return true;
}

bool frame_understand(struct frame *frame, struct xmem_buffer *buffer)
{
	struct xmem_image image = { .size = sizeof(image) };
	struct xmem_metadata metadata;

	if (xmem_metadata_view(buffer, &metadata) ||
	    !take_size(frame, &metadata, xmem_size(buffer)))
		return false;
	frame->on_gpu = metadata.storage == XMEM_STORAGE_CUDA;
	if (!frame->on_gpu) {
		if (xmem_image_view(buffer, 0, &image))
			return false;
		frame_find_planes(frame, image.plane[0].data);
	}
	frame->buffer = buffer;
	frame->checksum = metadata.user[FRAME_CHECKSUM];
	frame->corrupt = false;
	return true;
}

bool frame_intact(const struct frame *frame)
{
	size_t bytes = frame_bytes(frame->width, frame->height);

	return frame_checksum(frame->luma, bytes) == frame->checksum;
}
