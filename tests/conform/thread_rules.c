// SPDX-License-Identifier: MIT
/*
 * The rule for threads of each public function, and the effects of cancelled threads and of
 * signals.
 *
 * Each function has a row here, which calls it as its header allows. All rows run in several
 * threads at once, with handles that they share; with a cancellation pending, on which no function
 * may act; in threads that are cancelled at any moment; and under a storm of signals. A public
 * function without a row makes a test fail that names it. thread_rules_more.c has the rows of
 * functions that came with 0.4.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "lib/api_list.h"
#include "thread_rules.h"

#define THREADS	4

struct stage stage;

/* ---- allowed errors ---- */

void was_refused(const char *what, int error, int more)
{
	bool known = error == -EAGAIN || error == -ETIMEDOUT || error == more ||
		     (stage.signals && error == -EINTR);
	const char *why = "";

	if (known)
		return;
	why = last_message();
	FAIL("%s: %s (%s)", what, strerror(-error), why);
}

/* close is a cancellation point of the test, and not of the library. */
static void close_quietly(int fd)
{
	int before;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	if (fd >= 0)
		close(fd);
	pthread_setcancelstate(before, NULL);
}

/* ---- the rows ---- */

static struct row *rows;
static unsigned int row_count;

void add_row(struct row *row)
{
	row->next = rows;
	rows = row;
	row_count++;
}

ROW(get_last_error)
{
	REFUSED(xmem_get(stage.reader, 1 << 16), ESTALE);
	SAME(xmem_get_last_error(NULL), -ESTALE);
	SAME(xmem_get_last_error(NULL), 0);
}

ROW(peek_last_error)
{
	const char *why = "";

	REFUSED(xmem_acquire(stage.reader, 1, 0), EPERM);
	why = last_message();
	SAME(xmem_peek_last_error(NULL), -EPERM);
	CHECK(*why);
}

ROW(clear_last_error)
{
	REFUSED(xmem_acquire(stage.writer, 1, -1), EINVAL);
	xmem_clear_last_error();
	SAME(xmem_peek_last_error(NULL), 0);
}

ROW(get_api)
{
	const struct xmem_api *api = xmem_get_api(XMEM_API_VERSION);

	CHECK(api && api->size == xmem_size);
}

ROW(pool_open)
{
	xmem_pool_close(HANDLE(xmem_pool_open(stage.name, NULL), 0));
	xmem_pool_close(HANDLE(xmem_pool_open(NULL, NULL), 0));
	xmem_pool_close(HANDLE(open_by_fd(stage.fd, 0), 0));
}

ROW(pool_reopen)
{
	xmem_pool_close(HANDLE(xmem_pool_reopen(stage.reader), 0));
}

ROW(pool_fd)
{
	close_quietly(NUMBER(xmem_pool_fd(stage.reader)));
}

ROW(pool_fd_narrow)
{
	close_quietly(NUMBER(xmem_pool_fd_narrow(stage.fd, XMEM_MAY_READ)));
}

ROW(pool_set_mode)
{
	NUMBER(xmem_pool_set_mode(stage.writer, 0600, XMEM_GID_SAME));
}

/* The stage's pools stay, so this drains a new one. */
ROW(pool_drain)
{
	struct xmem_pool *pool = HANDLE(xmem_pool_open(NULL, NULL), 0);

	if (!pool)
		return;
	NUMBER(xmem_pool_drain(pool, 0));
	xmem_pool_close(pool);
}

ROW(pool_evict)
{
	int err;

	SAME(xmem_pool_evict(stage.writer, xmem_pool_client(stage.writer), 1), -EINVAL);
	do
		err = xmem_pool_evict(stage.writer, xmem_pool_client(stage.reader), 1 << 20);
	while (err == -EINTR && stage.signals);
	SAME(err, -ESTALE);
}

