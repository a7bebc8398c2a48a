// SPDX-License-Identifier: MIT
/*
 * P4: a client harms only itself and the readers of its publications. Also the half of P9 about
 * stopped processes: no process spins while it waits for one, and waiting for one is bounded. The
 * clients here write garbage into every page that they can write, stand still at the worst moment,
 * or stop receiving.
 */
#include <signal.h>
#include <sys/mman.h>

#include "harness.h"

#define BYTES	4096

/* ---- garbage ---- */

struct vandal {
	const char *name;
	uint64_t random;
	struct xmem_attach_request attached;
};

/* Garbage of several kinds: bits, all ones, and numbers that look like places of other clients. */
static uint64_t garbage(uint64_t *random)
{
	uint64_t r = random_next(random);

	switch (r >> 60) {
	case 0:
	case 1:		return ~0ULL;
	case 2:		return r & 0xff;
	case 3:		return XMEM_ENTRY_VOID | (r & 0xff);
	case 4:		return 0;
	case 5:		return 1ULL << (r & 63);
	}
	return r;
}

static void scribble(void *start, size_t bytes, uint64_t *random)
{
	uint64_t *word = start;
	size_t i;

	for (i = 0; i < bytes / 8; i++)
		if (random_next(random) & 3)
			__atomic_store_n(&word[i], garbage(random), __ATOMIC_RELAXED);
}

/* A ring that looks right except for its entries. They are received, and may name any place. */
static void lie(struct raw *raw, const struct xmem_attach_request *own, uint64_t *random)
{
	uint32_t me = raw->link.join.client;
	uint64_t i, tail = raw->map.ring_mask + 1;

	for (i = 0; i < tail; i++) {
		struct xmem_entry *entry = xm_entry(&raw->map, me, i);

		xm_store(&entry->token, garbage(random) << 16 |
			 (i & 4 ? random_next(random) % raw->map.slots :
			  own->slot[i % own->count]));
		xm_store(&entry->sequence, garbage(random));
		xm_store(&entry->offset, i & 1 ? garbage(random) : random_next(random) % 8192);
		xm_store(&entry->length, i & 2 ? garbage(random) : random_next(random) % 8192);
		xm_store_release(&entry->position, i + 1);
	}
	xm_store_release(&xm_ring(&raw->map, me)->tail, tail);
}

/* Write garbage into all pages that a client may write, over and over. */
static void vandalize(void *argument)
{
	struct vandal *vandal = argument;
	struct raw raw;
	struct xmem_pool_header *pool;
	void *area, *group;
	uint32_t g;

	raw_start(&raw, vandal->name, XMEM_ROLE_WRITER);
	pool = raw.map.pool;
	SAME(raw_attach(&raw, new_memfd(64 * 4096, GOOD_SEALS), 64, &vandal->attached), 0);
	g = vandal->attached.slot[0] / XMEM_GROUP_SLOTS;
	SAME(raw.link.backend->map_group(&raw.link, g), 0);
	area = raw.map.area[raw.link.join.client];
	group = raw.map.group[g];
	tell_parent(raw.link.join.client);
	hear_parent();
	lie(&raw, &vandal->attached, &vandal->random);
	tell_parent(1);
	hear_parent();
	for (;;) {
		scribble(area, pool->area_stride, &vandal->random);
		scribble(group, pool->group_stride, &vandal->random);
		tell_parent(1);
	}
}

/* A few hand-overs between two clients that have nothing to do with the vandal. */
static void honest_work(struct xmem_pool *writer, struct xmem_subscription *s, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++) {
		struct xmem_buffer *b;

		publish_stamp(writer, i);
		b = receive_one(s);
		SAME(stamp_of(b), i);
		xmem_release(b);
	}
}

/* Whatever the buffer is, its contents can be read. */
static void look_at(struct xmem_buffer *buffer)
{
	struct xmem_buffer_info info = XMEM_INIT(info);

	xmem_metadata_ptr(buffer);
	xmem_data(buffer);
	xmem_buffer_stat(buffer, &info);
	xmem_release(buffer);
}

