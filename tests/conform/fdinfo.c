// SPDX-License-Identifier: MIT
/*
 * What /proc/PID/fdinfo says of the module's files (docs/abi/fdinfo.txt): which client it is, and
 * what it holds (P10). These tests need the kernel module.
 */
#include <dirent.h>
#include <stdlib.h>

#include "harness.h"

#define BYTES	4096
#define WHY	"the daemon's files are sockets and memfds"

/* The value of one line of this process's descriptor, or "" if there is no such line. */
static const char *fdinfo(int file, const char *key)
{
	static char value[128];
	char path[64], line[160];
	size_t n = strlen(key);
	FILE *info;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", file);
	info = fopen(path, "re");
	CHECK(info);
	value[0] = 0;
	while (fgets(line, sizeof(line), info)) {
		if (strncmp(line, key, n) || strncmp(line + n, ":\t", 2))
			continue;
		line[strcspn(line, "\n")] = 0;
		snprintf(value, sizeof(value), "%s", line + n + 2);
	}
	fclose(info);
	return value;
}

static bool says(int file, const char *key, const char *want)
{
	return !strcmp(fdinfo(file, key), want);
}

static long long number(int file, const char *key)
{
	const char *value = fdinfo(file, key);

	return *value ? strtoll(value, NULL, 10) : -1;
}

/* The N of /sys/class/xmem/poolN whose name is @name; -1: there is none. */
static int pool_in_sysfs(const char *name)
{
	DIR *folder = opendir("/sys/class/xmem");
	struct dirent *entry;
	int found = -1;

	while (folder && found < 0 && (entry = readdir(folder))) {
		char path[128], text[64] = "";
		FILE *file;

		snprintf(path, sizeof(path), "/sys/class/xmem/%.30s/name", entry->d_name);
		file = fopen(path, "re");
		if (!file)
			continue;
		if (fgets(text, sizeof(text), file))
			text[strcspn(text, "\n")] = 0;
		fclose(file);
		if (!strcmp(text, name))
			found = atoi(entry->d_name + strlen("pool"));
	}
	if (folder)
		closedir(folder);
	return found;
}

TEST(P10_fdinfo_names_pool_client_and_role)
{
	const char *name = new_name();
	struct raw writer, reader;

	kernel_only(WHY);
	raw_open(&reader);
	CHECK(says(reader.link.file, "xmem-state", "") && says(reader.link.file, "xmem-pool", ""));
	raw_close(&reader);

	raw_start(&writer, name, XMEM_ROLE_WRITER);
	raw_start(&reader, name, XMEM_ROLE_READER);
	EVENTUALLY(pool_in_sysfs(name) >= 0);
	SAME(number(writer.link.file, "xmem-pool"), pool_in_sysfs(name));
	SAME(number(reader.link.file, "xmem-pool"), pool_in_sysfs(name));
	SAME(number(writer.link.file, "xmem-client"), writer.link.join.client);
	SAME(number(reader.link.file, "xmem-client"), reader.link.join.client);
	SAME(number(writer.link.file, "xmem-incarnation"), writer.link.join.incarnation);
	SAME(number(reader.link.file, "xmem-incarnation"), reader.link.join.incarnation);
	CHECK(says(writer.link.file, "xmem-role", "writer"));
	CHECK(says(reader.link.file, "xmem-role", "reader"));
	CHECK(says(reader.link.file, "xmem-state", "alive"));
	raw_close(&reader);
	raw_close(&writer);
}

