// SPDX-License-Identifier: MIT
/*
 * The library's promises to its callers: handles never dangle, errors have messages, a forked child
 * gets an error, roles are enforced, options are checked. A test's name begins with API if it
 * checks none of the promises P1 to P10.
 */
#include <sys/mman.h>
#include <sys/wait.h>

#include "harness.h"

#define BYTES	4096

TEST(API_null_handles_are_EINVAL)
{
	struct xmem_pool_info stat = { .size = sizeof(stat) };
	struct xmem_subscription_info told = XMEM_INIT(told);
	struct xmem_buffer_info info = XMEM_INIT(info);

	SAME(xmem_pool_fd(NULL), -EINVAL);
	SAME(xmem_pool_client(NULL), -EINVAL);
	SAME(xmem_pool_stat(NULL, &stat), -EINVAL);
	SAME(xmem_preallocate(NULL, 1, 1, NULL), -EINVAL);
	SAME(xmem_publish(NULL, NULL, NULL), -EINVAL);
	SAME(xmem_subscription_stat(NULL, &told), -EINVAL);
	REFUSED(xmem_acquire(NULL, 1, 0), EINVAL);
	REFUSED(xmem_subscribe(NULL, NULL), EINVAL);
	REFUSED(xmem_receive(NULL, 0), EINVAL);
	REFUSED(xmem_get(NULL, 1), EINVAL);
	REFUSED(xmem_clone(NULL), EINVAL);
	REFUSED(xmem_data(NULL), EINVAL);
	REFUSED(xmem_data_mut(NULL), EINVAL);
	REFUSED(xmem_metadata_ptr(NULL), EINVAL);
	REFUSED(xmem_metadata_mut(NULL), EINVAL);
	CHECK(!xmem_pool_backend(NULL));
	SAME(xmem_size(NULL), 0);
	SAME(xmem_capacity(NULL), 0);
	SAME(xmem_token(NULL), 0);
	SAME(xmem_buffer_stat(NULL, &info), -EINVAL);
	xmem_pool_close(NULL);
	xmem_unsubscribe(NULL);
	xmem_release(NULL);
}

TEST(API_errors_have_messages)
{
	struct xmem_pool_options options = { .size = sizeof(options), .flags = XMEM_OPEN_EXISTING };
	const char *why, *name = new_name();

	xmem_clear_last_error();
	why = last_message();
	SAME(xmem_peek_last_error(NULL), 0);
	CHECK(why && !*why);
	CHECK(!xmem_pool_open(name, &options));
	why = last_message();
	SAME(xmem_peek_last_error(NULL), -ENOENT);
	CHECK(strstr(why, name));
	why = last_message();
	SAME(xmem_get_last_error(NULL), -ENOENT);
	CHECK(strstr(why, name));
	SAME(xmem_get_last_error(NULL), 0);
}

TEST(API_the_last_error_is_cut_to_the_callers_size)
{
	struct { struct xmem_error error; char behind[8]; } longer;
	struct xmem_error older = { .size = offsetof(struct xmem_error, message) };
	size_t none = sizeof(none) - 1;

	REFUSED(xmem_get(NULL, 1), EINVAL);
	memset(&longer, 0x5a, sizeof(longer));
	longer.error.size = sizeof(longer);
	SAME(xmem_peek_last_error(&longer.error), -EINVAL);
	SAME(longer.error.size, sizeof(longer.error));
	SAME(longer.error.error, -EINVAL);
	SAME(longer.error.cuda_result, 0);
	CHECK(!strcmp(longer.error.cuda_name, "CUDA_SUCCESS"));
	SAME(longer.behind[0], 0x5a);
	REFUSED(xmem_pool_open(new_name(), XMEM_OPTIONS(xmem_pool_options, XMEM_OPEN_EXISTING)),
		ENOENT);
	/* Without room for its size the struct is not filled, and the error is not forgotten. */
	SAME(xmem_get_last_error((struct xmem_error *)&none), -EINVAL);
	CHECK(strstr(last_message(), "sizeof(struct xmem_error)"));
	SAME(xmem_get_last_error(&older), -EINVAL);
	SAME(older.error, -EINVAL);
	CHECK(!older.message);
	SAME(xmem_peek_last_error(NULL), 0);
}

