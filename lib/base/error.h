/* SPDX-License-Identifier: MIT */
/*
 * The thread's last error (error.c), and hints to the compiler. "-errno, noted" in a comment means
 * that the function has also made this errno the thread's last error, with a message.
 */
#ifndef XMEM_BASE_ERROR_H
#define XMEM_BASE_ERROR_H

#include "core/env.h"
#include "xmem.h"

#define XMEM_API	__attribute__((visibility("default")))
#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)

/* A hot function calls such a function last, as a tail call, so it need not save registers. */
#define XL_SLOW		__attribute__((noinline))
#define XL_COLD		__attribute__((noinline, cold))
#define XL_INLINE	inline __attribute__((always_inline))

/*
 * The name of the public call that this thread is in, without "xmem_", for messages. NULL: the call
 * is on its fast path, or the thread is in code of the program.
 */
extern __thread const char *xl_call
	__attribute__((visibility("hidden"), tls_model("initial-exec")));

static inline const char *xl_call_begin(const char *name)
{
	const char *outer = xl_call;

	if (!outer)
		xl_call = name;
	return outer;
}

static inline const char *xl_call_pause(void)
{
	const char *outer = xl_call;

	xl_call = NULL;
	return outer;
}

static inline void xl_call_end(const char **outer)
{
	xl_call = *outer;
}

/*
 * XL_CALL begins a public function. XL_CALL_AS begins the slow paths of a public function that has
 * a fast path, which stores no name. From there to the end of the block, messages begin with the
 * name. If a public function calls another one, the name of the outer one counts.
 */
#define XL_CALL_(outer) \
	const char *xl_outer_ __attribute__((cleanup(xl_call_end), unused)) = outer
#define XL_CALL_AS(name)	XL_CALL_(xl_call_begin(name))
#define XL_CALL			XL_CALL_AS(__func__ + sizeof("xmem_") - 1)
/* Until the end of the block, functions of the program run, which may call xmem. */
#define XL_CALL_PROGRAM		XL_CALL_(xl_call_pause())

/*
 * Make it the thread's last error, and return -error. When a program reads the message, the name of
 * the call and a colon are put before it, unless it begins with them. xl_fail_fast takes a constant
 * message. xl_fail_polling takes one that begins with the name, and is a little faster still.
 */
int xl_fail(int error, const char *format, ...) __attribute__((format(printf, 2, 3), cold));
int xl_fail_fast(int error, const char *message);
int xl_fail_polling(int error, const char *message);

/*
 * A message that is made when a program reads it, for errors of calls that programs make until they
 * succeed. @make: writes the message, of at most @bytes with the 0; false: the pool is not open any
 * more.
 */
struct xl_later {
	bool (*make)(const struct xl_later *later, char *ret, size_t bytes);
	struct xmem_pool *pool;
	u32 opened;			/* pool->calls.opened then */
	const void *about;
	u64 bytes;
};
int xl_fail_later(int error, const struct xl_later *later);

/* This call has just failed, with XL_CALL or without it. */
void xl_fail_as(const char *call) __attribute__((cold));

/* The thread's last error: 0 or a negative errno, and its message. */
int xl_last_error(void);
const char *xl_last_message(void);
void xl_error_clear(void);

#define XL_ERROR_BYTES	640

/* A copy of a thread's last error and errno, for a call during which code of the program runs. */
struct xl_error {
	int error, number, cuda;
	const char *message, *call;
	struct xl_later later;
	char text[XL_ERROR_BYTES];
};

void xl_error_save(struct xl_error *ret);
void xl_error_restore(const struct xl_error *saved);

/* The thread's last CUresult that was an error; see xmem/cuda.h. */
extern __thread int xl_cuda_result __attribute__((visibility("hidden"), tls_model("initial-exec")));

#endif
