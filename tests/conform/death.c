// SPDX-License-Identifier: MIT
/*
 * P2: a dead process holds nothing, even if other processes keep copies of its descriptor or its
 * memory, or of resources that it had registered. delays.c tests what delays the kernel's teardown
 * of a process, and kills.c tests kills inside the protocol.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "harness.h"

#define BYTES	4096

/* The buffers that a victim holds, and its other actions before it is killed. */
struct victim {
	const char *name;
	uint64_t token[3];
	void (*also)(struct victim *victim);
	bool ended;			/* by its other actions */
	bool take_file;			/* it sends its file: into @file */
	int file;
	struct xmem_pool *pool;
};

static void victim_body(void *argument)
{
	struct victim *victim = argument;
	unsigned int i;

	victim->pool = open_reader(victim->name);
	for (i = 0; i < 3; i++)
		CHECK(xmem_get(victim->pool, victim->token[i]));
	if (victim->also)
		victim->also(victim);
	tell_parent(1);
	for (;;)
		pause();
}

static void ready(struct child *child)
{
	SAME(hear(child), 1);
}

/* A victim stands ready, and is the only holder of @writer's three published buffers. */
static struct child *run_victim(struct victim *victim, struct xmem_pool *writer,
				void (*body)(void *argument))
{
	struct xmem_buffer *kept[3];
	struct child *child;
	unsigned int i;

	for (i = 0; i < 3; i++)
		victim->token[i] = publish_kept(writer, i, &kept[i]);
	child = spawn(body, victim);
	if (victim->take_file)
		victim->file = receive_file(child->link);
	ready(child);
	for (i = 0; i < 3; i++)
		xmem_release(kept[i]);
	if (!victim->ended) {
		SAME(stat_of(writer).holds, 3);
		SAME(stat_of(writer).clients, 2);
	}
	return child;
}

/* A pool of three buffers, all held by a victim of the library. */
static struct child *start_victim(struct victim *victim, struct xmem_pool **ret_writer)
{
	struct child *child;

	victim->name = new_name();
	*ret_writer = open_writer(victim->name, 3, BYTES);
	child = run_victim(victim, *ret_writer, victim_body);
	if (!victim->ended)
		REFUSED(xmem_acquire(*ret_writer, BYTES, 0), EAGAIN);
	return child;
}

/* Every buffer is back, and can be used. */
static void all_back(struct xmem_pool *writer)
{
	struct xmem_buffer *b[3];
	unsigned int i;

	check_quiet(writer, 1);
	for (i = 0; i < 3; i++)
		CHECK((b[i] = xmem_acquire(writer, BYTES, 0)));
	for (i = 0; i < 3; i++)
		xmem_release(b[i]);
	xmem_pool_close(writer);
}

TEST(P2_killed_while_it_holds)
{
	struct victim victim = { 0 };
	struct xmem_pool *writer;
	struct child *child = start_victim(&victim, &writer);

	kill_child(child);
	all_back(writer);
}

TEST(P2_killed_while_a_waiting_writer_needs_its_buffers)
{
	struct victim victim = { 0 };
	struct xmem_pool *writer;
	struct child *child = start_victim(&victim, &writer);
	struct xmem_buffer *b;

	CHECK(!kill(child->pid, SIGKILL));
	b = xmem_acquire(writer, BYTES, patience_ns());
	CHECK(b);
	xmem_release(b);
	died_of_kill(child);
	all_back(writer);
}

static void fork_idle(struct victim *victim)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid) {
		/* Keep what it inherited, also what a fork handler of the library does not see. */
		for (;;)
			pause();
	}
}

TEST(P2_killed_while_idle_forked_child_keeps_the_file)
{
	struct victim victim = { .also = fork_idle };
	struct xmem_pool *writer;
	struct child *child = start_victim(&victim, &writer);

	kill_child(child);
	all_back(writer);
}

/* ---- with the client's file itself, past the library ---- */

static void raw_victim(void *argument)
{
	struct victim *victim = argument;
	struct raw raw;
	unsigned int i;

	raw_start(&raw, victim->name, XMEM_ROLE_READER);
	for (i = 0; i < 3; i++)
		raw_hold(&raw, victim->token[i]);
	victim->file = raw.link.file;
	victim->also(victim);
	tell_parent(1);
	for (;;)
		pause();
}

