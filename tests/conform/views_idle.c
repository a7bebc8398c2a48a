// SPDX-License-Identifier: MIT
/*
 * Private views that are idle, and views for which something is lacking: memory, mappings, or the
 * host.
 */
#include <linux/capability.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "attached.h"
#include "views.h"

/* ---- idle views starve no call ---- */

/* The process may have this many bytes more of this resource. */
static void allow_more(int resource, uint64_t bytes)
{
	struct rlimit limit;

	CHECK(!getrlimit(resource, &limit));
	limit.rlim_cur = mapped_bytes(resource == RLIMIT_AS ? "" : " rw-p ") + bytes;
	CHECK(!setrlimit(resource, &limit));
}

/* Publish @count buffers, which this process holds and the reader may get. */
static void publish_many(struct scene *s, unsigned int count, struct xmem_buffer **ret_kept)
{
	struct xmem_publish_options keep = { .size = sizeof(keep), .flags = XMEM_PUBLISH_KEEP };
	unsigned int i;

	for (i = 0; i < count; i++) {
		ret_kept[i] = xmem_acquire(s->writer, s->bytes, 0);
		CHECK(ret_kept[i]);
		store_all(xmem_data_mut(ret_kept[i]), s->bytes, i + 1);
		WORKED(xmem_publish(ret_kept[i], &keep, NULL));
	}
}

/*
 * Take all memory that the idle views have left. The allocator of a sanitizer would end the test.
 */
static void fill_heap(void)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	for (size_t bytes = MB; bytes >= 16; bytes /= 2)
		while (malloc(bytes))
			;
#endif
}

/* View one after the other, in memory for a few. */
static void view_in_turn(void *argument)
{
	int resource = *(int *)argument;
	struct scene s = start(MB, 48, 0);
	struct xmem_buffer *kept[48], *b;
	unsigned int i;

	publish_many(&s, 48, kept);
	for (i = 0; i < 48; i++) {
		CHECK((b = xmem_get(s.reader, xmem_token(kept[i]))));
		CHECK(xmem_data(b));
		xmem_release(b);
	}
	allow_more(resource, 20 * MB);
	for (i = 0; i < 48; i++) {
		CHECK((b = xmem_get(s.reader, xmem_token(kept[i]))));
		if (i == 30)
			fill_heap();
		view_of(b, i + 1)[0] = 0;
		xmem_release(b);
		xmem_release(kept[i]);
	}
	end(&s);
}

TEST(P10_idle_private_views_leave_memory_for_others)
{
	static const int resource[] = { RLIMIT_AS, RLIMIT_DATA };
	unsigned int i;

	for (i = 0; i < 2; i++)
		finish_child(spawn(view_in_turn, (void *)&resource[i]));
}

/* A file of 16 MB is mapped, where idle views have left less. */
static void view_and_map(void *argument)
{
	struct scene s = start(MB, 32, 0);
	struct xmem_buffer *kept[32], *b;
	unsigned int i;

	(void)argument;
	publish_many(&s, 32, kept);
	CHECK((b = xmem_get(s.reader, xmem_token(kept[0]))));
	CHECK(xmem_data(b));
	xmem_release(b);
	allow_more(RLIMIT_AS, 28 * MB);
	for (i = 0; i < 32; i++) {
		CHECK((b = xmem_get(s.reader, xmem_token(kept[i]))));
		if (i < 15)
			view_of(b, i + 1);
		else
			check_all(xmem_data(b), MB, i + 1);
		xmem_release(b);
		xmem_release(kept[i]);
	}
	end(&s);
}

TEST(P10_idle_private_views_leave_memory_for_payloads)
{
	finish_child(spawn(view_and_map, NULL));
}

