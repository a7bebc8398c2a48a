// SPDX-License-Identifier: MIT
/*
 * strangers [NAME...]: one user tries to read, take or disturb the memory and clients of another
 * user's pool, and to stay where it does not belong. ends.c and ends_wakes.c test the cost in time,
 * and exhaust.c the use of limited resources.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "attack.h"

#define NAME	"strangers"
#define SECRET	"secret"		/* a label */

/* ---- the victim ---- */

struct victim {
	struct kid kid;
	int pool_fd;
	struct {
		int pool_fd;
		u32 client;
		u64 payload[6];		/* the payloads of leased[] */
	} *shared;
	unsigned int clients;		/* capacity; 0: the default */
};
static struct raw its;			/* the client, in the victim */

static const char *keeps(void *argument)
{
	struct victim *victim = argument;
	struct xmem_join_request join = raw_joining(NAME, XMEM_ROLE_WRITER);

	join.clients = victim->clients ? victim->clients : join.clients;
	snprintf((char *)join.label, sizeof(join.label), "victim");
	SAME(become(VICTIM), 0);
	SAME(raw_start(&its, &join), 0);
	victim->shared->client = its.join.client;
	victim->shared->pool_fd = pool_descriptor(&its);
	WANT(victim->shared->pool_fd >= 0);
	return NULL;
}

static const char *start_living(struct victim *victim, const char *(*live)(void *),
				unsigned int clients)
{
	*victim = (struct victim){ .clients = clients };
	victim->shared = shared_memory(sizeof(*victim->shared));
	WANT(victim->shared);
	GOES_WELL(kid_start(&victim->kid, live, victim));
	victim->pool_fd = take_descriptor(&victim->kid, victim->shared->pool_fd);
	WANT(victim->pool_fd >= 0);
	return NULL;
}

static const char *start_victim(struct victim *victim, unsigned int clients)
{
	return start_living(victim, keeps, clients);
}

static bool is_alive(const struct raw *raw, u32 client)
{
	return xm_load(&xm_client_row(&raw->map, client)->state) == XMEM_CLIENT_ALIVE;
}

static u32 count_alive(const struct raw *raw)
{
	u32 c, count = 0;

	for (c = 0; c < raw->map.clients; c++)
		count += is_alive(raw, c);
	return count;
}

/* ---- what an ended client sees ---- */

static bool finds(const char *start, u64 bytes, const char *words)
{
	return memmem(start, bytes, words, strlen(words)) != NULL;
}

static const char *ends_and_reads(void *argument)
{
	static struct raw me;
	const struct victim *victim = argument;
	struct xmem_join_request join = joining_by_file(victim->pool_fd, XMEM_ROLE_READER);

	SAME(become(ATTACKER), 0);
	SAME(raw_start(&me, &join), 0);
	WANT(finds(me.base, me.header.groups_offset, "victim"));
	SAME(munmap(me.area, me.header.area_stride), 0);
	kid_pause();
	/* Only the process that closes a client waits for that (docs/kernel.md, step 2). */
	WANT(EVENTUALLY(!finds(me.base, me.header.groups_offset, "victim")));
	WANT(!finds(me.base, me.header.groups_offset, SECRET));
	return NULL;
}

static const char *joins_in_secret(void *argument)
{
	static struct raw me;
	const struct victim *victim = argument;
	struct xmem_join_request join = joining_by_file(victim->pool_fd, XMEM_ROLE_READER);

	snprintf((char *)join.label, sizeof(join.label), SECRET);
	SAME(become(VICTIM), 0);
	SAME(raw_start(&me, &join), 0);
	return NULL;
}

static const char *the_ended_read_nothing(void)
{
	struct kid attacker, newcomer;
	struct victim victim;

	GOES_WELL(start_victim(&victim, 0));
	GOES_WELL(kid_start(&attacker, ends_and_reads, &victim));
	GOES_WELL(kid_start(&newcomer, joins_in_secret, &victim));
	kid_go_on(&attacker);
	return kid_ready(&attacker);
}

/* ---- mappings ---- */

