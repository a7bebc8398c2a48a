/* SPDX-License-Identifier: MIT */
/*
 * Helpers for the tests of GPUs, beside the harness of tests/conform. A test whose name begins with
 * a promise checks that; others begin with CUDA.
 */
#ifndef XMEM_CUDA_GPUS_H
#define XMEM_CUDA_GPUS_H

#include "lib/cuda/device.h"
#include "tests/conform/harness.h"
#include "small.h"

/* The path of a file beside this program; "" if it is too long. */
const char *beside_program(const char *name);

/*
 * From now on this process's driver is the small one of that name (cuda.mk), which starts and has
 * one device. pre: this process has not looked for a driver. The struct is shared with children.
 */
struct small *use_small(const char *name);

/*
 * Is the driver the fake one (tests/fakecuda), which counts, and fails on demand? The question does
 * not start it. A test that is about more than that runs without it: asserts about counts belong
 * into ON_FAKE.
 */
bool on_fake(void);
#define ON_FAKE(assertion)	do { if (on_fake()) assertion; } while (0)

/*
 * The functions that only the fake driver has. The test is skipped on a real one. The driver is not
 * started yet. Ask for them before anything is under way: a process with a stream that waits does
 * not end.
 */
struct fake {
	unsigned long (*calls)(const char *name);
	int (*fail)(const char *rules);
	void (*sticky)(int error);
	void (*end)(void);
};
struct fake fake_only(const char *why);

/* Is the driver AMD's HIP, or the fake one under HIP's names? The question does not start it. */
bool on_hip(void);
/* HIP lacks what the test is about, so the test is skipped with HIP. */
void not_with_hip(const char *what);

/* The machine has this many GPUs, or the test is skipped. pre: no driver has been started. */
void need_gpus(int count);

/*
 * The devices of this process and its children, which have used none yet, have these attributes:
 * "122=0,...". In front of a real driver a library answers so (weaker.c).
 */
void use_attributes(const char *attributes);

/*
 * Open descriptors of this process. A real driver opens some at any time and keeps them. So on a
 * real driver only descriptors of xmem or of a test count: files of memory, the module's, and
 * sockets as xmemd and children have.
 */
unsigned int own_files(void);

/*
 * The thread's last error has that number, its message these words (NULL: no more). With HIP a name
 * of CUDA's, such as CUDA_ERROR_NO_DEVICE, stands for HIP's.
 */
#define SAYS(error, ...)	says_at(__FILE__, __LINE__, error, __VA_ARGS__, NULL)
/* The thread's last result of the driver that was an error; 0: none. */
int last_result(void);
void says_at(const char *file, int line, int error, ...) __attribute__((sentinel));

/* Run that in a forked process, and wait until it has ended with status 0. */
void in_child(void (*body)(void *argument), void *argument);

/*
 * Finish a child that waits until this process has closed memory of the pool. The library closes it
 * in one of this process's calls, and only the child's steps show when it can do so. So this makes
 * calls until the child ends.
 */
void finish_child_of(struct xmem_pool *pool, struct child *child);

#endif
