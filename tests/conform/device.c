// SPDX-License-Identifier: MIT
/*
 * CUDA payloads as the host sees them: what is attached, who may open it, and when it is closed.
 */
#include <stdlib.h>

#include "device.h"

/* ---- used by all files of these tests ---- */

void device_host(void)
{
	if (on_kernel() && !getenv("FAKECUDA_DEVICE_FILE"))
		skip("no device whose files the module takes (FAKECUDA_DEVICE_FILE)");
	if (on_kernel())
		return;
	use_own_daemon();
	CHECK(!setenv("XMEM_DEVICE_FILES", "195:255,memfd", 1));
}

int device_file(void)
{
	const char *path = getenv("FAKECUDA_DEVICE_FILE");
	int file;

	if (!on_kernel())
		return new_memfd(BYTES, 0);
	CHECK((file = open(path, O_RDWR | O_CLOEXEC)) >= 0);
	return file;
}

struct xmem_attach_request device_attach(int file, unsigned int flags, unsigned int count,
					 unsigned char device)
{
	struct xmem_attach_request request = {
		.size = sizeof(request), .flags = XMEM_ATTACH_CUDA | flags, .fd = file,
		.stride = BYTES, .length = BYTES, .count = count, .bytes = (u64)BYTES * count,
		.device = { 7, [XMEM_UUID_BYTES - 1] = device },
		.handle = { 1, 2, 3, [XMEM_HANDLE_BYTES - 1] = device },
	};

	return request;
}

int payload_of(struct raw *raw, uint64_t payload, unsigned int flags,
	       struct xmem_payload_request *ret)
{
	struct xmem_payload_request request = {
		.size = sizeof(request), .payload = payload, .flags = flags, .fd = -1,
		.handle = { 99 },
	};
	int err = raw_request(raw, XMEM_IOC_PAYLOAD, &request);

	if (ret)
		*ret = request;
	else if (!err && request.fd >= 0)
		close(request.fd);
	return err;
}

int device_detach(struct raw *raw, unsigned int slot)
{
	return raw_slot(raw, XMEM_OP_DETACH, slot);
}

uint64_t make_live(struct raw *raw, unsigned int slot)
{
	struct xm_own own;

	SAME(raw->link.backend->map_group(&raw->link, slot / XMEM_GROUP_SLOTS), 0);
	SAME(xm_take(&raw->map, slot), 0);
	own = xm_own(&raw->map, slot);
	return xm_make_live(&own);
}

struct xmem_device_row device_row(const struct raw *raw, unsigned int device)
{
	return *xm_device_row(&raw->map, device);
}

/* ---- attach and open ---- */

/* An owner with one payload of each mechanism, and others in its pool. */
struct pool_of_three {
	struct raw owner, writer, reader;
	int file;
	struct xmem_attach_request exported, handle, pooled;
};

static void start(struct pool_of_three *p, unsigned int flags)
{
	const char *name;

	device_host();
	name = new_name();
	raw_start(&p->owner, name, XMEM_ROLE_WRITER);
	raw_start(&p->writer, name, XMEM_ROLE_WRITER);
	raw_start(&p->reader, name, XMEM_ROLE_READER);
	p->file = device_file();
	p->exported = device_attach(p->file, flags, 2, 1);
	p->handle = device_attach(-1, XMEM_ATTACH_HANDLE | flags, 1, 2);
	p->pooled = device_attach(p->file, XMEM_ATTACH_HANDLE | flags, 1, 1);
	SAME(raw_request(&p->owner, XMEM_IOC_ATTACH, &p->exported), 0);
	SAME(raw_request(&p->owner, XMEM_IOC_ATTACH, &p->handle), 0);
	SAME(raw_request(&p->owner, XMEM_IOC_ATTACH, &p->pooled), 0);
}

static void finish(struct pool_of_three *p)
{
	close(p->file);
	raw_close(&p->reader);
	raw_close(&p->writer);
	raw_close(&p->owner);
}

/* Is @fd the same open file as @file? Then they share its flags. */
static bool same_open_file(int fd, int file)
{
	int flags = fcntl(file, F_GETFL);
	bool same;

	CHECK(!fcntl(file, F_SETFL, flags | O_APPEND));
	same = fcntl(fd, F_GETFL) & O_APPEND;
	CHECK(!fcntl(file, F_SETFL, flags));
	return same;
}

