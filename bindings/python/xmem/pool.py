# SPDX-License-Identifier: MIT
"""BufferPool: a named pool of buffers that processes of this machine share."""
from __future__ import annotations

import math
from typing import Any

from . import _core, dtypes
from .guard import BufferGuard
from .subscription import Subscription

_WRITER, _EXISTING, _EXCLUSIVE, _FOREIGN, _INHERIT = 1, 2, 4, 8, 16
_HUGE, _SHARED = 1, 2
_WAITS, _PUBLISHER, _NOWAIT = 1, 2, 4
_NO_DEMAND = (1 << 64) - 1

_core.set_types(BufferGuard, Subscription)


class BufferPool(_core.Pool):
    """A handle of the pool of that name, which is made if there is none.

    name: up to 31 characters of A-Z a-z 0-9 . _ -; None: an anonymous pool.
    writer: this client acquires and publishes; a reader only gets and receives.
    existing, exclusive: only a pool that is there, or only one that is not.
    foreign: also one that another user made. inherit: forked children may reopen it.
    slots, clients, ring_entries: what whoever makes the pool wants at least; 0: the default.
    wait_bound: seconds that a slow subscriber may make this writer wait in all.
    label: what others see of this client, at most 15 characters; None: the program's name.
    demand_bytes: memory that acquire may make; 0: the default, None: none.
    cache_bytes, cache_time: of what is unused so much is kept, for so many seconds; 0: default.
    huge, shared: the kind of memory that acquire makes. keep: publications for late subscribers.

    Raises Error: see xmem_pool_open(3). Threads: any. The process that forks keeps the pool; the
    child opens it anew (reopen).
    """

    def __new__(cls, name: str | None = None, *, writer: bool = False, existing: bool = False,
                exclusive: bool = False, foreign: bool = False, inherit: bool = False,
                slots: int = 0, clients: int = 0, ring_entries: int = 0, wait_bound: float = 0.0,
                label: str | None = None, demand_bytes: int | None = 0, cache_bytes: int = 0,
                cache_time: float = 0.0, huge: bool = False, shared: bool = False,
                keep: int = 0) -> BufferPool:
        flags = (writer * _WRITER | existing * _EXISTING | exclusive * _EXCLUSIVE |
                 foreign * _FOREIGN | inherit * _INHERIT)
        self: BufferPool = _core.pool_open(
            cls, name, -1, flags, slots, clients, ring_entries, wait_bound, label,
            _NO_DEMAND if demand_bytes is None else demand_bytes, cache_bytes, cache_time,
            huge * _HUGE | shared * _SHARED, keep)
        self.name = name
        return self

    def __enter__(self) -> BufferPool:
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()

    def __repr__(self) -> str:
        if self.closed:
            return f"<xmem.BufferPool {self.name!r}, closed>"
        return f"<xmem.BufferPool {self.name!r}, client {self.client}>"

    def preallocate_cpu(self, count: int, nbytes: int | None = None, *,
                        shape: tuple[int, ...] | None = None, dtype: Any = None,
                        huge: bool = False, shared: bool = False) -> None:
        """Make buffers in memory of the CPU, of nbytes, or of a tensor's shape and type."""
        self.preallocate(count, _bytes(nbytes, shape, dtype)[0], huge * _HUGE | shared * _SHARED)

    def acquire_cpu(self, nbytes: int | tuple[int, ...] | None = None, dtype: Any = None, *,
                    shape: tuple[int, ...] | None = None,
                    timeout: float | None = None) -> BufferGuard:
        """Acquire a buffer to write into: of nbytes, or as a tensor of that shape and type.

        timeout: seconds to wait for one; None: for ever, 0: not at all.
        Raises TimedOut, whose text and holders say who holds the buffers; WouldBlock; NoSpace;
        NotPermitted of a reader.
        """
        if isinstance(nbytes, (tuple, list)):
            nbytes, shape = None, tuple(nbytes)
        total, number = _bytes(nbytes, shape, dtype)
        guard: BufferGuard = self.acquire(total, timeout)
        if shape is not None:
            try:
                guard.describe_tensor(number, shape)
            except BaseException:
                guard.release()
                raise
        return guard

    def subscribe(self, *, publisher: int | None = None, label: str | None = None,
                  waits: bool = False, timeout: float | None = None, history: int = 0,
                  depth: int = 0) -> Subscription:
        """Follow the publishers of the pool, from their next publication on.

        publisher: only that client. label: only writers that call themselves so; a '*' at its end
        stands for any rest. waits: the publisher waits for this subscriber, within its bound.
        timeout: seconds to wait for a publisher to be there; None: for ever, 0: not at all.
        history: also receive so many of each one's last publications. depth: only the latest.
        Raises NotFound, TimedOut, Exists.
        """
        flags = waits * _WAITS | (publisher is not None) * _PUBLISHER | (timeout == 0) * _NOWAIT
        subscription: Subscription = super().subscribe(flags, publisher or 0, timeout, history,
                                                       depth, label)
        return subscription


def _bytes(nbytes: int | None, shape: tuple[int, ...] | None, dtype: Any) -> tuple[int, int]:
    """How many bytes are wanted, and of which type of elements."""
    if shape is None:
        if dtype is not None:
            raise TypeError("a dtype needs a shape")
        return nbytes or 0, 0
    if nbytes is not None:
        raise TypeError("give nbytes, or shape and dtype, not both")
    if dtype is None:
        raise TypeError("a shape needs a dtype")
    number = dtypes.number(dtype)
    return math.prod(shape) * dtypes.item_bytes(number), number
