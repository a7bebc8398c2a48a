// SPDX-License-Identifier: MIT
/*
 * P4 among users: no user, nor its sub-uids, uses up what others need or makes others pay. These
 * tests change the module's parameters, so they need the kernel module and a machine of their own.
 * quotas.c tests what a single user may have.
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "quota_users.h"

/* ---- nobody else pays ---- */

static void have_many_pools(void *argument)
{
	struct raw raw[4];
	unsigned int i;

	become(*(unsigned int *)argument);
	for (i = 0; i < 4; i++) {
		raw_open(&raw[i]);
		SAME(raw_join(&raw[i], "", XMEM_ROLE_READER, 0), i < 3 ? 0 : -EDQUOT);
	}
	refused_by(&raw[3], XMEM_QUOTA_USER_POOLS, "user_max_pools", 0);
	tell_parent(1);
	hear_parent();
}

static void have_one_pool(void *argument)
{
	struct xmem_pool *pool;

	become(*(unsigned int *)argument);
	pool = open_writer(new_name(), 1, BYTES);
	publish_stamp(pool, 1);
	xmem_pool_close(pool);
}

TEST(P4_one_user_does_not_use_up_anothers_pools)
{
	unsigned int user = new_user(), victim = user + 10000;
	struct child *child;
	char old[32];

	set_parameter("user_max_pools", "3", old);
	child = spawn(have_many_pools, &user);
	hear(child);
	finish_child(spawn(have_one_pool, &victim));
	/* Root is counted, and not refused. */
	have_one_pool(&(unsigned int){ 0 });
	set_parameter("user_max_pools", old, NULL);
	kill_child(child);
	EVENTUALLY(has_nothing(user) && has_nothing(victim));
}

/* ---- shares ---- */

/* Make pools until a limit refuses one. Tell how many bytes they take. */
static void take_pages(void *argument)
{
	const unsigned int *user = argument;
	struct raw raw[64];
	unsigned int i = 0;

	become(*user);
	do
		raw_open(&raw[i]);
	while (!raw_join(&raw[i], "", XMEM_ROLE_READER, 0) && ++i < 64);
	CHECK(i && i < 64);
	refused_by(&raw[i], XMEM_QUOTA_SHARE_PAGE_BYTES, "max_bytes", 0);
	tell_parent(quota_of(&raw[0], XMEM_QUOTA_USER_PAGE_BYTES).used);
	hear_parent();
}

/* A later user still finds some free, although no user has reached its limit. */
TEST(P4_users_leave_each_other_half_of_the_bytes_that_are_free)
{
	const uint64_t most = 8 << 20;
	unsigned int user = new_user(), i;
	uint64_t took, free = most;
	struct child *child[3];
	struct raw raw;
	char text[32], old[32];

	raw_open(&raw);
	EVENTUALLY(!quota_of(&raw, XMEM_QUOTA_PAGE_BYTES).used);
	snprintf(text, sizeof(text), "%llu", (unsigned long long)most);
	set_parameter("max_bytes", text, old);
	for (i = 0; i < 3; i++, user += 10000) {
		child[i] = spawn(take_pages, &user);
		took = hear(child[i]);
		CHECK(took <= free / 2 && took > free / 4);
		free -= took;
		SAME(quota_of(&raw, XMEM_QUOTA_PAGE_BYTES).used, most - free);
	}
	set_parameter("max_bytes", old, NULL);
	while (i--) {
		kill_child(child[i]);
		user -= 10000;
		EVENTUALLY(has_nothing(user));
	}
	raw_close(&raw);
}

/* ---- user namespaces ---- */

static void write_file(const char *format, int pid, const char *text)
{
	char path[64];
	int file;

	snprintf(path, sizeof(path), format, pid);
	file = open(path, O_WRONLY | O_CLOEXEC);
	CHECK(file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text));
	close(file);
}

