// SPDX-License-Identifier: MIT
/*
 * The other half of P10: /sys/class/xmem shows which pools, clients and slots there are, and which
 * users they belong to. These tests need the kernel module; sysfs_lines.c tests reading itself.
 */
#include <dirent.h>
#include <stdlib.h>

#include "quota_users.h"
#include "../shown.h"

#define BYTES	4096
#define WHY	"the daemon has no sysfs"

static char pool_dir[64];

/* One line of a file in @pool_dir, without its newline; "" if there is none. */
static const char *attribute(const char *name)
{
	static char text[256];
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", pool_dir, name);
	text[0] = 0;
	file = fopen(path, "re");
	if (!file)
		return text;
	if (fgets(text, sizeof(text), file))
		text[strcspn(text, "\n")] = 0;
	fclose(file);
	return text;
}

static long number(const char *name)
{
	const char *text = attribute(name);

	return *text ? strtol(text, NULL, 10) : -1;
}

/* The number of clients in a state, as /sys/class/xmem spells it. */
static int clients_that_are(const char *state)
{
	int id, count = 0, max = number("clients_max");

	for (id = 0; id < max; id++)
		count += !strcmp(shown_client(pool_dir, id).state, state);
	return count;
}

/* Do so many slots, and bytes of them, have that owner? */
static bool owns(uint32_t owner, unsigned int slots, uint64_t bytes)
{
	uint64_t found;

	return shown_owned(pool_dir, owner, &found) == slots && found == bytes;
}

/* Put the directory of the pool @name into pool_dir. Returns whether there is one. */
static bool find_pool(const char *name)
{
	DIR *folder = opendir("/sys/class/xmem");
	struct dirent *entry;
	bool found = false;

	while (folder && !found && (entry = readdir(folder))) {
		if (strncmp(entry->d_name, "pool", 4))
			continue;
		snprintf(pool_dir, sizeof(pool_dir), "/sys/class/xmem/%.30s", entry->d_name);
		found = !strcmp(attribute("name"), name);
	}
	if (folder)
		closedir(folder);
	return found;
}

struct holder {
	const char *name;
	uint64_t token;
};

static void hold(void *argument)
{
	struct holder *holder = argument;
	struct xmem_pool *pool = OPEN(holder->name, .label = "the holder");

	CHECK(xmem_get(pool, holder->token) && xmem_get(pool, holder->token));
	tell_parent(xmem_pool_client(pool));
	hear_parent();
}

TEST(P10_sysfs_shows_slots_and_who_holds_them)
{
	struct holder holder = { .name = new_name() };
	struct shown_client client;
	struct shown_slot slot;
	struct xmem_pool *writer;
	struct xmem_buffer *kept;
	struct child *child;
	unsigned int s;
	int me, id;

	kernel_only(WHY);
	writer = open_writer(holder.name, 4, BYTES);
	me = xmem_pool_client(writer);
	holder.token = publish_kept(writer, 1, &kept);
	s = xm_token_slot(holder.token);
	child = spawn(hold, &holder);
	id = hear(child);
	CHECK(find_pool(holder.name));
	slot = shown_slot(pool_dir, s);
	SAME(slot.holds, 3);
	CHECK(shown_holds(&slot, me) && shown_holds(&slot, id));
	xmem_release(kept);
	CHECK(owns(me, 4, 4 * BYTES));
	SAME(clients_that_are("alive"), 2);
	SAME(number("payloads"), 1);
	SAME(number("payload_bytes"), 4 * BYTES);
	SAME(number("kept_bytes"), 0);
	CHECK(number("page_bytes") > 0);
	slot = shown_slot(pool_dir, s);
	SAME(slot.changing, 0);
	SAME(slot.owner, me);
	CHECK(!strcmp(slot.state, "live"));
	SAME(slot.generation, xm_generation(holder.token));
	SAME(slot.length, BYTES);
	CHECK(slot.payload);
	SAME(slot.traits & XMEM_TRAIT_CUDA, 0);
	SAME(slot.claims, 0);
	SAME(slot.holds, 2);
	CHECK(shown_holds(&slot, id) && !shown_holds(&slot, me));
	slot = shown_slot(pool_dir, s ^ 1);	/* the one beside it, which nobody holds */
	SAME(slot.owner, me);
	SAME(slot.holds, 0);
	client = shown_client(pool_dir, id);
	CHECK(!strcmp(client.state, "alive") && !strcmp(client.role, "either"));
	SAME(client.pid, child->pid);
	SAME(client.uid, geteuid());
	CHECK(!strcmp(client.label, "the holder"));
	client = shown_client(pool_dir, me);
	CHECK(!strcmp(client.role, "writer"));
	SAME(client.pid, getpid());

	kill_child(child);
	slot = shown_slot(pool_dir, s);
	SAME(slot.holds, 0);
	CHECK(!shown_holds(&slot, id));
	EVENTUALLY(!shown_client(pool_dir, id).pid);
	EVENTUALLY(clients_that_are("alive") == 1);	/* a work item ends the client */
	xmem_pool_close(writer);
	EVENTUALLY(!find_pool(holder.name));
}

static void publish_and_end(void *argument)
{
	struct holder *holder = argument;
	struct xmem_pool *pool = open_writer(holder->name, 2, BYTES);

	tell_parent(xmem_pool_client(pool));
	hear_parent();
	publish_stamp(pool, 1);
	tell_parent(1);
	hear_parent();
}

