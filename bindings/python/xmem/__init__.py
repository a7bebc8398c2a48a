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

Times are seconds; what ends in _ns is nanoseconds.
"""
from .errors import (Canceled, Ended, Error, Exists, Forked, HostGone, Limit, NoDevice, NoSpace,
                     NotFound, NotPermitted, OwnerDead, Released, Stale, TimedOut, WouldBlock)
from .guard import BufferGuard
from .pool import BufferPool
from .subscription import Subscription
from ._core import version as __version__

__all__ = [
    "BufferGuard", "BufferPool", "Canceled", "Ended", "Error", "Exists", "Forked", "HostGone",
    "Limit", "NoDevice", "NoSpace", "NotFound", "NotPermitted", "OwnerDead", "Released", "Stale",
    "Subscription", "TimedOut", "WouldBlock",
]
