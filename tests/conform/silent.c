// SPDX-License-Identifier: MIT
/*
 * P9: calls keep their timeouts whatever the host does, and no call waits for another thread's
 * call. Between the library and the host is a stand-in that does not answer. It records how long
 * the library would have waited for it, so that no test measures time.
 */
#include <pthread.h>
#include <semaphore.h>

#include "harness.h"
#include "lib/private.h"
#include "lib/host/request.h"

#define BYTES	4096
#define BRIEFLY	(100 * MS)
#define ANSWERS	"the kernel always answers"

static struct {
	struct xmem_backend backend;
	const struct xmem_backend *real;
	bool holds;		/* the next request stays in the host until `go` */
	sem_t there, go;
	int64_t longest;	/* that the library would have waited for an answer */
	unsigned int asked;
	uint64_t answers;	/* that have arrived so far */
} silent;

/* Requests that need no answer of xmemd, because the library does the work itself. */
static bool is_local(unsigned int request, const struct xmem_slot_request *slot)
{
	return request == XMEM_IOC_WAIT ||
	       (request == XMEM_IOC_SLOT && slot->op == XMEM_OP_RESOLVE);
}

static int silent_request_until(struct xmem_link *link, unsigned int request, void *argument,
				u64 deadline_ns)
{
	int64_t left = deadline_ns == ~0ULL ? XMEM_FOREVER : (int64_t)(deadline_ns - now_ns());

	if (is_local(request, argument))
		return silent.real->request_until(link, request, argument, deadline_ns);
	silent.asked++;
	if (left > silent.longest)
		silent.longest = left;
	if (__atomic_exchange_n(&silent.holds, false, __ATOMIC_SEQ_CST)) {
		sem_post(&silent.there);
		while (sem_wait(&silent.go))
			;
	}
	return deadline_ns == ~0ULL ? -EINTR : -ETIMEDOUT;
}

static int silent_request(struct xmem_link *link, unsigned int request, void *argument)
{
	return silent_request_until(link, request, argument, ~0ULL);
}

static void silent_post(struct xmem_link *link, unsigned int request, const void *argument)
{
	silent.real->post(link, request, argument);
}

static void silent_drain(struct xmem_link *link, u64 patience_ns)
{
}

static u64 silent_catch_up(struct xmem_link *link)
{
	return silent.answers;
}

static void be_silent(struct xmem_pool *pool)
{
	silent.real = pool->link.backend;
	silent.backend = *silent.real;
	silent.backend.request = silent_request;
	silent.backend.request_until = silent_request_until;
	silent.backend.post = silent_post;
	silent.backend.drain = silent_drain;
	silent.backend.catch_up = silent_catch_up;
	silent.longest = silent.asked = 0;
	pool->link.backend = &silent.backend;
	set_host_patience(BRIEFLY);
	xm_store(&pool->asking.again_ns, 0);
}

static void answer_again(struct xmem_pool *pool)
{
	pool->link.backend = silent.real;
	set_host_patience(HOST_IS_BUSY);
	xm_store(&pool->asking.again_ns, 0);
}

/* ---- why each call needs the host ---- */

struct scene {
	struct xmem_pool *pool, *other;
	struct xmem_subscription *s;
	int publisher;
};

/* A publication whose file has been attached since the subscription began. */
static void let_a_new_file_come(struct scene *scene)
{
	struct xmem_buffer *b;

	WORKED(xmem_preallocate(scene->other, 4 * BYTES, 1, NULL));
	CHECK((b = xmem_acquire(scene->other, 4 * BYTES, 0)));
	fill(b, 1);
	WORKED(xmem_publish(b, NULL, NULL));
}

static void begin_to_receive(struct scene *scene)
{
	const char *name = new_name();

	scene->other = open_writer(name, 1, BYTES);
	scene->pool = open_reader(name);
	scene->publisher = xmem_pool_client(scene->other);
}

static void one_new_file(struct scene *scene)
{
	begin_to_receive(scene);
	scene->s = follow(scene->pool, scene->publisher, 0);
	let_a_new_file_come(scene);
}

static void all_new_file(struct scene *scene)
{
	begin_to_receive(scene);
	CHECK((scene->s = xmem_subscribe(scene->pool, NULL)));
	let_a_new_file_come(scene);
}

static void newcomer(struct scene *scene)
{
	begin_to_receive(scene);
	CHECK((scene->s = xmem_subscribe(scene->pool, NULL)));
	xmem_pool_close(scene->other);
	scene->other = open_writer((const char *)scene->pool->map.pool->name, 1, BYTES);
}

static void nobody_followed(struct scene *scene)
{
	begin_to_receive(scene);
}

