// SPDX-License-Identifier: MIT
/*
 * How commands fail: one line on standard error, and an exit status.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli.h"

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
	const char *why;

	xmem_peek_last_error(&why);
	return cli_fail("%s", why);
}

void cli_no_memory(void)
{
	exit(cli_fail("no memory for what is to be shown"));
}
