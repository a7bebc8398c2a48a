// SPDX-License-Identifier: MIT
/* Services: requests and responses, their order, and what the end of either side does. */
#include <pthread.h>
#include <signal.h>

#include "harness.h"

#define BYTES	4096
#define QUIT	999999		/* a request with this number ends a server */

static struct xmem_server *serve(const char *name)
{
	struct xmem_server *server = xmem_serve(name, XMEM_OPTIONS(xmem_service_options,
						.timeout_ns = patience_ns()));

	WORKED(server ? 0 : xmem_peek_last_error(NULL));
	return server;
}

static struct xmem_caller *open_caller(const char *name)
{
	struct xmem_caller *caller = xmem_caller_open(name, XMEM_OPTIONS(xmem_service_options,
						      .timeout_ns = patience_ns()));

	WORKED(caller ? 0 : xmem_peek_last_error(NULL));
	return caller;
}

static struct xmem_buffer *stamped_buffer(struct xmem_pool *pool, uint64_t stamp)
{
	struct xmem_buffer *b = xmem_acquire(pool, BYTES, patience_ns());

	WORKED(b ? 0 : xmem_peek_last_error(NULL));
	fill(b, stamp);
	return b;
}

static uint64_t call_with(struct xmem_caller *caller, uint64_t stamp)
{
	uint64_t call = 0;

	WORKED(xmem_call(caller, stamped_buffer(xmem_caller_pool(caller), stamp), patience_ns(),
			 &call));
	CHECK(call);
	return call;
}

static uint64_t response_to(struct xmem_caller *caller, uint64_t call, bool more)
{
	struct xmem_response info = { .size = sizeof(info) };
	struct xmem_buffer *b = xmem_receive_response(caller, call, patience_ns(), &info);
	uint64_t stamp;

	WORKED(b ? 0 : xmem_peek_last_error(NULL));
	stamp = stamp_of(b);
	xmem_release(b);
	SAME(info.call, call);
	SAME(info.more, more);
	return stamp;
}

static struct xmem_request *receive_request(struct xmem_server *server, uint64_t stamp)
{
	struct xmem_request *request = xmem_server_receive(server, patience_ns());

	WORKED(request ? 0 : xmem_peek_last_error(NULL));
	SAME(stamp_of(xmem_request_buffer(request)), stamp);
	return request;
}

static void respond_with(struct xmem_server *server, struct xmem_request *request, uint64_t stamp,
			 uint32_t flags)
{
	WORKED(xmem_respond(request, stamped_buffer(xmem_server_pool(server), stamp), flags));
}

/* A server that adds 1 to each number, until it is told to quit. */
static void add_one(void *name)
{
	struct xmem_server *server = serve(name);
	struct xmem_request *request;
	uint64_t stamp;

	tell_parent(1);
	do {
		request = xmem_server_receive(server, XMEM_FOREVER);
		WORKED(request ? 0 : xmem_peek_last_error(NULL));
		stamp = stamp_of(xmem_request_buffer(request));
		respond_with(server, request, stamp + 1, 0);
	} while (stamp != QUIT);
	xmem_server_close(server);
}

static void quit(struct xmem_caller *caller, struct child *server)
{
	SAME(response_to(caller, call_with(caller, QUIT), false), QUIT + 1);
	finish_child(server);
}

TEST(API_a_server_responds_to_requests)
{
	const char *name = new_name();
	struct child *server = spawn(add_one, (void *)name);
	struct xmem_caller *caller = open_caller(name);
	uint64_t i;

	for (i = 0; i < 3000; i++)
		SAME(response_to(caller, call_with(caller, i), false), i + 1);
	REFUSED(xmem_receive_response(caller, 0, 0, NULL), ENOENT);
	quit(caller, server);
	xmem_caller_close(caller);
}

/* ---- both sides in one process ---- */

struct pair {
	struct xmem_server *server;
	struct xmem_caller *caller;
};

