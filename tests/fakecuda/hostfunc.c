// SPDX-License-Identifier: MIT
/*
 * Functions of the program that the fake driver's streams call: cuLaunchHostFunc, and the older
 * callbacks. They may not call the driver. As on a real driver, one thread of the process runs all
 * of them: one that waits for another never ends.
 */
#include "capture.h"
#include "stream.h"

static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

struct host_function {
	struct fk_op op;
	CUhostFn function;		/* either this */
	CUstreamCallback callback;	/* or that */
	void *user;
};

static int run_host_function(struct fk_op *op)
{
	struct host_function *host = (struct host_function *)op;

	pthread_mutex_lock(&one_at_a_time);
	fk_in_host_function = true;
	if (host->function)
		host->function(host->user);
	else
		host->callback((CUstream)op->stream, fk_sticky(), host->user);
	fk_in_host_function = false;
	pthread_mutex_unlock(&one_at_a_time);
	return FK_OK;
}

static CUresult queue(bool own, CUstream handle, CUhostFn function, CUstreamCallback callback,
		      void *user)
{
	struct host_function *host;
	struct fk_stream *stream;
	CUresult why;
	uint64_t seq;

	if (!function && !callback)
		return FK_INVALID_VALUE;
	stream = fk_stream_find(handle, own, &why);
	if (!stream)
		return why;
	host = fk_op_new(sizeof(*host), run_host_function);
	/* A callback learns of an error; a function is not called then. */
	host->op.always = callback != NULL;
	host->op.foreign = true;
	host->function = function;
	host->callback = callback;
	host->user = user;
	host->op.node = FK_HOST_NODE;
	return fk_enqueue(stream, &host->op, &seq);
}

static CUresult launch(bool own, CUstream stream, CUhostFn function, void *user)
{
	return queue(own, stream, function, NULL, user);
}

static CUresult add_callback(bool own, CUstream stream, CUstreamCallback callback, void *user,
			     unsigned int flags)
{
	return flags ? FK_INVALID_VALUE : queue(own, stream, NULL, callback, user);
}

FK_DEFINE_BOTH(cuLaunchHostFunc, 10000, cuLaunchHostFunc, cuLaunchHostFunc_ptsz, FK_WORK, launch,
	       (CUstream stream, CUhostFn function, void *user), (stream, function, user))
FK_DEFINE_BOTH(cuStreamAddCallback, 5000, cuStreamAddCallback, cuStreamAddCallback_ptsz, FK_WORK,
	       add_callback,
	       (CUstream stream, CUstreamCallback callback, void *user, unsigned int flags),
	       (stream, callback, user, flags))
