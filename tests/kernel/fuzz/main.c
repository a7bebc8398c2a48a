// SPDX-License-Identifier: MIT
/*
 * A fuzzer of xmem.ko that is guided by kcov. It runs programs of requests, mappings, files,
 * signals and processes (fuzz.h), whose structs lie in memory that changes and faults. It keeps a
 * program that is the first to reach an edge of the module, and mutates it further.
 *
 *   fuzz [-t SECONDS] [-c CORPUS] [-o FOLDER]   XMEM_TEST_SEED=...
 *   fuzz -r TIMES FILE...     runs the programs of each file, with one executor for each
 *   fuzz -m CORPUS -o FOLDER [-t SECONDS]  finds the fewest and shortest programs that reach all
 *                             edges of the corpus; after so long it makes none shorter
 *   fuzz -p JOURNAL           prints the last programs of a dead machine as text, the oldest first
 *
 * If the kernel has no kcov, a new answer counts as a new edge: a request with its errno. FOLDER
 * gets the grown corpus (corpus.txt) and a journal of each executor. A program is in the journal,
 * on the disk, before it begins.
 *
 * At times an executor is killed at a random moment, and another one follows. Meanwhile a bystander
 * of another user, in a pool that all executors join, keeps its holds. The fuzzer judges that no
 * executor ends by itself or hangs, that pools, files and memory are given back, and that the
 * kernel has no new taint. The VM judges the kernel's log.
 */
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "../failing.h"
#include "../gpu.h"
#include "fuzz.h"

#define EXECUTORS	4
#define STANDS_STILL	120		/* so many seconds without an op of any executor */
#define LEFT_KIB	(24 << 10)	/* of kernel memory that a run may leave in use */
#define QUARANTINE_KIB	(96 << 10)	/* and with KASAN, which keeps freed memory */

static struct fuzz_shared *shared;
static struct fuzz_executor executor;		/* in an executor's process */
static const char *folder;
static u32 made;				/* programs that add_each_request has added */
static int journal[EXECUTORS];			/* files; or -1 */

/* ---- the corpus as text ---- */

static void load_corpus(const char *path)
{
	FILE *from = fopen(path, "r");

	if (!from) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		exit(2);
	}
	while (shared->corpus < FUZZ_CORPUS &&
	       fuzz_read(from, path, &shared->program[shared->corpus]))
		shared->corpus++;
	fclose(from);
	shared->given = shared->corpus;
}

/* Adds programs for each request of the table, so that a new request needs no corpus. */
static void add_each_request(void)
{
	struct actor a = { .random = 0x9e3779b97f4a7c15ULL };
	unsigned int i;

	for (i = 0; i < fields_requests(); i++) {
		if (!fields_request(i))
			continue;
		fuzz_changes_of(&a, &shared->program[shared->corpus++], i);
		fuzz_words_of(&a, &shared->program[shared->corpus++], i);
		if (shared->failing)
			fuzz_failures_of(&a, &shared->program[shared->corpus++], i);
	}
	shared->given = made = shared->corpus;
}

static FILE *open_in_folder(const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return fopen(path, "w");
}

static void save_corpus(void)
{
	FILE *to = folder ? open_in_folder("corpus.txt") : NULL;
	bool whole = to;
	u32 i;

	for (i = made; to && i < shared->corpus; i++)
		fuzz_print(to, &shared->program[i]);
	if (to)
		whole = !ferror(to) && !fclose(to);
	if (folder && !whole)
		fail("corpus.txt", "%s", strerror(errno));
}

/*
 * The journals stay open in this process, so that an executor never closes one last. An executor
 * may be killed while its allocations fail. In VMs the file is the host's (9p), whose close
 * allocates. If that allocation failed, no file of the host could be opened any more.
 */
static void open_journals(void)
{
	char path[512];
	unsigned int i;

	for (i = 0; i < EXECUTORS; i++) {
		journal[i] = -1;
		if (!folder)
			continue;
		snprintf(path, sizeof(path), "%s/journal-%u", folder, i);
		journal[i] = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
		if (journal[i] < 0)
			fail("journal", "%s: %s", path, strerror(errno));
	}
}

