// SPDX-License-Identifier: MIT
/*
 * The limits of P2. If a debugger or a core dump delays the kernel's teardown of a process, its
 * client ends later, and then the host releases all that it held. An io_uring ring with registered
 * memory can outlive its process: it keeps no client alive, and reaches no pages of other clients.
 */
#include <linux/io_uring.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "harness.h"

#define BYTES	4096

struct holder {
	const char *name;
	uint64_t token;
	bool crash;
};

static void hold_one(void *argument)
{
	struct holder *holder = argument;
	struct xmem_pool *pool = open_reader(holder->name);

	CHECK(xmem_get(pool, holder->token));
	tell_parent(1);
	hear_parent();
	signal(SIGSEGV, SIG_DFL);
	raise(SIGSEGV);
}

TEST(P2_killed_while_a_debugger_holds_it)
{
	struct holder holder = { .name = new_name() };
	struct xmem_pool *writer = open_writer(holder.name, 1, BYTES);
	struct xmem_buffer *kept;
	struct child *child;
	int64_t start;
	int status;

	holder.token = publish_kept(writer, 1, &kept);
	child = spawn(hold_one, &holder);
	hear(child);
	xmem_release(kept);
	if (ptrace(PTRACE_SEIZE, child->pid, NULL, PTRACE_O_TRACEEXIT))
		skip("ptrace: %s", strerror(errno));
	CHECK(!kill(child->pid, SIGKILL));
	start = now_ns();
	SAME(waitpid(child->pid, &status, 0), child->pid);
	SAME(status >> 8, SIGTRAP | PTRACE_EVENT_EXIT << 8);
	/* It is killed, and its debugger keeps its memory: it holds. */
	SAME(stat_of(writer).holds, 1);
	REFUSED(xmem_acquire(writer, BYTES, 50 * MS), ETIMEDOUT);
	CHECK(!ptrace(PTRACE_CONT, child->pid, NULL, 0));
	died_of_kill(child);
	printf("    delayed by the debugger: %lld ms\n", (long long)(now_ns() - start) / 1000000);
	check_quiet(writer, 1);
	publish_stamp(writer, 2);
	xmem_pool_close(writer);
}

/* ---- a core dump, piped to a program that takes its time ---- */

static void write_file(const char *path, const char *text, mode_t mode)
{
	int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

	CHECK(file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text));
	close(file);
}

TEST(P2_killed_while_it_is_being_dumped)
{
	struct holder holder = { .name = new_name() };
	struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };
	char folder[] = "/tmp/conform.XXXXXX", path[3][64], text[256];
	struct xmem_buffer *kept;
	struct xmem_pool *writer;
	struct child *child;
	int64_t start;
	int go, status;

	if (!in_vm())
		skip("core_pattern is the whole machine's: only in the virtual machine");
	CHECK(mkdtemp(folder));
	snprintf(path[0], sizeof(path[0]), "%s/go", folder);
	snprintf(path[1], sizeof(path[1]), "%s/dump", folder);
	CHECK(!mkfifo(path[0], 0600));
	/* Opening the FIFO means that the dump is under way; closing it lets the dump continue. */
	snprintf(text, sizeof(text), "#!/bin/sh\ncat %s >/dev/null\ncat >/dev/null\n", path[0]);
	write_file(path[1], text, 0700);
	snprintf(text, sizeof(text), "|%s", path[1]);
	write_file("/proc/sys/kernel/core_pattern", text, 0600);
	setrlimit(RLIMIT_CORE, &unlimited);

	writer = open_writer(holder.name, 1, BYTES);
	holder.token = publish_kept(writer, 1, &kept);
	child = spawn(hold_one, &holder);
	hear(child);
	xmem_release(kept);
	tell(child, 1);
	start = now_ns();
	go = open(path[0], O_WRONLY | O_CLOEXEC);
	CHECK(go >= 0);
	SAME(stat_of(writer).holds, 1);
	REFUSED(xmem_acquire(writer, BYTES, 50 * MS), ETIMEDOUT);
	close(go);
	SAME(waitpid(child->pid, &status, 0), child->pid);
	child->pid = 0;
	CHECK(WIFSIGNALED(status) && WCOREDUMP(status));
	printf("    delayed by the dump: %lld ms\n", (long long)(now_ns() - start) / 1000000);
	write_file("/proc/sys/kernel/core_pattern", "core", 0600);
	check_quiet(writer, 1);
	publish_stamp(writer, 2);
	xmem_pool_close(writer);
	unlink(path[0]);
	unlink(path[1]);
	rmdir(folder);
}

/* ---- io_uring ---- */

struct ring {
	int file;
	struct io_uring_params params;
	unsigned int *sq, *cq;		/* the two mapped rings, as words */
	struct io_uring_sqe *sqe;
};

static int ring_setup(struct ring *ring)
{
	struct io_uring_params *p = &ring->params;

	memset(ring, 0, sizeof(*ring));
	ring->file = syscall(SYS_io_uring_setup, 4, p);
	if (ring->file < 0)
		return -errno;
	ring->sq = mmap(NULL, p->sq_off.array + p->sq_entries * 4, PROT_READ | PROT_WRITE,
			MAP_SHARED, ring->file, IORING_OFF_SQ_RING);
	ring->cq = mmap(NULL, p->cq_off.cqes + p->cq_entries * sizeof(struct io_uring_cqe),
			PROT_READ | PROT_WRITE, MAP_SHARED, ring->file, IORING_OFF_CQ_RING);
	ring->sqe = mmap(NULL, p->sq_entries * sizeof(*ring->sqe), PROT_READ | PROT_WRITE,
			 MAP_SHARED, ring->file, IORING_OFF_SQES);
	CHECK(ring->sq != MAP_FAILED && ring->cq != MAP_FAILED && ring->sqe != MAP_FAILED);
	return 0;
}

