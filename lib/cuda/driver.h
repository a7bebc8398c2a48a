/* SPDX-License-Identifier: MIT */
/*
 * The CUDA driver, found when it is first needed. It is never linked, and loading this library
 * does not touch it. Once it has been found, or not, that stays so for the process's life.
 *
 * All calls go through one table, each of whose fields can be called at any time. Where the driver
 * or one of its calls is missing, the field is a function that returns
 * CUDA_ERROR_NOT_INITIALIZED. In a child of a process that has used the driver all fields are
 * such functions, because the driver does not survive a fork.
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
	u32 groups;		/* 1 << XL_CUDA_*: all calls of the group are there */
	int version;		/* of CUDA that it speaks: 1000 * major + 10 * minor */
#define XL_CUDA_FIELD(field, symbol, version, group, parameters) CUresult (*field) parameters;
	XL_CUDA_ENTRIES(XL_CUDA_FIELD)
#undef XL_CUDA_FIELD
};

/*
 * The table, never NULL. The first call looks for the driver, which takes as long as the driver
 * takes to start; the later ones take no lock where there is one. Any thread.
 */
const struct xl_cuda *xl_cuda(void);

/* The same without looking for it, and without a lock: who has not found it finds no call. */
const struct xl_cuda *xl_cuda_if_found(void);

/*
 * Is there a driver with a device, and may this process call it? 0; or -errno, noted with the
 * reason: ENODEV, ECHILD in a forked child, or what the driver's start failed with.
 * @what: what it is needed for, as a noun: "a buffer on a GPU".
 */
int xl_cuda_need(const char *what);

/* The same, and has it all calls of @group? Also -EOPNOTSUPP, noted. */
int xl_cuda_need_group(enum xl_cuda_group group, const char *what);

static inline bool xl_cuda_has(enum xl_cuda_group group)
{
	return xl_cuda()->groups >> group & 1;
}

/* What was found, or why nothing was. */
struct xl_cuda_found {
	int error;		/* 0: there is a driver with a device; or -errno */
	CUresult result;	/* that it failed with; 0 if not */
	int version;		/* 0: not known */
	const char *file;	/* of the driver; "" if none was found */
	const char *why;	/* a sentence without its end; "" if there is a driver */
};

/* Look, if nobody has yet. The strings are constant. */
struct xl_cuda_found xl_cuda_find(void);

#endif
