// SPDX-License-Identifier: MIT
/*
 * The struct of a request in unusual memory. Its end is not mapped; it lies in the pool's own
 * pages; another thread rewrites it, unmaps it, or ends the client; or userfaultfd lets the kernel
 * wait for a page, and the change happens just then.
 *
 * Each worker has a partner, the thread that makes these changes. The partner has a job from
 * memory_begin to memory_end, and touches the memory only then.
 */
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

#include "fuzz.h"

#define PLAIN_PAGES	2
#define CHANGES		256	/* of memory that changes all the time; enough for an op */
#define MOST_TIMES	128	/* at most so many requests, until there were CHANGES */

struct fuzz_memory {
	struct fuzz_worker *worker;
	char *plain;			/* PLAIN_PAGES, with nothing mapped behind them */
	char *alias, *readonly;		/* one page, twice */
	char *late;			/* two pages that userfaultfd brings */
	char *brought;			/* the two pages that it brings */
	int faults;			/* userfaultfd */
	int end;			/* eventfd: the job has ended */

	pthread_mutex_t lock;		/* guards the fields below */
	pthread_cond_t changed;
	bool job, working;		/* there is a job; the partner does it */

	/* The job; only its end changes. */
	struct actor a;			/* the partner's random numbers */
	const struct fuzz_op *op;
	void *at;			/* the struct */
	u32 bytes, word, value[2];	/* REWRITE: this word gets these values */
	int file;
	bool over;			/* atomic: memory_end has been called */
	bool here[2];			/* which pages of late are there */
	u32 times;			/* atomic: number of changes so far */
};

/* ---- changes ---- */

