/* SPDX-License-Identifier: MIT */
/* The thread's last error (error.c), and what the compiler is told. */
#ifndef XMEM_BASE_ERROR_H
#define XMEM_BASE_ERROR_H

#include "core/env.h"
#include "xmem.h"

#define XMEM_API	__attribute__((visibility("default")))
#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)

/* Hot functions leave for these by tail calls, so that they need not save registers. */
#define XL_SLOW		__attribute__((noinline))
#define XL_COLD		__attribute__((noinline, cold))
#define XL_INLINE	inline __attribute__((always_inline))

/* Make it the thread's last error and return -error. The fast one takes a constant message. */
int xl_fail(int error, const char *format, ...) __attribute__((format(printf, 2, 3), cold));
int xl_fail_fast(int error, const char *message);

/* The thread's last error, a negative errno, or 0; and its message. */
int xl_last_error(void);
const char *xl_last_message(void);
void xl_error_clear(void);

#define XL_ERROR_BYTES	640

/* A thread's last error and errno, which what the program does in our call must not change. */
struct xl_error {
	int error, number, cuda;
	const char *message;
	char text[XL_ERROR_BYTES];
};

void xl_error_save(struct xl_error *ret);
void xl_error_restore(const struct xl_error *saved);

/* The thread's last CUresult that was an error, beside that; see xmem/cuda.h. */
extern __thread int xl_cuda_result __attribute__((visibility("hidden"), tls_model("initial-exec")));

#endif
