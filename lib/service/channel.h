/* SPDX-License-Identifier: MIT */
/*
 * Messages between the clients of a service: each goes to one client, and none is lost or delivered
 * twice while both live. channel.c says how.
 */
#ifndef XMEM_SERVICE_CHANNEL_H
#define XMEM_SERVICE_CHANNEL_H

#include <pthread.h>

#include "lib/private.h"

/* To the end of the block, calls that fail leave the thread's last error as it is. */
#define XL_QUIET \
	__attribute__((cleanup(xl_error_restore))) struct xl_error xl_quiet_; \
	xl_error_save(&xl_quiet_)

/* Labels of the clients of a service. A caller looks for SERVES or SHARES. */
#define XL_SERVES	"=serve:"
#define XL_SHARES	"=share:"
#define XL_CALLS	"=calls:"
#define XL_ANY_SERVER	"=s*"
#define XL_ROLE_CHARS	7

enum xl_kind {
	XL_KIND_REQUEST = 1,
	XL_KIND_RESPONSE = 2,		/* the last one of its call */
	XL_KIND_MORE = 3,		/* a response that others follow */
	XL_KIND_REFUSAL = 4,		/* in place of a response: an errno */
	XL_KIND_CANCEL = 5,		/* a caller wants no response any more */
	XL_KIND_SEEN = 6,		/* the answer to a full window: not numbered */
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
	u32 received;			/* the number of its next message */
	u32 numbered;			/* the number of the next message to it */
	struct xl_sent *first, *last;	/* messages that it has yet to receive, in order */
	struct xl_sent *unsent;		/* of these, the first that is not in the ring */
	u32 in_ring;			/* how many are before that one */
	bool waited;			/* it is in channel->waited */
	struct xl_peer *next;
	struct xmem_subscription *subscription;	/* of a caller to this server, or NULL */
	u32 calls;			/* of a caller: those that this server has yet to answer */
};

struct xl_channel {
	struct xmem_pool *pool;
	pthread_mutex_t mutex;		/* guards all that follows */
	pthread_cond_t changed;		/* a thread has received something, or stopped receiving */
	bool receiving;			/* a thread is in xmem_receive_any */
	bool closing;
	u32 users;			/* threads that are in a call */
	u32 clients, ring;
	u64 published;			/* how many messages this client has published */
	u32 in_ring;			/* messages of all peers */
	struct xl_peer *peers;		/* by client id */
	struct xl_peer *waited;		/* the list of peers that have yet to receive messages */
	/*
	 * The next message of a peer has come, and the buffer is the callee's. Called under the
	 * mutex.
	 */
	void (*take)(struct xl_channel *channel, u32 client, struct xl_head head,
		     struct xmem_buffer *buffer);
	/* That subscription is over. Called under the mutex. */
	void (*over)(struct xl_channel *channel, struct xmem_subscription *subscription);
};

/*
 * Join the pool of a service. @role: one of the labels above. 0, or -errno, noted. The channel's
 * memory is zero before, and after a failure.
 */
int xl_channel_open(struct xl_channel *channel, const char *name, const char *role,
		    const struct xmem_service_options *options);

/*
 * End all waits, and wait until no other thread is in a call. Then the channel can be freed, after
 * xl_channel_free.
 */
void xl_channel_stop(struct xl_channel *channel);
void xl_channel_free(struct xl_channel *channel);

/* The timeout until a deadline; 0: a deadline that has passed, or none to wait for. */
int64_t xl_left(u64 deadline);

/* Begin and end a call. It has the mutex in between. 0, or -ECHILD, noted: not in this process. */
int xl_channel_enter(struct xl_channel *channel);
void xl_channel_leave(struct xl_channel *channel);

/*
 * Receive one message, or wait while another thread does. Under the mutex, which is dropped
 * meanwhile. 0: look again; -EAGAIN, -ETIMEDOUT, -ECANCELED or another -errno, noted.
 */
int xl_channel_wait(struct xl_channel *channel, u64 deadline);

/* Take all that has come, unless another thread does. Under the mutex. */
void xl_channel_drain(struct xl_channel *channel);

/*
 * Send a message; on success the handle @buffer is gone. Under the mutex. 0, or -errno, noted.
 * -ENOENT: that client is not there, or does not follow this one.
 */
int xl_channel_send(struct xl_channel *channel, u32 client, struct xl_head head,
		    struct xmem_buffer *buffer);

/* Send a message that has only a number for contents. Under the mutex. */
int xl_channel_send_word(struct xl_channel *channel, u32 client, struct xl_head head, u32 word);

/* Drop the messages that their receivers have, and send those anew that are in danger. */
void xl_channel_trim(struct xl_channel *channel);

/* Does this client live, with that incarnation? */
bool xl_channel_alive(const struct xl_channel *channel, u32 client, u64 incarnation);

/*
 * Find the servers: call with each client that serves now, which is the oldest one with XL_SERVES,
 * or, without any, all with XL_SHARES. Returns how many there are.
 */
u32 xl_channel_servers(struct xl_channel *channel,
		       void (*call)(struct xl_channel *channel, u32 client, u64 incarnation));

#endif
