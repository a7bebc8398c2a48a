/* SPDX-License-Identifier: MIT */
/*
 * What the fake driver offers to tests beyond a real one, found with dlsym(): tests check that
 * a pointer is there before they call it, for on a real driver it is not.
 */
#ifndef FAKE_TESTS_H
#define FAKE_TESTS_H

#include <stddef.h>

#define FK_TESTS_API __attribute__((visibility("default")))

/* How often a function was called (cuMemAlloc_v2, or cuMemAlloc for all variants of it); NULL:
 * all of them together. Calls that failed count. */
FK_TESTS_API unsigned long cuFakeCalls(const char *name);

/* Errors to give from now on, as in FAKECUDA_FAIL; NULL or "": none. 0, or -1: nonsense. */
FK_TESTS_API int cuFakeFail(const char *rules);

/* An error that sticks, as after a kernel's bad access; 0 ends it. */
FK_TESTS_API void cuFakeSticky(int error);

/* Violations that this process has committed. */
FK_TESTS_API unsigned long cuFakeViolations(void);

/* What the driver does at the end of the process. */
FK_TESTS_API void cuFakeEnd(void);

/* Bytes of one device in use: by this process, or with FAKECUDA_STATE by all that live
 * and by what is left in files of theirs. */
FK_TESTS_API size_t cuFakeUsed(int ordinal);

/* Where the driver finds device memory; NULL: nothing is mapped there. For a look from the
 * CPU that no stream knows of. */
FK_TESTS_API void *cuFakeLook(unsigned long long ptr, size_t bytes);

/* Not for callers: FAKECUDA_COUNTS is written. */
void fk_calls_write(void);

#endif
