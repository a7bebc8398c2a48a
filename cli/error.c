// SPDX-License-Identifier: MIT
/*
 * How commands fail: one line on standard error, and an exit status, also if the host does not
 * answer.
 */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli.h"

#define ANSWER_SECONDS	10

static void say(const char *format, va_list arguments, const char *end)
{
	fputs("xmem: ", stderr);
	vfprintf(stderr, format, arguments);
	fputs(end, stderr);
}

int cli_fail(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	say(format, arguments, "\n");
	va_end(arguments);
	return CLI_FAILED;
}

int cli_usage(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	say(format, arguments, "; see xmem --help\n");
	va_end(arguments);
	return CLI_USAGE;
}

int cli_fail_xmem(void)
{
	struct xmem_error why = XMEM_INIT(why);

	xmem_peek_last_error(&why);
	return cli_fail("%s", why.message);
}

void cli_no_memory(void)
{
	exit(cli_fail("no memory for the output"));
}

/* ---- a host that does not answer ---- */

/*
 * The library waits for the answer without end. So this runs in a signal handler, and calls only
 * functions that are allowed there.
 */
static void give_up(int number)
{
	static const char text[] =
		"xmem: the host does not answer: is xmemd stopped? (ps -o pid,stat -C xmemd)\n";

	while (write(STDERR_FILENO, text, sizeof(text) - 1) < 0 && errno == EINTR)
		;
	_exit(CLI_FAILED);
}

void cli_ask(void)
{
	signal(SIGALRM, give_up);
	alarm(ANSWER_SECONDS);
}

void cli_answered(void)
{
	alarm(0);
}