/* Subscribe late, and read what seems to have been published before. */
static void come_late(struct xmem_pool *pool, int publisher, uint32_t depth)
{
	struct xmem_subscribe_options o = {
		.size = sizeof(o), .flags = XMEM_SUBSCRIBE_PUBLISHER | XMEM_SUBSCRIBE_NOWAIT,
		.publisher = publisher, .history = ~0u, .depth = depth,
	};
	struct xmem_subscription *s = xmem_subscribe(pool, &o);
	struct xmem_buffer *b;
	int i;

	CHECK(s);
	for (i = 0; i < 8 && (b = xmem_receive(s, 0)); i++)
		look_at(b);
	xmem_unsubscribe(s);
}

/* Receive from a ring whose writer has ended. false: that has not ended yet. */
static bool receives_all(struct xmem_subscription *s)
{
	unsigned int i;

	for (i = 0; i < 10000; i++) {
		struct xmem_buffer *b = xmem_receive(s, 0);

		if (!b && xmem_peek_last_error(NULL) == -EPIPE)
			return true;
		xmem_release(b);
	}
	return false;
}

/*
 * Its own hold counts are garbage too, so it may keep any slots busy as if it held them. Until it
 * ends, that may cost the others buffers, and nothing else.
 */
TEST_WITHIN(P4_garbage_in_all_that_a_client_may_write, 60)
{
	struct vandal vandal = { .name = new_name(), .random = seed() };
	struct xmem_pool *writer = OPEN(vandal.name, .flags = XMEM_OPEN_WRITER, .slots = 256,
					.clients = 8);
	struct xmem_pool *reader = open_reader(vandal.name), *late = open_reader(vandal.name);
	struct xmem_subscription *s, *of_garbage;
	struct child *child;
	unsigned int i, received = 0;
	int vandal_client;

	WORKED(xmem_preallocate(writer, BYTES, 4, NULL));
	s = follow(reader, xmem_pool_client(writer), 0);
	child = spawn(vandalize, &vandal);
	vandal_client = (int)hear(child);
	of_garbage = follow(reader, vandal_client, 0);
	honest_work(writer, s, 20);
	tell(child, 1);
	hear(child);
	for (i = 0; i < 100; i++) {
		struct xmem_buffer *b = xmem_receive(of_garbage, 0);

		if (i == 50)
			tell(child, 1);
		if (i >= 50)
			hear(child);
		received += b != NULL;
		if (b)
			look_at(b);
		come_late(late, vandal_client, i % 4);
		/*
		 * Other clients' scans end, whatever holds the vandal claims to have. They find a
		 * buffer or not.
		 */
		xmem_release(xmem_acquire(writer, BYTES, 0));
		xmem_get(reader, random_next(&vandal.random));
		stat_of(reader);
	}
	kill_child(child);
	xmem_pool_close(late);
	EVENTUALLY(stat_of(writer).clients == 2);
	/* Its ring is garbage, and yet receiving from it ends. */
	EVENTUALLY(receives_all(of_garbage));
	xmem_unsubscribe(of_garbage);
	honest_work(writer, s, 20);
	xmem_unsubscribe(s);
	check_quiet(writer, 2);
	SAME(stat_of(writer).attached, 4);
	printf("    %u pieces of garbage received\n", received);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

/* In the daemon's pools clients can write the header as well. The daemon has its own copy. */
TEST(P4_a_forged_header_does_not_end_the_daemon)
{
	const char *name = new_name();
	struct xmem_pool *honest = open_writer(new_name(), 1, BYTES);
	struct raw vandal, next;
	struct xmem_pool_header *pool;
	int file = new_memfd(4096, GOOD_SEALS);

	daemon_only("the kernel maps the header for reading");
	raw_start(&vandal, name, XMEM_ROLE_READER);
	pool = vandal.map.pool;
	memset(pool->name, 0xff, sizeof(pool->name));
	pool->slots = pool->clients = pool->ring_entries = ~0u;
	pool->client_row_stride = pool->slot_row_stride = pool->cursor_stride = ~0u;
	pool->area_stride = pool->group_stride = pool->total_bytes = ~0ULL;
	pool->areas_offset = pool->groups_offset = pool->holds_offset = ~0ULL;
	/* The vandal's area and its group become free, and their pages are replaced. */
	raw_open(&next);
	SAME(raw_join(&next, name, XMEM_ROLE_WRITER, 0), 0);
	SAME(raw_attach(&next, file, 1, NULL), 0);
	raw_close(&next);
	close(file);
	EVENTUALLY(xm_load(&xm_client_row(&vandal.map, next.link.join.client)->state) ==
		   XMEM_CLIENT_NONE);
	raw_close(&vandal);
	/* The daemon has not been replaced: this call reaches it. */
	WORKED(xmem_preallocate(honest, BYTES, 1, NULL));
	xmem_pool_close(honest);
}

TEST(P4_garbage_holds_end_with_their_client)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 4, BYTES);
	struct raw raw;
	uint32_t slot, i;

	for (i = 0; i < 4; i++)
		publish_stamp(writer, i);
	raw_start(&raw, name, XMEM_ROLE_READER);
	for (slot = 0; slot < raw.map.slots; slot++)
		xm_store(xm_hold(&raw.map, raw.link.join.client, slot), ~0u);
	/*
	 * All slots are busy except those reclaimed before. The error says so, and nothing hangs.
	 */
	for (i = 0; i < 8; i++) {
		struct xmem_buffer *b = xmem_acquire(writer, BYTES, 20 * MS);

		if (!b) {
			SAME(xmem_peek_last_error(NULL), -ETIMEDOUT);
			break;
		}
		WORKED(xmem_publish(b, NULL, NULL));
	}
	CHECK(i < 8);
	raw_close(&raw);
	check_quiet(writer, 1);
	for (i = 0; i < 8; i++)
		publish_stamp(writer, i);
	xmem_pool_close(writer);
}

