/* SPDX-License-Identifier: MIT */
/*
 * Functions of the fake driver for tests, which a real one does not have. They are found with
 * dlsym(): tests check that a pointer is there before they call it.
 */
#ifndef FAKE_TESTS_H
#define FAKE_TESTS_H

#include <stddef.h>

#define FK_TESTS_API __attribute__((visibility("default")))

/*
 * How often a function was called (cuMemAlloc_v2, or cuMemAlloc for all variants of it); NULL: all
 * of them together. Calls that failed count.
 */
FK_TESTS_API unsigned long cuFakeCalls(const char *name);

/*
 * Errors to inject from now on, as in FAKECUDA_FAIL; NULL or "": none. Returns 0, or -1 for bad
 * rules.
 */
FK_TESTS_API int cuFakeFail(const char *rules);

/* A sticky error, as after a kernel's bad access; 0 ends it. */
FK_TESTS_API void cuFakeSticky(int error);

/* Violations by this process. */
FK_TESTS_API unsigned long cuFakeViolations(void);

/* Do what the driver does at the end of the process. */
FK_TESTS_API void cuFakeEnd(void);

/*
 * Bytes of one device in use: by this process, or with FAKECUDA_STATE by all that live and by files
 * that processes have left.
 */
FK_TESTS_API size_t cuFakeUsed(int ordinal);

/*
 * Where the driver finds device memory; NULL: nothing is mapped there. For access from the CPU of
 * which no stream knows.
 */
FK_TESTS_API void *cuFakeLook(unsigned long long ptr, size_t bytes);

/* Not for callers: writes FAKECUDA_COUNTS. */
void fk_calls_write(void);

#endif
