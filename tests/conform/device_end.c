// SPDX-License-Identifier: MIT
/*
 * CUDA payloads and the ends of clients. Memory that a client has open, or that a GPU may still
 * use, stays until the process has exited; all else goes at once.
 */
#include <poll.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "device.h"
#include "lib/host/exchange.h"

/* ---- openers that end ---- */

struct opener {
	const char *name;
	unsigned int slot;
	u64 payload;
	uint64_t token, cpu_token;
	bool leaves;			/* it closes the pool and lives on */
};

static void open_and_wait(void *argument)
{
	const struct opener *how = argument;
	struct raw raw;

	raw_start(&raw, how->name, XMEM_ROLE_WRITER);
	SAME(payload_of(&raw, how->payload, XMEM_PAYLOAD_OPEN, NULL), 0);
	if (how->leaves)
		raw_close(&raw);
	tell_parent(raw.link.join.client);
	hear_parent();
}

static void opener_ends(bool leaves)
{
	struct xmem_attach_request attach = device_attach(-1, XMEM_ATTACH_HANDLE, 1, 1);
	struct opener how = { .leaves = leaves };
	struct child *child;
	struct raw owner;
	u32 id;

	device_host();
	how.name = new_name();
	raw_start(&owner, how.name, XMEM_ROLE_WRITER);
	SAME(raw_request(&owner, XMEM_IOC_ATTACH, &attach), 0);
	how.payload = attach.payload;
	child = spawn(open_and_wait, &how);
	id = hear(child);
	SAME(device_detach(&owner, attach.slot[0]), 0);
	if (leaves)
		EVENTUALLY(xm_load(&xm_client_row(&owner.map, id)->state) == XMEM_CLIENT_ZOMBIE);
	SAME(payload_of(&owner, attach.payload, 0, NULL), -EBUSY);
	kill_child(child);
	EVENTUALLY(xm_load(&owner.map.pool->payloads_closed) == 1);
	SAME(payload_of(&owner, attach.payload, 0, NULL), -ENOENT);
	EVENTUALLY(xm_load(&xm_client_row(&owner.map, id)->state) == XMEM_CLIENT_NONE);
	SAME(device_row(&owner, 1).bytes, 0);
	raw_close(&owner);
}

TEST(P2_gpu_memory_is_closed_when_its_opener_is_killed)
{
	opener_ends(false);
}

TEST(P2_gpu_memory_stays_open_until_the_process_has_exited)
{
	opener_ends(true);
}

/* Its end finds a payload without an owner, so there is no client to wake. */
TEST(P2_an_opener_outlives_the_owner_of_gpu_memory)
{
	struct xmem_attach_request attach = device_attach(-1, XMEM_ATTACH_HANDLE, 1, 1);
	struct raw owner, writer;
	const char *name;
	u64 token;

	device_host();
	name = new_name();
	raw_start(&owner, name, XMEM_ROLE_WRITER);
	raw_start(&writer, name, XMEM_ROLE_WRITER);
	SAME(raw_request(&owner, XMEM_IOC_ATTACH, &attach), 0);
	token = make_live(&owner, attach.slot[0]);
	raw_hold(&writer, token);
	SAME(payload_of(&writer, attach.payload, XMEM_PAYLOAD_OPEN, NULL), 0);
	raw_close(&owner);
	EVENTUALLY(payload_of(&writer, attach.payload, XMEM_PAYLOAD_OPEN, NULL) == -EOWNERDEAD);
	SAME(payload_of(&writer, attach.payload, 0, NULL), -EOWNERDEAD);
	SAME(device_row(&writer, 1).closing_bytes, 0);
	xm_put(&writer.map, writer.link.join.client, attach.slot[0]);
	SAME(raw_slot(&writer, XMEM_OP_COLLECT, attach.slot[0]), 0);
	EVENTUALLY(device_row(&writer, 1).closing_bytes == BYTES);
	SAME(payload_of(&writer, attach.payload, XMEM_PAYLOAD_CLOSE, NULL), 0);
	SAME(device_row(&writer, 1).bytes, 0);
	SAME(xm_load(&writer.map.pool->payloads_closed), 1);
	raw_close(&writer);
}