ROW(pool_grant)
{
	struct xmem_client_info reader = { .size = sizeof(reader) };

	WORKED(xmem_pool_client_info(stage.writer, xmem_pool_client(stage.reader), &reader));
	NUMBER(xmem_pool_grant(stage.writer, reader.id, reader.incarnation));
}

ROW(pool_close)
{
	struct xmem_pool *pool = HANDLE(xmem_pool_open(stage.name, NULL), 0);
	struct xmem_buffer *b = pool ? xmem_get(pool, stage.token) : NULL;

	xmem_pool_close(pool);
	CHECK(!pool || b);
	xmem_release(b);		/* the last handle, which ends the client */
}

ROW(cancel)
{
	struct xmem_pool *pool = HANDLE(xmem_pool_open(stage.name, NULL), 0);

	if (!pool)
		return;
	SAME(xmem_cancel(pool), 0);
	REFUSED(xmem_subscribe(pool, NULL), ECANCELED);
	xmem_pool_close(pool);
}

ROW(preallocate)
{
	struct xmem_pool_options options = { .size = sizeof(options),
					     .flags = XMEM_OPEN_WRITER };
	struct xmem_pool *pool = HANDLE(xmem_pool_open(NULL, &options), 0);

	if (pool)
		NUMBER(xmem_preallocate(pool, BYTES, 2, NULL));
	xmem_pool_close(pool);
	SAME(make_on_gpu(stage.writer, BYTES, 1, 0, 0), -ENODEV);
	SAME(make_on_gpu(stage.reader, BYTES, 1, 0, 0), -EPERM);
}

ROW(subscribe)
{
	struct xmem_subscribe_options options = {
		.size = sizeof(options), .flags = XMEM_SUBSCRIBE_PUBLISHER,
		.publisher = xmem_pool_client(stage.writer), .timeout_ns = patience_ns(),
	};

	/* One of the threads has the subscription. */
	xmem_unsubscribe(HANDLE(xmem_subscribe(stage.other, &options), -EEXIST));
	/* No client has this id, so there is nobody to follow. */
	options.publisher = stat_of(stage.other).clients_max - 1;
	options.timeout_ns = SHORT;
	CHECK(!HANDLE(xmem_subscribe(stage.other, &options), 0));
}

ROW(unsubscribe)
{
	struct xmem_subscribe_options options = { .size = sizeof(options),
						  .timeout_ns = patience_ns() };
	struct xmem_subscription *s = HANDLE(xmem_subscribe(stage.other, &options), -EEXIST);

	xmem_unsubscribe(s);
	if (s)
		REFUSED(xmem_receive(s, 0), EBADF);
}

ROW(receive)
{
	xmem_release(HANDLE(xmem_receive(stage.s, 0), 0));
	xmem_release(HANDLE(xmem_receive(stage.s, SHORT), 0));
	xmem_release(HANDLE(xmem_receive(stage.one, SHORT), 0));
}

ROW(receive_any)
{
	struct xmem_subscription *from;

	xmem_release(HANDLE(xmem_receive_any(stage.reader, SHORT, &from), 0));
}

ROW(subscription_stat)
{
	struct xmem_subscription_info told = XMEM_INIT(told);

	SAME(xmem_subscription_stat(stage.s, &told), 0);
	CHECK(told.lost < 1ULL << 40);
	SAME(xmem_subscription_stat(stage.one, &told), 0);
	CHECK(told.publisher == (uint32_t)xmem_pool_client(stage.writer));
}

ROW(subscription_poll_fd)
{
	NUMBER(xmem_subscription_poll_fd(stage.one));
}

ROW(subscribers_poll_fd)
{
	NUMBER(xmem_subscribers_poll_fd(stage.writer));
}

ROW(subscriber_next)
{
	struct xmem_subscriber_info info = { .size = sizeof(info) };

	NUMBER_OR(xmem_subscriber_next(stage.writer, 0, &info), -ENOENT);
}

