/* SPDX-License-Identifier: MIT */
/*
 * The map of xmemd, the host where no module can be loaded. One thread, one
 * epoll loop, no lock: each function below runs to its end before another
 * event is looked at, and none blocks.
 *
 *   main.c        options, the loop, start and leave
 *   connection.c  connections: taken, read, answered, dropped
 *   request.c     what each request does
 *   pool.c        pools: pages, clients' ends, wake-ups
 *   payload.c     payload files
 *
 * The bookkeeping in the pages is core/host.h, the datagrams are lib/host/wire.c.
 */
#ifndef XMEMD_H
#define XMEMD_H

#include <sys/types.h>

#include "lib/host/wire.h"
#include "core/host.h"

#define XD_MAX_POOLS	64
#define XD_MAX_PAYLOADS	4096	/* files of one pool */

/* What the process may have of each kind; derived from RLIMIT_NOFILE. */
struct xd_limits {
	u32 connections;	/* two descriptors each */
	u32 per_process;	/* connections of one process */
	u32 payloads;		/* files of all pools */
};

struct xd_payload {
	struct xd_payload *next;
	u32 id;
	u32 slots;		/* that name it; the file goes with the last */
	int file;
	int access;		/* O_RDONLY, O_WRONLY or O_RDWR: as it was attached */
	u64 bytes;
	u64 incarnation;	/* of the client that attached it */
};

struct xd_pool {
	struct xd_pool *next;
	struct xd_daemon *daemon;
	u64 number;			/* from 1, never reused */
	char name[XMEM_NAME_BYTES];	/* our own copy: clients could write the header's */
	int pages;			/* memfd of the whole layout */
	char *base;
	u64 bytes;
	int key;			/* memfd that is the right to join; -1: never asked for */
	u32 clients;			/* connections that have joined and not ended */
	u32 last_payload;		/* id given last */
	u32 payload_count;
	struct xd_payload *payloads;
	struct xm_host host;
};

struct xd_connection {
	struct xd_connection *next;
	struct xd_connection **here;	/* where the list points to this one */
	int socket;
	int process;			/* pidfd of the peer */
	pid_t pid;
	struct xd_pool *pool;		/* NULL: has not joined */
	u32 client;			/* its id there */
	u32 role;
	u64 incarnation;
};

struct xd_daemon {
	int epoll;			/* all there is to do: the listener, requests, ends */
	int ends;			/* epoll of sockets closed and processes gone; they come first */
	int listener;
	int spare;			/* given up for a moment to turn somebody away */
	bool check;			/* XMEMD_CHECK: look at the invariants all the time */
	bool activated;			/* the listener is a service manager's */
	int idle_ms;			/* leave when nobody has been there for so long; -1: never */
	struct xd_limits limits;
	u32 connection_count;
	u32 pool_count;
	u64 last_pool;			/* number given last */
	u32 payload_count;
	struct xd_connection *connections;
	struct xd_pool *pools;
};

/* One request on its way through. */
struct xd_call {
	struct xd_daemon *daemon;
	struct xd_connection *from;
	union xm_request request;
	int file;		/* that came with it, or -1; who keeps it stores -1 */
	int answer;		/* to go with the reply, closed after it; -1: none */
};

/* ---- connections (connection.c) ---- */

/* Take who knocks, at most a batch of them. How many there were. */
u32 xd_accept(struct xd_daemon *daemon);

/* A datagram is there. May end @connection. */
void xd_connection_serve(struct xd_daemon *daemon, struct xd_connection *connection);

/* It and its client are no more. */
void xd_connection_end(struct xd_daemon *daemon, struct xd_connection *connection);

/* ---- requests (request.c) ---- */

/* 0, the struct and call->answer being the reply, or -errno. */
int xd_serve(struct xd_call *call, u32 request, const void *body, size_t length);

/* ---- pools (pool.c) ---- */

struct xd_pool *xd_pool_by_name(struct xd_daemon *daemon, const char *name);
/* That with the least number above @number, or NULL. */
struct xd_pool *xd_pool_after(struct xd_daemon *daemon, u64 number);
struct xd_pool *xd_pool_by_file(struct xd_daemon *daemon, int file);

/* A new pool as @join asks, without clients. 0 or -errno. */
int xd_pool_create(struct xd_daemon *daemon, const struct xmem_join_request *join, struct xd_pool **ret_pool);

/* @from becomes a client of it. 0 or -errno. */
int xd_pool_join(struct xd_pool *pool, struct xd_connection *from, struct xmem_join_request *join);

/* @from's client has ended: drop what it had, wake all; the last one's end is the pool's. */
void xd_pool_leave(struct xd_pool *pool, struct xd_connection *from);

/* It goes if it has no clients. */
void xd_pool_drop(struct xd_pool *pool);

/* A new descriptor of its key, or -errno. */
int xd_pool_file(struct xd_pool *pool);

/* Free what only the dead have had: zombies, slots, groups, payloads. */
void xd_pool_reap(struct xd_pool *pool);

/* Wake who sleeps on this word, if there is anybody. */
void xd_wake(u32 *waiters);

/* Abort if the host's words make no sense; does nothing unless daemon->check. */
void xd_pool_check(const struct xd_pool *pool);

/* ---- payloads (payload.c) ---- */

/* The payload of @file, which is the payload's from then on; without slots yet. 0 or -errno. */
int xd_payload_new(struct xd_pool *pool, int file, u64 incarnation, struct xd_payload **ret_payload);
struct xd_payload *xd_payload_find(const struct xd_pool *pool, u32 id);

/* One slot less names it, or none ever did: without slots it goes. */
void xd_payload_put(struct xd_pool *pool, u32 id);
void xd_payload_drop_unused(struct xd_pool *pool, struct xd_payload *payload);

/* A new descriptor of the file, read-only or writable, or -errno. */
int xd_payload_open(const struct xd_payload *payload, bool writable);

#endif
