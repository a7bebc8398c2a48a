// SPDX-License-Identifier: MIT
/*
 * P10 among users: what a user has is counted, refused where it is too much, by an error of which
 * `quota` says which limit it was, and counted no more when it is gone. And P4: no user, nor its
 * sub-uids, uses up what others need. Each test has a user of its own, for whom it changes the
 * module's parameters, so these tests need the kernel module and a machine of their own.
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "harness.h"

#define BYTES	4096
#define MORE	3		/* how many more of a thing than at first a user may have */

/* ---- users ---- */

static unsigned int new_user(void)
{
	kernel_only("the daemon is one user's");
	if (!in_vm() || geteuid())
		skip("parameters are the whole machine's: only as root in the virtual machine");
	CHECK(!chmod("/dev/xmem", 0666));
	return 20000 + getpid() % 10000;
}

static void become(unsigned int user)
{
	CHECK(!setgid(user) && !setuid(user));
}

/* Its number in its line of /sys/class/xmem/users; 0: it has no line, ~0: no such number. */
static uint64_t seen(unsigned int user, const char *what)
{
	FILE *file = fopen("/sys/class/xmem/users", "re");
	char line[512], word[32], *at;
	unsigned int uid;
	uint64_t n = 0;

	CHECK(file);
	snprintf(word, sizeof(word), " %s=", what);
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "uid=%u ", &uid) != 1 || uid != user)
			continue;
		at = strstr(line, word);
		n = at ? strtoull(at + strlen(word), NULL, 10) : ~0ULL;
	}
	fclose(file);
	return n;
}

static bool has_nothing(unsigned int user)
{
	static const char *const words[] = {
		"pools", "clients", "slots", "groups", "files", "file_bytes", "page_bytes",
		"mappings", "entries",
	};
	unsigned int i;

	for (i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (seen(user, words[i]))
			return false;
	return true;
}

/* ---- asking ---- */

static struct xmem_quota_request quota_of(struct raw *raw, uint32_t quota)
{
	struct xmem_quota_request request = { .size = sizeof(request), .quota = quota };

	SAME(raw_request(raw, XMEM_IOC_QUOTA, &request), 0);
	SAME(request.quota, quota);
	return request;
}

/* What @raw was refused last has to be this. */
static void was_refused(struct raw *raw, uint32_t quota, const char *name, uint32_t level)
{
	struct xmem_quota_request request = {
		.size = sizeof(request), .flags = XMEM_QUOTA_REFUSED,
	};

	SAME(raw_request(raw, XMEM_IOC_QUOTA, &request), 0);
	SAME(request.quota, quota);
	SAME(request.level, level);
	if (strcmp((char *)request.name, name))
		FAIL("it was refused because of %s, not %s", (char *)request.name, name);
	CHECK(request.used <= request.most && request.wanted > request.most);
}

/* ---- one more of a thing, and one less ---- */

struct scene {
	struct raw writer;			/* in a pool of its own */
	struct raw more[2 * MORE + 1];
	struct xmem_attach_request attached[2 * MORE + 1];
	void *mapped[2 * MORE + 1];
	const char *name;
	int file;
	unsigned int n;				/* how many more there are */
};

static int join_more(struct scene *s, const char *name)
{
	struct raw *raw = &s->more[s->n];
	int err;

	raw_open(raw);
	err = raw_join(raw, name, XMEM_ROLE_READER, 0);
	if (err)
		return err;
	SAME(raw->link.backend->map(&raw->link, &raw->map), 0);
	raw->mapped = true;
	return 0;
}

static int one_pool(struct scene *s)
{
	return join_more(s, "");
}

/* Its client has ended, and its file is open. */
static int one_dead_pool(struct scene *s)
{
	struct xmem_pool_fd_request pool_fd = { .size = sizeof(pool_fd) };
	struct raw *raw = &s->more[s->n];
	struct xmem_pool_header header;
	int err = join_more(s, "");

	if (err)
		return err;
	header = *raw->map.pool;
	CHECK(!munmap(raw->map.area[raw->link.join.client], header.area_stride));
	SAME(raw_request(raw, XMEM_IOC_POOL_FD, &pool_fd), -ENOTCONN);
	return 0;
}

static int one_client(struct scene *s)
{
	return join_more(s, s->name);
}

static void leave(struct scene *s)
{
	raw_close(&s->more[s->n]);
}

static int one_slot(struct scene *s)
{
	return raw_attach(&s->writer, s->file, 1, &s->attached[s->n]);
}

static int one_group(struct scene *s)
{
	return raw_attach(&s->writer, s->file, XMEM_GROUP_SLOTS, &s->attached[s->n]);
}

static void detach(struct scene *s)
{
	struct xmem_slot_request request = {
		.size = sizeof(request), .flags = XMEM_DETACH_FILE,
		.slot = s->attached[s->n].slot[0],
	};

	SAME(raw_request(&s->writer, XMEM_IOC_DETACH, &request), 0);
}

static int one_mapping(struct scene *s)
{
	void *p = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, s->writer.link.file, 0);

	if (p == MAP_FAILED)
		return -errno;
	s->mapped[s->n] = p;
	return 0;
}

