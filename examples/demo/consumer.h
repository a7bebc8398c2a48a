/* SPDX-License-Identifier: MIT */
/*
 * What the three consumers and the stage share: join, follow the producer, verify every
 * frame, do as the director tells. What each does with a frame is its own.
 */
#ifndef DEMO_CONSUMER_H
#define DEMO_CONSUMER_H

#include "frame.h"

struct consumer {
	const char *label;
	uint32_t subscribe_flags;	/* XMEM_SUBSCRIBE_* */
	bool forwards;			/* pass each frame on to those who follow this process */
	bool keeps_previous;		/* hold a frame until the next has been worked on */
	/* @previous->buffer is NULL for the first frame, and where previous ones are not kept. */
	void (*work)(const struct frame *frame, const struct frame *previous);
	/* After the last frame: what was found, in @text; false: it failed, @text says why. */
	bool (*finish)(const char *folder, char *text, size_t bytes);
};

/*
 * A consumer's main: PROGRAM POOL [PUBLISHER FOLDER [SOCKET]]. Without a
 * publisher it follows the first that comes; results go to FOLDER (".").
 */
int consumer_main(const struct consumer *consumer, int argc, char **argv);

#endif