static struct pair open_pair(void)
{
	const char *name = new_name();
	struct pair pair = { .server = serve(name), .caller = open_caller(name) };

	REFUSED(xmem_server_receive(pair.server, 0), EAGAIN);	/* it follows the caller now */
	return pair;
}

static void close_pair(struct pair *pair)
{
	xmem_caller_close(pair->caller);
	xmem_server_close(pair->server);
}

TEST(API_one_server_serves)
{
	struct pair pair = open_pair();
	const char *name = new_name();

	REFUSED(xmem_caller_open(name, NULL), EAGAIN);
	REFUSED(xmem_server_receive(pair.server, 0), EAGAIN);
	close_pair(&pair);
	pair.server = serve(name);
	REFUSED(xmem_serve(name, NULL), EAGAIN);
	REFUSED(xmem_serve(name, XMEM_OPTIONS(xmem_service_options, .timeout_ns = MS)), ETIMEDOUT);
	xmem_server_close(pair.server);
	pair.server = serve(name);
	xmem_server_close(pair.server);
}

TEST(API_responses_come_in_any_order)
{
	struct pair pair = open_pair();
	struct xmem_request *request[8];
	uint64_t call[8];
	unsigned int i;

	for (i = 0; i < 8; i++)
		call[i] = call_with(pair.caller, i);
	for (i = 0; i < 8; i++)
		request[i] = receive_request(pair.server, i);
	REFUSED(xmem_receive_response(pair.caller, call[3], 0, NULL), EAGAIN);
	for (i = 8; i-- > 0;)
		respond_with(pair.server, request[i], 10 + i, 0);
	for (i = 0; i < 8; i += 2)
		SAME(response_to(pair.caller, call[i], false), 10 + i);
	for (i = 1; i < 8; i += 2)
		SAME(response_to(pair.caller, call[i], false), 10 + i);
	REFUSED(xmem_receive_response(pair.caller, call[3], 0, NULL), ENOENT);
	close_pair(&pair);
}

#define MANY	300

/* More responses than fit into the window of a caller that receives nothing meanwhile. */
static void respond_often(void *name)
{
	struct xmem_server *server = serve(name);
	struct xmem_request *request = receive_request(server, 7);
	uint64_t i;

	for (i = 0; i < MANY; i++)
		respond_with(server, request, i, i < MANY - 1 ? XMEM_RESPOND_MORE : 0);
	tell_parent(1);
	/* Only the caller can wake this thread. */
	respond_with(server, receive_request(server, 8), 9, 0);
	xmem_server_close(server);
}

TEST(API_a_request_may_have_many_responses)
{
	const char *name = new_name();
	struct child *server = spawn(respond_often, (void *)name);
	struct xmem_caller *caller = open_caller(name);
	uint64_t call = call_with(caller, 7), i;

	SAME(hear(server), 1);
	for (i = 0; i < MANY; i++)
		SAME(response_to(caller, call, i < MANY - 1), i);
	SAME(response_to(caller, call_with(caller, 8), false), 9);
	finish_child(server);
	xmem_caller_close(caller);
}

TEST(API_a_response_may_be_any_buffer_of_the_pool)
{
	struct pair pair = open_pair();
	uint64_t call = call_with(pair.caller, 7), again = call_with(pair.caller, 8);
	struct xmem_request *request = receive_request(pair.server, 7);
	struct xmem_buffer *kept = xmem_clone(xmem_request_buffer(request));

	WORKED(xmem_respond(request, xmem_clone(kept), 0));
	request = receive_request(pair.server, 8);
	WORKED(xmem_respond(request, kept, 0));
	SAME(response_to(pair.caller, again, false), 7);
	SAME(response_to(pair.caller, call, false), 7);
	close_pair(&pair);
}

