// SPDX-License-Identifier: MIT
/*
 * P9: a request is given up, before it was sent or after. The host still learns what the library
 * knows: no ring is followed without a subscription, and no call is refused because of a
 * subscription that is gone.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include "harness.h"
#include "lib/host/exchange.h"
#include "lib/private.h"

#define BYTES	4096

struct pair {
	struct xmem_pool *writer, *reader;
	struct raw raw;
	int me, publisher;
};

static void open_pair_of(struct pair *pair, unsigned int buffers)
{
	const char *name;

	daemon_only("the kernel does not stop");
	use_own_daemon();
	name = new_name();
	pair->writer = OPEN(name, .flags = XMEM_OPEN_WRITER, .wait_bound_ns = 3600 * SECOND);
	WORKED(xmem_preallocate(pair->writer, BYTES, buffers, NULL));
	pair->publisher = xmem_pool_client(pair->writer);
	pair->reader = open_reader(name);
	pair->me = xmem_pool_client(pair->reader);
	raw_start(&pair->raw, name, XMEM_ROLE_READER);
}

static void open_pair(struct pair *pair)
{
	open_pair_of(pair, 2);
}

/* No subscription is left, so the writer waits for no client, and subscribing works. */
static void check_no_ghost(struct pair *pair)
{
	struct xmem_subscription *s;

	host_has_served(pair->reader);
	CHECK(!raw_follows(&pair->raw, pair->me, pair->publisher));
	CHECK((s = subscribe_for(pair->reader, pair->publisher, XMEM_SUBSCRIBE_WAITS, 0)));
	publish_stamp(pair->writer, 1);
	xmem_release(receive_one(s));
	xmem_unsubscribe(s);
}

static void close_pair(struct pair *pair)
{
	raw_close(&pair->raw);
	xmem_pool_close(pair->reader);
	xmem_pool_close(pair->writer);
}

TEST(P9_a_subscription_given_up_behind_an_unsubscribe_is_undone)
{
	struct xmem_subscription *s;
	struct pair pair;
	pid_t daemon;

	open_pair(&pair);
	CHECK((s = subscribe_for(pair.reader, pair.publisher, XMEM_SUBSCRIBE_WAITS, 0)));
	daemon = stop_daemon();
	xmem_unsubscribe(s);
	REFUSED(subscribe_for(pair.reader, pair.publisher, XMEM_SUBSCRIBE_WAITS, 100 * MS),
		ETIMEDOUT);
	continue_daemon(daemon);
	check_no_ghost(&pair);
	close_pair(&pair);
}

/* ---- another thread has its request under way ---- */

static bool sleeps(pid_t thread)
{
	char path[64], text[256] = "";
	int file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", thread);
	file = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(file >= 0 && read(file, text, sizeof(text) - 1) > 0);
	close(file);
	return strstr(text, ") S ");
}

struct asking {
	struct xmem_pool *pool;
	pid_t thread;			/* atomic; 0 until it asks */
	int file;
};

static void *ask(void *argument)
{
	struct asking *asking = argument;

	__atomic_store_n(&asking->thread, gettid(), __ATOMIC_RELEASE);
	asking->file = xmem_pool_fd(asking->pool);
	return NULL;
}

TEST(P9_an_unsubscribe_behind_a_request_is_not_lost)
{
	struct asking asking = { .thread = 0 };
	struct xmem_subscription *s;
	struct pair pair;
	pthread_t thread;
	pid_t daemon;

	open_pair(&pair);
	CHECK((s = subscribe_for(pair.reader, pair.publisher, XMEM_SUBSCRIBE_WAITS, 0)));
	asking.pool = pair.reader;
	daemon = stop_daemon();
	CHECK(!pthread_create(&thread, NULL, ask, &asking));
	EVENTUALLY(__atomic_load_n(&asking.thread, __ATOMIC_ACQUIRE));
	EVENTUALLY(sleeps(asking.thread));
	xmem_unsubscribe(s);
	continue_daemon(daemon);
	CHECK(!pthread_join(thread, NULL));
	WORKED(asking.file);
	close(asking.file);
	check_no_ghost(&pair);
	close_pair(&pair);
}

/* ---- a writer that was followed alone ---- */

struct going {
	pid_t daemon, thread;
};

static void *go_on_when_it_sleeps(void *argument)
{
	struct going *going = argument;

	EVENTUALLY(sleeps(going->thread));
	continue_daemon(going->daemon);
	return NULL;
}

#define MANY	4