TEST(P10_sysfs_shows_what_the_dead_have_left)
{
	struct holder holder = { .name = new_name() };
	struct shown_slot slot;
	struct xmem_pool *reader;
	struct xmem_subscription *s;
	struct xmem_buffer *b;
	struct child *child;
	int id;

	kernel_only(WHY);
	reader = open_reader(holder.name);
	child = spawn(publish_and_end, &holder);
	id = hear(child);
	s = follow(reader, id, 0);
	tell(child, 1);
	hear(child);
	kill_child(child);
	CHECK(find_pool(holder.name));
	EVENTUALLY(!strcmp(shown_client(pool_dir, id).state, "zombie"));
	EVENTUALLY(owns(XMEM_OWNER_HOST, 1, BYTES));
	SAME(number("huge_bytes"), 0);
	CHECK(number("kept_bytes") > 0);
	SAME(number("kept_bytes"), number("payload_bytes"));
	b = receive_one(s);
	REFUSED(xmem_receive(s, 0), EPIPE);
	EVENTUALLY(!shown_client(pool_dir, id).incarnation);
	slot = shown_slot(pool_dir, xm_token_slot(xmem_token(b)));
	SAME(slot.owner, XMEM_OWNER_HOST);
	SAME(slot.holds, 1);
	CHECK(shown_holds(&slot, xmem_pool_client(reader)));
	xmem_release(b);
	EVENTUALLY(owns(XMEM_OWNER_HOST, 0, 0));
	SAME(number("kept_bytes"), 0);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
}

/* Another user opens each kind of file before the mode changes, and reads it then. */
static void look_as_somebody_else(void *unused)
{
	static const char *const names[] = { "payloads", "buffers", "clients" };
	char path[160], text[32];
	int file[3], i;

	(void)unused;
	CHECK(!setgid(65534) && !setuid(65534));
	for (i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/%s", pool_dir, names[i]);
		file[i] = open(path, O_RDONLY | O_CLOEXEC);
		CHECK(file[i] >= 0);
	}
	for (;;) {
		for (i = 0; i < 3; i++)
			tell_parent(pread(file[i], text, sizeof(text), 0) < 0 ? errno : 0);
		hear_parent();
	}
}

/* Users that may join by the name at the time of the read can read the files. */
TEST(P10_sysfs_files_follow_the_mode)
{
	static const struct {
		uint32_t mode;
		int want;
	} steps[] = {
		{ 0600, EACCES }, { 0604, 0 }, { 0660, EACCES }, { 0606, 0 }, { 0640, EACCES },
	};
	const char *name = new_name();
	struct xmem_pool *writer;
	struct child *child = NULL;
	unsigned int i, file;

	kernel_only(WHY);
	if (geteuid())
		skip("only root can be another user");
	writer = open_writer(name, 1, BYTES);
	CHECK(find_pool(name));
	for (i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		WORKED(xmem_pool_set_mode(writer, steps[i].mode, XMEM_GID_SAME));
		if (child)
			tell(child, 1);
		else
			child = spawn(look_as_somebody_else, NULL);
		for (file = 0; file < 3; file++)
			SAME(hear(child), steps[i].want);
		SAME(number("gid"), getegid());
	}
	kill_child(child);
	xmem_pool_close(writer);
}

TEST(P10_sysfs_shows_what_a_pool_was_made_with)
{
	struct xmem_pool_options made = {
		.size = sizeof(made), .slots = 192, .clients = 9, .ring_entries = 32,
		.mode = 0640,
	};
	const char *name = new_name();
	struct xmem_pool *pool;

	kernel_only(WHY);
	pool = xmem_pool_open(name, &made);
	CHECK(pool);
	CHECK(find_pool(name));
	CHECK(!strcmp(attribute("mode"), "0640"));
	SAME(number("owner_uid"), geteuid());
	SAME(number("gid"), getegid());
	SAME(number("slots_max"), 192);
	SAME(number("clients_max"), 9);
	SAME(number("ring_entries"), 32);
	xmem_pool_close(pool);
}

/* Memory that a limit counts is given back, so that limit then lets the client join again. */
TEST(P10_pages_are_counted_and_given_back)
{
	const char *name = new_name();
	int file = new_memfd(BYTES, GOOD_SEALS), i;
	char full[32], old[32];
	struct raw writer, reader;
	long before, with_reader;

	kernel_only(WHY);
	raw_start(&writer, name, XMEM_ROLE_WRITER);
	CHECK(find_pool(name));
	before = number("page_bytes");
	raw_start(&reader, name, XMEM_ROLE_READER);
	with_reader = number("page_bytes");
	CHECK(with_reader > before);
	raw_close(&reader);
	EVENTUALLY(number("page_bytes") == before);
	EVENTUALLY(quota_of(&writer, XMEM_QUOTA_PAGE_BYTES).used == (uint64_t)before);
	snprintf(full, sizeof(full), "%ld", with_reader);
	set_parameter("max_bytes", full, old);
	for (i = 0; i < 3; i++) {
		raw_start(&reader, name, XMEM_ROLE_READER);
		SAME(raw_attach(&writer, file, 1, NULL), -EDQUOT);
		SAME(number("page_bytes"), with_reader);
		raw_close(&reader);
		EVENTUALLY(number("page_bytes") == before);
	}
	set_parameter("max_bytes", old, NULL);
	/* An attach that is refused for its payload takes no pages either. */
	for (i = 0; i < 2; i++) {
		struct xmem_attach_request request = {
			.size = sizeof(request), .fd = i ? -1 : file, .payload = i ? 777 : 0,
			.offset = BYTES, .stride = BYTES, .length = BYTES, .count = 1,
		};

		SAME(raw_request(&writer, XMEM_IOC_ATTACH, &request), i ? -ENOENT : -ERANGE);
		SAME(number("page_bytes"), before);
	}
	close(file);
	raw_close(&writer);
}
