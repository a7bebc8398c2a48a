// SPDX-License-Identifier: MIT
/*
 * Fields of requests: a reserved field must be 0, a number must lie in its range, and a client or
 * slot that is named must exist. Each wrong field gets its errno. requests.c tests the lengths of
 * the structs.
 */
#include "harness.h"

#define BYTES	4096

static struct raw reader, writer;
static const char *name;

static void scene_start(void)
{
	name = new_name();
	raw_start(&writer, name, XMEM_ROLE_WRITER);
	raw_start(&reader, name, XMEM_ROLE_READER);
}

static void scene_end(void)
{
	raw_close(&reader);
	raw_close(&writer);
}

/* ---- join ---- */

static struct xmem_join_request good_join(void)
{
	struct xmem_join_request join = {
		.size = sizeof(join), .abi = XMEM_ABI, .role = XMEM_ROLE_WRITER, .pool_fd = -1,
	};

	snprintf((char *)join.name, sizeof(join.name), "%s", new_name());
	return join;
}

static int try_join(struct xmem_join_request join)
{
	struct raw raw;
	int err;

	raw_open(&raw);
	err = raw_request(&raw, XMEM_IOC_JOIN, &join);
	raw_close(&raw);
	return err;
}

/* A good join with one assignment made to it. */
#define JOIN_WITH(assignment) ({ \
	struct xmem_join_request j = good_join(); \
	assignment; \
	try_join(j); \
})
#define NO_NAME(j)	memset((j).name, 0, sizeof((j).name))
#define NAMED(text)	JOIN_WITH((NO_NAME(j), \
				   memcpy(j.name, text, sizeof(text) - 1)))

TEST(P4_join_with_reserved_or_unknown_bits_is_EINVAL)
{
	SAME(JOIN_WITH(), 0);
	SAME(JOIN_WITH(j.reserved = 1), -EINVAL);
	SAME(JOIN_WITH(j.reserved = 0x80000000), -EINVAL);
	SAME(JOIN_WITH(j.flags = 1u << 3), -EINVAL);	/* it was once for the pool's maker */
	SAME(JOIN_WITH(j.flags = 1u << 6), -EINVAL);
	SAME(JOIN_WITH(j.flags = 1u << 31), -EINVAL);
}

TEST(P4_join_of_another_abi_is_EPROTONOSUPPORT)
{
	SAME(JOIN_WITH(j.abi = XMEM_ABI + 1), -EPROTONOSUPPORT);
	SAME(JOIN_WITH(j.abi = 0), -EPROTONOSUPPORT);
	SAME(JOIN_WITH(j.abi = ~0u), -EPROTONOSUPPORT);
}

TEST(P4_join_out_of_range_is_EINVAL)
{
	SAME(JOIN_WITH(j.role = 0), -EINVAL);
	SAME(JOIN_WITH(j.role = 4), -EINVAL);
	SAME(JOIN_WITH(j.slots = XMEM_MAX_SLOTS + 1), -EINVAL);
	SAME(JOIN_WITH(j.slots = ~0u), -EINVAL);
	SAME(JOIN_WITH(j.clients = XMEM_MAX_CLIENTS + 1), -EINVAL);
	SAME(JOIN_WITH(j.ring_entries = 2), -EINVAL);
	SAME(JOIN_WITH(j.ring_entries = 48), -EINVAL);
	SAME(JOIN_WITH(j.ring_entries = 2 * XMEM_MAX_RING), -EINVAL);
	SAME(JOIN_WITH(j.ring_entries = 4), 0);
	SAME(JOIN_WITH(j.label[0] = '\n'), -EINVAL);
	SAME(JOIN_WITH(memset(j.label, 'x', sizeof(j.label))), -EINVAL);
	SAME(JOIN_WITH((j.role = XMEM_ROLE_READER, j.wait_bound_ns = 1)), -EINVAL);
}