/* The address stays taken until the program ends, so that no other mapping gets it. */
static void take_away(void *start, u64 bytes)
{
	if (start)
		mmap(start, bytes, PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

static void ask_other(struct fuzz_memory *m)
{
	struct { union xm_request r; u64 newer[16]; } asked = { .newer = { 0 } };
	unsigned int number = fields_some(&m->a);

	if (number == _IOC_NR(XMEM_IOC_WAIT) || !m->a.me->base)
		return;
	fields_fill(&m->a, number, &asked.r);
	ioctl(m->file, fields_request(number)->request, &asked);
}

/* Waits until the first worker has done something else, or for 3 ms. */
static void let_pass(struct fuzz_memory *m)
{
	const u32 *done = &m->worker->executor->done;
	u32 before = __atomic_load_n(done, __ATOMIC_RELAXED);
	u64 until = raw_now_ns() + 3000000;

	while (__atomic_load_n(done, __ATOMIC_RELAXED) == before && raw_now_ns() < until)
		sched_yield();
}

static void change_once(struct fuzz_memory *m)
{
	struct raw *me = m->a.me;

	switch (m->op->change) {
	case FUZZ_CLOSE:
		if (m->file >= m->worker->executor->first_file)
			close(m->file);
		break;
	case FUZZ_LEAVE:
		take_away(me->area, me->header.area_stride);
		break;
	case FUZZ_GARBAGE:
		if (me->base)
			scribble(&m->a);
		break;
	case FUZZ_OTHER:
		ask_other(m);
		break;
	case FUZZ_LATER:
		let_pass(m);
		break;
	}
}

/*
 * A thread that changes memory all the time runs on another CPU, or interrupts the worker whenever
 * its timer fires, because the CPUs of a VM may not run at one time.
 */
static bool spins(const struct fuzz_op *op)
{
	return op->seed % 2;
}

static void let_run(struct fuzz_memory *m, u32 n)
{
	struct timespec moment = { .tv_nsec = 500 + n % 32 * 500 };

	__atomic_store_n(&m->times, n, __ATOMIC_RELAXED);
	if (!spins(m->op))
		nanosleep(&moment, NULL);
}

/* A thread runs at once when its timer fires, even if others have not run for long. */
static void change_priority(bool first)
{
	struct sched_param p = { .sched_priority = first };

	sched_setscheduler(0, first ? SCHED_FIFO : SCHED_OTHER, &p);
}

/* Changes it until the job is over. Every second value is the old one, which may pass a check. */
static void rewrite(struct fuzz_memory *m)
{
	u32 *word = (u32 *)((char *)m->at + m->word * 4), was = *(volatile u32 *)word, n;

	for (n = 0; !__atomic_load_n(&m->over, __ATOMIC_RELAXED); n++) {
		*(volatile u32 *)word = n % 2 ? was : m->value[n / 2 % 2];
		let_run(m, n);
	}
}

static void unmap_plain(struct fuzz_memory *m)
{
	u32 n;

	for (n = 0; !__atomic_load_n(&m->over, __ATOMIC_RELAXED); n++) {
		mprotect(m->plain, PLAIN_PAGES * RAW_PAGE, PROT_NONE);
		let_run(m, n);
		mprotect(m->plain, PLAIN_PAGES * RAW_PAGE, PROT_READ | PROT_WRITE);
		let_run(m, n);
	}
}

/* ---- pages that come late ---- */

static void bring(struct fuzz_memory *m, unsigned int page)
{
	struct uffdio_copy copy = {
		.dst = (u64)(unsigned long)m->late + page * RAW_PAGE,
		.src = (u64)(unsigned long)m->brought + page * RAW_PAGE, .len = RAW_PAGE,
	};

	/* If allocations fail or mappings change, the fault comes again. */
	if (ioctl(m->faults, UFFDIO_COPY, &copy) && errno != EEXIST)
		ioctl(m->faults, UFFDIO_WAKE, &(struct uffdio_range){ copy.dst, RAW_PAGE });
	else
		m->here[page] = true;
}

/* A thread that touches a missing page of late would wait for itself. */
static bool word_is_here(const struct fuzz_memory *m)
{
	return m->here[((char *)m->at + m->word * 4 - m->late) / RAW_PAGE];
}

/* The kernel waits for a page. If the struct is on two pages, it has read the first one. */
static void serve_fault(struct fuzz_memory *m, unsigned int page)
{
	FUZZ_GUARDED(change_once(m));
	if (m->op->change == FUZZ_REWRITE && word_is_here(m))
		*(volatile u32 *)((char *)m->at + m->word * 4) = m->value[0];
	bring(m, page);
	if (m->op->change == FUZZ_REWRITE && m->here[page] && word_is_here(m))
		rewrite(m);
	if (m->op->change == FUZZ_UNMAP) {
		m->here[0] = m->here[1] = false;
		madvise(m->late, 2 * RAW_PAGE, MADV_DONTNEED);
	}
}

static void serve_faults(struct fuzz_memory *m)
{
	struct pollfd files[2] = { { m->faults, POLLIN, 0 }, { m->end, POLLIN, 0 } };
	struct uffd_msg message;

	while (!__atomic_load_n(&m->over, __ATOMIC_ACQUIRE)) {
		if (poll(files, 2, -1) < 0 || !(files[0].revents & POLLIN) ||
		    read(m->faults, &message, sizeof(message)) != sizeof(message) ||
		    message.event != UFFD_EVENT_PAGEFAULT)
			continue;
		serve_fault(m, message.arg.pagefault.address -
				       (u64)(unsigned long)m->late >= RAW_PAGE);
	}
}

/* ---- the partner ---- */

static bool is_late(const struct fuzz_op *op)
{
	return op->place == FUZZ_MISSING || op->place == FUZZ_SECOND;
}

static void work(struct fuzz_memory *m)
{
	if (is_late(m->op)) {
		serve_faults(m);
		return;
	}
	FUZZ_GUARDED(change_once(m));
	if (m->op->change == FUZZ_REWRITE && m->op->place <= FUZZ_GROUP)
		FUZZ_GUARDED(rewrite(m));
	if (m->op->change == FUZZ_UNMAP)
		unmap_plain(m);
}

static bool changes_always(const struct fuzz_op *op)
{
	return op->change == FUZZ_REWRITE || (op->change == FUZZ_UNMAP && !is_late(op));
}

static void *partner(void *argument)
{
	struct fuzz_memory *m = argument;
	const struct fuzz_executor *e = m->worker->executor;
	bool elsewhere;

	prctl(PR_SET_TIMERSLACK, 1);
	pthread_mutex_lock(&m->lock);
	for (;;) {
		while (!m->job)
			pthread_cond_wait(&m->changed, &m->lock);
		elsewhere = changes_always(m->op) && spins(m->op);
		if (elsewhere)
			fuzz_run_on((e->cpu + 1) % sysconf(_SC_NPROCESSORS_ONLN));
		else if (changes_always(m->op))
			change_priority(true);
		m->working = true;
		pthread_cond_broadcast(&m->changed);
		pthread_mutex_unlock(&m->lock);
		work(m);
		if (elsewhere)
			fuzz_run_on(e->cpu);
		else if (changes_always(m->op))
			change_priority(false);
		pthread_mutex_lock(&m->lock);
		m->job = m->working = false;
		pthread_cond_broadcast(&m->changed);
	}
	return NULL;
}

/* ---- places ---- */

static void *odd_address(struct fuzz_memory *m)
{
	static const u64 addresses[] = {
		0, 1, 0xfff, 0x1000, 0x7ffffffff000, 0x7fffffffeff8, 0x800000000000,
		0xffff800000000000, 0xffff888000000000, 0xffffffff81000000, ~0ULL, ~7ULL,
	};
	u64 at = addresses[chance(&m->a) % (sizeof(addresses) / sizeof(*addresses))];

	return (void *)(unsigned long)at;
}

/* A place within @bytes at @start that has room for the whole struct. */
static void *within(struct fuzz_memory *m, char *start, u64 bytes, u32 length)
{
	return start + chance(&m->a) % ((bytes - length) / 8 + 1) * 8;
}

static char *some_group(struct fuzz_memory *m)
{
	struct raw *me = m->a.me;
	u32 g;

	for (g = 0; me->base && g < me->map.groups; g++)
		if (raw_has_group(me, g))
			return (char *)me->map.group[g];
	return NULL;
}

static void *place_late(struct fuzz_memory *m, const void *from, u32 bytes)
{
	bool second = m->op->place == FUZZ_SECOND;
	u32 offset = 64;

	m->here[0] = m->here[1] = false;
	madvise(m->late, 2 * RAW_PAGE, MADV_DONTNEED);
	if (second)	/* at least its size field is in the first page */
		offset = RAW_PAGE - 4 - chance(&m->a) % (bytes / 4 - 1) * 4;
	memcpy(m->brought + offset, from, bytes);
	if (second)
		bring(m, 0);
	return m->late + offset;
}

static void *place(struct fuzz_memory *m, const void *from, u32 bytes)
{
	const struct raw *me = m->a.me;
	char *at = m->plain + chance(&m->a) % 64 * 8, *group;
	u32 head;

	switch (m->op->place) {
	case FUZZ_TAIL:
		head = chance(&m->a) % (bytes + 1);
		return memcpy(m->plain + PLAIN_PAGES * RAW_PAGE - head, from, head);
	case FUZZ_MISSING:
	case FUZZ_SECOND:
		return place_late(m, from, bytes);
	case FUZZ_READONLY:
		memcpy(m->alias, from, bytes);
		return m->readonly;
	case FUZZ_AREA:
		if (!me->area)
			break;
		at = within(m, me->area, me->header.area_stride, bytes);
		break;
	case FUZZ_GROUP:
		group = some_group(m);
		if (group)
			at = within(m, group, me->header.group_stride, bytes);
		break;
	case FUZZ_TABLE:
		if (me->base)
			return within(m, me->base, me->join.total_bytes, bytes);
		break;
	case FUZZ_NOWHERE:
		return odd_address(m);
	}
	return memcpy(at, from, bytes);
}

/* ---- a job ---- */

static void begin_job(struct fuzz_memory *m)
{
	pthread_mutex_lock(&m->lock);
	m->over = false;
	m->times = 0;
	m->job = true;
	pthread_cond_broadcast(&m->changed);
	/* A change at a random moment must not come too late. */
	while (!m->working && m->job)
		pthread_cond_wait(&m->changed, &m->lock);
	pthread_mutex_unlock(&m->lock);
}

void *memory_begin(struct fuzz_memory *m, const struct fuzz_op *op, const void *from, u32 bytes,
		   int file)
{
	const struct actor *a = &m->worker->a;

	m->a.random = (op->seed * 0x9e3779b97f4a7c15ULL) | 1;
	m->a.me = a->me;
	m->a.pool_fd = a->pool_fd;
	m->a.opened = a->opened;
	m->op = op;
	m->bytes = bytes;
	m->file = file;
	/* Mostly the size. */
	m->word = !one_in(&m->a, 4) ? 0 : chance(&m->a) % (bytes / 4);
	m->value[0] = m->word ? odd_number(&m->a) : chance(&m->a) % XM_REQUEST_BYTES;
	m->value[1] = odd_number(&m->a);
	m->at = NULL;
	FUZZ_GUARDED(m->at = place(m, from, bytes));
	if (is_late(op) || op->change != FUZZ_NOTHING)
		begin_job(m);
	return m->at;
}

bool memory_once_more(struct fuzz_memory *m, u32 asked)
{
	if (!changes_always(m->op) || asked >= MOST_TIMES)
		return false;
	return __atomic_load_n(&m->times, __ATOMIC_RELAXED) < CHANGES;
}

bool memory_end(struct fuzz_memory *m, void *to, u32 bytes)
{
	const struct fuzz_op *op = m->op;
	u64 one = 1;

	if (is_late(op) || op->change != FUZZ_NOTHING) {
		pthread_mutex_lock(&m->lock);
		__atomic_store_n(&m->over, true, __ATOMIC_RELEASE);
		while (write(m->end, &one, sizeof(one)) != sizeof(one))
			;
		while (m->job)
			pthread_cond_wait(&m->changed, &m->lock);
		while (read(m->end, &one, sizeof(one)) != sizeof(one))
			;
		pthread_mutex_unlock(&m->lock);
	}
	if (op->change == FUZZ_REWRITE || op->change == FUZZ_UNMAP)
		return false;
	if (op->place == FUZZ_PLAIN)
		memcpy(to, m->at, bytes);
	else if (is_late(op) && m->here[0] && (op->place == FUZZ_MISSING || m->here[1]))
		memcpy(to, m->at, bytes);
	else
		return false;
	return true;
}

/* ---- once ---- */

static void *pages(unsigned int count, int protection)
{
	void *start = mmap(NULL, count * RAW_PAGE, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return start == MAP_FAILED ? NULL : start;
}

static bool make_late(struct fuzz_memory *m)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register region = { .mode = UFFDIO_REGISTER_MODE_MISSING };

	m->late = pages(2, PROT_READ | PROT_WRITE);
	m->brought = pages(2, PROT_READ | PROT_WRITE);
	m->end = eventfd(0, EFD_CLOEXEC);
	m->faults = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	region.range.start = (u64)(unsigned long)m->late;
	region.range.len = 2 * RAW_PAGE;
	return m->late && m->brought && m->end >= 0 && m->faults >= 0 &&
		!ioctl(m->faults, UFFDIO_API, &api) &&
		!ioctl(m->faults, UFFDIO_REGISTER, &region);
}

static bool make_twice(struct fuzz_memory *m)
{
	int file = memfd_create("twice", MFD_CLOEXEC);

	if (file < 0 || ftruncate(file, RAW_PAGE))
		return false;
	m->alias = mmap(NULL, RAW_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	m->readonly = mmap(NULL, RAW_PAGE, PROT_READ, MAP_SHARED, file, 0);
	close(file);
	return m->alias != MAP_FAILED && m->readonly != MAP_FAILED;
}

struct fuzz_memory *memory_new(struct fuzz_worker *w)
{
	struct fuzz_memory *m = pages(1 + sizeof(*m) / RAW_PAGE, PROT_READ | PROT_WRITE);
	pthread_t thread;

	if (!m)
		return NULL;
	m->worker = w;
	m->a = w->a;
	pthread_mutex_init(&m->lock, NULL);
	pthread_cond_init(&m->changed, NULL);
	m->plain = pages(PLAIN_PAGES + 1, PROT_READ | PROT_WRITE);
	if (!m->plain || mprotect(m->plain + PLAIN_PAGES * RAW_PAGE, RAW_PAGE, PROT_NONE) ||
	    !make_late(m) || !make_twice(m))
		return NULL;
	errno = pthread_create(&thread, NULL, partner, m);
	return errno ? NULL : m;
}
