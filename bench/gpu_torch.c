// SPDX-License-Identifier: MIT
/*
 * The calls of the driver by which PyTorch hands a tensor from process to process, one by one from
 * its sources: torch/csrc/StorageSharing.cpp and torch/csrc/CudaIPCTypes.cpp, commit 01518c299cba.
 * A call of CUDA's runtime counts as one of the driver. Calls that only choose the device are left
 * out, and so is everything that calls no driver.
 *
 *   THPStorage_shareCuda         cudaIpcGetMemHandle for the tensor's block, each time
 *   CudaIPCSentData              cudaEventCreateWithFlags, cudaEventRecord
 *   THPStorage_shareCuda         cudaIpcGetEventHandle
 *   ~CudaIPCSentData             cudaEventDestroy, once the receiver has counted down
 *
 *   THPStorage_newSharedCuda     cudaIpcOpenEventHandle, cudaStreamWaitEvent; nobody destroys
 *                                what is opened here
 *   getIpcDevPtr                 cudaIpcOpenMemHandle, unless the block is open
 *   the storage's deleter        cudaIpcCloseMemHandle if this was the block's last tensor, and
 *                                cudaStreamSynchronize
 *
 * Its limit of 1000 events, above which it synchronises, is not reached.
 */
#include "gpu.h"

#define BLOCK		(2 << 20)

enum { BLOCKING_SYNC = 1, DISABLE_TIMING = 2, INTERPROCESS = 4, LAZY_PEER = 1 };

/* Their messages are in bench->parcel. */
struct tensor {
	unsigned long long at;		/* side 0: address of its block; side 1: address at which
					 * the block is open, or 0 */
	struct CUevent_st *event;	/* side 0 */
};

static void share(struct torch *torch, struct tensor *tensor)
{
	const struct driver *driver = torch->driver;
	struct driver_handle *parcel = torch->bench->parcel;

	driver_must(driver->get_memory(&parcel[0], tensor->at), "cuIpcGetMemHandle");
	driver_must(driver->event_create(&tensor->event,
					 DISABLE_TIMING | INTERPROCESS | BLOCKING_SYNC),
		    "cuEventCreate");
	driver_must(driver->event_record(tensor->event, torch->stream), "cuEventRecord");
	driver_must(driver->get_event(&parcel[1], tensor->event), "cuIpcGetEventHandle");
}

static void rebuild(struct torch *torch, struct tensor *tensor)
{
	const struct driver *driver = torch->driver;
	const struct driver_handle *parcel = torch->bench->parcel;
	struct CUevent_st *event;

	driver_must(driver->open_event(&event, parcel[1]), "cuIpcOpenEventHandle");
	driver_must(driver->stream_wait(torch->stream, event, 0), "cuStreamWaitEvent");
	if (!tensor->at)
		driver_must(driver->open_memory(&tensor->at, parcel[0], LAZY_PEER),
			    "cuIpcOpenMemHandle");
}

static void drop(struct torch *torch, struct tensor *tensor, bool kept)
{
	const struct driver *driver = torch->driver;

	if (!kept) {
		driver_must(driver->close_memory(tensor->at), "cuIpcCloseMemHandle");
		tensor->at = 0;
	}
	driver_must(driver->stream_sync(torch->stream), "cuStreamSynchronize");
}

static void hand_over(struct torch *torch, struct tensor *tensor, bool kept)
{
	if (!torch->side)
		share(torch, tensor);
	meet(torch->bench, torch->side);
	if (torch->side) {
		rebuild(torch, tensor);
		drop(torch, tensor, kept);
	}
	meet(torch->bench, torch->side);
	if (!torch->side)
		driver_must(torch->driver->event_destroy(tensor->event), "cuEventDestroy");
}

unsigned long torch_calls(struct torch *torch, bool kept, unsigned int count)
{
	struct tensor tensor = { 0 };
	unsigned long before, called, most = 0;
	unsigned int n;

	if (!torch->side)
		driver_must(torch->driver->alloc(&tensor.at, BLOCK), "cuMemAlloc");
	for (n = 0; n <= count; n++) {
		before = torch->driver->calls(NULL);
		hand_over(torch, &tensor, kept);
		called = torch->driver->calls(NULL) - before;
		if (n && called > most)
			most = called;
	}
	if (tensor.at && torch->side)
		driver_must(torch->driver->close_memory(tensor.at), "cuIpcCloseMemHandle");
	meet(torch->bench, torch->side);
	return most;
}