TEST(P10_fdinfo_of_descriptors_that_requests_give)
{
	struct xmem_pool_fd_request pool = { .size = sizeof(pool) };
	struct xmem_poll_fd_request poll = { .size = sizeof(poll) };
	const char *name = new_name();
	struct raw writer, reader;
	char ring[32];

	kernel_only(WHY);
	raw_start(&reader, name, XMEM_ROLE_READER);
	raw_start(&writer, name, XMEM_ROLE_WRITER);
	SAME(raw_request(&reader, XMEM_IOC_POOL_FD, &pool), 0);
	CHECK(says(pool.fd, "xmem-roles", "reader writer") && says(pool.fd, "xmem-client", ""));
	SAME(number(pool.fd, "xmem-pool"), number(reader.link.file, "xmem-pool"));

	poll.kind = XMEM_POLL_RING;
	poll.publisher = writer.link.join.client;
	poll.incarnation = writer.link.join.incarnation;
	SAME(raw_request(&reader, XMEM_IOC_POLL_FD, &poll), 0);
	snprintf(ring, sizeof(ring), "ring %u", writer.link.join.client);
	CHECK(says(poll.fd, "xmem-polls", ring));
	SAME(number(poll.fd, "xmem-client"), reader.link.join.client);
	close(poll.fd);
	poll = (struct xmem_poll_fd_request){ .size = sizeof(poll), .kind = XMEM_POLL_JOINT };
	SAME(raw_request(&reader, XMEM_IOC_POLL_FD, &poll), 0);
	CHECK(says(poll.fd, "xmem-polls", "joint"));
	close(poll.fd);
	poll = (struct xmem_poll_fd_request){ .size = sizeof(poll), .kind = XMEM_POLL_SUBSCRIBERS };
	SAME(raw_request(&reader, XMEM_IOC_POLL_FD, &poll), 0);
	CHECK(says(poll.fd, "xmem-polls", "subscribers"));
	close(poll.fd);
	poll = (struct xmem_poll_fd_request){ .size = sizeof(poll), .kind = XMEM_POLL_CLIENT };
	SAME(raw_request(&reader, XMEM_IOC_POLL_FD, &poll), 0);
	CHECK(says(poll.fd, "xmem-polls", "client"));

	/* The files outlive the clients. */
	raw_close(&reader);
	raw_close(&writer);
	CHECK(says(poll.fd, "xmem-state", "ended"));
	SAME(number(pool.fd, "xmem-pool"), number(poll.fd, "xmem-pool"));
	close(poll.fd);
	close(pool.fd);
}

struct holder {
	const char *name;
	uint64_t token[2];
};

static void hold(void *argument)
{
	struct holder *holder = argument;
	struct raw raw;

	raw_start(&raw, holder->name, XMEM_ROLE_READER);
	raw_hold(&raw, holder->token[0]);
	raw_hold(&raw, holder->token[0]);
	raw_hold(&raw, holder->token[1]);
	send_file(parent_link(), raw.link.file);
	tell_parent(raw.link.join.client);
	hear_parent();
}

/* The holder is killed while this process has its file. Then another client gets its id. */
TEST(P10_fdinfo_counts_holds_and_forgets_those_of_the_dead)
{
	struct holder holder = { .name = new_name() };
	struct xmem_buffer *kept[2];
	struct xmem_pool *writer;
	struct child *child;
	struct raw next;
	int file, id;

	kernel_only(WHY);
	writer = open_writer(holder.name, 4, BYTES);
	holder.token[0] = publish_kept(writer, 1, &kept[0]);
	holder.token[1] = publish_kept(writer, 2, &kept[1]);
	child = spawn(hold, &holder);
	file = receive_file(child->link);
	id = hear(child);
	SAME(number(file, "xmem-client"), id);
	SAME(number(file, "xmem-holds"), 3);
	CHECK(says(file, "xmem-state", "alive"));
	kill_child(child);
	CHECK(says(file, "xmem-state", "ended"));
	SAME(number(file, "xmem-holds"), 0);
	SAME(number(file, "xmem-client"), id);

	EVENTUALLY(stat_of(writer).clients == 1);
	/* The id becomes free a moment after its row. */
	EVENTUALLY((raw_start(&next, holder.name, XMEM_ROLE_READER),
		    (int)next.link.join.client == id) || (raw_close(&next), false));
	raw_hold(&next, holder.token[1]);
	SAME(number(next.link.file, "xmem-holds"), 1);
	SAME(number(file, "xmem-holds"), 0);
	CHECK(number(file, "xmem-incarnation") < number(next.link.file, "xmem-incarnation"));
	raw_close(&next);
	close(file);
	xmem_release(kept[0]);
	xmem_release(kept[1]);
	xmem_pool_close(writer);
}
