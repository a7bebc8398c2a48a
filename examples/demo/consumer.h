/* SPDX-License-Identifier: MIT */
/*
 * The common part of the three consumers and the stage: join, follow the producer, verify every
 * frame, obey the director. Each has a file for its work on the frames.
 */
#ifndef DEMO_CONSUMER_H
#define DEMO_CONSUMER_H

#include "frame.h"

struct consumer {
	const char *label;
	uint32_t subscribe_flags;	/* XMEM_SUBSCRIBE_* */
	bool forwards;			/* pass each frame on to the followers of this process */
	bool keeps_previous;		/* hold a frame until the next has been worked on */
	/* @previous->buffer is NULL for the first frame, and if previous frames are not kept. */
	void (*work)(const struct frame *frame, const struct frame *previous);
	/* After the last frame: put the result into @text; false: it failed, and @text says why. */
	bool (*finish)(const char *folder, char *text, size_t bytes);
};

/*
 * A consumer's main: PROGRAM POOL [PUBLISHER FOLDER [SOCKET]]. Without a PUBLISHER it follows the
 * first that comes; results go to FOLDER (".").
 */
int consumer_main(const struct consumer *consumer, int argc, char **argv);

#endif
