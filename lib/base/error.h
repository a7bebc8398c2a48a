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

/* Make it the thread's last error, and return -error. xl_fail_fast takes a constant message. */
int xl_fail(int error, const char *format, ...) __attribute__((format(printf, 2, 3), cold));
int xl_fail_fast(int error, const char *message);

/* The thread's last error: 0 or a negative errno, and its message. */
int xl_last_error(void);
const char *xl_last_message(void);
void xl_error_clear(void);

#define XL_ERROR_BYTES	640

/* A copy of a thread's last error and errno, for a call during which code of the program runs. */
struct xl_error {
	int error, number, cuda;
	const char *message;
	char text[XL_ERROR_BYTES];
};

void xl_error_save(struct xl_error *ret);
void xl_error_restore(const struct xl_error *saved);

/* The thread's last CUresult that was an error; see xmem/cuda.h. */
extern __thread int xl_cuda_result __attribute__((visibility("hidden"), tls_model("initial-exec")));

#endif
