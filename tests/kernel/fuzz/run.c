// SPDX-License-Identifier: MIT
/*
 * An executor: one process that runs one program after another. The first worker does the ops in
 * order. It gives an op that is marked to the second worker, and goes on. After each program
 * everything is undone. So the next program depends only on itself, and on the acts of other
 * executors in the shared pools.
 */
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>

#include "../failing.h"
#include "../gpu.h"
#include "fuzz.h"

#define PAYLOAD_PAGES	16
#define TICK_NS		20000000	/* interval of the signal that interrupts sleeps */
#define LONGEST_NS	100000000	/* of a wait that the signal does not interrupt */
#define MORE_WORDS	16		/* of a struct, behind the longest known one */

__thread sigjmp_buf fuzz_escape;
__thread volatile bool fuzz_guarded;

void fuzz_run_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* ---- failures ---- */

/*
 * Does the request end although the tick, which ends sleeps, is blocked? Nobody else may change its
 * struct meanwhile.
 */
static bool ends_by_itself(const struct fuzz_op *op, const struct xmem_wait_request *wait)
{
	if (op->number != _IOC_NR(XMEM_IOC_WAIT))
		return true;
	if (op->change != FUZZ_NOTHING || op->place > FUZZ_READONLY)
		return false;
	return wait->op != XMEM_OP_WAIT || wait->deadline_ns < raw_now_ns() + LONGEST_NS;
}

/*
 * The number of the allocation or copy that fails, or 0. Ops that can end in a signal are left out:
 * if the copy of the signal's frame fails, the kernel ends the process.
 */
static u8 failing_of(const struct fuzz_worker *w, const struct fuzz_op *op)
{
	if (w->fail_nth < 0)
		return 0;
	switch (op->what) {
	case FUZZ_ASK:
	case FUZZ_JOIN:
	case FUZZ_MAP:
	case FUZZ_REMAP:
	case FUZZ_FILES:
	case FUZZ_PASS:
	case FUZZ_POLL:
	case FUZZ_SHOW:
		return op->nth;
	}
	return 0;
}

static void change_tick(int how)
{
	sigset_t alarm;

	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	pthread_sigmask(how, &alarm, NULL);
}

static void begin_failing(struct fuzz_worker *w, u8 nth)
{
	if (!nth)
		return;
	change_tick(SIG_BLOCK);
	failing_arm(w->fail_nth, nth);
}

static void end_failing(struct fuzz_worker *w, u8 nth)
{
	if (!nth)
		return;
	failing_disarm(w->fail_nth);
	change_tick(SIG_UNBLOCK);
}

/* ---- requests ---- */

struct asked {
	union xm_request r;
	u32 more[MORE_WORDS];
};

static void fill(struct fuzz_worker *w, const struct fuzz_op *op, struct asked *asked)
{
	const struct xm_request_kind *kind = fields_request(op->number);
	u32 i, words = sizeof(*asked) / 4;

	memset(asked, 0, sizeof(*asked));
	if (w->a.me->base || kind->unjoined)
		FUZZ_GUARDED(fields_fill(&w->a, op->number, &asked->r));
	asked->r.size = kind->bytes;
	for (i = 0; i < op->tweaks; i++)
		if (op->tweak[i].word < words)
			set_word(&asked->r, op->tweak[i].word, op->tweak[i].value);
}

static int which_file(struct fuzz_worker *w, const struct xm_request_kind *kind)
{
	if (kind->request == XMEM_IOC_JOIN && !one_in(&w->a, 8))
		return open(RAW_DEVICE, O_RDWR | O_CLOEXEC);
	return one_in(&w->a, 16) ? fuzz_some_file(w) : w->a.me->file;
}

