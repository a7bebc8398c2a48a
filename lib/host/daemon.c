// SPDX-License-Identifier: MIT
/*
 * The back end of xmemd. Requests are datagrams, and the pages of a pool are one memfd that is
 * mapped whole. Arming, waiting, waking, resolving and taking claims need no request: the library
 * does in the pages what the module does for its clients, with the same checks (core/host.h).
 *
 * start.c finds and starts xmemd, exchange.c has requests and replies, and wire.c has datagrams.
 */
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/host.h"
#include "lib/base/files.h"
#include "lib/base/uncancelled.h"
#include "lib/host/backend.h"
#include "lib/host/exchange.h"
#include "lib/host/futex.h"
#include "lib/host/start.h"
#include "lib/host/wire.h"

#define NS		1000000000ULL
#define LOOK_NS		NS		/* how often a waiter checks the host before Linux 5.16 */
#define LEAVE_MS	1000
#define RESOLVE_NS	1000000L	/* how long a state word must not have changed */

struct daemon_link {
	struct xl_exchange exchange;
	int pages;		/* the pool's memfd between join and map, else -1 */
	void *base;		/* where it is mapped; NULL: not yet */
	size_t bytes;
	bool shares_claims;	/* the host knows that owners add claims themselves; atomic */
	bool late;		/* the last wait for posts timed out */
	struct xm_host host;	/* only its map is set, for core/host.h */
};

static int daemon_open(struct xmem_link *link, bool start)
{
	struct daemon_link *daemon = calloc(1, sizeof(*daemon));

	link->file = -1;
	if (!daemon)
		return -ENOMEM;
	xl_exchange_init(&daemon->exchange);
	daemon->pages = -1;
	link->private = daemon;
	link->file = xl_daemon_connect(start);
	return link->file < 0 ? link->file : 0;
}

/* ---- requests of the daemon ---- */

/* The place for the descriptor of a reply. NULL: the reply to this request has none. */
static int *file_out(struct daemon_link *daemon, unsigned int request, union xm_request *argument)
{
	switch (request) {
	case XMEM_IOC_JOIN:		return &daemon->pages;
	case XMEM_IOC_POOL_FD:	return &argument->pool_fd.fd;
	case XMEM_IOC_PAYLOAD:		return &argument->payload.fd;
	case XMEM_IOC_POLL_FD:		return &argument->poll_fd.fd;
	}
	return NULL;
}

/* ---- requests that the library serves itself ---- */

static u64 now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NS + now.tv_nsec;
}

/*
 * If the kernel cannot sleep on two words (before Linux 5.16), check each second that the host
 * lives.
 */
static int sleep_and_check(u32 *word, u32 value, u64 deadline_ns)
{
	u64 until = now_ns() + LOOK_NS;
	struct timespec deadline;
	int err;

	if (deadline_ns < until)
		until = deadline_ns;
	deadline = (struct timespec){ until / NS, until % NS };
	err = xm_futex_wait(word, value, &deadline);
	return err == -ETIMEDOUT && until < deadline_ns ? 0 : err;
}

/* Sleep until @word changes from @value, or the host dies. 0: check again; or -errno. */
static int sleep_on(u32 *word, u32 value, u32 *host, u32 alive, u64 deadline_ns)
{
	struct futex_waitv words[2] = { xm_futex_at(word, value), xm_futex_at(host, alive) };
	int err = xm_futex_wait_any(words, 2, deadline_ns);

	if (err == -ENOSYS)
		err = sleep_and_check(word, value, deadline_ns);
	return err == -EAGAIN ? 0 : err;
}

static int wait_for_wake(struct daemon_link *daemon, u32 *word,
			 const struct xmem_wait_request *request)
{
	u32 *host = &daemon->host.map.pool->host;
	int err = 0;

	while (!err && xm_still_armed(word, request->value)) {
		u32 value = xm_load(word), alive = xm_load(host);

		if (!(alive & XMEM_HOST_ALIVE)) {
			/* The kernel has woken one waiter only. */
			xm_futex_wake_all(host);
			return -ENOTCONN;
		}
		if (xm_still_armed(&value, request->value))
			err = sleep_on(word, value, host, alive, request->deadline_ns);
	}
	return err;
}