ROW(wait_subscribers)
{
	NUMBER(xmem_wait_subscribers(stage.writer, 60, SHORT));
}

ROW(pool_poll_fd)
{
	NUMBER(xmem_pool_poll_fd(stage.reader));
}

ROW(acquire)
{
	struct xmem_buffer *b = HANDLE(xmem_acquire(stage.writer, BYTES, SHORT), 0);
	struct xmem_buffer *more = HANDLE(xmem_acquire(stage.writer, BYTES, 0), 0);

	xmem_release(b);
	xmem_release(more);
}

ROW(release)
{
	struct xmem_buffer *b = xmem_get(stage.reader, stage.token);

	CHECK(b);
	xmem_release(b);
	xmem_release(b);		/* the library detects it, and counts it */
	SAME(xmem_peek_last_error(NULL), -EBADF);
}

ROW(get)
{
	struct xmem_buffer *b = xmem_get(stage.reader, stage.token);

	CHECK(b && stamp_of(b) == 0xab);
	xmem_release(b);
}

ROW(clone)
{
	struct xmem_buffer *b = xmem_clone(stage.read);

	CHECK(b && stamp_of(b) == 0xab);
	xmem_release(b);
}

ROW(data)			{ CHECK(stamp_of(stage.read) == 0xab); }
ROW(data_mut)			{ CHECK(xmem_data_mut(stage.written)); }
ROW(size)			{ SAME(xmem_size(stage.read), BYTES); }
ROW(capacity)			{ SAME(xmem_capacity(stage.read), BYTES); }
ROW(token)			{ SAME(xmem_token(stage.read), stage.token); }
ROW(slot)			{ SAME(xmem_slot(stage.read), stage.token & 0xffff); }
ROW(metadata_ptr)		{ SAME(xmem_metadata_ptr(stage.read)->id, 0xab); }
ROW(metadata_mut)	{ CHECK(xmem_metadata_mut(stage.written)); }
ROW(pool_backend)		{ CHECK(*xmem_pool_backend(stage.reader)); }
ROW(pool_client)		{ CHECK(xmem_pool_client(stage.reader) > 0); }
ROW(pool_stat)			{ CHECK(stat_of(stage.reader).holds >= 1); }

ROW(pool_client_info)
{
	struct xmem_client_info info = { .size = sizeof(info) };

	SAME(xmem_pool_client_info(stage.reader, xmem_pool_client(stage.writer), &info), 0);
	SAME(info.role, XMEM_CLIENT_WRITER);
}

ROW(pool_slot_info)
{
	struct xmem_slot_info info = { .size = sizeof(info) };

	SAME(xmem_pool_slot_info(stage.reader, stage.token & 0xffff, &info), 0);
	SAME(info.token, stage.token);
}

ROW(pool_holds)
{
	CHECK(xmem_pool_holds(stage.reader, xmem_pool_client(stage.reader),
			      stage.token & 0xffff) >= 1);
}

ROW(host_query)
{
	struct xmem_host_info info = { .size = sizeof(info) };

	NUMBER(xmem_host_query(&info));
}

ROW(pool_next)
{
	struct xmem_pool_entry entry = { .size = sizeof(entry) };

	NUMBER(xmem_pool_next(0, &entry));
}

ROW(limit_next)
{
	struct xmem_limit_info info = { .size = sizeof(info) };

	NUMBER(xmem_limit_next(stage.reader, 0, &info));
}

/* ---- the stage ---- */

static void stage_set(void)
{
	memset(&stage, 0, sizeof(stage));
	stage.name = new_name();
	stage.writer = open_writer(stage.name, BUFFERS, BYTES);
	stage.reader = open_reader(stage.name);
	stage.other = open_reader(stage.name);
	/* Two publishers are followed, and waited for together. */
	stage.one = follow(stage.reader, xmem_pool_client(stage.writer), 0);
	stage.read = publish_and_get(stage.writer, stage.reader, 0xab);
	stage.token = xmem_token(stage.read);
	stage.written = xmem_acquire(stage.writer, BYTES, 0);
	stage.fd = xmem_pool_fd(stage.reader);
	CHECK(stage.written && stage.fd >= 0);
	line_set();
	service_set();
}

