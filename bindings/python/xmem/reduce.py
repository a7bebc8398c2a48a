# SPDX-License-Identifier: MIT
"""Pickling of pools and guards, for multiprocessing's queues and pipes.

A pool is pickled as its name and options. A process that loads it has one pool with these, however
many messages there are: the one that it has opened itself, if there is one. An anonymous pool is
pickled as a descriptor, which only multiprocessing can hand on.

A guard is pickled as its pool and its token. Pickling sets one reference aside, which loading
takes. So the message can be loaded once, and more often as long as a client holds the buffer. A
queue of multiprocessing pickles in a thread of its own, some time after put(). So a program puts
guard.parcel() into it, which sets the reference aside at once, or a guard that it drops without
releasing it.

If a message is never loaded, its reference expires: after in_flight of the pool if this process
owns the buffer, and after at most 60 seconds otherwise. It goes earlier with
pool.void_claims(token), and 60 seconds after the process that owns the buffer has ended, or at
once if no other client is in the pool.

Loading raises no error if the buffer or pool is gone. It gives a guard or pool that is lost: each
use of it raises the error. The reason is that threads of multiprocessing load messages and take an
OSError for the end of their pipe: a thread of Pool would end, and a program that waits for a
result would wait for ever.
"""
from __future__ import annotations

import errno
import os
import select
import threading
import time
import weakref
from collections.abc import Callable
from types import EllipsisType
from typing import Any, Protocol, Self

from . import _core, unread
from .errors import Error, HostGone, NotFound, NotPermitted, Released, Stale, WouldBlock


class Pool(Protocol):
    """The part of a pool that messages need."""

    name: str | None
    options: dict[str, Any]
    identity: str               #: names an anonymous pool in all processes

    def __init__(self, name: str | None, **options: Any) -> None: ...

    @property
    def closed(self) -> bool: ...
    @property
    def forked(self) -> bool: ...
    @property
    def _lost(self) -> tuple[int, str] | None: ...
    def fileno(self) -> int: ...
    def fd(self) -> int: ...
    def get(self, meta_index: int, /) -> _core.Guard: ...
    @classmethod
    def from_fd(cls, fd: int, **options: Any) -> Self: ...
    @classmethod
    def _as_lost(cls, name: str | None, options: dict[str, Any], identity: str, number: int,
                 text: str) -> Self: ...


#: Seconds for which a reference to another client's buffer stays set aside.
_TIME = 60.0
_TRIES = 16     # to get a buffer whose owner looks at it again and again
_ENDS = ("; a pool ends with the last process that has it open, and so does what waits in messages"
         ": open it where they are received before they are sent, or make it there, keep it open "
         "and hand it to the process that sends: Process(args=(pool, ...))")

_lock = threading.Lock()
_pools: weakref.WeakSet[Pool] = weakref.WeakSet()


def _in_child() -> None:
    global _lock, _pools
    _lock = threading.Lock()        # Another thread of the parent may have had it.
    _pools = weakref.WeakSet()      # They are the parent's.


os.register_at_fork(after_in_child=_in_child)


def opened(pool: Pool) -> None:
    """A pool has been opened: messages that name it are loaded into it."""
    if pool.name is None:
        _hand_on_descriptors(type(pool))
    with _lock:
        _pools.add(pool)


def _find(wanted: Callable[[Pool], bool]) -> Pool | None:
    with _lock:
        known = list(_pools)
    for pool in known:
        if not pool.closed and not pool.forked and wanted(pool):
            return pool
    return None


# ---- pools ----

def pool(of: Pool) -> tuple[Any, ...]:
    """Get the pickled form of a pool."""
    if of.name is None and of._lost:
        return load_lost_pool, (type(of), of.options, of.identity, *of._lost)
    if of.name is None:
        raise TypeError("an anonymous pool has no name to pickle: pass it to a process, queue or "
                        "pipe of multiprocessing, or send the descriptor pool.fd() and call "
                        "BufferPool.from_fd there")
    return load_pool, (type(of), of.name, of.options)


def load_pool(cls: type[Pool], name: str, options: dict[str, Any]) -> Pool:
    """Get the pool of that name and those options, which this process opens once."""
    found = _find(lambda each: type(each) is cls and each.name == name and each.options == options)
    if found and _has_host(found):
        return found
    try:
        return cls(name, **options)
    except Error as error:
        ends = _ENDS if isinstance(error, NotFound) else ""
        return cls._as_lost(name, options, "", error.errno or errno.EIO, f"{error.strerror}{ends}")


def _has_host(pool: Pool) -> bool:
    """Is the pool's host still there? If not, there may be another host, or the pool was just
    closed."""
    look = select.poll()
    try:
        look.register(pool.fileno(), 0)
    except (HostGone, Released):
        return False
    return not look.poll(0)         # it can only say "hung up"


def _anonymous_pool(of: Pool) -> tuple[Any, ...]:
    """Get the form of a pool for multiprocessing's pickler."""
    if of.name is not None or of._lost:
        return pool(of)
    from multiprocessing import context, reduction

    fd = of.fd()
    spawning = context.get_spawning_popen()
    try:
        return _load_anonymous, (type(of), reduction.DupFd(fd), of.identity, of.options)
    finally:
        if spawning:        # The process that is being started inherits this very descriptor.
            weakref.finalize(spawning, os.close, fd)
        else:
            os.close(fd)