/* One read of @file into the registered buffer. Returns the kernel's answer. */
static int ring_read_fixed(struct ring *ring, int file, uint64_t address, unsigned int bytes)
{
	char *sq = (char *)ring->sq, *cq = (char *)ring->cq;
	unsigned int *tail = (unsigned int *)(sq + ring->params.sq_off.tail);
	unsigned int *array = (unsigned int *)(sq + ring->params.sq_off.array);
	unsigned int *head = (unsigned int *)(cq + ring->params.cq_off.head);
	struct io_uring_cqe *cqe;

	ring->sqe[0] = (struct io_uring_sqe){
		.opcode = IORING_OP_READ_FIXED, .fd = file, .addr = address, .len = bytes,
		.buf_index = 0,
	};
	array[*tail & (ring->params.sq_entries - 1)] = 0;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	if (syscall(SYS_io_uring_enter, ring->file, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0)
		return -errno;
	cqe = (struct io_uring_cqe *)(cq + ring->params.cq_off.cqes) +
	      (*head & (ring->params.cq_entries - 1));
	__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
	return cqe->res;
}

struct pinner {
	struct holder holder;
	int source[2];			/* a pipe; the other process writes into it */
};

/* After its parent's death: store through the ring, then report the result. */
static void other_writes(struct ring *ring, struct pinner *pinner, uint64_t address)
{
	tell_parent(1);
	while (!on_kernel())
		pause();		/* its existence is enough */
	hear_parent();
	tell_parent((uint32_t)ring_read_fixed(ring, pinner->source[0], address, 4096));
	for (;;)
		pause();
}

static void pin_own_area(void *argument)
{
	struct pinner *pinner = argument;
	struct ring ring;
	struct raw raw;
	struct iovec area;
	int err;

	raw_start(&raw, pinner->holder.name, XMEM_ROLE_READER);
	raw_hold(&raw, pinner->holder.token);
	err = ring_setup(&ring);
	if (!err) {
		uintptr_t hold = (uintptr_t)xm_hold(&raw.map, raw.link.join.client, 0);

		area.iov_base = (void *)(hold & ~4095UL);
		area.iov_len = 4096;
		if (syscall(SYS_io_uring_register, ring.file, IORING_REGISTER_BUFFERS, &area, 1))
			err = -errno;
	}
	tell_parent((uint32_t)err);
	if (err)
		return;
	switch (syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL)) {
	case 0:
		close(raw.link.file);
		other_writes(&ring, pinner, (uintptr_t)area.iov_base);
	}
	for (;;)
		pause();
}

static const char pwned[4096] = { [0 ... 4095] = 'P' };

TEST(P2_killed_while_io_uring_has_its_area_pinned)
{
	struct pinner pinner = { .holder.name = new_name() };
	struct xmem_pool *writer = open_writer(pinner.holder.name, 1, BYTES);
	struct xmem_buffer *kept;
	struct raw next[4];
	struct child *child;
	unsigned int i;
	int err;

	CHECK(!pipe2(pinner.source, O_CLOEXEC));
	pinner.holder.token = publish_kept(writer, 1, &kept);
	child = spawn(pin_own_area, &pinner);
	err = (int32_t)hear(child);
	xmem_release(kept);
	if (err == -EOPNOTSUPP || err == -EFAULT)
		skip("this kernel registers no memory of files (%s); 6.12 does", strerror(-err));
	if (err)
		skip("io_uring: %s", strerror(-err));
	hear(child);				/* the other process is there */
	kill_child(child);
	check_quiet(writer, 1);

	if (on_kernel()) {
		/* The dead client's pages are still pinned, so nobody may get them. */
		for (i = 0; i < 4; i++)
			raw_start(&next[i], pinner.holder.name, XMEM_ROLE_READER);
		SAME(write(pinner.source[1], pwned, sizeof(pwned)), sizeof(pwned));
		tell(child, 1);
		SAME((int32_t)hear(child), sizeof(pwned));
		SAME(stat_of(writer).holds, 0);
		SAME(stat_of(writer).held, 0);
		for (i = 0; i < 4; i++)
			raw_close(&next[i]);
	}
	publish_stamp(writer, 2);
	close(pinner.source[0]);
	close(pinner.source[1]);
	check_quiet(writer, 1);
	xmem_pool_close(writer);
}

/* A ring in which the client's file is registered keeps that file, and nothing else. */
static void register_own_file(void *argument)
{
	struct holder *holder = argument;
	struct ring ring;
	struct raw raw;
	int err;

	raw_start(&raw, holder->name, XMEM_ROLE_READER);
	raw_hold(&raw, holder->token);
	err = ring_setup(&ring);
	if (!err &&
	    syscall(SYS_io_uring_register, ring.file, IORING_REGISTER_FILES, &raw.link.file, 1))
		err = -errno;
	tell_parent((uint32_t)err);
	if (!err && !syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL)) {
		close(raw.link.file);
		tell_parent(1);
	}
	for (;;)
		pause();
}

TEST(P2_killed_while_io_uring_has_its_file)
{
	struct holder holder = { .name = new_name() };
	struct xmem_pool *writer = open_writer(holder.name, 1, BYTES);
	struct xmem_buffer *kept;
	struct child *child;
	int err;

	holder.token = publish_kept(writer, 1, &kept);
	child = spawn(register_own_file, &holder);
	err = (int32_t)hear(child);
	xmem_release(kept);
	if (err)
		skip("io_uring: %s", strerror(-err));
	hear(child);				/* another process has the ring, too */
	SAME(stat_of(writer).holds, 1);
	kill_child(child);
	check_quiet(writer, 1);
	publish_stamp(writer, 2);
	xmem_pool_close(writer);
}
