// SPDX-License-Identifier: MIT
/*
 * xmem trace [--output FILE] [--interval S] POOL: what clients hand over, until SIGINT or until the
 * pool ends. It joins no pool.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/trace.h"

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* ---- looks ---- */

/* A new sample, or NULL: an error was printed. */
static json_t *sample(const struct cli_arguments *arguments)
{
	json_t *all;
	const char *error;

	cli_ask();
	all = look(NULL);
	cli_answered();
	error = json_string_value(json_object_get(all, "error"));
	if (!error)
		return all;
	cli_fail("%s", error);
	json_decref(all);
	return NULL;
}

/* Once more. @map: the pages of a pool of xmemd, or NULL. false: the pool has ended. */
static bool look_again(struct trace *trace, const struct cli_arguments *arguments,
		       const struct xm_map *map)
{
	json_t *all;
	bool lives;

	if (map)
		return look_trace(trace, map);
	all = sample(arguments);
	lives = all && trace_lines(trace, look_named(all, arguments->pool));
	json_decref(all);
	return lives;
}

/* 0, or -errno of the file. */
static int follow(struct trace *trace, const struct cli_arguments *arguments,
		  const struct xm_map *map)
{
	bool lives, goes_on = true;
	int err;

	do {
		trace->now_ns = now();
		if (trace->first)
			trace->before_ns = trace->now_ns;
		lives = look_again(trace, arguments, map);
		trace->first = false;
		err = trace_flush(trace);
		if (err || !goes_on || !lives)
			return err;
		goes_on = cli_pause(arguments->interval);	/* else this look is the last */
	} while (true);
}

/* ---- the command ---- */

static int fail(const struct cli_arguments *arguments, int err)
{
	return cli_fail("%s: %s", arguments->value['o'] ? arguments->value['o'] : "standard output",
			strerror(-err));
}

static int record(struct trace *trace, const struct cli_arguments *arguments,
		  const struct xm_map *map)
{
	int err = trace_begin(trace, arguments->value['o']), last;

	if (err)
		return fail(arguments, err);
	err = follow(trace, arguments, map);
	last = trace_end(trace);
	if (err || last)
		return fail(arguments, err ? err : last);
	fprintf(stderr, "xmem: %" PRIu64 " lives of buffers and %" PRIu64 " hand-overs; %" PRIu64
		" publications were overwritten before a look%s\n", trace->lives, trace->arrows,
		trace->lost, trace->lost ? ": give a shorter --interval" : "");
	return CLI_DONE;
}

int cli_trace(const struct cli_arguments *arguments)
{
	struct trace *trace = calloc(1, sizeof(*trace));
	json_t *all = sample(arguments), *pool = look_named(all, arguments->pool);
	const struct xm_map *map = NULL;
	bool daemon = all && !strcmp(json_string_value(json_object_get(all, "backend")), "daemon");
	int status = CLI_FAILED;

	if (!trace)
		cli_no_memory();
	if (daemon && pool)
		map = look_daemon_map(pool);
	if (!all)
		;			/* an error was printed */
	else if (!pool || (daemon && !map))
		cli_fail("there is no pool '%s'", arguments->pool);
	else if (trace_slots(trace, map ? look_trace_slots(map) :
				    (uint32_t)look_number(pool, "slots_max")))
		cli_no_memory();
	else {
		cli_stop_by_signal();
		trace->pool = arguments->pool;
		trace->first = true;
		status = record(trace, arguments, map);
	}
	json_decref(all);
	free(trace->slot);
	free(trace->origin);
	free(trace);
	return status;
}
