// SPDX-License-Identifier: MIT
/*
 * Clients without the library: see raw.h. Only the verdicts print: each test reports itself.
 */
#include <dirent.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <time.h>

#include "core/policy.h"
#include "raw.h"

/* In a program with the library, the library's function is used. */
__attribute__((weak))
void xm_check_failed(const char *what, const char *file, int line)
{
	fprintf(stderr, "%s:%d: not so: %s\n", file, line, what);
	abort();
}

#ifdef XMEM_STEPS
void xm_step(int step);
void xm_step(int step)
{
}
#endif

/* ---- verdicts ---- */

static unsigned int passed, failed, skipped;

static void say(const char *verdict, const char *name, const char *format, va_list ap)
{
	printf("%s %s: ", verdict, name);
	vprintf(format, ap);
	putchar('\n');
	fflush(stdout);
}

#define VERDICT(function, word, counter) \
	void function(const char *name, const char *format, ...) \
	{ \
		va_list ap; \
		va_start(ap, format); \
		say(word, name, format, ap); \
		va_end(ap); \
		counter++; \
	}
VERDICT(pass, "PASS", passed)
VERDICT(fail, "FAIL", failed)
VERDICT(skip, "SKIP", skipped)

unsigned int failures(void)
{
	return failed;
}

int summary(void)
{
	printf("%u passed, %u failed, %u skipped\n", passed, failed, skipped);
	return failed != 0;
}

/* ---- clients ---- */

int raw_request(const struct raw *raw, unsigned int request, void *argument)
{
	return ioctl(raw->file, request, argument) < 0 ? -errno : 0;
}

int raw_slot(const struct raw *raw, u32 op, u32 slot)
{
	struct xmem_slot_request request = { .size = sizeof(request), .op = op, .slot = slot };

	return raw_request(raw, XMEM_IOC_SLOT, &request);
}

int raw_wait(const struct raw *raw, u32 op, struct xmem_wait_request *request)
{
	request->op = op;
	return raw_request(raw, XMEM_IOC_WAIT, request);
}

int raw_open(struct raw *raw)
{
	*raw = RAW_NONE;
	raw->file = open(RAW_DEVICE, O_RDWR | O_CLOEXEC);
	return raw->file < 0 ? -errno : 0;
}

int raw_join(struct raw *raw, const struct xmem_join_request *join)
{
	int err;

	raw->join = *join;
	err = raw_request(raw, XMEM_IOC_JOIN, &raw->join);
	if (err)
		return err;
	close(raw->file);
	raw->file = raw->join.fd;
	return 0;
}

static void *raw_mmap(const struct raw *raw, int protection, u64 offset, u64 bytes)
{
	void *start = mmap(NULL, bytes, protection, MAP_SHARED, raw->file, offset);

	return start == MAP_FAILED ? NULL : start;
}

int raw_map(struct raw *raw)
{
	raw->base = raw_mmap(raw, PROT_READ, 0, raw->join.total_bytes);
	if (!raw->base)
		return -errno;
	raw->header = *(struct xmem_pool_header *)raw->base;
	xm_map_init(&raw->map, raw->base, &raw->header);
	return 0;
}

int raw_map_area(struct raw *raw)
{
	const struct xmem_pool_header *h = &raw->header;

	raw->area = raw_mmap(raw, PROT_READ | PROT_WRITE,
			     h->areas_offset + raw->join.client * h->area_stride, h->area_stride);
	if (!raw->area)
		return -errno;
	raw->map.area[raw->join.client] = raw->area;
	return 0;
}

int raw_start(struct raw *raw, const struct xmem_join_request *join)
{
	int err = raw_open(raw);

	if (!err)
		err = raw_join(raw, join);
	if (!err)
		err = raw_map(raw);
	if (!err)
		err = raw_map_area(raw);
	return err;
}

bool raw_has_group(const struct raw *raw, unsigned int group)
{
	const char *place = (const char *)raw->map.group[group];

	return place && (place < raw->base || place >= raw->base + raw->join.total_bytes);
}

