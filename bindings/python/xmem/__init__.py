# SPDX-License-Identifier: MIT
"""xmem: processes of one machine share large buffers without copying them.

A crash in one process neither leaks memory nor harms another process.

    import numpy, xmem

    pool = xmem.BufferPool("camera", writer=True)
    with pool.acquire_cpu((1080, 1920, 3), "uint8") as frame:
        numpy.asarray(frame)[:] = picture
        frame.publish()

    for frame in xmem.BufferPool("camera").subscribe():     # in another process
        look_at(numpy.asarray(frame))

Times are in seconds, except names that end in _ns, which are nanoseconds.
"""
try:
    from . import _core
except ImportError as error:
    from importlib.util import find_spec

    if find_spec("xmem._core"):     # the extension exists: its own error says what is wrong
        raise
    raise ImportError(
        f"xmem is incomplete: its extension is not beside {__file__}. It cannot be loaded from a "
        "zip (a zipapp), and in a source tree 'make python' builds it", name="xmem._core",
        path=__file__) from error
from . import dtypes, typing
from .cuda import (CudaImage, CudaPlane, CudaTensor, cuda_clear_last_result, cuda_info,
                   cuda_last_result, gpus)
from .errors import (Canceled, Ended, Error, Exists, Forked, HostGone, Limit, NoDevice, NoSpace,
                     NotFound, NotPermitted, NotYet, OwnerDead, Released, Stale, TimedOut,
                     WouldBlock)
from .guard import BufferGuard, Image
from .parcel import Parcel
from .pool import BufferPool
from .records import Holder, Unread
from .strings import Strings, strings_plan
from .subscription import Subscription
from ._constants import (NOBODY, BufferFlags, ClientRole, CudaCanFlags, ImageFormat,
                         LimitScope, Order, SlotUse, Storage)
from ._core import (ClientInfo, CudaDeviceInfo, CudaInfo, DeviceInfo, HostInfo, Limbo, LimitInfo,
                    Metadata, Plane, PoolEntry, PoolInfo, SlotInfo, SubscriberInfo, host,
                    image_bytes, limits, pools)
from ._core import version as __version__

__all__ = [
    "BufferFlags", "BufferGuard", "BufferPool", "Canceled", "ClientInfo", "ClientRole",
    "CudaCanFlags", "CudaDeviceInfo", "CudaImage", "CudaInfo", "CudaPlane", "CudaTensor",
    "DeviceInfo", "Ended", "Error", "Exists", "Forked", "Holder", "HostGone", "HostInfo",
    "Image", "ImageFormat", "Limbo", "Limit", "LimitInfo", "LimitScope", "Metadata", "NOBODY",
    "NoDevice", "NoSpace", "NotFound", "NotPermitted", "NotYet", "Order", "OwnerDead", "Parcel",
    "Plane",
    "PoolEntry", "PoolInfo",
    "Released", "SlotInfo", "SlotUse", "Stale", "Storage", "Strings", "SubscriberInfo",
    "Subscription",
    "TimedOut", "Unread", "WouldBlock", "cuda_clear_last_result", "cuda_info",
    "cuda_last_result", "dtypes", "get_include", "gpus", "host", "image_bytes", "limits", "pools",
    "strings_plan",
]


def get_include() -> str:
    """The folder of xmem.h, xmem.hpp and xmem_python.h, to compile other extensions with.

    Cython finds xmem.capi and xmem.handles beside the package.
    """
    return __file__.removesuffix("__init__.py") + "include"


def __dir__() -> list[str]:
    """The public names, without the modules of which the package consists."""
    return [*__all__, "typing", "__version__", "__doc__"]
