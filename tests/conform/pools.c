// SPDX-License-Identifier: MIT
/*
 * The part of the harness that knows pools: it opens them, stamps and checks contents, checks a
 * pool's state, and sends requests straight to the host.
 */
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "harness.h"
#include "lib/host/request.h"

/* ---- what is being tested ---- */

bool on_kernel(void)
{
	const char *backend = getenv("XMEM_BACKEND");

	return backend && *backend ? !strcmp(backend, "kernel") : !access("/dev/xmem", F_OK);
}

bool in_vm(void)
{
	return getenv("VM_OUT") != NULL;
}

void kernel_only(const char *why)
{
	if (!on_kernel())
		skip("%s", why);
}

void several_users_or_skip(void)
{
	kernel_only("the daemon is one user's");
	if (!in_vm() || geteuid())
		skip("the device is the whole machine's: only as root in the virtual machine");
	CHECK(!chmod("/dev/xmem", 0666));
}

void be_user(uid_t uid)
{
	CHECK(!setgid(uid) && !setuid(uid));
	CHECK(!prctl(PR_SET_DUMPABLE, 1));	/* else root owns its files in /proc */
}

void daemon_only(const char *why)
{
	if (on_kernel())
		skip("%s", why);
}

void set_parameter(const char *name, const char *value, char *ret_old)
{
	char path[100], ignored[32];
	ssize_t got;
	int file;

	if (!in_vm())
		skip("the module's limits are the whole machine's: only in the virtual machine");
	snprintf(path, sizeof(path), "/sys/module/xmem/parameters/%s", name);
	file = open(path, O_RDWR | O_CLOEXEC);
	if (file < 0)
		FAIL("%s: %s", path, strerror(errno));
	if (!ret_old)
		ret_old = ignored;
	got = read(file, ret_old, 31);
	CHECK(got > 0);
	ret_old[got] = 0;
	CHECK(pwrite(file, value, strlen(value), 0) > 0);
	close(file);
}

const struct xmem_backend *host_backend(void)
{
	return on_kernel() ? &xmem_backend_kmod : &xmem_backend_daemon;
}

/* ---- pools ---- */

const char *new_name(void)
{
	static char name[8][XMEM_NAME_BYTES];
	static unsigned int count;
	char *place = name[count % 8];

	snprintf(place, XMEM_NAME_BYTES, "conform.%d.%u", getpid(), count++);
	return place;
}

struct xmem_pool *open_with(const char *name, const struct setup *setup)
{
	struct xmem_pool_options options = {
		.size = sizeof(options), .flags = setup->flags, .slots = setup->slots,
		.clients = setup->clients, .ring_entries = setup->ring,
		.wait_bound_ns = setup->wait_bound_ns, .label = setup->label,
		.demand_bytes = setup->demand_bytes, .cache_bytes = setup->cache_bytes,
		.cache_ns = setup->cache_ns, .memory = setup->memory,
	};
	struct xmem_pool *pool = xmem_pool_open(name, &options);

	if (!pool)
		FAIL("opening %s: %s (%s)", name, strerror(-xmem_peek_last_error(NULL)),
		     last_message());
	return pool;
}

int make_on_gpu(struct xmem_pool *pool, size_t bytes, uint32_t count, int device, uint32_t flags)
{
	return xmem_preallocate(pool, bytes, count,
				XMEM_OPTIONS(xmem_preallocate_options, .device_id = device,
					     .flags = flags | XMEM_MEMORY_CUDA));
}

int64_t trim_pool(struct xmem_pool *pool, uint64_t keep)
{
	uint64_t bytes = 0;
	int err = xmem_collect(pool, keep, &bytes);

	return err < 0 ? err : (int64_t)bytes;
}

struct xmem_pool *open_by_fd(int fd, uint32_t flags)
{
	return xmem_pool_open(NULL, XMEM_OPTIONS(xmem_pool_options, .flags = flags | XMEM_OPEN_FD,
						 .fd = fd));
}

struct xmem_pool *open_reader(const char *name)
{
	return OPEN(name, .flags = XMEM_OPEN_READER);
}

struct xmem_pool *open_writer(const char *name, unsigned int buffers, size_t bytes)
{
	struct xmem_pool *pool = OPEN(name, .flags = XMEM_OPEN_WRITER);

	WORKED(xmem_preallocate(pool, bytes, buffers, NULL));
	return pool;
}

