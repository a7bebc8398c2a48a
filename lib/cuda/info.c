// SPDX-License-Identifier: MIT
/* The public functions that describe the driver and its devices (xmem/cuda.h). */
#include <stdio.h>
#include <string.h>

#include "lib/base/structs.h"
#include "lib/cuda/device.h"
#include "lib/cuda/hip.h"
#include "xmem/cuda.h"

XMEM_API int xmem_cuda_query(struct xmem_cuda_info *ret_info)
{
	XL_CALL;
	struct xmem_cuda_info info = {};
	int err = xl_answer_check("xmem_cuda_info", ret_info);
	struct xl_cuda_found found;

	if (!err)
		err = xl_gpu_count();
	if (err < 0)
		return err;
	found = xl_cuda_find();
	info.size = sizeof(info);
	info.version = found.version;
	info.devices = err;
	info.hip = xl_hip;
	snprintf(info.file, sizeof(info.file), "%s", found.file);
	xl_answer_give(ret_info, &info, sizeof(info));
	return 0;
}

static u32 abilities(const struct xl_gpu_can *can)
{
	return (can->export_fd ? XMEM_CUDA_CAN_EXPORT : 0) | (can->ipc ? XMEM_CUDA_CAN_IPC : 0) |
		(can->pool_fd ? XMEM_CUDA_CAN_EXPORT_POOL : 0) |
		(can->memops ? XMEM_CUDA_CAN_MEMOPS : 0) |
		(can->host_register ? XMEM_CUDA_CAN_REGISTER : 0) |
		(can->host_read_only ? XMEM_CUDA_CAN_REGISTER_READ_ONLY : 0) |
		(can->host_atomics ? XMEM_CUDA_CAN_HOST_ATOMICS : 0) |
		(can->mps ? XMEM_CUDA_CAN_MPS : 0);
}

XMEM_API int xmem_cuda_device_query(int device, struct xmem_cuda_device_info *ret_info)
{
	XL_CALL;
	struct xmem_cuda_device_info info = {};
	int err = xl_answer_check("xmem_cuda_device_info", ret_info);
	struct xl_gpu *gpu;

	if (err)
		return err;
	gpu = xl_gpu(device);
	if (!gpu)
		return xl_last_error();
	info.size = sizeof(info);
	info.device_id = gpu->ordinal;
	info.can = abilities(&gpu->can);
	info.bytes = gpu->bytes;
	info.granularity = gpu->granularity;
	info.capability = gpu->capability;
	memcpy(info.uuid, gpu->uuid, sizeof(info.uuid));
	memcpy(info.name, gpu->name, sizeof(info.name));
	xl_answer_give(ret_info, &info, sizeof(info));
	return 0;
}
