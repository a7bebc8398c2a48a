// SPDX-License-Identifier: MIT
/*
 * The message of each error begins with the name of the public function that has failed. Each
 * function has a row here, which calls it. All rows run with handles of many kinds: none, dropped,
 * good ones with bad arguments, a reader's, inherited by fork, and after the host has ended.
 */
#include <limits.h>
#include <signal.h>

#include "lib/api_list.h"
#include "harness.h"

#define BYTES	4096
#define MANY	99999		/* no number of a client, a slot or a format */

/* The arguments of the rows. */
struct given {
	struct xmem_pool *pool;
	struct xmem_buffer *buffer;
	struct xmem_subscription *subscription;
	uint64_t token;
	int64_t timeout_ns;
	bool good;			/* the handles; so they are not given to functions that
					 * would drop or cancel them */
	uint32_t flags;
};

static const struct xmem_error too_short = { .size = 4 };
static const struct xmem_image no_image = { .size = sizeof(no_image) };
static const struct xmem_metadata no_metadata = { .storage = 77 };
static struct xmem_tensor tensor = { .size = sizeof(tensor) };
static struct xmem_image image = { .size = sizeof(image) };
static struct xmem_strings strings = { .size = sizeof(strings) };

static void limbo_hook(struct xmem_pool *pool, const struct xmem_limbo *limbo, void *user)
{
}

#define NONE_IF_GOOD(handle)	(g->good ? NULL : (handle))
#define ANSWER(type)	(&(struct type){ .size = sizeof(struct type) })
#define ROW(name, ...) \
	static void row_##name(const struct given *g) \
	{ \
		(void)(__VA_ARGS__); \
	}

ROW(get_last_error, xmem_get_last_error((struct xmem_error *)&too_short))
ROW(peek_last_error, xmem_peek_last_error((struct xmem_error *)&too_short))
ROW(clear_last_error, xmem_clear_last_error(), 0)
ROW(get_api, xmem_get_api(99 << 16))
ROW(pool_open, xmem_pool_open("a/../b", NULL))
ROW(pool_close, xmem_pool_close(NULL), 0)
ROW(cancel, xmem_cancel(NONE_IF_GOOD(g->pool)))
ROW(pool_poll_fd, xmem_pool_poll_fd(g->pool))
ROW(pool_reopen, xmem_pool_reopen(NONE_IF_GOOD(g->pool)))
ROW(pool_fd, xmem_pool_fd(NONE_IF_GOOD(g->pool)))
ROW(pool_fd_narrow, xmem_pool_fd_narrow(-1, g->flags))
ROW(pool_backend, xmem_pool_backend(g->pool))
ROW(pool_client, xmem_pool_client(g->pool))
ROW(subscribe, xmem_subscribe(g->pool, XMEM_OPTIONS(xmem_subscribe_options, .publisher = MANY,
							 .flags = g->flags)))
