// SPDX-License-Identifier: MIT
/*
 * Checks the arguments of xmem_pool_open. This is done here and not by the host, so that each error
 * names the wrong field.
 */
#include <stdio.h>
#include <string.h>

#include "core/access.h"
#include "lib/base/structs.h"
#include "lib/pool/join.h"

#define ALL_FLAGS (XMEM_OPEN_WRITER | XMEM_OPEN_EXISTING | XMEM_OPEN_EXCLUSIVE | \
		   XMEM_OPEN_READER | XMEM_OPEN_INHERIT | XMEM_OPEN_GROUP | XMEM_OPEN_SHARES | \
		   XMEM_OPEN_FD)

#define IN_NAMES	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/-"

/* The host checks it too, but cannot say what is wrong. */
static int check_name(const char *name, size_t length, struct xmem_join_request *request)
{
	size_t good = strspn(name, IN_NAMES);

	if (xm_name_number(request->name)) {
		request->flags |= XMEM_JOIN_EXISTING;
		return 0;
	}
	if (*name == '@')
		return xl_fail(EINVAL, "open pool '%s': behind a '@' stands the number of a pool, "
				       "from 1 on, and nothing else", name);
	if (good < length)
		return xl_fail(EINVAL, "open pool '%s': a name has only characters of "
				       "[A-Za-z0-9._/-], and the one at position %zu is another; "
				       "for another user's pool, write USER:NAME", name, good);
	if (!xm_name_is_good(request->name))
		return xl_fail(EINVAL, "open pool '%s': no part of a name, between one '/' and the "
				       "next, is empty or begins with a dot", name);
	return 0;
}

int xl_join_name(const char *given, struct xmem_join_request *request)
{
	const char *colon = given ? strchr(given, ':') : NULL, *name = colon ? colon + 1 : given;
	size_t length = name ? strlen(name) : 0;

	if (colon && xl_join_owner(given, colon - given, request))
		return xl_last_error();
	if (colon && !length)
		return xl_fail(EINVAL, "open pool '%.40s': there is no name after the user", given);
	if (length > XMEM_NAME_MAX)
		return xl_fail(EINVAL, "open pool '%.40s...': a name has at most %d characters, "
				       "this one has %zu", name, XMEM_NAME_MAX, length);
	if (!length)
		return 0;
	memcpy(request->name, name, length);
	return check_name(name, length, request);
}

static int bad(const char *format, unsigned long long given)
{
	return xl_fail(EINVAL, format, given);
}

static int check_keep(const struct xmem_pool_options *o)
{
	if (o->keep > XMEM_MAX_RING)
		return bad("xmem_pool_options: keep is %llu, more than 4096", o->keep);
	if (o->keep && o->flags & XMEM_OPEN_READER)
		return xl_fail(EINVAL, "xmem_pool_options: keep is for writers, but flags has "
				       "XMEM_OPEN_READER");
	return 0;
}

static int check_numbers(const struct xmem_pool_options *o)
{
	u32 ring = o->ring_entries;

	if (o->slots > XMEM_MAX_SLOTS)
		return bad("xmem_pool_options: slots is %llu, more than 65536", o->slots);
	if (o->clients > XMEM_MAX_CLIENTS)
		return bad("xmem_pool_options: clients is %llu, more than 256", o->clients);
	if (ring && (ring < 4 || ring > XMEM_MAX_RING || ring & (ring - 1)))
		return bad("xmem_pool_options: ring_entries is %llu, which is not a power of two "
			   "from 4 to 4096", ring);
	if (o->wait_bound_ns < 0)
		return xl_fail(EINVAL, "xmem_pool_options: wait_bound_ns is negative");
	if (o->wait_bound_ns && o->flags & XMEM_OPEN_READER)
		return xl_fail(EINVAL, "xmem_pool_options: wait_bound_ns is for writers, but flags "
				       "has XMEM_OPEN_READER");
	return check_keep(o);
}

static int check_flags(u32 flags)
{
	if (flags & ~ALL_FLAGS)
		return bad("xmem_pool_options: flags has 0x%llx, which has no meaning",
			   flags & ~ALL_FLAGS);
	if (flags & XMEM_OPEN_EXISTING && flags & XMEM_OPEN_EXCLUSIVE)
		return xl_fail(EINVAL, "xmem_pool_options: flags has both XMEM_OPEN_EXISTING and "
				       "XMEM_OPEN_EXCLUSIVE");
	if (flags & XMEM_OPEN_READER && flags & XMEM_OPEN_WRITER)
		return xl_fail(EINVAL, "xmem_pool_options: flags has both XMEM_OPEN_READER and "
				       "XMEM_OPEN_WRITER");
	if (flags & XMEM_OPEN_READER && flags & XMEM_OPEN_SHARES)
		return xl_fail(EINVAL, "xmem_pool_options: flags has XMEM_OPEN_READER, which never "
				       "writes, and XMEM_OPEN_SHARES");
	if (flags & XMEM_OPEN_FD && flags & XMEM_OPEN_EXCLUSIVE)
		return xl_fail(EINVAL, "xmem_pool_options: flags has XMEM_OPEN_EXCLUSIVE, but the "
				       "pool of a descriptor exists already");
	return 0;
}

