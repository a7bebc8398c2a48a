/* SPDX-License-Identifier: MIT */
/*
 * demo-histogram: how often each luma value occurs, over all frames.
 */
#include <stdio.h>

#include "consumer.h"

static uint64_t total[256];

static void histogram_work(const struct frame *frame, const struct frame *previous)
{
	size_t count = (size_t)frame->width * (size_t)frame->height;
	/* Four tables, so that equal neighbouring pixels do not wait for each other. */
	uint32_t part[4][256] = { 0 };
	size_t i;

	for (i = 0; i + 4 <= count; i += 4) {
		part[0][frame->luma[i]]++;
		part[1][frame->luma[i + 1]]++;
		part[2][frame->luma[i + 2]]++;
		part[3][frame->luma[i + 3]]++;
	}
	for (; i < count; i++)
		part[0][frame->luma[i]]++;
	for (i = 0; i < 256; i++)
		total[i] += (uint64_t)part[0][i] + part[1][i] + part[2][i] + part[3][i];
}

/* The luma value below which @share percent of all pixels are. */
static int histogram_percentile(uint64_t pixels, unsigned int share)
{
	uint64_t below = 0;
	int i;

	for (i = 0; i < 255; i++) {
		below += total[i];
		if (below * 100 >= pixels * share)
			break;
	}
	return i;
}

static bool histogram_finish(const char *folder, char *text, size_t bytes)
{
	uint64_t pixels = 0, sum = 0;
	int i;

	for (i = 0; i < 256; i++) {
		pixels += total[i];
		sum += total[i] * (uint64_t)i;
	}
	if (!pixels) {
		snprintf(text, bytes, "no frame was received");
		return false;
	}
	snprintf(text, bytes, "luma: mean %.1f, 5 %% below %d, 95 %% below %d",
		 (double)sum / (double)pixels, histogram_percentile(pixels, 5),
		 histogram_percentile(pixels, 95));
	return true;
}

int main(int argc, char **argv)
{
	static const struct consumer histogram = {
		.label = "histogram",
		.subscribe_flags = XMEM_SUBSCRIBE_WAITS,
		.work = histogram_work,
		.finish = histogram_finish,
	};

	return consumer_main(&histogram, argc, argv);
}