ROW(receive, xmem_receive(g->subscription, g->timeout_ns))
ROW(receive_any, xmem_receive_any(g->pool, g->timeout_ns, NULL))
ROW(unsubscribe, xmem_unsubscribe(NULL), 0)
ROW(subscription_poll_fd, xmem_subscription_poll_fd(g->subscription))
ROW(subscription_stat, xmem_subscription_stat(g->subscription, NULL))
ROW(data, xmem_data(g->buffer))
ROW(data_mut, xmem_data_mut(g->buffer))
ROW(size, xmem_size(g->buffer))
ROW(slot, xmem_slot(g->buffer))
ROW(capacity, xmem_capacity(g->buffer))
ROW(token, xmem_token(g->buffer))
ROW(release, xmem_release(NONE_IF_GOOD(g->buffer)), 0)
ROW(get, xmem_get(g->pool, g->good ? XMEM_SLOT(MANY) : g->token))
ROW(clone, xmem_clone(NONE_IF_GOOD(g->buffer)))
ROW(buffer_stat, xmem_buffer_stat(g->buffer, NULL))
ROW(metadata_ptr, xmem_metadata_ptr(g->buffer))
ROW(metadata_mut, xmem_metadata_mut(g->buffer))
ROW(acquire, xmem_acquire(g->pool, SIZE_MAX / 2, g->timeout_ns))
ROW(publish, xmem_publish(g->buffer, XMEM_OPTIONS(xmem_publish_options, .flags = 1 << 30), NULL))
ROW(retract, xmem_retract(g->pool, g->token))
ROW(preallocate, xmem_preallocate(g->pool, BYTES, MANY, NULL))
ROW(collect, xmem_collect(NONE_IF_GOOD(g->pool), 0, NULL))
ROW(limbo_hook, xmem_limbo_hook(g->pool, 0, 0, limbo_hook, NULL))
ROW(pool_set_mode, xmem_pool_set_mode(g->pool, 07777777, XMEM_GID_SAME))
ROW(pool_evict, xmem_pool_evict(g->pool, MANY, 1))
ROW(pool_drain, xmem_pool_drain(g->pool, ~0U))
ROW(pool_grant, xmem_pool_grant(g->pool, MANY, 1))
ROW(set_ref_count, xmem_set_ref_count(g->buffer, 0, g->timeout_ns))
ROW(offer, xmem_offer(g->buffer, 0, g->timeout_ns))
ROW(forget, xmem_forget(NONE_IF_GOOD(g->buffer)))
ROW(add_ref, xmem_add_ref(g->pool, g->token))
ROW(drop_ref, xmem_drop_ref(g->pool, g->token))
ROW(claims, xmem_claims(g->pool, g->token))
ROW(void_claims, xmem_void_claims(g->pool, g->token))
ROW(copy, xmem_copy(g->buffer, g->buffer, NULL))
ROW(copy_range, xmem_copy_range(g->buffer, 0, g->buffer, 0, BYTES, NULL))
ROW(copy_from_host, xmem_copy_from_host(g->buffer, MANY, &tensor, BYTES, NULL))
ROW(copy_to_host, xmem_copy_to_host(NULL, g->buffer, 0, BYTES, NULL))
ROW(copy_to, xmem_copy_to(g->buffer, INT_MAX, g->timeout_ns))
ROW(data_private, xmem_data_private(g->buffer))
ROW(cuda_query, xmem_cuda_query(NULL))
ROW(cuda_device_query, xmem_cuda_device_query(INT_MAX, NULL))
ROW(acquire_cuda, xmem_acquire_cuda(g->pool, BYTES, INT_MAX, g->timeout_ns))
ROW(attach_cuda, xmem_attach_cuda(g->pool, NULL, BYTES, g->flags, NULL, NULL))
ROW(cuda_ptr, xmem_cuda_ptr(g->buffer))
ROW(cuda_ptr_mut, xmem_cuda_ptr_mut(g->buffer))
ROW(cuda_peer, xmem_cuda_peer(g->buffer, INT_MAX))
ROW(cuda_device, xmem_cuda_device(g->buffer))
ROW(pool_stat, xmem_pool_stat(g->pool, NULL))
ROW(pool_client_info, xmem_pool_client_info(g->pool, MANY, ANSWER(xmem_client_info)))
ROW(subscriber_next, xmem_subscriber_next(g->pool, 0, ANSWER(xmem_subscriber_info)))
ROW(wait_subscribers, xmem_wait_subscribers(g->pool, MANY, g->timeout_ns))
ROW(subscribers_poll_fd, xmem_subscribers_poll_fd(g->pool))
ROW(pool_slot_info, xmem_pool_slot_info(g->pool, MANY, ANSWER(xmem_slot_info)))
ROW(pool_device_info, xmem_pool_device_info(g->pool, MANY, ANSWER(xmem_device_info)))
ROW(pool_holds, xmem_pool_holds(g->pool, MANY, 0))
ROW(host_query, xmem_host_query(NULL))
ROW(limit_next, xmem_limit_next(g->pool, MANY, ANSWER(xmem_limit_info)))
ROW(pool_next, xmem_pool_next(UINT64_MAX - 1, ANSWER(xmem_pool_entry)))
ROW(attach_fd, xmem_attach_fd(g->pool, -1, 0, BYTES, g->flags))
ROW(get_mut, xmem_get_mut(g->buffer))
ROW(wait_on, xmem_wait_on(g->buffer, NULL))
ROW(wait_contents, xmem_wait_contents(g->buffer, g->timeout_ns))
ROW(release_on, xmem_release_on(NONE_IF_GOOD(g->buffer), NULL))
ROW(describe_tensor, xmem_describe_tensor(g->buffer, XMEM_DTYPE_UINT8, 1, NULL, NULL))
ROW(describe_image, xmem_describe_image(g->buffer, MANY, 1, 1, 0))
ROW(image_bytes, xmem_image_bytes(MANY, 1, 1, 0))
ROW(describe_source, xmem_describe_source(g->buffer, NULL))
ROW(metadata_view, xmem_metadata_view(g->buffer, NULL))
ROW(tensor_view, xmem_tensor_view(g->buffer, 0, &tensor))
ROW(image_view, xmem_image_view(g->buffer, 0, &image))
ROW(image_plane, xmem_image_plane(&no_image, MANY, &tensor))
ROW(strings_plan, xmem_strings_plan(MANY, 1, ~0U, &strings))
ROW(describe_strings, xmem_describe_strings(g->buffer, MANY, 1, ~0U))
ROW(strings_view, xmem_strings_view(g->buffer, 0, &strings))
ROW(strings_get, xmem_strings_get(&strings, MANY, NULL))
ROW(tensor_check, xmem_tensor_check(&no_metadata, 1))
ROW(serve, xmem_serve(NULL, NULL))
ROW(server_close, xmem_server_close(NULL), 0)
ROW(server_pool, xmem_server_pool(NULL))
ROW(server_receive, xmem_server_receive(NULL, g->timeout_ns))
ROW(request_buffer, xmem_request_buffer(NULL))
ROW(request_stat, xmem_request_stat(NULL))
ROW(respond, xmem_respond(NULL, g->buffer, g->flags))
ROW(refuse, xmem_refuse(NULL, EIO))
ROW(caller_open, xmem_caller_open("", NULL))
ROW(caller_close, xmem_caller_close(NULL), 0)
ROW(caller_pool, xmem_caller_pool(NULL))
ROW(call, xmem_call(NULL, g->buffer, g->timeout_ns, NULL))
ROW(receive_response, xmem_receive_response(NULL, g->token, g->timeout_ns, NULL))
ROW(cancel_call, xmem_cancel_call(NULL, g->token))

