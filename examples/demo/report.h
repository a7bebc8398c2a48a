/* SPDX-License-Identifier: MIT */
/*
 * The output of the demo: progress, the table, the last line. struct report has the measurements of
 * the director, and crew[] those of the members.
 */
#ifndef DEMO_REPORT_H
#define DEMO_REPORT_H

#include <stdint.h>

#include "crew.h"
#include "xmem.h"

struct report {
	bool plain;			/* progress as plain lines, also on a terminal */
	const char *backend;
	uint32_t publisher;		/* the producer's client id */
	uint32_t stage;			/* the stage's */
	uint64_t planned;		/* frames, about */
	uint64_t published;
	uint32_t killed;
	uint64_t corrupt;
	/* the consumer's death */
	uint32_t victim_holds;
	uint64_t victim_passed;		/* publications */
	int64_t consumer_return_ns;
	int64_t away_ns;		/* from its death to having joined again */
	bool producer_waited;		/* the producer was told to wait for it, because the
					 * video was nearly over */
	/* the producer's */
	uint64_t in_flight;
	uint64_t before_frames[MEMBERS];
	uint64_t after_frames[MEMBERS];
	int64_t producer_return_ns;
	/* the pool after all members have ended */
	struct xmem_pool_info left;
	uint64_t leaked;
	/* with a GPU: bytes of its memory that are taken */
	bool on_gpu;
	char gpu[80];
	uint64_t gpu_before;
	uint64_t gpu_after;
	uint64_t gpu_leaked;
};

/* @report is filled while the demo runs; the others name what to show. */
void report_open(const struct report *report, int log, const char *video, const char *folder);

/* Print the progress, not more often than a person can read it. */
void report_progress(void);
void report_stop_progress(void);

/* Print the table and the last line, also into the log. false: standard output has failed. */
bool report_print(void);

#endif