struct xmem_subscription *follow(struct xmem_pool *pool, int publisher, uint32_t flags)
{
	struct xmem_subscribe_options options = {
		.size = sizeof(options), .flags = flags | XMEM_SUBSCRIBE_PUBLISHER,
		.publisher = publisher, .timeout_ns = patience_ns(),
	};
	struct xmem_subscription *subscription = xmem_subscribe(pool, &options);

	if (!subscription)
		FAIL("subscribing: %s (%s)", strerror(-xmem_peek_last_error(NULL)),
		     last_message());
	return subscription;
}

struct xmem_pool_info stat_of(struct xmem_pool *pool)
{
	struct xmem_pool_info stat;

	memset(&stat, 0xcc, sizeof(stat));
	stat.size = sizeof(stat);
	WORKED(xmem_pool_stat(pool, &stat));
	return stat;
}

struct xmem_subscription_info sub_info(struct xmem_subscription *subscription)
{
	struct xmem_subscription_info info;

	memset(&info, 0xcc, sizeof(info));
	info.size = sizeof(info);
	WORKED(xmem_subscription_stat(subscription, &info));
	return info;
}

struct xmem_buffer_info info_of(struct xmem_buffer *buffer)
{
	struct xmem_buffer_info info;

	memset(&info, 0xcc, sizeof(info));
	info.size = sizeof(info);
	WORKED(xmem_buffer_stat(buffer, &info));
	SAME(info.size, sizeof(info));
	return info;
}

static bool is_fast_under_mutex(struct xmem_pool *pool, unsigned int clients)
{
	struct xmem_pool_info stat = stat_of(pool);

	return !stat.holds && !stat.held && !stat.limbo && !stat.zombies && stat.clients == clients;
}

void check_quiet(struct xmem_pool *pool, unsigned int clients)
{
	int64_t end = now_ns() + patience_ns();

	while (!is_fast_under_mutex(pool, clients)) {
		struct xmem_pool_info s = stat_of(pool);

		if (now_ns() > end)
			FAIL("not quiet: holds %llu held %u limbo %u zombies %u, "
			     "%u clients and not %u",
			     (unsigned long long)s.holds, s.held, s.limbo, s.zombies, s.clients,
			     clients);
		look_again_soon();
	}
}

/* ---- why a call has failed ---- */

const char *last_message(void)
{
	struct xmem_error error = XMEM_INIT(error);

	xmem_peek_last_error(&error);
	return error.message;
}

void error_says(const char *words)
{
	if (!strstr(last_message(), words))
		FAIL("'%s' does not contain '%s'", last_message(), words);
}

/* ---- stamped contents ---- */

void fill(struct xmem_buffer *buffer, uint64_t stamp)
{
	uint64_t *word = xmem_data_mut(buffer);

	CHECK(word);
	fill_at(buffer, word, stamp);
}

void fill_at(struct xmem_buffer *buffer, uint64_t *word, uint64_t stamp)
{
	size_t i;

	/* Atomic, because processes that check whether contents change under them read them so. */
	for (i = 0; i < xmem_size(buffer) / 8; i++)
		__atomic_store_n(&word[i], stamp, __ATOMIC_RELAXED);
	xmem_metadata_mut(buffer)->id = stamp;
}

uint64_t stamp_of(struct xmem_buffer *buffer)
{
	const uint64_t *word = xmem_data(buffer);
	uint64_t stamp, id;
	size_t i;

	if (!word)
		FAIL("no contents: %s", last_message());
	CHECK(xmem_size(buffer) >= 8);
	stamp = __atomic_load_n(word, __ATOMIC_RELAXED);
	for (i = 1; i < xmem_size(buffer) / 8; i++)
		if (__atomic_load_n(&word[i], __ATOMIC_RELAXED) != stamp)
			FAIL("contents of two publications: 0x%llx at 0, 0x%llx at %zu",
			     (unsigned long long)stamp, (unsigned long long)word[i], i * 8);
	id = xmem_metadata_ptr(buffer)->id;
	if (id != stamp)
		FAIL("metadata of another publication: 0x%llx, beside contents of 0x%llx",
		     (unsigned long long)id, (unsigned long long)stamp);
	return stamp;
}

static uint64_t publish_as(struct xmem_pool *pool, uint64_t stamp, uint32_t flags,
			   struct xmem_buffer **ret_buffer)
{
	struct xmem_publish_options options = { .size = sizeof(options), .flags = flags };
	uint64_t token = 0;