static void unmap(struct scene *s)
{
	CHECK(!munmap(s->mapped[s->n], BYTES));
}

struct kind {
	uint32_t quota;
	const char *name;		/* of the parameter */
	int (*one)(struct scene *scene);
	void (*undo)(struct scene *scene);	/* NULL: one less does not make it less */
	bool joins;			/* a file of its own is refused, not the writer */
};

static const struct kind pools = {
	XMEM_QUOTA_USER_POOLS, "user_max_pools", one_pool, leave, true };
static const struct kind dead_pools = {
	XMEM_QUOTA_USER_POOLS, "user_max_pools", one_dead_pool, leave, true };
static const struct kind clients = {
	XMEM_QUOTA_USER_CLIENTS, "user_max_clients", one_client, leave, true };
static const struct kind slots = {
	XMEM_QUOTA_USER_SLOTS, "user_max_slots", one_slot, detach, false };
static const struct kind groups = {
	XMEM_QUOTA_USER_GROUPS, "user_max_groups", one_group, NULL, false };
static const struct kind files = {
	XMEM_QUOTA_USER_FILES, "user_max_files", one_slot, detach, false };
static const struct kind file_bytes = {
	XMEM_QUOTA_USER_FILE_BYTES, "user_max_file_bytes", one_slot, detach, false };
static const struct kind page_bytes = {
	XMEM_QUOTA_USER_PAGE_BYTES, "user_max_page_bytes", one_client, leave, true };
static const struct kind mappings = {
	XMEM_QUOTA_USER_MAPPINGS, "user_max_mappings", one_mapping, unmap, false };

/* ---- counted, refused, given back ---- */

struct user {
	unsigned int uid;
	const struct kind *kind;
};

static uint64_t used(struct scene *s, const struct kind *kind)
{
	return quota_of(&s->writer, kind->quota).used;
}

static void undo_one(struct scene *s, const struct kind *kind)
{
	s->n--;
	kind->undo(s);
}

/* What is refused changes no count, whatever else was counted before it was. */
static void is_refused(struct scene *s, const struct kind *kind)
{
	uint64_t before[XMEM_QUOTA_USER_MAPPINGS + 1];
	uint32_t q;

	for (q = 0; q <= XMEM_QUOTA_USER_MAPPINGS; q++)
		before[q] = quota_of(&s->writer, q).used;
	SAME(kind->one(s), -EDQUOT);
	was_refused(kind->joins ? &s->more[s->n] : &s->writer, kind->quota, kind->name, 0);
	if (kind->joins)
		raw_close(&s->more[s->n]);
	for (q = 0; q <= XMEM_QUOTA_USER_MAPPINGS; q++)
		SAME(quota_of(&s->writer, q).used, before[q]);
}

static void use_it_up(void *argument)
{
	const struct user *user = argument;
	const struct kind *kind = user->kind;
	struct scene *s = calloc(1, sizeof(*s));
	uint64_t first, each, i;

	CHECK(s);
	become(user->uid);
	s->name = new_name();
	s->file = new_memfd(XMEM_GROUP_SLOTS * BYTES, GOOD_SEALS);
	raw_start(&s->writer, s->name, XMEM_ROLE_WRITER);
	first = used(s, kind);
	SAME(kind->one(s), 0);
	s->n++;
	each = used(s, kind) - first;
	CHECK(each);
	tell_parent(first + (1 + MORE) * each);
	hear_parent();				/* there is a limit now */
	SAME(quota_of(&s->writer, kind->quota).most, first + (1 + MORE) * each);
	for (i = 2; i <= 1 + MORE; i++) {
		SAME(kind->one(s), 0);
		s->n++;
		SAME(used(s, kind), first + i * each);
	}
	is_refused(s, kind);
	is_refused(s, kind);
	if (kind->undo) {
		undo_one(s, kind);
		EVENTUALLY(used(s, kind) == first + MORE * each);
		SAME(kind->one(s), 0);
		s->n++;
		is_refused(s, kind);
	}
	tell_parent(used(s, kind));
	hear_parent();				/* it may be killed here */
	while (kind->undo && s->n)
		undo_one(s, kind);
	if (kind->undo)
		EVENTUALLY(used(s, kind) == first);
	raw_close(&s->writer);
	close(s->file);
}