TEST(API_a_server_may_refuse_a_request)
{
	struct pair pair = open_pair();
	uint64_t call = call_with(pair.caller, 7);
	struct xmem_request *request = receive_request(pair.server, 7);
	struct xmem_response info = { .size = sizeof(info) };

	SAME(xmem_refuse(request, 0), -EINVAL);
	SAME(xmem_refuse(request, 4096), -EINVAL);
	WORKED(xmem_refuse(request, EDOM));
	REFUSED(xmem_receive_response(pair.caller, 0, patience_ns(), &info), EDOM);
	SAME(info.refused, 1);
	SAME(info.call, call);
	REFUSED(xmem_receive_response(pair.caller, call, 0, NULL), ENOENT);
	close_pair(&pair);
}

TEST(API_a_caller_may_cancel_a_call)
{
	struct pair pair = open_pair();
	uint64_t call = call_with(pair.caller, 7), unseen = call_with(pair.caller, 8);
	struct xmem_request *request = receive_request(pair.server, 7);

	WORKED(xmem_request_stat(request));
	WORKED(xmem_cancel_call(pair.caller, call));
	WORKED(xmem_cancel_call(pair.caller, unseen));
	SAME(xmem_cancel_call(pair.caller, call), -ENOENT);
	SAME(xmem_request_stat(request), -ECANCELED);
	respond_with(pair.server, request, 1, 0);
	REFUSED(xmem_receive_response(pair.caller, call, 0, NULL), ENOENT);
	REFUSED(xmem_server_receive(pair.server, 0), EAGAIN);	/* not the cancelled one */
	close_pair(&pair);
}

/* ---- the end of a side ---- */

static void take_and_wait(void *name)
{
	struct xmem_server *server = serve(name);
	struct xmem_request *request;

	tell_parent(1);
	request = receive_request(server, 7);
	tell_parent(2);
	hear_parent();
	(void)request;
}

TEST(P1_the_end_of_a_server_ends_its_calls)
{
	const char *name = new_name();
	struct child *first = spawn(take_and_wait, (void *)name), *second;
	struct xmem_caller *caller;
	uint64_t call;

	SAME(hear(first), 1);
	caller = open_caller(name);
	call = call_with(caller, 7);
	SAME(hear(first), 2);
	second = spawn(add_one, (void *)name);
	kill_child(first);
	REFUSED(xmem_receive_response(caller, call, patience_ns(), NULL), EOWNERDEAD);
	REFUSED(xmem_receive_response(caller, call, 0, NULL), ENOENT);
	SAME(response_to(caller, call_with(caller, 1), false), 2);
	SAME(hear(second), 1);
	quit(caller, second);
	xmem_caller_close(caller);
}

static void call_and_wait(void *name)
{
	struct xmem_caller *caller = open_caller(name);

	call_with(caller, 7);
	call_with(caller, 8);
	tell_parent(1);
	hear_parent();
}

TEST(P1_the_end_of_a_caller_frees_what_was_its)
{
	const char *name = new_name();
	struct xmem_server *server = serve(name);
	struct child *child = spawn(call_and_wait, (void *)name);
	struct xmem_request *request = receive_request(server, 7);
	struct xmem_pool_info info = { .size = sizeof(info) };

	SAME(hear(child), 1);
	WORKED(xmem_request_stat(request));
	respond_with(server, request, 1, XMEM_RESPOND_MORE);
	kill_child(child);
	EVENTUALLY(xmem_request_stat(request) == -EPIPE);
	respond_with(server, request, 2, 0);
	REFUSED(xmem_server_receive(server, 0), EAGAIN);
	WORKED(xmem_pool_stat(xmem_server_pool(server), &info));
	SAME(info.held, 0);
	EVENTUALLY(!xmem_pool_stat(xmem_server_pool(server), &info) && !info.limbo);
	xmem_server_close(server);
}

/* ---- slow and stopped callers ---- */

