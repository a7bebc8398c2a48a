// SPDX-License-Identifier: MIT
/*
 * xmem_get_mut: the only holder of shared contents writes them in place. No other client sees the
 * change before it is published, and wherever a process dies nothing is lost or leaked.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "core/step.h"
#include "harness.h"

#define BYTES	4096

static struct xmem_pool *open_sharing(const char *name, unsigned int buffers)
{
	struct xmem_pool *pool = OPEN(name, .flags = XMEM_OPEN_WRITER);

	WORKED(xmem_preallocate(pool, BYTES, buffers, NULL));
	return pool;
}

/*
 * An owner of shared buffers, a client that changes what it receives, and a reader of the result.
 */
struct scene {
	const char *name;
	struct xmem_pool *owner, *stage, *sink;
	struct xmem_subscription *first, *second;
};

static struct scene scene_start(unsigned int buffers)
{
	struct scene s = { .name = new_name() };

	s.owner = open_sharing(s.name, buffers);
	s.stage = OPEN(s.name, .flags = XMEM_OPEN_WRITER);
	s.sink = OPEN(s.name, .flags = XMEM_OPEN_WRITER);
	s.first = follow(s.stage, xmem_pool_client(s.owner), 0);
	s.second = follow(s.sink, xmem_pool_client(s.stage), 0);
	return s;
}

static void scene_end(struct scene *s)
{
	xmem_unsubscribe(s->second);
	xmem_unsubscribe(s->first);
	xmem_pool_close(s->sink);
	xmem_pool_close(s->stage);
	check_quiet(s->owner, 1);
	xmem_pool_close(s->owner);
}

/* The owner publishes, and @s->stage receives it and is its only holder. */
static struct xmem_buffer *receive_stamp(struct scene *s, uint64_t stamp)
{
	struct xmem_buffer *b;

	publish_stamp(s->owner, stamp);
	b = receive_one(s->first);
	SAME(stamp_of(b), stamp);
	return b;
}

static struct xmem_slot_info slot_of(struct xmem_pool *pool, uint64_t token)
{
	struct xmem_slot_info info = { .size = sizeof(info) };

	WORKED(xmem_pool_slot_info(pool, token & 0xffff, &info));
	return info;
}

/* ---- it works ---- */

TEST(P1_the_only_holder_writes_in_place)
{
	struct scene s = scene_start(1);
	struct xmem_buffer *b = receive_stamp(&s, 1), *got;
	uint64_t old = xmem_token(b), new = 0;
	const void *where = xmem_data(b);

	SAME(info_of(b).flags, XMEM_BUFFER_SHARED);
	REFUSED(xmem_data_mut(b), EPERM);
	REFUSED(xmem_metadata_mut(b), EPERM);
	WORKED(xmem_get_mut(b));
	CHECK(xmem_data_mut(b) == where && xmem_data(b) == where);
	SAME(xmem_size(b), BYTES);
	SAME(xmem_token(b), 0);
	SAME(xmem_metadata_ptr(b)->id, 1);
	SAME(info_of(b).publisher, xmem_pool_client(s.stage));
	SAME(slot_of(s.sink, old).upgrader, xmem_pool_client(s.stage));
	SAME(slot_of(s.sink, old).state, XMEM_USE_WRITING);
	SAME(slot_of(s.sink, old).token, 0);
	SAME(stat_of(s.sink).writing, 1);
	SAME(xmem_get_mut(b), -EPERM);
	REFUSED(xmem_clone(b), EPERM);
	REFUSED(xmem_get(s.sink, old), ESTALE);
	REFUSED(xmem_acquire(s.owner, 0, 0), EAGAIN);
	fill(b, 2);
	WORKED(xmem_publish(b, NULL, &new));
	CHECK(new != old && (new & 0xffff) == (old & 0xffff));
	SAME(slot_of(s.sink, old).upgrader, XMEM_NOBODY);
	got = receive_one(s.second);
	SAME(stamp_of(got), 2);
	SAME(xmem_token(got), new);
	SAME(info_of(got).publisher, xmem_pool_client(s.stage));
	CHECK(xmem_size(got) == BYTES && xmem_metadata_ptr(got)->size == BYTES);
	REFUSED(xmem_get(s.sink, old), ESTALE);
	REFUSED(xmem_acquire(s.owner, 0, 0), EAGAIN);
	xmem_release(got);
	xmem_release(receive_stamp(&s, 3));
	scene_end(&s);
}

