/* SPDX-License-Identifier: MIT */
/*
 * Frames in buffers: size, metadata, checksum. See frame.h.
 */
#include <stdio.h>
#include <string.h>
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

void frame_describe(struct xmem_buffer *buffer, int width, int height, uint64_t number)
{
	struct xmem_metadata *metadata = xmem_buffer_metadata_mut(buffer);
	size_t bytes = frame_bytes(width, height);

	memset(metadata, 0, sizeof(*metadata));
	metadata->id = number;
	metadata->storage = XMEM_STORAGE_CPU;
	metadata->dtype = FRAME_DTYPE_U8;
	metadata->ndim = 2;			/* of the luma plane; the others follow it */
	metadata->shape[0] = height;
	metadata->shape[1] = width;
	metadata->strides[0] = width;
	metadata->strides[1] = 1;
	metadata->size = bytes;
	snprintf((char *)metadata->content_type, sizeof(metadata->content_type),
		 FRAME_CONTENT_TYPE);
	snprintf((char *)metadata->producer, sizeof(metadata->producer), "xmem demo, ffmpeg");
	metadata->user[FRAME_CHECKSUM] = frame_checksum(xmem_data_mut(buffer), bytes);
}

bool frame_understand(struct frame *frame, struct xmem_buffer *buffer)
{
	struct xmem_metadata metadata = *xmem_buffer_metadata(buffer);
	size_t bytes;

	if (metadata.dtype != FRAME_DTYPE_U8 || metadata.ndim != 2 ||
	    strncmp((char *)metadata.content_type, FRAME_CONTENT_TYPE,
		    sizeof(metadata.content_type)))
		return false;
	if (metadata.shape[0] < 1 || metadata.shape[0] > FRAME_MAX_SIDE ||
	    metadata.shape[1] < 1 || metadata.shape[1] > FRAME_MAX_SIDE)
		return false;
	frame->height = (int)metadata.shape[0];
	frame->width = (int)metadata.shape[1];
	bytes = frame_bytes(frame->width, frame->height);
	if (bytes != xmem_size(buffer))
		return false;
	frame->buffer = buffer;
	frame->luma = xmem_data(buffer);
	if (!frame->luma)
		return false;
	frame->cb = frame->luma + (size_t)frame->width * (size_t)frame->height;
	frame->cr = frame->cb + chroma_bytes(frame->width, frame->height);
	frame->checksum = metadata.user[FRAME_CHECKSUM];
	frame->corrupt = false;
	return true;
}

bool frame_intact(const struct frame *frame)
{
	size_t bytes = frame_bytes(frame->width, frame->height);

	return frame_checksum(frame->luma, bytes) == frame->checksum;
}
