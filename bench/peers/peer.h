/* SPDX-License-Identifier: MIT */
/*
 * Each peer program consists of its own transport behind these functions, and of main.c, which
 * measures all of them alike. A channel has one publisher and any number of subscribers, which all
 * get each message.
 *
 * peer_setup and peer_cleanup run in the parent, which starts the processes between the two. In
 * each of those, peer_publish and then peer_follow run at most once.
 */
#ifndef PEER_H
#define PEER_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct peer_shape {
	char name[24];		/* of this run, unique on the machine */
	size_t bytes;		/* of a message */
	unsigned int buffers;	/* of a publisher */
	unsigned int channels;	/* 1 or 2 */
	unsigned int subscribers;	/* of each channel */
};

extern const char *const peer_name;
extern const char *const peer_version;
extern const bool peer_shares;		/* the subscriber reads where the publisher wrote */
extern const unsigned int peer_most_loans;	/* that a publisher can have at once */

void peer_setup(const struct peer_shape *shape);
void peer_cleanup(void);

void peer_publish(unsigned int channel);
void peer_follow(unsigned int channel, unsigned int number);

/* Leave both, as a program that ends in order does. */
void peer_leave(void);

/* A buffer to write into; NULL: none is free now. It ends in peer_send. */
void *peer_loan(void);
void peer_send(void *buffer);

/* The next message; NULL if there is none and @sleep is false. It ends in peer_done. */
const void *peer_receive(bool sleep);
void peer_done(const void *message);

/* main.c: says what failed, with errno, and ends the process. */
void peer_die(const char *what) __attribute__((noreturn));

#ifdef __cplusplus
}
#endif
#endif