	*ret_buffer = xmem_acquire(pool, 0, patience_ns());
	if (!*ret_buffer)
		FAIL("acquiring: %s (%s)", strerror(-xmem_peek_last_error(NULL)),
		     last_message());
	fill(*ret_buffer, stamp);
	WORKED(xmem_publish(*ret_buffer, &options, &token));
	CHECK(token);
	return token;
}

uint64_t publish_stamp(struct xmem_pool *pool, uint64_t stamp)
{
	struct xmem_buffer *gone;

	return publish_as(pool, stamp, 0, &gone);
}

uint64_t publish_kept(struct xmem_pool *pool, uint64_t stamp, struct xmem_buffer **ret_kept)
{
	return publish_as(pool, stamp, XMEM_PUBLISH_KEEP, ret_kept);
}

int send_to(struct xmem_buffer *buffer, int client, uint64_t *ret_token)
{
	return xmem_publish(buffer, XMEM_OPTIONS(xmem_publish_options,
			    .flags = XMEM_PUBLISH_CLIENT, .client = client), ret_token);
}

struct xmem_buffer *publish_and_get(struct xmem_pool *pool, struct xmem_pool *reader,
				    uint64_t stamp)
{
	struct xmem_buffer *kept, *got;
	uint64_t token = publish_kept(pool, stamp, &kept);

	got = xmem_get(reader, token);
	if (!got) {
		const char *why = last_message();
		int err = xmem_peek_last_error(NULL);

		FAIL("getting: %s (%s)", strerror(-err), why);
	}
	SAME(xmem_token(got), token);
	SAME(stamp_of(got), stamp);
	xmem_release(kept);
	return got;
}

struct xmem_buffer *receive_one(struct xmem_subscription *subscription)
{
	struct xmem_buffer *buffer = xmem_receive(subscription, patience_ns());

	if (!buffer)
		FAIL("receiving: %s (%s)", strerror(-xmem_peek_last_error(NULL)),
		     last_message());
	stamp_of(buffer);
	return buffer;
}

/* ---- the host itself ---- */

void raw_open(struct raw *raw)
{
	memset(raw, 0, sizeof(*raw));
	raw->link.backend = host_backend();
	SAME(raw->link.backend->open(&raw->link, true), 0);
}

int raw_request(struct raw *raw, unsigned int request, void *argument)
{
	return raw->link.backend->request(&raw->link, request, argument);
}

int raw_slot(struct raw *raw, uint32_t op, uint32_t slot)
{
	struct xmem_slot_request request = { .size = sizeof(request), .op = op, .slot = slot };

	return raw_request(raw, XMEM_IOC_SLOT, &request);
}

int raw_wait(struct raw *raw, uint32_t op, struct xmem_wait_request *request)
{
	request->op = op;
	return raw_request(raw, XMEM_IOC_WAIT, request);
}

int raw_join(struct raw *raw, const char *name, uint32_t role, uint32_t flags)
{
	struct xmem_join_request *join = &raw->link.join;

	memset(join, 0, sizeof(*join));
	join->size = sizeof(*join);
	join->abi = XMEM_ABI;
	join->role = role;
	join->flags = flags;
	join->pool_fd = -1;
	snprintf((char *)join->name, sizeof(join->name), "%s", name);
	snprintf((char *)join->label, sizeof(join->label), "raw");
	return raw_request(raw, XMEM_IOC_JOIN, join);
}

void raw_start(struct raw *raw, const char *name, uint32_t role)
{
	raw_open(raw);
	SAME(raw_join(raw, name, role, 0), 0);
	SAME(raw->link.backend->map(&raw->link, &raw->map), 0);
	raw->mapped = true;
}

/* Newer kernels refuse MADV_DOFORK for memory that mremap() may not enlarge. */
void forks_have_mappings_or_skip(void)
{
	size_t page = sysconf(_SC_PAGESIZE);
	struct raw raw;
	void *at;
	int err;

	raw_start(&raw, new_name(), XMEM_ROLE_READER);
	at = mmap(NULL, page, PROT_READ, MAP_SHARED, raw.link.file, 0);
	CHECK(at != MAP_FAILED);
	err = madvise(at, page, MADV_DOFORK) ? errno : 0;
	munmap(at, page);
	raw_close(&raw);
	if (err == EINVAL)
		skip("this kernel gives forks no mapping that mremap() may not enlarge");
	SAME(err, 0);
}

