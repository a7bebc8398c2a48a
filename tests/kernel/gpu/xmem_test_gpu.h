/* SPDX-License-Identifier: MIT */
/*
 * What xmem_test_gpu.ko offers. It stands for the driver of a GPU: an open file of its
 * device is memory of that GPU, as an exported descriptor is.
 *
 *   int fd = open(XMEM_TEST_GPU_DEVICE, O_RDWR | O_CLOEXEC);
 *   uint64_t bytes = 2 << 20;
 *   ioctl(fd, XMEM_TEST_GPU_SET_BYTES, &bytes);
 *   mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
 *
 * The memory belongs to the open file, not to the device: whoever has got this descriptor from
 * another process maps the same bytes, and whoever opens the device (or /proc/self/fd/N) has
 * another file without memory. New memory is zeros. It is freed when the last descriptor and
 * the last mapping of it have gone.
 *
 * In /sys/module/xmem_test_gpu/parameters:
 *
 *   files       how many files are open, and dma-bufs there: what has gone up and does not go
 *               down is a leak
 *   pages       how many pages of memory these have
 *   releasing   how many files are just being released
 *   released    how many have been released since the module was loaded
 *   release_ms  how long each release takes, in milliseconds (may be written)
 *   gate        1: releases wait until it is 0 again; 2: only those of XMEM_TEST_GPU_DEVICE
 *               (may be written)
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
 * Gives the file so many bytes of memory, once. EINVAL: 0, no multiple of the page size, or
 * more than XMEM_TEST_GPU_MOST. EBUSY: it has memory.
 */
#define XMEM_TEST_GPU_SET_BYTES	_IOW(0xb8, 1, __u64)
/* How many bytes it has; 0: none yet. */
#define XMEM_TEST_GPU_GET_BYTES	_IOR(0xb8, 2, __u64)

/*
 * Pins the page of a word (aligned to 8 bytes) as drivers of GPUs do, once. When the file is
 * released the value is written there: as work that a process has given to its GPU goes on until
 * the driver has closed the process's files. EBUSY: it has pinned one. EFAULT, ...: it cannot.
 */
#define XMEM_TEST_GPU_WRITE_LATE	_IOW(0xb8, 3, struct xmem_test_gpu_late)
struct xmem_test_gpu_late {
	__u64 address;
	__u64 value;
};

/*
 * Makes a dma-buf of one page that nobody can map, and answers with a descriptor of it. It counts
 * and is released as a file of XMEM_TEST_GPU_DEVICE. ENOTTY: this kernel has no dma-bufs.
 */
#define XMEM_TEST_GPU_EXPORT	_IO(0xb8, 4)

#endif
