/* SPDX-License-Identifier: MIT */
/*
 * Clients of xmem.ko whose payloads are memory of a GPU, for which xmem_test_gpu.ko stands;
 * other processes that do something and then wait; and waiting for what happens later. As in
 * raw.h, nothing is judged here.
 */
#ifndef XMEM_KERNEL_GPU_H
#define XMEM_KERNEL_GPU_H

#include <sys/types.h>

#include "gpu/xmem_test_gpu.h"
#include "raw.h"
#include "../shown.h"

#define GPU_NAME	"gpu-payloads"
#define GPU_BYTES	(16 * RAW_PAGE)

/* A test of this program: NULL, or what is wrong. */
struct gpu_test {
	const char *name;
	const char *(*run)(void);
};
extern const struct gpu_test gpu_ends_tests[];	/* up to one without name */
void gpu_ends_clean_up(void);			/* after one that has failed */
extern const struct gpu_test gpu_dmabufs_tests[];	/* likewise */
void gpu_dmabufs_clean_up(void);

/* What is wrong, and where. */
#define WANT(condition) \
	do { \
		if (!(condition)) \
			return gpu_wrong(__FILE__, __LINE__, #condition); \
	} while (0)
const char *gpu_wrong(const char *file, int line, const char *what);

/* ---- parameters of the two modules ---- */

long gpu_number(const char *name);			/* of xmem_test_gpu; -1: none */
bool gpu_set(const char *name, const char *value);
/* Of xmem; 0 or -errno. */
int xmem_set(const char *name, const char *value);
/* The folder of the only pool in sysfs; "" where there is none, or are more. */
const char *pool_folder(void);
/* One line of a file in there; "" where there is none. */
const char *pool_says(const char *name);

/*
 * Until @condition, or after so many looks, a millisecond apart: nothing announces these things. It
 * counts looks because a busy machine that gives us no time gives us no looks either.
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
/* Makes a file and attaches it, and closes the descriptor. 0 or -errno. */
int gpu_attach(const struct raw *raw, u32 flags, struct xmem_attach_request *attach);
int gpu_detach(const struct raw *raw, u32 slot);	/* with all slots of its payload */
/* The request payload. */
int gpu_ask(const struct raw *raw, u64 payload, u32 flags, struct xmem_payload_request *answer);
/* The descriptor; -1: there is none; or -errno - 1. */
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
 * A process that runs @live, which returns what is wrong or NULL when it is ready, and tells.
 * Returns what is wrong. The kid inherits no client of the parent's, but its descriptors.
 */
const char *kid_start(struct kid *kid, const char *(*live)(void *argument), void *argument);
/* In a kid: wait until the parent says go on. */
void kid_wait(void);
void kid_go_on(const struct kid *kid);
/* Until it is ready again. */
const char *kid_ready(const struct kid *kid);
/* In a kid that is not done after live(): say that it is ready; and wait. */
void kid_say_ready(void);
void kid_pause(void);
void kid_kill(struct kid *kid);		/* without waiting */
void kid_reap(struct kid *kid);		/* waits */
void kid_forget(void);			/* kills the last one if it has not been reaped */

#endif