TEST(P5_a_stopped_caller_delays_no_other_and_loses_nothing)
{
	const char *name = new_name();
	struct pair pair;
	struct xmem_caller *other;
	struct xmem_request *request;
	uint64_t call[4], i;

	pair.server = serve(name);
	pair.caller = open_caller(name);
	other = open_caller(name);
	REFUSED(xmem_server_receive(pair.server, 0), EAGAIN);
	for (i = 0; i < 4; i++)
		call[i] = call_with(pair.caller, i);
	for (i = 0; i < 4; i++)
		respond_with(pair.server, receive_request(pair.server, i), 100 + i, 0);
	/* The server's ring goes around three times, and pair.caller receives nothing. */
	for (i = 0; i < 3 * 1024; i++) {
		uint64_t its = call_with(other, i);

		request = receive_request(pair.server, i);
		respond_with(pair.server, request, i + 1, 0);
		SAME(response_to(other, its, false), i + 1);
	}
	for (i = 4; i-- > 0;)
		SAME(response_to(pair.caller, call[i], false), 100 + i);
	xmem_caller_close(other);
	close_pair(&pair);
}

/* Messages that were published again while the first ones were still in the ring come once. */
TEST(P5_what_is_sent_again_comes_once)
{
	const char *name = new_name();
	struct pair pair = { .server = serve(name), .caller = open_caller(name) };
	struct xmem_caller *other = open_caller(name);
	struct xmem_request *request;
	uint64_t call, i;

	REFUSED(xmem_server_receive(pair.server, 0), EAGAIN);
	call = call_with(pair.caller, 7);
	request = receive_request(pair.server, 7);
	for (i = 0; i < 4; i++)
		respond_with(pair.server, request, i, XMEM_RESPOND_MORE);
	for (i = 0; i < 700; i++) {
		uint64_t its = call_with(other, i);

		respond_with(pair.server, receive_request(pair.server, i), i + 1, 0);
		SAME(response_to(other, its, false), i + 1);
	}
	for (i = 0; i < 4; i++)
		SAME(response_to(pair.caller, call, true), i);
	REFUSED(xmem_receive_response(pair.caller, call, 0, NULL), EAGAIN);
	respond_with(pair.server, request, 4, 0);
	SAME(response_to(pair.caller, call, false), 4);
	xmem_caller_close(other);
	close_pair(&pair);
}

/* ---- several servers, several threads ---- */

static void share(void *name)
{
	struct xmem_server *server = xmem_serve(name, XMEM_OPTIONS(xmem_service_options,
						.flags = XMEM_SERVE_SHARED));
	struct xmem_request *request;

	WORKED(server ? 0 : xmem_peek_last_error(NULL));
	tell_parent(1);
	request = xmem_server_receive(server, patience_ns());
	WORKED(request ? 0 : xmem_peek_last_error(NULL));
	respond_with(server, request, getpid(), 0);
	hear_parent();
	xmem_server_close(server);
}

TEST(API_servers_may_share_the_calls)
{
	const char *name = new_name();
	struct child *server[3];
	struct xmem_caller *caller;
	uint64_t call[3], by[3];
	unsigned int i;

	for (i = 0; i < 3; i++) {
		server[i] = spawn(share, (void *)name);
		SAME(hear(server[i]), 1);
	}
	caller = open_caller(name);
	for (i = 0; i < 3; i++)
		call[i] = call_with(caller, i);
	for (i = 0; i < 3; i++)
		by[i] = response_to(caller, call[i], false);
	CHECK(by[0] != by[1] && by[1] != by[2] && by[0] != by[2]);
	for (i = 0; i < 3; i++) {
		tell(server[i], 1);
		finish_child(server[i]);
	}
	xmem_caller_close(caller);
}

static void *call_often(void *caller)
{
	uint64_t i, base = (uintptr_t)&i;

	for (i = 0; i < 300; i++)
		SAME(response_to(caller, call_with(caller, base + i), false), base + i + 1);
	return NULL;
}

