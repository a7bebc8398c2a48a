// SPDX-License-Identifier: MIT
/*
 * Switches of the environment; the log of violations, which processes share (each is one line,
 * written at once); and how often each function was called, for tests of whole programs.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake.h"
#include "tests.h"

static atomic_ulong violations;

const char *fk_option(const char *name, const char *otherwise)
{
	char full[64];
	const char *value;

	snprintf(full, sizeof(full), "FAKECUDA_%s", name);
	value = getenv(full);
	return value && *value ? value : otherwise;
}

bool fk_option_is(const char *name, const char *value, const char *otherwise)
{
	return !strcmp(fk_option(name, otherwise), value);
}

long fk_option_number(const char *name, long otherwise)
{
	const char *value = fk_option(name, NULL);

	return value ? strtol(value, NULL, 0) : otherwise;
}

static void append(const char *path, const char *text, size_t bytes)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	ssize_t done = fd < 0 ? -1 : write(fd, text, bytes);

	if (done != (ssize_t)bytes)
		fprintf(stderr, "fakecuda: %s: %m\n", path);
	if (fd >= 0)
		close(fd);
}

void fk_violation(const char *format, ...)
{
	const char *path = fk_option("LOG", NULL);
	char line[512];
	va_list args;
	int at = snprintf(line, sizeof(line), "%d %s: ", getpid(), program_invocation_short_name);

	va_start(args, format);
	vsnprintf(line + at, sizeof(line) - at - 1, format, args);
	va_end(args);
	strcat(line, "\n");
	atomic_fetch_add(&violations, 1);
	if (path)
		append(path, line, strlen(line));
	else
		fprintf(stderr, "fakecuda: violation: %s", line);
}

unsigned long cuFakeViolations(void)
{
	return violations;
}

/* FAKECUDA_COUNTS=FILE: a line "PID FUNCTION CALLS" for each function that was called. */
void fk_calls_write(void)
{
	const char *path = fk_option("COUNTS", NULL);
	char line[128];

	if (!path)
		return;
	for (struct fk_function *f = fk_functions(); f; f = f->next)
		if (f->calls)
			append(path, line, snprintf(line, sizeof(line), "%d %s %lu\n", getpid(),
						    f->name, (unsigned long)f->calls));
}
