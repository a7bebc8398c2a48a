/* SPDX-License-Identifier: MIT */
/*
 * demo: runs the pipeline, and kills its processes. The producer publishes every frame of a video.
 * Three consumers work on the frames; one of them gets its frames from a stage that passes them on.
 * Another consumer is killed while it holds frames, and joins again. At the end the producer is
 * killed in the middle of writing a frame. The director is also a client of the pool: it counts the
 * buffers that are held, and those that are left at the end.
 *
 * With -g the frames are on a GPU. Then the director also checks how much memory of the GPU is in
 * use before the first process starts and after the pool has ended.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "crew.h"
#include "gpu.h"
#include "report.h"
#include "video.h"
#include "xmem.h"

#define FRAMES_LEAST	250
#define RETURN_NS	(10LL * 1000 * 1000 * 1000)	/* memory that is not back by then has
							 * leaked */
#define FIRST		(1u << HISTOGRAM | 1u << MOTION | 1u << STAGE)
#define CONSUMERS	(FIRST | 1u << CONTACT)

static const char *video_path;
static const char *folder = ".";
static const char *wait_ms = "200";
static bool only_look;
static bool only_gpu;
static bool in_ocaml;			/* the producer and the histogram */
static struct xmem_pool *pool;
static struct xmem_pool *empty_pool;	/* with this handle the daemon, and its memory, stays */
static char pool_name[32];
static struct report report;

static bool fail_xmem(const char *what)
{
	struct xmem_error why = XMEM_INIT(why);
	int err = xmem_get_last_error(&why);

	return crew_fail(false, "%s: %s (%s)", what, err ? why.message : "no reason given",
			 strerror(-err));
}

static struct xmem_pool_info look(void)
{
	struct xmem_pool_info stat = { .size = sizeof(stat) };

	if (xmem_pool_stat(pool, &stat))
		fail_xmem("cannot look at the pool");
	return stat;
}

/* The pool belongs to this demo alone, so no other program's holds are counted. */
static bool open_pool(void)
{
	struct xmem_pool_options options = {
		.size = sizeof(options),
		.flags = XMEM_OPEN_EXCLUSIVE,
		.slots = 64,
		.clients = 16,
		.label = "director",
	};

	snprintf(pool_name, sizeof(pool_name), "demo-%d-%llx", getpid(),
		 (unsigned long long)clock_ns() & 0xffffff);
	pool = xmem_pool_open(pool_name, &options);
	if (!pool)
		return fail_xmem("cannot make the pool");
	report.backend = xmem_pool_backend(pool);
	return true;
}

/* ---- start ---- */

static bool start_producer(void)
{
	const char *arguments[] = {
		in_ocaml ? "demo-producer-ocaml" : "demo-producer",
		"-g", pool_name, video_path, wait_ms, NULL,
	};

	if (!report.on_gpu)
		memmove(&arguments[1], &arguments[2], 4 * sizeof(*arguments));
	return crew_start(&crew[PRODUCER], arguments) && crew_wait(1u << PRODUCER, SAY_READY, NULL);
}

static bool start_consumer(int who)
{
	char publisher[16], program[32];
	const char *arguments[] = { program, pool_name, publisher, folder, NULL };

	snprintf(publisher, sizeof(publisher), "%u",
		 who == CONTACT ? report.stage : report.publisher);
	snprintf(program, sizeof(program), "demo-%s%s", crew[who].name,
		 who == HISTOGRAM && in_ocaml ? "-ocaml" : "");
	return crew_start(&crew[who], arguments);
}

static bool start_all(void)
{
	int i;

	if (!start_producer())
		return false;
	report.publisher = crew[PRODUCER].value;
	for (i = HISTOGRAM; i < CONTACT; i++)
		if (!start_consumer(i))
			return false;
	if (!crew_wait(FIRST, SAY_READY, NULL))
		return false;
	report.stage = crew[STAGE].value;
	if (!start_consumer(CONTACT) || !crew_wait(CONSUMERS, SAY_READY, NULL))
		return false;
	for (i = 0; i < MEMBERS; i++)
		crew[i].began_ns = clock_ns();
	crew_tell(&crew[PRODUCER], TELL_GO);
	return true;
}

