// SPDX-License-Identifier: MIT
/*
 * Processes that ask xmem.ko for anything: each request with plausible and with
 * senseless fields, garbage in all pages that a client may write, odd mappings,
 * copies of files in children, and SIGKILL at no particular moment.
 *
 *   random-requests [PROCESSES] [REQUESTS of each]     XMEM_TEST_SEED=...
 *
 * Meanwhile a bystander in one of the pools keeps what it holds. No process may get
 * a signal other than the intended SIGKILL. In the end the pools have gone, the
 * kernel is as untainted as before (the VM judges its log), and new clients work. With
 * xmem_test_gpu.ko some payloads are memory of a GPU, and its files have gone, too.
 * The seed decides what each process asks, not how the processes meet.
 */
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "core/request.h"
#include "gpu.h"

#define KEPT		"random-kept"		/* the bystander is there all the time */
#define BRIEF		"random-brief"		/* comes and goes */
#define AT_ONCE		4			/* processes */
#define CLIENTS		3			/* of each */
#define PAYLOAD_PAGES	16

/* One process. */
#define POLLED	4

struct actor {
	u64 random;
	struct raw client[CLIENTS];
	struct raw *me;			/* who asks now */
	int memfd, shared, pool_fd;
	int gpu;			/* a file of the test GPU, or -1 */
	u32 opened;			/* memory of a GPU that was opened last; or 0 */
	int polled[POLLED];		/* from POLL_FD; their clients may have ended since */
};

/* ---- chance ---- */

static u64 chance(struct actor *a)
{
	/* xorshift64: never 0 from a state that is not */
	a->random ^= a->random << 13;
	a->random ^= a->random >> 7;
	a->random ^= a->random << 17;
	return a->random;
}

static bool one_in(struct actor *a, unsigned int n)
{
	return !(chance(a) % n);
}

/* Small numbers, the edges of what is allowed, or anything. */
static u64 odd_number(struct actor *a)
{
	static const u64 edges[] = {
		0, 1, 2, 3, 63, 64, 127, 128, 255, 256, 4096, 0xffff, 0x10000, 0x7fffffff,
		0xfffffffe, 0xffffffff, 1ULL << 36, XMEM_ENTRY_VOID, ~0ULL,
		XM_HOLD_DEVICE | 1, XMEM_MAX_DEVICE_BYTES, XMEM_READY_ENDED,
	};

	switch (chance(a) % 6) {
	case 0:
		return chance(a);
	case 1:
		return edges[chance(a) % (sizeof(edges) / sizeof(*edges))];
	}
	return chance(a) % 20;
}

/* ---- requests: fields that may be right ---- */

/* Rather one of its own: most requests for others' are refused, and early. */
static u32 some_slot(struct actor *a)
{
	const struct xm_map *map = &a->me->map;
	u32 slot, tries = 16;

	do
		slot = chance(a) % map->slots;
	while (--tries && xm_load(&xm_slot_row(map, slot)->owner) != a->me->join.client);
	return slot;
}

/* Rather one that there is. */
static u32 some_payload(struct actor *a)
{
	return xm_load(&xm_slot_row(&a->me->map, some_slot(a))->payload);
}

static void fill_join(struct actor *a, union xm_request *r)
{
	r->join = raw_joining(one_in(a, 2) ? KEPT : BRIEF,
			      one_in(a, 2) ? XMEM_ROLE_READER : XMEM_ROLE_WRITER);
	if (r->join.role == XMEM_ROLE_WRITER && one_in(a, 2))
		r->join.wait_bound_ns = 1000;
	if (a->pool_fd >= 0 && one_in(a, 4)) {
		r->join.flags = XMEM_JOIN_FD;
		r->join.pool_fd = a->pool_fd;
		r->join.name[0] = 0;
	} else if (one_in(a, 8)) {
		r->join.name[0] = 0;
	} else if (one_in(a, 4)) {
		r->join.flags = 1U << chance(a) % 4;
	}
}

