# SPDX-License-Identifier: MIT
"""Waiting in an event loop for the descriptor of a pool or a subscription.

Many coroutines can wait for one descriptor. It is in the loop's selector only while a coroutine
waits. Each time that it is ready, the next coroutine in turn wakes up and tries again. The
descriptor stays ready until a try has found nothing, so one more coroutine may wake up in vain.
Buffers that come free wake all coroutines that want a buffer, the largest wishes first: a change
before the last try that finds none is reported no more, so the smallest wish must come last.
When subscribers come or go, all coroutines that wait for subscribers wake up, because the first
look makes the descriptor unready for all.

The descriptor in the selector is a duplicate, which is closed here, in the loop. The library may
close its own descriptor at any time, and another file may then get the number.

A coroutine whose tries all succeed at once never waits, and would keep the loop from timers,
signals and cancellation. So it lets the loop go round before a try, if tries have kept the loop
busy for a millisecond: at that point nothing has been received that could be lost. Otherwise the
try comes first, so with ``asyncio.timeout(0)`` a coroutine gets what is there.

A new coroutine waits behind the coroutines that wait already. But if it wants a smaller buffer
than all of them, it tries at once, because a buffer that is too small for them may be free.
"""
from __future__ import annotations

import asyncio
import errno
import heapq
import math
import os
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from .errors import Canceled, Error, TimedOut, WouldBlock

Result = TypeVar("Result")


class Pollable(Protocol):
    """A pool or a subscription."""

    def fileno(self) -> int:
        """The library's descriptor."""


class Cancelable(Protocol):
    """A pool."""

    canceled: bool
    """Were its waits ended, by cancel() or close()?"""


def _check(pool: Cancelable) -> None:
    """A try has found nothing: raise Canceled if waits of the pool have been ended."""
    if pool.canceled:
        raise Canceled(errno.ECANCELED, "the pool's waits have been ended by cancel() or close()")


#: Seconds of tries that succeed at once, after which the loop goes round. A round costs as much as
#: ten receives, so each millisecond is little for both.
_ROUND = 0.001


class _Round(threading.local):
    """The time since which tries have kept the loop of this thread busy, or None."""

    since: float | None = None

    def gone(self) -> None:
        """Note that the loop has gone round."""
        self.since = None


_round = _Round()


async def _go_round() -> None:
    """Let the loop run what is ready, if that is due. A coroutine that is canceled here has got
    nothing."""
    now = time.monotonic()
    if _round.since is None:
        _round.since = now
        asyncio.get_running_loop().call_soon(_round.gone)
    if now - _round.since >= _ROUND:
        await asyncio.sleep(0)
        _round.gone()           # the loop that was to call it may have been closed


_all: weakref.WeakSet[Waiters] = weakref.WeakSet()


class Waiters:
    """The coroutines of one event loop that wait for one descriptor."""

    def __init__(self, loop: asyncio.AbstractEventLoop, fd: int, writable: bool,
                 everyone: bool) -> None:
        self.loop = loop
        self.fd = os.dup(fd)
        self.own = [self.fd]    # the thread that takes it out of here closes it
        self.writable = writable
        self.everyone = everyone        # all are woken when it is ready
        self.waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self.wanted: list[int] = []     # how much each coroutine in until() wants
        self.turn = 0
        self.armed = False
        self.wakeups = 0        # how often the loop has found the descriptor ready
        _all.add(self)

    def __del__(self) -> None:
        self._close()

    def _close(self) -> None:
        self.fd = -1
        try:
            os.close(self.own.pop())
        except IndexError:
            pass

    def _look(self) -> None:
        """Put the descriptor into the selector, or take it out, as needed."""
        wanted = bool(self.waiting) and self.fd >= 0
        if wanted == self.armed or self.loop.is_closed():
            return
        self.armed = wanted
        if wanted and self.writable:
            self.loop.add_writer(self.fd, self._ready)
        elif wanted:
            self.loop.add_reader(self.fd, self._ready)
        elif self.writable:
            self.loop.remove_writer(self.fd)
        else:
            self.loop.remove_reader(self.fd)

    def _ready(self) -> None:
        self.wakeups += 1
        self._wake(all_of_them=self.everyone)
        self._look()

    def _wake(self, all_of_them: bool) -> None:
        while self.waiting:
            future = heapq.heappop(self.waiting)[2]
            if not future.done():       # a future that is done was canceled
                future.set_result(None)
                if not all_of_them:
                    break

    def _end(self) -> None:
        self._wake(all_of_them=True)
        self._look()
        self._close()

    def end(self) -> None:
        """From any thread: wake all coroutines, whose next try raises why, and close the
        descriptor."""
        try:
            self.loop.call_soon_threadsafe(self._end)
        except RuntimeError:            # The loop is closed, and nobody waits in it any more.
            self._close()

    def nudge(self) -> None:
        """From any thread: wake all coroutines, which try again."""
        try:
            self.loop.call_soon_threadsafe(self._wake, True)
        except RuntimeError:            # The loop is closed, and nobody waits in it any more.
            pass

    def forked(self) -> None:
        """In a forked child: the loop is the parent's, and so is the selector."""
        self._close()

    async def until(self, attempt: Callable[[], Result], pool: Cancelable,
                    amount: int) -> Result:
        """Try until it does not raise WouldBlock. A coroutine that is canceled has got nothing."""
        turn = self.turn = self.turn + 1
        self.wanted.append(amount)
        try:
            return await self._until(attempt, pool, amount, turn)
        finally:
            self.wanted.remove(amount)

    async def _until(self, attempt: Callable[[], Result], pool: Cancelable, amount: int,
                     turn: int) -> Result:
        while True:
            future = self.loop.create_future()
            entry = (-amount, turn, future)
            heapq.heappush(self.waiting, entry)
            self._look()
            try:
                await future
                return attempt()
            except WouldBlock:
                _check(pool)
            finally:
                if entry in self.waiting:       # the coroutine was canceled, not woken
                    self.waiting.remove(entry)
                    heapq.heapify(self.waiting)
                self._look()