TEST(P4_join_of_a_strange_name_is_EINVAL)
{
	static const char *const bad[] = {
		"/", "//", "a/", "/a/", "//a", "a//b", ".", "..", ".hidden", "a/.", "a/..",
		"a/../b", "/.a", "a:b", ":a", "0:a", "a!b", "!a", "a b", "new\nline", "a\\b",
		"\xff", "~a",
	};
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		if (JOIN_WITH(snprintf((char *)j.name, sizeof(j.name), "%s", bad[i])) != -EINVAL)
			FAIL("the host takes the name '%s'", bad[i]);
	SAME(NAMED("A.b-c_9"), 0);
	SAME(NAMED("/A./b-c_9"), 0);
	for (i = XMEM_NAME_MAX + 1; i <= XMEM_NAME_BYTES; i++)
		SAME(JOIN_WITH(memset(NO_NAME(j), 'x', i)), -EINVAL);
	SAME(JOIN_WITH(memset(j.name, 'x', XMEM_NAME_MAX)), 0);
}

TEST(P4_join_by_file_wants_a_file_and_no_name)
{
	int pipes[2];

	CHECK(!pipe(pipes));
	SAME(JOIN_WITH(j.pool_fd = pipes[0]), -EINVAL);		/* without the flag */
	SAME(JOIN_WITH((j.flags = XMEM_JOIN_FD, j.pool_fd = pipes[0])), -EINVAL); /* and a name */
	SAME(JOIN_WITH((j.flags = XMEM_JOIN_FD, j.pool_fd = pipes[0], NO_NAME(j))),
	     -EBADF);
	SAME(JOIN_WITH((j.flags = XMEM_JOIN_FD, j.pool_fd = 999, NO_NAME(j))), -EBADF);
	SAME(JOIN_WITH((j.flags = XMEM_JOIN_FD, j.pool_fd = -1, NO_NAME(j))), -EBADF);
	SAME(JOIN_WITH((j.flags = XMEM_JOIN_FD, j.pool_fd = pipes[0], NO_NAME(j),
			j.ring_entries = 3)), -EINVAL);
	close(pipes[0]);
	close(pipes[1]);
}

TEST(P4_join_existing_or_exclusive)
{
	scene_start();
	SAME(JOIN_WITH(j.flags = XMEM_JOIN_EXISTING), -ENOENT);
	SAME(JOIN_WITH((j.flags = XMEM_JOIN_EXCLUSIVE, memcpy(j.name, reader.link.join.name, 32))),
	     -EEXIST);
	SAME(JOIN_WITH((j.flags = XMEM_JOIN_EXISTING, memcpy(j.name, reader.link.join.name, 32))),
	     0);
	scene_end();
	SAME(JOIN_WITH(j.flags = XMEM_JOIN_EXCLUSIVE), 0);
}

/* ---- subscribe ---- */

static int try_subscribe(struct raw *raw, uint32_t publisher, uint64_t incarnation, uint32_t flags,
			 uint32_t reserved)
{
	struct xmem_subscribe_request request = {
		.size = sizeof(request), .publisher = publisher, .incarnation = incarnation,
		.flags = flags, .reserved = reserved,
	};

	return raw_request(raw, XMEM_IOC_SUBSCRIBE, &request);
}

/* An unsubscribe request for no ring. */
static int note_end(struct raw *raw, uint32_t flags, uint32_t publisher)
{
	struct xmem_unsubscribe_request request = {
		.size = sizeof(request), .flags = flags, .publisher = publisher,
	};

	return raw_request(raw, XMEM_IOC_UNSUBSCRIBE, &request);
}

static int try_unsubscribe(struct raw *raw, uint32_t publisher, uint64_t incarnation)
{
	struct xmem_unsubscribe_request request = {
		.size = sizeof(request), .publisher = publisher, .incarnation = incarnation,
	};

	return raw_request(raw, XMEM_IOC_UNSUBSCRIBE, &request);
}