static struct child *start_raw_victim(struct victim *victim, struct xmem_pool **ret_writer)
{
	victim->name = new_name();
	*ret_writer = open_writer(victim->name, 3, BYTES);
	return run_victim(victim, *ret_writer, raw_victim);
}

static void raw_fork(struct victim *victim)
{
	/* This avoids every handler that a library could have installed. */
	pid_t pid = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);

	CHECK(pid >= 0);
	while (!pid)
		pause();
}

TEST(P2_killed_while_a_child_by_bare_clone_keeps_the_file)
{
	struct victim victim = { .also = raw_fork };
	struct xmem_pool *writer;
	struct child *child = start_raw_victim(&victim, &writer);

	kill_child(child);
	all_back(writer);
}

static void raw_fork_and_close(struct victim *victim)
{
	pid_t pid = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);

	CHECK(pid >= 0);
	if (!pid)
		close(victim->file);
	while (!pid)
		pause();
}

TEST(P2_killed_while_a_child_keeps_only_what_memory_it_inherited)
{
	struct victim victim = { .also = raw_fork_and_close };
	struct xmem_pool *writer;
	struct child *child = start_raw_victim(&victim, &writer);

	kill_child(child);
	all_back(writer);
}

static int sockets[2];

static void send_it_nowhere(struct victim *victim)
{
	send_file(sockets[1], victim->file);
}

TEST(P2_killed_while_its_file_is_in_flight_in_a_socket)
{
	struct victim victim = { .also = send_it_nowhere };
	struct xmem_pool *writer;
	struct child *child;

	CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets));
	child = start_raw_victim(&victim, &writer);
	kill_child(child);
	all_back(writer);
	close(sockets[0]);
	close(sockets[1]);
}

static void send_it_here(struct victim *victim)
{
	send_file(parent_link(), victim->file);
}

TEST(P2_killed_while_another_process_has_a_copy_of_its_file)
{
	struct victim victim = { .also = send_it_here, .take_file = true };
	struct xmem_pool *writer;
	struct child *child = start_raw_victim(&victim, &writer);

	kill_child(child);
	all_back(writer);
	close(victim.file);
}

/* ---- other ends of an address space ---- */

static void become_cat(struct victim *victim)
{
	int in[2];

	CHECK(!pipe(in));		/* both ends stay open: it reads for ever */
	CHECK(dup2(in[0], 0) == 0);
	tell_parent(1);
	execl("/bin/cat", "cat", NULL);
	FAIL("/bin/cat: %s", strerror(errno));
}

TEST(P2_exec_ends_the_client)
{
	struct victim victim = { .also = become_cat, .ended = true };
	struct xmem_pool *writer;
	struct child *child = start_victim(&victim, &writer);

	all_back(writer);
	kill_child(child);
}

static void keep_file_and_become_cat(struct victim *victim)
{
	CHECK(!fcntl(victim->file, F_SETFD, 0));
	become_cat(victim);
}

TEST(P2_exec_ends_the_client_though_its_file_stays_open)
{
	struct victim victim = { .also = keep_file_and_become_cat, .ended = true };
	struct xmem_pool *writer;
	struct child *child;

	kernel_only("the daemon sees processes and sockets, and both live on");
	child = start_raw_victim(&victim, &writer);
	all_back(writer);
	kill_child(child);
}

static bool main_thread_is_dead(void)
{
	char path[64], text[128] = "";
	FILE *file;
	char *state;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", getpid());
	file = fopen(path, "re");
	CHECK(file && fgets(text, sizeof(text), file));
	fclose(file);
	state = strrchr(text, ')');
	return state && state[1] && state[2] == 'Z';
}

static void *outlive_main(void *argument)
{
	EVENTUALLY(main_thread_is_dead());
	tell_parent(1);
	for (;;)
		pause();
	return NULL;
}

static void end_main_thread(struct victim *victim)
{
	pthread_t other;

	CHECK(!pthread_create(&other, NULL, outlive_main, victim));
	syscall(SYS_exit, 0);		/* of this thread alone, past all clean-up */
}

