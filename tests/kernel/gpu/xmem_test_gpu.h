/* SPDX-License-Identifier: MIT */
/*
 * The interface of xmem_test_gpu.ko, which stands for the driver of a GPU. An open file of its
 * device is memory of that GPU, as an exported descriptor is.
 *
 *   int fd = open(XMEM_TEST_GPU_DEVICE, O_RDWR | O_CLOEXEC);
 *   uint64_t bytes = 2 << 20;
 *   ioctl(fd, XMEM_TEST_GPU_SET_BYTES, &bytes);
 *   mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
 *
 * The memory belongs to the open file, not to the device. A process that has got this descriptor
 * from another process maps these bytes. A process that opens the device (or /proc/self/fd/N) has
 * another file without memory. New memory is zeros. It is freed when its last descriptor and its
 * last mapping have gone.
 *
 * In /sys/module/xmem_test_gpu/parameters:
 *
 *   files       how many files are open, plus dma-bufs; a number that stays higher is a leak
 *   pages       how many pages of memory these have
 *   releasing   how many files are being released now
 *   released    how many files have been released since the module was loaded
 *   release_ms  how long each release takes, in milliseconds (may be written)
 *   gate        1: releases wait until it is 0 again; 2: only releases of files of
 *               XMEM_TEST_GPU_DEVICE wait (may be written)
 *   major       the device's number is MAJOR:255; MAJOR:0 is a second device, whose files are
 *               like the first one's (XMEM_TEST_GPU_OTHER)
 */
#ifndef XMEM_TEST_GPU_H
#define XMEM_TEST_GPU_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define XMEM_TEST_GPU_DEVICE	"/dev/xmem-test-gpu"
#define XMEM_TEST_GPU_OTHER	"/dev/xmem-test-gpu0"
#define XMEM_TEST_GPU_MAJOR	240	/* for local and experimental use */
#define XMEM_TEST_GPU_MINOR	255
#define XMEM_TEST_GPU_MOST	(1ULL << 40)

/*
 * Gives the file so many bytes of memory, once. EINVAL: 0, no multiple of the page size, or more
 * than XMEM_TEST_GPU_MOST. EBUSY: the file has memory.
 */
#define XMEM_TEST_GPU_SET_BYTES	_IOW(0xb8, 1, __u64)
/* How many bytes the file has; 0: none yet. */
#define XMEM_TEST_GPU_GET_BYTES	_IOR(0xb8, 2, __u64)

/*
 * Pins the page of a word (aligned to 8 bytes) once, as GPU drivers do. When the file is released,
 * the value is written to the word, because the work of a process on its GPU goes on until the
 * driver has closed the process's files. EBUSY: the file has pinned a page. Other errnos, such as
 * EFAULT: the page cannot be pinned.
 */
#define XMEM_TEST_GPU_WRITE_LATE	_IOW(0xb8, 3, struct xmem_test_gpu_late)
struct xmem_test_gpu_late {
	__u64 address;
	__u64 value;
};

/*
 * Makes a dma-buf of one page that no process can map, and returns a descriptor of it. It counts
 * as a file of XMEM_TEST_GPU_DEVICE, and is released as one. ENOTTY: this kernel has no dma-bufs.
 */
#define XMEM_TEST_GPU_EXPORT	_IO(0xb8, 4)

/*
 * This one stands for no driver: it acts before each of so many calls of a function of the kernel
 * or of a module by the caller's process. The word at the address, if it is not 0, gets the value,
 * which grows by @add each time. So it changes in the middle of a request. Then the process uses
 * the processor for so long, or until the word gets another value; if that is more than its control
 * group may use, it stops there. The request ends with the file. EBUSY: the file has such a
 * request. ENOENT: there is no such function.
 */
#define XMEM_TEST_GPU_STEP	_IOW(0xb8, 5, struct xmem_test_gpu_step)
struct xmem_test_gpu_step {
	char function[32];
	__u64 address;			/* of a page that the process has touched */
	__u64 value, add;
	__u64 times;
	__u64 busy_ms;
};

#endif