/* The last error is @err, and its message has all of @words, which end with NULL. */
static void says(int err, const char *const *words)
{
	const char *why = last_message();

	SAME(xmem_peek_last_error(NULL), err);
	for (; *words; words++)
		if (!strstr(why, *words))
			FAIL("'%s' does not contain '%s'", why, *words);
}

/* Whichever call has dropped a handle, the message for its next use names that call. */
TEST(API_messages_name_the_call)
{
	static const char *const nothing[] = { "get: there is nothing in slot 0", NULL };
	static const char *const dropped[] = {
		"token: ", "xmem_release", "xmem_publish", "xmem_forget", NULL
	};
	struct xmem_pool *pool = open_writer(new_name(), 1, BYTES);
	struct xmem_buffer *b = xmem_acquire(pool, BYTES, 0);
	uint64_t token;

	REFUSED(xmem_get(pool, XMEM_SLOT(0)), ESTALE);
	says(-ESTALE, nothing);
	WORKED(xmem_set_ref_count(b, 1, 0));
	token = xmem_token(b);
	WORKED(xmem_forget(b));
	SAME(xmem_token(b), 0);
	says(-EBADF, dropped);
	WORKED(xmem_drop_ref(pool, token));
	REFUSED(xmem_get(pool, 1 << 16), ESTALE);
	says(-ESTALE, (const char *const []){ "get: the contents of this token", NULL });
	check_quiet(pool, 1);
	xmem_pool_close(pool);
}

TEST(API_a_success_leaves_the_error_alone)
{
	struct xmem_pool *pool = open_writer(new_name(), 1, BYTES);

	REFUSED(xmem_get(pool, 1), ESTALE);
	publish_stamp(pool, 1);
	SAME(xmem_peek_last_error(NULL), -ESTALE);
	xmem_clear_last_error();
	SAME(xmem_peek_last_error(NULL), 0);
	xmem_pool_close(pool);
}

TEST(API_existing_and_exclusive)
{
	const char *name = new_name();
	struct xmem_pool_options existing = {
		.size = sizeof(existing), .flags = XMEM_OPEN_EXISTING,
	};
	struct xmem_pool_options exclusive = {
		.size = sizeof(exclusive), .flags = XMEM_OPEN_EXCLUSIVE,
	};
	struct xmem_pool *a, *b;

	REFUSED(xmem_pool_open(name, &existing), ENOENT);
	a = xmem_pool_open(name, &exclusive);
	CHECK(a);
	REFUSED(xmem_pool_open(name, &exclusive), EEXIST);
	b = xmem_pool_open(name, &existing);
	CHECK(b);
	CHECK(xmem_pool_client(a) != xmem_pool_client(b));
	xmem_pool_close(a);
	xmem_pool_close(b);
	/* The pool ends with its last client. */
	REFUSED(xmem_pool_open(name, &existing), ENOENT);
}

TEST(API_the_backend_is_the_one_that_was_insisted_on)
{
	struct xmem_pool *pool = open_reader(new_name());

	CHECK(!strcmp(xmem_pool_backend(pool), on_kernel() ? "kernel" : "daemon"));
	xmem_pool_close(pool);
}

TEST(API_anonymous_pools_are_apart)
{
	struct xmem_pool *a = xmem_pool_open(NULL, NULL), *b = xmem_pool_open("", NULL);

	CHECK(a && b);
	SAME(stat_of(a).clients, 1);
	SAME(stat_of(b).clients, 1);
	xmem_pool_close(a);
	xmem_pool_close(b);
}

/* ---- a pool's file ---- */

static void join_by_file(void *argument)
{
	int file = receive_file(parent_link());
	struct xmem_pool *pool = open_by_fd(file, 0);
	struct xmem_buffer *b;

	CHECK(pool);
	close(file);
	b = xmem_get(pool, hear_parent());
	CHECK(b);
	SAME(stamp_of(b), 0xf11e);
	tell_parent(xmem_pool_client(pool));
	hear_parent();
	xmem_release(b);
	xmem_pool_close(pool);
}

