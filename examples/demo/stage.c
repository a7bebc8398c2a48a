/* SPDX-License-Identifier: MIT */
/*
 * demo-stage: a stage of the pipeline. It passes every frame on to its own subscribers: they
 * receive the producer's buffers, and nothing is copied.
 */
#include <stdio.h>

#include "consumer.h"

static uint64_t frames;
static uint64_t bytes_passed;

static void stage_work(const struct frame *frame, const struct frame *previous)
{
	(void)previous;
	frames++;
	bytes_passed += xmem_size(frame->buffer);
}

static bool stage_finish(const char *folder, char *text, size_t bytes)
{
	(void)folder;
	if (!frames) {
		snprintf(text, bytes, "no frame was received");
		return false;
	}
	snprintf(text, bytes, "passed on %.1f MB, copied none", (double)bytes_passed / 1e6);
	return true;
}

int main(int argc, char **argv)
{
	static const struct consumer stage = {
		.label = "stage",
		.subscribe_flags = XMEM_SUBSCRIBE_WAITS,
		.forwards = true,
		.work = stage_work,
		.finish = stage_finish,
	};

	return consumer_main(&stage, argc, argv);
}
