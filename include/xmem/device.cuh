/* SPDX-License-Identifier: MIT */
/*
 * Counted objects and strings in kernels, in a buffer of xmem or any other memory. Header only, for
 * nvcc, NVRTC, clang's CUDA, and as plain C++14 for the CPU, whose threads then do the work of the
 * GPU's. docs/device.md explains the words.
 */
#ifndef XMEM_DEVICE_CUH
#define XMEM_DEVICE_CUH

#include "device/base.cuh"
#include "device/arena.cuh"
#include "device/meminfo.cuh"
#include "device/utf8.cuh"
#include "device/string.cuh"
#include "device/column.cuh"

#endif