static void fill_nothing(struct actor *a, union xm_request *r)
{
}

static void fill_pools(struct actor *a, union xm_request *r)
{
	r->pools.number = one_in(a, 2) ? 0 : odd_number(a);
}

/* More devices than a pool knows. */
static void fill_attach_gpu(struct actor *a, union xm_request *r)
{
	u32 flags = chance(a) % 2 ? 0 : XMEM_ATTACH_READERS;
	int fd = a->gpu;

	if (a->gpu < 0 || one_in(a, 2)) {
		flags |= XMEM_ATTACH_HANDLE;
		fd = one_in(a, 2) ? a->gpu : -1;
	} else if (one_in(a, 2)) {
		flags |= XMEM_ATTACH_SHARED;
	}
	r->attach = gpu_attaching(fd, flags, 1 + chance(a) % 4, 1 + chance(a) % 20, 1);
	r->attach.stride = r->attach.length = 64 * (1 + chance(a) % 4);
}

static void fill_attach(struct actor *a, union xm_request *r)
{
	if (one_in(a, 3)) {
		fill_attach_gpu(a, r);
		return;
	}
	r->attach = raw_attaching(a->memfd, 1 + chance(a) % (one_in(a, 8) ? XMEM_GROUP_SLOTS : 4));
	r->attach.stride = r->attach.length = 64 * (1 + chance(a) % 4);
	if (one_in(a, 3)) {
		r->attach.fd = -1;
		r->attach.payload = some_payload(a);
	} else if (one_in(a, 3)) {
		r->attach.fd = a->shared;
		r->attach.flags = XMEM_ATTACH_SHARED;
	}
	r->attach.flags |= one_in(a, 8) ? XMEM_ATTACH_ONCE : 0;
}

static void fill_payload(struct actor *a, union xm_request *r)
{
	static const u32 flags[] = {
		0, XMEM_PAYLOAD_WRITE, XMEM_PAYLOAD_OPEN, XMEM_PAYLOAD_OPEN, XMEM_PAYLOAD_CLOSE,
	};

	r->payload.flags = flags[chance(a) % (sizeof(flags) / sizeof(*flags))];
	r->payload.payload = r->payload.flags == XMEM_PAYLOAD_CLOSE && one_in(a, 2) ?
		a->opened : some_payload(a);
}

/* What a client says of a slot that it says it holds. Of a GPU: its id stays taken for long. */
static u32 some_hold(struct actor *a)
{
	return one_in(a, 8) ? XM_HOLD_DEVICE | 1 : 1;
}

static void fill_subscribe(struct actor *a, union xm_request *r)
{
	r->subscribe.publisher = chance(a) % 16;
	r->subscribe.flags = chance(a) % 4;
}

static void fill_unsubscribe(struct actor *a, union xm_request *r)
{
	const struct xm_map *map = &a->me->map;
	unsigned int tries = 16;

	do
		r->unsubscribe.publisher = chance(a) % map->clients;
	while (--tries && !xm_bit(xm_client_row(map, r->unsubscribe.publisher)->subscribers,
				  a->me->join.client));
}

static void fill_waiters(struct actor *a, union xm_request *r)
{
	r->wait.kind = chance(a) % 3;
	if (r->wait.kind == XMEM_WAIT_SLOTS)
		r->wait.client = a->me->join.client;
	else if (r->wait.kind == XMEM_WAIT_RING)
		r->wait.client = chance(a) % 16;
}

/* What arm would have said, as often as not; never for long, see process(). */
static void fill_wait(struct actor *a, union xm_request *r)
{
	union xm_request armed = { .size = sizeof(armed.wait) };

	fill_waiters(a, &armed);
	if (one_in(a, 2))
		raw_request(a->me, XMEM_IOC_ARM, &armed);
	*r = armed;
	r->wait.deadline_ns = one_in(a, 8) ? ~0ULL : raw_now_ns() + chance(a) % 1000000;
}

static void fill_slot(struct actor *a, union xm_request *r)
{
	r->slot.slot = some_slot(a);
}