/* The stages take turns, again and again, with one buffer. */
TEST(P1_stages_change_one_buffer_in_turn)
{
	struct scene s = scene_start(1);
	struct xmem_buffer *b;
	unsigned int i;

	for (i = 0; i < scaled(300); i++) {
		b = receive_stamp(&s, 10 * i + 1);
		WORKED(xmem_get_mut(b));
		fill(b, 10 * i + 2);
		WORKED(xmem_publish(b, NULL, NULL));
		b = receive_one(s.second);
		SAME(stamp_of(b), 10 * i + 2);
		WORKED(xmem_get_mut(b));
		fill(b, 10 * i + 3);
		if (i % 3)
			WORKED(xmem_publish(b, NULL, NULL));
		else
			xmem_release(b);
	}
	SAME(sub_info(s.first).lost + sub_info(s.second).lost, 0);
	scene_end(&s);
}

TEST(P1_a_part_is_published_after_writing_in_place)
{
	struct scene s = scene_start(1);
	struct xmem_publish_options o = {
		.size = sizeof(o), .flags = XMEM_PUBLISH_KEEP, .offset = 64, .length = 128,
		.timestamp_ns = 77,
	};
	struct xmem_buffer *b = receive_stamp(&s, 1), *got;

	WORKED(xmem_get_mut(b));
	fill(b, 5);
	o.length = BYTES;
	SAME(xmem_publish(b, &o, NULL), -ERANGE);
	o.length = 128;
	WORKED(xmem_publish(b, &o, NULL));
	SAME(stamp_of(b), 5);
	CHECK(xmem_size(b) == 128 && info_of(b).timestamp_ns == 77);
	got = receive_one(s.second);
	CHECK(xmem_size(got) == 128 && info_of(got).timestamp_ns == 77);
	SAME(xmem_token(got), xmem_token(b));
	SAME(xmem_get_mut(got), -EBUSY);
	xmem_release(b);
	/* The contents stay where they were, unless the options differ. */
	WORKED(xmem_get_mut(got));
	fill(got, 6);
	WORKED(xmem_publish(got, NULL, NULL));
	publish_stamp(s.owner, 7);
	scene_end(&s);
}

TEST(P1_an_owner_writes_its_own_in_place)
{
	const char *name = new_name();
	struct xmem_pool *owner = open_sharing(name, 2);
	struct xmem_pool *other = OPEN(name, .flags = XMEM_OPEN_WRITER);
	struct xmem_subscription *s = follow(other, xmem_pool_client(owner), 0);
	struct xmem_buffer *kept, *b;
	unsigned int i;

	for (i = 0; i < scaled(100); i++) {
		publish_kept(owner, 1, &kept);
		SAME(xmem_get_mut(kept), -EBUSY);	/* the other has yet to receive it */
		b = receive_one(s);
		SAME(xmem_get_mut(kept), -EBUSY);
		SAME(xmem_get_mut(b), -EBUSY);
		xmem_release(b);
		WORKED(xmem_get_mut(kept));
		fill(kept, 2);
		if (i % 2) {
			WORKED(xmem_publish(kept, NULL, NULL));
			b = receive_one(s);
			SAME(stamp_of(b), 2);
			xmem_release(b);
		} else {
			xmem_release(kept);
		}
	}
	xmem_unsubscribe(s);
	xmem_pool_close(other);
	check_quiet(owner, 1);
	xmem_pool_close(owner);
}

/* ---- refusals ---- */

TEST(P1_contents_that_others_have_are_EBUSY)
{
	struct scene s = scene_start(1);
	struct xmem_subscription *late;
	struct xmem_buffer *b = receive_stamp(&s, 1), *other = xmem_get(s.sink, xmem_token(b));

	CHECK(other);
	SAME(xmem_get_mut(b), -EBUSY);
	SAME(xmem_get_mut(other), -EBUSY);
	xmem_release(other);
	other = xmem_clone(b);
	SAME(xmem_get_mut(b), -EBUSY);
	xmem_release(other);
	/* It is forwarded, and not received yet. */
	other = xmem_clone(b);
	WORKED(xmem_publish(other, NULL, NULL));
	SAME(xmem_get_mut(b), -EBUSY);
	xmem_release(receive_one(s.second));
	WORKED(xmem_get_mut(b));
	xmem_release(b);
	/* A subscriber has not received it yet. */
	late = follow(s.sink, xmem_pool_client(s.owner), 0);
	b = receive_stamp(&s, 2);
	SAME(xmem_get_mut(b), -EBUSY);
	SAME(stamp_of(b), 2);
	xmem_release(receive_one(late));
	WORKED(xmem_get_mut(b));
	xmem_release(b);
	xmem_unsubscribe(late);
	scene_end(&s);
}