/* Two pools for each of the user's uids in the namespace, and one more. */
static void use_sub_uids(void *argument)
{
	struct raw raw[5];
	unsigned int i;

	become(*(unsigned int *)argument);
	CHECK(!unshare(CLONE_NEWUSER));
	tell_parent(1);
	hear_parent();				/* the map of uids is there now */
	for (i = 0; i < 5; i++) {
		CHECK(!seteuid(0) && !seteuid(1 + i / 2));
		raw_open(&raw[i]);
		SAME(raw_join(&raw[i], "", XMEM_ROLE_READER, 0), i < 4 ? 0 : -EDQUOT);
	}
	refused_by(&raw[4], XMEM_QUOTA_USER_POOLS, "user_max_pools", 1);
	SAME(quota_of(&raw[4], XMEM_QUOTA_USER_POOLS).used, 0);
	SAME(quota_of(&raw[4], XMEM_QUOTA_USER_POOLS).uid, 3);
	SAME(quota_of(&raw[0], XMEM_QUOTA_USER_POOLS).used, 2);
	tell_parent(1);
	hear_parent();
}

TEST(P4_sub_uids_of_a_user_have_no_more_than_it)
{
	unsigned int user = new_user();
	struct child *child;
	char map[64], old[32];

	set_parameter("user_max_pools", "4", old);
	child = spawn(use_sub_uids, &user);
	hear(child);
	snprintf(map, sizeof(map), "0 %u 1\n1 %u 9\n", user, user + 20000);
	write_file("/proc/%d/uid_map", child->pid, map);
	tell(child, 1);
	hear(child);
	SAME(seen(user, "pools"), 4);
	SAME(seen(user + 20000, "pools"), 2);
	set_parameter("user_max_pools", old, NULL);
	kill_child(child);
	EVENTUALLY(has_nothing(user) && has_nothing(user + 20000));
}

/* ---- a slot's clock ---- */

#define ASKERS	16
#define ASKED	20

struct asker {
	struct raw *raw;
	uint32_t slot;
};

static void *ask_again_and_again(void *argument)
{
	const struct asker *asker = argument;
	unsigned int i;

	for (i = 0; i < ASKED; i++) {
		int err = raw_slot(asker->raw, XMEM_OP_RENEW, asker->slot);

		if (err && err != -ESTALE)		/* another thread was faster */
			FAIL("renew: %d", err);
		i -= err != 0;
	}
	return NULL;
}

/* However many threads ask at once, a millisecond is counted for the slot. */
TEST_WITHIN(P4_a_slot_has_one_tenancy_a_millisecond, 60)
{
	struct xmem_attach_request attached;
	pthread_t thread[ASKERS];
	struct asker asker;
	int64_t begin;
	struct raw raw;
	unsigned int i;
	int file;

	kernel_only("the daemon's clients trust each other");
	file = new_memfd(BYTES, GOOD_SEALS);
	raw_start(&raw, new_name(), XMEM_ROLE_WRITER);
	SAME(raw_attach(&raw, file, 1, &attached), 0);
	asker = (struct asker){ .raw = &raw, .slot = attached.slot[0] };
	begin = now_ns();
	for (i = 0; i < ASKERS; i++)
		CHECK(!pthread_create(&thread[i], NULL, ask_again_and_again, &asker));
	for (i = 0; i < ASKERS; i++)
		pthread_join(thread[i], NULL);
	/*
	 * Each millisecond has at most one. The first and the last millisecond need not be whole.
	 */
	CHECK(now_ns() - begin >= (ASKERS * ASKED - 2) * MS);
	SAME(xm_slot_row(&raw.map, attached.slot[0])->tenancies, 1 + ASKERS * ASKED);
	/* A client that detaches and attaches gets slots that are old enough. */
	for (i = 0; i < 20; i++) {
		SAME(raw_slot(&raw, XMEM_OP_DETACH, attached.slot[0]), 0);
		SAME(raw_attach(&raw, file, 1, &attached), 0);
	}
	raw_close(&raw);
	close(file);
}
