// SPDX-License-Identifier: MIT
/*
 * Reads option structs, and fills answer structs, of the size that the caller has. structs.h has
 * the rule.
 */
#include <string.h>

#include "lib/base/structs.h"

#define LEAST_OPTIONS	(sizeof(size_t) + sizeof(u32))	/* size and flags */
#define MOST_OPTIONS	4096	/* a larger size was surely not set, and nothing is read */

int xl_options_take(const char *what, const void *given, void *known, size_t bytes)
{
	const unsigned char *byte = given;
	size_t size, i;

	if (!given)
		return 0;
	memcpy(&size, given, sizeof(size));
	if (size < LEAST_OPTIONS)
		return xl_fail(EINVAL, "%s: size is %zu; set it to sizeof(struct %s)", what, size,
			       what);
	if (size > MOST_OPTIONS)
		return xl_fail(E2BIG, "%s: size is %zu; set it to sizeof(struct %s)", what, size,
			       what);
	for (i = bytes; i < size; i++)
		if (byte[i])
			return xl_fail(E2BIG,
				       "%s: byte %zu is not 0: libxmem " XMEM_VERSION
				       " knows only %zu bytes and lacks what that asks for",
				       what, i, bytes);
	memcpy(known, given, size < bytes ? size : bytes);
	return 0;
}

int xl_answer_check(const char *what, const void *ret)
{
	size_t size;

	if (!ret)
		return xl_fail(EINVAL, "%s: no place for the answer", what);
	memcpy(&size, ret, sizeof(size));
	if (size < sizeof(size))
		return xl_fail(EINVAL, "%s: size is %zu; set it to sizeof(struct %s)", what, size,
			       what);
	return 0;
}

void xl_answer_give(void *ret, const void *answer, size_t bytes)
{
	size_t size;

	memcpy(&size, ret, sizeof(size));
	if (size > bytes)
		size = bytes;
	memcpy(ret, answer, size);
	memcpy(ret, &size, sizeof(size));
}