int raw_map_group(struct raw *raw, unsigned int group)
{
	const struct xmem_pool_header *h = &raw->header;
	void *start;

	if (raw_has_group(raw, group))
		return 0;
	start = raw_mmap(raw, PROT_READ | PROT_WRITE, h->groups_offset + group * h->group_stride,
			 h->group_stride);
	if (!start)
		return -errno;
	raw->map.group[group] = start;
	return 0;
}

/* It may fail for lack of memory; then the client would stay for ever. */
static void raw_unmap(void *start, u64 bytes)
{
	while (munmap(start, bytes) && errno == ENOMEM)
		;
}

void raw_end(struct raw *raw)
{
	u32 g;

	for (g = 0; raw->base && g < raw->map.groups; g++)
		if (raw_has_group(raw, g))
			raw_unmap(raw->map.group[g], raw->header.group_stride);
	if (raw->area)
		raw_unmap(raw->area, raw->header.area_stride);
	if (raw->base)
		raw_unmap(raw->base, raw->join.total_bytes);
	if (raw->file >= 0)
		close(raw->file);
	*raw = RAW_NONE;
}

struct xmem_join_request raw_joining(const char *name, enum xmem_role role)
{
	struct xmem_join_request join = {
		.size = sizeof(join), .abi = XMEM_ABI, .role = role, .pool_fd = -1,
		.slots = 128, .clients = 64, .ring_entries = 8, .label = "raw",
	};

	snprintf((char *)join.name, sizeof(join.name), "%s", name);
	return join;
}

