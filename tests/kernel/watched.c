// SPDX-License-Identifier: MIT
/*
 * watched [NAME...]: the cost for processes that hand buffers over in a pool, while another process
 * reads all of that pool's files in sysfs again and again, without a pause.
 *
 * The test compares the processor time that one buffer costs the processes that hand it over, while
 * the reader reads and while it is stopped. So the reader's own work does not count, and any work
 * or wait that it causes does. In a machine whose clock counts instructions (VM_COUNTS=1, as in
 * suites.sh) the figure counts instructions, and does not depend on other load of the host. The
 * test does not see that the next access to a cache line takes longer after the reader has read it:
 * docs/kernel.md says what that costs.
 */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "attack.h"
#include "xmem.h"

#define NAME		"watched"
#define WORKERS		8u
/* Every slot and every client is in use, so all values that are read change. */
#define BUFFERS		XMEM_GROUP_SLOTS
#define SLOTS		(WORKERS * BUFFERS)
#define CLIENTS		(2 * WORKERS)
#define BYTES		64u
#define ROUNDS		11u
#define WINDOW_MS	50
#define AT_MOST		1010u		/* of 1000; the rest allows for cache lines */

static struct shared {
	struct {
		u64 count;		/* buffers that it has received and released */
	} __attribute__((aligned(64))) worker[WORKERS];
	unsigned int readings;		/* how often it has read all files */
	char folder[64];
} *shared;

/* ---- the workers ---- */

static struct xmem_pool *writer, *reader;
static struct xmem_subscription *subscription;

/*
 * Each worker follows itself, as another client. So no worker waits until another one has the
 * processor, and only the reader of sysfs looks at the words that a worker writes.
 */
static const char *gets_ready(void)
{
	struct xmem_pool_options options = {
		.size = sizeof(options), .flags = XMEM_OPEN_WRITER,
		.slots = SLOTS, .clients = CLIENTS,
	};
	struct xmem_subscribe_options follow = {
		.size = sizeof(follow), .flags = XMEM_SUBSCRIBE_PUBLISHER,
	};

	writer = xmem_pool_open(NAME, &options);
	WANT(writer);
	SAME(xmem_preallocate(writer, BYTES, BUFFERS, NULL), 0);
	options.flags = 0;
	reader = xmem_pool_open(NAME, &options);
	WANT(reader);
	follow.publisher = xmem_pool_client(writer);
	subscription = xmem_subscribe(reader, &follow);
	WANT(subscription);
	return NULL;
}

/* Publishes a buffer, receives all that there are, and counts them. */
static const char *works(u64 *count)
{
	struct xmem_buffer *buffer = xmem_acquire(writer, BYTES, 0);

	WANT(buffer);
	SAME(xmem_publish(buffer, NULL, NULL), 0);
	while ((buffer = xmem_receive(subscription, 0))) {
		xmem_release(buffer);
		xm_store(count, *count + 1);
	}
	return NULL;
}

static const char *hands_over(void *argument)
{
	unsigned int number = (unsigned int)(size_t)argument;

	SAME(become(VICTIM), 0);
	GOES_WELL(gets_ready());
	kid_pause();
	for (;;)
		GOES_WELL(works(&shared->worker[number].count));
}

/* ---- the reader ---- */

/* All files of the folder, each to its end. */
static const char *reads_all(const char *path)
{
	char page[4096], name[320];
	struct dirent *entry;
	DIR *folder = opendir(path);
	ssize_t n;
	int file;

	WANT(folder);
	while ((entry = readdir(folder))) {
		if (entry->d_type != DT_REG || !strcmp(entry->d_name, "uevent"))
			continue;
		snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
		file = open(name, O_RDONLY | O_CLOEXEC);
		WANT(file >= 0);
		while ((n = read(file, page, sizeof(page))) > 0)
			;
		close(file);
		SAME(n, 0);
	}
	closedir(folder);
	return NULL;
}

static const char *watches(void *unused)
{
	(void)unused;
	SAME(become(VICTIM), 0);
	GOES_WELL(reads_all(shared->folder));
	kid_say_ready();
	for (;;) {
		GOES_WELL(reads_all(shared->folder));
		xm_store(&shared->readings, shared->readings + 1);
	}
}

/* Stops the reader, or lets it go on. */
static const char *let_read(const struct kid *watcher, bool reads)
{
	unsigned int before = xm_load(&shared->readings);
	int status;

	SAME(kill(watcher->pid, reads ? SIGCONT : SIGSTOP), 0);
	if (reads) {
		WANT(EVENTUALLY(xm_load(&shared->readings) != before));
		return NULL;
	}
	SAME(waitpid(watcher->pid, &status, WUNTRACED), watcher->pid);
	WANT(WIFSTOPPED(status));
	return NULL;
}