def _load_anonymous(cls: type[Pool], duplicate: Any, identity: str,
                    options: dict[str, Any]) -> Pool:
    found = _find(lambda each: type(each) is cls and each.identity == identity)
    fd = -1
    try:
        fd = duplicate.detach()
        if found:
            return found
        loaded = cls.from_fd(fd, **options)
        loaded.identity = identity
        return loaded
    except (EOFError, OSError) as error:
        return found or _lost_anonymous(cls, options, identity, error)
    finally:
        if fd >= 0:
            os.close(fd)


def _lost_anonymous(cls: type[Pool], options: dict[str, Any], identity: str,
                    error: EOFError | OSError) -> Pool:
    if isinstance(error, Error):
        number, text = error.errno, str(error.strerror)
    elif isinstance(error, (ConnectionError, EOFError, FileNotFoundError)):
        number = errno.ENOENT
        text = ("this anonymous pool is gone: the process that has sent it has ended before the "
                f"message was loaded, and nobody else has its descriptor ({error!r})")
    else:
        number, text = error.errno, f"the descriptor of this anonymous pool: {error}"
    return load_lost_pool(cls, options, identity, number or errno.EIO, text)


def load_lost_pool(cls: type[Pool], options: dict[str, Any], identity: str, number: int,
                   text: str) -> Pool:
    """Get an anonymous pool that was already lost when it was pickled."""
    return cls._as_lost(None, options, identity, number, text)


def _hand_on_descriptors(cls: type[Pool]) -> None:
    """Register the class with multiprocessing's pickler, because only that can hand descriptors
    on."""
    from multiprocessing import reduction

    reduction.ForkingPickler.register(cls, _anonymous_pool)


# ---- guards ----

def check(of: _core.Guard) -> None:
    """Raise if a guard cannot be pickled: NotPermitted while it is written, Released, Forked."""
    if of.gone and not of._lost:
        raise Released(errno.EBADF, "this guard is gone, and cannot be pickled any more: a "
                       "multiprocessing.Queue pickles some time after put(), so give it "
                       "guard.parcel()")
    if not of.readonly:
        raise NotPermitted(errno.EPERM, "a buffer that is being written cannot be pickled: "
                           "publish(keep=True) or set_ref_count() completes it")
    if of.pool.closed:
        raise Released(errno.EBADF, "the pool of this guard has been closed: its contents can be "
                       "read on, but messages are made before pool.close(); parcel() makes one "
                       "that may be sent after it")


def guard(of: _core.Guard, lasts: float | EllipsisType | None = ...) -> tuple[Any, ...]:
    """Get the pickled form of a guard. lasts: seconds, None: for ever; ...: in_flight.

    A lost guard is lost for the next process that loads it as well.
    """
    if of._lost:
        return load_lost_guard, of._lost
    check(of)
    where = of.pool
    sent = time.monotonic(), _offer(of, lasts)
    if where.name is None:
        return load_anonymous_guard, (where, of.token, sent)
    return load_guard, (type(where), where.name, of.token, sent)


def _offer(of: _core.Guard, lasts: float | EllipsisType | None) -> float | None:
    """Set one reference aside. Returns for how many seconds."""
    seconds: float | None
    if isinstance(lasts, EllipsisType):
        seconds = of.pool.options["in_flight"]
        try:
            of.offer(1, seconds)
        except NotPermitted:        # Another client owns the buffer: references end earlier.
            seconds = _TIME
            of.offer(1, seconds)
    else:
        seconds = lasts
        of.offer(1, seconds)
    unread.note(of.pool, of.token, seconds)
    return seconds


def load_guard(cls: type[Pool], name: str, token: int,
               sent: tuple[float, float | None]) -> _core.Guard:
    """Get a buffer by any pool of that name which this process has, or by a new one."""
    found = _find(lambda each: each.name == name)
    if found:
        try:
            return _get(found, token)
        except (HostGone, Released):
            pass        # Its host has ended, and there may be another; or it was just closed.
        except Error as error:
            return _lost(found, error, sent)
    return load_anonymous_guard(load_pool(cls, name, {"existing": True}), token, sent)


def load_anonymous_guard(pool: Pool, token: int,
                         sent: tuple[float, float | None]) -> _core.Guard:
    """Get a buffer of that pool."""
    try:
        return _get(pool, token)
    except Error as error:
        return _lost(pool, error, sent)


def load_lost_guard(number: int, text: str) -> _core.Guard:
    """Get a guard of a buffer that was already gone when the guard was pickled."""
    return _core.lost_guard(None, number, text)


def _get(pool: Pool, token: int) -> _core.Guard:
    for _ in range(_TRIES):
        try:
            return pool.get(token)
        except WouldBlock:
            pass
    return pool.get(token)


def _lost(pool: Pool, error: Error, sent: tuple[float, float | None]) -> _core.Guard:
    """Make the lost guard of a message whose buffer is gone, with a text that says why."""
    when, lasts = sent
    age = time.monotonic() - when
    if not isinstance(error, Stale):
        what = "is gone" if isinstance(error, NotFound) else "cannot be had"
        why = f"the buffer of this message {what}: {error.strerror}"
    elif lasts is not None and age >= lasts:
        why = (f"the buffer of this message is gone: it was set aside for {lasts:g} s (in_flight), "
               f"and the message is {age:.1f} s old; or the message has been loaded before")
    else:
        why = ("the buffer of this message is gone: the message has been loaded before, or what it "
               "had set aside was taken back (void_claims), or the process that owned the buffer "
               "has ended, or its pool has, and this is another one of that name")
    return _core.lost_guard(pool, error.errno or errno.EIO, why)
