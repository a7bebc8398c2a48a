/* SPDX-License-Identifier: MIT */
/*
 * The output of the demo; see report.h.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "report.h"

#define PROGRESS_TTY_NS		(100LL * 1000 * 1000)
#define PROGRESS_PLAIN_NS	(10LL * 1000 * 1000 * 1000)
#define PROGRESS_PLAIN_PARTS	10

static const struct report *report;
static const char *video;
static const char *folder;
static int log_file = -1;
static int64_t shown_ns;
static uint64_t shown_frames;
static bool line_is_open;

void report_open(const struct report *what, int log, const char *video_path, const char *out)
{
	const char *slash = strrchr(video_path, '/');

	report = what;
	log_file = log;
	video = slash ? slash + 1 : video_path;
	folder = out;
	shown_ns = clock_ns();
}

/* ---- progress ---- */

/* A terminal's line is written over; elsewhere a line comes for every tenth of the video. */
static bool progress_is_due(bool terminal, int64_t now)
{
	if (terminal)
		return now - shown_ns >= PROGRESS_TTY_NS;
	return now - shown_ns >= PROGRESS_PLAIN_NS ||
	       crew[PRODUCER].last.frames - shown_frames >= report->planned / PROGRESS_PLAIN_PARTS;
}

void report_progress(void)
{
	bool terminal = !report->plain && isatty(STDOUT_FILENO);
	int64_t now = clock_ns();
	int i;

	if (!progress_is_due(terminal, now))
		return;
	shown_ns = now;
	shown_frames = crew[PRODUCER].last.frames;
	printf("%sdemo: frame %" PRIu64 " of about %" PRIu64, terminal ? "\r\033[K" : "",
	       shown_frames, report->planned);
	for (i = HISTOGRAM; i < MEMBERS; i++)
		printf(", %s %" PRIu64, crew[i].name, crew[i].last.passed);
	if (!terminal)
		printf("\n");
	fflush(stdout);
	line_is_open = terminal;
}

void report_stop_progress(void)
{
	if (line_is_open)
		printf("\r\033[K");
	fflush(stdout);
	line_is_open = false;
}

/* ---- the table ---- */

/* To the user and into the log. */
__attribute__((format(printf, 1, 2)))
static void both(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	va_start(arguments, format);
	vdprintf(log_file, format, arguments);
	va_end(arguments);
}

static double per_second(const struct member *member)
{
	return member->busy_ns > 0 ? (double)member->frames * 1e9 / (double)member->busy_ns : 0;
}

static void print_row(int who)
{
	const struct member *member = &crew[who];
	char back[32] = "-";

	if (who == PRODUCER)
		snprintf(back, sizeof(back), "%" PRId64 " us", report->producer_return_ns / 1000);
	if (who == MOTION)
		snprintf(back, sizeof(back), "%" PRId64 " us", report->consumer_return_ns / 1000);
	both("  %-10s %7" PRIu64 " %8.1f", member->name, member->frames, per_second(member));
	if (who == PRODUCER)
		both(" %6s %8s", "-", "-");
	else
		both(" %6" PRIu64 " %8" PRIu64, member->lost, member->corrupt);
	both(" %15s   %s\n", back, who == PRODUCER ? video : member->last.text);
}

static void print_deaths(void)
{
	const struct message *last = &crew[MOTION].last;
	uint64_t again = last->passed - last->frames - last->lost;
	int i;

	both("  motion was killed holding %" PRIu32 " frames, joined again %.1f ms later, "
	     "missed %" PRIu64 " meanwhile%s\n",
	     report->victim_holds, (double)report->away_ns / 1e6, again - report->victim_passed,
	     report->producer_waited ? "; the producer waited for it" : "");
	both("  the producer was killed in mid-write with %" PRIu64 " frames in flight; "
	     "received after its death:",
	     report->in_flight);
	for (i = HISTOGRAM; i < MEMBERS; i++)
		both("%s %s %" PRIu64, i == HISTOGRAM ? "" : ",", crew[i].name,
		     report->after_frames[i] - report->before_frames[i]);
	both("\n");
}

bool report_print(void)
{
	int i;

	both("  %-10s %7s %8s %6s %8s %15s\n", "process", "frames", "fps", "lost", "corrupt",
	     "killed -> back");
	for (i = 0; i < MEMBERS; i++)
		print_row(i);
	print_deaths();
	if (report->leaked)
		both("  left in the pool: %u slots attached, %u held, %u in limbo, "
		     "%" PRIu64 " holds, %u zombies, %u clients\n",
		     report->left.attached, report->left.held, report->left.limbo,
		     report->left.holds, report->left.zombies, report->left.clients);
	if (report->on_gpu)
		both("  GPU memory in use (cuMemGetInfo of %s): %" PRIu64 " bytes before, %" PRIu64
		     " after all had ended\n", report->gpu, report->gpu_before, report->gpu_after);
	both("  contact sheet: %s/contact.png, log: %s/log\n", folder, folder);
	both("demo: backend=%s frames=%" PRIu64 " stages=1 consumers=%d killed=%" PRIu32
	     " corrupt=%" PRIu64 " leaked=%" PRIu64,
	     report->backend, report->published, MEMBERS - HISTOGRAM - 1, report->killed,
	     report->corrupt, report->leaked);
	if (report->on_gpu)
		both(" gpu_leaked_bytes=%" PRIu64, report->gpu_leaked);
	both("\n");
	return !fflush(stdout) && !ferror(stdout);
}
