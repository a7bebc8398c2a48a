/* SPDX-License-Identifier: MIT */
/* The driver's types of virtual memory management and of pools, in our own words. */
#ifndef FAKE_VMM_H
#define FAKE_VMM_H

#include <stddef.h>

enum { FK_DEVICE = 1, FK_HOST = 2, FK_HOST_NUMA = 3, FK_HOST_CURRENT = 4 };	/* locations */
enum { FK_POSIX_FD = 1, FK_FABRIC = 8 };					/* handle types */

typedef struct { int type, id; } CUmemLocation;

typedef struct {
	int type;			/* 1: pinned */
	unsigned int handle_types;	/* bits */
	CUmemLocation location;
	void *windows;
	unsigned char compression, rdma;
	unsigned short usage;
	unsigned char reserved[4];
} CUmemAllocationProp;

typedef struct {
	CUmemLocation location;
	unsigned int flags;		/* 1: reads, 3: reads and writes */
} CUmemAccessDesc;

typedef struct {
	int type;			/* 1: pinned */
	unsigned int handle_types;
	CUmemLocation location;
	void *windows;
	size_t most;			/* 0: the driver's choice */
	unsigned short usage;
	unsigned char reserved[54];
} CUmemPoolProps;

typedef struct { unsigned char reserved[64]; } CUmemPoolPtrExportData;

_Static_assert(sizeof(CUmemAllocationProp) == 32, "as the driver has it");
_Static_assert(sizeof(CUmemAccessDesc) == 12, "as the driver has it");
_Static_assert(sizeof(CUmemPoolProps) == 88, "as the driver has it");

#endif
