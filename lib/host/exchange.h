/* SPDX-License-Identifier: MIT */
/* Requests to xmemd and their replies, on one connection: exchange.c. */
#ifndef XMEM_EXCHANGE_H
#define XMEM_EXCHANGE_H

#include <pthread.h>

#include "core/request.h"

/*
 * The caller fills it with zeros, then calls xl_exchange_init. Lock order: turn, then posts_lock.
 */
struct xl_exchange {
	u32 turn;		/* a lock: guards number, answers, unanswered and refused; one
				 * request and its reply at a time */
	u64 number;		/* of the last request; the next is one more */
	u64 answers;		/* replies so far; other threads may read it */
	struct xmem_quota_request refused;	/* why xmemd refuses all requests of this
						 * connection, known before the join; size 0: it
						 * does not */
	u64 *collects;		/* in this client's area (enum xmem_collects); NULL: not mapped */
	u32 unanswered;		/* given-up requests whose replies are still to come */
	pthread_mutex_t posts_lock;	/* guards the following fields; a thread never sleeps
					 * under it */
	struct xl_post *posts;	/* posts that could not be sent at once, oldest first */
	u32 post_count, post_room;
};

void xl_exchange_init(struct xl_exchange *exchange);
void xl_exchange_destroy(struct xl_exchange *exchange);

/*
 * Send a request, and wait for its reply, which is stored in *argument. A descriptor that comes
 * with the reply is stored in *place; if @place is NULL, none may come. 0 or -errno.
 *
 * -ETIMEDOUT, -EINTR: the request was given up at @deadline_ns (~0: never), or because of a signal.
 * If xmemd serves it later, it is undone. This has two conditions. After a join that was given up,
 * the caller closes the socket. And the caller does not ask for a subscription that this client
 * has, or whose end it has not posted yet.
 */
int xl_exchange(struct xl_exchange *exchange, int socket, unsigned int request,
		union xm_request *argument, int *place, u64 deadline_ns);

/*
 * Send a request that needs no reply. It does not wait. If the socket is full, the post is sent
 * before the next request, or with the next post.
 */
void xl_exchange_post(struct xl_exchange *exchange, int socket, unsigned int request,
		      const union xm_request *argument);

/* Send the posts that were kept, as far as the socket has room now. */
void xl_exchange_flush(struct xl_exchange *exchange, int socket);

/*
 * Send all posts that were kept, whatever signals come. -ETIMEDOUT: xmemd has read nothing for
 * @patience_ns, and the rest is still kept. The next request reports any other error.
 */
int xl_exchange_send_kept(struct xl_exchange *exchange, int socket, u64 patience_ns);

/*
 * Read the late replies to given-up requests that have come, and undo these requests. Returns how
 * many replies have been read so far.
 */
u64 xl_exchange_catch_up(struct xl_exchange *exchange, int socket);

#endif