void raw_close(struct raw *raw)
{
	raw->link.backend->close(&raw->link);
	raw->mapped = false;
}

int new_memfd(size_t bytes, unsigned int seals)
{
	int file = memfd_create("conform", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	CHECK(file >= 0);
	CHECK(!bytes || !posix_fallocate(file, 0, bytes));
	CHECK(!fcntl(file, F_ADD_SEALS, seals));
	return file;
}

int raw_attach(struct raw *raw, int file, unsigned int count,
	       struct xmem_attach_request *ret_request)
{
	struct xmem_attach_request request = {
		.size = sizeof(request), .fd = file, .stride = 4096, .length = 4096, .count = count,
	};
	int err = raw_request(raw, XMEM_IOC_ATTACH, &request);

	if (!err && ret_request)
		*ret_request = request;
	return err;
}

void raw_hold(const struct raw *raw, uint64_t token)
{
	int err = xm_get(&raw->map, raw->link.join.client, token);

	if (err == -EAGAIN)	/* it is held, but may not be there */
		EVENTUALLY((err = xm_look(&raw->map, token)) != -EAGAIN);
	SAME(err, 0);
}

bool raw_follows(const struct raw *raw, int subscriber, int publisher)
{
	return xm_bit(xm_client_row(&raw->map, publisher)->subscribers, subscriber);
}

/* ---- a daemon that is stopped ---- */

bool is_stopped(pid_t pid)
{
	char path[32], text[256] = "";
	int file;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(file >= 0 && read(file, text, sizeof(text) - 1) > 0);
	close(file);
	return strstr(text, ") T ");
}

void set_host_patience(int64_t ns)
{
	xl_ask_ns = ns;
}

pid_t stop_daemon(void)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);
	struct raw raw;

	raw_open(&raw);
	CHECK(!getsockopt(raw.link.file, SOL_SOCKET, SO_PEERCRED, &peer, &length));
	raw_close(&raw);
	CHECK(peer.pid > 1);
	note_stopped(peer.pid);
	CHECK(!kill(peer.pid, SIGSTOP));
	EVENTUALLY(is_stopped(peer.pid));
	set_host_patience(HOST_IS_STOPPED);
	return peer.pid;
}

void continue_daemon(pid_t daemon)
{
	CHECK(!kill(daemon, SIGCONT));
	set_host_patience(HOST_IS_BUSY);
	note_stopped(0);
}

uint64_t *steps_of_daemon(void)
{
	const size_t bytes = (XM_STEPS + 1) * sizeof(uint64_t);
	int file = new_memfd(bytes, 0);
	char path[40];
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

	CHECK(at != MAP_FAILED);
	files_may_stay = true;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", getpid(), file);
	CHECK(!setenv("XMEMD_STEPS", path, 1));
	return at;
}

void interrupt_the_daemon(void)
{
	struct sched_param first = { .sched_priority = 1 }, last = { 0 };
	cpu_set_t all, one;
	pid_t daemon;
	int i = 0;

	if (on_kernel())
		return;
	use_own_daemon();
	daemon = stop_daemon();
	CHECK(!sched_getaffinity(0, sizeof(all), &all));
	while (!CPU_ISSET(i, &all))
		i++;
	CPU_ZERO(&one);
	CPU_SET(i, &one);
	CHECK(!sched_setaffinity(0, sizeof(one), &one));
	CHECK(!sched_setaffinity(daemon, sizeof(one), &one));
	if (sched_setscheduler(0, SCHED_FIFO, &first))	/* else lower the daemon */
		CHECK(!sched_setscheduler(daemon, SCHED_IDLE, &last));
	continue_daemon(daemon);
}

void host_has_served(struct xmem_pool *pool)
{
	int file = xmem_pool_fd(pool);

	WORKED(file);
	close(file);
}

struct xmem_subscription *subscribe_for(struct xmem_pool *pool, int publisher, uint32_t flags,
					int64_t timeout_ns)
{
	struct xmem_subscribe_options options = {
		.size = sizeof(options), .flags = XMEM_SUBSCRIBE_PUBLISHER | flags,
		.publisher = publisher, .timeout_ns = timeout_ns,
	};

	return xmem_subscribe(pool, &options);
}
