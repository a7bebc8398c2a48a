// SPDX-License-Identifier: MIT
/*
 * xmemd: the host of one user's pools where no module can be loaded. Options,
 * start, the loop, and leaving when nobody has been there for a while.
 */
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon.h"

#define IDLE_MS		2000
#define SPARE_FILES	64	/* for what is neither a connection nor a payload */
#define PASSED_FD	3	/* where socket activation puts the first socket */
#define PASSED_IS_WRONG	"descriptor 3 (see LISTEN_FDS) is no listening SOCK_SEQPACKET socket"

void xm_check_failed(const char *what, const char *file, int line)
{
	fprintf(stderr, "xmemd: %s:%d: not so: %s\n", file, line, what);
	abort();
}

#ifdef XMEM_STEPS
/* Steps are for clients: the host is not killed in the middle of one. */
void xm_step(int step)
{
}
#endif

/* ---- options ---- */

struct options {
	bool daemon;
	int listen_fd;		/* -1: bind the address */
	int idle_ms;
};

static const char help[] =
	"Usage: xmemd (--foreground | --daemon) [OPTION]...\n"
	"\n"
	"Host of xmem's pools for the processes of one user, where /dev/xmem is not\n"
	"there. libxmem starts it by itself and it leaves by itself.\n"
	"\n"
	"  -f, --foreground      serve, and stay attached to the terminal\n"
	"  -d, --daemon          return as soon as clients can connect, serve in the background\n"
	"  -l, --listen-fd=N     serve this listening socket rather than bind the address\n"
	"  -i, --idle-ms=MS      leave when nobody was connected for so long (2000; -1: never)\n"
	"  -h, --help            print this\n"
	"  -V, --version         print the version\n"
	"\n"
	"Environment, see docs/environment.md: XMEM_SOCKET, XMEMD_CHECK, LISTEN_FDS, LISTEN_PID\n";

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
				bad_usage("--listen-fd is the number of a descriptor");
			break;
		case 'i':
			if (!number(optarg, -1, &options->idle_ms))
				bad_usage("--idle-ms is a number of milliseconds, or -1");
			break;
		case 'h':
			fputs(help, stdout);
			exit(0);
		case 'V':
			puts("xmemd " XMEM_VERSION);
			exit(0);
		default:
			exit(2);
		}
	}
	if (optind < argc)
		bad_usage("it takes no arguments");
	if (foreground == options->daemon)
		bad_usage("either --foreground or --daemon");
}

/* ---- start ---- */

/* The descriptor that we were given, if it is what we need. */
static int check_listener(int file)
{
	int listens = 0, type = 0;
	socklen_t length = sizeof(int);

	if (getsockopt(file, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) ||
	    getsockopt(file, SOL_SOCKET, SO_TYPE, &type, &length))
		return -errno;
	if (!listens || type != SOCK_SEQPACKET)
		return -EINVAL;
	fcntl(file, F_SETFD, FD_CLOEXEC);
	return fcntl(file, F_SETFL, O_NONBLOCK) ? -errno : file;
}

/*
 * The socket that a service manager passed, as sd_listen_fds(3) has it: its descriptor, or -1:
 * none was passed to us. The variables go, for they speak of this process alone.
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
		bad_usage("LISTEN_PID is the number of a process");
	if (process != getpid())
		return -1;	/* left over from a process that started us */
	if (!number(count, 0, &sockets) || sockets != 1)
		bad_usage("LISTEN_FDS is 1: exactly one socket, on descriptor 3, can be served");
	return PASSED_FD;
}

/* -EADDRINUSE: there is a daemon already; of several at once exactly one binds. */
static int bind_listener(void)
{
	struct sockaddr_un address;
	int length = xm_wire_address(&address);
	int err, file;

	if (length < 0)
		return length;
	file = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (file < 0)
		return -errno;
	if (!bind(file, (struct sockaddr *)&address, length) && !listen(file, SOMAXCONN))
		return file;
	err = -errno;
	close(file);
	return err;
}

/* Everything but the listener and the standard three is our starter's business. */
static int close_inherited(int listener)
{
	if (listener < 3)
		listener = fcntl(listener, F_DUPFD_CLOEXEC, 3);
	if (listener < 0)
		return -errno;
	if (listener > 3 && close_range(3, listener - 1, 0))
		return -errno;
	return close_range(listener + 1, ~0u, 0) ? -errno : listener;
}

/*
 * Go on in the background. The parent waits until the daemon has said that it
 * is ready, and fails if it ends without. Returns where to say it.
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
		fputs("xmemd: who started it has ended\n", stderr);
	close(ready);
}

/*
 * Whoever started us may have limited itself; we serve all of the user's processes. So each
 * soft limit that could end us, or our pages, is raised as far as is allowed.
 */
static void raise_limits(void)
{
	static const int limits[] = {
		RLIMIT_NOFILE, RLIMIT_AS, RLIMIT_DATA, RLIMIT_FSIZE, RLIMIT_CPU, RLIMIT_MEMLOCK,
	};
	struct rlimit limit;
	size_t i;

	for (i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
		if (getrlimit(limits[i], &limit))
			continue;
		limit.rlim_cur = limit.rlim_max;
		setrlimit(limits[i], &limit);
	}
}

