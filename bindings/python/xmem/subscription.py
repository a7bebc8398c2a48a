# SPDX-License-Identifier: MIT
"""Subscription: receiving the publications of a pool."""
from __future__ import annotations

import functools
from typing import Any, NoReturn

from . import _core, aio
from .errors import Ended
from .guard import BufferGuard


class Subscription(_core.Subscription):
    """The publications of publishers from now on, in order; ``for guard in subscription`` receives
    them.

    Iteration goes on with the next publisher when one has ended, and waits for it. If the
    subscription does not last (lasts=False of BufferPool.subscribe), it ends when all publishers
    have ended and all their publications have been received.
    ``async for`` does so in an event loop. Threads: any; several may receive, and each
    publication goes to one of them. close() ends their waits with Canceled, and those of
    coroutines with Released.
    """

    __slots__ = ("__weakref__", "_waiters")
    _waiters: dict[Any, aio.Waiters]    # of its descriptor; BufferPool.subscribe makes it

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<xmem.Subscription{', closed' if self.closed else ''}>"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("a subscription belongs to its process and cannot be pickled: "
                        "pickle the pool, and subscribe there")

    def close(self) -> None:
        """Stop following; waits end. Guards that were received stay."""
        super().close()
        aio.end(self._waiters)
        aio.nudge(self.pool._waiters)       # its receive_async() may have none left

    async def receive_async(self, timeout: float | None = None) -> BufferGuard:
        """Receive the next publication in an event loop.

        Several coroutines may wait, and take turns. timeout: seconds to wait for one; None: for
        ever, 0: not at all. ``asyncio.timeout`` may be used in its place. A coroutine that is
        canceled has received nothing. Raises what receive() raises, also TimedOut, Canceled by the
        pool's cancel() or close(), and Released if the subscription is closed meanwhile.
        """
        return await aio.until(self, self._waiters, functools.partial(self.receive, 0), self.pool,
                               timeout=timeout)

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> BufferGuard:
        try:
            return await self.receive_async()
        except Ended:
            raise StopAsyncIteration from None
