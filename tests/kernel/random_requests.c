// SPDX-License-Identifier: MIT
/*
 * Processes that make random requests to xmem.ko: each request with plausible and with senseless
 * fields, garbage in all pages that a client may write, odd mappings, copies of files in children,
 * and SIGKILL at random moments.
 *
 *   random-requests [PROCESSES] [REQUESTS of each]     XMEM_TEST_SEED=...
 *
 * Meanwhile a bystander in one of the pools keeps its holds. No process may get a signal other than
 * the intended SIGKILL. In the end the pools have gone, the kernel has no new taint (the VM judges
 * its log), and new clients work. With xmem_test_gpu.ko some payloads are GPU memory, and its files
 * have gone as well. The seed decides the requests of each process, but not how processes
 * interleave.
 */
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "fields.h"
#include "gpu.h"

#define KEPT		"random-kept"		/* exists all the time, with the bystander */
#define BRIEF		"random-brief"		/* comes and goes */
#define AT_ONCE		4			/* processes */
#define PAYLOAD_PAGES	16

/* Shared by all processes. */
static struct tally {
	u32 taken[FIELDS_REQUESTS], refused[FIELDS_REQUESTS];
} *tally;

/* These processes are root and may end any client, so they spare the bystander's pool. */
static bool spares_the_bystander(const struct actor *a, const struct xm_request_kind *kind)
{
	return kind->request != XMEM_IOC_EVICT ||
	       strcmp((const char *)a->me->map.pool->name, KEPT);
}

/* One request in four is garbled. Nearly all joins use a new file. */
static void ask(struct actor *a)
{
	unsigned int k = fields_some(a);
	const struct xm_request_kind *kind = fields_request(k);
	struct { union xm_request r; u64 newer[16]; } asked = { .newer = { 0 } };
	union xm_request *r = &asked.r;
	struct raw joins = RAW_NONE, *who = a->me;
	int err;

	if (!spares_the_bystander(a, kind))
		return;
	fields_fill(a, k, r);
	if (one_in(a, 4))
		garble(a, r, kind->bytes / 4);
	if (one_in(a, 8))	/* fields that only a newer caller knows */
		asked.newer[chance(a) % 16] = odd_number(a);
	r->size = one_in(a, 32) ? odd_number(a) % sizeof(asked) : kind->bytes;
	if (kind->request == XMEM_IOC_JOIN && !one_in(a, 8)) {
		raw_open(&joins);
		who = &joins;
	}
	err = raw_request(who, kind->request, r);
	__atomic_fetch_add(err ? &tally->refused[k] : &tally->taken[k], 1, __ATOMIC_RELAXED);
	if (!err)
		fields_taken(a, k, r);
	raw_end(&joins);
}

/* ---- other things that a process can do ---- */

/* All of the pool can be read at any time, and so can every other read-only mapping. */
static void read_pages(const char *start, u64 bytes)
{
	u64 at;

	for (at = 0; at < bytes; at += RAW_PAGE)
		(void)*(volatile const char *)(start + at);
}

static void map_oddly(struct actor *a)
{
	struct raw *me = a->me;
	u64 pages = me->join.total_bytes / RAW_PAGE, from = chance(a) % (pages + 2);
	u64 count = 1 + chance(a) % 8;
	int protection = chance(a) % 8, flags = one_in(a, 8) ? MAP_PRIVATE : MAP_SHARED;
	void *start;

	if (one_in(a, 4))
		flags |= MAP_POPULATE;
	start = mmap(NULL, count * RAW_PAGE, protection, flags, me->file, from * RAW_PAGE);
	if (start != MAP_FAILED && protection == PROT_READ)
		read_pages(start, count * RAW_PAGE);
	/* Some mappings stay, up to the limit. */
	if (start != MAP_FAILED && !one_in(a, 8))
		munmap(start, count * RAW_PAGE);
	read_pages(me->base, me->join.total_bytes);
}