#define ENTRY(name)	{ #name, row_##name, false },

static struct {
	const char *name;
	void (*call)(const struct given *given);
	bool failed;
} row[] = { XL_API(ENTRY) ENTRY(get_api) };

#define ROWS	(sizeof(row) / sizeof(*row))

/* Call everything. Each message must begin with the name of its function. */
static void call_all(const struct given *given)
{
	const char *why, *colon;
	unsigned int i;

	for (i = 0; i < ROWS; i++) {
		xmem_clear_last_error();
		row[i].call(given);
		if (!xmem_peek_last_error(NULL))
			continue;
		row[i].failed = true;
		why = last_message();
		colon = strchr(why, ':');
		if (!colon || strlen(row[i].name) != (size_t)(colon - why) ||
		    strncmp(why, row[i].name, colon - why))
			FAIL("xmem_%s: %s", row[i].name, why);
	}
}

static void call_all_in_child(void *given)
{
	call_all(given);
}

/* These do nothing with a handle that is none, or was dropped. */
static bool never_fails(const char *name)
{
	return !strcmp(name, "clear_last_error") || !strcmp(name, "pool_backend") ||
	       !strcmp(name, "pool_close") || !strcmp(name, "unsubscribe") ||
	       !strcmp(name, "server_close") || !strcmp(name, "caller_close");
}

/* A new reader, which has a subscription and holds a buffer. */
static struct given given_by(const char *name, struct xmem_pool *writer)
{
	struct given given = { .pool = open_reader(name), .good = true };

	given.subscription = follow(given.pool, xmem_pool_client(writer), 0);
	publish_stamp(writer, 1);
	given.buffer = receive_one(given.subscription);
	given.token = xmem_token(given.buffer);
	return given;
}

TEST(API_messages_begin_with_the_functions_name)
{
	struct given none = { .timeout_ns = -1, .flags = ~0U }, reader, own;
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 2, BYTES);
	unsigned int i;

	call_all(&none);
	reader = given_by(name, writer);
	call_all(&reader);
	own = reader;
	own.timeout_ns = -1;
	own.flags = ~0U;
	own.token = 1ULL << 40;
	call_all(&own);
	own.pool = writer;
	call_all(&own);
	own.timeout_ns = 0;
	own.buffer = xmem_acquire(writer, BYTES, 0);
	call_all(&own);
	xmem_release(own.buffer);
	reader.good = false;
	finish_child(spawn(call_all_in_child, &reader));
	xmem_release(reader.buffer);
	xmem_unsubscribe(reader.subscription);
	xmem_pool_close(reader.pool);
	call_all(&reader);
	xmem_pool_close(writer);
	for (i = 0; i < ROWS; i++)
		if (row[i].failed == never_fails(row[i].name))
			FAIL("xmem_%s: %s", row[i].name,
			     row[i].failed ? "has failed" : "never failed");
}

static bool host_has_gone(const struct given *given)
{
	struct xmem_buffer *b = xmem_get(given->pool, given->token);

	xmem_release(b);
	return !b;
}

TEST(API_messages_begin_with_the_functions_name_when_the_host_has_gone)
{
	struct xmem_pool *writer;
	struct given reader, own;
	const char *name;

	daemon_only("the module ends with the machine");
	use_own_daemon();
	name = new_name();
	writer = open_writer(name, 2, BYTES);
	reader = given_by(name, writer);
	own = reader;
	own.pool = writer;
	own.buffer = xmem_acquire(writer, BYTES, 0);
	CHECK(!kill(stop_daemon(), SIGKILL));
	EVENTUALLY(host_has_gone(&reader));
	call_all(&reader);
	call_all(&own);
	xmem_release(own.buffer);
	xmem_release(reader.buffer);
	xmem_unsubscribe(reader.subscription);
	xmem_pool_close(reader.pool);
	xmem_pool_close(writer);
}