TEST(P4_subscribe_with_wrong_fields)
{
	uint32_t publisher;
	uint64_t incarnation;

	scene_start();
	publisher = writer.link.join.client;
	incarnation = writer.link.join.incarnation;
	SAME(try_subscribe(&reader, publisher, incarnation, 4, 0), -EINVAL);
	SAME(try_subscribe(&reader, publisher, incarnation, 1u << 31, 0), -EINVAL);
	SAME(try_subscribe(&reader, publisher, incarnation, 0, 1), -EINVAL);
	SAME(try_subscribe(&reader, ~0u, 0, 0, 0), -EINVAL);
	SAME(try_subscribe(&reader, reader.map.clients, 0, 0, 0), -EINVAL);
	SAME(try_subscribe(&reader, reader.map.clients - 1, 0, 0, 0), -ENOENT);
	/* a reader has no ring */
	SAME(try_subscribe(&reader, reader.link.join.client, 0, 0, 0), -ENOENT);
	SAME(try_subscribe(&reader, publisher, incarnation + 100, 0, 0), -ESTALE);
	SAME(try_subscribe(&reader, publisher, incarnation, XMEM_SUBSCRIBE_WAIT, 0), -EOPNOTSUPP);
	SAME(try_unsubscribe(&reader, publisher, incarnation), -ENOENT);
	SAME(try_subscribe(&reader, publisher, incarnation, 0, 0), 0);
	SAME(try_subscribe(&reader, publisher, 0, 0, 0), -EEXIST);
	SAME(try_unsubscribe(&reader, publisher, incarnation + 1), -ESTALE);
	SAME(try_unsubscribe(&reader, ~0u, 0), -EINVAL);
	SAME(note_end(&reader, XMEM_UNSUBSCRIBE_DROPPED, 0), -ENOENT);
	SAME(note_end(&reader, XMEM_UNSUBSCRIBE_JOINT, 0), -EINVAL);
	SAME(note_end(&reader, XMEM_UNSUBSCRIBE_ENDED, 1), -EINVAL);
	SAME(note_end(&reader, XMEM_UNSUBSCRIBE_ENDED | XMEM_UNSUBSCRIBE_DROPPED, 0), -EINVAL);
	SAME(note_end(&reader, XMEM_UNSUBSCRIBE_ENDED, 0), 0);
	SAME(note_end(&reader, XMEM_UNSUBSCRIBE_DROPPED | XMEM_UNSUBSCRIBE_JOINT, 0), -ENOENT);
	SAME(note_end(&reader, XMEM_UNSUBSCRIBE_DROPPED, 0), 0);
	SAME(note_end(&reader, XMEM_UNSUBSCRIBE_DROPPED, 0), -ENOENT);
	SAME(try_unsubscribe(&reader, publisher, incarnation), 0);
	SAME(try_unsubscribe(&reader, publisher, incarnation), -ENOENT);
	scene_end();
}

/* ---- sleep ---- */

static int try_waiters(struct raw *raw, uint32_t op, uint32_t kind, uint32_t client,
		     uint32_t value, uint64_t deadline)
{
	struct xmem_wait_request sleep = {
		.size = sizeof(sleep), .kind = kind, .client = client, .value = value,
		.deadline_ns = deadline,
	};

	return raw_wait(raw, op, &sleep);
}

static int try_kick(struct raw *raw, uint32_t kind, uint32_t kicks)
{
	struct xmem_wait_request kick = { .size = sizeof(kick), .kind = kind, .kicks = kicks };

	return raw_wait(raw, XMEM_OP_KICK, &kick);
}

