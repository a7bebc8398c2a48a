// SPDX-License-Identifier: MIT
/*
 * Processes are killed at each step of making, opening and closing memory of a GPU, and in each
 * state of a buffer. Their memory is given back, and buffers that others hold stay correct.
 */
#include <stdlib.h>

#include "bytes.h"
#include "core/step.h"

#define BYTES	100000

struct victim {
	char name[32];
	uint32_t flags;
	int step;
	unsigned int after;
	uint64_t token;
};

static struct victim new_victim(uint32_t flags, int step, unsigned int after)
{
	struct victim victim = { .flags = flags, .step = step, .after = after };

	snprintf(victim.name, sizeof(victim.name), "%s", new_name());
	return victim;
}

/* ---- killed while it opens and closes ---- */

static void open_and_close(void *argument)
{
	struct victim *victim = argument;
	struct xmem_pool *pool = OPEN(victim->name, .flags = XMEM_OPEN_WRITER);
	struct xmem_buffer *buffer = xmem_get(pool, hear_parent());

	CHECK(buffer);
	tell_parent(1);
	at_step(victim->step, 0, STEP_KILL, NULL);
	cuda_check(buffer, 3);
	xmem_release(buffer);
	tell_parent(2);
	hear_parent();			/* the owner has released it */
	stat_of(pool);
	FAIL("step %s was not reached", step_name(victim->step));
}

static void kill_opener(uint32_t flags, int step)
{
	struct victim victim = new_victim(flags, step, 0);
	struct child *child = spawn(open_and_close, &victim);
	struct xmem_pool *pool = cuda_writer(victim.name, 1, BYTES, flags);
	struct xmem_buffer *kept;

	tell(child, cuda_publish(pool, BYTES, 3, &kept));
	SAME(hear(child), 1);
	if (step == XM_STEP_CUDA_CLOSING || step == XM_STEP_CUDA_CLOSED) {
		SAME(hear(child), 2);
		xmem_release(kept);
		WORKED(trim_pool(pool, 0));
		tell(child, 1);
		died_of_kill(child);
	} else {
		died_of_kill(child);
		cuda_check(kept, 3);
		xmem_release(kept);
		EVENTUALLY(trim_pool(pool, 0) > 0);
	}
	/* It has nothing open any more, so the memory is freed. */
	until_used(pool, 0);
	SAME(stat_of(pool).attached, 0);
	xmem_pool_close(pool);
	no_violations();
}

#define KILL_OPENER(name_, flags_, step_) \
	TEST(name_) { steps_only(); kill_opener(flags_, step_); }

KILL_OPENER(P2_killed_before_a_descriptor_is_asked_for, 0, XM_STEP_CUDA_ASK)
KILL_OPENER(P2_killed_before_a_descriptor_is_opened, 0, XM_STEP_CUDA_ASKED)
KILL_OPENER(P2_killed_after_a_descriptor_is_opened, 0, XM_STEP_CUDA_OPENED)
KILL_OPENER(P2_killed_before_a_descriptor_is_closed, 0, XM_STEP_CUDA_CLOSING)
KILL_OPENER(P2_killed_after_a_descriptor_is_closed, 0, XM_STEP_CUDA_CLOSED)
KILL_OPENER(P2_killed_before_a_handle_is_asked_for, XMEM_MEMORY_LEGACY, XM_STEP_CUDA_ASK)
KILL_OPENER(P2_killed_before_a_handle_is_opened, XMEM_MEMORY_LEGACY, XM_STEP_CUDA_ASKED)
KILL_OPENER(P2_killed_after_a_handle_is_opened, XMEM_MEMORY_LEGACY, XM_STEP_CUDA_OPENED)
KILL_OPENER(P2_killed_before_a_handle_is_closed, XMEM_MEMORY_LEGACY, XM_STEP_CUDA_CLOSING)
KILL_OPENER(P2_killed_after_a_handle_is_closed, XMEM_MEMORY_LEGACY, XM_STEP_CUDA_CLOSED)

/* ---- the owner is killed ---- */

static void publish_by_handle(void *argument)
{
	struct victim *victim = argument;
	struct xmem_pool *pool = cuda_writer(victim->name, 1, BYTES, victim->flags);

	tell_parent(cuda_publish(pool, BYTES, 3, NULL));
	hear_parent();
}

#define OWNERS	8