/* ---- kill ---- */

static bool pause_members(uint32_t who)
{
	int i;

	for (i = 0; i < MEMBERS; i++)
		if (who & 1u << i)
			crew_tell(&crew[i], TELL_PAUSE);
	return crew_wait(who, SAY_PAUSED, NULL);
}

static void resume_members(uint32_t who)
{
	int i;

	for (i = 0; i < MEMBERS; i++)
		if (who & 1u << i)
			crew_tell(&crew[i], TELL_GO);
}

static uint64_t count_holds(const struct xmem_pool_info *stat)
{
	return stat->holds;
}

static uint64_t count_writing(const struct xmem_pool_info *stat)
{
	return stat->writing;
}

/*
 * Kill @member and look at the pool, without a pause, until @count is 0. Everything that is counted
 * belongs to the victim, and is at least @least before the kill.
 */
static bool kill_and_time(struct member *member, uint64_t (*count)(const struct xmem_pool_info *),
			  uint64_t least, int64_t *ret_ns)
{
	struct xmem_pool_info stat = look();
	int64_t begin, now;

	if (count(&stat) < least)
		return crew_fail(false, "%s says that it has %llu buffers, the pool says %llu",
				 member->name, (unsigned long long)least,
				 (unsigned long long)count(&stat));
	begin = clock_ns();
	if (!crew_kill(member))
		return false;
	do {
		sched_yield();		/* the daemon may need this processor */
		stat = look();
		now = clock_ns();
	} while (count(&stat) && now - begin < RETURN_NS);
	*ret_ns = now - begin;
	report.killed++;
	if (count(&stat))
		return crew_fail(false,
				 "the pool still has %llu buffers of %s, %lld s after its death",
				 (unsigned long long)count(&stat), member->name,
				 RETURN_NS / 1000000000);
	return crew_bury(member);
}

static bool in_the_middle(void)
{
	return crew[PRODUCER].last.frames >= report.planned / 2 ||
	       crew_said(&crew[PRODUCER], SAY_AT_END);
}

static bool held_or_at_end(void)
{
	return crew_said(&crew[MOTION], SAY_HOLDING) || crew_said(&crew[PRODUCER], SAY_AT_END);
}

/* Kill motion while it holds two frames. If the video is over too early, it is decoded again. */
static bool let_motion_hold(void)
{
	if (!crew_wait_until(in_the_middle, report_progress))
		return false;
	crew_tell(&crew[MOTION], TELL_HOLD);
	while (!crew_said(&crew[MOTION], SAY_HOLDING)) {
		if (crew_said(&crew[PRODUCER], SAY_AT_END))
			crew_tell(&crew[PRODUCER], TELL_AGAIN);
		if (!crew_wait_until(held_or_at_end, report_progress))
			return false;
	}
	return true;
}

static bool back_or_nearly_over(void)
{
	return crew_said(&crew[MOTION], SAY_READY) ||
	       crew[PRODUCER].last.frames >= report.planned * 3 / 4;
}

/*
 * The pipeline goes on while motion comes back. If starting a process is so slow that the video
 * would be over by then, the producer is told to wait.
 */
static bool restart_motion(void)
{
	struct member *motion = &crew[MOTION];
	int64_t begin = clock_ns();

	if (!start_consumer(MOTION) || !crew_wait_until(back_or_nearly_over, report_progress))
		return false;
	report.producer_waited = !crew_said(motion, SAY_READY);
	if (report.producer_waited)
		crew_tell(&crew[PRODUCER], TELL_PAUSE);
	if (!crew_wait(1u << MOTION, SAY_READY, report_progress))
		return false;
	if (report.producer_waited)
		crew_tell(&crew[PRODUCER], TELL_GO);
	motion->began_ns = clock_ns();
	report.away_ns = motion->began_ns - begin;
	return true;
}

/* The library learns a moment later that a stream of a paused consumer has released a frame. */
static bool only_motion_holds(void)
{
	return look().holds == crew[MOTION].value;
}

