/* SPDX-License-Identifier: MIT */
/*
 * Clients of xmem.ko whose payloads are GPU memory, for which xmem_test_gpu.ko stands. Also other
 * processes that do something and then wait, and waits for events that come later. As in raw.h,
 * these functions judge nothing.
 */
#ifndef XMEM_KERNEL_GPU_H
#define XMEM_KERNEL_GPU_H

#include <sys/types.h>

#include "gpu/xmem_test_gpu.h"
#include "raw.h"
#include "../shown.h"

#define GPU_NAME	"gpu-payloads"
#define GPU_BYTES	(16 * RAW_PAGE)

/* A test of this program returns NULL, or a text that says what is wrong. */
struct gpu_test {
	const char *name;
	const char *(*run)(void);
};
extern const struct gpu_test gpu_ends_tests[];	/* the last one has no name */
void gpu_ends_clean_up(void);			/* after a test that has failed */
extern const struct gpu_test gpu_dmabufs_tests[];	/* the last one has no name */
void gpu_dmabufs_clean_up(void);

/* Returns a text that says what is wrong, and where. */
#define WANT(condition) \
	do { \
		if (!(condition)) \
			return gpu_wrong(__FILE__, __LINE__, #condition); \
	} while (0)
const char *gpu_wrong(const char *file, int line, const char *what);

/* ---- parameters of the two modules ---- */

long gpu_number(const char *name);			/* a parameter of xmem_test_gpu; -1: none */
bool gpu_set(const char *name, const char *value);
/* A parameter of xmem; 0 or -errno. */
int xmem_set(const char *name, const char *value);
/* The folder of the only pool in sysfs, or "" if there is none or more than one. */
const char *pool_folder(void);
/* One line of a file in that folder, or "" if there is none. */
const char *pool_says(const char *name);

/*
 * Looks each millisecond until @condition is true, or so many times. Nothing announces these
 * events. It counts looks, not time: on a busy machine time passes while this process cannot look.
 */
#define LOOKS	20000
#define EVENTUALLY(condition) \
	({ \
		u32 looks_ = 0; \
		bool so_; \
		while (!(so_ = (condition)) && looks_++ < LOOKS) \
			usleep(1000); \
		so_; \
	})

/* ---- memory of the GPU, as payloads ---- */

/* A file of the test GPU with GPU_BYTES, or -errno. */
int gpu_file(void);
/* A request for @count slots in memory of device @device (1, 2, ...), named @name. */
struct xmem_attach_request gpu_attaching(int fd, u32 flags, unsigned int count,
					 unsigned char device, unsigned char name);
/* Makes a file, attaches it, and closes the descriptor. 0 or -errno. */
int gpu_attach(const struct raw *raw, u32 flags, struct xmem_attach_request *attach);
int gpu_detach(const struct raw *raw, u32 slot);	/* detaches all slots of its payload */
/* The request payload. */
int gpu_ask(const struct raw *raw, u64 payload, u32 flags, struct xmem_payload_request *answer);
/* Returns the descriptor, -1 if there is none, or -errno - 1. */
int gpu_open(const struct raw *raw, u64 payload);
int gpu_close(const struct raw *raw, u64 payload);
int gpu_query(const struct raw *raw, u64 payload);	/* without flags */

/* Joins the pool GPU_NAME and maps it. */
int gpu_start(struct raw *raw, enum xmem_role role);

/* ---- other processes ---- */

struct kid {
	pid_t pid;
	int in, out;			/* the parent's ends */
};

/*
 * Starts a process that runs @live. When @live is ready, it returns NULL or a text that says what
 * is wrong, and the kid tells the parent. Returns that text. The kid inherits the parent's
 * descriptors and none of its clients.
 */
const char *kid_start(struct kid *kid, const char *(*live)(void *argument), void *argument);
/* In a kid: wait until the parent says that it may go on. */
void kid_wait(void);
void kid_go_on(const struct kid *kid);
/* Waits until the kid is ready again. */
const char *kid_ready(const struct kid *kid);
/* In a kid that has more to do after live(): say that it is ready, and wait. */
void kid_say_ready(void);
void kid_pause(void);
void kid_kill(struct kid *kid);		/* without waiting */
void kid_reap(struct kid *kid);		/* waits */
void kid_forget(void);			/* kills the last one if it has not been reaped */

#endif