TEST(P4_resolving_is_for_holders_alone)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 1, BYTES);
	struct xmem_buffer *kept;
	uint64_t token = publish_kept(writer, 1, &kept);
	struct xmem_slot_request request = {
		.size = sizeof(request), .op = XMEM_OP_RESOLVE, .slot = xm_token_slot(token),
		.generation = xm_generation(token),
	};
	struct raw raw;

	raw_start(&raw, name, XMEM_ROLE_READER);
	SAME(raw_request(&raw, XMEM_IOC_SLOT, &request), -EPERM);
	raw_hold(&raw, token);
	/* The slot is LIVE, so there is nothing to resolve. */
	SAME(raw_request(&raw, XMEM_IOC_SLOT, &request), -EAGAIN);
	request.generation++;
	SAME(raw_request(&raw, XMEM_IOC_SLOT, &request), -ESTALE);
	request.generation--;
	xm_put(&raw.map, raw.link.join.client, xm_token_slot(token));
	SAME(raw_request(&raw, XMEM_IOC_SLOT, &request), -EPERM);
	raw_close(&raw);
	xmem_release(kept);
	xmem_pool_close(writer);
}

TEST(P4_a_put_without_a_hold_changes_nothing)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 1, BYTES);
	struct xmem_buffer *kept;
	uint32_t slot = xm_token_slot(publish_kept(writer, 1, &kept)), me;
	struct raw raw;

	raw_start(&raw, name, XMEM_ROLE_READER);
	me = raw.link.join.client;
	xm_put(&raw.map, me, slot);
	xm_put(&raw.map, me, slot);
	SAME(xm_load(xm_hold(&raw.map, me, slot)) & XM_HOLD_COUNT, 0);
	xmem_release(kept);
	publish_stamp(writer, 2);
	raw_close(&raw);
	xmem_pool_close(writer);
}

TEST(P4_wakes_by_strangers_are_harmless)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 2, BYTES);
	struct raw raw;
	unsigned int kind, i;

	raw_start(&raw, name, XMEM_ROLE_READER);
	for (kind = XMEM_WAIT_CLIENTS; kind <= XMEM_WAIT_SLOTS; kind++) {
		struct xmem_wait_request request = {
			.size = sizeof(request), .kind = kind,
			.client = kind == XMEM_WAIT_CLIENTS ? 0 : xmem_pool_client(writer),
		};

		for (i = 0; i < 100; i++)
			SAME(raw_wait(&raw, XMEM_OP_WAKE, &request),
			     kind == XMEM_WAIT_SLOTS ? 0 : -EPERM);
	}
	publish_stamp(writer, 1);
	raw_close(&raw);
	xmem_pool_close(writer);
}

/* ---- stopped clients ---- */

struct slow {
	const char *name;
	int publisher;
	uint32_t flags;
	int step;
};