/* The other consumers hold nothing meanwhile, so that the pool counts only motion's frames. */
static bool kill_consumer(void)
{
	const uint32_t others = CONSUMERS & ~(1u << MOTION);
	struct member *motion = &crew[MOTION];

	if (!let_motion_hold() || !pause_members(others))
		return false;
	if (!crew_wait_until(only_motion_holds, report_progress))
		return crew_fail(false, "motion holds %u frames, the pool says %llu", motion->value,
				 (unsigned long long)look().holds);
	report.victim_holds = motion->value;
	report.victim_passed = motion->last.passed;
	if (!kill_and_time(motion, count_holds, motion->value, &report.consumer_return_ns))
		return false;
	resume_members(others);

	return restart_motion();
}

/*
 * The consumers stand still while the producer publishes its last frames, so
 * that these are in flight when it dies.
 */
static bool kill_producer(void)
{
	struct member *producer = &crew[PRODUCER];
	int i;

	if (!crew_wait(1u << PRODUCER, SAY_AT_END, report_progress) || !pause_members(CONSUMERS))
		return false;
	for (i = HISTOGRAM; i < MEMBERS; i++)
		report.before_frames[i] = crew[i].last.frames;
	crew_tell(producer, TELL_FINISH);
	if (!crew_wait(1u << PRODUCER, SAY_HALFWAY, report_progress))
		return false;
	report.published = producer->last.frames;
	report.in_flight = report.published - crew[HISTOGRAM].last.passed;
	/* at least the buffer that it writes, and those that it has acquired ahead */
	if (!kill_and_time(producer, count_writing, 1, &report.producer_return_ns))
		return false;
	resume_members(CONSUMERS);
	return true;
}

/* ---- the end ---- */

static bool all_was_read(void)
{
	int i;

	if (!report.in_flight)
		return crew_fail(false, "nothing was in flight when the producer died");
	for (i = HISTOGRAM; i < MEMBERS; i++) {
		uint64_t all = i == CONTACT ? crew[STAGE].last.frames : report.published;

		report.after_frames[i] = crew[i].last.frames;
		if (crew[i].last.passed != all)
			return crew_fail(false, "%s saw the end after %llu of %llu publications",
					 crew[i].name, (unsigned long long)crew[i].last.passed,
					 (unsigned long long)all);
		if (!crew[i].last.frames)
			return crew_fail(false, "%s received nothing", crew[i].name);
		report.corrupt += crew[i].corrupt;
	}
	return true;
}

/* The buffers of the pool that are in use although only the director is left. */
static uint64_t count_leaked(const struct xmem_pool_info *stat)
{
	return (uint64_t)stat->attached + stat->holds + stat->zombies + stat->clients - 1;
}

static bool count_what_is_left(void)
{
	int64_t deadline = clock_ns() + RETURN_NS;
	struct xmem_pool_info stat;

	do {
		stat = look();
	} while (count_leaked(&stat) && clock_ns() < deadline && !sched_yield());
	report.left = stat;
	report.leaked = count_leaked(&stat);
	return !*crew_failure();
}

static bool direct(void)
{
	return open_pool() && start_all() && kill_consumer() && kill_producer() &&
	       crew_wait_end(CONSUMERS, report_progress) && all_was_read() && count_what_is_left();
}

/* ---- memory of the GPU ---- */

static bool look_at_gpu(uint64_t *ret_bytes)
{
	if (!gpu_open() || !gpu_bytes_in_use(ret_bytes))
		return crew_fail(false, "cannot use the GPU: %s", gpu_why());
	return true;
}

/*
 * The demo must leave nothing behind: check that neither the pool nor a process is there any more.
 */
static bool count_gpu_leak(void)
{
	int64_t deadline = clock_ns() + RETURN_NS;

	if (!report.on_gpu)
		return true;
	do {
		if (!look_at_gpu(&report.gpu_after))
			return false;
	} while (report.gpu_after > report.gpu_before && clock_ns() < deadline && !sched_yield());
	if (report.gpu_after > report.gpu_before)
		report.gpu_leaked = report.gpu_after - report.gpu_before;
	return true;
}

static bool prepare_gpu(void)
{
	if (!report.on_gpu)
		return true;
	if (!look_at_gpu(&report.gpu_before))
		return false;
	snprintf(report.gpu, sizeof(report.gpu), "%s", gpu_name());
	empty_pool = xmem_pool_open(NULL, NULL);
	return empty_pool || fail_xmem("cannot make an empty pool");
}

