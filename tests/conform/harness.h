/* SPDX-License-Identifier: MIT */
/*
 * The parts that every conformance test uses: registration, child processes, the steps at which a
 * process can be killed or stopped, and checks of a pool.
 *
 * One binary runs on both hosts; XMEM_BACKEND says which. A test's name begins with the promise
 * that it checks (docs/design.md, "Promises"). Each test runs in a process of its own and uses
 * pools of its own; its children are killed and its descriptors counted when it ends. The scenarios
 * are in the other files.
 */
#ifndef XMEM_CONFORM_HARNESS_H
#define XMEM_CONFORM_HARNESS_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "lib/host/backend.h"
#include "xmem.h"

#define MS	1000000LL
#define SECOND	1000000000LL

/* ---- registration ---- */

struct test {
	const char *name;
	void (*run)(void);
	const char *file;
	int seconds;			/* limit on a calm machine; see patience_ns */
	struct test *next;
};
void add_test(struct test *test);

#define TEST_WITHIN(name_, seconds_) \
	static void name_(void); \
	static struct test test_##name_ = { #name_, name_, __FILE__, seconds_, NULL }; \
	__attribute__((constructor)) static void add_##name_(void) { add_test(&test_##name_); } \
	static void name_(void)
#define TEST(name_)	TEST_WITHIN(name_, 20)

/* ---- verdicts; in a child they end the child, and reaping it fails or skips the test ---- */

void fail_at(const char *file, int line, const char *format, ...)
	__attribute__((noreturn, format(printf, 3, 4)));
