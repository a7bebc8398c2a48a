/* SPDX-License-Identifier: MIT */
/*
 * Frames in buffers on a GPU. The producer uploads them on its stream and publishes them before
 * they are complete. A consumer's stream waits for them, copies them into memory of the consumer,
 * and then drops the buffer. No thread waits for a stream of another process.
 *
 * Any failure ends the process; the reason is sent on @control.
 */
#ifndef DEMO_GPU_FRAME_H
#define DEMO_GPU_FRAME_H

#include "frame.h"

/* ---- the producer's ---- */

/* The address to which to read @bytes of the next frame. An earlier upload from there is done. */
uint8_t *gpu_frame_stage(int control, size_t bytes);

/* Put a copy of the oldest frame that is not in the stream yet, into a buffer to be written. */
void gpu_frame_upload(int control, struct xmem_buffer *buffer);

/* ---- a consumer's ---- */

/* Copy the contents of a received frame, so that frame->luma and the other planes are set. */
void gpu_frame_fetch(int control, struct frame *frame);

/*
 * Drop the buffer of a frame that was fetched. Its contents are copied once more before, in the
 * same stream. Returns: whether they are still what the producer made.
 */
bool gpu_frame_release(int control, struct frame *frame);

#endif