TEST(P4_waiters_requests_with_wrong_fields)
{
	uint32_t me, other;

	scene_start();
	me = reader.link.join.client;
	other = writer.link.join.client;
	SAME(try_waiters(&reader, XMEM_OP_KICK + 1, XMEM_WAIT_SLOTS, me, 0, 0), -EINVAL);
	SAME(try_waiters(&reader, ~0u, XMEM_WAIT_SLOTS, me, 0, 0), -EINVAL);
	SAME(try_waiters(&reader, XMEM_OP_ARM, 3, me, 0, 0), -EINVAL);
	SAME(try_waiters(&reader, XMEM_OP_ARM, ~0u, me, 0, 0), -EINVAL);
	SAME(try_waiters(&reader, XMEM_OP_ARM, XMEM_WAIT_CLIENTS, 1, 0, 0), -EINVAL);
	SAME(try_waiters(&reader, XMEM_OP_ARM, XMEM_WAIT_RING, reader.map.clients, 0, 0), -EINVAL);
	SAME(try_waiters(&reader, XMEM_OP_ARM, XMEM_WAIT_RING, ~0u, 0, 0), -EINVAL);
	SAME(try_waiters(&reader, XMEM_OP_ARM, XMEM_WAIT_CLIENTS, 0, 0, 1), -EINVAL);
	/*
	 * An armed word makes every publication a system call. So a client may arm only the words
	 * of rings that it subscribes to.
	 */
	SAME(try_waiters(&reader, XMEM_OP_ARM, XMEM_WAIT_RING, other, 0, 0), -ENOENT);
	SAME(try_waiters(&reader, XMEM_OP_ARM, XMEM_WAIT_SLOTS, other, 0, 0), -EPERM);
	SAME(xm_load(&xm_client_row(&reader.map, other)->ring_waiters) & XMEM_WAITERS_ARMED, 0);
	SAME(xm_load(&xm_client_row(&reader.map, other)->slots_waiters) & XMEM_WAITERS_ARMED, 0);
	SAME(try_waiters(&reader, XMEM_OP_WAKE, XMEM_WAIT_RING, other, 1, 0), -EINVAL);
	SAME(try_waiters(&reader, XMEM_OP_WAKE, XMEM_WAIT_RING, other, 0, 1), -EINVAL);
	SAME(try_waiters(&reader, XMEM_OP_WAKE, 3, other, 0, 0), -EINVAL);
	/*
	 * Only the publisher wakes its subscribers, and only the host wakes clients that wait for a
	 * client.
	 */
	SAME(try_waiters(&reader, XMEM_OP_WAKE, XMEM_WAIT_RING, other, 0, 0), -EPERM);
	SAME(try_waiters(&reader, XMEM_OP_WAKE, XMEM_WAIT_CLIENTS, 0, 0, 0), -EPERM);
	SAME(try_waiters(&reader, XMEM_OP_WAKE, XMEM_WAIT_RING, me, 0, 0), 0);
	SAME(try_kick(&reader, 0, 0), 0);
	SAME(try_kick(&reader, XMEM_WAIT_RING, 0), -EINVAL);
	SAME(try_kick(&reader, 0, 1), -EINVAL);
	SAME(try_waiters(&reader, XMEM_OP_WAIT, 3, other, 0, 0), -EINVAL);
	SAME(try_waiters(&reader, XMEM_OP_WAIT, XMEM_WAIT_RING, ~0u, 0, 0), -EINVAL);
	scene_end();
}

TEST(P9_a_wait_whose_deadline_has_passed_is_ETIMEDOUT)
{
	struct xmem_wait_request sleep = { .size = sizeof(sleep), .kind = XMEM_WAIT_SLOTS };

	scene_start();
	sleep.client = writer.link.join.client;
	SAME(raw_wait(&writer, XMEM_OP_ARM, &sleep), 0);
	CHECK(sleep.value & XMEM_WAITERS_ARMED);
	sleep.deadline_ns = 1;
	SAME(raw_wait(&writer, XMEM_OP_WAIT, &sleep), -ETIMEDOUT);
	/* It was woken since, so it does not sleep, whatever the deadline. */
	SAME(try_waiters(&reader, XMEM_OP_WAKE, XMEM_WAIT_SLOTS, sleep.client, 0, 0), 0);
	sleep.deadline_ns = ~0ULL;
	SAME(raw_wait(&writer, XMEM_OP_WAIT, &sleep), 0);
	scene_end();
}

static int try_poll_fd(struct raw *raw, uint32_t kind, uint32_t publisher, uint64_t incarnation)
{
	struct xmem_poll_fd_request request = {
		.size = sizeof(request), .kind = kind, .publisher = publisher,
		.incarnation = incarnation,
	};
	int err = raw_request(raw, XMEM_IOC_POLL_FD, &request);

	if (!err)
		close(request.fd);
	return err;
}