static const char *splits_are_limited(void)
{
	struct xmem_join_request join;
	struct victim victim;
	static struct raw me;
	unsigned int areas = 1;
	u64 from;

	GOES_WELL(start_victim(&victim, 0));
	join = joining_by_file(victim.pool_fd, XMEM_ROLE_READER);
	SAME(become(ATTACKER), 0);
	SAME(raw_start(&me, &join), 0);
	for (from = RAW_PAGE; from + RAW_PAGE < me.join.total_bytes; from += 2 * RAW_PAGE) {
		if (mprotect(me.base + from, RAW_PAGE, PROT_NONE))
			break;
		areas += 2;
	}
	if (areas > 64 + me.map.groups)
		return wrong("one mapping has become %u", areas);
	return NULL;
}

static int status_of_reading_child(const struct raw *raw)
{
	int status = 0;
	pid_t pid = fork();

	if (!pid)
		_exit(((volatile const char *)raw->base)[0] ? 0 : 1);
	waitpid(pid, &status, 0);
	return status;
}

static const char *children_read_nothing(void)
{
	struct xmem_join_request join;
	struct victim victim;
	static struct raw me;
	int status;

	GOES_WELL(start_victim(&victim, 0));
	join = joining_by_file(victim.pool_fd, XMEM_ROLE_READER);
	SAME(become(ATTACKER), 0);
	SAME(raw_start(&me, &join), 0);
	SAME(madvise(me.base, me.join.total_bytes, MADV_DOFORK), 0);
	status = status_of_reading_child(&me);
	if (!WIFSIGNALED(status))
		return wrong("the child has read, status 0x%x", status);
	SAME(WTERMSIG(status), SIGBUS);
	return NULL;
}

/* ---- names ---- */

#define FORMER_FOREIGN	(1u << 3)	/* a former flag by which a joiner admitted itself */

/* Is it in the victim's pool, or refused, or in a pool of its own? */
static const char *joins_by_name(unsigned int flags, bool *ret_inside)
{
	struct xmem_join_request join = raw_joining(NAME, XMEM_ROLE_WRITER);
	static struct raw me;
	int err;

	join.flags = flags;
	err = raw_start(&me, &join);
	*ret_inside = !err && finds(me.base, me.header.groups_offset, "victim");
	raw_end(&me);
	return NULL;
}

static const char *strangers_join_nothing(void)
{
	static const unsigned int flags[] = {
		0, XMEM_JOIN_EXISTING, FORMER_FOREIGN, FORMER_FOREIGN | XMEM_JOIN_EXISTING,
	};
	struct victim victim;
	bool inside;
	u32 i;

	GOES_WELL(start_victim(&victim, 0));
	SAME(become(ATTACKER), 0);
	for (i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		GOES_WELL(joins_by_name(flags[i], &inside));
		if (inside)
			return wrong("let in by the flags 0x%x", flags[i]);
	}
	return NULL;
}

static const char *takes_the_name(void *unused)
{
	struct xmem_join_request join = raw_joining("squatted", XMEM_ROLE_WRITER);
	static struct raw me;

	SAME(become(ATTACKER), 0);
	SAME(raw_start(&me, &join), 0);
	return NULL;
}

static const char *names_are_not_squatted(void)
{
	struct xmem_join_request join = raw_joining("squatted", XMEM_ROLE_WRITER);
	static struct raw me;
	struct kid attacker;

	GOES_WELL(kid_start(&attacker, takes_the_name, NULL));
	SAME(become(VICTIM), 0);
	SAME(raw_start(&me, &join), 0);
	SAME(count_alive(&me), 1);
	return NULL;
}

/* ---- tenancies ---- */

#define THREADS	64u
#define BURSTS	20u

static struct raw owner;
static struct {
	pthread_barrier_t begin, end;
	u32 slot;
	atomic_uint done;		/* renewals of this burst */
} burst;

/* Renews once in each burst. */
static void *renews(void *unused)
{
	u32 i;

	for (i = 0; i < BURSTS; i++) {
		pthread_barrier_wait(&burst.begin);
		if (!raw_slot(&owner, XMEM_OP_RENEW, burst.slot))
			atomic_fetch_add(&burst.done, 1);
		pthread_barrier_wait(&burst.end);
	}
	return NULL;
}

