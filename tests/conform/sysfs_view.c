// SPDX-License-Identifier: MIT
/*
 * The other half of P10: one can read under /sys/class/xmem which pools, clients
 * and slots there are, and whose they are. These tests need the kernel module.
 */
#include <dirent.h>
#include <stdarg.h>
#include <stdlib.h>

#include "harness.h"

#define BYTES	4096
#define WHY	"the daemon has no sysfs"

static char pool_dir[64];

/* One attribute below @pool_dir, without its newline; "" where there is none. */
static const char *attribute(const char *format, ...) __attribute__((format(printf, 1, 2)));
static const char *attribute(const char *format, ...)
{
	static char text[256];
	char path[128];
	va_list args;
	size_t n;
	FILE *file;

	n = snprintf(path, sizeof(path), "%s/", pool_dir);
	va_start(args, format);
	vsnprintf(path + n, sizeof(path) - n, format, args);
	va_end(args);
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
	const char *text = attribute("%s", name);

	return *text ? strtol(text, NULL, 10) : -1;
}

static bool says(const char *got, const char *want)
{
	return !strcmp(got, want);
}

/* The directory of the pool @name, into pool_dir: is there one? */
static bool find_pool(const char *name)
{
	DIR *folder = opendir("/sys/class/xmem");
	struct dirent *entry;
	bool found = false;

	while (folder && !found && (entry = readdir(folder))) {
		if (strncmp(entry->d_name, "pool", 4))
			continue;
		snprintf(pool_dir, sizeof(pool_dir), "/sys/class/xmem/%.30s", entry->d_name);
		found = says(attribute("name"), name);
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
	struct xmem_pool *writer;
	struct xmem_buffer *kept;
	struct child *child;
	unsigned int slot;
	char text[64];
	int me, id;

	kernel_only(WHY);
	writer = open_writer(holder.name, 4, BYTES);
	me = xmem_pool_client(writer);
	holder.token = publish_kept(writer, 1, &kept);
	slot = xm_token_slot(holder.token);
	child = spawn(hold, &holder);
	id = hear(child);
	xmem_release(kept);
	EVENTUALLY(find_pool(holder.name));
	EVENTUALLY(says(attribute("clients/%d/label", id), "the holder"));
	SAME(number("attached"), 4);
	SAME(number("attached_bytes"), 4 * BYTES);
	SAME(number("alive"), 2);
	SAME(number("payloads"), 1);
	SAME(number("payload_bytes"), 4 * BYTES);
	SAME(number("kept_bytes"), 0);
	CHECK(number("payloads") <= number("payloads_max"));
	CHECK(number("page_bytes") > 0 && number("page_bytes") <= number("page_bytes_max"));
	EVENTUALLY(says(attribute("slots/%u/state", slot), "live"));
	snprintf(text, sizeof(text), "%d", BYTES);
	CHECK(says(attribute("slots/%u/size", slot), text));
	CHECK(says(attribute("slots/%u/refs", slot), "2"));
	CHECK(says(attribute("slots/%u/claims", slot), "0"));
	snprintf(text, sizeof(text), "%d", me);
	CHECK(says(attribute("slots/%u/owner", slot), text));
	snprintf(text, sizeof(text), "%d", id);
	CHECK(says(attribute("slots/%u/holders", slot), text));
	snprintf(text, sizeof(text), "%d", child->pid);
	CHECK(says(attribute("clients/%d/pid", id), text));
	CHECK(says(attribute("clients/%d/role", id), "reader"));
	CHECK(says(attribute("clients/%d/state", id), "alive"));
	CHECK(says(attribute("clients/%d/holds", id), "2"));
	CHECK(says(attribute("clients/%d/role", me), "writer"));

	kill_child(child);
	EVENTUALLY(says(attribute("slots/%u/refs", slot), "0"));
	CHECK(says(attribute("slots/%u/holders", slot), ""));
	EVENTUALLY(says(attribute("clients/%d/pid", id), ""));
	SAME(number("alive"), 1);
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
	EVENTUALLY(find_pool(holder.name));
	EVENTUALLY(number("zombies") == 1);
	EVENTUALLY(says(attribute("clients/%d/state", id), "zombie"));
	EVENTUALLY(number("limbo") == 1);
	SAME(number("limbo_bytes"), BYTES);
	EVENTUALLY(number("limbo_age_ns") > 0);
	SAME(number("overdue"), 0);
	SAME(number("overdue_bytes"), 0);
	SAME(number("overdue_age_ns"), 0);
	SAME(number("huge_bytes"), 0);
	CHECK(number("kept_bytes") > 0);
	SAME(number("kept_bytes"), number("payload_bytes"));
	b = receive_one(s);
	REFUSED(xmem_receive(s, 0), EPIPE);
	EVENTUALLY(number("zombies") == 0);
	EVENTUALLY(says(attribute("slots/%u/owner", xm_token_slot(xmem_token(b))), "host"));
	xmem_release(b);
	EVENTUALLY(number("limbo") == 0 && number("attached") == 0);
	SAME(number("kept_bytes"), 0);
	SAME(number("limbo_bytes"), 0);
	SAME(number("limbo_age_ns"), 0);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
}

static void look_as_somebody_else(void *argument)
{
	char path[160], text[32];
	int file;

	CHECK(!setgid(65534) && !setuid(65534));
	for (;;) {
		snprintf(path, sizeof(path), "%s/attached", pool_dir);
		file = open(path, O_RDONLY | O_CLOEXEC);
		CHECK(file >= 0);
		tell_parent(read(file, text, sizeof(text)) < 0 ? errno : 0);
		close(file);
		snprintf(path, sizeof(path), "%s/clients/%d/role", pool_dir, *(int *)argument);
		file = open(path, O_RDONLY | O_CLOEXEC);
		CHECK(file >= 0);
		tell_parent(read(file, text, sizeof(text)) < 0 ? errno : 0);
		close(file);
		hear_parent();
	}
}

/* What the files say is for who may join by the name, as it is when they are read. */
TEST(P10_sysfs_is_for_whom_the_mode_lets_in)
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
	unsigned int i;
	int me;

	kernel_only(WHY);
	if (geteuid())
		skip("only root can be another user");
	writer = open_writer(name, 1, BYTES);
	me = xmem_pool_client(writer);
	EVENTUALLY(find_pool(name));
	EVENTUALLY(*attribute("clients/%d/role", me));
	for (i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		WORKED(xmem_pool_set_mode(writer, steps[i].mode, XMEM_GID_SAME));
		if (child)
			tell(child, 1);
		else
			child = spawn(look_as_somebody_else, &me);
		SAME(hear(child), steps[i].want);
		SAME(hear(child), steps[i].want);
		SAME(number("gid"), getegid());
	}
	kill_child(child);
	xmem_pool_close(writer);
}

/* Memory that a limit counts comes back, so the same limit lets the same client in again. */
TEST(P10_pages_are_counted_and_given_back)
{
	const char *name = new_name();
	int file = new_memfd(BYTES, GOOD_SEALS), i;
	char full[32], old[32];
	struct raw writer, reader;
	long before, with_reader;

	kernel_only(WHY);
	raw_start(&writer, name, XMEM_ROLE_WRITER);
	EVENTUALLY(find_pool(name));
	before = number("page_bytes");
	raw_start(&reader, name, XMEM_ROLE_READER);
	with_reader = number("page_bytes");
	CHECK(with_reader > before);
	raw_close(&reader);
	EVENTUALLY(number("page_bytes") == before);
	snprintf(full, sizeof(full), "%ld", with_reader);
	set_parameter("max_pool_bytes", full, old);
	for (i = 0; i < 3; i++) {
		raw_start(&reader, name, XMEM_ROLE_READER);
		SAME(raw_attach(&writer, file, 1, NULL), -EDQUOT);
		SAME(number("page_bytes"), with_reader);
		raw_close(&reader);
		EVENTUALLY(number("page_bytes") == before);
	}
	set_parameter("max_pool_bytes", old, NULL);
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
