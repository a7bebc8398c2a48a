// SPDX-License-Identifier: MIT
/*
 * failing.h says what this is for.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "failing.h"

int failing_open(void)
{
	return open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
}

/* The kernel reads the knob by a copy from user memory, which also counts and may fail. */
void failing_arm(int knob, unsigned int n)
{
	char text[16];
	int length = snprintf(text, sizeof(text), "%u", n);

	while (pwrite(knob, text, length, 0) != length)
		;
}

/* The read itself may fail. */
bool failing_disarm(int knob)
{
	char text[16] = "";
	bool failed = pread(knob, text, sizeof(text) - 1, 0) > 0 && !atoi(text);

	failing_arm(knob, 0);
	return failed;
}

static bool set_knob(const char *path, const char *value)
{
	char full[128];
	int file, length = strlen(value);
	bool set;

	snprintf(full, sizeof(full), "/sys/kernel/debug/%s", path);
	file = open(full, O_WRONLY | O_CLOEXEC);
	set = file >= 0 && write(file, value, length) == length;
	if (file >= 0)
		close(file);
	return set;
}

/* By default only allocations that may not sleep fail. */
const char *failing_prepare(void)
{
	static const struct {
		const char *path, *value;
	} knobs[] = {
		{ "failslab/ignore-gfp-wait", "N" },
		{ "fail_page_alloc/ignore-gfp-wait", "N" },
		{ "fail_page_alloc/ignore-gfp-highmem", "N" },
		{ "fail_page_alloc/min-order", "0" },
		{ "failslab/verbose", "0" },
		{ "fail_page_alloc/verbose", "0" },
		{ "fail_usercopy/verbose", "0" },
	};
	unsigned int i;

	for (i = 0; i < sizeof(knobs) / sizeof(*knobs); i++)
		if (!set_knob(knobs[i].path, knobs[i].value))
			return knobs[i].path;
	return NULL;
}