void skip(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

/*
 * With XMEM_TEST_PAUSES a few checks of each process begin with a pause of up to 255 ms, like those
 * on a busy machine. So verdicts that depend on a test's speed come to light.
 */
void pause_now_and_then(void);

#define FAIL(...)	fail_at(__FILE__, __LINE__, __VA_ARGS__)
#define CHECK(cond)	do { \
	pause_now_and_then(); \
	if (!(cond)) \
		FAIL("%s", #cond); \
} while (0)
#define SAME(got, want) do { \
	pause_now_and_then(); \
	long long got_ = (long long)(got), want_ = (long long)(want); \
	if (got_ != want_) \
		FAIL("%s is %lld (0x%llx), not %s = %lld", #got, got_, got_, #want, want_); \
} while (0)
/* Why this thread's last call failed; empty if none has. */
const char *last_message(void);
/* A call that must fail with this errno, which must also be in the thread's last error. */
#define REFUSED(handle, error) do { \
	pause_now_and_then(); \
	if (handle) \
		FAIL("%s succeeded", #handle); \
	SAME(xmem_peek_last_error(NULL), -(error)); \
} while (0)
#define WORKED(call) do { \
	pause_now_and_then(); \
	int err_ = (call); \
	if (err_ < 0) \
		FAIL("%s: %s (%s)", #call, strerror(-err_), last_message()); \
} while (0)

/* Describe the source of a buffer's contents in place. */
#define SOURCE(buffer, ...) \
	xmem_describe_source(buffer, XMEM_OPTIONS(xmem_source, __VA_ARGS__))

/*
 * Wait until @cond. Nothing announces what the pages of other processes will show, so the macro
 * checks again and again until a deadline. No test assumes that something has happened because time
 * has passed.
 */
#define EVENTUALLY(cond) do { \
	int64_t end_ = now_ns() + patience_ns(); \
	while (!(cond)) { \
		if (now_ns() > end_) \
			FAIL("never: %s", #cond); \
		look_again_soon(); \
	} \
} while (0)
int64_t now_ns(void);
/*
 * How long a test waits for an expected event. It is a limit against hangs only, so it is long:
 * XMEM_TEST_PATIENCE percent of 100 s. A test's own limit depends on it.
 */
int64_t patience_ns(void);
double patience(void);			/* XMEM_TEST_PATIENCE / 100, or 1 */
void look_again_soon(void);
/* The bytes of this process's mappings whose line in /proc/self/maps has these words. */
uint64_t mapped_bytes(const char *words);
size_t page_size(void);			/* of an ordinary page of this system */
size_t huge_page_size(void);		/* of the pages in its pool; 2 MB if it has none */

/*
 * The count for loops: XMEM_TEST_SCALE percent of @count (100; in the virtual machine 15), at least
 * 1.
 */
unsigned int scaled(unsigned int count);
/* For random tests: XMEM_TEST_SEED or a new one. The first call prints it. */
uint64_t seed(void);
uint64_t random_next(uint64_t *state);

/* ---- what is being tested ---- */

bool on_kernel(void);
bool in_vm(void);			/* alone on its machine: system settings may be changed */
void kernel_only(const char *why);	/* else skip */
/*
 * Skip unless processes of this test may become several users, by be_user, and join by the kernel.
 */
void several_users_or_skip(void);
void be_user(uid_t uid);		/* and its group */
/* The message of the thread's last error has these words. */
void error_says(const char *words);
void daemon_only(const char *why);
/* Set a parameter of the module. Its value before is put into @ret_old [32], which may be NULL. */
void set_parameter(const char *name, const char *value, char *ret_old);
void steps_only(void);			/* skip in a flavour without XMEM_STEPS */
const struct xmem_backend *host_backend(void);

/* Use a daemon of this test alone from now on. Its path is removed when the test ends. */
void use_own_daemon(void);
/* This daemon is stopped; 0: none is. */
void note_stopped(pid_t daemon);
bool is_stopped(pid_t process);

/* ---- children ---- */

struct child {
	pid_t pid;
	int link;			/* to the child; in the child: to its parent */
};

/*
 * Run @body in a forked process. It dies with its parent. After a child has been reaped, its struct
 * serves the next one.
 */
struct child *spawn(void (*body)(void *argument), void *argument);
/* In a child, to the test; in the test, to a child. */
void tell_parent(uint64_t what);
uint64_t hear_parent(void);
void tell(struct child *child, uint64_t what);
uint64_t hear(struct child *child);
/* Send a descriptor. */
void send_file(int link, int file);
int receive_file(int link);
int parent_link(void);
/* SIGKILL and reap. Fails if the child was dead already. */
void kill_child(struct child *child);
/* The child must end by itself with status 0, or by SIGKILL. */
void finish_child(struct child *child);
void died_of_kill(struct child *child);
bool child_has_ended(const struct child *child);	/* it can still be reaped by the above */
void stop_child(struct child *child);		/* SIGSTOP, and wait until it is stopped */
void wait_stopped(struct child *child);
void continue_child(struct child *child);
/* No other thread of this process runs, and none of its children do. */
bool others_sleep(void);
/*
 * Wait until a waiter has armed @word and all others sleep. A waiter that has only armed the word
 * checks once more before it sleeps. So it would also notice an event that has not woken it.
 */
void until_asleep(const uint32_t *word);

/* ---- steps of the protocol ---- */

enum at_step { STEP_KILL = 1, STEP_STOP, STEP_CALL };
#define ANY_STEP	(-1)

/* In this process: when @step is reached after @after times, do that. */
void at_step(int step, unsigned int after, enum at_step what, void (*call)(int step));
void no_step(void);
unsigned int steps_seen(void);			/* since at_step */
/* From now on steps_seen() counts how often this process has checked again or gone to sleep. */
void count_waits(void);
const char *step_name(int step);

/* ---- pools ---- */

/* A new name, of this test alone. */
const char *new_name(void);

struct setup {
	uint32_t flags, slots, clients, ring;
	int64_t wait_bound_ns;
	const char *label;
	uint64_t demand_bytes, cache_bytes;
	int64_t cache_ns;
	uint32_t memory;
};
struct xmem_pool *open_with(const char *name, const struct setup *setup);
#define OPEN(name, ...)	open_with(name, &(struct setup){ __VA_ARGS__ })
struct xmem_pool *open_reader(const char *name);
/* Open by a descriptor; NULL: it fails. @flags: XMEM_OPEN_*. */
struct xmem_pool *open_by_fd(int fd, uint32_t flags);
struct xmem_pool *open_writer(const char *name, unsigned int buffers, size_t bytes);
struct xmem_subscription *follow(struct xmem_pool *pool, int publisher, uint32_t flags);

/* Call xmem_preallocate with XMEM_MEMORY_CUDA. @flags: others of XMEM_MEMORY_*. */
int make_on_gpu(struct xmem_pool *pool, size_t bytes, uint32_t count, int device, uint32_t flags);

/* How many bytes xmem_collect gives back, or -errno. */
int64_t trim_pool(struct xmem_pool *pool, uint64_t keep);

/* The struct is filled with poison before the call. */
struct xmem_pool_info stat_of(struct xmem_pool *pool);
struct xmem_subscription_info sub_info(struct xmem_subscription *subscription);
struct xmem_buffer_info info_of(struct xmem_buffer *buffer);
/*
 * @clients clients are left, no client holds anything, and dead clients left no contents and no
 * ring.
 */
void check_quiet(struct xmem_pool *pool, unsigned int clients);

/* Acquire, fill with @stamp, and publish; the token. Fails the test if it cannot. */
uint64_t publish_stamp(struct xmem_pool *pool, uint64_t stamp);
/* Publish it to that subscriber alone. */
int send_to(struct xmem_buffer *buffer, int client, uint64_t *ret_token);
/*
 * Publish as publish_stamp does, and keep the handle. Contents that nobody holds and no subscriber
 * will receive may be reclaimed at once, so a token is passed on only while its buffer is held.
 */
uint64_t publish_kept(struct xmem_pool *pool, uint64_t stamp, struct xmem_buffer **ret_kept);
/* Published by @pool, and held by @reader alone. */
struct xmem_buffer *publish_and_get(struct xmem_pool *pool, struct xmem_pool *reader,
				    uint64_t stamp);
/* Receive one publication, and check that all its words are one stamp. */
struct xmem_buffer *receive_one(struct xmem_subscription *subscription);
uint64_t stamp_of(struct xmem_buffer *buffer);
void fill(struct xmem_buffer *buffer, uint64_t stamp);
/* Fill the contents from @word on, which xmem_data_mut has returned. */
void fill_at(struct xmem_buffer *buffer, uint64_t *word, uint64_t stamp);

/* ---- the host itself, past the library ---- */

struct raw {
	struct xmem_link link;
	struct xm_map map;
	bool mapped;
};
void raw_open(struct raw *raw);
int raw_join(struct raw *raw, const char *name, uint32_t role, uint32_t flags);
/* Open, join and map. Fails the test if one of them fails. */
void raw_start(struct raw *raw, const char *name, uint32_t role);

/* Skip where a process cannot make a fork inherit its mappings of a pool (MADV_DOFORK). */
void forks_have_mappings_or_skip(void);
int raw_request(struct raw *raw, unsigned int request, void *argument);
/* A request about a slot, enum xmem_slot_op. */
int raw_slot(struct raw *raw, uint32_t op, uint32_t slot);
/* The request is made with this op, enum xmem_wait_op. */
int raw_wait(struct raw *raw, uint32_t op, struct xmem_wait_request *request);
void raw_close(struct raw *raw);

/* A memfd of @bytes, allocated, with @seals. */
int new_memfd(size_t bytes, unsigned int seals);
#define GOOD_SEALS	(F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE)
/* Attach @count slots of 4096 bytes of @file: 0 or -errno. *ret_request may be NULL. */
int raw_attach(struct raw *raw, int file, unsigned int count,
	       struct xmem_attach_request *ret_request);

/* Load from @word, or store garbage: the signal that this caused, or 0. */
int touch(volatile uint32_t *word, bool store);

/* Does the host count client @subscriber among those of @publisher? */
/* Hold what the token names. Its living owner may be scanning it just now. */
void raw_hold(const struct raw *raw, uint64_t token);
bool raw_follows(const struct raw *raw, int subscriber, int publisher);

/* ---- a daemon that is stopped; after use_own_daemon ---- */

/*
 * A receive and an acquire that do not wait treat a daemon as stopped if it is silent for this
 * long. On a busy machine a running daemon may be silent for long. So tests wait patiently, except
 * where they have stopped it.
 */
#define HOST_IS_BUSY	(5 * SECOND)
#define HOST_IS_STOPPED	(20 * MS)
void set_host_patience(int64_t ns);
pid_t stop_daemon(void);			/* SIGSTOP, and wait until it is stopped */
void continue_daemon(pid_t daemon);
/*
 * The steps of the daemon that this test starts afterwards: XMEMD_STEPS in docs/environment.md. The
 * numbers say how often it has come to each step of core/step.h. The one behind them stops it.
 */
uint64_t *steps_of_daemon(void);
/*
 * From now on this process and the daemon share one processor, and waking this process interrupts
 * the daemon there. So the calls of this process run in the middle of the daemon's work. On the
 * kernel's host this does nothing.
 */
void interrupt_the_daemon(void);
/* When the host answers, it has served all earlier requests of this client. */
void host_has_served(struct xmem_pool *pool);
struct xmem_subscription *subscribe_for(struct xmem_pool *pool, int publisher, uint32_t flags,
					int64_t timeout_ns);

/* Open descriptors of this process. */
unsigned int open_files(void);
/*
 * A test may leave more open descriptors than it found: a real driver opens some, and keeps them.
 */
extern bool files_may_stay;

/* ---- used by main.c alone ---- */

struct outcome {
	bool ran, skipped;
	pid_t stopped;			/* a daemon to continue if the test cannot do it */
	char why[256];
};
struct test *first_test(void);
void run_test(struct test *test, struct outcome *outcome);

#endif