/* There are as many as the bound allows, and they are the newest. */
TEST(P10_idle_private_views_have_a_bound)
{
	struct xmem_pool *writer = open_writer(new_name(), 1, PAGE);
	int file = stamped(48 * MB, 5, FULL_SEALS);
	struct xmem_buffer *b[8];
	uint64_t *first, *last = NULL;
	unsigned int i;

	for (i = 0; i < 8; i++) {
		struct xmem_publish_options keep = {
			.size = sizeof(keep), .flags = XMEM_PUBLISH_KEEP,
		};

		b[i] = xmem_attach_fd(writer, file, 0, 0, 0);
		WORKED(b[i] ? xmem_publish(b[i], &keep, NULL) : xmem_peek_last_error(NULL));
	}
	for (i = 0; i < 8; i++) {
		struct xmem_buffer *clone = xmem_clone(b[i]);

		CHECK(clone && (last = xmem_data_private(clone)));
		xmem_release(clone);
		CHECK(mapped_bytes(" rw-p 00000000 00:01") <= 256 * MB);
	}
	first = xmem_data_private(b[7]);
	CHECK(first == last);
	CHECK(mapped_bytes(" rw-p 00000000 00:01") > 192 * MB);
	CHECK(xmem_collect(writer, XMEM_KEEP_ALL, NULL) >= 0);	/* the collect gives them up */
	CHECK(mapped_bytes(" rw-p 00000000 00:01") <= 48 * MB);
	for (i = 0; i < 8; i++)
		xmem_release(b[i]);
	close(file);
	xmem_pool_close(writer);
}

/* The limit of locked memory is a lack of memory, and no fault of the contents. */
static void lock_too_much(void *argument)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];
	struct rlimit limit = { MB, MB };
	struct scene s = start(LARGE, 1, 0);
	struct xmem_buffer *kept, *b = give(&s, 1, &kept);
	bool locks;
	void *probe;

	(void)argument;
	CHECK(xmem_data(b));
	CHECK(!syscall(SYS_capget, &head, data));
	data[0].effective &= ~(1u << CAP_IPC_LOCK);
	CHECK(!syscall(SYS_capset, &head, data));
	CHECK(!setrlimit(RLIMIT_MEMLOCK, &limit));
	CHECK(!mlockall(MCL_FUTURE));
	probe = mmap(NULL, LARGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	locks = probe == MAP_FAILED && errno == EAGAIN;
	if (locks)
		REFUSED(xmem_data_private(b), ENOMEM);
	munlockall();
	tell_parent(locks);
	view_of(b, 1);
	xmem_release(b);
	xmem_release(kept);
	end(&s);
}

TEST(API_a_private_view_beyond_the_limit_of_locked_memory_is_ENOMEM)
{
	struct child *child = spawn(lock_too_much, NULL);
	bool locks = hear(child);

	finish_child(child);
	if (!locks)		/* a sanitizer makes mlockall do nothing */
		skip("memory is not locked here");
}

/* The host has gone: mapped contents are there, and can be copied. */
TEST(P1_a_private_view_when_the_host_has_gone)
{
	struct scene s;
	struct xmem_buffer *kept, *b, *clone;

	daemon_only("the kernel does not end");
	use_own_daemon();
	s = start(LARGE, 1, 0);
	b = give(&s, 3, &kept);
	clone = xmem_clone(b);
	CHECK(clone && xmem_data(b));
	CHECK(!kill(stop_daemon(), SIGKILL));
	store_all(view_of(b, 3), LARGE, 4);
	view_of(clone, 3);
	check_all(xmem_data(b), LARGE, 3);
	xmem_release(clone);
	xmem_release(b);
	xmem_release(kept);
	xmem_pool_close(s.reader);
	xmem_pool_close(s.writer);
}

/* A child has none of its parent's idle views, and makes its own. */
static void view_as_child(void *argument)
{
	struct scene s = start(LARGE, 1, 0);
	struct xmem_buffer *kept, *b = give(&s, 3, &kept);

	(void)argument;
	CHECK(xmem_collect(s.reader, XMEM_KEEP_ALL, NULL) >= 0);
	view_of(b, 3);
	xmem_release(b);
	SAME(private_mappings(), 1);
	CHECK(xmem_collect(s.reader, XMEM_KEEP_ALL, NULL) >= 0);
	SAME(private_mappings(), 0);
	xmem_release(kept);
	end(&s);
}

TEST(P1_a_child_leaves_the_idle_private_views_of_its_parent)
{
	struct scene s = start(LARGE, 1, 0);
	struct xmem_buffer *kept, *b = give(&s, 3, &kept);

	view_of(b, 3);
	xmem_release(b);
	SAME(private_mappings(), 1);
	finish_child(spawn(view_as_child, NULL));
	CHECK((b = xmem_get(s.reader, xmem_token(kept))));
	view_of(b, 3);
	xmem_release(b);
	xmem_release(kept);
	end(&s);
}
