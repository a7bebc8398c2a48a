/* SPDX-License-Identifier: MIT */
/*
 * The director's processes; see crew.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "crew.h"

#define TICK_MS		100
#define STALL_NS	(120LL * 1000 * 1000 * 1000)	/* no member says anything for so long */
#define ARGUMENTS	8

struct member crew[MEMBERS] = {
	[PRODUCER] = { .name = "producer", .socket = -1 },
	[HISTOGRAM] = { .name = "histogram", .socket = -1 },
	[MOTION] = { .name = "motion", .socket = -1 },
	[STAGE] = { .name = "stage", .socket = -1 },
	[CONTACT] = { .name = "contact", .socket = -1 },
};

static pid_t group;			/* 0: no process was started */
static int log_file = -1;
static int signals = -1;
static sigset_t old_mask;
static char failure[320];
static bool failure_needs_log;

int64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

bool crew_fail(bool see_log, const char *format, ...)
{
	va_list arguments;

	if (*failure)
		return false;
	va_start(arguments, format);
	vsnprintf(failure, sizeof(failure), format, arguments);
	va_end(arguments);
	failure_needs_log = see_log;
	return false;
}

const char *crew_failure(void)
{
	return failure;
}

bool crew_failure_needs_log(void)
{
	return failure_needs_log;
}

bool crew_prepare(int log)
{
	sigset_t mask;

	log_file = log;
	sigemptyset(&mask);
	sigaddset(&mask, SIGINT);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGHUP);
	sigaddset(&mask, SIGQUIT);
	signal(SIGPIPE, SIG_IGN);
	sigprocmask(SIG_BLOCK, &mask, &old_mask);
	signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	/* ffmpeg outlives the producer for a moment, and the director must reap it */
	if (signals < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1))
		return crew_fail(false, "cannot prepare: %s", strerror(errno));
	return true;
}

/* ---- start ---- */

static void become(const char *const *arguments, int socket, pid_t parent)
{
	char path[4200], number[16], *argument[ARGUMENTS] = { NULL };
	ssize_t length = readlink("/proc/self/exe", path, 4096);
	int i;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent || length < 0)
		_exit(1);
	path[length] = '\0';
	snprintf(strrchr(path, '/') + 1, 100, "%s", arguments[0]);
	setpgid(0, group);
	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_SETMASK, &old_mask, NULL);
	fcntl(socket, F_SETFD, 0);
	snprintf(number, sizeof(number), "%d", socket);
	for (i = 0; arguments[i]; i++)
		argument[i] = (char *)arguments[i];
	argument[i] = number;
	if (dup2(log_file, 1) == 1 && dup2(log_file, 2) == 2)
		execv(path, argument);
	dprintf(log_file, "cannot start %s: %s\n", path, strerror(errno));
	_exit(127);
}

bool crew_start(struct member *member, const char *const *arguments)
{
	pid_t parent = getpid();
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return crew_fail(false, "cannot start %s: %s", member->name, strerror(errno));
	member->pid = fork();
	if (!member->pid)
		become(arguments, ends[1], parent);
	close(ends[1]);
	if (member->pid < 0) {
		member->pid = 0;
		close(ends[0]);
		return crew_fail(false, "cannot start %s: %s", member->name, strerror(errno));
	}
	if (!group)
		group = member->pid;
	setpgid(member->pid, group);		/* also here, because either process may be first */
	member->socket = ends[0];
	member->doomed = false;
	member->said = 0;
	member->last = (struct message){ 0 };
	member->paused_ns = 0;
	return true;
}

void crew_tell(struct member *member, uint32_t kind)
{
	struct message message = { .kind = kind };

	/* Messages from before this order are not the answer. */
	if (kind == TELL_PAUSE)
		member->said &= ~(1u << SAY_PAUSED);
	if (kind == TELL_AGAIN)
		member->said &= ~(1u << SAY_AT_END);
	if (kind == TELL_GO && member->paused_ns)
		member->began_ns += clock_ns() - member->paused_ns;
	member->paused_ns = 0;
	/* If the member has died, the next read from its socket says so. */
	if (member->socket >= 0)
		send(member->socket, &message, sizeof(message), MSG_NOSIGNAL);
}

/* ---- end ---- */

static int reap(struct member *member)
{
	int status = 0;
	pid_t got;

	do
		got = waitpid(member->pid, &status, 0);
	while (got < 0 && errno == EINTR);
	close(member->socket);
	member->socket = -1;
	member->pid = 0;
	return status;
}

/* Add this life to those before. */
static void add_up(struct member *member)
{
	member->frames += member->last.frames;
	member->lost += member->last.lost;
	member->corrupt += member->last.corrupt;
	if (member->latest_ns > member->began_ns)
		member->busy_ns += member->latest_ns - member->began_ns;
	member->latest_ns = 0;
}

