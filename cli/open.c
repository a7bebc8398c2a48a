// SPDX-License-Identifier: MIT
/*
 * Joining a pool only to look at it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

const char *cli_user(uint32_t uid)
{
	const struct passwd *entry = getpwuid(uid);

	return entry ? entry->pw_name : NULL;
}

/* Opening a pool would start a daemon, which would then say that it has no such pool. */
static bool host_is_there(const char *name)
{
	struct xmem_host_info host = { .size = sizeof(host) };
	int err = xmem_host_query(&host);

	if (err == -ENODEV)
		cli_fail("there is no pool '%s': no host is running", name);
	else if (err)
		cli_fail_xmem();
	return !err;
}

/* Does "USER:NAME", or "NAME" of this user, stand for a pool of that user? */
static bool is_owner(const char *name, const char *colon, uint32_t uid)
{
	char user[16];

	if (!colon)
		return uid == geteuid();
	if (name + strspn(name, "0123456789") == colon) {
		snprintf(user, sizeof(user), "%u:", uid);
		return !strncmp(name, user, colon - name + 1);
	}
	return cli_user(uid) && !strncmp(name, cli_user(uid), colon - name) &&
	       !cli_user(uid)[colon - name];
}

bool cli_names(const char *given, const char *name, uint64_t number, uint32_t uid)
{
	const char *colon = strchr(given, ':'), *rest = colon ? colon + 1 : given;
	char tag[24];

	snprintf(tag, sizeof(tag), "@%" PRIu64, number);
	return (!strcmp(name, rest) || !strcmp(tag, rest)) && is_owner(given, colon, uid);
}

/*
 * The tool could not join because the pool has the maximum number of clients. The list of pools has
 * the number of living clients; zombies have the other places.
 */
static void say_full(const char *given)
{
	struct xmem_pool_entry entry = { 0 };
	char dead[24];
	uint32_t count;

	do {
		entry.size = sizeof(entry);
		if (xmem_pool_next(entry.number, &entry)) {
			cli_fail("open pool '%s': it was full, and has ended", given);
			return;
		}
	} while (!cli_names(given, entry.name, entry.number, entry.owner_uid));
	count = entry.clients < entry.clients_max ? entry.clients_max - entry.clients : 0;
	snprintf(dead, sizeof(dead), "%u %s", count, count == 1 ? "has" : "have");
	cli_fail("open pool '%s': it is full: %u clients are alive, and %s ended whose "
		 "publications are still in flight; the tool needs one of its %u places: end a "
		 "client, or let the subscribers receive what is in flight",
		 given, entry.clients, dead, entry.clients_max);
}

struct xmem_pool *cli_open(const char *name)
{
	struct xmem_pool_options options = {
		.size = sizeof(options), .flags = XMEM_OPEN_EXISTING, .label = "xmem",
	};
	struct xmem_pool *pool;

	cli_ask();
	if (!host_is_there(name))
		return NULL;
	pool = xmem_pool_open(name, &options);
	if (!pool && xmem_peek_last_error(NULL) == -EUSERS)
		say_full(name);
	else if (!pool)
		cli_fail_xmem();
	cli_answered();
	return pool;
}

int cli_close(struct xmem_pool *pool, int err)
{
	if (err)
		cli_fail_xmem();
	xmem_pool_close(pool);
	return err;
}

json_t *cli_about(const char *name, struct xmem_pool *pool)
{
	json_t *about = cli_object();

	cli_set(about, "pool", cli_text(name, SIZE_MAX));
	cli_set(about, "backend", json_string(xmem_pool_backend(pool)));
	return about;
}
