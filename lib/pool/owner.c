// SPDX-License-Identifier: MIT
/*
 * The user in a pool's name: "USER:NAME", as scp names a file of a host. Neither part has a colon:
 * it separates the fields of /etc/passwd, and a pool's name has none (xmem/uapi.h, NAMES). A
 * user's name is only looked up in /etc/passwd. Other sources of users (NSS) would load modules
 * into this process, and might ask the network while a pool is opened. A user that only they know
 * is given by number.
 */
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/uncancelled.h"
#include "lib/pool/join.h"

#define USER_BYTES	64	/* a user's name with its NUL */
#define LINE_BYTES	4096	/* of /etc/passwd; a longer line ends the search */

static int find_user(const char *user, u32 *ret_uid)
{
	struct passwd entry, *found = NULL;
	FILE *file = fopen("/etc/passwd", "re");
	char line[LINE_BYTES];

	while (file && !fgetpwent_r(file, &entry, line, sizeof(line), &found) &&
	       strcmp(entry.pw_name, user))
		found = NULL;
	if (file)
		fclose(file);
	if (!found)
		return -ENOENT;
	*ret_uid = found->pw_uid;
	return 0;
}

/* Digits alone are always a number; ~0 is no user's number. A name may begin with digits. */
static int take_number(const char *user, u32 *ret_uid)
{
	unsigned long long number;

	if (user[strspn(user, "0123456789")])
		return -ENOENT;
	number = strtoull(user, NULL, 10);
	if (number >= ~0U)
		return -EINVAL;
	*ret_uid = number;
	return 0;
}

int xl_join_owner(const char *name, size_t length, struct xmem_join_request *request)
{
	char user[USER_BYTES];
	u32 uid = ~0U;
	int err;
	XL_UNCANCELLED;

	if (!length || length >= sizeof(user))
		return xl_fail(EINVAL, "open pool '%.40s': there is no user before the colon",
			       name);
	memcpy(user, name, length);
	user[length] = 0;
	err = take_number(user, &uid);
	if (err == -EINVAL)
		return xl_fail(EINVAL, "open pool '%.40s': '%s' is no user's number", name, user);
	if (err && find_user(user, &uid))
		return xl_fail(EINVAL, "open pool '%.40s': a user must be before the colon, and "
				       "/etc/passwd has no '%s'; a user that is known "
				       "elsewhere is given by number", name, user);
	if (uid == geteuid())
		return 0;
	request->flags |= XMEM_JOIN_OWNER;
	request->owner_uid = uid;
	return 0;
}