/* Half of the descriptors for connections, half for payloads: neither can starve the other. */
static void set_limits(struct xd_limits *limits)
{
	struct rlimit files = { 1024, 1024 };
	u64 count;

	raise_limits();
	getrlimit(RLIMIT_NOFILE, &files);
	count = files.rlim_cur < 1 << 20 ? files.rlim_cur : 1 << 20;
	count = count > 4 * SPARE_FILES ? count - 2 * XD_MAX_POOLS - SPARE_FILES : SPARE_FILES;
	limits->connections = count / 4;
	limits->per_process = limits->connections / 4;
	limits->payloads = count / 2;
}

static int watch(struct xd_daemon *daemon, int *file)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = file };

	return epoll_ctl(daemon->epoll, EPOLL_CTL_ADD, *file, &event);
}

static int set_up(struct xd_daemon *daemon, int listener)
{
	daemon->listener = listener;
	daemon->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	daemon->epoll = epoll_create1(EPOLL_CLOEXEC);
	daemon->ends = epoll_create1(EPOLL_CLOEXEC);
	if (daemon->spare < 0 || daemon->epoll < 0 || daemon->ends < 0)
		return -errno;
	/* Listen once more: whoever asks whose socket it is gets our process, not our parent. */
	if (listen(listener, SOMAXCONN) || watch(daemon, &daemon->listener) ||
	    watch(daemon, &daemon->ends))
		return -errno;
	return 0;
}

/* ---- the loop ---- */

/*
 * Wait for something to do. One event at a time: what it names cannot have been
 * freed by an earlier one of the same batch. 1, 0: nothing for @timeout_ms, -errno.
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
 * Ends come before requests: who asks after he saw a process die finds that the
 * process holds nothing. (The end may also be that of the connection in @event.)
 */
static int run(struct xd_daemon *daemon)
{
	struct epoll_event event, end;
	int n;

	for (;;) {
		n = next_event(daemon->epoll, daemon->connections ? -1 : daemon->idle_ms, &event);
		if (n < 0)
			return n;
		if (!n) {
			if (!xd_accept(daemon))
				return 0;	/* idle, and nobody at the door */
			continue;
		}
		n = next_event(daemon->ends, 0, &end);
		if (n < 0)
			return n;
		if (n)
			xd_connection_end(daemon, end.data.ptr);
		else if (event.data.ptr == &daemon->listener)
			xd_accept(daemon);
		else if (event.data.ptr != &daemon->ends)
			xd_connection_serve(daemon, event.data.ptr);
	}
}

static void tear_down(struct xd_daemon *daemon)
{
	/*
	 * Copies of it elsewhere must not go on taking connections that nobody serves. But a
	 * service manager keeps its own, to start us again when the next one comes.
	 */
	if (!daemon->activated)
		shutdown(daemon->listener, SHUT_RDWR);
	close(daemon->listener);
	while (daemon->connections)
		xd_connection_end(daemon, daemon->connections);
	close(daemon->ends);
	close(daemon->epoll);
	close(daemon->spare);
}

static int fail(const char *what, int err)
{
	fprintf(stderr, "xmemd: %s: %s\n", what, strerror(-err));
	return 1;
}

int main(int argc, char **argv)
{
	const char *check = getenv("XMEMD_CHECK");
	struct xd_daemon daemon = { .check = check && !strcmp(check, "1") };
	struct options options;
	int listener, ready = -1, passed, err;

	parse(argc, argv, &options);
	passed = passed_listener();
	if (options.listen_fd < 0 && passed >= 0) {
		options.listen_fd = passed;
		daemon.activated = true;
	}
	signal(SIGPIPE, SIG_IGN);
	daemon.idle_ms = options.idle_ms;
	listener = options.listen_fd >= 0 ? check_listener(options.listen_fd) : bind_listener();
	if (listener == -EADDRINUSE && options.daemon)
		return 0;	/* another one serves already: that is what was wanted */
	if (listener == -EADDRINUSE) {
		fputs("xmemd: another one serves this user already "
		      "(or XMEM_SOCKET's address is taken)\n", stderr);
		return 1;
	}
	if (listener < 0)
		return fail(daemon.activated ? PASSED_IS_WRONG :
			    options.listen_fd >= 0 ? "--listen-fd" : "cannot listen", listener);
	if (options.daemon) {
		listener = close_inherited(listener);
		ready = listener < 0 ? listener : detach(daemon.check);
		if (ready < 0)
			return fail("cannot detach", ready);
	}
	set_limits(&daemon.limits);
	err = set_up(&daemon, listener);
	if (err)
		return fail("cannot start", err);
	if (ready >= 0)
		say_ready(ready);
	err = run(&daemon);
	tear_down(&daemon);
	return err ? fail("cannot go on", err) : 0;
}