TEST(API_threads_may_share_a_caller)
{
	const char *name = new_name();
	struct child *server = spawn(add_one, (void *)name);
	struct xmem_caller *caller = open_caller(name);
	pthread_t thread[4];
	unsigned int i;

	for (i = 0; i < 4; i++)
		SAME(pthread_create(&thread[i], NULL, call_often, caller), 0);
	for (i = 0; i < 4; i++)
		SAME(pthread_join(thread[i], NULL), 0);
	quit(caller, server);
	xmem_caller_close(caller);
}

/* ---- kills at any step ---- */

#define CALLS	6		/* after which a victim ends, if it has not reached its step */
#define TIMES	3		/* a victim dies at the first, second and third time */

struct victim {
	const char *name;
	int step;			/* at which it kills itself */
	unsigned int after;		/* times it has passed the step before */
};

static void add_one_until_killed(void *argument)
{
	const struct victim *victim = argument;
	struct xmem_server *server;
	struct xmem_request *request;
	unsigned int i;

	at_step(victim->step, victim->after, STEP_KILL, NULL);
	server = serve(victim->name);
	for (i = 0; i < CALLS; i++) {
		request = xmem_server_receive(server, XMEM_FOREVER);
		WORKED(request ? 0 : xmem_peek_last_error(NULL));
		respond_with(server, request, stamp_of(xmem_request_buffer(request)) + 1, 0);
	}
	kill(getpid(), SIGKILL);
}

static void is_quiet(struct xmem_pool *pool)
{
	struct xmem_pool_info info = { .size = sizeof(info) };

	EVENTUALLY(!xmem_pool_stat(pool, &info) && !info.held && !info.limbo && info.clients == 1);
}

/* Each call is answered, or fails because its server has ended, and the next one serves. */
static void kill_a_server(struct xmem_caller *caller, struct victim *victim,
			  unsigned int *ret_answered)
{
	struct child *first = spawn(add_one_until_killed, victim), *next;
	struct xmem_pool *pool = xmem_caller_pool(caller);
	struct xmem_buffer *b;
	unsigned int i;

	while (!child_has_ended(first) && xmem_wait_subscribers(pool, 1, MS) < 1)
		;
	next = spawn(add_one, (void *)victim->name);
	for (i = 0; !child_has_ended(first); i++) {
		b = xmem_receive_response(caller, call_with(caller, i), patience_ns(), NULL);
		if (b)
			SAME(stamp_of(b), i + 1);
		else
			SAME(xmem_peek_last_error(NULL), -EOWNERDEAD);
		*ret_answered += !!b;
		xmem_release(b);
	}
	died_of_kill(first);
	SAME(hear(next), 1);
	quit(caller, next);
}

TEST_WITHIN(P1_servers_are_killed_at_any_step, 120)
{
	struct victim victim = { .name = new_name() };
	struct child *server = spawn(add_one, (void *)victim.name);
	struct xmem_caller *caller = open_caller(victim.name);
	unsigned int answered = 0;

	steps_only();
	quit(caller, server);
	for (victim.step = 0; victim.step < XM_STEPS; victim.step++)
		for (victim.after = 0; victim.after < TIMES; victim.after++)
			kill_a_server(caller, &victim, &answered);
	CHECK(answered > XM_STEPS);
	is_quiet(xmem_caller_pool(caller));
	xmem_caller_close(caller);
}

static void call_until_killed(void *argument)
{
	const struct victim *victim = argument;
	struct xmem_caller *caller;
	uint64_t stamp;

	at_step(victim->step, victim->after, STEP_KILL, NULL);
	caller = open_caller(victim->name);
	for (stamp = 0; stamp < CALLS; stamp++)
		SAME(response_to(caller, call_with(caller, stamp), false), stamp + 1);
	kill(getpid(), SIGKILL);
}