static int sealed_memfd(unsigned int pages, int fill, unsigned int seals)
{
	size_t bytes = (size_t)pages * RAW_PAGE;
	int file = memfd_create("raw", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	void *start;
	int err;

	if (file < 0)
		return -errno;
	if (ftruncate(file, bytes) || fallocate(file, 0, 0, bytes))
		goto err_file;
	start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (start == MAP_FAILED)
		goto err_file;
	memset(start, fill, bytes);
	munmap(start, bytes);
	if (!fcntl(file, F_ADD_SEALS, seals))
		return file;

err_file:
	err = -errno;
	close(file);
	return err;
}

int raw_memfd(unsigned int pages, int fill)
{
	return sealed_memfd(pages, fill, RAW_SEALS);
}

int raw_shared_memfd(unsigned int pages)
{
	return sealed_memfd(pages, 0, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
}

struct xmem_attach_request raw_attaching(int memfd, unsigned int count)
{
	return (struct xmem_attach_request){
		.size = sizeof(struct xmem_attach_request), .fd = memfd,
		.stride = RAW_PAGE, .length = RAW_PAGE, .count = count,
	};
}

/* ---- a hand-over ---- */

const char *pair_hand_over(struct pair *p, const char *name)
{
	struct xmem_join_request join = raw_joining(name, XMEM_ROLE_WRITER);
	struct xmem_subscribe_request subscribe = { .size = sizeof(subscribe) };
	struct xm_pending pending;
	int memfd = raw_memfd(1, 0x5a);

	*p = (struct pair){
		.writer = RAW_NONE, .reader = RAW_NONE, .publication.length = RAW_PAGE,
	};
	if (raw_start(&p->writer, &join))
		return "join of a writer";
	p->attached = raw_attaching(memfd, 1);
	if (raw_request(&p->writer, XMEM_IOC_ATTACH, &p->attached))
		return "attach";
	close(memfd);
	join.role = XMEM_ROLE_READER;
	if (raw_map_group(&p->writer, p->attached.slot[0] / XMEM_GROUP_SLOTS))
		return "mapping of the group";
	if (raw_start(&p->reader, &join))
		return "join of a reader";
	subscribe.publisher = p->writer.join.client;
	if (raw_request(&p->reader, XMEM_IOC_SUBSCRIBE, &subscribe))
		return "subscribe";
	p->follow = (struct xm_follow){
		.publisher = subscribe.publisher,
		.place = subscribe.position, .incarnation = p->writer.join.incarnation,
	};
	if (xm_take(&p->writer.map, p->attached.slot[0]))
		return "acquire";
	xm_publish(&p->writer.map, p->writer.join.client, p->attached.slot[0], &p->publication);
	if (xm_receive(&p->reader.map, p->reader.join.client, &p->follow, &p->publication,
		       &pending))
		return "receive";
	return NULL;
}

static bool pair_payload_is_intact(const struct pair *p)
{
	struct xmem_payload_request payload = {
		.size = sizeof(payload), .payload = p->attached.payload,
	};
	char *start;
	bool intact;

	if (raw_request(&p->reader, XMEM_IOC_PAYLOAD, &payload))
		return false;
	start = mmap(NULL, RAW_PAGE, PROT_READ, MAP_SHARED, payload.fd, 0);
	close(payload.fd);
	if (start == MAP_FAILED)
		return false;
	intact = start[0] == 0x5a && !memcmp(start, start + 1, RAW_PAGE - 1);
	munmap(start, RAW_PAGE);
	return intact;
}

static struct xm_scan_rules pair_rules(const struct pair *p, bool evict)
{
	const struct xm_map *map = &p->writer.map;
	struct xm_scan_rules rules = { .owner = p->writer.join.client };
	struct xm_waited waited;
	u32 culprit;

	rules.passed = rules.evictable = xm_passed(map, rules.owner, &culprit);
	xm_read_waited(map, rules.owner, &waited);
	rules.tail = waited.tail;
	if (evict)
		rules.evictable = waited.evictable;
	return rules;
}

const char *pair_look(const struct pair *p)
{
	const struct xm_map *map = &p->reader.map;
	u32 me = p->reader.join.client, slot = p->attached.slot[0];
	struct xm_scan_rules scan = pair_rules(p, true);

	if (xm_load(xm_hold(map, me, slot)) != 1)
		return "the hold is another number";
	if (xm_get(map, me, p->publication.token))
		return "the token is stale";
	xm_put(map, me, slot);
	if (xm_slot_row(map, slot)->owner != scan.owner ||
	    xm_slot_row(map, slot)->payload != p->attached.payload)
		return "the slot is another's";
	if (xm_scan_one(&p->writer.map, &scan, slot))
		return "the slot could be reclaimed";
	return pair_payload_is_intact(p) ? NULL : "the payload is another";
}

const char *pair_let_go(struct pair *p)
{
	u32 slot = p->attached.slot[0];
	struct xm_scan_rules scan = pair_rules(p, false);

	xm_put(&p->reader.map, p->reader.join.client, slot);
	return xm_scan_one(&p->writer.map, &scan, slot) ? NULL : "reclaim";
}

void pair_end(struct pair *p)
{
	raw_end(&p->reader);
	raw_end(&p->writer);
}

/* ---- existing pools ---- */

int raw_pool_exists(const char *name)
{
	struct xmem_join_request join = raw_joining(name, XMEM_ROLE_READER);
	struct raw raw;
	int err = raw_open(&raw);

	join.flags = XMEM_JOIN_EXISTING;
	if (!err)
		err = raw_join(&raw, &join);
	raw_end(&raw);
	return err == -ENOENT ? 0 : err ? err : 1;
}

/* Counts the entries whose names begin with @prefix. */
static unsigned int count_in(const char *path, const char *prefix)
{
	DIR *folder = opendir(path);
	struct dirent *entry;
	unsigned int n = 0;

	while (folder && (entry = readdir(folder)))
		n += entry->d_name[0] != '.' && !strncmp(entry->d_name, prefix, strlen(prefix));
	if (folder)
		closedir(folder);
	return n;
}

/* A work item removes them a little later. Nothing announces that, so this polls. */
unsigned int raw_pools_shown(unsigned int want)
{
	unsigned int n, looks = 0;

	while ((n = count_in("/sys/class/xmem", "pool")) != want && looks++ < 10000)
		poll(NULL, 0, 1);
	return n;
}

unsigned int raw_descriptors(void)
{
	return count_in("/proc/self/fd", "");
}

u64 raw_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}