/* Each of the threads uses up one tenancy. *ret_spare_ms: by how much this is too fast. */
static u32 one_burst(int *ret_spare_ms)
{
	u64 begin = raw_now_ns();
	u32 done;

	atomic_store(&burst.done, 0);
	pthread_barrier_wait(&burst.begin);
	pthread_barrier_wait(&burst.end);
	done = atomic_load(&burst.done);
	*ret_spare_ms = (int)done - 1 - (int)((raw_now_ns() - begin) / 1000000);
	return done;
}

/* A slot has 2^24 tenancies, so all threads together use up one in a millisecond. */
static const char *tenancies_last(void)
{
	struct xmem_join_request join = raw_joining(NAME, XMEM_ROLE_WRITER);
	struct xmem_attach_request attach = raw_attaching(raw_memfd(1, 1), 1);
	int spare_ms, most_ms = -1000000;
	u32 i, done = 0;
	pthread_t thread;

	SAME(become(ATTACKER), 0);
	SAME(raw_start(&owner, &join), 0);
	SAME(raw_request(&owner, XMEM_IOC_ATTACH, &attach), 0);
	burst.slot = attach.slot[0];
	pthread_barrier_init(&burst.begin, NULL, THREADS + 1);
	pthread_barrier_init(&burst.end, NULL, THREADS + 1);
	for (i = 0; i < THREADS; i++)
		SAME(pthread_create(&thread, NULL, renews, NULL), 0);
	for (i = 0; i < BURSTS; i++) {
		done += one_burst(&spare_ms);
		most_ms = spare_ms > most_ms ? spare_ms : most_ms;
	}
	figure("%u bursts of %u threads: %u tenancies, the fastest %d ms too soon", BURSTS, THREADS,
	       done, most_ms);
	WANT(done > 0);
	if (most_ms > 1)
		return wrong("a burst of %u threads has used up its tenancies %d ms too soon",
			     THREADS, most_ms);
	return NULL;
}

/* ---- clients that never map ---- */

#define FEW	8u

static const char *joins_unmapped(void *argument)
{
	static struct raw me;
	struct victim *victim = argument;
	struct xmem_join_request join = joining_by_file(victim->pool_fd, XMEM_ROLE_READER);

	SAME(become(ATTACKER), 0);
	SAME(raw_open(&me), 0);
	SAME(raw_join(&me, &join), 0);
	victim->shared->client = me.file;
	kid_pause();
	close(me.file);
	return NULL;
}

/* Each has passed its file to another process, closed it, and exited. */
static const char *the_unmapped_leave_no_id(void)
{
	struct xmem_join_request join;
	struct victim victim;
	struct kid kid;
	static struct raw me;
	u32 i;

	GOES_WELL(start_victim(&victim, FEW));
	for (i = 1; i < FEW; i++) {
		GOES_WELL(kid_start(&kid, joins_unmapped, &victim));
		WANT(take_descriptor(&kid, victim.shared->client) >= 0);
		kid_go_on(&kid);
		GOES_WELL(kid_ready(&kid));
		kid_kill(&kid);
		kid_reap(&kid);
	}
	join = joining_by_file(victim.pool_fd, XMEM_ROLE_READER);
	SAME(become(VICTIM), 0);
	WANT(EVENTUALLY(!raw_start(&me, &join) || (raw_end(&me), false)));
	return NULL;
}

/* ---- waking ---- */

static const char *start_stranger(struct raw *me, u32 *ret_victim)
{
	struct xmem_join_request join;
	struct victim victim;

	GOES_WELL(start_victim(&victim, 0));
	join = joining_by_file(victim.pool_fd, XMEM_ROLE_READER);
	SAME(become(ATTACKER), 0);
	SAME(raw_start(me, &join), 0);
	*ret_victim = victim.shared->client;
	return NULL;
}

static const char *strangers_wake_nobody(void)
{
	struct xmem_wait_request wake = { .size = sizeof(wake), .kind = XMEM_WAIT_RING };
	static struct raw me;

	GOES_WELL(start_stranger(&me, &wake.client));
	SAME(raw_wait(&me, XMEM_OP_WAKE, &wake), -EPERM);
	wake.kind = XMEM_WAIT_CLIENTS;
	wake.client = 0;
	SAME(raw_wait(&me, XMEM_OP_WAKE, &wake), -EPERM);
	return NULL;
}