TEST(P6_sealed_contents_are_not_written_in_place)
{
	const char *name = new_name();
	struct xmem_pool *owner = OPEN(name, .flags = XMEM_OPEN_WRITER);
	struct xmem_pool *stage = OPEN(name, .flags = XMEM_OPEN_WRITER);
	struct xmem_buffer *b;
	const char *why;

	WORKED(xmem_preallocate(owner, BYTES, 2,
				XMEM_OPTIONS(xmem_preallocate_options,
					     .flags = XMEM_MEMORY_SEALED)));
	b = publish_and_get(owner, stage, 1);
	SAME(info_of(b).flags, 0);
	SAME(xmem_get_mut(b), -EOPNOTSUPP);
	why = last_message();
	SAME(xmem_peek_last_error(NULL), -EOPNOTSUPP);
	CHECK(strstr(why, "XMEM_MEMORY_SEALED"));
	SAME(stamp_of(b), 1);
	SAME(xmem_get_mut(NULL), -EINVAL);
	xmem_release(b);
	SAME(xmem_get_mut(b), -EBADF);
	b = xmem_acquire(owner, 0, 0);
	SAME(xmem_get_mut(b), -EPERM);
	xmem_release(b);
	xmem_pool_close(stage);
	xmem_pool_close(owner);
}

/* Whether /proc/self/maps shows a writable mapping of the payload of @where. */
static bool is_mapped_writable(const void *where)
{
	FILE *file = fopen("/proc/self/maps", "re");
	unsigned long long from, to;
	char access[5], line[512];

	CHECK(file);
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%llx-%llx %4s", &from, &to, access) != 3 ||
		    from > (uintptr_t)where || to <= (uintptr_t)where)
			continue;
		fclose(file);
		return access[1] == 'w';
	}
	FAIL("nothing is mapped at %p", where);
}

TEST(P6_a_store_through_a_guard_that_reads_is_a_fault_until_get_mut)
{
	struct scene s = scene_start(1);
	struct xmem_buffer *b = receive_stamp(&s, 1), *got;

	CHECK(!is_mapped_writable(xmem_data(b)));
	WORKED(xmem_get_mut(b));
	CHECK(is_mapped_writable(xmem_data(b)));
	fill(b, 2);
	WORKED(xmem_publish(b, NULL, NULL));
	got = receive_one(s.second);
	CHECK(!is_mapped_writable(xmem_data(got)));
	SAME(stamp_of(got), 2);
	xmem_release(got);
	scene_end(&s);
}

/* On the daemon only the descriptor is read-only: all its processes have one user. */
static void cannot_be_written(int fd)
{
	char path[40];
	void *map;

	CHECK(mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
	SAME(errno, EACCES);
	map = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, fd, 0);
	CHECK(map != MAP_FAILED);
	SAME(*(const uint64_t *)map, 1);
	CHECK(mprotect(map, BYTES, PROT_READ | PROT_WRITE) < 0 && errno == EACCES);
	CHECK(madvise(map, BYTES, MADV_REMOVE) < 0);
	munmap(map, BYTES);
	CHECK(pwrite(fd, "x", 1, 0) < 0);
	CHECK(ftruncate(fd, BYTES) < 0);
	if (!on_kernel())
		return;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	CHECK(open(path, O_RDWR | O_CLOEXEC) < 0);
	CHECK(open(path, O_RDONLY | O_CLOEXEC) < 0);
}

/* This is for programs that share memory by rules of their own. */
TEST(P6_a_client_that_shares_memory_writes_beside_others)
{
	const char *name = new_name();
	struct xmem_pool *owner = open_writer(name, 1, BYTES);
	struct xmem_pool *pool = OPEN(name, .flags = XMEM_OPEN_SHARES);
	struct xmem_buffer *kept, *b;

	publish_kept(owner, 1, &kept);
	CHECK((b = xmem_get(pool, xmem_token(kept))));
	*(uint64_t *)(uintptr_t)xmem_data(b) = 77;
	SAME(*(const uint64_t *)xmem_data(kept), 77);
	xmem_release(b);
	xmem_release(kept);
	xmem_pool_close(pool);
	xmem_pool_close(owner);
}