/* A client that says that it holds the slot is a holder. */
static void fill_resolve(struct actor *a, union xm_request *r)
{
	const struct raw *me = a->me;

	fill_slot(a, r);
	r->slot.generation = xm_generation(xm_load(&xm_slot(&me->map, r->slot.slot)->state));
	if (me->area)
		xm_store(xm_hold(&me->map, me->join.client, r->slot.slot), some_hold(a));
}

/* Mostly a shared slot, which its owner says is LIVE. */
static void fill_upgrade(struct actor *a, union xm_request *r)
{
	const struct raw *me = a->me;
	const struct xmem_slot_row *row;
	int tries = 32;

	do {
		fill_resolve(a, r);
		row = xm_slot_row(&me->map, r->slot.slot);
	} while (--tries && !(xm_load(&row->traits) & XMEM_TRAIT_SHARED));
	if (raw_has_group(me, r->slot.slot / XMEM_GROUP_SLOTS) && !one_in(a, 8)) {
		r->slot.generation = xm_load(&row->generation_first);
		xm_store(&xm_slot(&me->map, r->slot.slot)->state,
			 xm_word(r->slot.generation, 0, XMEM_SLOT_LIVE));
	}
	r->upgrade.flags = one_in(a, 8) ? 1u << chance(a) % 3 : 0;
}

static void fill_poll_fd(struct actor *a, union xm_request *r)
{
	r->poll_fd.kind = chance(a) % 3;
	if (r->poll_fd.kind != XMEM_POLL_RING)
		return;
	r->poll_fd.publisher = chance(a) % 16;
	r->poll_fd.incarnation = 1 + chance(a) % 64;
}

/* Anybody's slot; a client that says that it holds it may take. */
static void fill_claim(struct actor *a, union xm_request *r)
{
	const struct raw *me = a->me;
	u32 slot = one_in(a, 4) ? chance(a) % me->map.slots : some_slot(a);
	u64 *state = &xm_slot(&me->map, slot)->state;

	if (raw_has_group(me, slot / XMEM_GROUP_SLOTS) && !one_in(a, 4))
		xm_store(state, (xm_load(state) & ~7ULL) | XMEM_SLOT_LIVE);
	r->claim.slot = slot;
	r->claim.op = chance(a) % 8 ? XMEM_CLAIM_ADD + chance(a) % 2 : XMEM_CLAIM_VOID;
	r->claim.generation = xm_generation(xm_load(state));
	if (r->claim.op != XMEM_CLAIM_VOID)
		r->claim.count = 1 + chance(a) % 3;
	if (r->claim.op == XMEM_CLAIM_ADD)
		r->claim.timeout_ns = one_in(a, 16) ? ~0ULL : chance(a) % 10000000;
	if (me->area && one_in(a, 2))
		xm_store(xm_hold(&me->map, me->join.client, slot), some_hold(a));
}

/* ---- requests: what follows when one was taken ---- */

static void keep_polled(struct actor *a, union xm_request *r)
{
	int *place = &a->polled[chance(a) % POLLED];

	if (*place >= 0)
		close(*place);
	*place = r->poll_fd.fd;
}

static void keep_pool_fd(struct actor *a, union xm_request *r)
{
	if (a->pool_fd >= 0)
		close(a->pool_fd);
	a->pool_fd = r->pool_fd.fd;
}

static void map_groups(struct actor *a, union xm_request *r)
{
	u32 i;

	for (i = 0; i < r->attach.count; i++)
		raw_map_group(a->me, r->attach.slot[i] / XMEM_GROUP_SLOTS);
}

static void close_payload(struct actor *a, union xm_request *r)
{
	if (r->payload.flags & XMEM_PAYLOAD_OPEN)
		a->opened = r->payload.payload;
	if (r->payload.fd >= 0)
		close(r->payload.fd);
}