/* The member's socket has closed: it has ended, or is about to. */
static bool ended(struct member *member)
{
	int status = reap(member);

	add_up(member);
	if (WIFSIGNALED(status))
		return crew_fail(true, "%s died: %s", member->name, strsignal(WTERMSIG(status)));
	if (!crew_said(member, SAY_DONE))
		return crew_fail(true, "%s ended early, with status %d", member->name,
				 WEXITSTATUS(status));
	return true;
}

bool crew_kill(struct member *member)
{
	member->doomed = true;
	if (kill(member->pid, SIGKILL))
		return crew_fail(false, "cannot kill %s: %s", member->name, strerror(errno));
	return true;
}

bool crew_bury(struct member *member)
{
	int status = reap(member);

	add_up(member);
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
		return crew_fail(true, "%s ended before it could be killed", member->name);
	return true;
}

void crew_dismiss(void)
{
	pid_t got;
	int i;

	if (!group)
		return;
	kill(-group, SIGKILL);
	do
		got = waitpid(-group, NULL, 0);
	while (got > 0 || errno == EINTR);
	for (i = 0; i < MEMBERS; i++) {
		if (crew[i].socket >= 0)
			close(crew[i].socket);
		crew[i].socket = -1;
		crew[i].pid = 0;
	}
}

/* ---- talk ---- */

static bool take(struct member *member, const struct message *message)
{
	if (message->kind == SAY_ERROR)
		return crew_fail(false, "%.*s", MESSAGE_TEXT, message->text);
	member->said |= 1u << message->kind;
	member->last = *message;
	if (message->kind == SAY_FRAME)
		member->latest_ns = clock_ns();
	else if (message->kind != SAY_DONE)
		member->value = message->value;
	if (message->kind == SAY_PAUSED)
		member->paused_ns = clock_ns();
	return true;
}

/* Read all messages of one member. */
static bool listen_to(struct member *member)
{
	struct message message;
	ssize_t got;

	for (;;) {
		got = recv(member->socket, &message, sizeof(message), MSG_DONTWAIT);
		if (got == sizeof(message)) {
			if (!take(member, &message))
				return false;
			continue;
		}
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && errno == EAGAIN)
			return true;
		return member->doomed || ended(member);
	}
}

static bool signalled(void)
{
	struct signalfd_siginfo info;

	if (read(signals, &info, sizeof(info)) != sizeof(info))
		return true;
	return crew_fail(false, "stopped: %s", strsignal((int)info.ssi_signo));
}

/* Sleep until a message comes, at most a tick. *@quiet: none has come. */
static bool listen_once(bool *quiet)
{
	struct pollfd polled[MEMBERS + 1];
	int i;

	for (i = 0; i < MEMBERS; i++)
		polled[i] = (struct pollfd){
			.fd = crew[i].doomed ? -1 : crew[i].socket, .events = POLLIN,
		};
	polled[MEMBERS] = (struct pollfd){ .fd = signals, .events = POLLIN };
	*quiet = poll(polled, MEMBERS + 1, TICK_MS) <= 0;
	if (*quiet)
		return true;
	if (polled[MEMBERS].revents && !signalled())
		return false;
	for (i = 0; i < MEMBERS; i++)
		if (polled[i].revents && !listen_to(&crew[i]))
			return false;
	return true;
}

static bool all_have_said(uint32_t who, uint32_t kind)
{
	int i;

	for (i = 0; i < MEMBERS; i++)
		if (who & 1u << i && !crew_said(&crew[i], kind))
			return false;
	return true;
}

static bool all_have_ended(uint32_t who)
{
	int i;

	for (i = 0; i < MEMBERS; i++)
		if (who & 1u << i && crew[i].pid)
			return false;
	return true;
}

/*
 * Listen once, and fail if nothing has come for too long. *@heard_ns: when the last message came.
 */
static bool listen_on(int64_t *heard_ns, void (*tick)(void))
{
	bool quiet;

	if (!listen_once(&quiet))
		return false;
	if (!quiet)
		*heard_ns = clock_ns();
	else if (clock_ns() - *heard_ns > STALL_NS)
		return crew_fail(true, "nothing has moved for %lld s", STALL_NS / 1000000000);
	if (tick)
		tick();
	return true;
}

bool crew_wait(uint32_t who, uint32_t kind, void (*tick)(void))
{
	int64_t heard_ns = clock_ns();

	while (!all_have_said(who, kind))
		if (!listen_on(&heard_ns, tick))
			return false;
	return true;
}

bool crew_wait_until(bool (*done)(void), void (*tick)(void))
{
	int64_t heard_ns = clock_ns();

	while (!done())
		if (!listen_on(&heard_ns, tick))
			return false;
	return true;
}

bool crew_wait_end(uint32_t who, void (*tick)(void))
{
	int64_t heard_ns = clock_ns();

	while (!all_have_ended(who))
		if (!listen_on(&heard_ns, tick))
			return false;
	return true;
}
