// SPDX-License-Identifier: MIT
/*
 * A host in the same process: a pool in plain memory, whose requests are answered by the core's
 * bookkeeping. The library takes it for the daemon.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"

struct fuzz_host fuzz;

#define PAGE	4096

/* ---- the pool ---- */

/* Join with a group of its own, and slots in a payload of its own. */
static void add_writer(u32 id)
{
	struct xmem_join_request join = { .role = XMEM_ROLE_WRITER, .label = "fuzz" };
	struct xmem_attach_request request = {
		.fd = 3, .stride = FUZZ_SLOT_BYTES, .length = FUZZ_SLOT_BYTES, .count = FUZZ_SLOTS,
	};
	struct xm_payload payload = { .bytes = FUZZ_FILE_BYTES };
	struct xm_joiner who = { .pid = 100 + id, .sibling = XM_NO_CLIENT };
	int group = xm_host_free_group(&fuzz.host, id, 1);
	u32 i;

	if (group < 0)		/* a client still holds a slot of each group */
		return;
	MUST(!xm_host_join(&fuzz.host, id, &join, &who) && join.client == id);
	xm_host_give_group(&fuzz.host, group, id);
	payload.id = ++fuzz.payloads;
	MUST(!xm_host_attach(&fuzz.host, id, &payload, 12345, &request));
	for (i = 0; i < FUZZ_SLOTS; i++)
		fuzz.slot[id - FUZZ_HOSTILE][i] = request.slot[i];
}

static void make_pages(struct xmem_pool_header *header)
{
	struct xmem_join_request sizes = { .slots = 192, .clients = 3, .ring_entries = 4 };

	MUST(!xm_host_layout(&sizes, PAGE, header));
	fuzz.bytes = header->total_bytes;
	if (!fuzz.pages) {
		fuzz.file = memfd_create("fuzz", MFD_CLOEXEC);
		MUST(fuzz.file >= 0 && !ftruncate(fuzz.file, FUZZ_FILE_BYTES));
		MUST(!posix_memalign(&fuzz.pages, PAGE, fuzz.bytes));
	}
	memset(fuzz.pages, 0, fuzz.bytes);
	memcpy(fuzz.pages, header, sizeof(*header));
}

void fuzz_host_begin(void)
{
	struct xmem_pool_header header;

	make_pages(&header);
	memset(&fuzz.host, 0, sizeof(fuzz.host));
	xm_host_init(&fuzz.host, fuzz.pages);
	xm_map_init(&fuzz.host.map, fuzz.pages, &header);
	fuzz.host.map.pool->host = XMEM_HOST_ALIVE & 1;
	fuzz.payloads = 0;
	add_writer(FUZZ_HOSTILE);
	add_writer(FUZZ_OWNER);
}

static u32 state_of_writer(void)
{
	return xm_load(&xm_client_row(&fuzz.host.map, FUZZ_HOSTILE)->state);
}

void fuzz_host_end_writer(void)
{
	if (state_of_writer() == XMEM_CLIENT_ALIVE)
		xm_host_end(&fuzz.host, FUZZ_HOSTILE);
}

void fuzz_host_new_writer(void)
{
	if (state_of_writer() == XMEM_CLIENT_NONE)
		add_writer(FUZZ_HOSTILE);
}

void fuzz_host_reap(void)
{
	const struct xm_map *map = &fuzz.host.map;
	struct xm_sweep sweep = { .stage = 0 };
	u64 payload;
	int slot;
	u32 i;

	if (state_of_writer() == XMEM_CLIENT_ZOMBIE &&
	    xm_host_bury(&fuzz.host, FUZZ_HOSTILE) == XM_BURIED)
		memset(map->area[FUZZ_HOSTILE], 0, map->pool->area_stride);
	xm_host_suspect_all(&fuzz.host);
	while ((slot = xm_host_sweep(&fuzz.host, &sweep, &payload)) != -ENOENT)
		map->pool->payloads_gone += slot >= 0;
	for (i = 0; i < map->groups; i++)
		if (xm_host_idle_group(&fuzz.host, i))
			memset(map->group[i], 0, map->pool->group_stride);
}

/* ---- the back end ---- */

static int join(struct xmem_join_request *join)
{
	const struct xm_joiner who = { .pid = 99, .sibling = XM_NO_CLIENT };
	int err = xm_host_join(&fuzz.host, FUZZ_READER, join, &who);

	join->total_bytes = fuzz.bytes;
	return err;
}

static int payload(struct xmem_payload_request *request)
{
	if (!request->payload || request->payload > fuzz.payloads)
		return -ENOENT;
	request->bytes = FUZZ_FILE_BYTES;
	request->fd = xl_file_record(fcntl(fuzz.file, F_DUPFD_CLOEXEC, 0));
	return request->fd < 0 ? -EMFILE : 0;
}

static int slot(const struct xmem_slot_request *request)
{
	int err = xm_slot_check(&fuzz.host.map, request);

	if (err || request->op == XMEM_OP_COLLECT)
		return err;
	if (request->op != XMEM_OP_RESOLVE)
		return -ENOSYS;
	return xm_host_resolve(&fuzz.host, FUZZ_READER, request->slot,
			       xm_load(&xm_slot(&fuzz.host.map, request->slot)->state));
}

static int serve(struct xmem_link *link, unsigned int request, void *argument)
{
	switch (request) {
	case XMEM_IOC_JOIN:		return join(argument);
	case XMEM_IOC_PAYLOAD:		return payload(argument);
	case XMEM_IOC_SUBSCRIBE:
		return xm_host_subscribe(&fuzz.host, FUZZ_READER, argument);
	case XMEM_IOC_UNSUBSCRIBE:
		return xm_host_unsubscribe(&fuzz.host, FUZZ_READER, argument);
	case XMEM_IOC_SLOT:		return slot(argument);
	case XMEM_IOC_WAIT:
		return ((struct xmem_wait_request *)argument)->op == XMEM_OP_WAIT ? -ETIMEDOUT : 0;
	}
	return -ENOSYS;
}

static int serve_until(struct xmem_link *link, unsigned int request, void *argument,
		       u64 deadline_ns)
{
	return serve(link, request, argument);
}

static void serve_post(struct xmem_link *link, unsigned int request, const void *argument)
{
	u64 copy[16] = { 0 };
	u32 size;

	memcpy(&size, argument, sizeof(size));	/* a post begins with its size */
	MUST(size <= sizeof(copy));
	memcpy(copy, argument, size);
	serve(link, request, copy);
}

static int map_pages(struct xmem_link *link, struct xm_map *map)
{
	*map = fuzz.host.map;
	link->map = map;
	return 0;
}

static int open_nothing(struct xmem_link *link, bool start)
{
	link->file = -1;
	return 0;
}

static int no_device(struct xmem_link *link, bool start)
{
	return -ENODEV;
}

static int map_no_group(struct xmem_link *link, u32 group)
{
	return -EPERM;
}

static void close_nothing(struct xmem_link *link)
{
}

const struct xmem_backend xmem_backend_daemon = {
	.name = "daemon", .open = open_nothing, .request = serve, .request_until = serve_until,
	.post = serve_post, .map = map_pages, .map_group = map_no_group, .close = close_nothing,
	.forked = close_nothing,
};

const struct xmem_backend xmem_backend_kmod = {
	.name = "kernel", .open = no_device, .close = close_nothing, .forked = close_nothing,
};

const char *xl_daemon_why(void);
const char *xl_daemon_why(void)
{
	return NULL;
}