TEST(API_gpu_memory_is_opened_by_what_was_attached)
{
	struct xmem_payload_request answer;
	struct pool_of_three p;

	start(&p, 0);
	SAME(payload_of(&p.writer, p.exported.payload, XMEM_PAYLOAD_OPEN, &answer), 0);
	CHECK(answer.fd >= 0 && answer.fd != p.file && same_open_file(answer.fd, p.file));
	CHECK(fcntl(answer.fd, F_GETFD) & FD_CLOEXEC);
	close(answer.fd);
	SAME(answer.bytes, 2 * BYTES);
	SAME(answer.traits, XMEM_TRAIT_CUDA | 1u << XMEM_TRAIT_DEVICE_SHIFT);
	CHECK(!memcmp(answer.device, p.exported.device, sizeof(answer.device)));
	CHECK(!memcmp(answer.handle, p.exported.handle, sizeof(answer.handle)));
	SAME(payload_of(&p.writer, p.handle.payload, XMEM_PAYLOAD_OPEN, &answer), 0);
	SAME(answer.fd, -1);
	SAME(answer.traits, XMEM_TRAIT_CUDA | XMEM_TRAIT_HANDLE | 2u << XMEM_TRAIT_DEVICE_SHIFT);
	CHECK(!memcmp(answer.handle, p.handle.handle, sizeof(answer.handle)));
	SAME(payload_of(&p.writer, p.pooled.payload, XMEM_PAYLOAD_OPEN, &answer), 0);
	CHECK(answer.fd >= 0 && same_open_file(answer.fd, p.file));
	close(answer.fd);
	SAME(xm_slot_row(&p.reader.map, p.pooled.slot[0])->traits, answer.traits);
	SAME(device_row(&p.reader, 1).bytes, 3 * BYTES);
	SAME(device_row(&p.reader, 2).bytes, BYTES);
	CHECK(!memcmp(device_row(&p.reader, 2).uuid, p.handle.device, XMEM_UUID_BYTES));
	SAME(xm_load(&p.reader.map.pool->payloads), 3);
	SAME(xm_load(&p.reader.map.pool->payload_bytes), 0);
	finish(&p);
}

TEST(API_asking_for_gpu_memory_gives_no_handle_and_no_file)
{
	static const unsigned char zero[XMEM_HANDLE_BYTES];
	struct xmem_payload_request answer;
	struct pool_of_three p;

	start(&p, 0);
	SAME(payload_of(&p.writer, p.pooled.payload, 0, &answer), 0);
	SAME(answer.fd, -1);
	SAME(answer.bytes, BYTES);
	CHECK(!memcmp(answer.handle, zero, sizeof(zero)));
	SAME(payload_of(&p.writer, p.pooled.payload, XMEM_PAYLOAD_CLOSE, NULL), -ENOENT);
	finish(&p);
}

TEST(P10_readers_get_gpu_memory_only_if_its_owner_lets_them)
{
	struct pool_of_three p;
	unsigned int i;

	start(&p, 0);
	for (i = 0; i < 2; i++) {
		unsigned int flags = i ? XMEM_PAYLOAD_OPEN : 0;

		SAME(payload_of(&p.reader, p.exported.payload, flags, NULL), -EACCES);
		SAME(payload_of(&p.reader, p.handle.payload, flags, NULL), -EACCES);
		SAME(payload_of(&p.reader, p.pooled.payload, flags, NULL), -EACCES);
	}
	p.exported = device_attach(p.file, XMEM_ATTACH_READERS, 1, 1);
	SAME(raw_request(&p.owner, XMEM_IOC_ATTACH, &p.exported), 0);
	SAME(payload_of(&p.reader, p.exported.payload, XMEM_PAYLOAD_OPEN, NULL), 0);
	SAME(payload_of(&p.reader, p.exported.payload, XMEM_PAYLOAD_CLOSE, NULL), 0);
	finish(&p);
}