static void flush(struct xmem_link *link)
{
	struct daemon_link *daemon = link->private;
	XL_UNCANCELLED;

	if (xm_load(&daemon->exchange.post_count))
		xl_exchange_flush(&daemon->exchange, link->file);
}

/*
 * The daemon checks its polled descriptors after each datagram. If the socket has no room for this
 * datagram, others are in it that the daemon has yet to read, and one of them has this effect.
 */
static void daemon_poke(struct xmem_link *link)
{
	struct xmem_message head = { .request = XMEM_IOC_WAIT, .result = XMEM_NO_REPLY };
	struct xmem_wait_request request = {
		.size = sizeof(request), .op = XMEM_OP_WAKE, .kind = XMEM_WAIT_SLOTS,
		.client = link->join.client,
	};
	XL_UNCANCELLED;

	flush(link);
	xm_wire_send(link->file, &head, &request, sizeof(request), -1, MSG_DONTWAIT);
}

static bool wake_word(u32 *word)
{
	if (!xm_disarm(word))
		return false;
	xm_futex_wake_all(word);
	return true;
}

/*
 * Threads sleep on the words only. So this wakes all threads that sleep on an armed word, even in
 * other processes. These check their condition again.
 */
static int kick(struct xmem_link *link, const struct xmem_wait_request *request)
{
	struct daemon_link *daemon = link->private;
	const struct xm_map *map = &daemon->host.map;
	bool any;
	u32 c;

	if (xm_kick_check(request))
		return -EINVAL;
	any = wake_word(&map->pool->clients_waiters);
	/* Include rings that are no longer followed: a thread may still sleep on their words. */
	for (c = 0; c < map->clients; c++)
		any |= wake_word(&xm_client_row(map, c)->ring_waiters);
	if (any && xm_load(&map->pool->pollers))
		daemon_poke(link);
	return 0;
}

static int waiters_request(struct xmem_link *link, struct xmem_wait_request *request)
{
	struct daemon_link *daemon = link->private;
	u32 *word;
	int err;

	if (request->op == XMEM_OP_KICK)
		return kick(link, request);
	word = xm_host_waiters(&daemon->host, link->join.client, request, &err);
	if (!word)
		return err;
	switch (request->op) {
	case XMEM_OP_ARM:
		request->value = xm_arm(word);
		request->kicks = 0;	/* a kick wakes the words themselves */
		return 0;
	case XMEM_OP_WAIT:
		flush(link);
		return wait_for_wake(daemon, word, request);
	}
	if (wake_word(word) && xm_load(&daemon->host.map.pool->pollers))
		daemon_poke(link);
	return 0;
}

/* Resolve a slot for a holder whose owner does not go on: the slot becomes LIVE again. */
static int resolve(struct daemon_link *daemon, u32 me, const struct xmem_slot_request *request)
{
	const struct xm_map *map = &daemon->host.map;
	struct timespec pause = { 0, RESOLVE_NS };
	u64 word;
	XL_UNCANCELLED;

	if (xm_slot_check(map, request))
		return -EINVAL;
	if (!(xm_load_acquire(xm_hold(map, me, request->slot)) & XM_HOLD_COUNT))
		return -EPERM;
	word = xm_load_acquire(&xm_slot(map, request->slot)->state);
	if (xm_generation(word) != request->generation)
		return -ESTALE;
	if (xm_state(word) != XMEM_SLOT_SCANNING)
		return -EAGAIN;
	while (nanosleep(&pause, &pause))
		;
	return xm_host_resolve(&daemon->host, me, request->slot, word);
}

/* Claims lie in a row, which all processes of the user may write. */
static int take_claims(struct daemon_link *daemon, u32 me, const struct xmem_claim_request *request)
{
	const struct xm_map *map = &daemon->host.map;

	if (request->slot >= map->slots || !request->count || request->timeout_ns)
		return -EINVAL;
	if (!(xm_load_acquire(xm_hold(map, me, request->slot)) & XM_HOLD_COUNT))
		return -EPERM;
	if (xm_generation(xm_load_acquire(&xm_slot(map, request->slot)->state)) !=
	    request->generation)
		return -ESTALE;
	return xm_claim_take(map, request->slot, request->generation, request->count);
}

/*
 * The owner of the contents adds claims without end itself, in the row. Only for the first ones it
 * asks the host, which then knows that owners do so.
 */
