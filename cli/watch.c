// SPDX-License-Identifier: MIT
/* Looking again and again, until SIGINT: --watch, and the interval of xmem top. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"

static volatile sig_atomic_t stopped;

static void stop(int number)
{
	stopped = 1;
}

/* A second SIGINT ends the tool as if this function had not been called: it may be stuck. */
void cli_stop_by_signal(void)
{
	const struct sigaction action = {
		.sa_handler = stop, .sa_flags = SA_RESTART | SA_RESETHAND,
	};

	sigaction(SIGINT, &action, NULL);
}

bool cli_pause(uint64_t ns)
{
	const struct timespec time = { ns / 1000000000, ns % 1000000000 };
	sigset_t interrupt, before;

	sigemptyset(&interrupt);
	sigaddset(&interrupt, SIGINT);
	sigprocmask(SIG_BLOCK, &interrupt, &before);
	if (!stopped)
		ppoll(NULL, 0, &time, &before);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return !stopped;
}

int cli_watch(int (*run)(const struct cli_arguments *arguments),
	      const struct cli_arguments *arguments)
{
	bool terminal = !arguments->value['o'] && isatty(STDOUT_FILENO);
	int status;

	cli_stop_by_signal();
	for (;;) {
		if (terminal)
			fputs("\033[H\033[J", stdout);
		status = run(arguments);
		if (fflush(stdout) || ferror(stdout) || status || !cli_pause(arguments->interval))
			return status;
		if (!terminal && !arguments->json && !arguments->value['o'])
			putchar('\n');
	}
}