static const char *strangers_wake_no_owners(void)
{
	struct xmem_wait_request wake = { .size = sizeof(wake), .kind = XMEM_WAIT_SLOTS };
	static struct raw me;

	GOES_WELL(start_stranger(&me, &wake.client));
	SAME(raw_wait(&me, XMEM_OP_WAKE, &wake), -EPERM);
	return NULL;
}

#define SLEEPERS	10u
#define CYCLES		30u

struct sleeping {
	const struct victim *victim;
	atomic_uint ready, wakes;
};

/* Follows the victim's ring, and counts its wake-ups without a publication. */
static void *sleeps(void *argument)
{
	struct sleeping *what = argument;
	struct xmem_join_request join = joining_by_file(what->victim->pool_fd, XMEM_ROLE_READER);
	struct xmem_subscribe_request subscribe = {
		.size = sizeof(subscribe), .publisher = what->victim->shared->client,
	};
	struct xmem_wait_request wait = {
		.size = sizeof(wait), .kind = XMEM_WAIT_RING, .client = subscribe.publisher,
	};
	struct raw me;

	if (raw_start(&me, &join) || raw_request(&me, XMEM_IOC_SUBSCRIBE, &subscribe))
		return NULL;
	for (;;) {
		wait.deadline_ns = wait.value = 0;
		if (raw_wait(&me, XMEM_OP_ARM, &wait))
			return NULL;
		atomic_fetch_add(&what->ready, 1);
		wait.deadline_ns = ~0ULL;
		if (raw_wait(&me, XMEM_OP_WAIT, &wait))
			return NULL;
		atomic_fetch_add(&what->wakes, 1);
	}
}

static const char *sleep_in_threads(void *argument)
{
	struct sleeping *what = argument;
	pthread_t thread;
	u32 i;

	SAME(become(VICTIM), 0);
	for (i = 0; i < SLEEPERS; i++)
		SAME(pthread_create(&thread, NULL, sleeps, what), 0);
	WANT(EVENTUALLY(atomic_load(&what->ready) >= SLEEPERS));
	return NULL;
}

static const char *joins_wake_no_sleepers(void)
{
	struct sleeping *what = shared_memory(sizeof(*what));
	struct xmem_join_request join;
	struct victim victim;
	struct kid sleepers;
	static struct raw me;
	u32 i, before;

	GOES_WELL(start_victim(&victim, 0));
	what->victim = &victim;
	GOES_WELL(kid_start(&sleepers, sleep_in_threads, what));
	before = atomic_load(&what->wakes);
	SAME(become(ATTACKER), 0);
	for (i = 0; i < CYCLES; i++) {
		join = joining_by_file(victim.pool_fd,
				       i % 2 ? XMEM_ROLE_WRITER : XMEM_ROLE_READER);
		SAME(raw_start(&me, &join), 0);
		raw_end(&me);
	}
	i = atomic_load(&what->wakes) - before;
	figure("%u joins and ends have woken %u sleepers %u times", CYCLES, SLEEPERS, i);
	if (i > CYCLES)
		return wrong("%u joins and ends have woken %u sleepers %u times", CYCLES, SLEEPERS,
			     i);
	return NULL;
}

/* ---- sysfs, namespaces ---- */

static const char *sysfs_is_private(void)
{
	struct victim victim;
	const char *name;

	GOES_WELL(start_victim(&victim, 0));
	WANT(EVENTUALLY(pool_says("name")[0]));
	SAME(become(ATTACKER), 0);
	name = pool_says("name");
	if (name[0])
		return wrong("another user reads the name of the pool: %s", name);
	return NULL;
}

#define NAMESPACES	40u
#define AT_A_TIME	"10"	/* network namespaces of one user, as the kernel counts them */

/* Makes a pool in a network namespace of its own; only the client's file stays. */
static const char *leaves_a_namespace(void *argument)
{
	static struct raw me;
	struct xmem_join_request join = raw_joining("", XMEM_ROLE_READER);

	/* The kernel removes ended namespaces a little later. */
	WANT(EVENTUALLY(!unshare(CLONE_NEWNET)));
	SAME(raw_start(&me, &join), 0);
	*(int *)argument = me.file;
	return NULL;
}

