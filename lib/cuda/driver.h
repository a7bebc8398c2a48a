/* SPDX-License-Identifier: MIT */
/*
 * The driver of the GPUs, NVIDIA's or AMD's (hip.h), which is found when it is first needed. The
 * library is not linked with it, and loading the library does not touch it. The result of the
 * search, a driver or none, is final for the life of the process.
 *
 * All calls go through one table. Each of its fields can be called at any time: if the driver or
 * one of its calls is missing, the field is a function that returns CUDA_ERROR_NOT_INITIALIZED. In
 * a child of a process that has used the driver, all fields are such functions, because the driver
 * does not survive a fork.
 */
#ifndef XMEM_CUDA_DRIVER_H
#define XMEM_CUDA_DRIVER_H

#include "lib/cuda/entries.h"
#include "lib/cuda/error.h"
#include "lib/cuda/types.h"
#include "lib/private.h"

#define XL_CUDA_GROUP(name, what)	XL_CUDA_##name,
enum xl_cuda_group { XL_CUDA_GROUPS(XL_CUDA_GROUP) XL_CUDA_GROUP_COUNT };
#undef XL_CUDA_GROUP

struct xl_cuda {
	u32 groups;		/* 1 << XL_CUDA_*: the driver has all calls of the group */
	int version;		/* of CUDA or HIP: 1000 * major + 10 * minor */
#define XL_CUDA_FIELD(field, symbol, hip, version, group, parameters) CUresult (*field) parameters;
	XL_CUDA_ENTRIES(XL_CUDA_FIELD)
#undef XL_CUDA_FIELD
};

/*
 * The table, never NULL. The first call looks for the driver, and takes as long as the driver's
 * start. Later calls take no lock if there is a driver. Any thread may call it.
 */
const struct xl_cuda *xl_cuda(void);

/*
 * The table, without a search and without a lock. If this process has not found the driver yet, all
 * fields are functions that fail.
 */
const struct xl_cuda *xl_cuda_if_found(void);

/*
 * Is there a driver with a device, and may this process call it? 0; or -errno, noted with the
 * reason: ENODEV, ECHILD in a forked child, or the error of the driver's start. @what: a noun for
 * the purpose, such as "a buffer on a GPU".
 */
int xl_cuda_need(const char *what);

/*
 * Like xl_cuda_need, but the driver must also have all calls of @group: otherwise -EOPNOTSUPP,
 * noted.
 */
int xl_cuda_need_group(enum xl_cuda_group group, const char *what);

static inline bool xl_cuda_has(enum xl_cuda_group group)
{
	return xl_cuda()->groups >> group & 1;
}

/* The result of the search: the driver, or why there is none. */
struct xl_cuda_found {
	int error;		/* 0: there is a driver with a device; or -errno */
	CUresult result;	/* the driver's error; 0: none */
	int version;		/* of CUDA or HIP; 0: not known */
	const char *file;	/* the driver's file; "" if none was found */
	const char *why;	/* a sentence without its full stop; "" if there is a driver */
};

/* Look for the driver, unless that has been done. The strings are constant. */
struct xl_cuda_found xl_cuda_find(void);

#endif