/* The library waits for the daemon once, and not again before it has answered. */
TEST(P9_many_unsubscribe_while_the_daemon_is_stopped)
{
	struct xmem_pool *writer[MANY], *reader;
	struct xmem_subscription *s[MANY];
	const struct xl_exchange *exchange;
	uint64_t before;
	const char *name;
	pid_t daemon;
	int i;

	daemon_only("the kernel does not stop");
	use_own_daemon();
	name = new_name();
	for (i = 0; i < MANY; i++)
		writer[i] = open_writer(name, 1, BYTES);
	reader = open_reader(name);
	for (i = 0; i < MANY; i++)
		s[i] = follow(reader, xmem_pool_client(writer[i]), 0);
	exchange = reader->link.private;	/* it comes first there */
	daemon = stop_daemon();
	before = exchange->number;
	for (i = 0; i < MANY; i++)
		xmem_unsubscribe(s[i]);
	SAME(exchange->number, before + 1);	/* each wait is for the answer to a request */
	continue_daemon(daemon);
	host_has_served(reader);
	/* Now the library waits for the daemon again. */
	before = exchange->number;
	for (i = 0; i < 2; i++)
		xmem_unsubscribe(follow(reader, xmem_pool_client(writer[i]), 0));
	CHECK(exchange->number >= before + 4);
	xmem_pool_close(reader);
	for (i = 0; i < MANY; i++)
		xmem_pool_close(writer[i]);
}

/* The host does not know yet that the writer is free, and the joint subscription still finds it. */
TEST(P9_what_was_unsubscribed_from_is_followed_at_once)
{
	struct xmem_subscribe_options all = {
		.size = sizeof(all), .flags = XMEM_SUBSCRIBE_NOWAIT,
	};
	struct going going = { .thread = getpid() };
	struct xmem_subscription *s;
	struct pair pair;
	pthread_t thread;

	open_pair(&pair);
	CHECK((s = subscribe_for(pair.reader, pair.publisher, 0, 0)));
	going.daemon = stop_daemon();
	xmem_unsubscribe(s);
	CHECK(!pthread_create(&thread, NULL, go_on_when_it_sleeps, &going));
	s = xmem_subscribe(pair.reader, &all);
	CHECK(!pthread_join(thread, NULL));
	CHECK(s);
	publish_stamp(pair.writer, 1);
	xmem_release(receive_one(s));
	xmem_unsubscribe(s);
	close_pair(&pair);
}

/* ---- signals and stops at any moment ---- */

#define PERIOD_US	700

static void tick(int signal)
{
}

static void set_timer(long us)
{
	struct itimerval timer = { { 0, us }, { 0, us } };

	CHECK(!setitimer(ITIMER_REAL, &timer, NULL));
}

static void stop_again_and_again(void *argument)
{
	for (;;)
		continue_daemon(stop_daemon());
}

static void subscribe_under_signals(struct pair *pair, bool joint)
{
	struct xmem_subscribe_options options = {
		.size = sizeof(options), .flags = joint ? 0 : XMEM_SUBSCRIBE_PUBLISHER,
		.publisher = joint ? 0 : pair->publisher,
	};
	struct xmem_subscription *s = xmem_subscribe(pair->reader, &options);

	if (!s)
		SAME(xmem_peek_last_error(NULL), -EINTR);
	xmem_unsubscribe(s);
}

TEST_WITHIN(P9_signals_leave_no_ghost, 60)
{
	struct sigaction action = { .sa_handler = tick };
	struct child *child;
	struct pair pair;
	unsigned int i;

	open_pair(&pair);
	CHECK(!sigaction(SIGALRM, &action, NULL));
	child = spawn(stop_again_and_again, NULL);
	set_timer(PERIOD_US);
	for (i = 0; i < scaled(4000); i++)
		subscribe_under_signals(&pair, i % 2);
	set_timer(0);
	kill_child(child);
	continue_daemon(stop_daemon());
	check_no_ghost(&pair);
	close_pair(&pair);
}

/* ---- writers that join ---- */

/*
 * Publish until a publication is received. For a moment the host still follows the ring that was
 * given up. So its list of subscribers does not show whether the library follows, too; only a
 * received publication does.
 */
static struct xmem_buffer *receive_what_it_publishes(struct xmem_subscription *s,
						     struct xmem_pool *writer, uint64_t stamp)
{
	struct xmem_buffer *b = NULL;

	EVENTUALLY(publish_stamp(writer, stamp) && (b = xmem_receive(s, MS)));
	return b;
}