TEST(P2_an_exported_payload_outlives_its_owner)
{
	struct xmem_payload_request answer;
	struct xmem_attach_request attach;
	struct raw owner, writer;
	const char *name;
	int file;
	u32 id;

	device_host();
	name = new_name();
	raw_start(&owner, name, XMEM_ROLE_WRITER);
	raw_start(&writer, name, XMEM_ROLE_WRITER);
	file = device_file();
	attach = device_attach(file, 0, 1, 1);
	SAME(raw_request(&owner, XMEM_IOC_ATTACH, &attach), 0);
	close(file);
	raw_hold(&writer, make_live(&owner, attach.slot[0]));
	id = owner.link.join.client;
	raw_close(&owner);
	EVENTUALLY(xm_load(&xm_client_row(&writer.map, id)->state) != XMEM_CLIENT_ALIVE);
	/* Its contents are complete. */
	SAME(*xm_ready_word(&writer.map, attach.slot[0]), XMEM_READY_OVER);
	SAME(payload_of(&writer, attach.payload, XMEM_PAYLOAD_OPEN, &answer), 0);
	CHECK(answer.fd >= 0);
	close(answer.fd);
	raw_close(&writer);
}

/* ---- holds in quarantine ---- */

/*
 * Hold one content by a pointer for a GPU, and another without one; then leave the pool, and live
 * on.
 */
static void hold_and_leave(void *argument)
{
	const struct opener *how = argument;
	struct raw raw;
	u32 *hold;

	raw_start(&raw, how->name, XMEM_ROLE_WRITER);
	raw_hold(&raw, how->token);
	raw_hold(&raw, how->token);
	raw_hold(&raw, how->cpu_token);
	hold = xm_hold(&raw.map, raw.link.join.client, xm_token_slot(how->token));
	__atomic_fetch_or(hold, XM_HOLD_DEVICE, __ATOMIC_SEQ_CST);
	if (how->leaves)
		raw_close(&raw);
	tell_parent(raw.link.join.client);
	hear_parent();
}

static bool scan_of(struct raw *owner, unsigned int slot)
{
	struct xm_scan_rules rules = { .owner = XMEM_OWNER_NONE };

	return xm_scan_one(&owner->map, &rules, slot);
}

static void holder_ends(bool leaves, bool owner_first)
{
	struct xmem_attach_request attach = device_attach(-1, XMEM_ATTACH_HANDLE, 2, 1);
	struct opener how = { .leaves = leaves };
	struct raw owner, other;
	struct child *child;
	u32 id;

	device_host();
	how.name = new_name();
	raw_start(&owner, how.name, XMEM_ROLE_WRITER);
	raw_start(&other, how.name, XMEM_ROLE_READER);
	SAME(raw_request(&owner, XMEM_IOC_ATTACH, &attach), 0);
	how.token = make_live(&owner, attach.slot[0]);
	how.cpu_token = make_live(&owner, attach.slot[1]);
	child = spawn(hold_and_leave, &how);
	id = hear(child);
	if (leaves) {
		EVENTUALLY(xm_load(&xm_client_row(&other.map, id)->state) == XMEM_CLIENT_ZOMBIE);
		CHECK(xm_load(xm_hold(&other.map, id, attach.slot[0])) & XM_HOLD_COUNT);
		SAME(xm_load(xm_hold(&other.map, id, attach.slot[1])), 0);
		CHECK(!scan_of(&owner, attach.slot[0]));
		if (!owner_first)
			CHECK(scan_of(&owner, attach.slot[1]));
	}
	if (owner_first) {
		raw_close(&owner);
		EVENTUALLY(xm_load(&xm_slot_row(&other.map, attach.slot[1])->owner) ==
			   (leaves ? XMEM_OWNER_NONE : XMEM_OWNER_HOST));
		SAME(xm_load(&xm_slot_row(&other.map, attach.slot[0])->owner), XMEM_OWNER_HOST);
	}
	kill_child(child);
	EVENTUALLY(xm_load(&xm_client_row(&other.map, id)->state) == XMEM_CLIENT_NONE);
	if (owner_first)
		EVENTUALLY(xm_load(&xm_slot_row(&other.map, attach.slot[0])->owner) ==
			   XMEM_OWNER_NONE);
	else
		CHECK(scan_of(&owner, attach.slot[0]));
	if (!owner_first)
		raw_close(&owner);
	raw_close(&other);
}