TEST(P4_poll_fd_requests_with_wrong_fields)
{
	uint32_t other;

	scene_start();
	other = writer.link.join.client;
	SAME(try_poll_fd(&reader, 4, 0, 0), -EINVAL);
	SAME(try_poll_fd(&reader, ~0u, 0, 0), -EINVAL);
	SAME(try_poll_fd(&reader, XMEM_POLL_CLIENT, 1, 0), -EINVAL);
	SAME(try_poll_fd(&reader, XMEM_POLL_CLIENT, 0, 1), -EINVAL);
	SAME(try_poll_fd(&reader, XMEM_POLL_JOINT, 1, 0), -EINVAL);
	SAME(try_poll_fd(&reader, XMEM_POLL_JOINT, 0, 1), -EINVAL);
	SAME(try_poll_fd(&reader, XMEM_POLL_SUBSCRIBERS, 1, 0), -EINVAL);
	SAME(try_poll_fd(&reader, XMEM_POLL_SUBSCRIBERS, 0, 1), -EINVAL);
	SAME(try_poll_fd(&reader, XMEM_POLL_RING, reader.map.clients, 1), -EINVAL);
	SAME(try_poll_fd(&reader, XMEM_POLL_RING, ~0u, 1), -EINVAL);
	SAME(try_poll_fd(&reader, XMEM_POLL_RING, other, 0), -EINVAL);
	SAME(try_poll_fd(&reader, XMEM_POLL_RING, other, ~0ULL), 0);	/* ended long ago */
	/* Polling does not arm the ring of a publisher that the client does not follow. */
	SAME(try_poll_fd(&reader, XMEM_POLL_RING, other, writer.link.join.incarnation), 0);
	SAME(xm_load(&xm_client_row(&reader.map, other)->ring_waiters) & XMEM_WAITERS_ARMED, 0);
	scene_end();
}

/* ---- slots ---- */

static int try_slot(struct raw *raw, uint32_t op, uint32_t slot, uint64_t generation)
{
	struct xmem_slot_request s = {
		.size = sizeof(s), .op = op, .slot = slot, .generation = generation,
	};

	return raw_request(raw, XMEM_IOC_SLOT, &s);
}

TEST(P4_slot_requests_with_wrong_fields)
{
	struct xmem_slot_request flagged = { .size = sizeof(flagged), .flags = 1 };
	struct xmem_attach_request attach;
	uint32_t slot, op;
	int file;

	scene_start();
	file = new_memfd(2 * BYTES, GOOD_SEALS);
	SAME(raw_attach(&writer, file, 2, &attach), 0);
	slot = attach.slot[0];
	flagged.slot = slot;
	for (op = XMEM_OP_RESOLVE; op <= XMEM_OP_DETACH_FILE; op++) {
		SAME(try_slot(&writer, op, writer.map.slots, 0), -EINVAL);
		SAME(try_slot(&writer, op, ~0u, 0), -EINVAL);
		SAME(try_slot(&writer, op, slot, 1), op == XMEM_OP_RESOLVE ? -EPERM : -EINVAL);
		flagged.op = op;
		SAME(raw_request(&writer, XMEM_IOC_SLOT, &flagged), -EINVAL);
	}
	SAME(try_slot(&writer, op, slot, 0), -EINVAL);
	SAME(try_slot(&writer, ~0u, slot, 0), -EINVAL);
	/* These are another client's slots. */
	SAME(try_slot(&reader, XMEM_OP_RENEW, slot, 0), -EPERM);
	SAME(try_slot(&reader, XMEM_OP_DETACH, slot, 0), -EPERM);
	SAME(try_slot(&reader, XMEM_OP_COLLECT, slot, 0), 0);	/* not the host's: nothing to do */
	SAME(xm_load(&xm_slot_row(&reader.map, slot)->owner), writer.link.join.client);
	/* These slots have no owner. */
	SAME(try_slot(&writer, XMEM_OP_DETACH, attach.slot[1] + 1, 0), -EPERM);
	SAME(try_slot(&writer, XMEM_OP_RENEW, attach.slot[1] + 1, 0), -EPERM);
	SAME(try_slot(&writer, XMEM_OP_RENEW, slot, 0), 0);
	SAME(try_slot(&writer, XMEM_OP_DETACH, slot, 0), 0);
	SAME(try_slot(&writer, XMEM_OP_DETACH, slot, 0), -EPERM);
	close(file);
	scene_end();
}