static void path_in_folder(char path[4200], const char *name)
{
	snprintf(path, 4200, "%s/%s", folder, name);
}

/* After a run that failed, remove everything, except the log if it says more. */
static void clean_up(bool keep_log)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (!strcmp(entry->d_name, "contact.png") ||
		    !strncmp(entry->d_name, ".contact.", strlen(".contact.")) ||
		    (!keep_log && !strcmp(entry->d_name, "log")))
			unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
	rmdir(folder);			/* unless there is something else in it */
}

static int usage(const char *program)
{
	fprintf(stderr,
		"usage: %s [options] -- VIDEO\n"
		"  -o FOLDER        where results go (.)\n"
		"  -w MILLISECONDS  how long the producer waits for slow consumers (200)\n"
		"  -g               frames are in the memory of a GPU\n"
		"  -G               only look whether there is a GPU, and print which\n"
		"  -l               producer and histogram are the programs in OCaml\n"
		"  -p               plain lines, also on a terminal\n"
		"  -c               only look whether VIDEO is one\n", program);
	return 2;
}

static bool read_arguments(int argc, char **argv)
{
	int option;

	while ((option = getopt(argc, argv, "o:w:gGlpc")) != -1) {
		if (option == 'o')
			folder = optarg;
		else if (option == 'w')
			wait_ms = optarg;
		else if (option == 'g')
			report.on_gpu = true;
		else if (option == 'G')
			only_gpu = true;
		else if (option == 'l')
			in_ocaml = true;
		else if (option == 'p')
			report.plain = true;
		else if (option == 'c')
			only_look = true;
		else
			return false;
	}
	if (only_gpu)
		return optind == argc;
	video_path = argv[optind];
	return optind + 1 == argc && strlen(folder) < 4000 && strlen(video_path) < 4096;
}

static int say_gpu(void)
{
	bool there = gpu_open();

	puts(there ? gpu_name() : gpu_why());
	return !there;
}

static int refuse(const char *why)
{
	fprintf(stderr, "demo: %s\n", why);
	return 1;
}

/*
 * The log or a file of the pool would get the number of a closed standard descriptor, and our
 * output would be written into it. So another file takes that number, to which writing fails as it
 * should.
 */
static bool fill_standard_descriptors(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDONLY);
	while (fd >= 0 && fd <= STDERR_FILENO);
	return fd >= 0 && !close(fd);
}

int main(int argc, char **argv)
{
	char why[VIDEO_TEXT], path[4200], text[VIDEO_TEXT + 4200];
	bool good;
	int log;

	if (!fill_standard_descriptors())
		return refuse("cannot open /dev/null");
	if (!read_arguments(argc, argv))
		return usage(argv[0]);
	if (only_gpu)
		return say_gpu();
	if (!video_probe(video_path, &report.planned, why)) {
		snprintf(text, sizeof(text), "%s: %s", video_path, why);
		return refuse(text);
	}
	if (only_look)
		return 0;
	if (report.planned < FRAMES_LEAST)
		report.planned = FRAMES_LEAST;
	path_in_folder(path, "log");
	if ((mkdir(folder, 0777) && errno != EEXIST) ||
	    (log = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666)) < 0) {
		snprintf(text, sizeof(text), "cannot write %s: %s", path, strerror(errno));
		return refuse(text);
	}
	report_open(&report, log, video_path, folder);
	good = crew_prepare(log) && prepare_gpu() && direct();
	crew_dismiss();
	xmem_pool_close(pool);
	good = good && count_gpu_leak();
	xmem_pool_close(empty_pool);
	report_stop_progress();
	if (!good) {
		clean_up(crew_failure_needs_log());
		snprintf(text, sizeof(text), "%s%s%s%s", crew_failure(),
			 crew_failure_needs_log() ? " (see " : "",
			 crew_failure_needs_log() ? path : "",
			 crew_failure_needs_log() ? ")" : "");
		return refuse(text);
	}
	if (!report_print())
		return refuse("standard output: it cannot be written");
	return report.corrupt || report.leaked || report.gpu_leaked ? 1 : 0;
}