static void check_kind(const struct kind *kind, const char *word)
{
	struct user user = { new_user(), kind };
	char text[32], old[32];
	struct child *child;
	unsigned int killed;

	for (killed = 0; killed < 2; killed++) {
		child = spawn(use_it_up, &user);
		snprintf(text, sizeof(text), "%llu", (unsigned long long)hear(child));
		set_parameter(kind->name, text, old);
		tell(child, 1);
		SAME(hear(child), strtoull(text, NULL, 10));
		set_parameter(kind->name, old, NULL);
		SAME(seen(user.uid, word), strtoull(text, NULL, 10));
		if (killed) {
			kill_child(child);
		} else {
			tell(child, 1);
			finish_child(child);
		}
		EVENTUALLY(has_nothing(user.uid));
	}
}

TEST_WITHIN(P10_pools_of_a_user_are_counted_and_limited, 60)
{
	check_kind(&pools, "pools");
}

TEST_WITHIN(P10_dead_pools_whose_files_are_open_are_counted, 60)
{
	check_kind(&dead_pools, "pools");
}

TEST_WITHIN(P10_clients_of_a_user_are_counted_and_limited, 60)
{
	check_kind(&clients, "clients");
}

TEST_WITHIN(P10_slots_of_a_user_are_counted_and_limited, 60)
{
	check_kind(&slots, "slots");
}

TEST_WITHIN(P10_groups_of_a_user_are_counted_and_limited, 60)
{
	check_kind(&groups, "groups");
}

TEST_WITHIN(P10_payloads_of_a_user_are_counted_and_limited, 60)
{
	check_kind(&files, "files");
}

TEST_WITHIN(P10_bytes_of_payload_files_of_a_user_are_counted_and_limited, 60)
{
	check_kind(&file_bytes, "file_bytes");
}

TEST_WITHIN(P10_pages_of_a_user_are_counted_and_limited, 60)
{
	check_kind(&page_bytes, "page_bytes");
}

TEST_WITHIN(P10_mappings_of_a_user_are_counted_and_limited, 60)
{
	check_kind(&mappings, "mappings");
}

/* ---- splits ---- */

/* It is too late to refuse a part of a mapping that is there, but it counts. */
static void split_a_mapping(void *argument)
{
	struct raw raw;
	uint64_t before;
	char *p;

	become(*(unsigned int *)argument);
	raw_start(&raw, new_name(), XMEM_ROLE_READER);
	before = quota_of(&raw, XMEM_QUOTA_USER_MAPPINGS).used;
	SAME(before, 2);
	p = mmap(NULL, 3 * BYTES, PROT_READ, MAP_SHARED, raw.link.file, 0);
	CHECK(p != MAP_FAILED);
	SAME(quota_of(&raw, XMEM_QUOTA_USER_MAPPINGS).used, before + 1);
	CHECK(!munmap(p + BYTES, BYTES));
	SAME(quota_of(&raw, XMEM_QUOTA_USER_MAPPINGS).used, before + 2);
	CHECK(!munmap(p, 3 * BYTES));
	SAME(quota_of(&raw, XMEM_QUOTA_USER_MAPPINGS).used, before);
	raw_close(&raw);
}

TEST(P10_parts_of_mappings_are_counted)
{
	unsigned int user = new_user();

	finish_child(spawn(split_a_mapping, &user));
	EVENTUALLY(has_nothing(user));
}

/* ---- sysfs ---- */

