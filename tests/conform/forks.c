// SPDX-License-Identifier: MIT
/*
 * One thread forks while another opens pools, makes buffers and maps them. Whatever that thread is
 * doing, the child finds neither pages nor descriptors of its parent's clients.
 */
#include <pthread.h>
#include <sys/wait.h>

#include "harness.h"

#define BYTES	4096

static struct {
	const char *name;
	bool over;			/* atomic */
	unsigned int opened;		/* atomic */
	struct xmem_pool *writer;
} storm;

static void *open_and_map(void *argument)
{
	while (!__atomic_load_n(&storm.over, __ATOMIC_ACQUIRE)) {
		struct xmem_pool *writer = open_writer(storm.name, 2, BYTES);
		struct xmem_pool *reader = open_reader(storm.name);
		struct xmem_buffer *b = publish_and_get(writer, reader, 5);
		unsigned int i;

		SAME(stamp_of(b), 5);
		xmem_release(b);
		for (i = 0; i < 40; i++)
			WORKED(xmem_preallocate(writer, BYTES, 1, NULL));
		xmem_pool_close(reader);
		xmem_pool_close(writer);
		__atomic_add_fetch(&storm.opened, 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* Lines of this process's maps that name memory of xmem. */
static unsigned int mappings(void)
{
	FILE *file = fopen("/proc/self/maps", "re");
	char line[512];
	unsigned int found = 0;

	if (!file)
		return 1000;
	while (fgets(line, sizeof(line), file))
		found += strstr(line, "memfd:xmem") || strstr(line, "/xmem-client");
	fclose(file);
	return found;
}

/*
 * Sockets, payloads and devices that the child has and its parent did not have before the storm. (A
 * file of /proc that the parent is reading keeps no client and no memory.)
 */
static unsigned int descriptors(uint64_t before)
{
	char path[32], target[64];
	unsigned int found = 0;
	ssize_t length;
	int fd;

	for (fd = 0; fd < 64; fd++) {
		if (before >> fd & 1 || fcntl(fd, F_GETFD) < 0)
			continue;
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		length = readlink(path, target, sizeof(target) - 1);
		target[length > 0 ? length : 0] = '\0';
		found += strstr(target, "socket:") || strstr(target, "memfd:xmem") ||
			 strstr(target, "/dev/xmem") || strstr(target, "/xmem-client") ||
			 strstr(target, "anon_inode:");
	}
	return found;
}

static uint64_t open_now(void)
{
	uint64_t set = 0;
	int fd;

	for (fd = 0; fd < 64; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			set |= 1ULL << fd;
	return set;
}

#ifdef __SANITIZE_ADDRESS__
#define FORKS	600	/* each takes 20 ms: a fork copies the tables of the sanitizer's shadow */
#else
#define FORKS	3000
#endif

TEST_WITHIN(P2_a_child_inherits_nothing_that_is_being_made, 120)
{
	unsigned int forks = scaled(FORKS), i;
	uint64_t before;
	pthread_t thread;

	storm.name = new_name();
	storm.over = false;
	/* This opens what a process opens only once. */
	xmem_pool_close(open_reader(storm.name));
	before = open_now();
	CHECK(!pthread_create(&thread, NULL, open_and_map, NULL));
	/* However slow the other thread is, forks meet all of its calls. */
	for (i = 0; i < forks || __atomic_load_n(&storm.opened, __ATOMIC_ACQUIRE) <= 10; i++) {
		int status = 0;
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (!pid)
			_exit(mappings() ? 1 : descriptors(before) ? 2 : 0);
		CHECK(waitpid(pid, &status, 0) == pid);
		if (status)
			FAIL("child %u of %u keeps %s", i, forks,
			     WIFEXITED(status) && WEXITSTATUS(status) == 1 ? "a mapping" :
									     "a descriptor");
	}
	__atomic_store_n(&storm.over, true, __ATOMIC_RELEASE);
	CHECK(!pthread_join(thread, NULL));
}

static void *receive_for_long(void *argument)
{
	CHECK(!xmem_receive(argument, XMEM_FOREVER));	/* until it is dropped */
	return NULL;
}

/* Only the parent has its wait for the rings of two writers, and its poll descriptors. */
TEST(P2_a_child_inherits_nothing_to_wait_on)
{
	const char *name = new_name();
	struct xmem_pool *writer[2] = { open_writer(name, 1, BYTES), open_writer(name, 1, BYTES) };
	struct xmem_pool *reader = open_reader(name);
	struct xmem_subscription *s = xmem_subscribe(reader, NULL);
	uint64_t before = open_now();
	pthread_t thread;
	int status;
	pid_t pid;

	CHECK(s);
	WORKED(xmem_pool_poll_fd(reader));
	WORKED(xmem_subscription_poll_fd(s));
	CHECK(!pthread_create(&thread, NULL, receive_for_long, s));
	if (on_kernel())	/* there such a wait needs two more of them */
		EVENTUALLY(descriptors(before) == 4);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid)
		_exit(descriptors(before));
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	SAME(WEXITSTATUS(status), 0);
	xmem_unsubscribe(s);
	CHECK(!pthread_join(thread, NULL));
	xmem_pool_close(reader);
	xmem_pool_close(writer[1]);
	xmem_pool_close(writer[0]);
}
