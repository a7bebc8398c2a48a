// SPDX-License-Identifier: MIT
/*
 * activate [-t stream] [-s VALUE] [-p PID] [-n TIMES] NAME COMMAND [ARGUMENT]...
 *
 * Acts like systemd with a socket unit. It binds the socket at the path NAME and prints
 * "listening". At a connection it runs COMMAND with the socket as descriptor 3, LISTEN_FDS=1 and
 * LISTEN_PID, and does so TIMES times (1). It keeps its own copy of the socket, and fails if
 * COMMAND has shut that down. It prints "started PID" and "ended STATUS" each time.
 *
 * Some options make it wrong on purpose: another type of socket (-t; "file" means no socket at
 * all), another LISTEN_FDS (-s), another LISTEN_PID (-p). With these it runs COMMAND at once.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

struct plan {
	const char *type, *sockets, *pid;
	int times;
};

static void die(const char *what)
{
	perror(what);
	exit(99);
}

static int listen_at(const char *name, int type)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", name);
	unlink(name);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, 16))
		die(name);
	return fd;
}

static int open_as(const char *type, const char *name)
{
	int fd;

	if (!strcmp(type, "file")) {
		fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			die("/dev/null");
		return fd;
	}
	return listen_at(name, strcmp(type, "stream") ? SOCK_SEQPACKET : SOCK_STREAM);
}

static void become(int fd, const struct plan *plan, char **command)
{
	char self[16];

	snprintf(self, sizeof(self), "%d", (int)getpid());
	setenv("LISTEN_PID", plan->pid ? plan->pid : self, 1);
	setenv("LISTEN_FDS", plan->sockets ? plan->sockets : "1", 1);
	/* dup2 of a descriptor onto itself would leave it close-on-exec. */
	if ((fd == 3 && fcntl(fd, F_SETFD, 0)) || (fd != 3 && dup2(fd, 3) < 0))
		die("descriptor 3");
	execvp(*command, command);
	die(*command);
}

static int run_once(int fd, const struct plan *plan, char **command)
{
	int status;
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (!pid)
		become(fd, plan, command);
	printf("started %d\n", (int)pid);
	if (waitpid(pid, &status, 0) != pid)
		die("waitpid");
	printf("ended %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	return status;
}

static void wait_for_connection(int fd)
{
	struct pollfd wait = { fd, POLLIN, 0 };

	if (poll(&wait, 1, 200000) != 1) {
		fputs("activate: nobody connected in 200 s\n", stderr);
		exit(99);
	}
	if (wait.revents & (POLLHUP | POLLERR)) {
		fputs("activate: the socket has been shut down\n", stderr);
		exit(99);
	}
}

int main(int argc, char **argv)
{
	struct plan plan = { .type = "seqpacket", .times = 1 };
	bool wrong;
	int c, fd, status = 0;

	while ((c = getopt(argc, argv, "+t:s:p:n:")) >= 0) {
		switch (c) {
		case 't': plan.type = optarg; break;
		case 's': plan.sockets = optarg; break;
		case 'p': plan.pid = optarg; break;
		case 'n': plan.times = atoi(optarg); break;
		default: return 99;
		}
	}
	if (argc - optind < 2) {
		fputs("activate: NAME COMMAND...\n", stderr);
		return 99;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	wrong = strcmp(plan.type, "seqpacket") || plan.sockets || plan.pid;
	fd = open_as(plan.type, argv[optind]);
	puts("listening");
	while (plan.times-- > 0) {
		if (!wrong)
			wait_for_connection(fd);
		status = run_once(fd, &plan, argv + optind + 1);
	}
	return status ? 1 : 0;
}