TEST(P2_what_a_gpu_uses_is_free_once_the_process_has_exited)
{
	holder_ends(false, false);
}

TEST(P2_what_a_gpu_uses_stays_held_after_its_client_has_left)
{
	holder_ends(true, false);
}

TEST(P2_what_a_gpu_uses_outlives_its_owner_and_its_client)
{
	holder_ends(true, true);
}

/* An owner whose contents wait for its GPU. They may still arrive until its process has exited. */
static void publish_and_leave(void *argument)
{
	struct xmem_attach_request attach = device_attach(-1, XMEM_ATTACH_HANDLE, 1, 1);
	const struct opener *how = argument;
	struct xmem_metadata *metadata;
	struct raw raw;
	u64 token;

	raw_start(&raw, how->name, XMEM_ROLE_WRITER);
	SAME(raw_request(&raw, XMEM_IOC_ATTACH, &attach), 0);
	token = make_live(&raw, attach.slot[0]);
	metadata = xm_metadata(&raw.map, attach.slot[0]);
	metadata->order_kind = XMEM_ORDER_READY;
	metadata->order_value = 2;
	tell_parent(token);
	hear_parent();
	raw_close(&raw);
	tell_parent(raw.link.join.client);
	hear_parent();
}

TEST(P9_a_dead_process_gpu_keeps_nobody_waiting)
{
	struct opener how = { .leaves = true };
	struct child *child;
	struct raw other;
	u64 token, *ready;
	u32 id;

	daemon_only("the module drops the pages that the process has");
	device_host();
	how.name = new_name();
	raw_start(&other, how.name, XMEM_ROLE_WRITER);
	child = spawn(publish_and_leave, &how);
	token = hear(child);
	raw_hold(&other, token);
	tell(child, 1);
	id = hear(child);
	ready = xm_ready_word(&other.map, xm_token_slot(token));
	EVENTUALLY(xm_load(&xm_client_row(&other.map, id)->state) == XMEM_CLIENT_ZOMBIE);
	SAME(xm_load(ready), 0);
	xm_store(ready, 1);
	kill_child(child);
	EVENTUALLY(xm_load(&xm_client_row(&other.map, id)->state) == XMEM_CLIENT_NONE);
	SAME(xm_load(ready), XMEM_READY_ENDED);
	raw_close(&other);
}

/* GPUs may know its pages longer than any client exists. */
TEST(P9_the_end_of_a_pool_keeps_no_gpu_waiting)
{
	struct opener how = { .leaves = true };
	struct child *child;
	struct raw other;
	u64 *ready;
	char *page;
	u32 id, place;

	daemon_only("only the module has the pages when the pool ends");
	device_host();
	how.name = new_name();
	raw_start(&other, how.name, XMEM_ROLE_WRITER);
	child = spawn(publish_and_leave, &how);
	ready = xm_ready_word(&other.map, xm_token_slot(hear(child)));
	place = (uintptr_t)ready % page_size();
	page = mremap((char *)ready - place, 0, page_size(), MREMAP_MAYMOVE);
	CHECK(page != MAP_FAILED);
	tell(child, 1);
	id = hear(child);
	EVENTUALLY(xm_load(&xm_client_row(&other.map, id)->state) == XMEM_CLIENT_ZOMBIE);
	raw_close(&other);
	EVENTUALLY(xm_load((u64 *)(page + place)) == XMEM_READY_ENDED);
	CHECK(!munmap(page, page_size()));
	kill_child(child);
}

