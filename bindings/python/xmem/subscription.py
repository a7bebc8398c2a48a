# SPDX-License-Identifier: MIT
"""Subscription: receiving what the publishers of a pool publish."""
from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from . import _core
from .errors import Ended, WouldBlock

if TYPE_CHECKING:
    from .guard import BufferGuard


class Subscription(_core.Subscription):
    """What publishers publish from now on, in order; ``for guard in subscription`` receives it.

    Iteration ends when all publishers have ended and all that was in flight has been received.
    ``async for`` does the same in an event loop. Threads: any.
    """

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()

    async def receive_async(self) -> BufferGuard:
        """Receive the next publication in an event loop. Raises Ended as receive() does."""
        while True:
            try:
                return self.receive(timeout=0)
            except WouldBlock:
                await readable(self.fileno())

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> BufferGuard:
        try:
            return await self.receive_async()
        except Ended:
            raise StopAsyncIteration from None


async def readable(fd: int) -> None:
    """Wait until a descriptor is readable."""
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    loop.add_reader(fd, lambda: ready.done() or ready.set_result(None))
    try:
        await ready
    finally:
        loop.remove_reader(fd)