static const char *namespaces_are_not_kept(void)
{
	int *number = shared_memory(sizeof(*number));
	int most = open("/proc/sys/user/max_net_namespaces", O_WRONLY | O_CLOEXEC);
	struct kid kid;
	u32 i;

	SAME(write(most, AT_A_TIME, strlen(AT_A_TIME)), strlen(AT_A_TIME));
	close(most);
	for (i = 0; i < NAMESPACES; i++) {
		const char *why = kid_start(&kid, leaves_a_namespace, number);

		if (why)
			return wrong("%u have gone, and no further one can be made", i);
		WANT(take_descriptor(&kid, *number) >= 0);
		kid_kill(&kid);
		kid_reap(&kid);
	}
	return NULL;
}

/* ---- leases ---- */

#define HUGE_BYTES	(2u << 20)

/* A sealed memfd in one huge page, or -errno. */
static int huge_memfd(void)
{
	int file = memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);

	if (file < 0 || ftruncate(file, HUGE_BYTES) || fallocate(file, 0, 0, HUGE_BYTES) ||
	    fcntl(file, F_ADD_SEALS, RAW_SEALS))
		return -errno;
	return file;
}

static int ordinary_memfd(void)
{
	return raw_memfd(1, 1);
}

static int shared_memfd(void)
{
	return raw_shared_memfd(1);
}

/*
 * The lease is on the descriptor that memfd_create gave. A write lease needs exactly one counted
 * writer, and the kernel does not count this descriptor. So the descriptor gets no write lease
 * before another process has opened the file.
 */
#define BY_ITS_MAKER	(-1)

/* Payloads with a lease, which would make clients wait that request them. */
static const struct {
	int (*make)(void);
	int access;			/* mode of the descriptor with the lease, or BY_ITS_MAKER */
	int lease;
	u32 attach, payload;		/* flags */
} leased[] = {
	{ ordinary_memfd, O_RDWR, F_WRLCK, 0, 0 },
	{ shared_memfd, O_RDONLY, F_RDLCK, XMEM_ATTACH_SHARED, XMEM_PAYLOAD_WRITE },
	{ huge_memfd, O_RDWR, F_WRLCK, 0, 0 },
	{ ordinary_memfd, BY_ITS_MAKER, F_WRLCK, 0, 0 },
	{ shared_memfd, BY_ITS_MAKER, F_WRLCK, XMEM_ATTACH_SHARED, XMEM_PAYLOAD_WRITE },
	{ huge_memfd, BY_ITS_MAKER, F_WRLCK, 0, 0 },
};
#define LEASED	(sizeof(leased) / sizeof(*leased))

/* Opens a descriptor of the file of @memfd, for the lease of leased[i]. */
static int leased_by(u32 i, int memfd)
{
	char path[40];

	if (leased[i].access == BY_ITS_MAKER)
		return dup(memfd);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", memfd);
	return open(path, leased[i].access | O_CLOEXEC);
}

static const char *refused_while_leased(const struct raw *me, struct xmem_attach_request attach,
					int holder, int lease)
{
	SAME(fcntl(holder, F_SETLEASE, lease), 0);
	SAME(raw_request(me, XMEM_IOC_ATTACH, &attach), -EBUSY);
	SAME(fcntl(holder, F_SETLEASE, F_UNLCK), 0);
	return NULL;
}

/* Attaches leased[i]. That fails while there is a lease; after it none can be taken. */
static const char *attach_leased(const struct raw *me, u32 i, u64 *ret_payload)
{
	struct xmem_attach_request attach = raw_attaching(leased[i].make(), 1);
	int holder;

	WANT(attach.fd >= 0);
	holder = leased_by(i, attach.fd);
	WANT(holder >= 0);
	attach.flags = leased[i].attach;
	if (leased[i].access != BY_ITS_MAKER)
		GOES_WELL(refused_while_leased(me, attach, holder, leased[i].lease));
	SAME(raw_request(me, XMEM_IOC_ATTACH, &attach), 0);
	close(attach.fd);
	if (fcntl(holder, F_SETLEASE, leased[i].lease) != -1 || errno != EAGAIN)
		return wrong("the file of payload %u can be given a lease", i);
	*ret_payload = attach.payload;
	return NULL;
}