static void on_demand(struct scene *scene)
{
	scene->pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);
}

/* The client is no writer yet. */
static void a_first_acquire(struct scene *scene)
{
	scene->pool = OPEN(new_name(), .flags = 0);
}

/* The next acquire needs new generations. */
static void spent(struct scene *scene)
{
	u64 word, *state;
	uint32_t slot = 0;

	scene->pool = open_writer(new_name(), 1, BYTES);
	while (xm_load(&xm_slot_row(&scene->pool->map, slot)->owner) !=
	       (uint32_t)xmem_pool_client(scene->pool))
		slot++;
	state = &xm_slot(&scene->pool->map, slot)->state;
	word = xm_generation(xm_load(state)) >> XMEM_TENANCY_SHIFT;
	xm_store(state, xm_word(((word + 1) << XMEM_TENANCY_SHIFT) - 1, 0, XMEM_SLOT_FREE));
}

/* ---- the calls ---- */

static bool had(struct xmem_buffer *buffer)
{
	xmem_release(buffer);
	return buffer;
}

static bool receive(struct scene *scene, int64_t timeout_ns)
{
	return had(xmem_receive(scene->s, timeout_ns));
}

static bool receive_any(struct scene *scene, int64_t timeout_ns)
{
	return had(xmem_receive_any(scene->pool, timeout_ns, NULL));
}

static bool acquire(struct scene *scene, int64_t timeout_ns)
{
	return had(xmem_acquire(scene->pool, BYTES, timeout_ns));
}

/* A call that reports in time that there are none has worked, as when the host answers. */
static bool wait_subscribers(struct scene *scene, int64_t timeout_ns)
{
	return xmem_wait_subscribers(scene->pool, 0, timeout_ns) == 0;
}

static bool subscribe(struct scene *scene, int64_t timeout_ns)
{
	struct xmem_subscription *s = subscribe_for(scene->pool, scene->publisher, 0, timeout_ns);

	xmem_unsubscribe(s);
	return s;
}

static const struct {
	const char *name;
	void (*begin)(struct scene *scene);
	bool (*call)(struct scene *scene, int64_t timeout_ns);
} rows[] = {
	{ "receive: a new file", one_new_file, receive },
	{ "receive from all: a new file", all_new_file, receive },
	{ "receive from all: a new writer", newcomer, receive },
	{ "receive_any: a new file", one_new_file, receive_any },
	{ "receive_any: a new writer", newcomer, receive_any },
	{ "subscribe", nobody_followed, subscribe },
	{ "acquire: memory", on_demand, acquire },
	{ "acquire: generations", spent, acquire },
	{ "acquire: the role of a writer", a_first_acquire, acquire },
	{ "wait_subscribers: the role of a writer", a_first_acquire, wait_subscribers },
};

static void end(struct scene *scene)
{
	if (scene->s)
		xmem_unsubscribe(scene->s);
	if (scene->other)
		xmem_pool_close(scene->other);
	xmem_pool_close(scene->pool);
}

/* A new writer's publication arrives once the writer is followed, and no other event shows that. */
static bool works(unsigned int row, struct scene *scene)
{
	if (rows[row].begin != newcomer)
		return rows[row].call(scene, patience_ns());
	EVENTUALLY(publish_stamp(scene->other, 1) && rows[row].call(scene, MS));
	return true;
}

static void try(unsigned int row, int64_t timeout_ns)
{
	struct scene scene = { .s = NULL };

	rows[row].begin(&scene);
	be_silent(scene.pool);
	if (rows[row].call(&scene, timeout_ns))
		FAIL("%s: it has worked", rows[row].name);
	if (silent.longest == XMEM_FOREVER)
		FAIL("%s: it waited for the host without end", rows[row].name);
	if (xmem_peek_last_error(NULL) != (timeout_ns ? -ETIMEDOUT : -EAGAIN))
		FAIL("%s: %s", rows[row].name, last_message());
	if (!silent.asked)
		FAIL("%s: the host was not asked", rows[row].name);
	if (silent.longest > (timeout_ns ? timeout_ns + BRIEFLY : SECOND))
		FAIL("%s: within %lld ns it waited for the host for %lld", rows[row].name,
		     (long long)timeout_ns, (long long)silent.longest);
	/* A call that does not wait does not ask it again at once. */
	silent.asked = 0;
	if (!timeout_ns) {
		CHECK(!rows[row].call(&scene, 0));
		SAME(xmem_peek_last_error(NULL), -EAGAIN);
		SAME(silent.asked, 0);
	}
	answer_again(scene.pool);
	if (!works(row, &scene))
		FAIL("%s: nothing when the host answers again", rows[row].name);
	end(&scene);
}

