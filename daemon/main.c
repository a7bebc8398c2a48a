// SPDX-License-Identifier: MIT
/*
 * xmemd: the host of one user's pools where no module can be loaded. Its options, its
 * start, its loop, and how it leaves when no client has been connected for a while.
 */
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "daemon.h"

#define IDLE_MS		2000
#define UNBOUND_MS	2000	/* between two tries to bind the address anew */
#define OTHER_SOURCES	5	/* of events: the listener, its watch, the ends, two timers */
#define PASSED_FD	3	/* where socket activation puts the first socket */
#define PASSED_IS_WRONG	"descriptor 3 (see LISTEN_FDS) is no listening SOCK_SEQPACKET socket"

/* ---- options ---- */

struct options {
	bool daemon;
	int listen_fd;		/* -1: bind the address */
	int idle_ms;
};

static const char help[] =
	"Usage: xmemd (--foreground | --daemon) [OPTION]...\n"
	"\n"
	"xmemd hosts the xmem pools of one user's processes where there is no /dev/xmem.\n"
	"libxmem starts xmemd when it is needed, and xmemd exits by itself.\n"
	"\n"
	"  -f, --foreground      serve and stay attached to the terminal\n"
	"  -d, --daemon          serve in the background; return when clients can connect\n"
	"  -l, --listen-fd=N     serve this listening socket and bind no address\n"
	"  -i, --idle-ms=MS      exit when no client was connected for so long\n"
	"                        (default: 2000; -1: never)\n"
	"  -h, --help            print this help\n"
	"  -V, --version         print the version\n"
	"\n"
	"Environment, see docs/environment.md: XMEM_SOCKET, XMEM_DEVICE_FILES, XMEMD_CHECK,\n"
	"LISTEN_FDS, LISTEN_PID\n";

static bool number(const char *text, int least, int *ret)
{
	char *end;
	long value;

	errno = 0;
	value = strtol(text, &end, 10);
	if (errno || end == text || *end || value < least || value > 1000000000)
		return false;
	*ret = value;
	return true;
}

static void bad_usage(const char *what)
{
	fprintf(stderr, "xmemd: %s; see xmemd --help\n", what);
	exit(2);
}

/* Print a text and exit. The status is 1 if the text could not be printed. */
__attribute__((noreturn)) static void leave_with(const char *text)
{
	if (fputs(text, stdout) >= 0 && !fflush(stdout))
		exit(0);
	fprintf(stderr, "xmemd: standard output: %s\n", strerror(errno));
	exit(1);
}

static void parse(int argc, char **argv, struct options *options)
{
	static const struct option known[] = {
		{ "foreground", no_argument, NULL, 'f' },
		{ "daemon", no_argument, NULL, 'd' },
		{ "listen-fd", required_argument, NULL, 'l' },
		{ "idle-ms", required_argument, NULL, 'i' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ 0 },
	};
	bool foreground = false;
	int c;

	*options = (struct options){ .listen_fd = -1, .idle_ms = IDLE_MS };
	while ((c = getopt_long(argc, argv, "fdl:i:hV", known, NULL)) >= 0) {
		switch (c) {
		case 'f':
			foreground = true;
			break;
		case 'd':
			options->daemon = true;
			break;
		case 'l':
			if (!number(optarg, 0, &options->listen_fd))
				bad_usage("--listen-fd needs the number of a descriptor");
			break;
		case 'i':
			if (!number(optarg, -1, &options->idle_ms))
				bad_usage("--idle-ms needs a number of milliseconds, or -1");
			break;
		case 'h':
			leave_with(help);
		case 'V':
			leave_with("xmemd " XMEM_VERSION "\n");
		default:
			exit(2);
		}
	}
	if (optind < argc)
		bad_usage("only options are allowed, no arguments");
	if (foreground == options->daemon)
		bad_usage("give either --foreground or --daemon");
}

/* ---- start ---- */