static int check_fd(const struct xmem_pool_options *o, const struct xmem_join_request *request)
{
	if (o->reserved)
		return xl_fail(EINVAL, "xmem_pool_options: reserved is not 0");
	if (o->fd && !(o->flags & XMEM_OPEN_FD))
		return xl_fail(EINVAL, "xmem_pool_options: fd is %d, but flags lack XMEM_OPEN_FD",
			       o->fd);
	if (o->flags & XMEM_OPEN_FD && *request->name)
		return xl_fail(EINVAL, "open pool '%s': flags has XMEM_OPEN_FD, so the descriptor "
				       "selects the pool, and there must be no name",
			       (const char *)request->name);
	return 0;
}

/* Refuse what no host supports. If only this host does not, its answer says so: join.c. */
static int check_mode(const struct xmem_pool_options *o)
{
	if (xm_mode_check(o->mode) && o->mode & ~XMEM_MODE_KNOWN)
		return xl_fail(EINVAL, "xmem_pool_options: mode is 0%o; of its bits 0%o have no "
				       "meaning", o->mode, o->mode & ~XMEM_MODE_KNOWN);
	if (xm_mode_check(o->mode))
		return xl_fail(EINVAL, "xmem_pool_options: mode 0%o lets users write that may not "
				       "read, but a writer must be able to read", o->mode);
	if (o->flags & XMEM_OPEN_FD && (o->mode || o->flags & XMEM_OPEN_GROUP))
		return xl_fail(EINVAL, "xmem_pool_options: mode and XMEM_OPEN_GROUP are for a new "
				       "pool, but the pool of a descriptor exists already");
	if (o->gid == XMEM_GID_SAME)
		return xl_fail(EINVAL, "xmem_pool_options: gid is %u, which is no group's number",
			       o->gid);
	if (o->gid && !(o->flags & XMEM_OPEN_GROUP))
		return xl_fail(EINVAL, "xmem_pool_options: gid is %u, but flags lack "
				       "XMEM_OPEN_GROUP", o->gid);
	return 0;
}

#define KINDS	(XMEM_MEMORY_HUGE | XMEM_MEMORY_SEALED | XMEM_MEMORY_READERS | XMEM_MEMORY_LEGACY)

static int check_memory(const struct xmem_pool_options *o)
{
	bool given = (o->demand_bytes && o->demand_bytes != XMEM_NO_DEMAND) || o->cache_bytes ||
		     o->cache_ns || o->memory;

	if (o->memory & ~KINDS)
		return bad("xmem_pool_options: memory has 0x%llx, which has no meaning",
			   o->memory & ~KINDS);
	if (o->cache_ns < 0)
		return xl_fail(EINVAL, "xmem_pool_options: cache_ns is negative");
	if (given && o->flags & XMEM_OPEN_READER)
		return xl_fail(EINVAL, "xmem_pool_options: demand_bytes, cache_bytes, cache_ns and "
				       "memory are for writers, but flags has XMEM_OPEN_READER");
	return 0;
}

/*
 * Check the caller's label. Without one, use the program's name, whose bad characters are replaced.
 */
static int put_label(const char *label, char *ret)
{
	const char *from = label ? label : program_invocation_short_name;
	u32 i;

	if (label && strlen(label) >= XMEM_LABEL_BYTES)
		return xl_fail(EINVAL, "xmem_pool_options: label '%.40s' has more than 15 "
				       "characters", label);
	snprintf(ret, XMEM_LABEL_BYTES, "%s", from);
	for (i = 0; ret[i]; i++) {
		if (ret[i] >= ' ' && ret[i] <= '~')
			continue;
		if (label)
			return xl_fail(EINVAL, "xmem_pool_options: label has a character that is "
					       "not printable ASCII, at %u", i);
		ret[i] = '_';
	}
	return 0;
}

int xl_join_options(const struct xmem_pool_options *options, struct xmem_pool_options *ret,
		    struct xmem_join_request *request)
{
	struct xmem_pool_options o = { 0 };

	if (xl_options_take("xmem_pool_options", options, &o, sizeof(o)))
		return xl_last_error();
	if (check_flags(o.flags) || check_fd(&o, request) || check_numbers(&o) ||
	    check_mode(&o) || check_memory(&o) || put_label(o.label, (char *)request->label))
		return -EINVAL;
	if (o.flags & XMEM_OPEN_FD) {
		request->flags |= XMEM_JOIN_FD;
		request->pool_fd = o.fd;
	}
	request->flags |= (o.flags & XMEM_OPEN_EXISTING ? XMEM_JOIN_EXISTING : 0) |
			  (o.flags & XMEM_OPEN_EXCLUSIVE ? XMEM_JOIN_EXCLUSIVE : 0) |
			  (o.flags & XMEM_OPEN_GROUP ? XMEM_JOIN_GROUP : 0);
	request->role = o.flags & XMEM_OPEN_WRITER ? XMEM_ROLE_WRITER :
			o.flags & XMEM_OPEN_READER || xm_name_number(request->name) ?
			XMEM_ROLE_READER : XMEM_ROLE_EITHER;
	request->slots = o.slots;
	request->clients = o.clients;
	request->ring_entries = o.ring_entries;
	request->wait_bound_ns = o.wait_bound_ns;
	request->mode = o.mode;
	request->gid = o.gid;
	*ret = o;
	return 0;
}
