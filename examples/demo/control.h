/* SPDX-License-Identifier: MIT */
/*
 * Messages between the director and its processes: small ones, over a socket pair for each process.
 * They carry no pixels: those are in the pool.
 *
 * Without a director (a program started by hand) the socket is -1: messages go nowhere, and none
 * come.
 */
#ifndef DEMO_CONTROL_H
#define DEMO_CONTROL_H

#include <stdint.h>

enum message_kind {
	/* a process says */
	SAY_READY = 1,		/* joined, subscribed; value: its client id */
	SAY_FRAME,		/* one more frame done */
	SAY_HOLDING,		/* it holds value frames and stands still */
	SAY_PAUSED,		/* it holds no more than it must and stands still */
	SAY_AT_END,		/* the video is over; value: frames decoded and not yet published */
	SAY_HALFWAY,		/* a buffer is half written and it stands still */
	SAY_DONE,		/* all frames are received; text: the result */
	SAY_ERROR,		/* text: why it cannot go on */
	/* the director tells */
	TELL_GO,
	TELL_HOLD,		/* receive one more frame, then stand still */
	TELL_PAUSE,		/* stand still until TELL_GO; a consumer says SAY_PAUSED */
	TELL_AGAIN,		/* decode the video once more */
	TELL_FINISH,		/* publish the remaining frames, then stop in the middle of a
				 * frame */
};

#define MESSAGE_TEXT	200

struct message {
	uint32_t kind;		/* enum message_kind */
	uint32_t value;
	uint64_t frames;	/* done so far, by this process */
	uint64_t lost;		/* by being slow */
	uint64_t corrupt;	/* wrong checksums */
	uint64_t passed;	/* publications received or missed, by the publisher's count */
	char text[MESSAGE_TEXT];
};

/* The socket's number in a program's argument; NULL: -1. */
int control_open(const char *argument);

/* Ends the process if the director has gone. */
void control_say(int control, const struct message *message);

/* The next thing told, without waiting: 0 if there is none. */
uint32_t control_told(int control);

/* The next thing told. Ends the process if the director has gone. */
uint32_t control_wait(int control);

/* Send the reason on the socket, or print it on standard error, and end the process. */
void control_fail(int control, const char *format, ...)
	__attribute__((noreturn, format(printf, 2, 3)));

/* As control_fail, for a failed call of xmem: @what, and the library's own message. */
void control_fail_xmem(int control, const char *what) __attribute__((noreturn));

#endif