static struct xmem_pool *quiet[2];

static void stage_follow_all(void)
{
	quiet[0] = open_writer(stage.name, 1, BYTES);
	quiet[1] = open_writer(stage.name, 1, BYTES);
	stage.s = xmem_subscribe(stage.reader, NULL);
	CHECK(stage.s);
}

/*
 * Nothing is held, locked or left: each row works as in the beginning, and then all can be freed.
 */
static void stage_strike(void)
{
	struct xmem_buffer *b[BUFFERS];
	struct row *row;
	unsigned int i;

	stage.signals = false;
	for (row = rows; row; row = row->next)
		row->call();
	xmem_release(stage.read);
	xmem_release(stage.written);
	xmem_unsubscribe(stage.s);
	xmem_unsubscribe(stage.one);
	close(stage.fd);
	line_strike();
	service_strike();
	xmem_pool_close(quiet[0]);
	xmem_pool_close(quiet[1]);
	xmem_pool_close(stage.other);
	xmem_pool_close(stage.reader);
	check_quiet(stage.writer, 1);
	/* No buffer is lost. */
	for (i = 0; i < BUFFERS; i++)
		CHECK((b[i] = xmem_acquire(stage.writer, BYTES, 0)));
	REFUSED(xmem_acquire(stage.writer, BYTES, 0), EAGAIN);
	for (i = 0; i < BUFFERS; i++)
		xmem_release(b[i]);
	xmem_pool_close(stage.writer);
}

static struct row *row_at(unsigned int at)
{
	struct row *row = rows;

	for (at %= row_count; at--; row = row->next)
		;
	return row;
}

/* ---- every function has its row ---- */

static bool has_row(const char *name)
{
	struct row *row;

	for (row = rows; row; row = row->next)
		if (!strcmp(row->name, name))
			return true;
	return false;
}