TEST(P9_every_call_keeps_its_timeout_when_the_host_is_silent)
{
	static const int64_t timeouts[] = { 0, 10 * MS, 300 * MS };
	unsigned int row, t;

	daemon_only(ANSWERS);
	for (row = 0; row < sizeof(rows) / sizeof(*rows); row++)
		for (t = 0; t < sizeof(timeouts) / sizeof(*timeouts); t++)
			if (timeouts[t] || rows[row].call != subscribe)	/* its 0 means no limit */
				try(row, timeouts[t]);
}

/* An answer to any request means that the host works again. */
TEST(P9_a_host_that_has_answered_is_asked_again)
{
	struct xmem_pool *pool;

	daemon_only(ANSWERS);
	pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);
	be_silent(pool);
	set_host_patience(3600 * SECOND);	/* so that the pause does not end by itself */
	REFUSED(xmem_acquire(pool, BYTES, 0), EAGAIN);
	SAME(silent.asked, 1);
	REFUSED(xmem_acquire(pool, BYTES, 0), EAGAIN);
	SAME(silent.asked, 1);
	silent.answers++;
	REFUSED(xmem_acquire(pool, BYTES, 0), EAGAIN);
	SAME(silent.asked, 2);
	answer_again(pool);
	xmem_pool_close(pool);
}

/* The pages have the answer. */
TEST(P9_a_wait_for_subscribers_asks_the_host_nothing)
{
	struct xmem_subscriber_info info = { .size = sizeof(info) };
	struct scene scene = { .s = NULL };

	daemon_only(ANSWERS);
	begin_to_receive(&scene);
	scene.s = follow(scene.pool, scene.publisher, 0);
	be_silent(scene.other);
	SAME(xmem_wait_subscribers(scene.other, 2, 0), -EAGAIN);
	SAME(xmem_wait_subscribers(scene.other, 2, 10 * MS), -ETIMEDOUT);
	SAME(xmem_wait_subscribers(scene.other, 1, XMEM_FOREVER), 1);
	SAME(xmem_subscriber_next(scene.other, 0, &info), 0);
	SAME(silent.asked, 0);
	answer_again(scene.other);
	end(&scene);
}

/* Calls without a timeout of their own wait for a second. */
TEST(P9_calls_without_a_timeout_are_bounded_when_the_host_is_silent)
{
	struct xmem_subscribe_options lasts = {
		.size = sizeof(lasts), .flags = XMEM_SUBSCRIBE_LASTS,
	};
	struct xmem_client_info info = { .size = sizeof(info) };
	struct scene scene = { .s = NULL };

	daemon_only(ANSWERS);
	begin_to_receive(&scene);
	be_silent(scene.pool);
	REFUSED(xmem_subscribe(scene.pool, &lasts), ETIMEDOUT);
	SAME(silent.asked, 1);
	CHECK(silent.longest <= SECOND);
	SAME(xmem_pool_poll_fd(scene.pool), -ETIMEDOUT);
	SAME(silent.asked, 2);
	CHECK(silent.longest <= SECOND);
	/* No client has that number, as the pages show. */
	SAME(xmem_pool_client_info(scene.pool, 40, &info), -ENOENT);
	SAME(silent.asked, 2);
	answer_again(scene.pool);
	CHECK((scene.s = xmem_subscribe(scene.pool, &lasts)));
	WORKED(xmem_pool_poll_fd(scene.pool));
	end(&scene);
}

/* ---- beside another thread ---- */

/* A call of @thread is in the host and waits there until the test lets it continue. */
static void begin_elsewhere(struct xmem_pool *pool, pthread_t *thread, void *(*call)(void *),
			    void *argument)
{
	CHECK(!sem_init(&silent.there, 0, 0) && !sem_init(&silent.go, 0, 0));
	be_silent(pool);
	silent.holds = true;
	CHECK(!pthread_create(thread, NULL, call, argument));
	while (sem_wait(&silent.there))
		;
}

static void end_elsewhere(struct xmem_pool *pool, pthread_t thread)
{
	answer_again(pool);
	sem_post(&silent.go);
	CHECK(!pthread_join(thread, NULL));
}

static void *receive_elsewhere(void *argument)
{
	struct xmem_buffer *b = xmem_receive(((struct scene *)argument)->s, XMEM_FOREVER);

	if (b)
		xmem_release(b);
	return b;
}

