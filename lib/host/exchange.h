/* SPDX-License-Identifier: MIT */
/* Requests to xmemd and their replies, on one connection: exchange.c. */
#ifndef XMEM_EXCHANGE_H
#define XMEM_EXCHANGE_H

#include <pthread.h>

#include "core/request.h"

/* Zeroed, then xl_exchange_init. Lock order: turn, then posts_lock. */
struct xl_exchange {
	u32 turn;		/* a lock: one request and its reply at a time */
	u64 number;		/* of the last request; under the turn, as the next */
	u64 answers;		/* replies so far; only read without it */
	struct xmem_quota_request refused;	/* why xmemd takes no request of this connection;
						 * size 0: it does. Only before the join */
	u64 *collects;		/* in this client's area (enum xmem_collects); NULL: not mapped */
	u32 unanswered;		/* requests that were given up, and whose replies will come */
	pthread_mutex_t posts_lock;	/* guards what follows; nobody sleeps under it */
	struct xl_post *posts;	/* what could not be sent at once; oldest first */
	u32 post_count, post_room;
};

void xl_exchange_init(struct xl_exchange *exchange);
void xl_exchange_destroy(struct xl_exchange *exchange);

/*
 * Send a request and wait for its reply, which is put into *argument. A descriptor that comes
 * with it goes to *place, and with NULL none may come. 0 or -errno.
 *
 * -ETIMEDOUT, -EINTR: it was given up at @deadline_ns (~0: never), or because of a signal. If
 * xmemd serves it later, it is undone, unless it is a join: then the caller closes the socket.
 * For that, nobody asks for a subscription that this client has or has not yet posted the end of.
 */
int xl_exchange(struct xl_exchange *exchange, int socket, unsigned int request,
		union xm_request *argument, int *place, u64 deadline_ns);

/*
 * Send a request that needs no reply. It does not wait: what cannot be sent at once is sent
 * before the next request, or with the next post.
 */
void xl_exchange_post(struct xl_exchange *exchange, int socket, unsigned int request,
		      const union xm_request *argument);

/* Send what could not be posted before, as far as there is room now. */
void xl_exchange_flush(struct xl_exchange *exchange, int socket);

/*
 * Send all of it, whatever signals come. -ETIMEDOUT: xmemd has read nothing for @patience_ns, and
 * the rest is kept. Any other error is for the next request to find.
 */
int xl_exchange_send_kept(struct xl_exchange *exchange, int socket, u64 patience_ns);

/*
 * Read late replies to requests that were given up, as far as they are there, and undo these.
 * Returns how many replies have been read so far.
 */
u64 xl_exchange_catch_up(struct xl_exchange *exchange, int socket);

#endif
