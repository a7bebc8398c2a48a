/* SPDX-License-Identifier: MIT */
/*
 * What the tests of GPUs share beside the harness of tests/conform. A test whose name begins with
 * a promise proves that; others begin with CUDA.
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
 * Is the driver the fake one (tests/fakecuda), which counts, and fails on demand? It is not started
 * by the question. A test that is about more than that goes on without it: what is asserted of a
 * count is for ON_FAKE.
 */
bool on_fake(void);
#define ON_FAKE(assertion)	do { if (on_fake()) assertion; } while (0)

/*
 * The functions that only the fake driver has; else the test is skipped. It is not started yet. To
 * be asked before anything is under way: a process with a stream that waits does not end.
 */
struct fake {
	unsigned long (*calls)(const char *name);
	int (*fail)(const char *rules);
	void (*sticky)(int error);
	void (*end)(void);
};
struct fake fake_only(const char *why);

/* The machine has so many GPUs, or else the test is skipped. pre: no driver has been started. */
void need_gpus(int count);

/*
 * The devices of this process and its children, which have used none yet, have these attributes:
 * "122=0,...". Before a real driver there stands then a library that answers so (weaker.c).
 */
void use_attributes(const char *attributes);

/*
 * Open descriptors of this process. On a real driver, which opens some when it likes and keeps
 * them, only those that are xmem's or a test's: files of memory, the module's, and sockets as
 * xmemd and children have.
 */
unsigned int own_files(void);

/* The thread's last error has that number, its message these words (NULL: no more). */
#define SAYS(error, ...)	says_at(__FILE__, __LINE__, error, __VA_ARGS__, NULL)
/* The thread's last result of the driver that was an error; 0: none. */
int last_result(void);
void says_at(const char *file, int line, int error, ...) __attribute__((sentinel));

/* Run that in a forked process, and wait until it has ended with status 0. */
void in_child(void (*body)(void *argument), void *argument);

/*
 * Finish a child that waits until this process has closed memory of the pool's. That is done when
 * this process looks, and when it can be done only the child's steps say: so it looks till the end.
 */
void finish_child_of(struct xmem_pool *pool, struct child *child);

#endif