static void read_for_ever(void *argument)
{
	struct slow *slow = argument;
	struct xmem_pool *pool = open_reader(slow->name);
	struct xmem_subscription *s = follow(pool, slow->publisher, slow->flags);

	tell_parent(1);
	hear_parent();
	for (;;)
		xmem_release(receive_one(s));
}

/* Publish @count without any wait. */
static void publish_at_once(struct xmem_pool *writer, struct xmem_subscription *s,
			    unsigned int count)
{
	struct xmem_buffer *b;
	unsigned int i;

	for (i = 0; i < count; i++) {
		CHECK((b = xmem_acquire(writer, BYTES, 0)));
		WORKED(xmem_publish(b, NULL, NULL));
		xmem_release(receive_one(s));
	}
}

static void pipeline_goes_on(uint32_t flags, int64_t wait_bound_ns)
{
	struct slow slow = { .name = new_name(), .flags = flags };
	struct xmem_pool *writer = OPEN(slow.name, .flags = XMEM_OPEN_WRITER,
					.wait_bound_ns = wait_bound_ns);
	struct xmem_pool *reader = open_reader(slow.name);
	struct xmem_subscription *s;
	struct child *child;
	int64_t start;
	unsigned int i;

	WORKED(xmem_preallocate(writer, BYTES, 8, NULL));
	slow.publisher = xmem_pool_client(writer);
	s = follow(reader, slow.publisher, 0);
	child = spawn(read_for_ever, &slow);
	hear(child);
	stop_child(child);
	if (flags) {
		publish_at_once(writer, s, 8);
		start = now_ns();
		REFUSED(xmem_acquire(writer, BYTES, 0), EAGAIN);
		publish_stamp(writer, 8);
		CHECK(now_ns() - start >= wait_bound_ns * 9 / 10);
		xmem_release(receive_one(s));
	}
	/* The subscriber may lose publications, or has been waited for once and does not move. */
	publish_at_once(writer, s, 60);
	continue_child(child);
	tell(child, 1);
	/* The subscriber continues, and when it has caught up it is waited for again. */
	for (i = 0; i < 60; i++) {
		publish_stamp(writer, i);
		xmem_release(receive_one(s));
	}
	kill_child(child);
	xmem_unsubscribe(s);
	check_quiet(writer, 2);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

TEST(P9_a_stopped_subscriber_that_may_lose_costs_nothing)
{
	pipeline_goes_on(0, 3600 * SECOND);
}

TEST(P9_a_stopped_subscriber_is_waited_for_within_the_bound)
{
	pipeline_goes_on(XMEM_SUBSCRIBE_WAITS, SECOND / 5);
}

static void stop_in_mid_scan(void *argument)
{
	struct slow *slow = argument;
	struct xmem_pool *pool = open_writer(slow->name, 1, BYTES);
	struct xmem_buffer *kept;

	tell_parent(publish_kept(pool, 42, &kept));
	hear_parent();
	xmem_release(kept);
	at_step(slow->step, 0, STEP_STOP, NULL);
	tell_parent(xmem_acquire(pool, BYTES, 0) != NULL);
	hear_parent();
}

TEST(P9_owner_stopped_in_mid_scan_and_getters_go_on)
{
	static const int steps[] = {
		XM_STEP_SCAN_SCANNING, XM_STEP_SCAN_CURSORS, XM_STEP_SCAN_VOID, XM_STEP_SCAN_HOLDS,
	};
	unsigned int i;

	steps_only();
	for (i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		struct slow slow = { .name = new_name(), .step = steps[i] };
		struct xmem_pool *reader = open_reader(slow.name);
		struct child *child = spawn(stop_in_mid_scan, &slow);
		uint64_t token = hear(child);
		struct xmem_buffer *b;

		tell(child, 1);
		wait_stopped(child);
		/* This would hang if it waited for the owner. */
		b = xmem_get(reader, token);
		CHECK(b);
		SAME(stamp_of(b), 42);
		/* When the owner continues, its scan must find that it has lost the race. */
		continue_child(child);
		SAME(hear(child), 0);
		SAME(stamp_of(b), 42);
		tell(child, 1);
		finish_child(child);
		SAME(stamp_of(b), 42);
		xmem_release(b);
		check_quiet(reader, 1);
		xmem_pool_close(reader);
	}
}

static void stop_in_publish(void *argument)
{
	struct slow *slow = argument;
	struct xmem_pool *pool = open_writer(slow->name, 4, BYTES);

	tell_parent(xmem_pool_client(pool));
	hear_parent();
	publish_stamp(pool, 0);
	at_step(slow->step, 0, STEP_STOP, NULL);
	publish_stamp(pool, 1);
	hear_parent();
}

TEST(P9_publisher_stopped_in_mid_publish_and_subscribers_go_on)
{
	int step;

	steps_only();
	for (step = XM_STEP_PUBLISH_POSITION; step <= XM_STEP_PUBLISH_TAIL; step++) {
		struct slow slow = { .name = new_name(), .step = step };
		struct xmem_pool *reader = open_reader(slow.name);
		struct child *child = spawn(stop_in_publish, &slow);
		struct xmem_subscription *s = follow(reader, (int)hear(child), 0);
		struct xmem_buffer *b;
		bool complete = step >= XM_STEP_PUBLISH_ENTRY;

		tell(child, 1);
		wait_stopped(child);
		b = receive_one(s);
		SAME(stamp_of(b), 0);
		xmem_release(b);
		b = xmem_receive(s, complete ? patience_ns() : 20 * MS);
		SAME(b != NULL, complete);
		if (b)
			SAME(stamp_of(b), 1);
		else
			SAME(xmem_peek_last_error(NULL), -ETIMEDOUT);
		xmem_release(b);
		continue_child(child);
		if (!complete) {
			b = receive_one(s);
			SAME(stamp_of(b), 1);
			xmem_release(b);
		}
		kill_child(child);
		REFUSED(xmem_receive(s, patience_ns()), EPIPE);
		xmem_unsubscribe(s);
		check_quiet(reader, 1);
		xmem_pool_close(reader);
	}
}

static void stop_overwriting(void *argument)
{
	struct slow *slow = argument;
	struct xmem_pool *pool = OPEN(slow->name, .flags = XMEM_OPEN_WRITER);
	unsigned int i;

	WORKED(xmem_preallocate(pool, BYTES, 12, NULL));
	tell_parent(xmem_pool_client(pool));
	hear_parent();
	at_step(slow->step, 4, STEP_STOP, NULL);
	for (i = 0; i < 5; i++)
		publish_stamp(pool, i);
	hear_parent();
}

/*
 * The publisher stops with an entry open, and a slow subscriber is at that entry. The subscriber
 * still receives what follows it.
 */
TEST(P9_publisher_stopped_while_it_overwrites_and_subscribers_go_on)
{
	int step;

	steps_only();
	for (step = XM_STEP_PUBLISH_OPEN; step <= XM_STEP_PUBLISH_FIELDS; step++) {
		struct slow slow = { .name = new_name(), .step = step };
		struct xmem_pool *reader = OPEN(slow.name, .ring = 4);
		struct child *child = spawn(stop_overwriting, &slow);
		struct xmem_subscription *s = follow(reader, (int)hear(child), 0);
		unsigned int i;

		tell(child, 1);
		wait_stopped(child);
		for (i = 1; i <= 4; i++) {
			struct xmem_buffer *b;

			if (i == 4)
				continue_child(child);
			b = receive_one(s);
			SAME(stamp_of(b), i);
			xmem_release(b);
		}
		SAME(sub_info(s).lost, 1);
		kill_child(child);
		xmem_unsubscribe(s);
		check_quiet(reader, 1);
		xmem_pool_close(reader);
	}
}

TEST(P9_a_client_stopped_before_it_is_killed_holds_nothing)
{
	struct slow slow = { .name = new_name(), .flags = XMEM_SUBSCRIBE_WAITS };
	struct xmem_pool *writer = OPEN(slow.name, .flags = XMEM_OPEN_WRITER,
					.wait_bound_ns = 3600 * SECOND);
	struct child *child;
	unsigned int i;

	WORKED(xmem_preallocate(writer, BYTES, 2, NULL));
	slow.publisher = xmem_pool_client(writer);
	child = spawn(read_for_ever, &slow);
	hear(child);
	stop_child(child);
	publish_stamp(writer, 0);
	publish_stamp(writer, 1);
	REFUSED(xmem_acquire(writer, BYTES, 0), EAGAIN);
	kill_child(child);
	for (i = 0; i < 4; i++)
		publish_stamp(writer, i);
	check_quiet(writer, 1);
	xmem_pool_close(writer);
}