async def until(of: Pollable, known: dict[Any, Waiters], attempt: Callable[[], Result],
                pool: Cancelable, amount: int = 0, writable: bool = False,
                everyone: bool = False, timeout: float | None = None) -> Result:
    """Try, and after each WouldBlock wait for the descriptor of a pool or subscription.

    Other tasks get their turn even if each try succeeds at once. A coroutine that is canceled has
    got nothing.
    known: the object's own dict of waiters, by loop. pool: the pool itself, or that of the
    subscription.
    amount: how many bytes or subscribers the try wants. everyone: wake all coroutines when it is
    ready, which always happens with writable.
    timeout: seconds; None: for ever, 0: a single try, which raises WouldBlock.
    Raises TimedOut; Canceled once the waits of the pool have been ended; TypeError, ValueError.
    """
    if timeout is not None and (math.isnan(timeout) or timeout < 0):
        raise ValueError("a timeout is None or a number of seconds that is not negative, "
                         f"not {timeout!r}")
    if timeout == 0:
        return attempt()
    try:
        async with asyncio.timeout(timeout) as limit:
            return await _until(of, known, attempt, pool, amount, writable, everyone)
    except TimeoutError as error:
        if isinstance(error, Error) or not limit.expired():
            raise
        raise TimedOut(errno.ETIMEDOUT, f"nothing within {timeout} s") from None


async def _until(of: Pollable, known: dict[Any, Waiters], attempt: Callable[[], Result],
                 pool: Cancelable, amount: int, writable: bool, everyone: bool) -> Result:
    await _go_round()
    loop = asyncio.get_running_loop()
    waiters = known.get((loop, writable))
    if not waiters or all(wanted > amount for wanted in waiters.wanted):
        try:
            return attempt()
        except WouldBlock:
            _check(pool)
    if not waiters:
        for key in list(known):         # other threads change it
            if key[0].is_closed():
                known.pop(key, None)
        waiters = known[loop, writable] = Waiters(loop, of.fileno(), writable,
                                                  writable or everyone)
        try:
            _check(pool)                # A thread that ends the waits, or closes the object,
            of.fileno()                 # may have missed this one.
        except Error:
            end(known)
            raise
    return await waiters.until(attempt, pool, amount)


def end(known: dict[Any, Waiters]) -> None:
    """The object is closed: nobody waits for it any more."""
    while True:
        try:
            waiters = known.popitem()[1]
        except KeyError:
            return
        waiters.end()


def nudge(known: dict[Any, Waiters]) -> None:
    """Wake the coroutines that wait, because a try may succeed now although the descriptor is not
    ready."""
    for waiters in list(known.values()):
        waiters.nudge()


def _in_child() -> None:
    for waiters in list(_all):
        waiters.forked()


os.register_at_fork(after_in_child=_in_child)