static int ask(struct fuzz_worker *w, const struct fuzz_op *op)
{
	const struct xm_request_kind *kind = fields_request(op->number);
	struct asked asked;
	u32 times = 0;
	int file, err;
	void *at;
	u8 nth;

	if (!kind)
		return -ENOTTY;
	fill(w, op, &asked);
	file = which_file(w, kind);
	at = memory_begin(w->memory, op, &asked, sizeof(asked), file);
	nth = ends_by_itself(op, &asked.r.wait) ? failing_of(w, op) : 0;
	begin_failing(w, nth);
	do
		err = ioctl(file, kind->request, at) < 0 ? -errno : 0;
	while (op->number != _IOC_NR(XMEM_IOC_WAIT) && memory_once_more(w->memory, times++));
	end_failing(w, nth);
	__atomic_fetch_add(err ? &w->executor->shared->refused[op->number] :
			   &w->executor->shared->taken[op->number], 1, __ATOMIC_RELAXED);
	if (memory_end(w->memory, &asked, sizeof(asked)) && !err && w->a.me->base)
		FUZZ_GUARDED(fields_taken(&w->a, op->number, &asked.r));
	return err;
}

/* ---- one op ---- */

static void do_op(struct fuzz_worker *w, const struct fuzz_op *op)
{
	struct fuzz_executor *e = w->executor;
	volatile int err = 0;

	w->a.random = (op->seed * 0xd1342543de82ef95ULL) | 1;
	w->a.me = &e->worker[0].a.client[op->who % CLIENTS];
	cover_begin(&w->cover);
	if (op->what == FUZZ_ASK) {
		err = ask(w, op);
	} else {
		begin_failing(w, failing_of(w, op));
		if (op->what == FUZZ_SHOW)	/* it allocates */
			fuzz_act(w, op);
		else
			FUZZ_GUARDED(fuzz_act(w, op));
		end_failing(w, failing_of(w, op));
	}
	w->found += cover_end(&w->cover, e->shared, e->edge);
	if (op->what == FUZZ_ASK)
		w->found += cover_answer(e->shared, op->number, err);
	__atomic_fetch_add(&e->shared->ops, 1, __ATOMIC_RELAXED);
	if (e->verbose && op->what == FUZZ_ASK)
		printf("worker %d: request %u: %s\n", (int)(w - e->worker), op->number,
		       err ? strerror(-err) : "taken");
}

/* ---- the second worker ---- */

static void *second(void *argument)
{
	struct fuzz_worker *w = argument;
	struct fuzz_executor *e = w->executor;
	const struct fuzz_op *op;

	cover_open(&w->cover);
	w->fail_nth = e->shared->failing ? failing_open() : -1;
	pthread_mutex_lock(&e->lock);
	e->beside = NULL;
	for (;;) {
		pthread_cond_broadcast(&e->changed);
		while (!e->beside)
			pthread_cond_wait(&e->changed, &e->lock);
		op = e->beside;
		pthread_mutex_unlock(&e->lock);
		do_op(w, op);
		pthread_mutex_lock(&e->lock);
		e->beside = NULL;
	}
	return NULL;
}

static void start_beside(struct fuzz_executor *e, const struct fuzz_op *op)
{
	fuzz_settle(e);
	pthread_mutex_lock(&e->lock);
	e->beside = op;
	pthread_cond_broadcast(&e->changed);
	pthread_mutex_unlock(&e->lock);
}

void fuzz_settle(struct fuzz_executor *e)
{
	pthread_mutex_lock(&e->lock);
	while (e->beside)
		pthread_cond_wait(&e->changed, &e->lock);
	pthread_mutex_unlock(&e->lock);
}

/* The other ops change data that the workers share. */
static bool may_be_beside(const struct fuzz_op *op)
{
	switch (op->what) {
	case FUZZ_JOIN:
	case FUZZ_END:
	case FUZZ_FORK:
	case FUZZ_KILL:
	case FUZZ_WHO:
		return false;
	}
	return op->beside;
}

/* ---- one program ---- */

/* Writes down the next program, for a person who finds the machine dead. */
static void write_journal(struct fuzz_executor *e, const struct fuzz_program *p)
{
	off_t place = p->number % FUZZ_JOURNAL * sizeof(*p);

	if (e->journal < 0 || pwrite(e->journal, p, sizeof(*p), place) == sizeof(*p))
		return;
	e->journal = -1;
	__atomic_store_n(&e->shared->unwritten, errno, __ATOMIC_RELAXED);
}

