/* SPDX-License-Identifier: MIT */
/*
 * The GPUs of this process. An ordinal is this process's own number of a device, as
 * CUDA_VISIBLE_DEVICES and the driver make it; between processes a device is named by its UUID.
 * The list is made once, by the first call, and needs no context. A device's primary context,
 * which it shares with CUDA's runtime, is retained by the first xl_gpu_enter. The process's end
 * releases it, unless the driver has been torn down before.
 */
#ifndef XMEM_CUDA_DEVICE_H
#define XMEM_CUDA_DEVICE_H

#include "lib/cuda/driver.h"

#define XL_GPU_UUID_BYTES	16
#define XL_GPU_NAME_BYTES	128

/* What the device and the driver can both do. */
struct xl_gpu_can {
	bool export_fd;		/* memory exported as descriptors */
	bool ipc;		/* legacy memory handles */
	bool pool_fd;		/* memory pools exported as descriptors */
	bool memops;		/* streams write and wait for 64-bit values in memory */
	bool host_register;	/* host memory is registered, */
	bool host_read_only;	/* also such that the process may only read, */
	bool host_address;	/* and has the same address on the device */
	bool host_atomics;	/* and changed atomically from there */
	bool unified;		/* its addresses are those of no other memory */
};

/* Constant once the list is made, but for the context. */
struct xl_gpu {
	int ordinal;
	CUdevice device;
	u8 uuid[XL_GPU_UUID_BYTES];
	char name[XL_GPU_NAME_BYTES];
	u64 bytes;			/* of its memory */
	u64 granularity;		/* of exported memory; 0: it cannot be exported */
	u32 capability;			/* 10 * major + minor */
	struct xl_gpu_can can;

	CUcontext context;		/* the primary one; NULL: not retained yet; atomic */
	bool released;			/* the process is ending; atomic */
};

/* NULL, noted: xl_cuda_need's reasons, or ENODEV because there is no such device. */
struct xl_gpu *xl_gpu(int ordinal);
struct xl_gpu *xl_gpu_by_uuid(const u8 uuid[XL_GPU_UUID_BYTES]);

/* How many there are, or -errno, noted. */
int xl_gpu_count(void);

/* "GPU-01234567-...", as nvidia-smi prints it. */
#define XL_GPU_UUID_TEXT	41
void xl_gpu_uuid_text(const u8 uuid[XL_GPU_UUID_BYTES], char ret[XL_GPU_UUID_TEXT]);

/*
 * A call of the driver that needs a context stands between enter and leave. In between the thread
 * is not cancelled, because nobody knows which of the driver's calls are cancellation points.
 */
struct xl_gpu_scope {
	int cancelling;			/* what the cancel state was */
	CUcontext before;		/* what was current */
	CUcontext pushed;		/* NULL: that is the one */
};

/*
 * Make the primary context of @gpu the thread's current one. 0, or -errno, noted; then nothing is
 * to be left. After the context was released at the process's end: -ESHUTDOWN.
 */
int xl_gpu_enter(struct xl_gpu *gpu, struct xl_gpu_scope *ret_scope);

/* What was current before is current again, whatever the calls in between have done. */
void xl_gpu_leave(const struct xl_gpu_scope *scope);

#endif
