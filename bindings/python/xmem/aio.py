# SPDX-License-Identifier: MIT
"""Waiting in an event loop for the descriptor of a pool or a subscription.

Many coroutines can wait for one descriptor. It is in the loop's selector only while somebody
waits. Each time that it is ready, one coroutine wakes up, in turn, and tries what it came for; it
stays ready until a try has found nothing, so the next one may wake up in vain, once. Buffers that
come free wake all who want one, those that want most first: the descriptor means a buffer as large
as the last try wanted, and so that is the least that anybody waits for. When subscribers
come or go, all who wait for some wake up: the first look makes the descriptor unready for all.

The descriptor that is looked at is a duplicate, which is closed here, in the loop: the library may
close its own at any time, and the number may be another file's by then.

Where what a coroutine comes for is there at once, it waits for nothing, so that it would keep the
loop for ever from timers, signals and whoever cancels it. So it lets the loop go round before a
try, if tries have kept the loop from that for a millisecond: then nothing has been received that
could be lost. Otherwise the try comes first, and ``asyncio.timeout(0)`` gets what is there.

A coroutine that comes later waits behind those that wait already. If it wants a smaller buffer than
each of them, it tries at once, for a buffer that is too small for them may be free.
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
    """A try has found nothing: may who made it wait?"""
    if pool.canceled:
        raise Canceled(errno.ECANCELED, "the pool's waits have been ended by cancel() or close()")


#: Seconds of tries that succeed at once, after which the loop goes round. A round costs as much as
#: ten receives, so each millisecond is little for both.
_ROUND = 0.001


class _Round(threading.local):
    """Since when tries have kept the loop of this thread from going round, or None."""

    since: float | None = None

    def gone(self) -> None:
        """Note that the loop has gone round."""
        self.since = None


_round = _Round()


async def _go_round() -> None:
    """Let the loop run what is ready, if that is due. Whoever is canceled here has got nothing."""
    now = time.monotonic()
    if _round.since is None:
        _round.since = now
        asyncio.get_running_loop().call_soon(_round.gone)
    if now - _round.since >= _ROUND:
        await asyncio.sleep(0)
        _round.gone()           # the loop that was to note it may have been closed before


_all: weakref.WeakSet[Waiters] = weakref.WeakSet()


class Waiters:
    """The coroutines of one event loop that wait for one descriptor."""

    def __init__(self, loop: asyncio.AbstractEventLoop, fd: int, writable: bool,
                 everyone: bool) -> None:
        self.loop = loop
        self.fd = os.dup(fd)
        self.own = [self.fd]    # whoever takes it out of here closes it, in any thread
        self.writable = writable
        self.everyone = everyone        # is to be woken when it is ready
        self.waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self.wanted: list[int] = []     # how much, of each coroutine in until
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
        """Have the selector look at the descriptor if that is of use, and else not."""
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
            if not future.done():       # one that is was canceled
                future.set_result(None)
                if not all_of_them:
                    break

    def _end(self) -> None:
        self._wake(all_of_them=True)
        self._look()
        self._close()

    def end(self) -> None:
        """From any thread: wake all, whose next try says why, and close the descriptor."""
        try:
            self.loop.call_soon_threadsafe(self._end)
        except RuntimeError:            # The loop is closed, and nobody waits in it any more.
            self._close()

    def nudge(self) -> None:
        """From any thread: wake all, who try again."""
        try:
            self.loop.call_soon_threadsafe(self._wake, True)
        except RuntimeError:            # The loop is closed, and nobody waits in it any more.
            pass

    def forked(self) -> None:
        """In a forked child: the loop is the parent's, and so is the selector."""
        self._close()

    async def until(self, attempt: Callable[[], Result], pool: Cancelable,
                    amount: int) -> Result:
        """Try until it does not raise WouldBlock. Whoever is canceled has not got anything."""
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
                if entry in self.waiting:       # it was canceled, and not woken
                    self.waiting.remove(entry)
                    heapq.heapify(self.waiting)
                self._look()


async def until(of: Pollable, known: dict[Any, Waiters], attempt: Callable[[], Result],
                pool: Cancelable, amount: int = 0, writable: bool = False,
                everyone: bool = False, timeout: float | None = None) -> Result:
    """Try, and whenever that raises WouldBlock, wait for the descriptor of a pool or subscription.

    Others get their turn also where each try succeeds at once, and whoever is canceled in the
    meantime has not got anything.
    known: who waits for it, of each loop; it is the object's own. pool: the pool, or of what.
    amount: how many bytes or subscribers the try wants. everyone: wake all when it is ready, as is
    done anyway when it is writable.
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
        for key in list(known):         # others change it in their threads
            if key[0].is_closed():
                known.pop(key, None)
        waiters = known[loop, writable] = Waiters(loop, of.fileno(), writable,
                                                  writable or everyone)
        try:
            _check(pool)                # Who ends the waits may not have seen this one,
            of.fileno()                 # nor who closes what is waited for.
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
    """What those who wait for it may find has changed, and the descriptor does not say so."""
    for waiters in list(known.values()):
        waiters.nudge()


def _in_child() -> None:
    for waiters in list(_all):
        waiters.forked()


os.register_at_fork(after_in_child=_in_child)