static void begin_program(struct fuzz_executor *e)
{
	struct xmem_join_request join;
	struct actor *a;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		a = &e->worker[i].a;
		a->pool_fd = -1;
		a->opened = 0;
		memset(a->polled, -1, sizeof(a->polled));
		e->worker[i].found = 0;
	}
	a = &e->worker[0].a;
	e->done = 0;
	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, e->socket))
		e->socket[0] = e->socket[1] = -1;
	/* There is a writer from the beginning, because most programs get further with one. */
	for (i = 0; i < CLIENTS; i++)
		a->client[i] = RAW_NONE;
	join = raw_joining(e->names[0], XMEM_ROLE_WRITER);
	raw_start(&a->client[0], &join);
}

static void end_program(struct fuzz_executor *e)
{
	struct actor *a = &e->worker[0].a;
	unsigned int i;

	fuzz_settle(e);
	syscall(SYS_setresuid, -1, 0, -1);
	fuzz_end_kids(e);
	for (i = 0; i < CLIENTS; i++)
		raw_end(&a->client[i]);
	mmap(e->arena, FUZZ_PLOTS * FUZZ_PLOT, PROT_NONE,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	syscall(SYS_close_range, e->first_file, ~0U, 0);
}

u32 executor_run(struct fuzz_executor *e, struct fuzz_program *p)
{
	struct fuzz_shared *s = e->shared;
	u32 i;

	p->number = __atomic_fetch_add(&s->programs, 1, __ATOMIC_RELAXED);
	write_journal(e, p);
	begin_program(e);
	for (i = 0; i < p->ops; i++) {
		if (may_be_beside(&p->op[i]))
			start_beside(e, &p->op[i]);
		else
			do_op(&e->worker[0], &p->op[i]);
		__atomic_store_n(&e->done, i + 1, __ATOMIC_RELAXED);
	}
	cover_begin(&e->worker[0].cover);
	end_program(e);
	e->worker[0].found += cover_end(&e->worker[0].cover, s, e->edge);
	p->found = e->worker[0].found + e->worker[1].found;
	return p->found;
}

/* ---- a process ---- */

static void bad_access(int signal)
{
	if (fuzz_guarded)
		siglongjmp(fuzz_escape, 1);
	/* An unexpected signal is a fault of the fuzzer; the parent sees it. */
	sigaction(signal, &(struct sigaction){ .sa_handler = SIG_DFL }, NULL);
}

static void be_interrupted(int signal)
{
}

/* A signal ends waits without a deadline, and they are not restarted. */
static void tick(void)
{
	struct sigevent event = {
		.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM,
		._sigev_un._tid = gettid(),
	};
	struct itimerspec every = { { 0, TICK_NS }, { 0, TICK_NS } };
	timer_t timer;

	if (!timer_create(CLOCK_MONOTONIC, &event, &timer))
		timer_settime(timer, 0, &every, NULL);
}

static void *second_with_tick(void *argument)
{
	change_tick(SIG_UNBLOCK);
	tick();
	return second(argument);
}

static void handle_signals(void)
{
	static const int bad[] = { SIGSEGV, SIGBUS, SIGFPE };
	struct sigaction action = { .sa_handler = bad_access, .sa_flags = SA_NODEFER };
	unsigned int i;

	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		sigaction(bad[i], &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	sigaction(SIGALRM, &(struct sigaction){ .sa_handler = be_interrupted }, NULL);
	change_tick(SIG_BLOCK);		/* the partners must not get it */
}

/* The worker's own files come before all files of the program. */
static int prepare_workers(struct fuzz_executor *e, const struct actor *a)
{
	static const struct fuzz_op none;
	unsigned int i;
	pthread_t thread;

	for (i = 0; i < 2; i++) {
		e->worker[i].executor = e;
		e->worker[i].a = *a;
		e->worker[i].a.me = &e->worker[0].a.client[0];
		e->worker[i].memory = memory_new(&e->worker[i]);
		if (!e->worker[i].memory)
			return -errno;
	}
	pthread_mutex_init(&e->lock, NULL);
	pthread_cond_init(&e->changed, NULL);
	e->beside = &none;	/* until the second worker is ready */
	errno = pthread_create(&thread, NULL, second_with_tick, &e->worker[1]);
	if (errno)
		return -errno;
	fuzz_settle(e);
	cover_open(&e->worker[0].cover);
	e->worker[0].fail_nth = e->shared->failing ? failing_open() : -1;
	return 0;
}

/*
 * Drops the capability to evict the clients of other users and to drain their pools. All threads
 * are made after this, so a thread that becomes root again does not get the capability back.
 */
static int administer_nothing(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data))
		return -errno;
	data[0].effective &= ~(1U << CAP_SYS_ADMIN);
	data[0].permitted &= ~(1U << CAP_SYS_ADMIN);
	return syscall(SYS_capset, &header, data) ? -errno : 0;
}