TEST(API_a_pools_file_passes_the_right_to_join)
{
	struct xmem_pool *writer = OPEN(NULL, .flags = XMEM_OPEN_WRITER);
	struct child *child;
	struct xmem_buffer *kept;
	uint64_t token;
	int file;

	WORKED(xmem_preallocate(writer, BYTES, 2, NULL));
	WORKED(file = xmem_pool_fd(writer));
	CHECK(fcntl(file, F_GETFD) & FD_CLOEXEC);
	token = publish_kept(writer, 0xf11e, &kept);
	child = spawn(join_by_file, NULL);
	send_file(child->link, file);
	close(file);
	tell(child, token);
	CHECK((int)hear(child) != xmem_pool_client(writer));
	SAME(stat_of(writer).clients, 2);
	SAME(stat_of(writer).holds, 2);
	tell(child, 1);
	finish_child(child);
	xmem_release(kept);
	check_quiet(writer, 1);
	xmem_pool_close(writer);
}

TEST(P2_a_pools_file_is_no_client)
{
	const char *name = new_name();
	struct xmem_pool *pool = open_reader(name), *again;
	int file = xmem_pool_fd(pool), other = open("/dev/null", O_RDONLY | O_CLOEXEC);

	CHECK(file >= 0 && other >= 0);
	SAME(stat_of(pool).clients, 1);
	again = open_by_fd(file, 0);
	CHECK(again);
	SAME(stat_of(pool).clients, 2);
	xmem_pool_close(pool);
	check_quiet(again, 1);
	xmem_pool_close(again);
	REFUSED(open_by_fd(other, 0), EBADF);
	REFUSED(open_by_fd(-1, 0), EBADF);
	REFUSED(open_by_fd(888, 0), EBADF);
	close(file);
	close(other);
}

/* ---- fork ---- */

struct inherited {
	const char *name;
	struct xmem_pool *pool;
	struct xmem_subscription *s;
	struct xmem_buffer *read, *written;
	uint64_t token;
};

static void use_inherited(void *argument)
{
	struct inherited *i = argument;
	struct xmem_pool_info stat = { .size = sizeof(stat) };
	struct xmem_pool *pool;
	struct xmem_buffer *b;

	REFUSED(xmem_data(i->read), ECHILD);
	REFUSED(xmem_data_mut(i->written), ECHILD);
	REFUSED(xmem_metadata_ptr(i->read), ECHILD);
	REFUSED(xmem_clone(i->read), ECHILD);
	REFUSED(xmem_get(i->pool, i->token), ECHILD);
	REFUSED(xmem_receive(i->s, 0), ECHILD);
	REFUSED(xmem_acquire(i->pool, 1, 0), ECHILD);
	REFUSED(xmem_subscribe(i->pool, NULL), ECHILD);
	SAME(xmem_publish(i->written, NULL, NULL), -ECHILD);
	SAME(xmem_preallocate(i->pool, 1, 1, NULL), -ECHILD);
	SAME(xmem_pool_stat(i->pool, &stat), -ECHILD);
	SAME(xmem_pool_fd(i->pool), -ECHILD);
	SAME(xmem_pool_client(i->pool), -ECHILD);

	/* The child joins again, and what it inherited is dead even then. */
	pool = open_reader(i->name);
	REFUSED(xmem_data(i->read), ECHILD);
	REFUSED(xmem_receive(i->s, 0), ECHILD);
	b = xmem_get(pool, i->token);
	CHECK(b);
	SAME(stamp_of(b), 0xf0);
	/* A release does nothing in the child: the hold is the parent's. */
	xmem_release(i->read);
	xmem_release(i->written);
	xmem_unsubscribe(i->s);
	xmem_pool_close(i->pool);
	SAME(stat_of(pool).holds, 3);
	SAME(stat_of(pool).clients, 3);
	xmem_release(b);
	xmem_pool_close(pool);
}

