// SPDX-License-Identifier: MIT
/*
 * A process maps an attached file only as long as the file is attached. If memory is lacking, the
 * library unmaps the files of ended attachments before it refuses a call.
 */
#include <stdio.h>
#include <sys/resource.h>

#include "attached.h"
#include "lib/private.h"

#define MB	(1ULL << 20)

static void attach_and_receive(struct xmem_pool *writer, struct xmem_subscription *s)
{
	WORKED(xmem_publish(attach_stamp(writer, 1), NULL, NULL));
	xmem_release(receive_one(s));
}

static void attach_and_let_go(struct xmem_pool *writer, struct xmem_subscription *s)
{
	(void)s;
	xmem_release(attach_stamp(writer, 1));
}

static void attach_and_retract(struct xmem_pool *writer, struct xmem_subscription *s)
{
	uint64_t token;

	WORKED(xmem_publish(attach_stamp(writer, 1), NULL, &token));
	WORKED(xmem_retract(writer, token));
	REFUSED(xmem_receive(s, 0), EAGAIN);
}

/* A writer that attaches files one after the other never has to make another call. */
TEST(P10_a_writer_maps_no_more_than_what_is_attached)
{
	static void (*const ways[])(struct xmem_pool *, struct xmem_subscription *) = {
		attach_and_receive, attach_and_let_go, attach_and_retract,
	};
	const char *name = new_name();
	struct xmem_pool *writer = OPEN(name, .flags = XMEM_OPEN_WRITER);
	struct xmem_pool *reader = open_reader(name);
	struct xmem_subscription *s = follow(reader, xmem_pool_client(writer), 0);
	uint64_t before;
	unsigned int w, i;

	for (w = 0; w < sizeof(ways) / sizeof(*ways); w++) {
		ways[w](writer, s);
		before = mapped_bytes("memfd:");
		for (i = 0; i < 100; i++)
			ways[w](writer, s);
		SAME(mapped_bytes("memfd:"), before);
	}
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

/* ---- without memory ---- */

#define FILES	16		/* of which 1 may end before a reader checks for others */

static void allow_more(uint64_t bytes)
{
	struct rlimit limit;

	CHECK(!getrlimit(RLIMIT_AS, &limit));
	limit.rlim_cur = mapped_bytes("") + bytes;
	CHECK(!setrlimit(RLIMIT_AS, &limit));
}

static struct xmem_buffer *attach_keeping(struct xmem_pool *writer, uint64_t bytes)
{
	struct xmem_publish_options keep = { .size = sizeof(keep), .flags = XMEM_PUBLISH_KEEP };
	int file = stamped(bytes, 5, FULL_SEALS);
	struct xmem_buffer *b = xmem_attach_fd(writer, file, 0, 0, 0);

	close(file);
	CHECK(b);
	WORKED(xmem_publish(b, &keep, NULL));
	return b;
}

/* The writer is another process. Its files count in this process only once the reader maps them. */
struct tokens {
	const char *name;
	uint64_t small[FILES], large;
};

static void attach_some(void *argument)
{
	struct xmem_pool *writer = OPEN(argument, .flags = XMEM_OPEN_WRITER);
	struct xmem_buffer *small[FILES], *large;
	unsigned int i;

	for (i = 0; i < FILES; i++) {
		small[i] = attach_keeping(writer, 8 * MB);
		tell_parent(xmem_token(small[i]));
	}
	large = attach_keeping(writer, 12 * MB);
	tell_parent(xmem_token(large));
	hear_parent();
	xmem_release(small[0]);
	xmem_release(small[1]);
	EVENTUALLY(stat_of(writer).payloads == FILES - 1);
	tell_parent(0);
	hear_parent();
	xmem_release(large);
	for (i = 2; i < FILES; i++)
		xmem_release(small[i]);
	xmem_pool_close(writer);
}

/* Map all small files, and the large one after two of the small ones have ended. */
static void look(void *view)
{
	const char *name = new_name();
	struct child *writer = spawn(attach_some, (void *)name);
	uint64_t token[FILES + 1];
	struct xmem_pool *reader;
	struct xmem_buffer *b;
	unsigned int i;

	for (i = 0; i <= FILES; i++)
		token[i] = hear(writer);
	reader = open_reader(name);
	for (i = 0; i < FILES; i++) {
		CHECK((b = xmem_get(reader, token[i])));
		CHECK(xmem_data(b));
		xmem_release(b);
	}
	tell(writer, 0);
	hear(writer);
	CHECK((b = xmem_get(reader, token[FILES])));
	if (view)
		CHECK(xmem_data(b));
	allow_more(6 * MB);
	CHECK(view ? xmem_data_private(b) : xmem_data(b));
	xmem_release(b);
	tell(writer, 0);
	finish_child(writer);
	xmem_pool_close(reader);
}

TEST(P10_files_that_have_gone_leave_memory_for_others)
{
	finish_child(spawn(look, NULL));
}

TEST(P10_files_that_have_gone_leave_memory_for_private_views)
{
	finish_child(spawn(look, "a private view"));
}

static void attach_without_addresses(void *argument)
{
	struct xmem_pool *writer = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);
	int file = stamped(12 * MB, 5, FULL_SEALS);
	const char *why;

	(void)argument;
	allow_more(6 * MB);
	CHECK(!xmem_attach_fd(writer, file, 0, 0, 0));
	why = last_message();
	SAME(xmem_peek_last_error(NULL), -ENOMEM);
	CHECK(strstr(why, "vm.max_map_count, ulimit -v"));
	close(file);
	xmem_pool_close(writer);
}

