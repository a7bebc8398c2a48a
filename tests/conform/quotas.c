// SPDX-License-Identifier: MIT
/*
 * P10 among users. A user's things are counted until they are gone. A request beyond a limit is
 * refused, and `quota` says which limit it was. Each test has a user of its own, for which it
 * changes the module's parameters, so these tests need the kernel module and a machine of their
 * own. quota_shares.c tests what users leave to each other.
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "quota_users.h"

#define MORE	3		/* how many more than at first a user may have */

/* ---- users ---- */

unsigned int new_user(void)
{
	kernel_only("the daemon is one user's");
	if (!in_vm() || geteuid())
		skip("parameters are the whole machine's: only as root in the virtual machine");
	CHECK(!chmod("/dev/xmem", 0666));
	return 20000 + getpid() % 10000;
}

void become(unsigned int user)
{
	CHECK(!setgid(user) && !setuid(user));
}

uint64_t seen(unsigned int user, const char *what)
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

bool has_nothing(unsigned int user)
{
	static const char *const words[] = {
		"pools", "files", "file_bytes", "page_bytes",
	};
	unsigned int i;

	for (i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (seen(user, words[i]))
			return false;
	return true;
}

/* ---- asking ---- */

struct xmem_quota_request quota_of(struct raw *raw, uint32_t quota)
{
	struct xmem_quota_request request = { .size = sizeof(request), .quota = quota };

	SAME(raw_request(raw, XMEM_IOC_QUOTA, &request), 0);
	SAME(request.quota, quota);
	return request;
}

void refused_by(struct raw *raw, uint32_t quota, const char *name, uint32_t level)
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

static void detach(struct scene *s)
{
	SAME(raw_slot(&s->writer, XMEM_OP_DETACH_FILE, s->attached[s->n].slot[0]), 0);
}

struct kind {
	uint32_t quota;
	const char *name;		/* of the parameter */
	int (*one)(struct scene *scene);
	void (*undo)(struct scene *scene);	/* NULL: taking one away does not lower the count */
	bool joins;			/* its own file is refused, not the writer's */
};

static const struct kind pools = {
	XMEM_QUOTA_USER_POOLS, "user_max_pools", one_pool, leave, true };
static const struct kind files = {
	XMEM_QUOTA_USER_FILES, "user_max_files", one_slot, detach, false };
static const struct kind file_bytes = {
	XMEM_QUOTA_USER_FILE_BYTES, "user_max_file_bytes", one_slot, detach, false };
static const struct kind page_bytes = {
	XMEM_QUOTA_USER_PAGE_BYTES, "user_max_page_bytes", one_client, leave, true };
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

/* A refused request changes no count, even of things that were counted before the refusal. */
static void is_refused(struct scene *s, const struct kind *kind)
{
	static const uint32_t all[] = {
		XMEM_QUOTA_USER_POOLS, XMEM_QUOTA_USER_FILES, XMEM_QUOTA_USER_FILE_BYTES,
		XMEM_QUOTA_USER_PAGE_BYTES,
	};
	uint64_t before[4];
	unsigned int i;

	for (i = 0; i < 4; i++)
		before[i] = quota_of(&s->writer, all[i]).used;
	SAME(kind->one(s), -EDQUOT);
	refused_by(kind->joins ? &s->more[s->n] : &s->writer, kind->quota, kind->name, 0);
	if (kind->joins)
		raw_close(&s->more[s->n]);
	for (i = 0; i < 4; i++)
		SAME(quota_of(&s->writer, all[i]).used, before[i]);
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
	if (on_kernel())		/* of a user, all users, the pool, the client */
		SAME(n, 4 + 2 + 4 + 1);
	SAME(quota_of(&raw, XMEM_QUOTA_POOL_CLIENTS).used, 1);
	SAME(quota_of(&raw, XMEM_QUOTA_POOL_CLIENTS).most, 64);
	SAME(quota_of(&raw, XMEM_QUOTA_POOL_SLOTS).most, 1024);
	CHECK(quota_of(&raw, XMEM_QUOTA_USER_POOLS).used >= 1);
	raw_close(&raw);
}

/* ---- whose refusal it was ---- */

/* Ask by a file that only this test knows. */
static int ask_by(int file, unsigned int request, void *argument)
{
	return ioctl(file, request, argument) ? -errno : 0;
}

static int join_by(int device)
{
	struct xmem_join_request request = {
		.size = sizeof(request), .abi = XMEM_ABI, .role = XMEM_ROLE_READER, .pool_fd = -1,
	};
	int err = ask_by(device, XMEM_IOC_JOIN, &request);

	return err ? err : request.fd;
}

/* The number of the limit, or -errno. */
static int refused_last(int file)
{
	struct xmem_quota_request request = {
		.size = sizeof(request), .flags = XMEM_QUOTA_REFUSED,
	};
	int err = ask_by(file, XMEM_IOC_QUOTA, &request);

	return err ? err : (int)request.quota;
}

static void *ask_in_a_thread(void *argument)
{
	SAME(refused_last(*(int *)argument), -ENOENT);
	return NULL;
}

static void everybody_asks(void *argument)
{
	int device, client[2], i;
	pthread_t thread;
	void *p;

	become(*(unsigned int *)argument);
	device = open("/dev/xmem", O_RDWR | O_CLOEXEC);
	CHECK(device >= 0);
	for (i = 0; i < 2; i++)
		client[i] = join_by(device);
	CHECK(client[0] >= 0 && client[1] >= 0);
	tell_parent(1);
	hear_parent();				/* no third pool is allowed */
	do
		p = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, client[0], 0);
	while (p != MAP_FAILED);
	SAME(errno, EDQUOT);
	SAME(refused_last(client[0]), XMEM_QUOTA_CLIENT_MAPPINGS);
	SAME(refused_last(client[1]), -ENOENT);
	SAME(refused_last(device), -ENOENT);
	SAME(join_by(device), -EDQUOT);
	SAME(refused_last(device), XMEM_QUOTA_USER_POOLS);
	SAME(refused_last(client[0]), XMEM_QUOTA_CLIENT_MAPPINGS);
	SAME(refused_last(client[1]), -ENOENT);
	CHECK(!pthread_create(&thread, NULL, ask_in_a_thread, &device));
	CHECK(!pthread_join(thread, NULL));
	tell_parent(1);
	hear_parent();				/* no pages are */
	SAME(join_by(device), -EDQUOT);
	SAME(refused_last(device), XMEM_QUOTA_USER_PAGE_BYTES);
	SAME(refused_last(client[1]), -ENOENT);
}

/* Several clients have joined by one file of the device, and another joins by it next. */
TEST(P10_nobody_is_told_what_another_was_refused)
{
	unsigned int user = new_user();
	struct child *child = spawn(everybody_asks, &user);
	char pools[32], bytes[32];

	hear(child);
	set_parameter("user_max_pools", "2", pools);
	tell(child, 1);
	hear(child);
	set_parameter("user_max_pools", pools, NULL);
	set_parameter("user_max_page_bytes", "0", bytes);
	tell(child, 1);
	finish_child(child);
	set_parameter("user_max_page_bytes", bytes, NULL);
	EVENTUALLY(has_nothing(user));
}
