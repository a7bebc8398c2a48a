/* SPDX-License-Identifier: MIT */
/*
 * libxmem: processes of one machine share large buffers without copying them. A crash
 * in one process neither leaks memory nor harms another process.
 *
 * A *pool* is a named table of slots, each of which can have a buffer. A writer fills
 * buffers and publishes them. A subscriber receives each publication and holds it for as
 * long as it likes. Any client that knows the 64-bit token of a buffer can get it. When a
 * process ends, however it ends, the host releases all that it held. The host is the
 * kernel module behind /dev/xmem, or the daemon xmemd where no module can be loaded.
 *
 *	struct xmem_pool *pool = xmem_pool_open("camera", NULL);
 *	struct xmem_subscription *sub = xmem_subscribe(pool, NULL);
 *	struct xmem_buffer *frame = xmem_receive(sub, XMEM_FOREVER);
 *	look_at(xmem_data(frame), xmem_size(frame));
 *	xmem_release(frame);
 *
 * The functions are declared in a header for each topic, all of which this header includes:
 *	error.h		the last error
 *	pool.h		pools
 *	subscription.h	receiving
 *	buffer.h	contents, tokens
 *	publish.h	writing, publishing, passing on
 *	memory.h	making buffers ahead and on demand
 *	metadata.h, tensor.h	describing contents: tensors, images
 *	claims.h	handing buffers over by count
 *	payload.h	memory that is there already; writing in place
 *	copy.h		copies
 *	cuda.h, stream.h	memory of GPUs
 *	info.h, access.h	looking at a pool's clients and slots; saying what they may do
 *
 * Errors. A function that makes a handle returns NULL when it fails; the others return a
 * negative errno. In both cases xmem_get_last_error() gives the calling thread the error
 * and a message that says what was tried and what to do. Functions that make a handle can
 * also fail with ENOMEM. After the host has gone, three kinds of function fail with ENOTCONN:
 * those that make the handle of a buffer or of a subscription, those that publish, and those that
 * ask the host (to open, preallocate, wait, or map a buffer's data for the first time). Held
 * buffers stay readable then, and the pool can only be closed and opened again. Nothing has
 * changed after an error.
 *
 * Handles. A handle is valid until the caller drops it. A buffer and a subscription keep
 * their pool alive, so handles can be dropped in any order and by any thread. Every
 * function accepts NULL for a handle. Functions without a result then do nothing. Functions that
 * return a size or a token return 0, and all others fail with EINVAL.
 *
 * The handle of a buffer is not an address. The library detects the use of a handle that was
 * dropped before. The function then fails with EBADF, or does nothing and leaves EBADF as the last
 * error. stale_handles of struct xmem_pool_info counts such uses. A dropped handle is mistaken for
 * a valid one only if its number has been used again a multiple of 2^23 times since. Two threads
 * that drop one handle at the same moment are not detected. The use of a dropped subscription is
 * detected, too, unless a multiple of 2^23 - 1 subscriptions were requested in between. The use of
 * a closed pool is detected as long as no other pool has been opened.
 *
 * Threads. Each function says who may call it. "any" is any thread at any time, also with
 * handles that other threads are using. The comment on xmem_pool_close describes the effect of
 * closing a pool while other threads use it; xmem_get must not run at that time. The C library
 * must have made the threads. Threads that get and drop buffers do not wait for each other. No
 * function is async-signal-safe, and none is a cancellation point: a thread that pthread_cancel
 * cancels in one returns from it first, and nothing is lost; xmem_cancel ends waits,
 * pthread_cancel does not. A thread in which asynchronous cancellation is enabled must not call
 * any function. After fork the child cannot use handles that it inherited: functions fail with
 * ECHILD, and dropping such a handle does nothing. The child joins the pool anew by
 * xmem_pool_reopen. A fork by the C library leaves the child no page of its parent's pools and,
 * but for XMEM_OPEN_INHERIT, no descriptor, whatever other threads were doing.
 *
 * Time. Timeouts are nanoseconds from now. 0 does not wait, and XMEM_FOREVER waits without
 * end. A wait ends early with EINTR when a signal handler has run; after one that was
 * installed with SA_RESTART, most waits go on.
 *
 * A daemon that is stopped does not answer. Functions that ask it wait for its answer, within
 * their timeout and until a signal handler has run (EINTR), whatever other threads wait for. To
 * release a buffer, nothing is asked. A receive asks to follow a publisher that has just joined,
 * and for the file of a buffer that was attached after the subscription began. An acquire asks if
 * it needs memory. An acquire with timeout 0 waits for 1 second at most. A receive, and a client's
 * first call for writers, wait for 20 ms even if their timeout is shorter. If the daemon does not
 * answer, these functions do not ask again for one second, or until an answer comes. Meanwhile they
 * return buffers that need no answer. These calls wait for 1 second at most:
 *	xmem_subscribe with XMEM_SUBSCRIBE_LASTS, and xmem_unsubscribe
 *	the first call that gives a descriptor to poll
 *	the call that drops the last handle that keeps a pool
 *	the release of a handle that xmem_set_ref_count has counted in, and xmem_pool_stat in a
 *	writer that has just let go of an attached file; these two do not wait again until the
 *	daemon has answered
 *
 * To let go of something, a client sends the daemon a message. One message is enough for all
 * buffers of ended writers. But each of these takes a message of its own: a file from
 * xmem_attach_fd, a file that xmem_collect or the cache gives back, a publisher that is followed no
 * longer, a buffer from xmem_get_mut that is given up, a handle that xmem_set_ref_count has counted
 * in, and memory of a GPU that is closed. As long as the daemon is stopped, a client's socket takes
 * about 250 messages (fewer if net.core.wmem_default is less than usual), and the library keeps the
 * rest. The library sends the rest before this client's next request or message to the daemon, and
 * before most waits in the pool. If the client makes no such call after the daemon has gone on,
 * what it has let go of stays in use until the client ends.
 *
 * Structs. Every struct of options or of answers begins with its size, which the caller
 * sets to sizeof the struct. Both sides may be newer than the other: options that an
 * older, shorter struct does not have are zero, which is their default; a newer, longer
 * struct is accepted if what the library does not know is zero, and fails with E2BIG
 * otherwise. An answer is cut to the caller's size. Fields that the library does not know are left
 * alone, and size becomes the number of bytes that are valid.
 */