/* The pool ends although a client is in quarantine there, and its name is free. */
TEST(P2_a_pool_ends_while_a_client_is_in_quarantine)
{
	struct xmem_attach_request attach = device_attach(-1, XMEM_ATTACH_HANDLE, 1, 1);
	struct opener how = { .leaves = true };
	struct child *child;
	struct raw owner;

	device_host();
	how.name = new_name();
	raw_start(&owner, how.name, XMEM_ROLE_WRITER);
	SAME(raw_request(&owner, XMEM_IOC_ATTACH, &attach), 0);
	how.payload = attach.payload;
	child = spawn(open_and_wait, &how);
	hear(child);
	raw_close(&owner);
	EVENTUALLY((raw_open(&owner), raw_join(&owner, how.name, XMEM_ROLE_READER,
					       XMEM_JOIN_EXISTING) == -ENOENT) ||
		   (raw_close(&owner), false));
	raw_close(&owner);
	kill_child(child);
	raw_start(&owner, how.name, XMEM_ROLE_WRITER);
	SAME(raw_request(&owner, XMEM_IOC_ATTACH, &(struct xmem_attach_request){ .size = 8 }),
	     -EINVAL);
	raw_close(&owner);
}

/* The client's exit can free nothing any more, so the daemon does not need its connection. */
TEST(P10_a_client_in_quarantine_keeps_no_daemon_without_its_pool)
{
	struct xmem_attach_request attach = device_attach(-1, XMEM_ATTACH_HANDLE, 1, 1);
	struct opener how = { .leaves = true };
	struct ucred daemon;
	socklen_t length = sizeof(daemon);
	struct child *child;
	struct raw owner;
	struct pollfd gone = { .events = POLLIN };
	u32 id;

	daemon_only("the module stays");
	device_host();
	how.name = new_name();
	raw_start(&owner, how.name, XMEM_ROLE_WRITER);
	CHECK(!getsockopt(owner.link.file, SOL_SOCKET, SO_PEERCRED, &daemon, &length));
	CHECK((gone.fd = syscall(SYS_pidfd_open, daemon.pid, 0)) >= 0);
	SAME(raw_request(&owner, XMEM_IOC_ATTACH, &attach), 0);
	how.payload = attach.payload;
	child = spawn(open_and_wait, &how);
	id = hear(child);
	EVENTUALLY(xm_load(&xm_client_row(&owner.map, id)->state) == XMEM_CLIENT_ZOMBIE);
	raw_close(&owner);
	EVENTUALLY(poll(&gone, 1, 10) == 1);	/* the daemon ends when it has no connection */
	close(gone.fd);
	kill_child(child);
}

/* ---- a daemon that is stopped ---- */

static int open_until(struct raw *raw, u64 payload, int64_t timeout_ns)
{
	struct xmem_payload_request request = {
		.size = sizeof(request), .payload = payload, .flags = XMEM_PAYLOAD_OPEN, .fd = -1,
	};
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return raw->link.backend->request_until(&raw->link, XMEM_IOC_PAYLOAD, &request,
						now.tv_sec * SECOND + now.tv_nsec + timeout_ns);
}

static void given_up(bool had)
{
	struct xmem_attach_request attach = device_attach(-1, XMEM_ATTACH_HANDLE, 1, 1);
	struct raw owner, writer;
	const char *name;
	pid_t daemon;

	daemon_only("the kernel does not stop");
	device_host();
	name = new_name();
	raw_start(&owner, name, XMEM_ROLE_WRITER);
	raw_start(&writer, name, XMEM_ROLE_WRITER);
	SAME(raw_request(&owner, XMEM_IOC_ATTACH, &attach), 0);
	if (had)
		SAME(payload_of(&writer, attach.payload, XMEM_PAYLOAD_OPEN, NULL), 0);
	daemon = stop_daemon();
	SAME(open_until(&writer, attach.payload, 100 * MS), -ETIMEDOUT);
	continue_daemon(daemon);
	/* When this request is answered, the earlier ones have been served. */
	SAME(payload_of(&writer, attach.payload, 0, NULL), 0);
	SAME(device_detach(&owner, attach.slot[0]), 0);
	SAME(payload_of(&owner, attach.payload, 0, NULL), had ? -EBUSY : -ENOENT);
	if (had)
		SAME(payload_of(&writer, attach.payload, XMEM_PAYLOAD_CLOSE, NULL), 0);
	SAME(payload_of(&owner, attach.payload, 0, NULL), -ENOENT);
	raw_close(&writer);
	raw_close(&owner);
}

TEST(P9_opening_gpu_memory_is_given_up)
{
	given_up(false);
}

TEST(P9_opening_gpu_memory_again_is_given_up)
{
	given_up(true);
}