static const char *asks_for_the_leased(void *argument)
{
	struct xmem_payload_request request = { .size = sizeof(request) };
	struct victim *victim = argument;
	u32 i;

	GOES_WELL(keeps(argument));
	kid_pause();
	for (i = 0; i < LEASED; i++) {
		request.payload = victim->shared->payload[i];
		request.flags = leased[i].payload;
		SAME(raw_request(&its, XMEM_IOC_PAYLOAD, &request), 0);
		SAME(fcntl(request.fd, F_GETFL) & O_NONBLOCK, 0);
	}
	return NULL;
}

static const char *leases_keep_nobody_waiting(void)
{
	int pages = open("/proc/sys/vm/nr_hugepages", O_WRONLY | O_CLOEXEC);
	struct xmem_join_request join;
	struct victim victim;
	static struct raw me;
	u32 i;

	SAME(write(pages, "4", 1), 1);
	close(pages);
	signal(SIGIO, SIG_IGN);		/* the kernel sends it to the lease's holder at an open */
	GOES_WELL(start_living(&victim, asks_for_the_leased, 0));
	join = joining_by_file(victim.pool_fd, XMEM_ROLE_WRITER);
	SAME(become(ATTACKER), 0);
	SAME(raw_start(&me, &join), 0);
	for (i = 0; i < LEASED; i++)
		GOES_WELL(attach_leased(&me, i, &victim.shared->payload[i]));
	kid_go_on(&victim.kid);
	return kid_ready(&victim.kid);
}

/* ---- a client's own stop ---- */

#define WAITERS		40u		/* more than a waker wakes by itself */
#define KICKS		3000u

/* Threads of one client wait for a word that no process wakes, until they are told to stop. */
static struct {
	struct raw client;
	atomic_bool stop;
	atomic_uint gone;
} stopped;

static void *waits_until_stopped(void *unused)
{
	struct xmem_wait_request wait = { .size = sizeof(wait), .kind = XMEM_WAIT_CLIENTS };

	do {
		wait.value = wait.kicks = wait.deadline_ns = 0;
		if (raw_wait(&stopped.client, XMEM_OP_ARM, &wait))
			return NULL;
		wait.deadline_ns = ~0ULL;
	} while (!atomic_load(&stopped.stop) &&
		 raw_wait(&stopped.client, XMEM_OP_WAIT, &wait) == 0);
	if (atomic_load(&stopped.stop))
		atomic_fetch_add(&stopped.gone, 1);
	return NULL;
}

/* Meanwhile wake-ups of earlier kicks reach threads that are about to sleep. */
static const char *a_stop_finds_all_threads(void)
{
	struct xmem_join_request join = raw_joining("", XMEM_ROLE_WRITER);
	struct xmem_wait_request kick = { .size = sizeof(kick) };
	u64 until;
	pthread_t thread;
	u32 i;

	SAME(raw_start(&stopped.client, &join), 0);
	for (i = 0; i < WAITERS; i++)
		SAME(pthread_create(&thread, NULL, waits_until_stopped, NULL), 0);
	for (i = 0; i < KICKS; i++) {
		SAME(raw_wait(&stopped.client, XMEM_OP_KICK, &kick), 0);
		for (until = raw_now_ns() + i % 16 * 100000; raw_now_ns() < until;)
			sched_yield();
	}
	atomic_store(&stopped.stop, true);
	SAME(raw_wait(&stopped.client, XMEM_OP_KICK, &kick), 0);
	if (!EVENTUALLY(atomic_load(&stopped.gone) == WAITERS))
		return wrong("%u of %u threads have not heard of the stop",
			     WAITERS - atomic_load(&stopped.gone), WAITERS);
	return NULL;
}

/* ---- what stays mapped ---- */

#define BETWEEN	20u		/* groups of the victim */