static void show_much(void *argument)
{
	int file;
	struct raw raw;

	become(*(unsigned int *)argument);
	file = new_memfd(XMEM_GROUP_SLOTS * BYTES, GOOD_SEALS);
	raw_start(&raw, new_name(), XMEM_ROLE_WRITER);
	SAME(raw_attach(&raw, file, XMEM_GROUP_SLOTS, NULL), 0);
	tell_parent(1);
	hear_parent();
	/* No request fails for want of entries. */
	SAME(raw_attach(&raw, file, XMEM_GROUP_SLOTS, NULL), 0);
	tell_parent(1);
	hear_parent();
	raw_close(&raw);
	close(file);
}

TEST_WITHIN(P10_entries_in_sysfs_are_counted_and_limited, 60)
{
	unsigned int user = new_user();
	struct child *child;
	uint64_t shown;
	char text[32], old[32];

	set_parameter("user_max_entries", "0", old);
	child = spawn(show_much, &user);
	hear(child);
	SAME(seen(user, "entries"), 0);
	snprintf(text, sizeof(text), "%d", 100);
	set_parameter("user_max_entries", text, NULL);
	tell(child, 1);
	hear(child);
	EVENTUALLY((shown = seen(user, "entries")) > 50);
	CHECK(shown <= 100);
	set_parameter("user_max_entries", old, NULL);
	tell(child, 1);
	finish_child(child);
	EVENTUALLY(has_nothing(user));
}

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
	was_refused(&raw[3], XMEM_QUOTA_USER_POOLS, "user_max_pools", 0);
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

TEST(P4_what_one_user_uses_up_another_still_has)
{
	unsigned int user = new_user(), victim = user + 10000;
	struct child *child;
	char old[32];

	set_parameter("user_max_pools", "3", old);
	child = spawn(have_many_pools, &user);
	hear(child);
	finish_child(spawn(have_one_pool, &victim));
	/* root is counted, and not refused. */
	have_one_pool(&(unsigned int){ 0 });
	set_parameter("user_max_pools", old, NULL);
	kill_child(child);
	EVENTUALLY(has_nothing(user) && has_nothing(victim));
}

/* ---- shares ---- */

static void take_pools(void *argument)
{
	const unsigned int *user = argument;
	struct raw raw[10];
	unsigned int i = 0;

	become(*user);
	do
		raw_open(&raw[i]);
	while (!raw_join(&raw[i], "", XMEM_ROLE_READER, 0) && ++i < 10);
	CHECK(i < 10);
	was_refused(&raw[i], XMEM_QUOTA_SHARE_POOLS, "max_pools", 0);
	tell_parent(i);
	hear_parent();
}

/* Who comes later finds some, although nobody has reached what a user may have. */
TEST(P4_users_leave_each_other_half_of_what_is_free)
{
	unsigned int user = new_user(), second = user + 10000, third = user + 20000;
	struct child *child[3];
	struct raw raw;
	char old[32];

	raw_open(&raw);
	EVENTUALLY(!quota_of(&raw, XMEM_QUOTA_POOLS).used);
	set_parameter("max_pools", "8", old);
	child[0] = spawn(take_pools, &user);
	SAME(hear(child[0]), 4);
	child[1] = spawn(take_pools, &second);
	SAME(hear(child[1]), 2);
	child[2] = spawn(take_pools, &third);
	SAME(hear(child[2]), 1);
	SAME(quota_of(&raw, XMEM_QUOTA_POOLS).used, 7);
	set_parameter("max_pools", old, NULL);
	kill_child(child[0]);
	kill_child(child[1]);
	kill_child(child[2]);
	EVENTUALLY(has_nothing(user) && has_nothing(second) && has_nothing(third));
	raw_close(&raw);
}

static void own_a_pool(void *argument)
{
	struct xmem_pool *pool;

	become(*(unsigned int *)argument);
	pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER, .slots = 1024, .clients = 8);
	WORKED(xmem_preallocate(pool, 1, BYTES));
	send_file(parent_link(), xmem_pool_fd(pool));
	hear_parent();
	/* There is room for more of its own than the guest has left to other guests. */
	WORKED(xmem_preallocate(pool, 8 * 64 + 63, BYTES));
	tell_parent(1);
	hear_parent();
}