/* Although signals have ended attempts, the newcomer is followed; then it is received. */
static void receive_from_a_newcomer(struct xmem_subscription *s, const char *name)
{
	struct xmem_pool *newcomer = open_writer(name, 2, BYTES);
	struct xmem_buffer *b;
	pid_t daemon = stop_daemon();
	unsigned int i;

	set_timer(PERIOD_US);
	for (i = 0; i < 5; i++)
		CHECK(!xmem_receive(s, patience_ns()));
	set_timer(0);
	continue_daemon(daemon);
	b = receive_what_it_publishes(s, newcomer, 7);
	SAME(stamp_of(b), 7);
	xmem_release(b);
	xmem_pool_close(newcomer);
}

TEST(P9_signals_lose_no_writer_that_comes)
{
	struct sigaction action = { .sa_handler = tick };
	struct xmem_subscribe_options all = { .size = sizeof(all) };
	struct xmem_subscription *s;
	struct pair pair;
	unsigned int i;

	open_pair(&pair);
	CHECK((s = xmem_subscribe(pair.reader, &all)));
	CHECK(!sigaction(SIGALRM, &action, NULL));
	for (i = 0; i < 5; i++)
		receive_from_a_newcomer(s, (const char *)pair.raw.map.pool->name);
	xmem_unsubscribe(s);
	close_pair(&pair);
}

/*
 * The stopped host cannot follow the newcomer yet. Writers that are followed already are received.
 */
TEST(P9_a_newcomer_keeps_nobody_waiting_for_a_stopped_daemon)
{
	struct xmem_subscription *all, *which;
	struct xmem_pool *newcomer;
	struct xmem_buffer *b;
	struct pair pair;
	pid_t daemon;

	open_pair_of(&pair, 4);
	CHECK((all = xmem_subscribe(pair.reader, NULL)));
	newcomer = open_writer((const char *)pair.raw.map.pool->name, 4, BYTES);
	daemon = stop_daemon();
	publish_stamp(pair.writer, 1);
	publish_stamp(pair.writer, 2);
	publish_stamp(pair.writer, 3);
	CHECK((b = xmem_receive(all, 0)));
	xmem_release(b);
	CHECK((b = xmem_receive(all, patience_ns())));
	xmem_release(b);
	CHECK((b = xmem_receive_any(pair.reader, 0, &which)) && which == all);
	xmem_release(b);
	REFUSED(xmem_receive(all, 0), EAGAIN);
	REFUSED(xmem_receive(all, 50 * MS), ETIMEDOUT);
	REFUSED(xmem_receive_any(pair.reader, 0, NULL), EAGAIN);
	continue_daemon(daemon);
	/* Nothing announces that the daemon runs again, and yet the library asks it again. */
	b = receive_what_it_publishes(all, newcomer, 4);
	SAME(info_of(b).publisher, xmem_pool_client(newcomer));
	xmem_release(b);
	xmem_unsubscribe(all);
	xmem_pool_close(newcomer);
	close_pair(&pair);
}

/* ---- new generations ---- */

static uint32_t only_slot(const struct pair *pair)
{
	uint32_t slot = 0;

	while (xm_load(&xm_slot_row(&pair->raw.map, slot)->owner) != (uint32_t)pair->publisher)
		slot++;
	return slot;
}

/* Acquire while the daemon is stopped, until a signal ends it. */
static void acquire_in_vain(struct xmem_pool *writer)
{
	set_timer(20 * 1000);
	REFUSED(xmem_acquire(writer, BYTES, 0), EINTR);
	set_timer(0);
}

/*
 * The generations of a slot are used up, and the request for new ones is given up. The host may
 * serve it at any time, so the slot is not acquired before an answer has come.
 */
TEST(P1_a_slot_is_not_written_while_it_may_be_renewed)
{
	struct sigaction action = { .sa_handler = tick };
	u64 *state, before, spent;
	struct pair pair;
	pid_t daemon;

	open_pair_of(&pair, 1);
	CHECK(!sigaction(SIGALRM, &action, NULL));
	state = &xm_slot(&pair.raw.map, only_slot(&pair))->state;
	before = xm_load(state);
	spent = ((xm_generation(before) >> XMEM_TENANCY_SHIFT) + 1) << XMEM_TENANCY_SHIFT;
	daemon = stop_daemon();
	SAME(xm_state(before), XMEM_SLOT_FREE);
	xm_store(state, xm_word(spent - 1, 0, XMEM_SLOT_FREE));	/* taking the slot adds 1 */
	acquire_in_vain(pair.writer);
	SAME(xm_load(state), xm_word(spent, 0, XMEM_SLOT_WRITING));
	xm_store(state, xm_word(xm_generation(before), 0, XMEM_SLOT_WRITING));
	acquire_in_vain(pair.writer);
	continue_daemon(daemon);
	publish_stamp(pair.writer, 1);
	check_no_ghost(&pair);
	close_pair(&pair);
}
