/* SPDX-License-Identifier: MIT */
/*
 * A driver of GPUs that are not there: tests/fakecuda/libcuda.so.1. This header declares, in our
 * own words, the driver's types and numbers that it needs, and the parts that its files share. It
 * depends on nothing else of this tree, so that the library under test and its judge cannot share a
 * mistake. README.md lists the rules that it enforces and its switches.
 *
 * An address of device memory is in the caller's arena, where no byte can be read or written. The
 * driver's own view of each byte lies fk_shadow_delta further. memory.h describes the memory behind
 * an address, and stream.h queues, events and kernels.
 */
#ifndef FAKE_H
#define FAKE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- The driver's types ---- */

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct fk_context *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct { unsigned char bytes[16]; } CUuuid;

/* The CUresults that this driver gives. */
enum {
	FK_OK = 0, FK_INVALID_VALUE = 1, FK_OUT_OF_MEMORY = 2, FK_NOT_INITIALIZED = 3,
	FK_DEINITIALIZED = 4, FK_STUB_LIBRARY = 34, FK_NO_DEVICE = 100, FK_INVALID_DEVICE = 101,
	FK_INVALID_IMAGE = 200, FK_INVALID_CONTEXT = 201, FK_MAP_FAILED = 205,
	FK_ALREADY_MAPPED = 208, FK_PEER_ACCESS_UNSUPPORTED = 217, FK_OPERATING_SYSTEM = 304,
	FK_INVALID_HANDLE = 400, FK_ILLEGAL_STATE = 401, FK_NOT_FOUND = 500, FK_NOT_READY = 600,
	FK_ILLEGAL_ADDRESS = 700, FK_PEER_ACCESS_ALREADY_ENABLED = 704,
	FK_PEER_ACCESS_NOT_ENABLED = 705, FK_PRIMARY_CONTEXT_ACTIVE = 708,
	FK_CONTEXT_IS_DESTROYED = 709, FK_TOO_MANY_PEERS = 711,
	FK_HOST_ALREADY_REGISTERED = 712, FK_HOST_NOT_REGISTERED = 713, FK_LAUNCH_FAILED = 719,
	FK_NOT_PERMITTED = 800, FK_NOT_SUPPORTED = 801, FK_CAPTURE_UNSUPPORTED = 900,
	FK_CAPTURE_INVALID = 901, FK_CAPTURE_IMPLICIT = 906, FK_CAPTURE_WRONG_THREAD = 908,
	FK_UNKNOWN = 999,
};

/* ---- Entry points ---- */

#define FK_API __attribute__((visibility("default")))

/* The state that a function needs, see fk_enter(). Each bit includes the bits before it. */
#define FK_ANYTIME	0u		/* works before cuInit, and in an error state */
#define FK_INIT		(1u << 0)	/* after cuInit */
#define FK_WORK		(1u << 1)	/* and the process has no sticky error */
#define FK_CONTEXT	(1u << 2)	/* and the thread has a current context that lives */
#define FK_PER_THREAD	(1u << 3)	/* a variant for per-thread default streams */
#define FK_UNSAFE	(1u << 4)	/* not while a stream is captured (capture.c) */

struct fk_function {
	const char *name;	/* as dlsym() knows it: cuMemAlloc_v2 */
	const char *base;	/* as cuGetProcAddress() knows it: cuMemAlloc */
	int version;		/* of CUDA in which this variant came */
	unsigned int needs;
	void *pointer;
	struct fk_function *next;
	atomic_ulong calls;
	bool missing;		/* FAKECUDA_MISSING names it */
};

/*
 * FK_DEFINE(base, version, function, needs, parameters) { FK_ENTER(function); ... } defines one
 * function of the driver. For names that are never looked up, write base = function.
 */