static void be_a_guest(void *argument)
{
	struct xmem_pool_options options = { .size = sizeof(options), .flags = XMEM_OPEN_WRITER };
	struct xmem_pool *pool[8];
	unsigned int i, n = 0;
	const char *why;
	int file;

	become(*(unsigned int *)argument);
	file = receive_file(parent_link());
	/* Of 8 places for clients the owner has one. */
	for (i = 0; i < 8; i++) {
		pool[i] = xmem_pool_open_fd(file, &options);
		if (!pool[i])
			break;
	}
	SAME(i, 3);
	SAME(xmem_get_last_error(&why), -EDQUOT);
	CHECK(strstr(why, "as many clients in another user's pool as it may have: 3 of 3"));
	while (!xmem_preallocate(pool[0], 64, BYTES))
		n++;
	SAME(xmem_get_last_error(&why), -EDQUOT);
	CHECK(strstr(why, "as many groups of slots in another user's pool as it may have: 7 of 7"));
	SAME(n, 7);
	/* Nor has it more by another client. */
	SAME(xmem_preallocate(pool[1], 1, BYTES), -EDQUOT);
	tell_parent(1);
	hear_parent();
}

TEST_WITHIN(P4_guests_leave_the_owner_of_a_pool_half_of_it, 60)
{
	unsigned int owner = new_user(), guest = owner + 10000;
	struct child *child[2];
	int file;

	child[0] = spawn(own_a_pool, &owner);
	file = receive_file(child[0]->link);
	child[1] = spawn(be_a_guest, &guest);
	send_file(child[1]->link, file);
	close(file);
	hear(child[1]);
	tell(child[0], 1);
	hear(child[0]);
	kill_child(child[1]);
	kill_child(child[0]);
	EVENTUALLY(has_nothing(owner) && has_nothing(guest));
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

/* Two pools for each of the user's uids in there, and one more. */
static void use_sub_uids(void *argument)
{
	struct raw raw[5];
	unsigned int i;

	become(*(unsigned int *)argument);
	CHECK(!unshare(CLONE_NEWUSER));
	tell_parent(1);
	hear_parent();				/* there is a map of uids now */
	for (i = 0; i < 5; i++) {
		CHECK(!seteuid(0) && !seteuid(1 + i / 2));
		raw_open(&raw[i]);
		SAME(raw_join(&raw[i], "", XMEM_ROLE_READER, 0), i < 4 ? 0 : -EDQUOT);
	}
	was_refused(&raw[4], XMEM_QUOTA_USER_POOLS, "user_max_pools", 1);
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

/* ---- the request ---- */

TEST(P10_quota_lists_all_limits)
{
	struct xmem_quota_request request = { .size = sizeof(request) };
	unsigned int n = 0, of_pool = 0;
	uint32_t before = 0;
	struct raw raw;

	raw_open(&raw);
	request.flags = XMEM_QUOTA_REFUSED;
	SAME(raw_request(&raw, XMEM_IOC_QUOTA, &request), -ENOENT);
	request.quota = 1;
	SAME(raw_request(&raw, XMEM_IOC_QUOTA, &request), -EINVAL);
	SAME(raw_join(&raw, new_name(), XMEM_ROLE_READER, 0), 0);
	for (;; n++) {
		request = (struct xmem_quota_request){
			.size = sizeof(request), .quota = n ? before + 1 : 0,
		};
		memset(request.name, 0x5a, sizeof(request.name));
		if (raw_request(&raw, XMEM_IOC_QUOTA, &request))
			break;
		CHECK(request.quota >= before && request.scope <= XMEM_QUOTA_OF_CLIENT);
		CHECK(request.name[0] && memchr(request.name, 0, sizeof(request.name)));
		CHECK(request.used <= request.most && !request.wanted && !request.level);
		CHECK((request.scope == XMEM_QUOTA_OF_USER) == (request.uid == geteuid()));
		of_pool += request.scope == XMEM_QUOTA_OF_POOL;
		before = request.quota;
	}
	SAME(raw_request(&raw, XMEM_IOC_QUOTA, &request), -ENOENT);
	CHECK(n > 8 && of_pool >= 4);
	SAME(quota_of(&raw, XMEM_QUOTA_POOL_CLIENTS).used, 1);
	SAME(quota_of(&raw, XMEM_QUOTA_POOL_CLIENTS).most, 64);
	SAME(quota_of(&raw, XMEM_QUOTA_POOL_SLOTS).most, 1024);
	CHECK(quota_of(&raw, XMEM_QUOTA_USER_POOLS).used >= 1);
	raw_close(&raw);
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
		struct xmem_slot_request slot = { .size = sizeof(slot), .slot = asker->slot };
		int err = raw_request(asker->raw, XMEM_IOC_RENEW, &slot);

		CHECK(!err || err == -ESTALE);		/* another thread was faster */
		i -= err != 0;
	}
	return NULL;
}

/* However many threads ask at once: a millisecond is counted for the slot. */
TEST_WITHIN(P4_a_slot_has_a_tenancy_a_millisecond_whoever_asks, 60)
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
	/* Each millisecond has one at most; the first and the last need not be whole. */
	CHECK(now_ns() - begin >= (ASKERS * ASKED - 2) * MS);
	SAME(xm_slot_row(&raw.map, attached.slot[0])->tenancies, 1 + ASKERS * ASKED);
	/* Who detaches and attaches gets slots that are old enough. */
	for (i = 0; i < 20; i++) {
		struct xmem_slot_request slot = { .size = sizeof(slot), .slot = attached.slot[0] };

		SAME(raw_request(&raw, XMEM_IOC_DETACH, &slot), 0);
		SAME(raw_attach(&raw, file, 1, &attached), 0);
	}
	raw_close(&raw);
	close(file);
}