/* So its exit closes the client's file while other threads still run. */
static void end_main_thread_with_files(struct victim *victim)
{
	pthread_t other;

	CHECK(!pthread_create(&other, NULL, outlive_main, victim));
	CHECK(!unshare(CLONE_FILES));
	syscall(SYS_exit, 0);
}

static void last_thread_ends_it(void (*end_one)(struct victim *victim))
{
	struct victim victim = { .also = end_one };
	struct xmem_pool *writer;
	struct child *child = start_victim(&victim, &writer);
	struct raw other;

	/* Once the host answers another client, it has had time to see the thread's end. */
	raw_start(&other, victim.name, XMEM_ROLE_READER);
	SAME(stat_of(writer).holds, 3);
	SAME(stat_of(writer).clients, 3);
	raw_close(&other);
	kill_child(child);
	all_back(writer);
}

TEST(P2_the_client_lives_until_its_last_thread_has_gone)
{
	last_thread_ends_it(end_main_thread);
}

TEST(P2_a_thread_that_ends_with_files_of_its_own_ends_no_client)
{
	last_thread_ends_it(end_main_thread_with_files);
}

static int sleep_for_ever(void *argument)
{
	for (;;)
		pause();
	return 0;
}

static void share_memory(struct victim *victim)
{
	size_t bytes = 65536;
	char *stack = malloc(bytes);

	CHECK(stack);
	CHECK(clone(sleep_for_ever, stack + bytes, CLONE_VM | SIGCHLD, NULL) > 0);
}

/* The other process could still store into the area, so it loses the area before the copy (P1). */
TEST(P2_memory_shared_with_another_process_keeps_no_client)
{
	struct victim victim = { .also = share_memory };
	struct xmem_pool *writer;
	struct child *child;
	char path[64];
	FILE *list;
	int other = 0;

	kernel_only("the daemon sees processes, not address spaces");
	child = start_raw_victim(&victim, &writer);
	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", child->pid, child->pid);
	list = fopen(path, "r");
	if (!list || fscanf(list, "%d", &other) != 1)
		skip("%s: this kernel does not list children", path);
	fclose(list);
	kill_child(child);
	EVENTUALLY(!stat_of(writer).holds);
	CHECK(!kill(other, SIGKILL));
	all_back(writer);
}

static void publish_and_hold(void *argument)
{
	struct victim *victim = argument;
	struct xmem_pool *pool = open_writer(victim->name, 2, BYTES);

	CHECK(xmem_get(pool, victim->token[0]));
	tell_parent(xmem_pool_client(pool));
	hear_parent();
	publish_stamp(pool, 5);
	tell_parent(1);
	hear_parent();
}

/* Its ring is kept, and its area with the ring. The buffers that it held are not. */
TEST(P2_killed_with_its_ring_in_flight_it_holds_nothing_else)
{
	struct victim victim = { .name = new_name() };
	struct xmem_pool *writer = open_writer(victim.name, 1, BYTES);
	struct xmem_pool *reader = open_reader(victim.name);
	struct xmem_subscription *s;
	struct xmem_buffer *kept;
	struct child *child;

	victim.token[0] = publish_kept(writer, 1, &kept);
	child = spawn(publish_and_hold, &victim);
	s = follow(reader, (int)hear(child), 0);
	tell(child, 1);
	ready(child);
	xmem_release(kept);
	SAME(stat_of(writer).holds, 1);
	kill_child(child);
	EVENTUALLY(stat_of(writer).zombies == 1);
	SAME(stat_of(writer).holds, 0);
	publish_stamp(writer, 2);
	SAME(stat_of(writer).zombies, 1);
	xmem_release(receive_one(s));
	REFUSED(xmem_receive(s, 0), EPIPE);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	check_quiet(writer, 1);
	xmem_pool_close(writer);
}

static void get_and_hold(void *argument)
{
	struct victim *victim = argument;
	struct xmem_pool *pool = open_reader(victim->name);

	CHECK(xmem_get(pool, victim->token[0]));
	tell_parent(xmem_pool_client(pool));
	hear_parent();
}

static bool finds_a_buffer(struct xmem_pool *writer)
{
	struct xmem_buffer *b = xmem_acquire(writer, BYTES, 0);

	xmem_release(b);
	return b;
}