static int print_journal(const char *path)
{
	static struct fuzz_program p[FUZZ_JOURNAL];
	FILE *from = fopen(path, "r");
	u32 n = from ? fread(p, sizeof(*p), FUZZ_JOURNAL, from) : 0, i, first = 0;

	if (!n) {
		fprintf(stderr, "%s: no programs\n", path);
		return 2;
	}
	for (i = 0; i < n; i++)
		if (p[i].ops && p[i].number < p[first].number)
			first = i;
	for (i = 0; i < n; i++)
		if (p[(first + i) % n].ops)
			fuzz_print(stdout, &p[(first + i) % n]);
	fclose(from);
	return 0;
}

/* ---- executors ---- */

static pid_t start_executor(unsigned int number)
{
	pid_t pid = fork();
	int err;

	if (pid) {
		setpgid(pid, pid);
		return pid;
	}
	setpgid(0, 0);
	err = executor_prepare(&executor, shared, number, journal[number]);
	/* Without the programs of its predecessor. */
	executor.worker[0].a.random += 2 * (shared->programs << 8);
	if (err) {
		printf("executor %u: %s\n", number, strerror(-err));
		_exit(1);
	}
	executor_fuzz(&executor);
	_exit(1);
}

/* Kills it with all processes that it has started. */
static void kill_executor(pid_t pid)
{
	kill(-pid, SIGKILL);
}

/* Repairs what it has left unfinished in the shared memory. */
static void forget_executor(pid_t pid)
{
	kill(-pid, SIGKILL);
	if (shared->adding == pid)
		shared->adding = 0;
}

/* ---- the run ---- */

struct run {
	pid_t pid[EXECUTORS];
	unsigned int alive, killed;
	pid_t victim;			/* was killed, and is not yet reaped */
	u64 ops, moved_ns;		/* when the last op was done */
	u64 next_kill;			/* at this number of programs */
	char trouble[128];
};

static unsigned int number_of(const struct run *r, pid_t pid)
{
	unsigned int i;

	for (i = 0; i < EXECUTORS; i++)
		if (r->pid[i] == pid)
			return i;
	return EXECUTORS;
}

static void executor_ended(struct run *r, pid_t pid, int status)
{
	unsigned int n = number_of(r, pid);
	bool time_is_left = executor_goes_on(shared);

	if (n == EXECUTORS)		/* a child that an executor left */
		return;
	forget_executor(pid);
	r->alive--;
	r->pid[n] = 0;
	if (pid == r->victim)
		r->victim = 0;
	else if (status && !r->trouble[0])
		snprintf(r->trouble, sizeof(r->trouble), "executor %u ended with status 0x%x", n,
			 status);
	if (time_is_left && !r->trouble[0]) {
		r->pid[n] = start_executor(n);
		r->alive++;
	}
}

static void look_at_progress(struct run *r)
{
	u64 now = raw_now_ns();

	if (shared->ops != r->ops)
		r->moved_ns = now;
	r->ops = shared->ops;
	if (now - r->moved_ns > STANDS_STILL * 1000000000ULL && !r->trouble[0])
		snprintf(r->trouble, sizeof(r->trouble), "no op in %d s", STANDS_STILL);
}

/* From time to time an executor is killed, whatever it does. */
static void kill_one(struct run *r, struct actor *a)
{
	unsigned int n = chance(a) % EXECUTORS;

	if (r->victim || !r->pid[n] || shared->programs < r->next_kill)
		return;
	r->next_kill = shared->programs + 16 + chance(a) % 64;
	r->victim = r->pid[n];
	r->killed++;
	kill_executor(r->victim);
}

static void reap(struct run *r)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		executor_ended(r, pid, status);
}