TEST(P4_flags_for_files_and_for_gpu_memory_are_not_mixed)
{
	struct xmem_attach_request attached;
	struct pool_of_three p;
	int memfd;

	start(&p, 0);
	memfd = new_memfd(BYTES, GOOD_SEALS);
	SAME(payload_of(&p.owner, p.handle.payload, XMEM_PAYLOAD_WRITE, NULL), -EMEDIUMTYPE);
	SAME(payload_of(&p.owner, p.handle.payload, XMEM_PAYLOAD_OPEN | XMEM_PAYLOAD_CLOSE, NULL),
	     -EINVAL);
	SAME(raw_attach(&p.owner, memfd, 1, &attached), 0);
	SAME(payload_of(&p.owner, attached.payload, XMEM_PAYLOAD_OPEN, NULL), -EMEDIUMTYPE);
	SAME(payload_of(&p.owner, attached.payload, XMEM_PAYLOAD_CLOSE, NULL), -EMEDIUMTYPE);
	SAME(payload_of(&p.owner, p.handle.payload, 1u << 3, NULL), -EINVAL);
	close(memfd);
	finish(&p);
}

/* Attach with a request that differs from a good one in one thing. */
#define BAD(error, ...) do { \
	struct xmem_attach_request r = device_attach(p.file, 0, 1, 1); \
	__VA_ARGS__; \
	SAME(raw_request(&p.owner, XMEM_IOC_ATTACH, &r), -(error)); \
} while (0)

TEST(P4_gpu_memory_that_makes_no_sense_is_not_attached)
{
	struct pool_of_three p;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), path;

	start(&p, 0);
	BAD(EINVAL, r.bytes = 0);
	BAD(EINVAL, r.bytes = XMEM_MAX_DEVICE_BYTES + 1);
	BAD(EINVAL, r.bytes = ~0ULL);
	BAD(ERANGE, r.bytes = BYTES - 1);
	BAD(ERANGE, r.offset = ~0ULL - 63);
	BAD(ERANGE, r.count = 3; r.bytes = 4 * BYTES; r.stride = ~0ULL / 2 - 63);
	BAD(EINVAL, memset(r.device, 0, sizeof(r.device)));
	BAD(EINVAL, memset(r.handle, 0, sizeof(r.handle)));
	BAD(EINVAL, r.flags &= ~XMEM_ATTACH_CUDA);
	BAD(EINVAL, r.flags = XMEM_ATTACH_READERS);
	BAD(EINVAL, r.flags = XMEM_ATTACH_HANDLE);
	BAD(EINVAL, r.flags |= XMEM_ATTACH_HANDLE | XMEM_ATTACH_SHARED);
	BAD(EINVAL, r.fd = -1);
	BAD(EINVAL, r.fd = -2; r.flags |= XMEM_ATTACH_HANDLE);
	BAD(EINVAL, r.fd = -1; r.payload = p.exported.payload);
	BAD(EINVAL, r.flags |= 1u << 5);
	BAD(EMEDIUMTYPE, r.fd = null);
	CHECK((path = open("/dev/null", O_PATH | O_CLOEXEC)) >= 0);
	BAD(EBADF, r.fd = path);
	/* A request for more slots of a payload cannot change the payload. */
	BAD(0, r.fd = -1; r.payload = p.exported.payload; r.flags = r.bytes = 0;
	    memset(r.device, 0, sizeof(r.device)); memset(r.handle, 0, sizeof(r.handle)));
	BAD(EINVAL, r.fd = -1; r.payload = p.exported.payload; r.flags = XMEM_ATTACH_READERS;
	    r.bytes = 0; memset(r.device, 0, sizeof(r.device));
	    memset(r.handle, 0, sizeof(r.handle)));
	SAME(device_row(&p.owner, 1).bytes, 3 * BYTES);
	close(path);
	close(null);
	finish(&p);
}

