/* SPDX-License-Identifier: MIT */
/*
 * demo-motion: how much moves between a frame and the one before, as the mean
 * difference of their luma. It holds two frames at a time.
 */
#include <stdio.h>
#include <stdlib.h>

#include "consumer.h"

static uint64_t compared;
static double sum;
static double highest = -1;
static uint64_t highest_at;		/* the frame's number */

static double mean_difference(const struct frame *a, const struct frame *b)
{
	size_t count = (size_t)a->width * (size_t)a->height;
	uint64_t difference = 0;
	size_t i;

	for (i = 0; i < count; i++)
		difference += (uint64_t)abs(a->luma[i] - b->luma[i]);
	return (double)difference / (double)count;
}

static void motion_work(const struct frame *frame, const struct frame *previous)
{
	double score;

	if (!previous->buffer || previous->width != frame->width ||
	    previous->height != frame->height)
		return;
	score = mean_difference(frame, previous);
	compared++;
	sum += score;
	if (score > highest) {
		highest = score;
		highest_at = xmem_metadata_ptr(frame->buffer)->id;
	}
}

static bool motion_finish(const char *folder, char *text, size_t bytes)
{
	if (!compared) {
		snprintf(text, bytes, "no two frames were received");
		return false;
	}
	snprintf(text, bytes, "motion: mean %.2f, most %.2f at frame %llu", sum / (double)compared,
		 highest, (unsigned long long)highest_at);
	return true;
}

int main(int argc, char **argv)
{
	static const struct consumer motion = {
		.label = "motion",
		.subscribe_flags = XMEM_SUBSCRIBE_WAITS,
		.keeps_previous = true,
		.work = motion_work,
		.finish = motion_finish,
	};

	return consumer_main(&motion, argc, argv);
}
