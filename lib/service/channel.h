/* SPDX-License-Identifier: MIT */
/*
 * Messages between the clients of a service. Each message goes to one client. No message is lost or
 * delivered twice while its sender and its receiver live. channel.c describes the method.
 */
#ifndef XMEM_SERVICE_CHANNEL_H
#define XMEM_SERVICE_CHANNEL_H

#include <pthread.h>

#include "lib/private.h"

/* Until the end of the block, a function that fails does not change the thread's last error. */
#define XL_QUIET \
	__attribute__((cleanup(xl_error_restore))) struct xl_error xl_quiet_; \
	xl_error_save(&xl_quiet_)

/* Labels of the clients of a service. A caller looks for SERVES or SHARES. */
#define XL_SERVES	"=serve:"
#define XL_SHARES	"=share:"
#define XL_CALLS	"=calls:"
#define XL_ROLE_CHARS	7

enum xl_kind {
	XL_KIND_REQUEST = 1,
	XL_KIND_RESPONSE = 2,		/* the last response to its call */
	XL_KIND_MORE = 3,		/* a response, and further ones follow */
	XL_KIND_REFUSAL = 4,		/* an errno instead of a response */
	XL_KIND_CANCEL = 5,		/* the caller wants no further response */
	XL_KIND_SEEN = 6,		/* the answer to a full window (channel.c): has no number */
};

/* The head of a message travels in the time stamp of its publication: see channel.c. */
struct xl_head {
	enum xl_kind kind;
	u32 call;			/* the caller's number for the call */
};

struct xl_sent;

/* A client with which this one exchanges messages. */
struct xl_peer {
	u64 incarnation;		/* 0: no client yet */
	u32 received;			/* the number of the next message from it */
	u32 numbered;			/* the number of the next message to it */
	struct xl_sent *first, *last;	/* messages that it has yet to receive, in order */
	struct xl_sent *unsent;		/* of these, the first that is not in the ring */
	u32 in_ring;			/* number of messages before that one */
	bool waited;			/* it is in channel->waited */
	struct xl_peer *next;
	/* if the peer is a server and this client a caller: */
	struct xmem_subscription *subscription;	/* to this server, or NULL */
	u32 calls;			/* calls that the server has yet to answer */
};

struct xl_channel {
	struct xmem_pool *pool;
	pthread_mutex_t mutex;		/* guards all that follows */
	pthread_cond_t changed;		/* a thread has received something or stopped receiving, or
					 * a call is cancelled, or the last call has ended */
	bool receiving;			/* a thread is in xmem_receive_any */
	bool closing;
	u32 users;			/* threads that are in a public function */
	u32 clients, ring;
	u64 published;			/* how many messages this client has published */
	u32 in_ring;			/* the sum of in_ring of all peers */
	struct xl_peer *peers;		/* by client id */
	struct xl_peer *waited;		/* the list of peers that have yet to receive messages */
	/*
	 * Called under the mutex when the next message of a peer has come. The function that is
	 * called gets the buffer and has to release it.
	 */
	void (*take)(struct xl_channel *channel, u32 client, struct xl_head head,
		     struct xmem_buffer *buffer);
	/* Called under the mutex when a subscription is over. */
	void (*over)(struct xl_channel *channel, struct xmem_subscription *subscription);
};

/*
 * Join the pool of a service. @role: one of the labels above. 0, or -errno, noted. Before the call
 * the channel's memory is zero except for take and over. After a failure it needs no clean-up.
 */
int xl_channel_open(struct xl_channel *channel, const char *name, const char *role,
		    const struct xmem_service_options *options);

/*
 * End all waits, and wait until no other thread is in a public function. Then call xl_channel_free,
 * and free the channel's memory after that.
 */
void xl_channel_stop(struct xl_channel *channel);
void xl_channel_free(struct xl_channel *channel);

/* The time until a deadline, as a timeout: at least 1, but 0 for deadline 0, not to wait. */
int64_t xl_left(u64 deadline);

/*
 * Begin and end a public function, which has the mutex in between. 0, or -errno, noted. -ECHILD:
 * this process has inherited the handle by fork.
 */
int xl_channel_enter(struct xl_channel *channel);
void xl_channel_leave(struct xl_channel *channel);

/*
 * Receive one message; if another thread is receiving, wait for it instead. Under the mutex, which
 * is dropped meanwhile. 0: look again; -EAGAIN, -ETIMEDOUT, -ECANCELED or another -errno, noted.
 */
int xl_channel_wait(struct xl_channel *channel, u64 deadline);

/* Receive all messages that have come, unless another thread is receiving. Under the mutex. */
void xl_channel_drain(struct xl_channel *channel);

/* May this buffer be sent? 0, or -errno, noted. */
int xl_channel_check(const struct xl_channel *channel, const struct xmem_buffer *handle);

/*
 * Send a message; on success the handle @buffer is gone. Under the mutex. 0, or -errno, noted.
 * -ENOENT: that client is not there, or does not follow this one.
 */
int xl_channel_send(struct xl_channel *channel, u32 client, struct xl_head head,
		    struct xmem_buffer *buffer);

/* Send a message that has only a number for contents. Under the mutex. */
int xl_channel_send_word(struct xl_channel *channel, u32 client, struct xl_head head, u32 word);

/* Drop the messages that their receivers have passed. Publish again those close to overwriting. */
void xl_channel_trim(struct xl_channel *channel);

/* Does this client live, with that incarnation? */
bool xl_channel_alive(const struct xl_channel *channel, u32 client, u64 incarnation);

/*
 * Find the servers that serve now, and run @call for each: this is the oldest client with XL_SERVES
 * or, if there is no such client, each client with XL_SHARES. Returns the number of these servers.
 */
u32 xl_channel_servers(struct xl_channel *channel,
		       void (*call)(struct xl_channel *channel, u32 client, u64 incarnation));

#endif