/* ---- the comparison ---- */

/* The folder of the only pool. */
static const char *find_folder(void)
{
	const char *folder = pool_folder();

	WANT(folder[0]);
	snprintf(shared->folder, sizeof(shared->folder), "%s", folder);
	return NULL;
}

static u64 all_counts(void)
{
	u64 sum = 0;
	unsigned int i;

	for (i = 0; i < WORKERS; i++)
		sum += xm_load(&shared->worker[i].count);
	return sum;
}

/* The processor time of so many kids. */
static const char *add_up(const struct kid *kids, unsigned int count, u64 *ret_ns)
{
	struct timespec time;
	clockid_t clock;
	unsigned int i;

	*ret_ns = 0;
	for (i = 0; i < count; i++) {
		SAME(clock_getcpuclockid(kids[i].pid, &clock), 0);
		SAME(clock_gettime(clock, &time), 0);
		*ret_ns += time.tv_sec * 1000000000ULL + time.tv_nsec;
	}
	return NULL;
}

/* Returns picoseconds of processor time. */
static const char *measure(const struct kid workers[WORKERS], u64 *ret_of_one)
{
	u64 count = all_counts(), before, after;

	GOES_WELL(add_up(workers, WORKERS, &before));
	poll(NULL, 0, WINDOW_MS);	/* this time is measured */
	GOES_WELL(add_up(workers, WORKERS, &after));
	count = all_counts() - count;
	WANT(count);
	*ret_of_one = (after - before) * 1000 / count;
	return NULL;
}

static const char *start_workers(struct kid workers[WORKERS])
{
	unsigned int i;

	for (i = 0; i < WORKERS; i++)
		GOES_WELL(kid_start(&workers[i], hands_over, (void *)(size_t)i));
	for (i = 0; i < WORKERS; i++)
		kid_go_on(&workers[i]);
	return NULL;
}

/* A worker that fails says why, and stops working. */
static const char *all_work(const struct kid workers[WORKERS])
{
	unsigned int i;
	u64 before;

	for (i = 0; i < WORKERS; i++) {
		before = xm_load(&shared->worker[i].count);
		if (!EVENTUALLY(xm_load(&shared->worker[i].count) != before))
			return kid_ready(&workers[i]);
	}
	return NULL;
}

static int compare(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

static const char *reading_all_costs_little(void)
{
	u64 alone[ROUNDS], watched[ROUNDS], share[ROUNDS], middle, reading;
	struct kid workers[WORKERS], watcher;
	unsigned int i;

	shared = shared_memory(sizeof(*shared));
	WANT(shared);
	GOES_WELL(start_workers(workers));
	GOES_WELL(find_folder());
	GOES_WELL(kid_start(&watcher, watches, NULL));
	for (i = 0; i < ROUNDS; i++) {
		GOES_WELL(let_read(&watcher, false));
		GOES_WELL(measure(workers, &alone[i]));
		GOES_WELL(let_read(&watcher, true));
		GOES_WELL(measure(workers, &watched[i]));
		share[i] = watched[i] * 1000 / alone[i];
	}
	GOES_WELL(all_work(workers));
	GOES_WELL(add_up(&watcher, 1, &reading));
	qsort(share, ROUNDS, sizeof(*share), compare);
	qsort(alone, ROUNDS, sizeof(*alone), compare);
	middle = share[ROUNDS / 2];
	figure("8 processes, a buffer takes %.1f ns of a processor; while all of sysfs is read "
	       "%llu of 1000 (p50; %llu to %llu), at most %u; it was read %u times, each in "
	       "%.0f us, and %llu buffers were handed over", alone[ROUNDS / 2] / 1e3,
	       (unsigned long long)middle,
	       (unsigned long long)share[0], (unsigned long long)share[ROUNDS - 1], AT_MOST,
	       shared->readings, reading / 1e3 / (shared->readings + 1),
	       (unsigned long long)all_counts());
	return middle <= AT_MOST ? NULL :
	       wrong("a buffer takes %llu of 1000 while all of sysfs is read",
		     (unsigned long long)middle);
}

static const struct attack attacks[] = {
	{ "K16_reading_all_slots_costs_little", reading_all_costs_little, true },
};

int main(int argc, char **argv)
{
	setenv("XMEM_BACKEND", "kernel", 1);
	return attack_main(attacks, sizeof(attacks) / sizeof(*attacks), argc, argv);
}
