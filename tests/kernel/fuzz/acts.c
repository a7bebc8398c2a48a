// SPDX-License-Identifier: MIT
/*
 * The acts of an op other than requests: mappings, files, processes, sysfs. executor_run undoes
 * their results, because it ends everything.
 */
#include <dirent.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "fuzz.h"

#define SOME_FILES	48		/* how far above the first one it looks for a file */
#define ELEMENTS(array)	(sizeof(array) / sizeof(*(array)))

int fuzz_some_file(struct fuzz_worker *w)
{
	int first = w->executor->first_file, tries = SOME_FILES, at;

	if (one_in(&w->a, 32))
		return chance(&w->a) % 4 - 2;
	for (at = chance(&w->a) % SOME_FILES; tries--; at = (at + 1) % SOME_FILES)
		if (fcntl(first + at, F_GETFD) >= 0)
			return first + at;
	return w->a.me->file;
}

/* ---- clients ---- */

static void join(struct fuzz_worker *w, const struct fuzz_op *op)
{
	struct actor *a = &w->a;
	union xm_request r;

	fuzz_settle(w->executor);
	raw_end(a->me);
	fields_fill(a, _IOC_NR(XMEM_IOC_JOIN), &r);
	if (one_in(a, 16))
		garble(a, &r, sizeof(r.join) / 4);
	if (raw_open(a->me) || raw_join(a->me, &r.join))
		return;
	/* Mostly the client maps its pool; some do not. */
	if (!one_in(a, 32) && !raw_map(a->me) && !one_in(a, 16))
		raw_map_area(a->me);
}