TEST(P10_what_a_process_lacks_to_map_is_named)
{
	finish_child(spawn(attach_without_addresses, NULL));
}

/* ---- a slot that another writer has had ---- */

static struct {
	uint32_t slot;		/* for the attach */
	bool got;
} again;

/* The attach has its slot, and fails at the next step. */
static int map_no_group(struct xmem_link *link, u32 group)
{
	const struct xmem_slot_row *row = xm_slot_row(link->map, again.slot);

	again.got = xm_load(&row->owner) == link->join.client;
	return -ENOMEM;
}

/*
 * This client has mapped a file of another writer for a slot that is its own now, and it holds a
 * buffer in another slot of that file. If the attach gives up the slot, it must unmap its own file
 * and not the other writer's.
 */
TEST(P7_an_attach_that_fails_unmaps_its_own_file)
{
	const char *name = new_name();
	struct xmem_pool *pool = OPEN(name, .flags = XMEM_OPEN_WRITER, .slots = 64), *other;
	struct xmem_backend cannot_map = *pool->link.backend;
	const struct xmem_backend *real = pool->link.backend;
	struct xmem_buffer *b[2], *held;
	struct xmem_subscription *s;
	const volatile uint64_t *data;
	uint64_t before;
	int i, file = stamped(ATTACHED_BYTES, 5, FULL_SEALS);

	other = open_writer(name, 2, ATTACHED_BYTES);	/* one file */
	s = follow(pool, xmem_pool_client(other), 0);
	for (i = 0; i < 2; i++) {
		publish_stamp(other, 7);
		b[i] = receive_one(s);
		CHECK(xmem_data(b[i]));
	}
	i = xmem_token(b[0]) % (1 << 16) < xmem_token(b[1]) % (1 << 16) ? 0 : 1;
	again.slot = xmem_token(b[i]) % (1 << 16);	/* hosts give out the lowest free slot */
	held = b[!i];
	data = xmem_data(held);
	xmem_release(b[i]);
	xmem_unsubscribe(s);
	xmem_pool_close(other);
	EVENTUALLY(stat_of(pool).limbo == 1);
	before = mapped_bytes("memfd:");
	cannot_map.map_group = map_no_group;
	pool->link.backend = &cannot_map;
	REFUSED(xmem_attach_fd(pool, file, 0, 0, 0), ENOMEM);
	pool->link.backend = real;
	CHECK(again.got);
	SAME(mapped_bytes("memfd:"), before);
	SAME(*data, 7);
	SAME(stamp_of(held), 7);
	b[0] = xmem_attach_fd(pool, file, 0, 0, 0);
	CHECK(b[0]);
	xmem_release(b[0]);
	xmem_release(held);
	close(file);
	check_quiet(pool, 1);
	xmem_pool_close(pool);
}
