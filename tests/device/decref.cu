// SPDX-License-Identifier: MIT
/* One incref and one decref, so that ptx.py can read how they are compiled. */
#include "tests/device/kernels.h"

using namespace xmem::device;

DEVICE_KERNEL xd_incref(MemInfo *info, u64 *count)
{
	*count = incref(info);
}

DEVICE_KERNEL xd_decref(MemInfo *info, u64 *left)
{
	*left = decref(info);
}