static bool add_alone(struct daemon_link *daemon, u32 me, const struct xmem_claim_request *request)
{
	const struct xm_map *map = &daemon->host.map;

	return request->size == sizeof(*request) && request->op == XMEM_CLAIM_ADD &&
	       !request->flags && !request->reserved && request->timeout_ns == ~0ULL &&
	       request->count && request->count <= XMEM_MAX_CLAIMS && daemon->base &&
	       request->slot < map->slots && map->group[request->slot / XMEM_GROUP_SLOTS] &&
	       xm_load(&daemon->shares_claims) &&
	       !xm_claim_alone(map, me, xm_token(request->generation, request->slot),
			       request->count);
}

/*
 * The host has served a request to add claims. If they have no end, owners may add such claims
 * themselves from now on.
 */
static void learn_shared(struct daemon_link *daemon, const struct xmem_claim_request *request)
{
	if (request->op == XMEM_CLAIM_ADD && request->size == sizeof(*request) &&
	    request->timeout_ns == ~0ULL && xm_any_claims(&daemon->host.map))
		xm_store(&daemon->shares_claims, true);
}

static int serve_locally(struct xmem_link *link, unsigned int kind, void *argument)
{
	struct daemon_link *daemon = link->private;
	union xm_request request;
	int err = xm_wire_take(xm_request_find(kind), argument, *(u32 *)argument, &request);

	if (err)
		return err;
	if (!daemon->base)
		return -ENOTCONN;
	if (kind == XMEM_IOC_SLOT)
		return resolve(daemon, link->join.client, &request.slot);
	if (kind == XMEM_IOC_CLAIM)
		return take_claims(daemon, link->join.client, &request.claim);
	err = waiters_request(link, &request.wait);
	if (!err && request.op == XMEM_OP_ARM)
		memcpy(argument, &request, request.wait.size);
	return err;
}

/* The op of a request that has one; ~0: its struct is too short. */
static u32 op_of(const union xm_request *argument)
{
	return argument->size >= offsetof(union xm_request, op) + sizeof(u32) ? argument->op : ~0u;
}

static int daemon_request_until(struct xmem_link *link, unsigned int request, void *argument,
				u64 deadline_ns)
{
	struct daemon_link *daemon = link->private;
	int err;
	/* If a thread were cancelled here, no other thread would ever get the turn. */
	XL_UNCANCELLED;

	switch (request) {
	case XMEM_IOC_WAIT:
		return serve_locally(link, request, argument);
	case XMEM_IOC_SLOT:
		if (op_of(argument) == XMEM_OP_RESOLVE)
			return serve_locally(link, request, argument);
		break;
	case XMEM_IOC_CLAIM:
		if (op_of(argument) == XMEM_CLAIM_TAKE)
			return serve_locally(link, request, argument);
		if (add_alone(daemon, link->join.client, argument))
			return 0;
	}
	err = xl_exchange(&daemon->exchange, link->file, request, argument,
			  file_out(daemon, request, argument), deadline_ns);
	if (!err && request == XMEM_IOC_CLAIM && daemon->base)
		learn_shared(daemon, argument);
	if (err && !daemon->base)
		link->refused = daemon->exchange.refused;
	return err;
}

static int daemon_request(struct xmem_link *link, unsigned int request, void *argument)
{
	return daemon_request_until(link, request, argument, ~0ULL);
}

static void daemon_post(struct xmem_link *link, unsigned int request, const void *argument)
{
	struct daemon_link *daemon = link->private;
	XL_UNCANCELLED;

	xl_exchange_post(&daemon->exchange, link->file, request, argument);
}

static u64 daemon_catch_up(struct xmem_link *link)
{
	struct daemon_link *daemon = link->private;
	XL_UNCANCELLED;

	flush(link);
	return xl_exchange_catch_up(&daemon->exchange, link->file);
}

/*
 * The daemon serves requests in order, so an answer to any later request will do. A daemon that is
 * slow but not stopped goes on reading, and then this waits until all posts are served.
 */