TEST(API_each_function_has_its_row)
{
#define NEEDS_ROW(name) \
	if (!has_row(#name)) \
		FAIL("xmem_%s: add a ROW(%s) that calls it to " \
		     "tests/conform/thread_rules*.c", #name, #name);
	XL_API(NEEDS_ROW)
	NEEDS_ROW(get_api)
}

/* ---- threads ---- */

static void *run_rows(void *argument)
{
	unsigned int from = (uintptr_t)argument * row_count / THREADS, i;

	for (i = 0; i < row_count; i++)
		row_at(from + i)->call();
	return NULL;
}

TEST_WITHIN(API_threads_call_everything_at_once, 120)
{
	unsigned int rounds = scaled(40), i;
	pthread_t thread[THREADS];
	uintptr_t t;

	stage_set();
	stage_follow_all();
	for (i = 0; i < rounds; i++) {
		for (t = 0; t < THREADS; t++)
			CHECK(!pthread_create(&thread[t], NULL, run_rows, (void *)t));
		for (t = 0; t < THREADS; t++)
			CHECK(!pthread_join(thread[t], NULL));
	}
	stage_strike();
}

/* ---- threads that are cancelled ---- */

static bool came_back;

static void *call_cancelled(void *argument)
{
	struct row *row = argument;

	pthread_cancel(pthread_self());
	row->call();
	__atomic_store_n(&came_back, true, __ATOMIC_RELEASE);
	pthread_testcancel();
	return NULL;
}

static void call_all_cancelled(bool something)
{
	struct row *row;
	pthread_t thread;
	void *result;

	for (row = rows; row; row = row->next) {
		if (something)
			publish_stamp(stage.writer, 1);
		came_back = false;
		CHECK(!pthread_create(&thread, NULL, call_cancelled, row));
		CHECK(!pthread_join(thread, &result));
		CHECK(result == PTHREAD_CANCELED);
		if (!__atomic_load_n(&came_back, __ATOMIC_ACQUIRE))
			FAIL("a thread that is cancelled in xmem_%s does not return from it",
			     row->name);
	}
}

/* A function has no cancellation point, so nothing that it has begun is left half done. */
TEST_WITHIN(P9_no_function_is_a_cancellation_point, 60)
{
	stage_set();
	stage_follow_all();
	call_all_cancelled(false);
	/* Descriptors are polled from here on, and are ready most of the time. */
	WORKED(xmem_pool_poll_fd(stage.reader));
	WORKED(xmem_pool_poll_fd(stage.writer));
	WORKED(xmem_subscription_poll_fd(stage.s));
	call_all_cancelled(false);
	call_all_cancelled(true);
	stage_strike();
}

static unsigned int calls;	/* atomic */

static void *call_for_ever(void *argument)
{
	unsigned int at = (uintptr_t)argument;

	for (;;) {
		row_at(at++)->call();
		__atomic_add_fetch(&calls, 1, __ATOMIC_RELEASE);
		pthread_testcancel();
	}
	return NULL;
}

TEST_WITHIN(P9_threads_that_are_cancelled_leave_nothing, 120)
{
	unsigned int rounds = scaled(150), i, t, until;
	uint64_t random = seed();
	pthread_t thread[2];

	stage_set();
	stage_follow_all();
	for (i = 0; i < rounds; i++) {
		until = __atomic_load_n(&calls, __ATOMIC_ACQUIRE) + random_next(&random) % 20;
		for (t = 0; t < 2; t++)
			CHECK(!pthread_create(&thread[t], NULL, call_for_ever,
					      (void *)(random_next(&random) >> 40)));
		while (__atomic_load_n(&calls, __ATOMIC_ACQUIRE) < until)
			sched_yield();
		for (t = 0; t < 2; t++)
			CHECK(!pthread_cancel(thread[t]));
		for (t = 0; t < 2; t++)
			CHECK(!pthread_join(thread[t], NULL));
	}
	stage_strike();
}

/* ---- threads that come and go publish and receive everything, in order and once ---- */

static struct {
	struct xmem_pool *writer, *reader;
	struct xmem_subscription *s;
	uint64_t published, received;	/* atomic */
	bool over;			/* atomic */
} stream;

static bool try_publish(void)
{
	struct xmem_buffer *b = HANDLE(xmem_acquire(stream.writer, BYTES, SHORT), 0);

	if (!b)
		return false;
	fill(b, stream.published);
	SAME(xmem_publish(b, NULL, NULL), 0);
	__atomic_add_fetch(&stream.published, 1, __ATOMIC_RELEASE);
	return true;
}

static bool try_receive(void)
{
	struct xmem_buffer *b = HANDLE(xmem_receive(stream.s, SHORT), 0);

	if (!b)
		return false;
	SAME(info_of(b).sequence, stream.received);
	SAME(stamp_of(b), stream.received);
	xmem_release(b);
	__atomic_add_fetch(&stream.received, 1, __ATOMIC_RELEASE);
	return true;
}

static void *publish_on(void *argument)
{
	while (!__atomic_load_n(&stream.over, __ATOMIC_ACQUIRE)) {
		try_publish();
		pthread_testcancel();
	}
	return NULL;
}

static void *receive_on(void *argument)
{
	while (!__atomic_load_n(&stream.over, __ATOMIC_ACQUIRE)) {
		try_receive();
		pthread_testcancel();
	}
	return NULL;
}

static void stream_begin(void)
{
	const char *name = new_name();

	memset(&stream, 0, sizeof(stream));
	stream.writer = OPEN(name, .flags = XMEM_OPEN_WRITER, .wait_bound_ns = 3600 * SECOND);
	WORKED(xmem_preallocate(stream.writer, BYTES, 3, NULL));
	stream.reader = open_reader(name);
	stream.s = follow(stream.reader, xmem_pool_client(stream.writer), XMEM_SUBSCRIBE_WAITS);
}

/* All publications arrive, once. */
static void stream_end(void)
{
	while (stream.received < stream.published)
		CHECK(try_receive());
	CHECK(!try_receive());
	SAME(sub_info(stream.s).lost, 0);
	CHECK(try_publish() && try_publish() && try_publish());
	CHECK(try_receive() && try_receive() && try_receive());
	xmem_unsubscribe(stream.s);
	xmem_pool_close(stream.reader);
	check_quiet(stream.writer, 1);
	xmem_pool_close(stream.writer);
}

TEST_WITHIN(P3_cancelled_threads_lose_no_publication, 120)
{
	unsigned int rounds = scaled(400), i;
	pthread_t publisher, receiver;
	uint64_t until;

	stream_begin();
	for (i = 0; i < rounds; i++) {
		CHECK(!pthread_create(&publisher, NULL, publish_on, NULL));
		CHECK(!pthread_create(&receiver, NULL, receive_on, NULL));
		until = __atomic_load_n(&stream.received, __ATOMIC_ACQUIRE) + i % 7;
		while (__atomic_load_n(&stream.received, __ATOMIC_ACQUIRE) < until)
			sched_yield();
		CHECK(!pthread_cancel(publisher) && !pthread_cancel(receiver));
		CHECK(!pthread_join(publisher, NULL) && !pthread_join(receiver, NULL));
	}
	stream_end();
}

/* ---- signals ---- */

static unsigned int handled;	/* atomic */

static void on_signal(int signal)
{
	__atomic_add_fetch(&handled, 1, __ATOMIC_RELAXED);
}

/* No SA_RESTART, so that each wait ends with EINTR. */
static void handle_signals(void)
{
	struct sigaction action = { .sa_handler = on_signal };

	CHECK(!sigaction(SIGUSR1, &action, NULL));
}

static unsigned int handlers(void)
{
	return __atomic_load_n(&handled, __ATOMIC_RELAXED);
}

static void *call_until_over(void *argument)
{
	unsigned int round;

	for (round = 0; round < scaled(6) || handlers() < 10; round++)
		run_rows(argument);
	__atomic_add_fetch(&calls, 1, __ATOMIC_RELEASE);
	return NULL;
}

TEST_WITHIN(P9_signals_in_every_function_leave_nothing, 120)
{
	pthread_t thread[2];
	uintptr_t t;

	handle_signals();
	stage_set();
	stage_follow_all();
	stage.signals = true;
	for (t = 0; t < 2; t++)
		CHECK(!pthread_create(&thread[t], NULL, call_until_over, (void *)t));
	while (__atomic_load_n(&calls, __ATOMIC_ACQUIRE) < 2)
		for (t = 0; t < 2; t++)
			pthread_kill(thread[t], SIGUSR1);
	for (t = 0; t < 2; t++)
		CHECK(!pthread_join(thread[t], NULL));
	stage_strike();
}

TEST_WITHIN(P3_signals_lose_no_publication, 120)
{
	uint64_t count = scaled(3000);
	pthread_t publisher, receiver;

	handle_signals();
	stage.signals = true;
	stream_begin();
	CHECK(!pthread_create(&publisher, NULL, publish_on, NULL));
	CHECK(!pthread_create(&receiver, NULL, receive_on, NULL));
	while (__atomic_load_n(&stream.received, __ATOMIC_ACQUIRE) < count || handlers() < 10) {
		pthread_kill(publisher, SIGUSR1);
		pthread_kill(receiver, SIGUSR1);
		sched_yield();
	}
	__atomic_store_n(&stream.over, true, __ATOMIC_RELEASE);
	CHECK(!pthread_join(publisher, NULL) && !pthread_join(receiver, NULL));
	stage.signals = false;
	stream_end();
}