static void kill_a_caller(struct xmem_server *server, struct victim *victim)
{
	struct child *child = spawn(call_until_killed, victim);
	struct xmem_request *request;

	while (!child_has_ended(child)) {
		request = xmem_server_receive(server, MS);
		if (request)
			respond_with(server, request,
				     stamp_of(xmem_request_buffer(request)) + 1, 0);
	}
	died_of_kill(child);
}

TEST_WITHIN(P1_callers_are_killed_at_any_step, 120)
{
	struct victim victim = { .name = new_name() };
	struct xmem_server *server = serve(victim.name);

	steps_only();
	for (victim.step = 0; victim.step < XM_STEPS; victim.step++)
		for (victim.after = 0; victim.after < TIMES; victim.after++)
			kill_a_caller(server, &victim);
	REFUSED(xmem_server_receive(server, 0), EAGAIN);
	is_quiet(xmem_server_pool(server));
	xmem_server_close(server);
}

/* ---- bad arguments ---- */

/* The handle of a buffer that was sent is gone, and the buffer of another client is refused. */
TEST(API_a_service_takes_only_its_own_buffers)
{
	struct pair pair = open_pair(), other = open_pair();
	struct xmem_buffer *sent = stamped_buffer(xmem_caller_pool(pair.caller), 7);
	struct xmem_buffer *foreign = stamped_buffer(xmem_caller_pool(other.caller), 8);
	struct xmem_request *request;
	uint64_t call = 0, none = 0;

	SAME(xmem_call(pair.caller, foreign, 0, &none), -EINVAL);
	error_says("not of the pool");
	SAME(none, 0);
	WORKED(xmem_call(pair.caller, sent, 0, &call));
	SAME(xmem_call(pair.caller, sent, 0, &none), -EBADF);
	xmem_release(sent);			/* does nothing */
	request = receive_request(pair.server, 7);
	SAME(xmem_respond(request, foreign, 0), -EINVAL);
	WORKED(xmem_cancel_call(pair.caller, call));
	SAME(xmem_respond(request, foreign, 0), -EINVAL);
	WORKED(xmem_refuse(request, EIO));
	SAME(stamp_of(foreign), 8);
	xmem_release(foreign);
	close_pair(&other);
	close_pair(&pair);
}

/* ---- several threads without a server ---- */

static void *call_once(void *caller)
{
	SAME(response_to(caller, call_with(caller, 1), false), 2);
	return NULL;
}

TEST(API_threads_wait_together_for_a_server)
{
	const char *name = new_name();
	struct child *server = spawn(add_one, (void *)name);
	struct xmem_caller *caller = open_caller(name);
	pthread_t thread[3];
	unsigned int i;

	SAME(hear(server), 1);
	quit(caller, server);
	for (i = 0; i < 3; i++)
		SAME(pthread_create(&thread[i], NULL, call_once, caller), 0);
	EVENTUALLY(others_sleep());
	server = spawn(add_one, (void *)name);
	for (i = 0; i < 3; i++)
		SAME(pthread_join(thread[i], NULL), 0);
	quit(caller, server);
	xmem_caller_close(caller);
}

static void close_in_child(void *caller)
{
	xmem_caller_close(caller);
}

static void *wait_for_response(void *caller)
{
	REFUSED(xmem_receive_response(caller, 0, XMEM_FOREVER, NULL), ECANCELED);
	return NULL;
}

/* A child drops the handle although threads of its parent wait in it. */
TEST(P9_a_child_drops_a_caller_in_which_others_wait)
{
	struct pair pair = open_pair();
	pthread_t thread[2];
	unsigned int i;

	call_with(pair.caller, 7);
	for (i = 0; i < 2; i++)
		SAME(pthread_create(&thread[i], NULL, wait_for_response, pair.caller), 0);
	EVENTUALLY(others_sleep());
	finish_child(spawn(close_in_child, pair.caller));
	xmem_caller_close(pair.caller);
	for (i = 0; i < 2; i++)
		SAME(pthread_join(thread[i], NULL), 0);
	xmem_server_close(pair.server);
}
