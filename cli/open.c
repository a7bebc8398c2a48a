// SPDX-License-Identifier: MIT
/*
 * Joining a pool only to look at it.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"

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

/*
 * The tool could not join because the pool has all the clients that it can have. What the
 * list of pools knows says whom to end; the places that no living client has are zombies'.
 */
static void say_full(const char *name)
{
	struct xmem_pool_entry entry = { 0 };
	char dead[24];
	uint32_t count;

	do {
		entry.size = sizeof(entry);
		if (xmem_pool_next(entry.number, &entry)) {
			cli_fail("open pool '%s': it had no place left, and has ended", name);
			return;
		}
	} while (strcmp(entry.name, name));
	count = entry.clients < entry.clients_max ? entry.clients_max - entry.clients : 0;
	snprintf(dead, sizeof(dead), "%u %s", count, count == 1 ? "has" : "have");
	cli_fail("open pool '%s': it is full: %u clients are alive, and %s ended whose "
		 "publications are still in flight; the tool needs one of its %u places: end a "
		 "client, or let the subscribers receive what is in flight",
		 name, entry.clients, dead, entry.clients_max);
}

struct xmem_pool *cli_open(const char *name)
{
	struct xmem_pool_options options = {
		.size = sizeof(options), .flags = XMEM_OPEN_EXISTING | XMEM_OPEN_FOREIGN,
		.label = "xmem",
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

	cli_set(about, "pool", json_string(name));
	cli_set(about, "backend", json_string(xmem_pool_backend(pool)));
	return about;
}
