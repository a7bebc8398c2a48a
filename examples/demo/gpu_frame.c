/* SPDX-License-Identifier: MIT */
/*
 * Frames on a GPU, up and down; see gpu_frame.h.
 */
#include <string.h>

#include "control.h"
#include "gpu.h"
#include "gpu_frame.h"
#include "xmem/cuda.h"
#include "xmem/stream.h"

#define HELD	2			/* frames that a consumer has fetched at a time */
#define STAGES	4			/* frames that were read but are not in the stream yet */

static void need(int control, bool good, const char *what)
{
	if (!good)
		control_fail(control, "%s: %s", what, gpu_why());
}

/* ---- up ---- */

/* Page-locked memory from which a frame is uploaded; the stream has read it behind @read. */
struct stage {
	uint8_t *data;
	size_t room;
	size_t bytes;
	struct CUevent_st *read;
};
static struct stage stages[STAGES];
static unsigned int staged, uploaded;	/* frames */

uint8_t *gpu_frame_stage(int control, size_t bytes)
{
	struct stage *stage = &stages[staged++ % STAGES];

	if (!stage->data) {		/* the first frame is whole, and all frames have one size */
		stage->data = gpu_host_memory(bytes);
		need(control, stage->data, "cannot get page-locked memory");
		stage->room = bytes;
	}
	if (stage->room < bytes || staged - uploaded > STAGES)
		control_fail(control, "no page-locked memory for a frame of %zu bytes", bytes);
	need(control, gpu_wait(stage->read), "cannot upload");
	stage->bytes = bytes;
	return stage->data;
}

void gpu_frame_upload(int control, struct xmem_buffer *buffer)
{
	struct stage *stage = &stages[uploaded++ % STAGES];
	void *to;

	/* First, because otherwise xmem_cuda_ptr_mut would wait for the buffer in this thread. */
	if (xmem_wait_on(buffer, gpu_stream()))
		control_fail_xmem(control, "cannot wait for a buffer");
	to = xmem_cuda_ptr_mut(buffer);
	if (!to)
		control_fail_xmem(control, "cannot write a buffer on the GPU");
	need(control, gpu_upload(to, stage->data, stage->bytes) && gpu_mark(&stage->read),
	     "cannot upload");
}

/* ---- down ---- */

/* The copies of a frame: one in other memory of the GPU, and one of that in memory of the CPU. */
struct gpu_copy {
	bool taken;
	size_t bytes;
	void *device;
	uint8_t *host;
};

static void make_room(int control, struct gpu_copy *copy, size_t bytes)
{
	if (copy->bytes)
		return;
	copy->device = gpu_memory(bytes);
	need(control, copy->device, "cannot get memory of the GPU");
	copy->host = gpu_host_memory(bytes);
	need(control, copy->host, "cannot get page-locked memory");
	copy->bytes = bytes;
}

/* The stream waits for the contents and copies them. The copy is complete after gpu_finish. */
static void start_copy(int control, struct gpu_copy *copy, struct xmem_buffer *buffer)
{
	size_t bytes = xmem_size(buffer);
	const void *from;

	make_room(control, copy, bytes);
	if (copy->bytes < bytes)
		control_fail(control, "a frame of %zu bytes after one of %zu", bytes, copy->bytes);
	if (xmem_wait_on(buffer, gpu_stream()))
		control_fail_xmem(control, "cannot wait for a frame");
	from = xmem_cuda_ptr(buffer);
	if (!from)
		control_fail_xmem(control, "cannot read a frame on the GPU");
	need(control, gpu_copy(copy->device, from, bytes) &&
	     gpu_download(copy->host, copy->device, bytes), "cannot copy a frame");
}

static struct gpu_copy *free_copy(int control)
{
	static struct gpu_copy copies[HELD];
	int i;

	for (i = 0; i < HELD; i++) {
		if (copies[i].taken)
			continue;
		copies[i].taken = true;
		return &copies[i];
	}
	control_fail(control, "more than %d frames are in use", HELD);
}

void gpu_frame_fetch(int control, struct frame *frame)
{
	struct gpu_copy *copy = free_copy(control);

	if (!gpu_open())
		control_fail(control, "cannot use the GPU: %s", gpu_why());
	start_copy(control, copy, frame->buffer);
	need(control, gpu_finish(), "cannot copy a frame");
	/* A waiting stream continues when the producer dies: were the contents complete? */
	if (xmem_wait_contents(frame->buffer, 0))
		control_fail_xmem(control, "a frame is not complete");
	frame->copy = copy;
	frame_find_planes(frame, copy->host);
}

bool gpu_frame_release(int control, struct frame *frame)
{
	static struct gpu_copy again;
	size_t bytes = frame_bytes(frame->width, frame->height);

	start_copy(control, &again, frame->buffer);
	if (xmem_release_on(frame->buffer, gpu_stream()))
		control_fail_xmem(control, "cannot drop a frame");
	need(control, gpu_finish(), "cannot copy a frame");
	frame->copy->taken = false;
	frame->copy = NULL;
	return frame_checksum(again.host, bytes) == frame->checksum;
}