static const char *fuzz(struct run *r, struct actor *a, struct pair *bystander)
{
	struct timespec second = { .tv_sec = 1 };
	const char *trouble = NULL;
	sigset_t children;
	unsigned int i;

	sigemptyset(&children);
	sigaddset(&children, SIGCHLD);
	sigprocmask(SIG_BLOCK, &children, NULL);
	r->moved_ns = raw_now_ns();
	for (i = 0; i < EXECUTORS; i++, r->alive++)
		r->pid[i] = start_executor(i);
	while (r->alive && !trouble && !r->trouble[0]) {
		sigtimedwait(&children, NULL, &second);
		reap(r);
		look_at_progress(r);
		if (executor_goes_on(shared))
			kill_one(r, a);
		trouble = pair_look(bystander);
	}
	for (i = 0; i < EXECUTORS; i++)
		if (r->pid[i])
			kill_executor(r->pid[i]);
	while (wait(NULL) > 0)
		;
	return trouble;
}

/* ---- the bystander ---- */

/* A pool's owner is the fsuid that made it. The device must be open to all users. */
static const char *hand_over_as_bystander(struct pair *bystander)
{
	const char *trouble;

	if (chmod("/dev/xmem", 0666))
		return "chmod of the device";
	setfsuid(FUZZ_BYSTANDER);
	trouble = pair_hand_over(bystander, FUZZ_KEPT);
	setfsuid(0);
	return trouble;
}

/* ---- what is left ---- */

static long number_in(const char *path, const char *name)
{
	char line[256];
	FILE *from = fopen(path, "r");
	size_t length = strlen(name);
	long number = -1;

	while (from && number < 0 && fgets(line, sizeof(line), from))
		if (!strncmp(line, name, length))
			number = atol(line + length);
	if (from)
		fclose(from);
	return number;
}

/* Returns the memory that is in use after the kernel has given back all that it can. */
static long kernel_kib(void)
{
	FILE *caches = fopen("/proc/sys/vm/drop_caches", "w");

	if (caches) {
		fputs("2", caches);
		fclose(caches);
	}
	return number_in("/proc/meminfo", "SUnreclaim:") +
		number_in("/proc/meminfo", "PageTables:") +
		number_in("/proc/meminfo", "Shmem:");
}

static void judge_memory(long before)
{
	long most = shared->kcov ? QUARANTINE_KIB : LEFT_KIB;
	long more = kernel_kib() - before;

	/* The kernel frees it little by little, so this polls. */
	if (more > most)
		EVENTUALLY((more = kernel_kib() - before) <= most);
	if (more > most)
		fail("memory", "%ld KiB more than when it had been warm", more);
	else
		pass("memory", "%ld KiB more than when it had been warm", more);
}

static void judge_new_clients(void)
{
	struct pair pair;
	const char *trouble = pair_hand_over(&pair, "fuzz-after");

	if (!trouble)
		trouble = pair_look(&pair);
	judge("new clients", trouble ? trouble : pair_let_go(&pair));
	pair_end(&pair);
}

static void report(const struct run *r, double seconds)
{
	unsigned int i, known = 0, taken = 0;
	char list[FIELDS_REQUESTS * 32] = "", *end = list;

	for (i = 0; i < fields_requests(); i++) {
		end += sprintf(end, " %u:%u+%u", i, shared->taken[i], shared->refused[i]);
		known += fields_known(i);
		taken += fields_known(i) && shared->taken[i];
	}
	printf("%llu programs, %llu ops in %.0f s: %.1f programs, %.0f ops a second; "
	       "%u executors killed\n",
	       (unsigned long long)shared->programs, (unsigned long long)shared->ops, seconds,
	       shared->programs / seconds, shared->ops / seconds, r->killed);
	printf("corpus: %u programs given, %u now; answers: %u\n", shared->given, shared->corpus,
	       shared->answers);
	if (shared->kcov)
		printf("edges: %u by what was given, %u in all\n", shared->given_edges,
		       shared->edges);
	else
		printf("no kcov: guided by answers alone\n");
	if (!shared->failing)
		printf("no fail-nth: no allocation was made to fail\n");
	/* Without a corpus they need more time. */
	if (shared->given && taken < known * 3 / 4)
		fail("requests", "only %u of %u were taken; number:taken+refused%s", taken, known,
		     list);
	else
		pass("requests", "%u of %u were taken; number:taken+refused%s", taken, known, list);
	if (shared->unwritten)
		fail("journal", "it could not be written: %s", strerror(shared->unwritten));
	if (shared->next < shared->given)
		fail("corpus", "only %u of %u programs were run", shared->next, shared->given);
}