TEST(P2_a_forked_child_releases_what_it_inherited)
{
	struct inherited i = { .name = new_name() };
	struct xmem_pool *writer = open_writer(i.name, 4, BYTES);
	struct xmem_buffer *kept;

	i.pool = open_writer(i.name, 2, BYTES);
	i.s = follow(i.pool, xmem_pool_client(writer), 0);
	i.token = publish_kept(writer, 0xf0, &kept);
	i.read = receive_one(i.s);
	i.written = xmem_acquire(i.pool, BYTES, 0);
	CHECK(i.written);
	finish_child(spawn(use_inherited, &i));
	/* Nothing has changed. */
	SAME(stat_of(writer).holds, 2);
	SAME(stat_of(writer).clients, 2);
	SAME(stamp_of(i.read), 0xf0);
	fill(i.written, 5);
	WORKED(xmem_publish(i.written, NULL, NULL));
	publish_stamp(writer, 0xf1);
	xmem_release(i.read);
	i.read = receive_one(i.s);
	SAME(stamp_of(i.read), 0xf1);
	xmem_release(i.read);
	xmem_release(kept);
	xmem_unsubscribe(i.s);
	xmem_pool_close(i.pool);
	check_quiet(writer, 1);
	xmem_pool_close(writer);
}

static void look_at_inherited_data(void *argument)
{
	const void **data = argument;

	CHECK(touch((uint32_t *)data[0], false));
	CHECK(touch((uint32_t *)data[1], true));
}

/* A child must not have payloads: it could read later contents, or write what others read. */
TEST(P1_payloads_are_not_inherited)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 2, BYTES), *reader = open_reader(name);
	struct xmem_buffer *read = publish_and_get(writer, reader, 1);
	struct xmem_buffer *written = xmem_acquire(writer, BYTES, 0);
	const void *data[2] = { xmem_data(read), xmem_data_mut(written) };

	CHECK(data[0] && data[1]);
	finish_child(spawn(look_at_inherited_data, data));
	SAME(stamp_of(read), 1);
	xmem_release(read);
	xmem_release(written);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

static void open_and_fork_on(void *argument)
{
	struct inherited *i = argument;
	struct xmem_pool *pool = open_reader(i->name);
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		SAME(xmem_pool_client(pool), -ECHILD);
		SAME(xmem_pool_client(i->pool), -ECHILD);
		xmem_pool_close(open_reader(i->name));
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	SAME(xmem_pool_client(i->pool), -ECHILD);
	CHECK(xmem_pool_client(pool) >= 0);
	xmem_pool_close(pool);
}

TEST(P2_a_child_of_a_child_starts_afresh_as_well)
{
	struct inherited i = { .name = new_name() };

	i.pool = open_reader(i.name);
	finish_child(spawn(open_and_fork_on, &i));
	check_quiet(i.pool, 1);
	xmem_pool_close(i.pool);
}

/* ---- roles ---- */

TEST(API_a_reader_does_not_write)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 2, BYTES), *reader = open_reader(name);

	SAME(xmem_preallocate(reader, BYTES, 1, NULL), -EPERM);
	REFUSED(xmem_acquire(reader, BYTES, 0), EPERM);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

TEST(API_what_is_written_is_not_read_yet)
{
	struct xmem_pool *writer = open_writer(new_name(), 2, BYTES);
	struct xmem_buffer *b = xmem_acquire(writer, 100, 0);

	CHECK(b);
	SAME(xmem_size(b), 100);
	SAME(xmem_capacity(b), BYTES);
	SAME(xmem_token(b), 0);
	REFUSED(xmem_clone(b), EPERM);
	CHECK(xmem_data(b) && xmem_data(b) == xmem_data_mut(b));
	xmem_release(b);
	b = xmem_acquire(writer, BYTES, 0);
	CHECK(b);
	xmem_release(b);
	xmem_pool_close(writer);
}

/* ---- subscriptions ---- */

