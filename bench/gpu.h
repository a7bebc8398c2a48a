/* SPDX-License-Identifier: MIT */
/* Shared by the files about memory of GPUs. */
#ifndef BENCH_GPU_H
#define BENCH_GPU_H

#include "bench.h"
#include "driver.h"
#include "xmem/cuda.h"
#include "xmem/stream.h"

/* One of two processes that hand tensors over as PyTorch does: gpu_torch.c. */
struct torch {
	struct bench *bench;
	int side;			/* 0 sends */
	const struct driver *driver;
	struct CUstream_st *stream;
};

/*
 * The most calls of the driver that this side makes for one of @count hand-overs, after the first
 * one. @kept: the receiver keeps a tensor that lies in the same block of memory.
 */
unsigned long torch_calls(struct torch *torch, bool kept, unsigned int count);

#endif