/* Whatever the result, a read-only mapping can be read and cannot be written. */
static void change_mapping(struct actor *a)
{
	static const int advices[] = {
		MADV_DONTNEED, MADV_DOFORK, MADV_REMOVE, MADV_DODUMP, MADV_WILLNEED, MADV_COLD,
	};
	struct raw *me = a->me;
	char *at = me->base + chance(a) % (me->join.total_bytes / RAW_PAGE) * RAW_PAGE;

	switch (chance(a) % 3) {
	case 0:
		madvise(at, RAW_PAGE, advices[chance(a) % (sizeof(advices) / sizeof(*advices))]);
		break;
	case 1:
		mprotect(at, RAW_PAGE, PROT_READ | PROT_WRITE);
		mprotect(at, RAW_PAGE, PROT_READ | PROT_EXEC);
		break;
	case 2:
		mremap(me->base, me->join.total_bytes, me->join.total_bytes + RAW_PAGE,
		       MREMAP_MAYMOVE);
		break;
	}
	read_pages(me->base, me->join.total_bytes);
}

static void poll_all(struct actor *a)
{
	struct pollfd files[CLIENTS + POLLED];
	unsigned int i;

	for (i = 0; i < CLIENTS + POLLED; i++)
		files[i] = (struct pollfd){
			i < CLIENTS ? a->client[i].file : a->polled[i - CLIENTS],
			chance(a) % 2 ? POLLIN : POLLIN | POLLOUT, 0,
		};
	poll(files, CLIENTS + POLLED, chance(a) % 2);
}

/* The client ends in one of all possible ways, and another takes its place. */
static void replace(struct actor *a)
{
	struct raw *me = a->me;
	union xm_request r = { .size = 0 };

	switch (chance(a) % 4) {
	case 0:
		/*
		 * The rest of the mapping keeps the client alive. The process does not touch
		 * it again, and the mapping goes when the process ends.
		 */
		if (me->area)
			munmap(me->area, RAW_PAGE);
		me->area = NULL;
		return;
	case 1:
		/* The mappings keep the client alive, and its file. */
		close(me->file);
		me->file = -1;
		scribble(a);
		break;
	}
	raw_end(me);
	fields_fill(a, _IOC_NR(XMEM_IOC_JOIN), &r);
	raw_start(me, &r.join);
}

/*
 * A child that inherits all the files and stands still. It ends when its parent's process group is
 * killed.
 */
static void leave_child(struct actor *a)
{
	if (fork())
		return;
	for (;;)
		pause();
}

/* It is killed while it goes on making requests, so it dies at any moment. */
static void be_killed(struct actor *a)
{
	pid_t victim = getpid();

	if (fork())
		return;
	kill(victim, SIGKILL);
	_exit(0);
}

static void act(struct actor *a)
{
	u64 what = chance(a) % 256;

	if (what < 176)
		ask(a);
	else if (what < 208)
		scribble(a);
	else if (what < 224)
		map_oddly(a);
	else if (what < 232)
		change_mapping(a);
	else if (what < 248)
		poll_all(a);
	else if (what < 254)
		replace(a);
	else if (one_in(a, 2))
		leave_child(a);
	else if (one_in(a, 8))
		be_killed(a);
}

static void be_interrupted(int signal)
{
}

/* Waits without a deadline end by a signal: every 10 ms, and not restarted. */
static void start_clock(void)
{
	struct sigaction action = { .sa_handler = be_interrupted };
	struct itimerval every = { { 0, 10000 }, { 0, 10000 } };

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
}

static void process(u64 seed, unsigned int requests)
{
	struct actor a = { .random = seed * 0x9e3779b97f4a7c15ULL | 1, .pool_fd = -1,
			   .pools = { BRIEF, KEPT }, .polled = { -1, -1, -1, -1 } };
	union xm_request r = { .size = 0 };
	unsigned int i;

	a.memfd = raw_memfd(PAYLOAD_PAGES, 0);
	a.shared = raw_shared_memfd(PAYLOAD_PAGES);
	a.gpu = gpu_file();
	start_clock();
	for (i = 0; i < CLIENTS; i++) {
		fields_fill(&a, _IOC_NR(XMEM_IOC_JOIN), &r);
		raw_start(&a.client[i], &r.join);
	}
	while (requests--) {
		a.me = &a.client[chance(&a) % CLIENTS];
		/* If the table was full, it tries again. */
		if (!a.me->base)
			replace(&a);
		else
			act(&a);
	}
	_exit(0);
}

