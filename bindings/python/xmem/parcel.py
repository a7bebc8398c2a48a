# SPDX-License-Identifier: MIT
"""Parcel: a message to be, whose reference is set aside before anybody pickles it."""
from __future__ import annotations

import errno
from types import EllipsisType
from typing import Any, NoReturn

from . import _core, reduce
from .errors import Error, Forked, Stale


class Parcel:
    """What a guard's parcel() makes: pickled, it is loaded as a BufferGuard.

    For multiprocessing.Queue, which pickles in a thread of its own some time after put(), when a
    ``with`` may have ended that has released the guard, or closed the pool. The reference that it
    has set aside goes to whoever loads it; if it is never pickled, with this object.

    A parcel is for one receiver. Where it could not be sent it is pickled once more, and each time
    sets another reference aside: that of the message which was not sent goes with its time.
    Raises Stale then, if the buffer is gone, and Released, if the pool has been closed; and Forked
    in a child of the process that has made it. Threads: any.
    """

    __slots__ = ("_lasts", "_load", "_pool", "_token", "_unused")

    _unused: list[_core.Pool]       #: whose reference __del__ gives back; empty once it is pickled

    def __init__(self, guard: _core.Guard, lasts: float | EllipsisType | None = ...) -> None:
        self._unused = []
        reduce.check(guard)
        self._pool = pool = guard.pool
        self._token = guard.token
        self._lasts = lasts
        pool._keep()        # what the parcel gives back it may give back after close()
        try:
            self._load = reduce.guard(guard, lasts)
        except BaseException:
            pool._give_back(0)
            raise
        self._unused.append(pool)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        if self._pool.forked:
            raise Forked(errno.ECHILD, "this parcel was inherited by fork, and is the parent's: "
                         "give it to the child by a queue or pipe, which pickle it")
        try:
            pool = self._unused.pop()       # one thread alone is the first
        except IndexError:
            return self._again()
        try:
            # Its time may have passed, or somebody has taken or voided it.
            return self._load if pool.claims(self._token) else self._new_load()
        except Error:           # The pool is closed, or all is gone: who loads it is told that.
            return self._load
        finally:
            pool._give_back(0)

    def _again(self) -> tuple[Any, ...]:
        try:
            return self._new_load()
        except Stale:
            raise Stale(errno.ESTALE, "this parcel has been pickled before, and its buffer is gone "
                        "since then: the message has been read, or its time has passed") from None

    def _new_load(self) -> tuple[Any, ...]:
        """Set one more reference aside, if the buffer is still there."""
        self._pool.add_ref(self._token)
        with self._pool.get(self._token) as guard:      # it takes one
            return reduce.guard(guard, self._lasts)

    def __copy__(self) -> NoReturn:
        raise TypeError("a parcel is not copied: make another by guard.parcel()")

    def __deepcopy__(self, memo: Any) -> NoReturn:
        self.__copy__()

    def __repr__(self) -> str:
        pickled = "" if self._unused else ", pickled"
        return f"<xmem.Parcel of token {self._token}{pickled}>"

    def __del__(self) -> None:
        try:
            pool = self._unused.pop()
        except (AttributeError, IndexError):        # it was not made, or it has been pickled
            return
        pool._give_back(self._token)                # of the parent's not, in its child
