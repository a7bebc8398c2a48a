// SPDX-License-Identifier: MIT
/*
 * Measures one peer: peer-NAME MEASURE BYTES SUBSCRIBERS SECONDS, one line of JSON.
 *
 *   cycle     one process: loan, send, receive, done
 *   polling   half a round trip of two processes on two cores that poll
 *   sleeping  as polling, but each sleeps until there is a message
 *   fan-out   from the loan until the last of SUBSCRIBERS, which sleep, has it
 *   kill      SECONDS is a number of kills: a subscriber that holds a message is killed; how
 *             long until the publisher can have that buffer again, and what stays behind
 *
 * The first 64 bytes of a message are written and read. The other bytes are not used: a transport
 * that shares memory does not touch them, but one that copies does.
 */
#include "bench/floor.h"
#include "bench/measure.h"
#include "peer.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TOUCHED		64
#define MOST_BATCHES	20000
#define RAW_GAMES	21
#define NEVER_NS	4e9	/* a buffer that is not back by then is lost */
#define SOON_NS		20e6	/* time to wait for further buffers once two are lost */

struct message {
	uint64_t last;		/* nothing follows */
	char rest[TOUCHED - 8];
};

/* Shared by the processes of a measurement. */
struct control {
	uint32_t arrived;	/* a futex: steps of all processes together */
	uint32_t acks;		/* a futex */
	double killed_at, returned_at;
	unsigned int batches;
	double value[MOST_BATCHES];
	unsigned int kills, returned, left;	/* of kill */
	struct raw_shared raw;
	double raw_line;	/* ns one way: on a virtual machine it differs from run to run */
};

static struct control *control;
static struct peer_shape shape;
static double seconds;
static unsigned int hang_seconds = 60;	/* a measure that takes longer hangs */
static int cpus[2];

void peer_die(const char *what)
{
	fprintf(stderr, "%s: %s: %s\n", peer_name, what, errno ? strerror(errno) : "failed");
	_exit(2);
}

static pid_t start(void (*run)(unsigned int number), unsigned int number, int cpu)
{
	pid_t child = fork();

	if (child < 0)
		peer_die("fork");
	if (child)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(hang_seconds);
	pin_to(cpu);
	run(number);
	peer_leave();
	exit(0);
}

