/* SPDX-License-Identifier: MIT */
/*
 * The director's processes: start, talk, kill, reap. All of them, and ffmpeg,
 * are in one process group, which is killed and reaped however the demo ends.
 */
#ifndef DEMO_CREW_H
#define DEMO_CREW_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "control.h"

/* One process, over all its lives. */
struct member {
	const char *name;
	pid_t pid;			/* 0: not running */
	int socket;
	bool doomed;			/* the director has killed it */
	uint32_t said;			/* bit per enum message_kind, of this life */
	uint32_t value;			/* of the last SAY_READY, SAY_HOLDING or SAY_PAUSED */
	struct message last;		/* of this life */
	uint64_t frames;		/* of its lives before */
	uint64_t lost;
	uint64_t corrupt;
	/* The time at which this life could get its first frame, plus the time it was paused. */
	int64_t began_ns;
	int64_t paused_ns;		/* the time since which it stands still; 0: it does not */
	int64_t busy_ns;		/* time until its last frame, of its earlier lives */
	int64_t latest_ns;		/* the time of its last frame */
};

/* The contact sheet is made of the frames that the stage passes on. */
enum { PRODUCER, HISTOGRAM, MOTION, STAGE, CONTACT, MEMBERS };

extern struct member crew[MEMBERS];

int64_t clock_ns(void);

/* Before the first start: take signals, adopt orphans. The output of members goes to @log. */
bool crew_prepare(int log);

/* Program @arguments[0], found beside this one; the socket's number is added to the arguments. */
bool crew_start(struct member *member, const char *const *arguments);

void crew_tell(struct member *member, uint32_t kind);

/*
 * Read messages until all members in the bitmap @who have said @kind, until @done says so, or until
 * all of @who have ended well. false: crew_failure() tells why. @tick, if not NULL, is called now
 * and then.
 */
bool crew_wait(uint32_t who, uint32_t kind, void (*tick)(void));
bool crew_wait_until(bool (*done)(void), void (*tick)(void));
bool crew_wait_end(uint32_t who, void (*tick)(void));

/* Has the member said that, in this life, since it was last told something? */
static inline bool crew_said(const struct member *member, uint32_t kind)
{
	return member->said >> kind & 1;
}

/* Kill the member without warning; the caller looks at the pool, then calls crew_bury. */
bool crew_kill(struct member *member);
bool crew_bury(struct member *member);

/* Kill and reap all remaining processes. */
void crew_dismiss(void);

/* The reason of the failure; the first one counts. */
__attribute__((format(printf, 2, 3)))
bool crew_fail(bool see_log, const char *format, ...);
const char *crew_failure(void);
bool crew_failure_needs_log(void);

#endif