static void fuzz_for(unsigned int seconds)
{
	struct actor a = { .random = shared->seed * 0x9e3779b97f4a7c15ULL | 1 };
	static struct run warm, run;
	struct pair bystander;
	const char *trouble;
	long before;
	u64 start = raw_now_ns();

	/* A tenth first, which allocates what the kernel keeps. After that no more is needed. */
	open_journals();
	shared->deadline_ns = shared->latest_ns = start + seconds * 100000000ULL;
	trouble = hand_over_as_bystander(&bystander);
	if (!trouble)
		trouble = fuzz(&warm, &a, &bystander);
	before = kernel_kib();
	shared->deadline_ns = start + seconds * 1000000000ULL;
	/* The given programs run to the end; on a busy machine that takes longer. */
	shared->latest_ns = start + seconds * 20000000000ULL;
	if (!trouble && !warm.trouble[0])
		trouble = fuzz(&run, &a, &bystander);
	judge("executors", warm.trouble[0] ? warm.trouble : run.trouble[0] ? run.trouble : NULL);
	run.killed += warm.killed;
	report(&run, (raw_now_ns() - start) / 1e9);
	judge("bystander", trouble ? trouble : pair_let_go(&bystander));
	pair_end(&bystander);
	judge("pools have gone", judge_pools());
	if (gpu_number("files") >= 0)
		judge("files of the GPU have gone",
		      EVENTUALLY(!gpu_number("files")) ? NULL : "some are open");
	judge_memory(before);
	judge_new_clients();
}

/* ---- replay ---- */

static void replay_file(const char *path, unsigned int number, unsigned int times)
{
	static struct fuzz_program p;
	FILE *from = fopen(path, "r");

	if (!from || executor_prepare(&executor, shared, number, -1)) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		_exit(2);
	}
	executor.verbose = times == 1;
	while (times--) {
		rewind(from);
		while (fuzz_read(from, path, &p)) {
			if (executor.verbose)
				fuzz_print(stdout, &p);
			executor_run(&executor, &p);
		}
	}
	fflush(stdout);
	_exit(0);
}

static void replay(char **files, unsigned int count, unsigned int times)
{
	struct pair bystander;
	const char *trouble = hand_over_as_bystander(&bystander);
	int status, bad = 0;
	unsigned int i;

	for (i = 0; i < count; i++)
		if (!fork())
			replay_file(files[i], i, times);
	while (wait(&status) > 0)
		bad |= status;
	printf("%llu programs, edges: %u\n", (unsigned long long)shared->programs, shared->edges);
	if (bad)
		fail("replay", "a process ended with status 0x%x", bad);
	else
		pass("replay", "well");
	if (!trouble)
		trouble = pair_look(&bystander);
	judge("bystander", trouble ? trouble : pair_let_go(&bystander));
	pair_end(&bystander);
	judge("pools have gone", judge_pools());
}

/* ---- the smallest corpus ---- */

static u64 *edges_of(struct fuzz_program *p)
{
	memset(executor.edge, 0, FUZZ_EDGES / 8);
	executor_run(&executor, p);
	return executor.edge;
}

static u32 count_new(const u64 *had, const u64 *edge)
{
	u32 i, n = 0;

	for (i = 0; i < FUZZ_EDGES / 64; i++)
		n += __builtin_popcountll(edge[i] & ~had[i]);
	return n;
}

