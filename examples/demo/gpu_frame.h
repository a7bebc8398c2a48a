/* SPDX-License-Identifier: MIT */
/*
 * Frames in buffers on a GPU. The producer uploads them on its stream and publishes them before
 * they are there; a consumer's stream waits for them, copies them into memory of the consumer's,
 * and drops the buffer when it has got there. No thread waits for a stream of another process.
 *
 * Whatever fails ends the process: @control is where the reason is said.
 */
#ifndef DEMO_GPU_FRAME_H
#define DEMO_GPU_FRAME_H

#include "frame.h"

/* ---- the producer's ---- */

/* Where @bytes of the next frame are read to. What was uploaded from there before is done. */
uint8_t *gpu_frame_stage(int control, size_t bytes);

/* Let the stream copy the oldest frame that it has not got yet into a buffer to be written. */
void gpu_frame_upload(int control, struct xmem_buffer *buffer);

/* ---- a consumer's ---- */

/* Have the contents of a received frame copied, so that frame->luma and the others are there. */
void gpu_frame_fetch(int control, struct frame *frame);

/*
 * Drop the buffer of a frame that was fetched. Its contents are copied once more before, in the
 * same stream. Returns: whether they are still what the producer made.
 */
bool gpu_frame_release(int control, struct frame *frame);

#endif