/* Part of the mappings goes for good, or becomes inaccessible; its addresses stay taken. */
static void lose(void *start, u64 bytes)
{
	if (start)
		mmap(start, bytes, PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

static void end(struct fuzz_worker *w, const struct fuzz_op *op)
{
	struct raw *me = w->a.me;

	switch (chance(&w->a) % 5) {
	case 0:
		lose(me->area, RAW_PAGE);	/* the rest keeps the client alive */
		break;
	case 1:
		lose(me->area, me->header.area_stride);
		break;
	case 2:
		if (me->file >= 0)
			close(me->file);
		me->file = -1;
		break;
	case 3:
		lose(me->base, me->join.total_bytes);
		break;
	default:
		fuzz_settle(w->executor);
		raw_end(me);
	}
}

/* ---- mappings ---- */

static void *some_page(struct actor *a)
{
	const struct raw *me = a->me;
	u64 pages = me->header.area_stride / RAW_PAGE;

	if (me->area && pages && one_in(a, 2))
		return (char *)me->area + chance(a) % pages * RAW_PAGE;
	if (!me->base)
		return NULL;
	return me->base + chance(a) % (me->join.total_bytes / RAW_PAGE) * RAW_PAGE;
}

static void read_pages(const char *start, u64 bytes)
{
	u64 at;

	for (at = 0; at < bytes; at += RAW_PAGE)
		(void)*(volatile const char *)(start + at);
}

static u64 some_offset(struct actor *a, u64 *bytes)
{
	const struct xmem_pool_header *h = &a->me->header;
	u64 from;

	*bytes = (1 + chance(a) % 4) * RAW_PAGE;
	switch (chance(a) % 4) {
	case 0:
		*bytes = h->area_stride;
		return h->areas_offset + (one_in(a, 2) ? a->me->join.client : chance(a) % 8) *
		       h->area_stride;
	case 1:
		*bytes = h->group_stride * (one_in(a, 4) ? 2 : 1);
		return h->groups_offset + chance(a) % 4 * h->group_stride;
	case 2:
		from = one_in(a, 4) ? odd_number(a) : 0;
		return (from & ~(u64)(RAW_PAGE - 1)) & (~0ULL >> 1);
	}
	return chance(a) % (a->me->join.total_bytes / RAW_PAGE + 2) * RAW_PAGE;
}

static void map(struct fuzz_worker *w, const struct fuzz_op *op)
{
	struct actor *a = &w->a;
	int protection = chance(a) % 2 ? chance(a) % 4 : chance(a) % 8;
	int flags = one_in(a, 8) ? MAP_PRIVATE : MAP_SHARED;
	u64 bytes, offset = some_offset(a, &bytes);
	int file = one_in(a, 8) ? fuzz_some_file(w) : a->me->file;
	char *start;

	if (one_in(a, 4))
		flags |= MAP_POPULATE;
	/* The earlier mapping goes; the new one stays for a while. */
	start = w->executor->arena + chance(a) % FUZZ_PLOTS * FUZZ_PLOT;
	if (bytes > FUZZ_PLOT)
		bytes = FUZZ_PLOT;
	start = mmap(start, bytes ? bytes : RAW_PAGE, protection, flags | MAP_FIXED, file, offset);
	if (start == MAP_FAILED)
		return;
	if (protection & PROT_READ && !op->nth)
		read_pages(start, bytes);
	if (one_in(a, 2))
		lose(start + chance(a) % 2 * RAW_PAGE, bytes);
}

static void remap(struct fuzz_worker *w, const struct fuzz_op *op)
{
	static const int advices[] = {
		MADV_DONTNEED, MADV_DOFORK, MADV_DONTFORK, MADV_REMOVE, MADV_DODUMP,
		MADV_WILLNEED, MADV_COLD, MADV_PAGEOUT, MADV_FREE, MADV_POPULATE_READ,
		MADV_POPULATE_WRITE,
	};
	struct actor *a = &w->a;
	char *at = some_page(a), *to;
	u64 bytes = (1 + chance(a) % 3) * RAW_PAGE;

	if (!at)
		return;
	switch (chance(a) % 4) {
	case 0:
		madvise(at, bytes, advices[chance(a) % ELEMENTS(advices)]);
		break;
	case 1:
		mprotect(at, bytes, chance(a) % 8);
		break;
	case 2:
		to = w->executor->arena + chance(a) % FUZZ_PLOTS * FUZZ_PLOT;
		mremap(at, RAW_PAGE, one_in(a, 2) ? RAW_PAGE : bytes, MREMAP_MAYMOVE |
		       (one_in(a, 2) ? MREMAP_DONTUNMAP : 0) | MREMAP_FIXED, to);
		break;
	case 3:
		lose(at, bytes);
		break;
	}
}

/* Touches pages itself, and by calls that pin pages: process_vm_readv and process_vm_writev. */
static void touch(struct fuzz_worker *w, const struct fuzz_op *op)
{
	static __thread char buffer[2 * RAW_PAGE];
	struct actor *a = &w->a;
	struct iovec here = { buffer, sizeof(buffer) }, there = { some_page(a), sizeof(buffer) };
	bool writes = one_in(a, 2);

	if (!there.iov_base)
		return;
	switch (chance(a) % 3) {
	case 0:
		read_pages(a->me->base, a->me->join.total_bytes);
		break;
	case 1:
		if (writes)
			*(volatile char *)there.iov_base = chance(a);
		else
			read_pages(there.iov_base, RAW_PAGE);
		break;
	case 2:
		if (writes)
			process_vm_writev(getpid(), &here, 1, &there, 1, 0);
		else
			process_vm_readv(getpid(), &here, 1, &there, 1, 0);
		break;
	}
}

/* ---- files ---- */

static void files(struct fuzz_worker *w, const struct fuzz_op *op)
{
	int file = fuzz_some_file(w), other = fuzz_some_file(w);

	if (file < w->executor->first_file || other < w->executor->first_file)
		return;
	switch (chance(&w->a) % 4) {
	case 0:
		fcntl(file, F_DUPFD_CLOEXEC, w->executor->first_file);
		break;
	case 1:
		dup3(file, other, O_CLOEXEC);
		break;
	case 2:
		close(file);
		break;
	case 3:
		open(RAW_DEVICE, chance(&w->a) % 4 | O_CLOEXEC);
		break;
	}
}

/* Descriptors that are not received go with the socket. */
static void pass_files(struct fuzz_worker *w, const struct fuzz_op *op)
{
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(2 * sizeof(int))];
	} control = { .head = { CMSG_LEN(2 * sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
	char byte = 0;
	struct iovec data = { &byte, 1 };
	struct msghdr message = {
		.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control,
		.msg_controllen = sizeof(control.space),
	};
	int number[2] = { fuzz_some_file(w), one_in(&w->a, 8) ? w->executor->socket[1] :
			  fuzz_some_file(w) };

	if (one_in(&w->a, 3)) {
		recvmsg(w->executor->socket[1], &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
		return;
	}
	memcpy(CMSG_DATA(&control.head), number, sizeof(number));
	sendmsg(w->executor->socket[0], &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void poll_files(struct fuzz_worker *w, const struct fuzz_op *op)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLET, .data.fd = 0 };
	struct pollfd list[4];
	unsigned int i, n = 1 + chance(&w->a) % ELEMENTS(list);
	int epoll = one_in(&w->a, 2) ? epoll_create1(EPOLL_CLOEXEC) : -1;

	for (i = 0; i < n; i++) {
		list[i].fd = i ? fuzz_some_file(w) : w->a.me->file;
		list[i].events = chance(&w->a) % 2 ? POLLIN : POLLIN | POLLOUT;
		if (epoll >= 0)
			epoll_ctl(epoll, EPOLL_CTL_ADD, list[i].fd, &event);
	}
	if (epoll < 0)
		poll(list, n, chance(&w->a) % 2);
	else
		epoll_wait(epoll, &event, 1, chance(&w->a) % 2);	/* the epoll stays open */
}

/* ---- sysfs and fdinfo ---- */

static void read_file(struct actor *a, const char *path)
{
	char text[4096];
	int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (file < 0)
		return;
	while (read(file, text, sizeof(text)) > 0)
		;
	/* It reads parts of some lines. */
	while (pread(file, text, chance(a) % sizeof(text), chance(a) % 32768) > 0 && one_in(a, 2))
		;
	close(file);
}

/* Appends the name of one entry of the folder to its path. */
static bool choose_entry(struct actor *a, char *path, size_t space)
{
	DIR *folder = opendir(path);
	size_t length = strlen(path);
	struct dirent *entry;
	unsigned int n = 0;

	while (folder && (entry = readdir(folder)))
		if (entry->d_name[0] != '.' && entry->d_type != DT_LNK && one_in(a, ++n))
			snprintf(path + length, space - length, "/%s", entry->d_name);
	if (folder)
		closedir(folder);
	return n;
}

static void show(struct fuzz_worker *w, const struct fuzz_op *op)
{
	char path[512] = "/sys/devices/virtual/xmem";
	unsigned int depth = 0;

	if (one_in(&w->a, 2)) {
		snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fuzz_some_file(w));
		read_file(&w->a, path);
		return;
	}
	while (depth++ < 4 && choose_entry(&w->a, path, sizeof(path)))
		;
	read_file(&w->a, path);
}

/* ---- processes ---- */

static void inherit(struct fuzz_worker *w)
{
	struct actor *a = &w->a;
	struct { union xm_request r; u64 newer[16]; } asked;
	const struct xm_request_kind *kind;
	unsigned int i;

	for (i = 0; i < 8; i++) {
		kind = fields_request(fields_some(a));
		memset(&asked, 0, sizeof(asked));
		asked.r.size = kind->bytes;
		if (kind->request != XMEM_IOC_WAIT)
			ioctl(fuzz_some_file(w), kind->request, &asked);
	}
	if (a->me->base)
		read_pages(a->me->base, a->me->join.total_bytes);
}

/* A client of the child's, in one of these pools, with slots. */
static void live(struct fuzz_worker *w)
{
	static struct raw mine;		/* only in the child */
	struct actor *a = &w->a;
	struct { union xm_request r; u64 newer[16]; } asked;
	unsigned int i, number;

	fields_fill(a, _IOC_NR(XMEM_IOC_JOIN), &asked.r);
	if (raw_start(&mine, &asked.r.join))
		return;
	a->me = &mine;
	for (i = 0; i < 12; i++) {
		number = i ? fields_some(a) : _IOC_NR(XMEM_IOC_ATTACH);
		if (number == _IOC_NR(XMEM_IOC_WAIT))
			continue;
		memset(&asked, 0, sizeof(asked));
		fields_fill(a, number, &asked.r);
		if (!ioctl(mine.file, fields_request(number)->request, &asked))
			fields_taken(a, number, &asked.r);
	}
	scribble(a);
}

/* It shares only the memory, so the client's mappings outlive the client's process. */
static int share_memory(void *argument)
{
	for (;;)
		syscall(SYS_pause);
	return 0;
}

static pid_t start_kid(struct fuzz_worker *w)
{
	static char stack[4096] __attribute__((aligned(16)));
	u64 kind = chance(&w->a) % 8;
	pid_t kid;

	if (kind == 0)
		return clone(share_memory, stack + sizeof(stack), CLONE_VM | SIGCHLD, NULL);
	kid = fork();
	if (kid)
		return kid;
	signal(SIGSEGV, SIG_DFL);	/* most of its parent's mappings are not there */
	signal(SIGBUS, SIG_DFL);
	if (kind < 3)
		inherit(w);
	else if (kind < 6)
		live(w);
	if (kind % 2)
		_exit(0);
	for (;;)
		pause();
}

static void kill_kid(pid_t *kid)
{
	if (*kid <= 0)
		return;
	kill(*kid, SIGKILL);
	while (waitpid(*kid, NULL, __WALL) < 0 && errno == EINTR)
		;
	*kid = 0;
}

static void fork_kid(struct fuzz_worker *w, const struct fuzz_op *op)
{
	pid_t *kid = &w->executor->kid[chance(&w->a) % FUZZ_KIDS];

	kill_kid(kid);
	*kid = start_kid(w);
}

void fuzz_end_kids(struct fuzz_executor *e)
{
	unsigned int i;

	for (i = 0; i < FUZZ_KIDS; i++)
		kill_kid(&e->kid[i]);
}

/* Only for this thread; it becomes root again by its saved user id. */
static void change_user(struct fuzz_worker *w)
{
	syscall(SYS_setresuid, -1, one_in(&w->a, 2) ? 65534 : 0, -1);
}

/* ---- all ---- */

void fuzz_act(struct fuzz_worker *w, const struct fuzz_op *op)
{
	switch (op->what) {
	case FUZZ_JOIN:
		join(w, op);
		break;
	case FUZZ_END:
		end(w, op);
		break;
	case FUZZ_MAP:
		if (w->a.me->base)
			map(w, op);
		break;
	case FUZZ_REMAP:
		remap(w, op);
		break;
	case FUZZ_SCRIBBLE:
		if (w->a.me->base)
			scribble(&w->a);
		break;
	case FUZZ_TOUCH:
		touch(w, op);
		break;
	case FUZZ_FILES:
		files(w, op);
		break;
	case FUZZ_PASS:
		pass_files(w, op);
		break;
	case FUZZ_FORK:
		fork_kid(w, op);
		break;
	case FUZZ_KILL:
		kill_kid(&w->executor->kid[chance(&w->a) % FUZZ_KIDS]);
		break;
	case FUZZ_POLL:
		poll_files(w, op);
		break;
	case FUZZ_SHOW:
		show(w, op);
		break;
	case FUZZ_WHO:
		change_user(w);
		break;
	}
}
