/* SPDX-License-Identifier: MIT */
/*
 * libxmem: processes on one machine share large buffers without copying them. A crash in one
 * process neither leaks memory nor harms another process.
 *
 * A *pool* is a named table of slots. Each slot is a place for one buffer. A writer fills buffers
 * and publishes them. A subscriber receives each publication and holds it for as long as it likes.
 * Any client that knows the 64-bit token of a buffer can get it. When a process ends for any
 * reason, the host releases everything that the process held. The host is the kernel module behind
 * /dev/xmem, or the daemon xmemd where no module can be loaded.
 *
 *	struct xmem_pool *pool = xmem_pool_open("camera", NULL);
 *	struct xmem_subscription *sub = xmem_subscribe(pool, NULL);
 *	struct xmem_buffer *frame = xmem_receive(sub, XMEM_FOREVER);
 *	look_at(xmem_data(frame), xmem_size(frame));
 *	xmem_release(frame);
 *
 * Each topic has a header of its own. This header includes all of them:
 *	error.h		the last error
 *	pool.h		pools
 *	subscription.h	receiving
 *	buffer.h	contents, tokens
 *	publish.h	writing, publishing, forwarding
 *	memory.h	making buffers ahead and on demand
 *	metadata.h, tensor.h	describing contents: tensors, images
 *	claims.h	handing buffers over by count
 *	payload.h	memory that exists already; writing in place
 *	copy.h		copies
 *	cuda.h, stream.h	memory of GPUs
 *	info.h		looking at the clients and slots of pools
 *	access.h	permissions of clients
 *
 * Errors. A function that makes a handle returns NULL when it fails; the others return a negative
 * errno. xmem_get_last_error() then gives the calling thread the error and a message that says what
 * was tried and what to do. After an error nothing has changed. The comments of functions name the
 * following errors and leave out the cause, because it is always one of these:
 *	EINVAL	NULL, a negative timeout, an unknown flag, a size field that is too small; or a
 *		cause that the comment names
 *	E2BIG	a struct asks for something that only a newer library has
 *	EINTR	a signal handler ran while the function waited
 *	ECANCELED  xmem_cancel was called before or during the wait, or xmem_pool_close during it
 *	ECHILD	the handle is inherited from the process that forked this one
 *	EOVERFLOW  this client has 2^28 handles of the buffer
 *	EDQUOT	a limit of the host is reached (xmem_limit_next)
 *	ENOMEM, EMFILE, ENFILE  memory or descriptors have run out
 * Every function that makes a handle can fail with ENOMEM, and every function that waits for an
 * answer from the host can fail with EINTR. After the host has gone, a function
 * fails with ENOTCONN if it makes a handle of a buffer or of a subscription, if it publishes, or if
 * it needs an answer from the host. Opening, preallocating, waiting, and mapping data for the first
 * time need an answer. Buffers that are held stay readable. To go on, the program must close the
 * pool and open it again.
 *
 * Handles. A handle is valid until the caller drops it. A buffer and a subscription keep their pool
 * alive, so handles can be dropped in any order and by any thread. Every function accepts NULL for
 * a handle: functions without a result do nothing, those that return a size or a token return 0,
 * and the others fail with EINVAL. The use of a handle after it was dropped is detected: the
 * function fails with EBADF, or does nothing. A function of buffers that does nothing leaves EBADF
 * as the last error.
 *
 * Threads. Each function says which threads may call it. "any" is any thread at any time, even with
 * handles that other threads are using; the comment of xmem_pool_close has exceptions. No function
 * is async-signal-safe, and none is a cancellation point. After fork the child cannot use the
 * handles that it inherited (ECHILD): it joins the pool anew by xmem_pool_reopen.
 *
 * Time. Timeouts are nanoseconds from now. 0 does not wait, and XMEM_FOREVER waits without end. A
 * wait ends early with EINTR when a signal handler has run; after a handler that was installed with
 * SA_RESTART, most waits go on. If the daemon is stopped, a function that needs its answer waits
 * for it within the timeout of the function (xmem(7)).
 *
 * Structs. Every struct of options or answers begins with its size, which the caller sets to sizeof
 * the struct. Options that an older, shorter struct lacks have their default, which is zero. A
 * newer, longer struct is accepted if the fields that the library does not know are zero, and fails
 * with E2BIG otherwise. The library writes no more of an answer than the caller's size. It sets
 * size to the number of bytes that it has written, and does not change fields that it does not
 * know.
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
 * Initialize a struct of options or answers: its size is set, and all other fields are 0. In C++
 * the structs of xmem.hpp do so by themselves.
 *
 *	struct xmem_pool_info info = XMEM_INIT(info);
 *
 * In C++, -Wmissing-field-initializers warns of it.
 */
#ifdef __cplusplus
#define XMEM_INIT(object)	{ sizeof(object) }
#else
#define XMEM_INIT(object)	{ .size = sizeof(object) }
#endif

/*
 * Make a struct of options in place, in C. The named fields, at least one, are set, and the others
 * are 0.
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