TEST(API_subscribing_has_its_errors)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 2, BYTES), *reader = open_reader(name);
	struct xmem_subscribe_options options = {
		.size = sizeof(options), .publisher = xmem_pool_client(writer),
	};
	struct xmem_subscription *s;

	options.flags = XMEM_SUBSCRIBE_WAITS | XMEM_SUBSCRIBE_PUBLISHER;
	REFUSED(xmem_subscribe(reader, &options), EOPNOTSUPP);
	options.flags = XMEM_SUBSCRIBE_PUBLISHER;
	s = xmem_subscribe(reader, &options);
	CHECK(s);
	SAME(sub_info(s).publisher, xmem_pool_client(writer));
	REFUSED(xmem_subscribe(reader, &options), EEXIST);
	options.flags |= XMEM_SUBSCRIBE_NOWAIT;
	options.publisher = xmem_pool_client(reader);
	REFUSED(xmem_subscribe(reader, &options), ENOENT);
	options.publisher = 0;
	options.flags = XMEM_SUBSCRIBE_NOWAIT;
	REFUSED(xmem_subscribe(reader, &options), ENOENT);
	xmem_unsubscribe(s);
	s = xmem_subscribe(reader, &options);
	CHECK(s);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

/* ---- what travels with the contents ---- */

TEST(API_metadata_offset_length_and_time_arrive)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 4, BYTES), *reader = open_reader(name);
	struct xmem_subscription *s = follow(reader, xmem_pool_client(writer), 0);
	struct xmem_publish_options options = {
		.size = sizeof(options), .timestamp_ns = 123456789, .offset = 128, .length = 1000,
	};
	struct xmem_buffer *b = xmem_acquire(writer, BYTES, 0), *same;
	struct xmem_metadata *m = xmem_metadata_mut(b);
	unsigned char *data = xmem_data_mut(b);
	unsigned int i;

	CHECK(b && m && data);
	for (i = 0; i < BYTES; i++)
		data[i] = i % 251;
	m->id = 77;
	m->ndim = 2;
	m->shape[0] = 10;
	m->shape[1] = 100;
	m->strides[0] = 100;
	strcpy((char *)m->content_type, "video/x-raw,gray8");
	options.offset = BYTES;
	options.length = 1;
	SAME(xmem_publish(b, &options, NULL), -ERANGE);
	options.offset = 128;
	options.length = BYTES;
	SAME(xmem_publish(b, &options, NULL), -ERANGE);
	options.length = ~0ULL;
	SAME(xmem_publish(b, &options, NULL), -ERANGE);
	options.length = 1000;
	WORKED(xmem_publish(b, &options, NULL));

	b = xmem_receive(s, 0);
	CHECK(b);
	same = xmem_get(reader, xmem_token(b));
	CHECK(same);
	SAME(info_of(b).timestamp_ns, 123456789);
	for (i = 0; i < 2; i++) {
		struct xmem_buffer *each = i ? same : b;

		SAME(xmem_size(each), 1000);
		SAME(*(const unsigned char *)xmem_data(each), 128);
		SAME(((const unsigned char *)xmem_data(each))[999], (128 + 999) % 251);
		SAME(xmem_metadata_ptr(each)->id, 77);
		SAME(xmem_metadata_ptr(each)->shape[1], 100);
		SAME(xmem_metadata_ptr(each)->size, 1000);
		CHECK(!strcmp((const char *)xmem_metadata_ptr(each)->content_type,
			      "video/x-raw,gray8"));
	}
	xmem_release(same);
	xmem_release(b);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

TEST(API_buffers_of_several_sizes)
{
	struct xmem_pool *writer = open_writer(new_name(), 2, 1000);
	struct xmem_buffer *large, *small[2];

	WORKED(xmem_preallocate(writer, 100000, 1, NULL));
	large = xmem_acquire(writer, 50000, 0);
	CHECK(large);
	SAME(xmem_size(large), 50000);
	SAME(xmem_capacity(large), 100000);
	memset(xmem_data_mut(large), 1, 100000);
	REFUSED(xmem_acquire(writer, 50000, 0), EAGAIN);
	small[0] = xmem_acquire(writer, 1000, 0);
	small[1] = xmem_acquire(writer, 1000, 0);
	CHECK(small[0] && small[1]);
	memset(xmem_data_mut(small[0]), 2, 1000);
	memset(xmem_data_mut(small[1]), 3, 1000);
	SAME(((char *)xmem_data(large))[99999], 1);
	SAME(((char *)xmem_data(small[0]))[999], 2);
	REFUSED(xmem_acquire(writer, 100001, 0), ENOSPC);
	xmem_release(large);
	xmem_release(small[0]);
	xmem_release(small[1]);
	xmem_pool_close(writer);
}
