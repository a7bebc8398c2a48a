# SPDX-License-Identifier: MIT
"""Parcel: a message whose reference is set aside before it is pickled."""
from __future__ import annotations

import errno
from types import EllipsisType
from typing import Any, NoReturn

from . import _core, reduce
from .errors import Error, Forked, Stale


class Parcel:
    """The result of a guard's parcel(): pickled, it is loaded as a BufferGuard.

    It is for multiprocessing.Queue, which pickles in a thread of its own some time after put(). By
    then a ``with`` may have released the guard or closed the pool. The reference that a parcel has
    set aside goes to the process that loads it; if the parcel is never pickled, it goes with this
    object.

    A parcel is for one receiver. If it could not be sent, it can be pickled again, and each time
    sets another reference aside; the reference of a message that was not sent expires.
    Pickling again raises Stale if the buffer is gone, and Released if the pool has been closed.
    Pickling raises Forked in a child of the process that has made the parcel. Threads: any.
    """

    __slots__ = ("_lasts", "_load", "_pool", "_token", "_unused")

    #: The pool whose reference __del__ gives back; empty once the parcel is pickled.
    _unused: list[_core.Pool]

    def __init__(self, guard: _core.Guard, lasts: float | EllipsisType | None = ...) -> None:
        self._unused = []
        reduce.check(guard)
        self._pool = pool = guard.pool
        self._token = guard.token
        self._lasts = lasts
        pool._keep()        # the parcel may give its reference back after close()
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
            pool = self._unused.pop()       # only one thread is the first
        except IndexError:
            return self._again()
        try:
            # The reference may have expired, or may have been taken or voided.
            return self._load if pool.claims(self._token) else self._new_load()
        except Error:           # The pool is closed, or gone: the loaded guard says so.
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
        with self._pool.get(self._token) as guard:      # it takes a reference
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
        except (AttributeError, IndexError):        # the parcel was not made, or has been pickled
            return
        pool._give_back(self._token)                # in a child of fork this does nothing
