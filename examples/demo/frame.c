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
	return (size_t)width * (size_t)height + 2 * chroma_bytes(width, height);
}

uint64_t frame_checksum(const void *data, size_t bytes)
{
	return XXH3_64bits(data, bytes);
}

bool frame_describe(struct xmem_buffer *buffer, int width, int height, uint64_t number)
{
	struct xmem_metadata *metadata;

	if (xmem_describe_image(buffer, XMEM_IMAGE_I420, (uint32_t)width, (uint32_t)height, 0) ||
	    xmem_describe_content(buffer, NULL, "xmem demo, ffmpeg"))
		return false;
	metadata = xmem_buffer_metadata_mut(buffer);
	metadata->id = number;
	metadata->user[FRAME_CHECKSUM] = frame_checksum(xmem_data_mut(buffer),
							frame_bytes(width, height));
	return true;
}

/* An I420 image whose planes follow each other and have no padding. */
static bool is_frame(const struct xmem_image *image, struct xmem_buffer *buffer)
{
	return image->format == XMEM_IMAGE_I420 && image->width <= FRAME_MAX_SIDE &&
	       image->height <= FRAME_MAX_SIDE && image->plane[0].stride == image->width &&
	       frame_bytes((int)image->width, (int)image->height) == xmem_size(buffer);
}

bool frame_understand(struct frame *frame, struct xmem_buffer *buffer)
{
	struct xmem_image image = { .size = sizeof(image) };
	struct xmem_metadata metadata;

	if (xmem_image_view(buffer, &image) || xmem_metadata_view(buffer, &metadata) ||
	    !is_frame(&image, buffer))
		return false;
	frame->buffer = buffer;
	frame->width = (int)image.width;
	frame->height = (int)image.height;
	frame->luma = image.plane[0].data;
	frame->cb = image.plane[1].data;
	frame->cr = image.plane[2].data;
	frame->checksum = metadata.user[FRAME_CHECKSUM];
	frame->corrupt = false;
	return true;
}

bool frame_intact(const struct frame *frame)
{
	size_t bytes = frame_bytes(frame->width, frame->height);

	return frame_checksum(frame->luma, bytes) == frame->checksum;
}