TEST(P6_a_reader_gets_shared_contents_and_cannot_write_them)
{
	const char *name = new_name();
	struct xmem_pool *owner = open_sharing(name, 3);
	struct xmem_pool *reader = OPEN(name, .flags = XMEM_OPEN_READER);
	struct xmem_subscription *s = follow(reader, xmem_pool_client(owner), 0);
	struct xmem_payload_request request = { .size = sizeof(request) };
	struct xmem_buffer *kept, *b;
	struct raw raw;

	publish_kept(owner, 1, &kept);
	b = receive_one(s);
	SAME(stamp_of(b), 1);
	CHECK(!is_mapped_writable(xmem_data(b)));
	SAME(*(const uint64_t *)xmem_data_private(b), 1);
	SAME(xmem_get_mut(b), -EPERM);
	SAME(sub_info(s).lost, 0);
	request.payload = slot_of(reader, xmem_token(kept)).payload;
	xmem_release(b);
	raw_start(&raw, name, XMEM_ROLE_READER);
	request.flags = XMEM_PAYLOAD_WRITE;
	SAME(raw_request(&raw, XMEM_IOC_PAYLOAD, &request), -EACCES);
	request.flags = 0;
	SAME(raw_request(&raw, XMEM_IOC_PAYLOAD, &request), 0);
	cannot_be_written(request.fd);
	close(request.fd);
	raw_close(&raw);
	xmem_release(kept);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(owner);
}

TEST(P6_a_shared_payload_with_wrong_seals_is_refused)
{
	static const unsigned int wrong[] = {
		0, F_SEAL_SEAL, F_SEAL_SHRINK | F_SEAL_GROW, F_SEAL_SHRINK | F_SEAL_SEAL,
		F_SEAL_GROW | F_SEAL_SEAL, GOOD_SEALS | F_SEAL_SEAL,
		F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL,
	};
	struct xmem_attach_request request = {
		.size = sizeof(request), .flags = XMEM_ATTACH_SHARED, .stride = BYTES,
		.length = BYTES, .count = 1,
	};
	struct raw raw;
	unsigned int i;
	char path[40];

	raw_start(&raw, new_name(), XMEM_ROLE_WRITER);
	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		request.fd = new_memfd(BYTES, wrong[i]);
		SAME(raw_request(&raw, XMEM_IOC_ATTACH, &request), -ENOEXEC);
		close(request.fd);
	}
	i = new_memfd(BYTES, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	snprintf(path, sizeof(path), "/proc/self/fd/%u", i);
	request.fd = open(path, O_RDONLY | O_CLOEXEC);
	SAME(raw_request(&raw, XMEM_IOC_ATTACH, &request), -EACCES);
	close(request.fd);
	request.fd = i;
	SAME(raw_request(&raw, XMEM_IOC_ATTACH, &request), 0);
	close(i);
	request.fd = -1;	/* the payload is already shared, so the flag has no meaning */
	memset(request.slot, 0, sizeof(request.slot));
	SAME(raw_request(&raw, XMEM_IOC_ATTACH, &request), -EINVAL);
	raw_close(&raw);
}

/* ---- wrong requests ---- */

static int upgrade(struct raw *raw, uint32_t flags, uint32_t slot, uint64_t generation)
{
	struct xmem_upgrade_request request = {
		.size = XMEM_UPGRADE_MIN, .flags = flags, .slot = slot, .generation = generation,
	};

	return raw_request(raw, XMEM_IOC_UPGRADE, &request);
}