/* Drops each op that the program does not need to reach the edges that no other reaches. */
static void shorten(struct fuzz_program *p, const u64 *had, u32 worth)
{
	struct fuzz_program shorter;
	u32 at, times, best;

	for (at = p->ops; at-- > 0 && p->ops > 1; ) {
		shorter = *p;
		shorter.ops--;
		memmove(&shorter.op[at], &shorter.op[at + 1], (shorter.ops - at) * sizeof(*p->op));
		for (times = best = 0; times < 2 && best < worth; times++)
			best = count_new(had, edges_of(&shorter));
		if (best >= worth)
			*p = shorter;
	}
}

static void minimise(unsigned int seconds)
{
	u64 until = seconds ? raw_now_ns() + seconds * 1000000000ULL : ~0ULL;
	static u64 had[FUZZ_EDGES / 64];
	u32 i, j, worth, kept = 0;

	executor.edge = calloc(1, FUZZ_EDGES / 8);
	for (i = 0; i < shared->given; i++) {
		struct fuzz_program *p = &shared->program[i];

		worth = count_new(had, edges_of(p));
		if (!worth)
			continue;
		if (raw_now_ns() < until) {
			shorten(p, had, worth);
			edges_of(p);
		}
		for (j = 0; j < FUZZ_EDGES / 64; j++)
			had[j] |= executor.edge[j];
		shared->program[kept++] = *p;
	}
	shared->corpus = kept;
	printf("%u of %u programs\n", kept, shared->given);
	save_corpus();
}

/* ---- start ---- */

static void write_knob(const char *path, const char *text)
{
	int file = open(path, O_WRONLY | O_CLOEXEC);

	if (file >= 0 && write(file, text, strlen(text)) < 0)
		printf("%s: %s\n", path, strerror(errno));
	if (file >= 0)
		close(file);
}

/* Finds out whether the kernel can fail allocations and has kcov. Hung tasks are reported early. */
static void prepare(void)
{
	int knob = failing_open();

	shared->failing = knob >= 0 && !failing_prepare();
	if (knob >= 0)
		close(knob);
	shared->kcov = !access("/sys/kernel/debug/kcov", R_OK | W_OK);
	write_knob("/proc/sys/kernel/hung_task_timeout_secs", "40");
}

static int usage(void)
{
	fprintf(stderr, "usage: fuzz [-t SECONDS] [-c CORPUS] [-o FOLDER] | -r TIMES FILE... | "
		"-m CORPUS -o FOLDER [-t SECONDS] | -p JOURNAL\n");
	return 2;
}

int main(int argc, char **argv)
{
	unsigned int seconds = 0, times = 0;
	const char *corpus = NULL, *trouble;
	struct pair bystander;
	bool smallest = false;
	int option;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	if (shared == MAP_FAILED)
		return usage();
	while ((option = getopt(argc, argv, "t:c:o:r:m:p:")) != -1) {
		switch (option) {
		case 't':
			seconds = strtoul(optarg, NULL, 10);
			break;
		case 'm':
			smallest = true;
			/* fall through */
		case 'c':
			corpus = optarg;
			break;
		case 'o':
			folder = optarg;
			break;
		case 'r':
			times = strtoul(optarg, NULL, 10);
			break;
		case 'p':
			return print_journal(optarg);
		default:
			return usage();
		}
	}
	if (access(RAW_DEVICE, R_OK | W_OK)) {
		skip("fuzz", "no " RAW_DEVICE);
		return summary();
	}
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	prepare();
	if (!smallest && !times)
		add_each_request();
	if (corpus)
		load_corpus(corpus);
	if (times) {
		replay(argv + optind, argc - optind, times);
		return summary();
	}
	shared->seed = choose_seed();
	if (smallest) {
		trouble = hand_over_as_bystander(&bystander);
		if (trouble || executor_prepare(&executor, shared, 0, -1))
			fail("minimise", "%s", trouble ? trouble : strerror(errno));
		else
			minimise(seconds);
		return summary();
	}
	fuzz_for(seconds ?: 60);
	save_corpus();
	return summary();
}