TEST(P4_a_pool_knows_so_many_gpus_and_no_more)
{
	struct xmem_attach_request one;
	struct pool_of_three p;
	unsigned int i;

	start(&p, 0);
	for (i = 3; i <= XMEM_MAX_DEVICES + 1; i++) {
		one = device_attach(-1, XMEM_ATTACH_HANDLE, 1, i);
		SAME(raw_request(&p.owner, XMEM_IOC_ATTACH, &one),
		     i <= XMEM_MAX_DEVICES ? 0 : -EDQUOT);
	}
	/* An opener can still open a payload that it has opened, even after its slots are gone. */
	SAME(device_detach(&p.owner, p.handle.slot[0]), 0);
	SAME(device_row(&p.owner, 2).bytes, 0);
	one = device_attach(-1, XMEM_ATTACH_HANDLE, 1, 2);
	SAME(raw_request(&p.owner, XMEM_IOC_ATTACH, &one), 0);
	SAME(xm_slot_row(&p.reader.map, one.slot[0])->traits >> XMEM_TRAIT_DEVICE_SHIFT, 2);
	finish(&p);
}

/* ---- closing ---- */

TEST(P1_gpu_memory_is_closed_when_nobody_has_it_open)
{
	struct pool_of_three p;
	unsigned int i;
	u64 closed;

	start(&p, 0);
	closed = xm_load(&p.owner.map.pool->payloads_closed);
	for (i = 0; i < 2; i++)
		SAME(payload_of(&p.writer, p.handle.payload, XMEM_PAYLOAD_OPEN, NULL), 0);
	SAME(payload_of(&p.owner, p.handle.payload, XMEM_PAYLOAD_OPEN, NULL), 0);
	SAME(device_detach(&p.owner, p.handle.slot[0]), 0);
	SAME(xm_load(&p.owner.map.pool->payloads_gone), 1);
	SAME(payload_of(&p.owner, p.handle.payload, 0, NULL), -EBUSY);
	SAME(payload_of(&p.writer, p.handle.payload, 0, NULL), -EBUSY);
	SAME(payload_of(&p.writer, p.handle.payload, XMEM_PAYLOAD_OPEN, NULL), -ENOENT);
	SAME(payload_of(&p.reader, p.handle.payload, XMEM_PAYLOAD_CLOSE, NULL), -ENOENT);
	SAME(device_row(&p.owner, 2).bytes, BYTES);
	SAME(device_row(&p.owner, 2).closing_bytes, BYTES);
	SAME(payload_of(&p.writer, p.handle.payload, XMEM_PAYLOAD_CLOSE, NULL), 0);
	SAME(payload_of(&p.writer, p.handle.payload, XMEM_PAYLOAD_CLOSE, NULL), -ENOENT);
	SAME(payload_of(&p.owner, p.handle.payload, 0, NULL), -EBUSY);
	SAME(xm_load(&p.owner.map.pool->payloads_closed), closed);
	SAME(payload_of(&p.owner, p.handle.payload, XMEM_PAYLOAD_CLOSE, NULL), 0);
	SAME(xm_load(&p.owner.map.pool->payloads_closed), closed + 1);
	SAME(payload_of(&p.owner, p.handle.payload, 0, NULL), -ENOENT);
	SAME(device_row(&p.owner, 2).bytes, 0);
	SAME(device_row(&p.owner, 2).closing_bytes, 0);
	/* No client has opened the other one, so it is closed at once. */
	SAME(device_detach(&p.owner, p.pooled.slot[0]), 0);
	SAME(payload_of(&p.owner, p.pooled.payload, 0, NULL), -ENOENT);
	SAME(xm_load(&p.owner.map.pool->payloads_closed), closed + 2);
	finish(&p);
}

TEST(P5_a_payload_that_is_closing_gets_no_slots)
{
	struct xmem_attach_request more;
	struct pool_of_three p;

	start(&p, 0);
	SAME(payload_of(&p.writer, p.handle.payload, XMEM_PAYLOAD_OPEN, NULL), 0);
	SAME(device_detach(&p.owner, p.handle.slot[0]), 0);
	more = (struct xmem_attach_request){
		.size = sizeof(more), .fd = -1, .payload = p.handle.payload, .stride = BYTES,
		.length = BYTES, .count = 1,
	};
	SAME(raw_request(&p.owner, XMEM_IOC_ATTACH, &more), -ENOENT);
	SAME(payload_of(&p.owner, p.handle.payload, 0, NULL), -EBUSY);
	finish(&p);
}