static struct child *owner[OWNERS];
static int owners_killed;

static void kill_owner(int step)
{
	kill_child(owner[owners_killed++]);
}

/* The driver knows of the death at once, and the host a little later. */
TEST(CUDA_an_owner_that_dies_before_an_open_is_said_to_have_ended)
{
	struct victim victim = new_victim(XMEM_MEMORY_LEGACY, XM_STEP_CUDA_ASKED, 0);
	struct xmem_pool *pool = OPEN(victim.name, .flags = XMEM_OPEN_WRITER);
	struct xmem_buffer *buffer[OWNERS];
	int i;

	steps_only();
	for (i = 0; i < OWNERS; i++) {
		owner[i] = spawn(publish_by_handle, &victim);
		buffer[i] = xmem_get(pool, hear(owner[i]));
		CHECK(buffer[i]);
	}
	for (i = 0; i < OWNERS; i++) {
		at_step(victim.step, 0, STEP_CALL, kill_owner);
		REFUSED(xmem_cuda_ptr(buffer[i]), EOWNERDEAD);
		SAYS(EOWNERDEAD, "has ended");
		REFUSED(xmem_cuda_ptr(buffer[i]), EOWNERDEAD);
		xmem_release(buffer[i]);
	}
	EVENTUALLY(!stat_of(pool).attached);
	xmem_pool_close(pool);
	no_violations();
}

/* ---- killed while it makes memory ---- */

static void make_and_publish(void *argument)
{
	struct victim *victim = argument;
	struct xmem_pool *pool = OPEN(victim->name, .flags = XMEM_OPEN_WRITER);

	at_step(victim->step, victim->after, STEP_KILL, NULL);
	WORKED(make_on_gpu(pool, 16 << 20, 3, 0, victim->flags));
	no_step();
	FAIL("step %s was not reached", step_name(victim->step));
}

TEST(P2_killed_while_memory_is_made)
{
	const uint32_t flags[] = { 0, XMEM_MEMORY_LEGACY };
	unsigned int after;
	size_t i;

	steps_only();
	for (i = 0; i < 2; i++)
		for (after = 0; after < 3; after++) {
			struct victim victim = new_victim(flags[i], XM_STEP_CUDA_MADE, after);
			struct xmem_pool *pool = OPEN(victim.name, .flags = 0);

			died_of_kill(spawn(make_and_publish, &victim));
			EVENTUALLY(!stat_of(pool).attached && stat_of(pool).clients == 1);
			check_quiet(pool, 1);
			xmem_pool_close(pool);
		}
}

/* ---- killed while it gives memory back ---- */

static void give_back_until_killed(void *argument)
{
	struct victim *victim = argument;
	struct xmem_pool *pool = cuda_writer(victim->name, 2, BYTES, victim->flags);
	struct xmem_buffer *kept;

	tell_parent(cuda_publish(pool, BYTES, 3, &kept));
	hear_parent();			/* it has opened the memory, and released the buffer */
	xmem_release(kept);
	at_step(victim->step, 0, STEP_KILL, NULL);
	WORKED(trim_pool(pool, 0));
	stat_of(pool);
	tell_parent(1);			/* memory by handle is freed when all have closed it */
	hear_parent();
	stat_of(pool);
	FAIL("step %s was not reached", step_name(victim->step));
}

static void kill_giver(void *argument)
{
	struct victim *victim = argument;
	struct child *child = spawn(give_back_until_killed, victim);
	uint64_t token = hear(child);
	struct xmem_pool *pool = OPEN(victim->name, .flags = XMEM_OPEN_WRITER);
	struct xmem_buffer *buffer = xmem_get(pool, token);

	CHECK(buffer);
	cuda_check(buffer, 3);
	xmem_release(buffer);
	tell(child, 1);
	if (victim->flags & XMEM_MEMORY_LEGACY && (victim->step == XM_STEP_CUDA_CLOSING ||
						 victim->step == XM_STEP_CUDA_CLOSED)) {
		SAME(hear(child), 1);
		EVENTUALLY(!stat_of(pool).bytes_closing);
		tell(child, 1);
	}
	died_of_kill(child);
	EVENTUALLY(!stat_of(pool).attached && !stat_of(pool).bytes_cuda);
	check_quiet(pool, 1);
	until_used(pool, 0);
	/* The dead process's memory is not lost. */
	WORKED(make_on_gpu(pool, BYTES, 2, 0, victim->flags));
	cuda_publish(pool, BYTES, 4, &buffer);
	cuda_check(buffer, 4);
	xmem_release(buffer);
	xmem_pool_close(pool);
	no_violations();
}