#define FK_DEFINE(base_name, since, function, what_it_needs, ...)			\
	FK_API CUresult function(__VA_ARGS__);						\
	static struct fk_function fk_of_##function = {					\
		.name = #function, .base = #base_name, .version = since,		\
		.needs = what_it_needs, .pointer = (void *)function,			\
	};										\
	__attribute__((constructor(1000))) static void fk_register_##function(void)	\
	{										\
		fk_register(&fk_of_##function);						\
	}										\
	CUresult function(__VA_ARGS__)

#define FK_ENTER(function)								\
	do {										\
		CUresult fk_entered = fk_enter(&fk_of_##function);			\
		if (fk_entered)								\
			return fk_entered;						\
	} while (0)

void fk_register(struct fk_function *function);

/* Counts the call, injects an error where one is configured, and checks the state that it needs. */
CUresult fk_enter(struct fk_function *function);
CUresult fk_inject(struct fk_function *function);	/* inject.c */
struct fk_function *fk_functions(void);

/* While true, the calling thread runs a host function, which may not call the driver. */
extern __thread bool fk_in_host_function;

/* From now on every call that works with memory or streams fails with @error (rule 47). */
void fk_sticky_set(CUresult error);
CUresult fk_sticky(void);

/* ---- Switches, and violations ---- */

/*
 * The words after a switch are the values of FAKECUDA_NAME; the first one is that of an unset
 * switch.
 */
const char *fk_option(const char *name, const char *otherwise);
bool fk_option_is(const char *name, const char *value, const char *otherwise);
long fk_option_number(const char *name, long otherwise);

/* The caller broke a rule that a real driver need not notice: writes a line into FAKECUDA_LOG. */
void fk_violation(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- Process ---- */

bool fk_alive(void);	/* between cuInit and the driver's end, in the process of cuInit */

/* Identifies a process, even after its pid was given to another one. */
struct fk_process {
	int32_t pid;
	uint32_t reserved;
	uint64_t pid_namespace;		/* inode */
	uint64_t start_time;		/* of /proc/PID/stat, in ticks */
};

const struct fk_process *fk_self(void);
bool fk_process_is_self(const struct fk_process *process);
bool fk_process_lives(const struct fk_process *process);	/* of our pid namespace */
uint64_t fk_generation(void);	/* a new number, unique in this process */

/*
 * Memory that other processes find by a handle: a memfd of this process, which they open through
 * /proc/PID/fd/N. No file is left behind, and the handle is void once the process has ended or has
 * closed the descriptor.
 */
struct fk_name {
	struct fk_process owner;
	int32_t fd;
	uint32_t device;	/* st_dev and st_ino of the file, so that a descriptor that */
	uint64_t inode;		/* was used anew is another file */
};

int fk_file_create(const char *name, size_t bytes);	/* a memfd, or -1 */
bool fk_name_file(int fd, struct fk_name *ret_name);
int fk_name_open(const struct fk_name *name);		/* a descriptor, or -1: it is gone */

/* ---- Devices ---- */

#define FK_MAX_DEVICES 16

struct fk_context {
	uint64_t magic;			/* FK_CONTEXT_MAGIC while it lives */
	struct fk_device *device;
	bool primary;
	unsigned int flags;
	uint64_t id;
	uint32_t peers;			/* bit per ordinal: peer access is enabled */
};
#define FK_CONTEXT_MAGIC 0x66616b6563747831ULL

struct fk_device {
	int ordinal;			/* in this process */
	int index;			/* in the machine, before CUDA_VISIBLE_DEVICES */
	CUuuid uuid;
	size_t bytes;			/* its memory */
	atomic_size_t used;		/* by this process */
	struct fk_context primary;
	unsigned int primary_refs, primary_flags;
};

int fk_device_count(void);
struct fk_device *fk_device(int ordinal);			/* NULL: none */
struct fk_device *fk_device_by_index(int index);		/* NULL: none that is visible */
bool fk_device_peers(int index, int peer_index);
CUuuid fk_device_uuid(int index);
int fk_device_attribute(const struct fk_device *device, int attribute);	/* -1: no such one */
void fk_devices_init(void);

/* The calling thread's current context, or NULL. */
struct fk_context *fk_context_current(void);
bool fk_context_valid(const struct fk_context *context);

/* The device of the current context; only in functions that need FK_CONTEXT. */
static inline struct fk_device *fk_device_current(void)
{
	return fk_context_current()->device;
}

/* ---- Memory, for streams ---- */

enum fk_access { FK_READ = 1, FK_WRITE = 2 };

/* Is it an address of device memory, as opposed to one of the CPU? */
bool fk_memory_is_device(CUdeviceptr ptr);

/* Is it memory that a device may name: its own, or registered memory of the CPU? */
bool fk_memory_is_known(CUdeviceptr ptr, size_t bytes);

/*
 * Where the driver's own threads find @bytes at @ptr: device memory, or registered memory of the
 * CPU. Until fk_memory_done(*@ret_pin) nothing unmaps it. So keep the pin only for one operation,
 * and never while waiting for something. NULL: *@ret_why is FK_INVALID_VALUE if no memory is there,
 * and FK_ILLEGAL_ADDRESS if @device has no access.
 */
struct fk_pin;
void *fk_memory_at(CUdeviceptr ptr, size_t bytes, struct fk_device *device, enum fk_access access,
		   struct fk_pin **ret_pin, CUresult *ret_why);
void fk_memory_done(struct fk_pin *pin);

/*
 * As fk_memory_at, but the address may also be unregistered memory of the CPU, as in copies. Then
 * *@ret_pin is NULL and the result is @ptr itself.
 */
void *fk_memory_any(CUdeviceptr ptr, size_t bytes, struct fk_device *device,
		    enum fk_access access, struct fk_pin **ret_pin, CUresult *ret_why);

/* A context is destroyed, a thread has ended, the driver ends. */
void fk_memory_context_gone(struct fk_context *context);
void fk_memory_stop(void);

/* ---- Streams, for memory: stream.c has them ---- */

/* Queues what(arg) on @stream (NULL: the legacy default one of the current context). */
CUresult fk_stream_queue(CUstream stream, void (*what)(void *arg), void *arg);
/* Queues what(arg), and waits until it has run. */
CUresult fk_stream_run(CUstream stream, void (*what)(void *arg), void *arg);
/* Waits until all streams, of one context or of this process, are idle. */
void fk_stream_drain(struct fk_context *context);
void fk_stream_drain_all(void);
void fk_stream_context_gone(struct fk_context *context);
struct fk_context *fk_stream_context(CUstream stream);	/* NULL: no stream of ours */
void fk_stream_stop(void);

/* An unsafe call while a stream is captured: 900, and the capture is invalid. */
CUresult fk_capture_check_unsafe(void);

#endif