TEST(P1_files_are_detached_whole_or_not_at_all)
{
	struct xmem_attach_request attach;
	int file;

	scene_start();
	file = new_memfd(3 * BYTES, GOOD_SEALS);
	SAME(raw_attach(&writer, file, 3, &attach), 0);
	SAME(writer.link.backend->map_group(&writer.link, attach.slot[0] / XMEM_GROUP_SLOTS), 0);
	SAME(raw_slot(&reader, XMEM_OP_DETACH_FILE, attach.slot[1]), -EPERM);
	SAME(xm_take(&writer.map, attach.slot[2]), 0);
	SAME(raw_slot(&writer, XMEM_OP_DETACH_FILE, attach.slot[1]), -EBUSY);
	SAME(xm_load(&reader.map.pool->payloads), 1);
	SAME(xm_give_up(&writer.map, attach.slot[2]), 0);
	/* Detach one of them alone first; later all others of the file. */
	SAME(raw_slot(&writer, XMEM_OP_DETACH, attach.slot[1]), 0);
	SAME(raw_slot(&writer, XMEM_OP_DETACH_FILE, attach.slot[1]), -EPERM);
	SAME(raw_slot(&writer, XMEM_OP_DETACH_FILE, attach.slot[0]), 0);
	SAME(xm_load(&reader.map.pool->payloads), 0);
	SAME(xm_load(&reader.map.pool->payloads_gone), 1);
	SAME(xm_load(&xm_slot_row(&reader.map, attach.slot[2])->owner), XMEM_OWNER_NONE);
	close(file);
	scene_end();
}

TEST(P1_slots_with_contents_are_not_detached_or_renewed)
{
	struct xm_publication p = { 0 };
	struct xmem_attach_request attach;
	uint32_t slot;
	int file;

	scene_start();
	file = new_memfd(BYTES, GOOD_SEALS);
	SAME(raw_attach(&writer, file, 1, &attach), 0);
	slot = attach.slot[0];
	SAME(writer.link.backend->map_group(&writer.link, slot / XMEM_GROUP_SLOTS), 0);
	SAME(xm_take(&writer.map, slot), 0);
	SAME(try_slot(&writer, XMEM_OP_DETACH, slot, 0), -EBUSY);
	SAME(try_slot(&writer, XMEM_OP_RENEW, slot, 0), 0);	/* no such generation yet */
	xm_publish(&writer.map, writer.link.join.client, slot, &p);
	raw_hold(&reader, p.token);
	SAME(try_slot(&writer, XMEM_OP_DETACH, slot, 0), -EBUSY);
	SAME(try_slot(&writer, XMEM_OP_RENEW, slot, 0), -ESTALE);
	SAME(xm_look(&reader.map, p.token), 0);
	close(file);
	scene_end();
}

static int try_claim(struct raw *raw, uint32_t op, uint64_t token, uint32_t count,
		     uint64_t timeout_ns)
{
	struct xmem_claim_request request = {
		.size = sizeof(request), .op = op, .slot = token & 0xffff,
		.generation = xm_generation(token), .count = count, .timeout_ns = timeout_ns,
	};

	return raw_request(raw, XMEM_IOC_CLAIM, &request);
}