int executor_prepare(struct fuzz_executor *e, struct fuzz_shared *s, unsigned int number,
		     int journal)
{
	struct actor a = { .pool_fd = -1, .polled = { -1, -1, -1, -1 } };
	int err = administer_nothing();

	if (err)
		return err;
	*e = (struct fuzz_executor){ .shared = s, .socket = { -1, -1 } };
	snprintf(e->names[0], sizeof(e->names[0]), "fuzz-%u", number);
	snprintf(e->names[1], sizeof(e->names[1]), FUZZ_KEPT);
	a.pools[0] = e->names[0];
	a.pools[1] = e->names[1];
	a.owner = FUZZ_BYSTANDER;
	a.random = (s->seed + number + 1) * 0x9e3779b97f4a7c15ULL | 1;
	a.memfd = raw_memfd(PAYLOAD_PAGES, 0);
	a.shared = raw_shared_memfd(PAYLOAD_PAGES);
	a.gpu = gpu_file();
	e->journal = journal;
	e->arena = mmap(NULL, FUZZ_PLOTS * FUZZ_PLOT, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (e->arena == MAP_FAILED)
		return -errno;
	e->cpu = number % sysconf(_SC_NPROCESSORS_ONLN);
	fuzz_run_on(e->cpu);
	handle_signals();
	err = prepare_workers(e, &a);
	if (err)
		return err;
	change_tick(SIG_UNBLOCK);
	tick();
	e->first_file = dup(0);		/* the lowest that is free */
	if (e->first_file < 0)
		return -errno;
	close(e->first_file);
	return 0;
}

/* ---- fuzzing ---- */

/* First the given corpus, then mutations, and at times a new program. */
static void next_program(struct fuzz_executor *e, struct actor *a, struct fuzz_program *p)
{
	struct fuzz_shared *s = e->shared;
	u32 n = __atomic_load_n(&s->corpus, __ATOMIC_ACQUIRE), at;

	at = __atomic_load_n(&s->next, __ATOMIC_RELAXED) < s->given ?
		__atomic_fetch_add(&s->next, 1, __ATOMIC_RELAXED) : s->given;
	if (at < s->given) {
		*p = s->program[at];
	} else if (!n || one_in(a, 16)) {
		fuzz_random_program(a, p);
	} else {
		/* The newest programs are tried most. */
		at = one_in(a, 3) ? n - 1 - chance(a) % (n / 8 + 1) : chance(a) % n;
		*p = s->program[at];
		fuzz_mutate(a, p, &s->program[chance(a) % n]);
	}
	p->found = 0;
}

bool executor_goes_on(const struct fuzz_shared *s)
{
	u64 now = raw_now_ns();

	if (now < s->deadline_ns)
		return true;
	return now < s->latest_ns && __atomic_load_n(&s->next, __ATOMIC_RELAXED) < s->given;
}

void executor_fuzz(struct fuzz_executor *e)
{
	struct fuzz_shared *s = e->shared;
	struct actor a = { .random = e->worker[0].a.random };
	static struct fuzz_program p;
	bool given;

	while (executor_goes_on(s)) {
		given = __atomic_load_n(&s->next, __ATOMIC_RELAXED) < s->given;
		next_program(e, &a, &p);
		if (executor_run(e, &p) && !given)
			corpus_add(s, &p);
		if (given)
			__atomic_store_n(&s->given_edges, s->edges, __ATOMIC_RELAXED);
	}
	_exit(0);
}