#define REQUEST(NUMBER, type_, fill_, taken_) \
	{ #type_, XMEM_IOC_##NUMBER, sizeof(struct xmem_##type_##_request), fill_, taken_ }
static const struct kind {
	const char *type;
	unsigned int request;
	u32 size;
	void (*fill)(struct actor *a, union xm_request *r);
	void (*taken)(struct actor *a, union xm_request *r);
} kinds[] = {
	REQUEST(JOIN, join, fill_join, NULL),
	REQUEST(POOL_FD, pool_fd, fill_nothing, keep_pool_fd),
	REQUEST(ATTACH, attach, fill_attach, map_groups),
	REQUEST(PAYLOAD, payload, fill_payload, close_payload),
	REQUEST(SUBSCRIBE, subscribe, fill_subscribe, NULL),
	REQUEST(UNSUBSCRIBE, unsubscribe, fill_unsubscribe, NULL),
	REQUEST(ARM, wait, fill_waiters, NULL),
	REQUEST(WAIT, wait, fill_wait, NULL),
	REQUEST(WAKE, wait, fill_waiters, NULL),
	REQUEST(RESOLVE, slot, fill_resolve, NULL),
	REQUEST(COLLECT, slot, fill_slot, NULL),
	REQUEST(RENEW, slot, fill_slot, NULL),
	REQUEST(DETACH, slot, fill_slot, NULL),
	REQUEST(QUERY, query, fill_nothing, NULL),
	REQUEST(POOLS, pools, fill_pools, NULL),
	REQUEST(POLL_FD, poll_fd, fill_poll_fd, keep_polled),
	REQUEST(CLAIM, claim, fill_claim, NULL),
	REQUEST(UPGRADE, upgrade, fill_upgrade, NULL),
};
#define KINDS	(sizeof(kinds) / sizeof(*kinds))

/* Shared by all processes. */
static struct tally {
	u32 taken[KINDS], refused[KINDS];
} *tally;

static void set_word(union xm_request *r, unsigned int place, u32 word)
{
	memcpy((char *)r + place * sizeof(word), &word, sizeof(word));
}

/* One field that makes no sense gets further than many. */
static void garble(struct actor *a, union xm_request *r, unsigned int words)
{
	unsigned int i;

	if (!one_in(a, 4)) {
		set_word(r, chance(a) % words, odd_number(a));
		return;
	}
	for (i = 0; i < words; i++)
		set_word(r, i, odd_number(a));
}

/* One in four is garbled; nearly all joins are by files of their own. */
static void ask(struct actor *a)
{
	unsigned int k = chance(a) % KINDS;
	struct { union xm_request r; u64 newer[16]; } asked = { .newer = { 0 } };
	union xm_request *r = &asked.r;
	struct raw joins = RAW_NONE, *who = a->me;
	int err;

	kinds[k].fill(a, r);
	if (one_in(a, 4))
		garble(a, r, kinds[k].size / 4);
	if (one_in(a, 8))	/* what only a newer caller knows */
		asked.newer[chance(a) % 16] = odd_number(a);
	r->size = one_in(a, 32) ? odd_number(a) % sizeof(asked) : kinds[k].size;
	if (kinds[k].request == XMEM_IOC_JOIN && !one_in(a, 8)) {
		raw_open(&joins);
		who = &joins;
	}
	err = raw_request(who, kinds[k].request, r);
	__atomic_fetch_add(err ? &tally->refused[k] : &tally->taken[k], 1, __ATOMIC_RELAXED);
	if (!err && kinds[k].taken)
		kinds[k].taken(a, r);
	if (!err && kinds[k].request == XMEM_IOC_JOIN)
		close(r->join.fd);
	raw_end(&joins);
}

/* ---- other things that a process can do ---- */

static void scribble(struct actor *a)
{
	struct raw *me = a->me;
	u64 n, *word;
	u32 g;

	for (n = chance(a) % 64; me->area && n; n--) {
		word = (u64 *)me->area + chance(a) % (me->header.area_stride / 8);
		xm_store(word, odd_number(a));
	}
	for (g = 0; me->area && g < me->map.groups; g++) {
		for (n = raw_has_group(me, g) ? chance(a) % 64 : 0; n; n--) {
			u32 word = chance(a) % XMEM_GROUP_SLOTS;
			struct xmem_slot_word *slot = &me->map.group[g]->word[word];

			/* Mostly another state alone: a wrong generation makes the slot useless. */
			xm_store(&slot->state, one_in(a, 16) ? odd_number(a) :
				 (xm_load(&slot->state) & ~7ULL) | chance(a) % 5);
			if (one_in(a, 4))
				xm_store(&slot->position, odd_number(a));
		}
	}
}

/* All of the pool can be read at any time; so can whatever else was mapped for reading alone. */
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
	/* Some stay: up to the limit. */
	if (start != MAP_FAILED && !one_in(a, 8))
		munmap(start, count * RAW_PAGE);
	read_pages(me->base, me->join.total_bytes);
}