TEST_WITHIN(P2_killed_while_memory_is_given_back, 120)
{
	const int steps[] = {
		XM_STEP_FILE_TAKEN, XM_STEP_FILE_DETACHED, XM_STEP_CUDA_CLOSING,
		XM_STEP_CUDA_CLOSED,
	};
	const uint32_t flags[] = { 0, XMEM_MEMORY_LEGACY };
	size_t i, j;

	steps_only();
	for (i = 0; i < 2; i++)
		for (j = 0; j < sizeof(steps) / sizeof(*steps); j++) {
			struct victim victim = new_victim(flags[i], steps[j], 0);

			in_child(kill_giver, &victim);
		}
}

/* ---- killed while it attaches its own memory ---- */

static void attach_until_killed(void *argument)
{
	struct victim *victim = argument;
	struct xmem_pool *pool = OPEN(victim->name, .flags = XMEM_OPEN_WRITER);
	struct xl_gpu_scope scope;
	CUdeviceptr at;

	WORKED(xl_gpu_enter(xl_gpu(0), &scope));
	SAME(xl_cuda()->mem_alloc(&at, BYTES), 0);
	at_step(victim->step, 0, STEP_KILL, NULL);
	CHECK(xmem_attach_cuda(pool, (void *)at, BYTES, 0, NULL, NULL));
	FAIL("step %s was not reached", step_name(victim->step));
}

TEST(P2_killed_while_memory_is_attached)
{
	const int steps[] = { XM_STEP_CUDA_MADE, XM_STEP_CUDA_ATTACHED };
	size_t i;

	steps_only();
	for (i = 0; i < 2; i++) {
		struct victim victim = new_victim(0, steps[i], 0);
		struct xmem_pool *pool = OPEN(victim.name, .flags = 0);

		died_of_kill(spawn(attach_until_killed, &victim));
		EVENTUALLY(!stat_of(pool).attached && !stat_of(pool).bytes_cuda);
		check_quiet(pool, 1);
		xmem_pool_close(pool);
	}
}

/* ---- in each state of a buffer ---- */

static void publish_until_killed(void *argument)
{
	struct victim *victim = argument;
	struct xmem_pool *pool = cuda_writer(victim->name, 4, BYTES, XMEM_MEMORY_READERS);
	uint64_t stamp;

	tell_parent(xmem_pool_client(pool));
	hear_parent();
	at_step(victim->step, victim->after, STEP_KILL, NULL);
	for (stamp = 1; stamp < 100; stamp++)
		cuda_publish(pool, BYTES, stamp, NULL);
	FAIL("step %s was not reached", step_name(victim->step));
}

/* Received contents are whole, whenever their writer was killed. */
static void kill_publisher(int step, unsigned int after)
{
	struct victim victim = new_victim(0, step, after);
	struct child *child = spawn(publish_until_killed, &victim);
	int publisher = hear(child);
	struct xmem_pool *pool = OPEN(victim.name, .flags = 0);
	struct xmem_subscription *sub = follow(pool, publisher, 0);
	struct xmem_buffer *buffer;

	tell(child, 1);
	while ((buffer = xmem_receive(sub, patience_ns()))) {
		cuda_check(buffer, info_of(buffer).sequence + 1);
		xmem_release(buffer);
	}
	SAME(xmem_peek_last_error(NULL), -EPIPE);
	died_of_kill(child);
	xmem_unsubscribe(sub);
	EVENTUALLY(!stat_of(pool).attached);
	xmem_pool_close(pool);
	USED(0);
	no_violations();
}

static void kill_publisher_at(void *argument)
{
	const struct victim *at = argument;

	kill_publisher(at->step, at->after);
}

/* Each round makes two contexts, which takes two seconds on a real driver. */
TEST_WITHIN(P2_killed_while_contents_are_published, 120)
{
	struct victim at = { .step = 0 };

	steps_only();
	for (at.step = XM_STEP_PUBLISH_POSITION; at.step <= XM_STEP_PUBLISH_TAIL; at.step++)
		for (at.after = 0; at.after < 8; at.after += 3)
			in_child(kill_publisher_at, &at);
}