static void step(void)
{
	__atomic_fetch_add(&control->arrived, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &control->arrived, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void wait_for(uint32_t *word, uint32_t value)
{
	uint32_t now;

	while ((now = __atomic_load_n(word, __ATOMIC_ACQUIRE)) < value)
		syscall(SYS_futex, word, FUTEX_WAIT, now, NULL, NULL, 0);
}

/* Wait until all @count processes have come here for the @nth time. */
static void meet(unsigned int nth, unsigned int count)
{
	step();
	wait_for(&control->arrived, nth * count);
}

/* ---- messages ---- */

static void *loan(void)
{
	void *buffer;

	do
		buffer = peer_loan();
	while (!buffer);
	return buffer;
}

static void send_one(bool last)
{
	struct message *message = loan();

	memset(message, 1, sizeof(*message));
	message->last = last;
	peer_send(message);
}

/* Returns whether it was the last one. */
static bool receive_one(bool sleep)
{
	const struct message *message;
	uint64_t sum = 0;
	unsigned int n;
	bool last;

	do
		message = peer_receive(sleep);
	while (!message);
	for (n = 0; n < sizeof(message->rest); n += 8)
		sum += message->rest[n];
	if (sum != sizeof(message->rest) / 8)
		peer_die("the message received is not the one sent");
	last = message->last;
	peer_done(message);
	return last;
}

static void note(double ns)
{
	if (control->batches < MOST_BATCHES)
		control->value[control->batches++] = ns;
}

/* ---- measures ---- */

static void cycle_side(unsigned int side)
{
	unsigned int batch = shape.bytes > 100000 ? 1 : 100, n;
	double end, start;

	peer_publish(0);
	peer_follow(0, 0);
	end = now_ns() + seconds * 1e9;
	do {
		start = now_ns();
		for (n = 0; n < batch; n++) {
			send_one(false);
			receive_one(false);
		}
		note((now_ns() - start) / batch);
	} while (now_ns() < end);
}

static bool sleeps;

static void play_raw(unsigned int side)
{
	double game[RAW_GAMES];
	unsigned int n;

	for (n = 0; n < RAW_GAMES; n++)
		game[n] = floor_ping_pong(&control->raw, side, 0, 0, 200);
	if (!side)
		control->raw_line = figure_of(game, RAW_GAMES).median;
}

static void ping_side(unsigned int side)
{
	unsigned int batch = shape.bytes > 100000 || sleeps ? 1 : 50, n;
	double end, start;

	peer_publish(side);
	meet(1, 2);
	peer_follow(!side, 0);
	meet(2, 2);
	play_raw(side);
	if (side) {
		while (!receive_one(sleeps))
			send_one(false);
		return;
	}
	end = now_ns() + seconds * 1e9;
	do {
		start = now_ns();
		for (n = 0; n < batch; n++) {
			send_one(false);
			receive_one(sleeps);
		}
		note((now_ns() - start) / batch / 2);
	} while (now_ns() < end);
	send_one(true);
	meet(3, 2);
}

static void ping_side_and_meet(unsigned int side)
{
	ping_side(side);
	if (side)
		meet(3, 2);	/* no process leaves before the last message has come */
}

static void fan_side(unsigned int number)
{
	unsigned int all = shape.subscribers, sent = 0;
	double end, start;
	bool last = false;

	if (!number) {
		peer_publish(0);
		meet(1, all + 1);
		meet(2, all + 1);
		end = now_ns() + seconds * 1e9;
		do {
			start = now_ns();
			last = start > end;
			send_one(last);
			sent++;
			wait_for(&control->acks, sent * all);
			note(now_ns() - start);
		} while (!last);
		return;
	}
	meet(1, all + 1);
	peer_follow(0, number - 1);
	meet(2, all + 1);
	while (!last) {
		last = receive_one(true);
		if (__atomic_add_fetch(&control->acks, 1, __ATOMIC_SEQ_CST) % all == 0)
			syscall(SYS_futex, &control->acks, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	}
}

/* ---- kill ---- */

/* Steps of one kill: the victim follows, the publisher sends, the victim holds, it is dead. */
static void victim(unsigned int number)
{
	peer_follow(0, 0);
	step();
	if (!peer_receive(true))
		peer_die("receive");
	step();
	for (;;)
		pause();
}

/* It has all buffers but the one that it sends, so what it gets is that one. */
static void killers_publisher(unsigned int number)
{
	void *buffer[128];
	unsigned int have = 0, kills = seconds, missing = 0, n;
	double patience = NEVER_NS;

	peer_publish(0);
	while (have < shape.buffers && (buffer[have] = peer_loan()))
		have++;
	if (have < shape.buffers)
		peer_die("the publisher does not get all of its buffers");
	step();
	for (n = 0; n < kills && have; n++) {
		void *back;

		wait_for(&control->arrived, 1 + 4 * n + 1);
		memset(buffer[--have], 1, TOUCHED);
		peer_send(buffer[have]);
		step();
		wait_for(&control->arrived, 1 + 4 * n + 3);
		/* A host may need this CPU to notice the death. */
		while (!(back = peer_loan()) && (!control->killed_at ||
						 now_ns() < control->killed_at + patience))
			sched_yield();
		control->returned_at = back ? now_ns() : 0;
		if (back)
			buffer[have++] = back;
		else if (++missing == 2)
			patience = SOON_NS;
		control->left = have;
		step();
	}
}

static unsigned int entries(const char *folder, const char *prefix)
{
	DIR *open = opendir(folder);
	struct dirent *entry;
	unsigned int count = 0;

	while (open && (entry = readdir(open)))
		count += entry->d_name[0] != '.' &&
			 !strncmp(entry->d_name, prefix, strlen(prefix));
	if (open)
		closedir(open);
	return count;
}

/* Count the names in the folders where these transports leave them. */
static unsigned int files(void)
{
	return entries("/dev/shm", "") + entries("/tmp", "peer-") + entries("/tmp", "roudi");
}

static unsigned int files_of_kills;

static void kill_many(void)
{
	pid_t publisher = start(killers_publisher, 0, cpus[0]);
	unsigned int kills = seconds, before, n;
	int status;

	wait_for(&control->arrived, 1);
	before = files();
	for (n = 0; n < kills; n++) {
		pid_t child = start(victim, 0, cpus[1]);

		control->killed_at = 0;
		wait_for(&control->arrived, 1 + 4 * n + 3);
		control->killed_at = now_ns();
		kill(child, SIGKILL);
		waitpid(child, &status, 0);
		wait_for(&control->arrived, 1 + 4 * n + 4);
		control->kills++;
		if (control->returned_at) {
			control->returned++;
			note(control->returned_at - control->killed_at);
		} else if (!control->left) {
			break;	/* there is nothing left to lose */
		}
	}
	files_of_kills = files() - before;
	kill(publisher, SIGKILL);
	waitpid(publisher, &status, 0);
}

/* ---- all ---- */

static void run_all(void (*side)(unsigned int number), unsigned int count)
{
	unsigned int n, left;
	pid_t child[64];
	int status, worst = 0;

	for (n = 0; n < count; n++)
		child[n] = start(side, n, cpus[n % 2]);
	for (left = count; left; left--) {
		pid_t ended = wait(&status);

		for (n = 0; n < count && child[n] != ended; n++)
			;
		if (n == count)
			left++;		/* not one of ours: a host that has ended */
		else
			child[n] = 0;
		worst |= n < count ? status : 0;
		if (worst)
			for (n = 0; n < count; n++)
				if (child[n])
					kill(child[n], SIGKILL);
	}
	if (worst) {
		peer_cleanup();
		errno = 0;
		peer_die("a process failed or hung");
	}
}

static void print(const char *measure, int files_left)
{
	unsigned int count = control->batches;

	printf("{\"peer\": \"%s\", \"version\": \"%s\", \"measure\": \"%s\", \"bytes\": %zu, "
	       "\"subscribers\": %u, \"shares\": %s, \"count\": %u, \"files_left\": %d",
	       peer_name, peer_version, measure, shape.bytes, shape.subscribers,
	       peer_shares ? "true" : "false", count, files_left);
	if (count) {
		struct figure figure = figure_of(control->value, count);

		printf(", \"min_ns\": %.1f, \"median_ns\": %.1f, \"high_ns\": %.1f", figure.min,
		       figure.median, figure.high);
	}
	if (control->raw_line)
		printf(", \"raw_line_ns\": %.1f", control->raw_line);
	if (!strcmp(measure, "kill"))
		printf(", \"kills\": %u, \"returned\": %u, \"leaked_buffers\": %u, "
		       "\"leaked_bytes\": %zu, \"files_of_kills\": %d", control->kills,
		       control->returned, peer_shares ? shape.buffers - control->left : 0,
		       peer_shares ? (shape.buffers - control->left) * shape.bytes : 0,
		       (int)files_of_kills);
	puts("}");
}

/* Few large messages, because all of them exist at once; no more than a publisher may loan. */
static unsigned int buffers_for(const char *measure, size_t bytes)
{
	if (!strcmp(measure, "kill"))
		return peer_most_loans;
	return bytes > 4 << 20 ? 3 : 16;
}

int main(int argc, char **argv)
{
	unsigned int before;
	const char *measure = argc == 5 ? argv[1] : "";

	if (argc != 5 || atol(argv[2]) < TOUCHED || atoi(argv[3]) < 1 || atoi(argv[3]) > 32) {
		fputs("usage: peer-NAME cycle|polling|sleeping|fan-out|kill BYTES SUBSCRIBERS "
		      "SECONDS\n", stderr);
		return 2;
	}
	if (!strcmp(measure, "kill"))
		hang_seconds = 230;	/* some hosts take seconds to notice a death */
	alarm(hang_seconds);
	if (!pick_cpus(cpus))
		peer_die("two CPUs are needed");
	shape.bytes = atol(argv[2]);
	shape.subscribers = atoi(argv[3]);
	seconds = atof(argv[4]);
	shape.channels = strstr(measure, "ing") ? 2 : 1;
	shape.buffers = buffers_for(measure, shape.bytes);
	snprintf(shape.name, sizeof(shape.name), "peer-%d", (int)getpid());
	control = mmap(NULL, sizeof(*control), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	if (control == MAP_FAILED)
		peer_die("mmap");
	before = files();
	peer_setup(&shape);
	sleeps = !strcmp(measure, "sleeping");
	if (!strcmp(measure, "cycle"))
		run_all(cycle_side, 1);
	else if (shape.channels == 2)
		run_all(ping_side_and_meet, 2);
	else if (!strcmp(measure, "fan-out"))
		run_all(fan_side, 1 + shape.subscribers);
	else if (!strcmp(measure, "kill") && peer_shares)
		kill_many();
	peer_cleanup();
	print(measure, (int)(files() - before));
	return 0;
}