static const char *attach_group(struct raw *owner)
{
	int file = raw_memfd(1, 1);
	struct xmem_attach_request attach = raw_attaching(file, XMEM_GROUP_SLOTS);
	bool more;

	attach.stride = attach.length = 64;
	GOES_WELL(fill_group(owner, &attach, &more));
	close(file);
	WANT(more);
	return NULL;
}

/* Counts the faults that a read of so many bytes takes. */
static long faults_in(const char *start, u64 bytes)
{
	struct rusage before, after;
	u64 at;

	getrusage(RUSAGE_SELF, &before);
	for (at = 0; at < bytes; at += RAW_PAGE)
		(void)*(volatile const char *)(start + at);
	getrusage(RUSAGE_SELF, &after);
	return after.ru_minflt - before.ru_minflt;
}

/* Counts faults in its own groups, which it has mapped writable and as part of the pool. */
static long faults_in_groups(const struct raw *raw)
{
	u64 stride = raw->header.group_stride;
	long faults = 0;
	u32 g;

	for (g = 0; g < raw->map.groups; g++)
		if (raw_has_group(raw, g))
			faults += faults_in((const char *)raw->map.group[g], stride) +
				  faults_in(raw->base + raw->header.groups_offset + g * stride,
					    stride);
	return faults;
}

/*
 * Two members end at once. One has the first group and the last one; the other has the last but
 * one. The victim has all other groups, and none of these is unmapped.
 */
static const char *groups_stay_mapped(void)
{
	struct xmem_join_request join = raw_joining("", XMEM_ROLE_WRITER);
	struct raw one, other;
	long faults;
	u32 g;

	join.slots = (BETWEEN + 3) * XMEM_GROUP_SLOTS;
	SAME(raw_start(&its, &join), 0);
	join = joining_by_file(pool_descriptor(&its), XMEM_ROLE_WRITER);
	SAME(raw_start(&one, &join), 0);
	SAME(raw_start(&other, &join), 0);
	GOES_WELL(attach_group(&one));
	for (g = 0; g < BETWEEN; g++)
		GOES_WELL(attach_group(&its));
	GOES_WELL(attach_group(&other));
	GOES_WELL(attach_group(&one));
	WANT(raw_has_group(&one, 0) && raw_has_group(&one, BETWEEN + 2));
	faults_in(its.base, its.join.total_bytes);
	faults_in_groups(&its);
	SAME(faults_in_groups(&its), 0);
	munmap(other.area, other.header.area_stride);
	munmap(one.area, one.header.area_stride);
	one.area = other.area = NULL;
	raw_end(&one);
	raw_end(&other);
	faults = faults_in_groups(&its);
	figure("two ends cost a member %ld faults in its own groups, and %ld elsewhere", faults,
	       faults_in(its.base, its.join.total_bytes));
	if (faults)
		return wrong("%ld pages of a member's own groups are unmapped when others end",
			     faults);
	return NULL;
}

static const struct attack attacks[] = {
	{ "K3_the_ended_read_nothing", the_ended_read_nothing, false },
	{ "K4_splits_are_limited", splits_are_limited, false },
	{ "K4_children_read_nothing", children_read_nothing, false },
	{ "K9_strangers_join_nothing_by_name", strangers_join_nothing, false },
	{ "K11_tenancies_last", tenancies_last, true },
	{ "K12_the_unmapped_leave_no_id", the_unmapped_leave_no_id, false },
	{ "K13_strangers_wake_nobody", strangers_wake_nobody, false },
	{ "K13_strangers_wake_no_owners", strangers_wake_no_owners, false },
	{ "K13_joins_wake_no_sleepers", joins_wake_no_sleepers, false },
	{ "K14_names_are_not_squatted", names_are_not_squatted, false },
	{ "K16_sysfs_is_private", sysfs_is_private, false },
	{ "K18_namespaces_are_not_kept", namespaces_are_not_kept, false },
	{ "F1_leases_keep_nobody_waiting", leases_keep_nobody_waiting, false },
	{ "P4_groups_stay_mapped_when_others_end", groups_stay_mapped, false },
	{ "P9_a_stop_finds_all_threads", a_stop_finds_all_threads, false },
};

int main(int argc, char **argv)
{
	return attack_main(attacks, sizeof(attacks) / sizeof(*attacks), argc, argv);
}
