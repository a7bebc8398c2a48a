/* SPDX-License-Identifier: MIT */
/*
 * libxmem: processes on one machine share large buffers without copying them. A crash in one
 * process neither leaks memory nor harms another process.
 *
 * A *pool* is a named table of slots, each a place for one buffer. Each xmem_pool_open makes a new
 * *client*. A writer fills buffers and publishes them in its *ring*, its list of publications. A
 * subscriber receives each publication and holds it for as long as it likes. Any client that knows
 * the 64-bit token of a buffer can get the buffer. However a process ends, the host releases all
 * that it held. The host is the kernel module behind /dev/xmem, or without it the daemon xmemd.
 *
 *	struct xmem_pool *pool = xmem_pool_open("camera", NULL);
 *	struct xmem_subscription *sub = xmem_subscribe(pool, NULL);
 *	struct xmem_buffer *frame = xmem_receive(sub, XMEM_FOREVER);
 *	look_at(xmem_data(frame), xmem_size(frame));
 *	xmem_release(frame);
 *
 * Each topic has a header of its own (see the end of xmem.h). The comments there are short: the
 * manual pages, such as xmem_publish(3), have these comments and more.
 *
 * Errors. A function that makes a handle returns NULL when it fails; the others return a negative
 * errno. xmem_get_last_error() then gives the calling thread the error and a message that says what
 * was tried and what to do. After an error nothing has changed. An error without a cause in the
 * comment of a function has its cause in this list. "also:" means another cause besides that one.
 *	EINVAL	NULL, a negative timeout, an unknown flag, a size field that is too small
 *	E2BIG	a struct asks for something that only a newer library has
 *	EPERM	the call is for writers, and the pool was opened with XMEM_OPEN_READER
 *	EINTR	a signal handler ran while the function waited
 *	ECANCELED  xmem_cancel was called before or during the wait, or xmem_pool_close during it
 *	EBADF	the handle has been dropped
 *	ECHILD	the handle is inherited from the process that forked this one
 *	EOVERFLOW  this client has 2^28 handles of the buffer
 *	EDQUOT	a limit of the host is reached (xmem_limit_next)
 *	ENOTCONN  the host has gone, or has ended this client: close the pool and open it again
 *	ENOMEM, EMFILE, ENFILE  memory or descriptors have run out
 * Every function that makes a handle can fail with ENOMEM. Every function that needs an answer from
 * the host (to open, preallocate, wait, or map data for the first time) can fail with EINTR and
 * ENOTCONN. Functions that publish, or make a handle of a buffer or of a subscription, can
 * also fail with ENOTCONN. Buffers that are held stay readable then.
 *
 * Handles. A handle is valid until the caller drops it. A buffer and a subscription keep their pool
 * alive, so handles can be dropped in any order. Every function accepts NULL for a handle:
 * functions without a result do nothing, those that return a size or a token return 0, and the
 * others fail with EINVAL. The use of a dropped handle is detected: the function fails with EBADF,
 * or does nothing. xmem_release does nothing then, but leaves EBADF as the last error.
 *
 * Threads. Any thread may call a function at any time, even with handles that other threads are
 * using, unless the comment of the function or of xmem_pool_close says otherwise. No function is
 * async-signal-safe, and none is a cancellation point. After fork the child cannot use the handles
 * that it inherited (ECHILD): it joins the pool anew by xmem_pool_reopen.
 *
 * Time. Timeouts are nanoseconds from now. 0 does not wait, and XMEM_FOREVER waits without end.
 * After a signal handler that was installed with SA_RESTART, most waits go on. While the
 * daemon is suspended (SIGSTOP), functions that need its answer wait up to their timeout (xmem(7)).
 *
 * Structs. Every struct of options or answers begins with its size, which the caller sets to sizeof
 * the struct (XMEM_INIT, XMEM_OPTIONS). All other fields of options may be 0, which is the default.
 * NULL in place of options means that all of them are 0. Reserved fields must be 0. Options
 * of an older, shorter struct are accepted, and so are those of a newer, longer one if the fields
 * that the library does not know are 0 (otherwise E2BIG). The library writes no more of an answer
 * than the caller's size, and sets size to the number of bytes that it has written.
 */
#ifndef XMEM_H
#define XMEM_H

#include <stddef.h>
#include <stdint.h>

#include "xmem/metadata.h"	/* struct xmem_metadata, formats of images */

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

/* Initialize a struct of options or answers: its size is set, and all other fields are 0. */
#ifdef __cplusplus
#define XMEM_INIT(object)	{ sizeof(object) }
#else
#define XMEM_INIT(object)	{ .size = sizeof(object) }
#endif

/* Make options in C: xmem_pool_open("camera", XMEM_OPTIONS(xmem_pool_options, .slots = 64)). */
#define XMEM_OPTIONS(type, ...)	(&(const struct type){ .size = sizeof(struct type), __VA_ARGS__ })

#ifdef __cplusplus
}
#endif

#include "xmem/error.h"		/* the last error of a thread */
#include "xmem/pool.h"		/* joining and leaving pools */
#include "xmem/subscription.h"	/* receiving */
#include "xmem/buffer.h"		/* contents and tokens of buffers */
#include "xmem/publish.h"	/* writing, publishing, forwarding */
#include "xmem/memory.h"		/* making buffers in advance and on demand */
#include "xmem/access.h"		/* permissions of clients */
#include "xmem/claims.h"		/* passing buffers to a known number of clients */
#include "xmem/copy.h"		/* copies */
#include "xmem/cuda.h"		/* memory of GPUs */
#include "xmem/info.h"		/* looking at hosts, pools, clients and slots */
#include "xmem/payload.h"	/* memory that exists already; writing in place */
#include "xmem/service.h"	/* requests and responses */
#include "xmem/stream.h"		/* ordering calls with work on streams of GPUs */
#include "xmem/tensor.h"		/* describing tensors, images and strings */

#include "xmem/api.h"		/* a table of all functions, for plug-ins */

#endif