TEST(P4_claim_requests_with_wrong_fields)
{
	struct xmem_claim_request beyond = { .size = sizeof(beyond), .op = XMEM_CLAIM_ADD };
	struct xm_publication p = { 0 };
	struct xmem_attach_request attach;
	uint64_t token;
	uint32_t slot;
	int file;

	scene_start();
	file = new_memfd(2 * BYTES, GOOD_SEALS);
	SAME(raw_attach(&writer, file, 2, &attach), 0);
	slot = attach.slot[0];
	SAME(writer.link.backend->map_group(&writer.link, slot / XMEM_GROUP_SLOTS), 0);
	SAME(xm_take(&writer.map, slot), 0);
	xm_publish(&writer.map, writer.link.join.client, slot, &p);
	token = p.token;
	SAME(try_claim(&writer, 3, token, 1, 0), -EINVAL);
	SAME(try_claim(&writer, ~0u, token, 1, 0), -EINVAL);
	beyond.slot = writer.map.slots;
	SAME(raw_request(&writer, XMEM_IOC_CLAIM, &beyond), -EINVAL);
	beyond.slot = ~0u;
	SAME(raw_request(&writer, XMEM_IOC_CLAIM, &beyond), -EINVAL);
	beyond = (struct xmem_claim_request){ .size = sizeof(beyond), .reserved = 1 };
	SAME(raw_request(&writer, XMEM_IOC_CLAIM, &beyond), -EINVAL);
	beyond = (struct xmem_claim_request){ .size = sizeof(beyond), .flags = 1 };
	SAME(raw_request(&writer, XMEM_IOC_CLAIM, &beyond), -EINVAL);
	SAME(try_claim(&writer, XMEM_CLAIM_ADD, token, 65536, 0), -ERANGE);
	SAME(try_claim(&writer, XMEM_CLAIM_ADD, token, ~0u, 0), -ERANGE);
	SAME(try_claim(&writer, XMEM_CLAIM_ADD, token, 0, 0), -ENOENT);
	SAME(try_claim(&reader, XMEM_CLAIM_ADD, token, 1, XMEM_CLAIM_LONGEST_NS + 1), -EPERM);
	SAME(try_claim(&reader, XMEM_CLAIM_TAKE, token, 1, 0), -EPERM);	/* it does not hold it */
	SAME(try_claim(&writer, XMEM_CLAIM_VOID, token, 1, 0), -EINVAL);
	SAME(try_claim(&writer, XMEM_CLAIM_VOID, token, 0, 1), -EINVAL);
	SAME(try_claim(&writer, XMEM_CLAIM_VOID, token, 0, 0), -ENOENT);
	raw_hold(&reader, token);
	SAME(try_claim(&reader, XMEM_CLAIM_TAKE, token, 0, 0), -EINVAL);
	SAME(try_claim(&reader, XMEM_CLAIM_TAKE, token, 1, 1), -EINVAL);
	SAME(try_claim(&reader, XMEM_CLAIM_TAKE, token, 1, 0), -ERANGE);
	/* Wrong contents, a slot that is not LIVE, and one without an owner. */
	SAME(try_claim(&writer, XMEM_CLAIM_ADD, token + (1 << 16), 1, 0), -ESTALE);
	SAME(try_claim(&reader, XMEM_CLAIM_TAKE, token - (1 << 16), 1, 0), -ESTALE);
	SAME(try_claim(&writer, XMEM_CLAIM_ADD, attach.slot[1], 1, 0), -ESTALE);
	SAME(try_claim(&writer, XMEM_CLAIM_ADD, writer.map.slots - 1, 1, 0), -ESTALE);
	SAME(xm_claims_of(&reader.map, slot), 0);
	SAME(xm_load(&reader.map.pool->claimed), 0);

	SAME(try_claim(&reader, XMEM_CLAIM_ADD, token, 2, XMEM_CLAIM_LONGEST_NS), 0);
	SAME(xm_claims_of(&reader.map, slot), 2);
	SAME(xm_load(&reader.map.pool->claimed), 1);
	SAME(try_claim(&reader, XMEM_CLAIM_TAKE, token, 3, 0), -ERANGE);
	SAME(try_claim(&reader, XMEM_CLAIM_TAKE, token, 2, 0), 0);
	SAME(xm_claims_of(&reader.map, slot), 0);
	close(file);
	scene_end();
}

/* ---- payload ---- */

TEST(P4_payload_requests_with_wrong_fields)
{
	struct xmem_payload_request request = { .size = sizeof(request), .fd = -7 };
	struct xmem_attach_request attach;
	unsigned int files;
	int file;

	scene_start();
	file = new_memfd(BYTES, GOOD_SEALS);
	SAME(raw_attach(&writer, file, 1, &attach), 0);
	files = open_files();
	SAME(raw_request(&reader, XMEM_IOC_PAYLOAD, &request), -ENOENT);	/* 0 */
	request.payload = attach.payload + 1;
	SAME(raw_request(&reader, XMEM_IOC_PAYLOAD, &request), -ENOENT);
	request.payload = ~0ULL;
	SAME(raw_request(&reader, XMEM_IOC_PAYLOAD, &request), -ENOENT);
	request.payload = attach.payload + (1ULL << 32);
	SAME(raw_request(&reader, XMEM_IOC_PAYLOAD, &request), -ENOENT);
	request.payload = attach.payload;
	request.flags = XMEM_PAYLOAD_CLOSE << 1;
	SAME(raw_request(&reader, XMEM_IOC_PAYLOAD, &request), -EINVAL);
	request.flags = 1u << 31;
	SAME(raw_request(&reader, XMEM_IOC_PAYLOAD, &request), -EINVAL);
	SAME(request.fd, -7);
	SAME(open_files(), files);
	close(file);
	scene_end();
}
