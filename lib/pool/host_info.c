// SPDX-License-Identifier: MIT
/*
 * Information about the host and its pools. It comes over a connection of its own, which joins no
 * pool, and for which no daemon is started.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/access.h"
#include "lib/base/structs.h"
#include "lib/host/quota.h"
#include "lib/host/reach.h"
#include "lib/pool/host_info.h"

int xl_ask_host(struct xmem_link *link, unsigned int request, void *argument)
{
	int tries, cancel, err = -ENODEV;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	for (tries = 0; tries < XL_MAX_TRIES; tries++) {
		err = xl_reach(link, false);
		if (err)
			break;
		err = link->backend->request(link, request, argument);
		if (err == -EDQUOT)
			xl_limit_save(link);
		link->backend->close(link);
		if (err != -ENOTCONN)
			break;
	}
	pthread_setcancelstate(cancel, NULL);
	return err == -ENOTCONN ? -ENODEV : err;
}

int xl_ask_failed(const char *what, int err, const struct xmem_link *link)
{
	char space[XL_HINT_BYTES], limit[XL_LIMIT_BYTES];
	const char *hint = err == -EDQUOT ? xl_limit_refused(link, limit) : NULL;

	if (!hint)
		hint = xl_reach_hint(err, link, space);
	return xl_fail(-err, "%s: %s", what, hint ? hint : strerror(-err));
}

/* Copy a text of the host, which may lack its NUL. */
static void put_text(char *ret, size_t bytes, const __u8 *from, size_t from_bytes)
{
	snprintf(ret, bytes, "%.*s", (int)from_bytes, (const char *)from);
}

/* ---- the host ---- */

static void fill_host(const struct xmem_query_request *r, const char *backend,
		      struct xmem_host_info *ret)
{
	*ret = (struct xmem_host_info){
		.size = sizeof(*ret),
		.abi = r->abi,
		.abi_oldest = r->abi_oldest,
		.features = r->incompat,
		.max_slots = r->max_slots,
		.max_clients = r->max_clients,
		.max_ring_entries = r->max_ring_entries,
		.group_slots = r->group_slots,
		.max_pools = r->max_pools,
		.max_payloads = r->max_payloads,
		.pools = r->pools,
	};
	snprintf(ret->backend, sizeof(ret->backend), "%s", backend);
	put_text(ret->version, sizeof(ret->version), r->version, sizeof(r->version));
}

XMEM_API int xmem_host_query(struct xmem_host_info *ret_info)
{
	XL_CALL;
	struct xmem_query_request request = { .size = sizeof(request) };
	struct xmem_host_info info;
	char space[XL_HINT_BYTES];
	struct xmem_link link;
	int err = xl_answer_check("xmem_host_info", ret_info);

	if (!err)
		err = xl_check_environment();
	if (err)
		return err;
	err = xl_ask_host(&link, XMEM_IOC_QUERY, &request);
	if (err == -ENODEV)
		return xl_fail(ENODEV, "no host is running: %s", xl_nothing_runs(&link, space));
	if (err)
		return xl_ask_failed("ask the host what it is", err, &link);
	fill_host(&request, link.backend->name, &info);
	xl_answer_give(ret_info, &info, sizeof(info));
	return 0;
}

/* ---- its pools ---- */

static void fill_entry(const struct xmem_pools_request *r, struct xmem_pool_entry *ret)
{
	*ret = (struct xmem_pool_entry){
		.size = sizeof(*ret),
		.number = r->number,
		.owner_uid = r->owner_uid,
		.slots = r->slots,
		.clients_max = r->clients,
		.clients = r->alive,
		.ring_entries = r->ring_entries,
		.bytes = r->attached_bytes,
		.payloads = r->payloads,
		.bytes_files = r->payload_bytes,
		.bytes_kept = r->kept_bytes,
		.mode = r->mode,
		.gid = r->gid,
		.roles = r->roles,
	};
	put_text(ret->name, sizeof(ret->name), r->name, sizeof(r->name));
}

XMEM_API int xmem_pool_next(uint64_t after, struct xmem_pool_entry *ret_entry)
{
	XL_CALL;
	struct xmem_pools_request request = { .size = sizeof(request), .number = after };
	struct xmem_pool_entry entry;
	struct xmem_link link;
	int err = xl_answer_check("xmem_pool_entry", ret_entry);

	if (!err)
		err = xl_check_environment();
	if (err)
		return err;
	err = xl_ask_host(&link, XMEM_IOC_POOLS, &request);
	if (err == -ENODEV)
		return xl_fail_fast(ENOENT, "there are no pools: no host is running");
	if (err == -ENOENT)
		return xl_fail_fast(ENOENT, "there are no more pools");
	if (err)
		return xl_ask_failed("ask the host for its pools", err, &link);
	fill_entry(&request, &entry);
	xl_answer_give(ret_entry, &entry, sizeof(entry));
	return 0;
}

/* Is this the pool that the join names? A daemon has pools of one user only. */
static bool is_meant(const struct xmem_pool_entry *entry, const struct xmem_join_request *join,
		     const struct xmem_link *link)
{
	u32 owner = join->flags & XMEM_JOIN_OWNER ? join->owner_uid : geteuid();
	u64 number = xm_name_number(join->name);

	return (number ? entry->number == number :
			 !strcmp(entry->name, (const char *)join->name)) &&
	       (entry->owner_uid == owner || link->backend == &xmem_backend_daemon);
}

bool xl_pool_find(const struct xmem_join_request *join, struct xmem_pool_entry *ret)
{
	struct xmem_pools_request request = { .size = sizeof(request) };
	struct xmem_link link;

	while (!xl_ask_host(&link, XMEM_IOC_POOLS, &request)) {
		fill_entry(&request, ret);
		if (is_meant(ret, join, &link))
			return true;
		request = (struct xmem_pools_request){
			.size = sizeof(request), .number = ret->number,
		};
	}
	return false;
}