/*
 * The descriptor of the socket that a service manager has passed as sd_listen_fds(3) describes it;
 * -1: this process got none. The variables are unset, because they are not meant for other
 * processes.
 */
static int passed_listener(void)
{
	const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
	int process, sockets;

	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	if (!pid || !count)
		return -1;
	if (!number(pid, 1, &process))
		bad_usage("LISTEN_PID needs the number of a process");
	if (process != getpid())
		return -1;	/* The variables are meant for a process that started this one. */
	if (!number(count, 0, &sockets) || sockets != 1)
		bad_usage("LISTEN_FDS must be 1: xmemd serves one socket, on descriptor 3");
	return PASSED_FD;
}

/* Close the descriptors that the starter left open, except the listener, its lock and 0 to 2. */
static int close_inherited(int listener)
{
	int lock = xd_listen_lock();
	u32 fd = 3, first, last;

	if (listener < 3)
		listener = fcntl(listener, F_DUPFD_CLOEXEC, 3);
	if (listener < 0)
		return -errno;
	first = lock >= 3 && lock < listener ? lock : listener;
	last = lock > listener ? lock : listener;
	if ((first > fd && close_range(fd, first - 1, 0)) ||
	    (last > first + 1 && close_range(first + 1, last - 1, 0)))
		return -errno;
	return close_range(last + 1, ~0u, 0) ? -errno : listener;
}

/*
 * Go on in the background. The parent waits until the daemon says that it is ready, and fails if
 * the daemon ends before that. Returns the descriptor on which the daemon says so.
 */
static int detach(bool keep_stderr)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int ready[2];
	char byte;
	pid_t pid;

	if (null < 0 || pipe2(ready, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid) {
		close(ready[1]);
		_exit(read(ready[0], &byte, 1) == 1 ? 0 : 1);
	}
	close(ready[0]);
	setsid();
	if (chdir("/") || dup2(null, 0) < 0 || dup2(null, 1) < 0 ||
	    (!keep_stderr && dup2(null, 2) < 0))
		return -errno;
	if (null > 2)
		close(null);
	return ready[1];
}

static void say_ready(int ready)
{
	if (write(ready, "", 1) != 1)
		fputs("xmemd: the process that started xmemd has ended; xmemd serves anyway\n",
		      stderr);
	close(ready);
}

static int watch(struct xd_daemon *daemon, int *fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = fd };

	return epoll_ctl(daemon->epoll, EPOLL_CTL_ADD, *fd, &event);
}

static int set_up(struct xd_daemon *daemon, int listener)
{
	int err;

	xd_count_steps();
	xd_alive_begin();
	daemon->listener = listener;
	daemon->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	daemon->epoll = epoll_create1(EPOLL_CLOEXEC);
	daemon->ends = epoll_create1(EPOLL_CLOEXEC);
	if (daemon->spare < 0 || daemon->epoll < 0 || daemon->ends < 0)
		return -errno;
	/*
	 * Listen again, so that a peer which asks for the listening process gets this one, not its
	 * parent.
	 */
	if (listen(listener, SOMAXCONN) || watch(daemon, &daemon->listener) ||
	    watch(daemon, &daemon->ends))
		return -errno;
	daemon->socket_watch = xd_listen_watch();
	if (daemon->socket_watch >= 0 && watch(daemon, &daemon->socket_watch))
		return -errno;
	err = xd_polls_init(daemon);
	return err ? err : xd_claims_init(daemon);
}

/* ---- the loop ---- */

/*
 * Wait for one event. Events are not taken in batches, so an earlier event cannot have freed the
 * object of a later one. 1: an event; 0: none for @timeout_ms; -errno.
 */
