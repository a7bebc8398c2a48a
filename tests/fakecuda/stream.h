/* SPDX-License-Identifier: MIT */
/*
 * Shared by the files of the fake driver that work with streams: the driver's types for streams,
 * events and functions, in our own words, and how a stream is found by its handle. Functions that
 * take a stream have two variants, which differ in the meaning of stream 0: the legacy default
 * stream, or the calling thread's own.
 */
#ifndef FAKECUDA_STREAM_H
#define FAKECUDA_STREAM_H

#include "fake.h"
#include "queue.h"

typedef struct { char bytes[64]; } CUipcEventHandle;
typedef void (*CUhostFn)(void *user);
typedef void (*CUstreamCallback)(CUstream stream, CUresult status, void *user);
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;

#define FK_UNPACK(...) __VA_ARGS__

/*
 * Defines a function of the driver and its variant for per-thread default streams. Both call
 * body(own, arguments), where own says which of them was called.
 */
#define FK_DEFINE_BOTH(base, since, symbol, own_symbol, needs, body, parameters, arguments)	\
	FK_DEFINE(base, since, symbol, needs, FK_UNPACK parameters)				\
	{											\
		FK_ENTER(symbol);								\
		return body(false, FK_UNPACK arguments);					\
	}											\
	FK_DEFINE(base, since > 7000 ? since : 7000, own_symbol, needs | FK_PER_THREAD,		\
		  FK_UNPACK parameters)								\
	{											\
		FK_ENTER(own_symbol);								\
		return body(true, FK_UNPACK arguments);						\
	}

/* The stream of a handle; own: 0 is the thread's own one. NULL: *ret_why is a CUresult. */
struct fk_stream *fk_stream_find(CUstream handle, bool own, CUresult *ret_why);

#endif