TEST(P4_wrong_upgrades_are_refused)
{
	const char *name = new_name();
	struct xmem_pool *owner = open_sharing(name, 2);
	struct xmem_buffer *kept;
	uint64_t token = publish_kept(owner, 1, &kept), generation = token >> 16;
	uint32_t slot = token & 0xffff;
	struct raw raw, other, reader;

	raw_start(&raw, name, XMEM_ROLE_WRITER);
	raw_start(&other, name, XMEM_ROLE_WRITER);
	raw_start(&reader, name, XMEM_ROLE_READER);
	SAME(upgrade(&raw, 0, raw.map.slots, generation), -EINVAL);
	SAME(upgrade(&raw, 0, ~0u, generation), -EINVAL);
	SAME(upgrade(&raw, 8, slot, generation), -EINVAL);
	SAME(upgrade(&raw, XMEM_UPGRADE_PUBLISH | XMEM_UPGRADE_GIVE_UP, slot, generation), -EINVAL);
	SAME(upgrade(&raw, 0, slot, generation), -EPERM);	/* it does not hold it */
	SAME(upgrade(&reader, 0, slot, generation), -EPERM);
	SAME(upgrade(&raw, 0, raw.map.slots - 1, generation), -EPERM);	/* of no group */
	raw_hold(&raw, token);
	SAME(upgrade(&raw, 0, slot, generation), -EBUSY);
	xmem_release(kept);
	SAME(upgrade(&raw, 0, slot, generation + 1), -ESTALE);
	SAME(upgrade(&raw, 0, slot, ~0ULL), -ESTALE);
	SAME(upgrade(&raw, XMEM_UPGRADE_PUBLISH, slot, generation), -EPERM);
	SAME(upgrade(&raw, XMEM_UPGRADE_GIVE_UP, slot, generation), -EPERM);
	SAME(upgrade(&raw, 0, slot, generation), 0);
	SAME(upgrade(&raw, 0, slot, generation), -ESTALE);
	SAME(upgrade(&raw, 0, slot, generation + 1), -EBUSY);
	SAME(upgrade(&other, XMEM_UPGRADE_PUBLISH, slot, generation + 1), -EPERM);
	SAME(upgrade(&other, XMEM_UPGRADE_GIVE_UP, slot, generation + 1), -EPERM);
	SAME(upgrade(&raw, XMEM_UPGRADE_PUBLISH, slot, generation), -ESTALE);
	SAME(upgrade(&raw, XMEM_UPGRADE_CANCEL, slot, generation + 1), 0);
	CHECK((kept = xmem_get(owner, token)));		/* the request has changed nothing */
	SAME(stamp_of(kept), 1);
	SAME(upgrade(&raw, 0, slot, generation), -EBUSY);
	xmem_release(kept);
	SAME(upgrade(&raw, 0, slot, generation), 0);
	SAME(upgrade(&raw, XMEM_UPGRADE_GIVE_UP, slot, generation + 1), 0);
	SAME(upgrade(&raw, XMEM_UPGRADE_GIVE_UP, slot, generation + 1), -EPERM);
	raw_close(&reader);
	raw_close(&other);
	raw_close(&raw);
	check_quiet(owner, 1);
	xmem_pool_close(owner);
}