/* The host has a request to map a file, or to follow a writer, of a receive without a timeout. */
static void nobody_waits_for_a_receive(void (*begin)(struct scene *scene))
{
	struct scene scene = { .s = NULL };
	pthread_t thread;

	daemon_only(ANSWERS);
	begin(&scene);
	begin_elsewhere(scene.pool, &thread, receive_elsewhere, &scene);
	SAME(sub_info(scene.s).lost, 0);
	SAME(sub_info(scene.s).publisher, scene.publisher);
	xmem_cancel(scene.pool);
	REFUSED(xmem_receive(scene.s, 10 * MS), ECANCELED);
	end_elsewhere(scene.pool, thread);
	end(&scene);
}

TEST(P9_a_receive_that_asks_the_host_for_a_file_stops_no_other_call)
{
	nobody_waits_for_a_receive(one_new_file);
}

TEST(P9_a_receive_that_asks_the_host_to_follow_stops_no_other_call)
{
	nobody_waits_for_a_receive(newcomer);
}

static void *subscribe_elsewhere(void *argument)
{
	struct scene *scene = argument;

	xmem_unsubscribe(subscribe_for(scene->pool, scene->publisher, 0, 0));
	return NULL;
}

/* The subscription is dropped while another thread's request to follow has no answer. */
TEST(P9_an_unsubscribe_waits_for_no_other_subscribe)
{
	struct scene scene = { .s = NULL };
	struct xmem_pool *second;
	struct xmem_subscription *s;
	pthread_t thread;

	daemon_only(ANSWERS);
	begin_to_receive(&scene);
	second = open_writer((const char *)scene.pool->map.pool->name, 1, BYTES);
	s = follow(scene.pool, xmem_pool_client(second), 0);
	begin_elsewhere(scene.pool, &thread, subscribe_elsewhere, &scene);
	REFUSED(xmem_receive(s, 0), EAGAIN);
	REFUSED(subscribe_for(scene.pool, xmem_pool_client(second), 0, 10 * MS), ETIMEDOUT);
	xmem_unsubscribe(s);
	end_elsewhere(scene.pool, thread);
	xmem_pool_close(second);
	end(&scene);
}

static void *preallocate_elsewhere(void *argument)
{
	SAME(xmem_preallocate(argument, 64 * BYTES, 1, NULL), -EINTR);
	return NULL;
}

static struct xmem_unsubscribe_request unheard;

static void hear_no_unsubscribe(struct xmem_link *link, unsigned int request, const void *argument)
{
	if (request == XMEM_IOC_UNSUBSCRIBE)
		memcpy(&unheard, argument, sizeof(unheard));
	else
		silent.real->post(link, request, argument);
}

/* The host does not know yet of the end of the subscription. */
TEST(P9_a_publisher_waits_for_nobody_who_has_unsubscribed)
{
	struct xmem_pool *writer, *reader;
	struct xmem_subscription *s;

	daemon_only(ANSWERS);
	writer = OPEN(new_name(), .flags = XMEM_OPEN_WRITER, .wait_bound_ns = XMEM_FOREVER);
	WORKED(xmem_preallocate(writer, BYTES, 1, NULL));
	reader = open_reader((const char *)writer->map.pool->name);
	s = follow(reader, xmem_pool_client(writer), XMEM_SUBSCRIBE_WAITS);
	CHECK(publish_stamp(writer, 1));
	REFUSED(xmem_acquire(writer, BYTES, 0), EAGAIN);
	be_silent(reader);
	silent.backend.post = hear_no_unsubscribe;
	xmem_unsubscribe(s);
	SAME(unheard.publisher, xmem_pool_client(writer));
	SAME(xmem_wait_subscribers(writer, 1, 0), -EAGAIN);
	CHECK(publish_stamp(writer, 2));
	answer_again(reader);
	reader->link.backend->post(&reader->link, XMEM_IOC_UNSUBSCRIBE, &unheard);
	s = follow(reader, xmem_pool_client(writer), XMEM_SUBSCRIBE_WAITS);
	CHECK(publish_stamp(writer, 3));
	had(receive_one(s));
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

TEST(P9_an_acquire_waits_for_no_preallocate_beyond_its_time)
{
	struct xmem_pool *pool;
	struct xmem_buffer *b;
	pthread_t thread;

	daemon_only(ANSWERS);
	pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);
	begin_elsewhere(pool, &thread, preallocate_elsewhere, pool);
	REFUSED(xmem_acquire(pool, BYTES, 0), EAGAIN);
	REFUSED(xmem_acquire(pool, BYTES, 10 * MS), ETIMEDOUT);
	end_elsewhere(pool, thread);
	CHECK((b = xmem_acquire(pool, BYTES, patience_ns())));
	xmem_release(b);
	xmem_pool_close(pool);
}