/* ---- memory cgroups ---- */

#define CGROUPS	"/run/conform-cgroups"

static void put_into(const char *path, const char *text)
{
	int file = open(path, O_WRONLY | O_CLOEXEC);

	if (file < 0 || write(file, text, strlen(text)) != (ssize_t)strlen(text))
		FAIL("%s: %s: %s", path, text, strerror(errno));
	close(file);
}

/* Bytes of the slabs that the group pays for. */
static uint64_t slabs_of(const char *group)
{
	char path[128], line[128];
	unsigned long long n = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/memory.stat", group);
	file = fopen(path, "re");
	CHECK(file);
	while (fgets(line, sizeof(line), file))
		sscanf(line, "slab_unreclaimable %llu", &n);
	fclose(file);
	return n;
}

struct payer {
	unsigned int user;
	char group[64];
};

static void show_from_a_group(void *argument)
{
	const struct payer *payer = argument;
	struct raw raw;
	char path[96];
	int file, i;

	snprintf(path, sizeof(path), "%s/cgroup.procs", payer->group);
	put_into(path, "0");
	become(payer->user);
	file = new_memfd(XMEM_GROUP_SLOTS * BYTES, GOOD_SEALS);
	raw_start(&raw, new_name(), XMEM_ROLE_WRITER);
	for (i = 0; i < 4; i++)
		SAME(raw_attach(&raw, file, XMEM_GROUP_SLOTS, NULL), 0);
	tell_parent(1);
	hear_parent();
	raw_close(&raw);
	close(file);
}

/*
 * What the work item of sysfs allocates: the same client costs its group more when it is shown
 * than when it is not. Without an owner the root group would pay for both alike.
 */
TEST_WITHIN(P10_what_a_work_item_allocates_is_charged_to_who_causes_it, 60)
{
	struct payer payer = { .user = new_user() };
	uint64_t slabs[2];
	struct child *child;
	char old[32];
	int shown;

	CHECK(!mkdir(CGROUPS, 0755) || errno == EEXIST);
	if (mount("none", CGROUPS, "cgroup2", 0, NULL))
		skip("there are no cgroups of version 2: %s", strerror(errno));
	put_into(CGROUPS "/cgroup.subtree_control", "+memory");
	set_parameter("user_max_entries", "0", old);
	for (shown = 0; shown < 2; shown++) {
		if (shown)
			set_parameter("user_max_entries", old, NULL);
		snprintf(payer.group, sizeof(payer.group), CGROUPS "/shown-%d", shown);
		CHECK(!mkdir(payer.group, 0755));
		child = spawn(show_from_a_group, &payer);
		hear(child);
		if (shown)
			EVENTUALLY(seen(payer.user, "entries") > 4 * XMEM_GROUP_SLOTS * 8);
		else
			SAME(seen(payer.user, "entries"), 0);
		slabs[shown] = slabs_of(payer.group);
		tell(child, 1);
		finish_child(child);
		EVENTUALLY(!rmdir(payer.group));
	}
	printf("    %llu bytes of slabs, shown %llu\n", (unsigned long long)slabs[0],
	       (unsigned long long)slabs[1]);
	/* A struct of 100 bytes and more for each of 256 slots, less what is counted late. */
	CHECK(slabs[1] > slabs[0] + 16384);
	CHECK(!umount(CGROUPS));
	EVENTUALLY(has_nothing(payer.user));
}