TEST(P4_an_owner_cannot_take_what_is_written_in_place)
{
	const char *name = new_name();
	struct xmem_attach_request attach = {
		.size = sizeof(attach), .flags = XMEM_ATTACH_SHARED, .stride = BYTES,
		.length = BYTES, .count = 1,
	};
	uint32_t slot;
	struct xm_publication what = { .length = 8 };
	struct raw owner, raw;
	u64 *word;

	raw_start(&owner, name, XMEM_ROLE_WRITER);
	raw_start(&raw, name, XMEM_ROLE_WRITER);
	attach.fd = new_memfd(BYTES, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	SAME(raw_request(&owner, XMEM_IOC_ATTACH, &attach), 0);
	close(attach.fd);
	slot = attach.slot[0];
	WORKED(owner.link.backend->map_group(&owner.link, slot / XMEM_GROUP_SLOTS));
	SAME(xm_take(&owner.map, slot), 0);
	xm_publish(&owner.map, owner.link.join.client, slot, &what);
	raw_hold(&raw, what.token);
	SAME(upgrade(&raw, 0, slot, what.token >> 16), 0);
	/* This holds even if the client writes into the word that the slot is free. */
	word = &xm_slot(&owner.map, slot)->state;
	xm_store(word, xm_word(xm_generation(*word), 0, XMEM_SLOT_FREE));
	SAME(raw_slot(&owner, XMEM_OP_DETACH, slot), -EBUSY);
	SAME(raw_slot(&owner, XMEM_OP_RENEW, slot), -ESTALE);
	SAME(upgrade(&raw, XMEM_UPGRADE_PUBLISH, slot, (what.token >> 16) + 1), -ESTALE);
	SAME(upgrade(&raw, XMEM_UPGRADE_GIVE_UP, slot, (what.token >> 16) + 1), 0);
	SAME(raw_slot(&owner, XMEM_OP_DETACH, slot), 0);
	raw_close(&raw);
	raw_close(&owner);
}

/* ---- deaths ---- */

struct stage {
	const char *name;
	int step;		/* at which it dies; ANY_STEP: at none */
};

/* Receive one, report that, and change it; then wait to be killed. */
static void change_and_die(void *argument)
{
	const struct stage *stage = argument;
	struct xmem_pool *pool = OPEN(stage->name, .flags = XMEM_OPEN_WRITER);
	struct xmem_subscription *s = follow(pool, hear_parent(), 0);
	struct xmem_buffer *b;

	tell_parent(xmem_pool_client(pool));
	b = receive_one(s);
	hear_parent();
	if (stage->step != ANY_STEP)
		at_step(stage->step, 0, STEP_KILL, NULL);
	WORKED(xmem_get_mut(b));
	fill(b, 2);
	tell_parent(1);
	hear_parent();
	WORKED(xmem_publish(b, NULL, NULL));
	tell_parent(2);
	hear_parent();
}

/* The owner has one buffer, and gets it back wherever the other client dies. */
static void die_at(int step)
{
	struct stage stage = { .name = new_name(), .step = step };
	struct xmem_pool *owner = open_sharing(stage.name, 1);
	struct child *child = spawn(change_and_die, &stage);
	struct xmem_buffer *b;

	tell(child, xmem_pool_client(owner));
	hear(child);
	publish_stamp(owner, 1);
	tell(child, 1);
	if (step == XM_STEP_UPGRADE_BEGUN) {
		died_of_kill(child);
	} else {
		hear(child);
		REFUSED(xmem_acquire(owner, 0, 0), EAGAIN);
		if (step == ANY_STEP) {
			kill_child(child);
		} else {
			tell(child, 1);
			died_of_kill(child);
		}
	}
	b = xmem_acquire(owner, 0, patience_ns());	/* the death wakes it */
	CHECK(b);
	xmem_release(b);
	check_quiet(owner, 1);
	xmem_pool_close(owner);
}

TEST(P2_who_writes_in_place_may_die)
{
	die_at(ANY_STEP);
}

TEST(P2_who_writes_in_place_may_die_at_each_step)
{
	static const int steps[] = {
		XM_STEP_UPGRADE_BEGUN, XM_STEP_UPGRADE_LIVE, XM_STEP_FORWARD_NOTED,
		XM_STEP_PUBLISH_OPEN, XM_STEP_PUBLISH_FIELDS, XM_STEP_PUBLISH_ENTRY,
		XM_STEP_PUBLISH_TAIL, XM_STEP_PUT_BEFORE, XM_STEP_PUT_DROPPED,
	};
	unsigned int i;

	steps_only();
	for (i = 0; i < sizeof(steps) / sizeof(*steps); i++)
		die_at(steps[i]);
}

static void publish_and_wait(void *argument)
{
	struct xmem_pool *owner = open_sharing(argument, 1);

	tell_parent(xmem_pool_client(owner));
	hear_parent();
	publish_stamp(owner, 1);
	tell_parent(1);
	hear_parent();
}

/*
 * The owner dies while another client writes. That client continues, and its publication is there.
 */
static void owner_dies(bool publish, bool close)
{
	const char *name = new_name();
	struct xmem_pool *stage = OPEN(name, .flags = XMEM_OPEN_WRITER);
	struct xmem_pool *sink = OPEN(name, .flags = XMEM_OPEN_WRITER);
	struct xmem_subscription *s = follow(sink, xmem_pool_client(stage), 0), *first;
	struct child *child = spawn(publish_and_wait, (void *)name);
	struct xmem_buffer *b;
	uint64_t token = 0;

	first = follow(stage, hear(child), 0);
	tell(child, 1);
	hear(child);
	b = receive_one(first);
	WORKED(xmem_get_mut(b));
	kill_child(child);
	EVENTUALLY(stat_of(sink).limbo == 1);
	fill(b, 9);
	if (publish) {
		WORKED(xmem_publish(b, NULL, &token));
		b = receive_one(s);
		SAME(stamp_of(b), 9);
		SAME(xmem_token(b), token);
		/* Once more, with a dead owner. */
		WORKED(xmem_get_mut(b));
		fill(b, 10);
		xmem_unsubscribe(first);
		if (!close)
			xmem_release(b);
	} else {
		if (!close)
			xmem_release(b);
		xmem_unsubscribe(first);
	}
	if (close) {
		xmem_release(b);
		xmem_pool_close(stage);
		stage = NULL;
	}
	EVENTUALLY(!stat_of(sink).attached && !stat_of(sink).payloads);
	xmem_unsubscribe(s);
	xmem_pool_close(stage);
	check_quiet(sink, 1);
	xmem_pool_close(sink);
}

TEST(P8_what_is_written_in_place_outlives_its_owner)
{
	owner_dies(true, false);
	owner_dies(false, false);
	owner_dies(true, true);
	owner_dies(false, true);
}

/* Both die, the owner first. */
TEST(P2_both_may_die)
{
	struct stage stage = { .name = new_name(), .step = ANY_STEP };
	struct xmem_pool *watcher = OPEN(stage.name, .flags = XMEM_OPEN_WRITER);
	struct child *owner = spawn(publish_and_wait, (void *)stage.name);
	struct child *child = spawn(change_and_die, &stage);

	tell(child, hear(owner));
	hear(child);
	tell(owner, 1);
	hear(owner);
	tell(child, 1);
	hear(child);
	kill_child(owner);
	EVENTUALLY(stat_of(watcher).limbo == 1);
	kill_child(child);
	EVENTUALLY(!stat_of(watcher).attached && !stat_of(watcher).payloads);
	check_quiet(watcher, 1);
	xmem_pool_close(watcher);
}

/* ---- an owner that waits ---- */

static void acquire_waiting(void *argument)
{
	struct xmem_pool *owner = open_sharing(argument, 1);
	struct xmem_buffer *b;
	uint64_t token;

	tell_parent(xmem_pool_client(owner));
	token = publish_kept(owner, 1, &b);
	tell_parent(token);
	hear_parent();
	xmem_release(b);
	tell_parent(1);
	hear_parent();
	b = xmem_acquire(owner, 0, patience_ns());
	WORKED(b ? 0 : xmem_peek_last_error(NULL));
	tell_parent(2);
}

/* The hold has ended before: the owner waits for the request itself. */
TEST(P1_an_owner_is_told_when_its_slot_is_given_up)
{
	const char *name = new_name();
	struct xmem_pool *anchor = open_reader(name);
	struct child *child = spawn(acquire_waiting, (void *)name);
	uint64_t owner = hear(child), token = hear(child);
	struct raw raw;

	raw_start(&raw, name, XMEM_ROLE_WRITER);
	raw_hold(&raw, token);
	tell(child, 1);
	hear(child);
	SAME(upgrade(&raw, 0, token & 0xffff, token >> 16), 0);
	xm_put(&raw.map, raw.link.join.client, token & 0xffff);
	tell(child, 1);
	until_asleep(&xm_client_row(&raw.map, owner)->slots_waiters);
	SAME(upgrade(&raw, XMEM_UPGRADE_GIVE_UP, token & 0xffff, (token >> 16) + 1), 0);
	SAME(hear(child), 2);
	finish_child(child);
	raw_close(&raw);
	check_quiet(anchor, 1);
	xmem_pool_close(anchor);
}

/* ---- an owner in the midst of a scan ---- */

static void acquire_and_stop(void *argument)
{
	struct xmem_pool *owner = open_sharing(argument, 1);
	struct xmem_buffer *b;

	tell_parent(xmem_pool_client(owner));
	hear_parent();
	publish_stamp(owner, 1);
	tell_parent(1);
	hear_parent();
	at_step(XM_STEP_SCAN_HOLDS, 0, STEP_STOP, NULL);
	b = xmem_acquire(owner, 0, 0);
	no_step();
	tell_parent(b != NULL);
	hear_parent();
}

/* Its scan decides that a client holds the slot. Then it finds that a client writes it. */
TEST(P9_get_mut_does_not_wait_for_a_stopped_owner)
{
	const char *name = new_name();
	struct xmem_pool *stage = OPEN(name, .flags = XMEM_OPEN_WRITER);
	struct child *owner = spawn(acquire_and_stop, (void *)name);
	struct xmem_subscription *s = follow(stage, hear(owner), 0);
	struct xmem_buffer *b;

	steps_only();
	tell(owner, 1);
	hear(owner);
	b = receive_one(s);
	tell(owner, 1);
	wait_stopped(owner);
	WORKED(xmem_get_mut(b));
	fill(b, 4);
	continue_child(owner);
	SAME(hear(owner), 0);		/* the owner has got no buffer */
	SAME(slot_of(stage, 0).upgrader, xmem_pool_client(stage));
	SAME(*(const uint64_t *)xmem_data(b), 4);
	WORKED(xmem_publish(b, NULL, NULL));
	kill_child(owner);
	xmem_unsubscribe(s);
	check_quiet(stage, 1);
	xmem_pool_close(stage);
}

TEST(P9_an_upgrade_given_up_in_time_is_undone)
{
	struct xmem_upgrade_request request = { .size = XMEM_UPGRADE_MIN };
	struct xmem_query_request query = { .size = sizeof(query) };
	struct xmem_pool *owner;
	struct xmem_buffer *b;
	const char *name;
	uint64_t token;
	struct raw raw;
	pid_t daemon;

	daemon_only("the kernel does not stop");
	use_own_daemon();
	name = new_name();
	owner = open_sharing(name, 1);
	raw_start(&raw, name, XMEM_ROLE_WRITER);
	token = publish_kept(owner, 1, &b);
	raw_hold(&raw, token);
	xmem_release(b);
	request.slot = token & 0xffff;
	request.generation = token >> 16;
	daemon = stop_daemon();
	SAME(raw.link.backend->request_until(&raw.link, XMEM_IOC_UPGRADE, &request,
					     now_ns() + 50 * MS), -ETIMEDOUT);
	continue_daemon(daemon);
	SAME(raw_request(&raw, XMEM_IOC_QUERY, &query), 0);
	CHECK((b = xmem_get(owner, token)));	/* as if the request had not been made */
	SAME(stamp_of(b), 1);
	xmem_release(b);
	SAME(upgrade(&raw, 0, token & 0xffff, token >> 16), 0);
	raw_close(&raw);
	check_quiet(owner, 1);
	xmem_pool_close(owner);
}

/* ---- all clients at once ---- */

/* Change whatever it receives, if it may: a child that is killed at some time. */
static void change_all(void *argument)
{
	struct xmem_pool *pool = OPEN(argument, .flags = XMEM_OPEN_WRITER);
	struct xmem_subscription *s = follow(pool, hear_parent(), 0);
	struct xmem_buffer *b;
	uint64_t stamp;

	tell_parent(1);
	while ((b = xmem_receive(s, patience_ns()))) {
		stamp = stamp_of(b);
		if (xmem_get_mut(b)) {
			SAME(stamp_of(b), stamp);	/* no other client may change it either */
			xmem_release(b);
			continue;
		}
		fill(b, stamp + (1ULL << 32));
		SAME(stamp_of(b), stamp + (1ULL << 32));
		if (stamp % 3)
			WORKED(xmem_publish(b, NULL, NULL));
		else
			xmem_release(b);
	}
}

TEST_WITHIN(P1_nobody_sees_a_change_while_many_change_and_die, 60)
{
	const char *name = new_name();
	struct xmem_pool *owner = open_sharing(name, 6);
	struct child *child[3];
	unsigned int i, c, rounds = scaled(3000);
	struct xmem_buffer *kept = NULL, *all[6];

	for (c = 0; c < 3; c++) {
		child[c] = spawn(change_all, (void *)name);
		tell(child[c], xmem_pool_client(owner));
		hear(child[c]);
	}
	for (i = 0; i < rounds; i++) {
		struct xmem_buffer *b = xmem_acquire(owner, 0, patience_ns());

		WORKED(b ? 0 : xmem_peek_last_error(NULL));
		fill(b, i + 1);
		if (i % 5) {
			WORKED(xmem_publish(b, NULL, NULL));
		} else {
			struct xmem_publish_options o = {
				.size = sizeof(o), .flags = XMEM_PUBLISH_KEEP,
			};

			WORKED(xmem_publish(b, &o, NULL));
			if (kept)
				xmem_release(kept);
			kept = b;
		}
		if (kept)
			SAME(stamp_of(kept), i - i % 5 + 1);
		if (i % 500 == 250) {
			c = i / 500 % 3;
			kill_child(child[c]);
			child[c] = spawn(change_all, (void *)name);
			tell(child[c], xmem_pool_client(owner));
			hear(child[c]);
		}
	}
	xmem_release(kept);
	for (c = 0; c < 3; c++)
		kill_child(child[c]);
	check_quiet(owner, 1);
	for (i = 0; i < 6; i++)		/* no buffer is lost */
		CHECK((all[i] = xmem_acquire(owner, 0, 0)));
	for (i = 0; i < 6; i++)
		xmem_release(all[i]);
	xmem_pool_close(owner);
}