static int next_event(int epoll, int timeout_ms, struct epoll_event *ret_event)
{
	int n;

	do
		n = epoll_wait(epoll, ret_event, 1, timeout_ms);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

/*
 * If somebody has removed or renamed the socket, no program finds it any more: a second xmemd would
 * start. So xmemd binds the address again, and accepts the peers that have connected to the old
 * socket. If xmemd cannot bind, it tries again every 2 s, and exits once no client is left.
 *
 * The watch begins before the look, so that no change is missed.
 */
static void look_after_socket(struct xd_daemon *daemon)
{
	int listener, left, count;

	do {
		close(daemon->socket_watch);
		daemon->socket_watch = xd_listen_watch();
		watch(daemon, &daemon->socket_watch);
		listener = xd_listen_anew();
		daemon->unbound = listener < 0 && listener != -EEXIST;
		if (listener < 0)
			return;
		for (left = SOMAXCONN; left > 0 && (count = xd_accept(daemon)); left -= count)
			;
		close(daemon->listener);
		daemon->listener = listener;
	} while (!watch(daemon, &daemon->listener));
}

/*
 * May the request from @source be served before the noted ends? It may if its pool has no noted
 * end. A peer that has not joined waits, because it may ask about any pool.
 */
static bool may_precede_ends(const struct xd_daemon *daemon, const void *source)
{
	const struct xd_connection *connection = source;

	if (source == &daemon->poll_timer)
		return true;
	return source != &daemon->listener && source != &daemon->ends &&
	       source != &daemon->claims_timer && source != &daemon->socket_watch &&
	       connection->pool && !xd_pool_has_ends(connection->pool);
}

/* The next event that may be handled now. epoll takes turns, so each event is seen once. */
static int next_that_may(struct xd_daemon *daemon, struct epoll_event *ret_event)
{
	u32 sources = daemon->connection_count + OTHER_SOURCES;
	int n;

	if (!daemon->ending)
		return next_event(daemon->epoll, daemon->unbound ? UNBOUND_MS :
				  daemon->connections ? -1 : daemon->idle_ms, ret_event);
	do {
		n = next_event(daemon->epoll, 0, ret_event);
		if (n <= 0 || may_precede_ends(daemon, ret_event->data.ptr))
			return n;
	} while (--sources);
	return 0;
}

/* Note all ends that have happened. Returns their number, or -errno. */
static int note_ends(struct xd_daemon *daemon)
{
	struct epoll_event end;
	int n, count = 0;

	while ((n = next_event(daemon->ends, 0, &end)) > 0) {
		xd_connection_note_end(daemon, end.data.ptr);
		XM_STEP(XM_STEP_END_NOTED);
		count++;
	}
	return n < 0 ? n : count;
}

static void handle(struct xd_daemon *daemon, void *source)
{
	if (source == &daemon->listener)
		xd_accept(daemon);
	else if (source == &daemon->socket_watch)
		look_after_socket(daemon);
	else if (source == &daemon->poll_timer)
		xd_polls_expired(daemon);
	else if (source == &daemon->claims_timer)
		xd_claims_expired(daemon);
	else if (source != &daemon->ends)
		xd_connection_serve(daemon, source);
}

/* No event has come in time. Does xmemd exit, because no peer is connected or waits to connect? */
static bool is_over(struct xd_daemon *daemon)
{
	if (daemon->unbound)
		look_after_socket(daemon);
	return !daemon->connections && daemon->idle_ms >= 0 && !xd_accept(daemon);
}

/*
 * In each pool, ends are handled before requests: a client that has seen a process die, and then
 * makes a request, finds that the process holds nothing. Other pools need not wait: one of their
 * requests is served between two ends. The connection in @event may be one that has ended. So
 * @event is dropped after an end was noted; epoll reports it again.
 */
static int run(struct xd_daemon *daemon)
{
	struct epoll_event event;
	int n, ends;

	for (;;) {
		n = next_that_may(daemon, &event);
		ends = n < 0 ? n : note_ends(daemon);
		if (ends < 0)
			return ends;
		if (ends)
			continue;
		if (n)
			handle(daemon, event.data.ptr);
		else if (!daemon->ending && is_over(daemon))
			return 0;
		if (daemon->ending)
			xd_connection_end_next(daemon);
	}
}

static void tear_down(struct xd_daemon *daemon)
{
	struct xd_connection *connection, *next;

	/*
	 * Duplicates of the listener in other processes must not accept connections that nobody
	 * serves. But a service manager keeps its duplicate, and starts xmemd again when the next
	 * client comes.
	 */
	if (!daemon->activated)
		shutdown(daemon->listener, SHUT_RDWR);
	close(daemon->listener);
	xd_listen_end();
	xd_alive_end(daemon);
	for (connection = daemon->connections; connection; connection = next) {
		next = connection->next;
		xd_connection_note_end(daemon, connection);
	}
	xd_connection_end_all(daemon);
	close(daemon->poll_timer);
	close(daemon->claims_timer);
	close(daemon->ends);
	close(daemon->epoll);
	close(daemon->spare);
	if (daemon->socket_watch >= 0)
		close(daemon->socket_watch);
}

static int fail(const char *what, int err)
{
	fprintf(stderr, "xmemd: %s: %s\n", what, strerror(-err));
	return 1;
}

/* The starter of a daemon learns only by this status why xmemd cannot listen: start.c. */
static int listen_failed(const struct options *options, int err, const char *what)
{
	if (xd_listen_why())
		fprintf(stderr, "xmemd: %s\n", xd_listen_why());
	else
		fail(what, err);
	return options->daemon && options->listen_fd < 0 ? XM_EXIT_LISTEN - err : 1;
}

int main(int argc, char **argv)
{
	const char *check = getenv("XMEMD_CHECK"), *device_files = getenv("XMEM_DEVICE_FILES");
	struct xd_daemon daemon = { .check = check && !strcmp(check, "1") };
	struct options options;
	int listener, ready = -1, passed, err;
	const char *low;

	parse(argc, argv, &options);
	passed = passed_listener();
	if (options.listen_fd < 0 && passed >= 0) {
		options.listen_fd = passed;
		daemon.activated = true;
	}
	if (!xd_device_files_take(&daemon.device_files, device_files ? device_files :
				    "195:255,dmabuf"))
		bad_usage("XMEM_DEVICE_FILES needs a list as 195:255,195:0 of device numbers, "
			  "or of these, dmabuf and memfd");
	signal(SIGPIPE, SIG_IGN);
	if (!xd_payload_can_open())
		return fail("payload files are opened through /proc/self/fd; mount /proc", -errno);
	low = xd_limits_raise();
	if (low) {
		fprintf(stderr, "xmemd: a limit of the program that started xmemd is too low to "
			"serve all programs of this user: %s; raise the hard limit, or have "
			"systemd start xmemd (xmemd@.socket)\n", low);
		return XM_EXIT_LIMITS;
	}
	daemon.idle_ms = options.idle_ms;
	listener = options.listen_fd >= 0 ? xd_listen_passed(options.listen_fd) : xd_listen();
	if (listener == -EADDRINUSE && options.daemon)
		return 0;	/* Another daemon already serves, as the caller wants. */
	if (listener == -EADDRINUSE) {
		fputs("xmemd: another xmemd already serves this user, or something else uses "
		      "the address; choose another with XMEM_SOCKET\n", stderr);
		return 1;
	}
	if (listener < 0)
		return listen_failed(&options, listener,
				     daemon.activated ? PASSED_IS_WRONG : options.listen_fd < 0 ?
				     "cannot listen for clients" :
				     "--listen-fd needs a listening SOCK_SEQPACKET socket");
	if (options.listen_fd < 0 || daemon.activated)
		xd_place_other(listener);
	if (options.daemon) {
		xd_place_leave();
		listener = close_inherited(listener);
		ready = listener < 0 ? listener : detach(daemon.check);
		if (ready < 0)
			return fail("cannot detach", ready);
	}
	xd_limits_set(&daemon.limits);
	err = set_up(&daemon, listener);
	if (err)
		return fail("cannot start", err);
	if (ready >= 0)
		say_ready(ready);
	err = run(&daemon);
	tear_down(&daemon);
	return err ? fail("cannot go on", err) : 0;
}