static void daemon_drain(struct xmem_link *link, u64 patience_ns)
{
	struct daemon_link *daemon = link->private;
	struct xl_exchange *exchange = &daemon->exchange;
	struct xmem_query_request request;
	u64 deadline_ns;
	int err;
	XL_UNCANCELLED;

	/*
	 * The last wait timed out. If the daemon has served nothing since then, do not wait again.
	 */
	if (xm_load(&daemon->late)) {
		daemon_catch_up(link);
		if (xm_load(&exchange->unanswered) || xm_load(&exchange->post_count))
			return;
	}
	err = xl_exchange_send_kept(exchange, link->file, patience_ns);
	deadline_ns = now_ns() + patience_ns;
	/*
	 * A signal handler does not end the wait, because posts must be served when this returns.
	 */
	while (!err) {
		request = (struct xmem_query_request){ .size = sizeof(request) };
		err = daemon_request_until(link, XMEM_IOC_QUERY, &request, deadline_ns);
		if (err != -EINTR)
			break;
		err = 0;
	}
	xm_store(&daemon->late, err == -ETIMEDOUT);
}

/* ---- pages ---- */

static int daemon_map(struct xmem_link *link, struct xm_map *map)
{
	struct daemon_link *daemon = link->private;
	u64 bytes = link->join.total_bytes;
	struct xmem_pool_header header;
	struct stat info;
	void *base;
	int err;

	if (daemon->pages < 0)
		return -ENOTCONN;
	if (fstat(daemon->pages, &info) || (u64)info.st_size != bytes || bytes < sizeof(*map->pool))
		return -EPROTONOSUPPORT;
	xl_fork_lock();
	base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, daemon->pages, 0);
	err = base == MAP_FAILED ? -errno : 0;
	/* A client is one address space: stores of a child would count as its parent's. */
	if (!err)
		madvise(base, bytes, MADV_DONTFORK);
	xl_fork_unlock();
	if (err)
		return err;
	err = xm_map_take(map, base, bytes, link->join.client, &header);
	if (err) {
		munmap(base, bytes);
		return err;
	}
	madvise(base, bytes, MADV_DONTDUMP);
	link->map = map;
	daemon->host.map = *map;
	daemon->exchange.collects = &xm_ring(map, link->join.client)->collects;
	daemon->bytes = bytes;
	daemon->base = base;
	xl_file_close(daemon->pages);
	daemon->pages = -1;
	return 0;
}

/* All pages are writable already, because the processes of one user trust each other. */
static int daemon_map_group(struct xmem_link *link, u32 group)
{
	return group < link->map->groups ? 0 : -EINVAL;
}

/*
 * End the connection, and wait until the daemon has noticed. So a process that closes a pool and
 * opens it again does not find its old client there. Do not wait for long, because the daemon may
 * be stopped.
 */
static void leave(int file, bool stopped)
{
	struct pollfd look = { .fd = file, .events = POLLRDHUP };

	if (!shutdown(file, SHUT_WR) && !stopped)
		poll(&look, 1, LEAVE_MS);
	xl_file_close(file);
}

/*
 * Unmap the pages first. When the daemon has noticed the end, it may give them to another client.
 */
static void daemon_close(struct xmem_link *link)
{
	struct daemon_link *daemon = link->private;

	if (!daemon)
		return;
	daemon->exchange.collects = NULL;
	if (daemon->base)
		munmap(daemon->base, daemon->bytes);
	if (daemon->pages >= 0)
		xl_file_close(daemon->pages);
	if (link->file >= 0)
		leave(link->file, link->stopped);
	xl_exchange_destroy(&daemon->exchange);
	free(daemon);
	link->private = NULL;
	link->file = -1;
}

/*
 * The child has no pages (MADV_DONTFORK). It does not touch the lock, which a thread of the parent
 * may have held, and leaves the connection to the parent.
 */
static void daemon_forked(struct xmem_link *link)
{
	struct daemon_link *daemon = link->private;

	if (!daemon)
		return;
	if (daemon->pages >= 0)
		close(daemon->pages);
	if (link->file >= 0)
		close(link->file);
	daemon->pages = link->file = -1;
	daemon->base = NULL;
}

const struct xmem_backend xmem_backend_daemon = {
	.name = "daemon",
	.on_words = true,
	.open = daemon_open,
	.request = daemon_request,
	.request_until = daemon_request_until,
	.post = daemon_post,
	.drain = daemon_drain,
	.catch_up = daemon_catch_up,
	.map = daemon_map,
	.map_group = daemon_map_group,
	.poke = daemon_poke,
	.close = daemon_close,
	.forked = daemon_forked,
};
