/* SPDX-License-Identifier: MIT */
/*
 * What the director and its processes say to each other: small messages over a
 * socket pair, one per process. Never pixels: those are in the pool.
 *
 * Without a director (a program started by hand) the socket is -1: what is said
 * goes nowhere, and nobody tells anything.
 */
#ifndef DEMO_CONTROL_H
#define DEMO_CONTROL_H

#include <stdint.h>

enum message_kind {
	/* a process says */
	SAY_READY = 1,		/* joined, subscribed; value: my client id */
	SAY_FRAME,		/* one more frame done */
	SAY_HOLDING,		/* I hold value frames and stand still */
	SAY_PAUSED,		/* I hold no more than I must and stand still */
	SAY_AT_END,		/* the video is over; value: frames decoded and not yet published */
	SAY_HALFWAY,		/* a buffer is half written and I stand still */
	SAY_DONE,		/* all is received; text: what I found */
	SAY_ERROR,		/* text: why I cannot go on */
	/* the director tells */
	TELL_GO,
	TELL_HOLD,		/* receive one more frame, then stand still */
	TELL_PAUSE,		/* until TELL_GO; a consumer says SAY_PAUSED */
	TELL_AGAIN,		/* decode the video once more */
	TELL_FINISH,		/* publish what is left, then stop in the middle of a frame */
};

#define MESSAGE_TEXT	200

struct message {
	uint32_t kind;		/* enum message_kind */
	uint32_t value;
	uint64_t frames;	/* done so far, by this process */
	uint64_t lost;		/* by being slow */
	uint64_t corrupt;	/* wrong checksums */
	uint64_t passed;	/* publications that are behind me: the publisher's count */
	char text[MESSAGE_TEXT];
};

/* The socket's number out of a program's argument; NULL: -1. */
int control_open(const char *argument);

/* Ends the process if the director has gone. */
void control_say(int control, const struct message *message);

/* The next thing told, without waiting: 0 if there is none. */
uint32_t control_told(int control);

/* The next thing told. Ends the process if the director has gone. */
uint32_t control_wait(int control);

/* Say why, on the socket or else on standard error, and end the process. */
void control_fail(int control, const char *format, ...)
	__attribute__((noreturn, format(printf, 2, 3)));

/* The same for a failed call of xmem: @what, and the library's own message. */
void control_fail_xmem(int control, const char *what) __attribute__((noreturn));

#endif