/* Whatever comes of it, a mapping for reading can be read and not be written. */
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

/* The client ends, in one of the ways that there are, and another takes its place. */
static void replace(struct actor *a)
{
	struct raw *me = a->me;
	union xm_request r = { .size = 0 };

	switch (chance(a) % 4) {
	case 0:
		/*
		 * What is left of the mapping keeps the client alive. Nobody touches
		 * it again, and the process's end takes it away.
		 */
		if (me->area)
			munmap(me->area, RAW_PAGE);
		me->area = NULL;
		return;
	case 1:
		/* The mappings are the client's life, and its file's. */
		close(me->file);
		me->file = -1;
		scribble(a);
		break;
	}
	raw_end(me);
	fill_join(a, &r);
	raw_start(me, &r.join);
}

/*
 * A child that inherits all the files and stands still. It ends with its
 * parent's process group, which is killed.
 */
static void leave_child(struct actor *a)
{
	if (fork())
		return;
	for (;;)
		pause();
}

/* While this process goes on asking; so it dies at any moment. */
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
			   .polled = { -1, -1, -1, -1 } };
	union xm_request r = { .size = 0 };
	unsigned int i;

	a.memfd = raw_memfd(PAYLOAD_PAGES, 0);
	a.shared = raw_shared_memfd(PAYLOAD_PAGES);
	a.gpu = gpu_file();
	start_clock();
	for (i = 0; i < CLIENTS; i++) {
		fill_join(&a, &r);
		raw_start(&a.client[i], &r.join);
	}
	while (requests--) {
		a.me = &a.client[chance(&a) % CLIENTS];
		/* The table may have been full; then it tries again. */
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
	int other;			/* a signal that nobody sent, or an exit status */
};

/*
 * Run this many processes at once. Some kill themselves, the others end; then
 * the children that they left are killed.
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
	char list[512] = "";
	unsigned int i, length = 0, never = 0;

	for (i = 0; i < KINDS; i++) {
		length += snprintf(list + length, sizeof(list) - length, " %u:%u+%u",
				   _IOC_NR(kinds[i].request), tally->taken[i], tally->refused[i]);
		never += !tally->taken[i] || !tally->refused[i];
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

static void judge(const char *name, const char *trouble)
{
	if (trouble)
		fail(name, "%s", trouble);
	else
		pass(name, "well");
}

static const char *judge_pools(void)
{
	static char text[64];
	unsigned int shown = raw_pools_shown(0);

	if (raw_pool_exists(KEPT) || raw_pool_exists(BRIEF))
		return "a name is still taken";
	snprintf(text, sizeof(text), "%u in sysfs", shown);
	return shown ? text : NULL;
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

static u64 choose_seed(void)
{
	const char *given = getenv("XMEM_TEST_SEED");
	u64 seed = given ? strtoull(given, NULL, 0) : 0;

	if (!given && getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		seed = raw_now_ns();
	printf("XMEM_TEST_SEED=0x%llx\n", (unsigned long long)seed);
	fflush(stdout);
	return seed;
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
	judge("pools have gone", judge_pools());
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