#ifndef XMEM_H
#define XMEM_H

#include <stddef.h>
#include <stdint.h>

#include "xmem/metadata.h"

#ifdef __cplusplus
extern "C" {
#endif

#define XMEM_VERSION_MAJOR	0
#define XMEM_VERSION_MINOR	5
#define XMEM_VERSION_PATCH	0

#define XMEM_FOREVER	INT64_MAX

struct xmem_pool;
struct xmem_buffer;
struct xmem_subscription;

/*
 * Begin a struct of options, or of answers: its size is set, and all else is 0. In C++ the structs
 * of xmem.hpp begin so by themselves.
 *
 *	struct xmem_pool_info info = XMEM_INIT(info);
 */
#ifdef __cplusplus
#define XMEM_INIT(object)	{ sizeof(object) }
#else
#define XMEM_INIT(object)	{ .size = sizeof(object) }
#endif

/*
 * Options in place, in C: those that are named, at least one, and else the defaults.
 *
 *	pool = xmem_pool_open("camera", XMEM_OPTIONS(xmem_pool_options, .slots = 64));
 */
#define XMEM_OPTIONS(type, ...)	(&(const struct type){ .size = sizeof(struct type), __VA_ARGS__ })

#ifdef __cplusplus
}
#endif

#include "xmem/error.h"
#include "xmem/pool.h"
#include "xmem/subscription.h"
#include "xmem/buffer.h"
#include "xmem/publish.h"
#include "xmem/memory.h"
#include "xmem/access.h"
#include "xmem/claims.h"
#include "xmem/copy.h"
#include "xmem/cuda.h"
#include "xmem/info.h"
#include "xmem/payload.h"
#include "xmem/stream.h"
#include "xmem/tensor.h"

#include "xmem/api.h"

#endif