/* ---- the run ---- */

struct deaths {
	unsigned int exited, killed;
	int other;			/* an unexpected signal, or an exit status */
};

/*
 * Runs this many processes at once. Some kill themselves, the others end. Then the children that
 * they have left are killed.
 */
static void round_of(u64 seed, unsigned int processes, unsigned int requests, struct deaths *deaths)
{
	pid_t pid[AT_ONCE];
	unsigned int i;
	int status;

	for (i = 0; i < processes; i++) {
		pid[i] = fork();
		if (!pid[i]) {
			setpgid(0, 0);
			process(seed + i, requests);
		}
		setpgid(pid[i], pid[i]);
	}
	for (i = 0; i < processes; i++) {
		if (waitpid(pid[i], &status, 0) != pid[i])
			continue;
		if (WIFEXITED(status) && !WEXITSTATUS(status))
			deaths->exited++;
		else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
			deaths->killed++;
		else
			deaths->other = status;
		kill(-pid[i], SIGKILL);
	}
	/* The children that they left have become ours. */
	while (wait(NULL) > 0)
		;
}

static void judge_requests(const struct deaths *deaths)
{
	char list[FIELDS_REQUESTS * 32] = "";
	unsigned int i, length = 0, never = 0;

	for (i = 0; i < fields_requests(); i++) {
		length += snprintf(list + length, sizeof(list) - length, " %u:%u+%u", i,
				   tally->taken[i], tally->refused[i]);
		never += fields_known(i) && (!tally->taken[i] || !tally->refused[i]);
	}
	if (deaths->other)
		fail("processes", "one ended with status 0x%x", deaths->other);
	else
		pass("processes", "%u exited, %u were killed", deaths->exited, deaths->killed);
	if (never)
		fail("requests", "%u never taken or never refused; number:taken+refused%s", never,
		     list);
	else
		pass("requests", "number:taken+refused%s", list);
}

static long taint(void)
{
	char text[32] = "";
	int file = open("/proc/sys/kernel/tainted", O_RDONLY | O_CLOEXEC);
	ssize_t n = file < 0 ? 0 : read(file, text, sizeof(text) - 1);

	if (file >= 0)
		close(file);
	return n > 0 ? atol(text) : -1;
}

static void run(u64 seed, unsigned int processes, unsigned int requests)
{
	struct deaths deaths = { .exited = 0 };
	const char *trouble;
	long before = taint();
	struct pair pair;
	unsigned int done;

	trouble = pair_hand_over(&pair, KEPT);
	for (done = 0; done < processes && !trouble && !deaths.other; done += AT_ONCE) {
		round_of(seed + done, processes - done < AT_ONCE ? processes - done : AT_ONCE,
			 requests, &deaths);
		trouble = pair_look(&pair);
	}
	judge("bystander", trouble ? trouble : pair_let_go(&pair));
	pair_end(&pair);
	judge_requests(&deaths);
	judge("pools have gone", raw_pool_exists(KEPT) || raw_pool_exists(BRIEF) ?
	      "a name is still taken" : judge_pools());
	trouble = pair_hand_over(&pair, BRIEF);
	if (!trouble)
		trouble = pair_look(&pair);
	judge("new clients", trouble ? trouble : pair_let_go(&pair));
	pair_end(&pair);
	if (gpu_number("files") >= 0)
		judge("files of the GPU have gone",
		      EVENTUALLY(!gpu_number("files")) ? NULL : "some are open");
	judge("taint", taint() == before ? NULL : "the kernel has complained");
}

int main(int argc, char **argv)
{
	unsigned int processes = argc > 1 ? strtoul(argv[1], NULL, 10) : 100;
	unsigned int requests = argc > 2 ? strtoul(argv[2], NULL, 10) : 1000;

	if (access(RAW_DEVICE, R_OK | W_OK)) {
		skip("random-requests", "no " RAW_DEVICE);
		return summary();
	}
	tally = mmap(NULL, sizeof(*tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		     -1, 0);
	if (tally == MAP_FAILED || prctl(PR_SET_CHILD_SUBREAPER, 1)) {
		fail("random-requests", "%s", strerror(errno));
		return summary();
	}
	run(choose_seed(), processes, requests);
	return summary();
}