/*
 * The owner has read the area of the first client, and now reads the next one's at its new place.
 * An id becomes free a moment after its client has ended, so a few clients may get another id.
 */
TEST(P2_the_next_client_with_a_dead_ones_id_holds)
{
	struct victim victim = { .name = new_name() };
	struct xmem_pool *writer = open_writer(victim.name, 1, BYTES);
	struct xmem_buffer *kept;
	struct child *child;
	uint64_t first = 0, id;
	bool again = false;
	int i;

	for (i = 0; i < 100 && !again; i++) {
		victim.token[0] = publish_kept(writer, i, &kept);
		child = spawn(get_and_hold, &victim);
		id = hear(child);
		xmem_release(kept);
		CHECK(!finds_a_buffer(writer));
		kill_child(child);
		EVENTUALLY(finds_a_buffer(writer));
		again = i && id == first;
		if (!i)
			first = id;
	}
	CHECK(again);
	xmem_pool_close(writer);
}

TEST(P2_closing_the_pool_with_buffers_out_keeps_them)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 2, BYTES), *reader = open_reader(name);
	struct xmem_buffer *b = publish_and_get(writer, reader, 3);

	xmem_pool_close(reader);
	SAME(stat_of(writer).holds, 1);
	SAME(stat_of(writer).clients, 2);
	SAME(stamp_of(b), 3);
	xmem_release(b);
	check_quiet(writer, 1);
	xmem_pool_close(writer);
}

static void come_and_die(void *argument)
{
	struct victim *victim = argument;
	struct xmem_pool *pool = open_reader(victim->name);
	struct xmem_subscription *s = follow(pool, (int)victim->file, XMEM_SUBSCRIBE_WAITS);

	CHECK(xmem_get(pool, victim->token[0]));
	tell_parent(1);
	for (;;)
		receive_one(s);
}

TEST_WITHIN(P2_restarted_200_times_without_a_leak, 60)
{
	struct victim victim = { .name = new_name() };
	struct xmem_pool *writer = OPEN(victim.name, .flags = XMEM_OPEN_WRITER, .clients = 4,
					.wait_bound_ns = 3600 * SECOND);
	unsigned int i, rounds = scaled(200);

	WORKED(xmem_preallocate(writer, BYTES, 3, NULL));
	victim.file = xmem_pool_client(writer);
	for (i = 0; i < rounds; i++) {
		struct xmem_buffer *kept;
		struct child *child;

		victim.token[0] = publish_kept(writer, i, &kept);
		child = spawn(come_and_die, &victim);
		ready(child);
		xmem_release(kept);
		publish_stamp(writer, i);
		publish_stamp(writer, i);
		kill_child(child);
		/* The table has four places, so the dead clients must have freed theirs. */
		EVENTUALLY(stat_of(writer).clients == 1);
	}
	all_back(writer);
}

static void writer_dies(void *argument)
{
	struct victim *victim = argument;
	struct xmem_pool *pool = open_writer(victim->name, 4, BYTES);
	struct xmem_buffer *kept;

	publish_stamp(pool, 1);
	CHECK(xmem_acquire(pool, BYTES, 0));
	tell_parent(publish_kept(pool, 2, &kept));
	for (;;)
		pause();
}

TEST_WITHIN(P2_writers_killed_50_times_leave_no_slot_behind, 60)
{
	struct victim victim = { .name = new_name() };
	struct xmem_pool *watcher = OPEN(victim.name, .slots = 128, .clients = 3);
	unsigned int i, rounds = scaled(50);

	for (i = 0; i < rounds; i++) {
		struct child *child = spawn(writer_dies, &victim);
		uint64_t token = hear(child);
		struct xmem_buffer *b = xmem_get(watcher, token);

		CHECK(b);
		SAME(stat_of(watcher).attached, 4);
		kill_child(child);
		/* Contents that are held stay, and belong to the host; all others go. */
		EVENTUALLY(stat_of(watcher).attached == 1);
		SAME(stat_of(watcher).limbo, 1);
		SAME(stamp_of(b), 2);
		xmem_release(b);
		EVENTUALLY(stat_of(watcher).attached == 0);
		check_quiet(watcher, 1);
	}
	xmem_pool_close(watcher);
}
