/* SPDX-License-Identifier: MIT */
/*
 * The GPUs of this process. An ordinal is the number that this process has for a device;
 * CUDA_VISIBLE_DEVICES and the driver decide it. Processes name a device to each other by its UUID.
 * The first call makes the list, which needs no context. The first xl_gpu_enter retains the primary
 * context of a device, which CUDA's runtime uses too. At the end of the process it is released,
 * unless the driver has been torn down before.
 */
#ifndef XMEM_CUDA_DEVICE_H
#define XMEM_CUDA_DEVICE_H

#include "lib/cuda/driver.h"

#define XL_GPU_UUID_BYTES	16
#define XL_GPU_NAME_BYTES	128

/* The abilities that both the device and the driver have. */
struct xl_gpu_can {
	bool export_fd;		/* exports memory as descriptors */
	bool ipc;		/* has legacy memory handles */
	bool pool_fd;		/* exports memory pools as descriptors */
	bool memops;		/* streams write and wait for 64-bit values in memory */
	bool host_register;	/* can register host memory */
	bool host_read_only;	/* can register memory that the process may only read */
	bool host_address;	/* uses the host's address for registered memory */
	bool host_atomics;	/* can change registered memory atomically */
	bool mps;		/* MPS runs work of several processes at a time */
	bool unified;		/* its addresses differ from those of all other memory */
};

/* All fields except context and released are constant once the list is made. */
struct xl_gpu {
	int ordinal;
	CUdevice device;
	u8 uuid[XL_GPU_UUID_BYTES];
	char name[XL_GPU_NAME_BYTES];
	u64 bytes;			/* of its memory */
	u64 granularity;		/* of exported memory; 0: it cannot be exported */
	u32 capability;			/* 10 * major + minor */
	struct xl_gpu_can can;
	u64 peers;			/* bits by ordinal: the GPUs that can access its memory */

	CUcontext context;		/* the primary one; NULL: not retained yet; atomic */
	bool released;			/* the process is ending; atomic */
};

/* Its ordinals beyond this have no peers; a machine with so many GPUs is not known. */
#define XL_GPU_PEERS		64

static inline bool xl_gpu_is_peer(const struct xl_gpu *home, const struct xl_gpu *gpu)
{
	return gpu->ordinal < XL_GPU_PEERS && home->peers >> gpu->ordinal & 1;
}

/* NULL, noted: for the reasons of xl_cuda_need, or ENODEV: there is no such device. */
struct xl_gpu *xl_gpu(int ordinal);
struct xl_gpu *xl_gpu_by_uuid(const u8 uuid[XL_GPU_UUID_BYTES]);

/* The number of GPUs, or -errno, noted. */
int xl_gpu_count(void);

/* "GPU-01234567-...", as nvidia-smi prints it. */
#define XL_GPU_UUID_TEXT	41
void xl_gpu_uuid_text(const u8 uuid[XL_GPU_UUID_BYTES], char ret[XL_GPU_UUID_TEXT]);

/*
 * While the program captures a stream, the driver refuses calls that might wait for captured work,
 * such as cuMemAlloc, in this thread or in all threads, and the refusal spoils the capture. No call
 * of the library waits for captured work. So the library makes its calls in the mode in which the
 * driver refuses none of them. In this mode, too, nothing may ask whether a captured stream is
 * idle: xl_order_check_capture (gpu/order.h). Returns the mode before, for xl_capture_restore.
 */
CUstreamCaptureMode xl_capture_relax(void);
void xl_capture_restore(CUstreamCaptureMode mode);

/*
 * A call of the driver that needs a context stands between enter and leave. There, the thread is in
 * the relaxed mode. Cancellation is off, because it is not known which of the driver's calls are
 * cancellation points.
 */
struct xl_gpu_scope {
	int cancelling;			/* the cancel state before */
	CUcontext before;		/* the context that was current before */
	CUcontext pushed;		/* the context that was pushed; NULL: it was current
					 * already */
	CUstreamCaptureMode mode;	/* from xl_capture_relax */
};

/*
 * Make the primary context of @gpu the thread's current one. 0, or -errno, noted; then xl_gpu_leave
 * must not be called. -ESHUTDOWN: the context was released, because the process is ending.
 */
int xl_gpu_enter(struct xl_gpu *gpu, struct xl_gpu_scope *ret_scope);

/* Restore the context that was current before, even if the calls in between have changed it. */
void xl_gpu_leave(const struct xl_gpu_scope *scope);

#endif
