# SPDX-License-Identifier: MIT
"""Pickling of pools and guards, for multiprocessing's queues and pipes.

A pool goes by its name and options. A process that loads it has one pool of them, however many
messages there are: the one that it has opened itself, if there is one. An anonymous pool goes by a
descriptor, which only multiprocessing can hand on.

A guard goes as its pool and its token. Pickling sets one reference aside, for ever if this process
owns the buffer and for 60 seconds otherwise; loading takes it. So the message can be loaded once,
and more often as long as somebody holds the buffer. A queue of multiprocessing pickles in a thread
of its own, some time after put(): what is put there is guard.parcel(), which sets the reference
aside at once, or a guard that is dropped and not released.

If a message is never loaded, its reference goes when its time has passed, with
pool.void_claims(token), or 60 seconds after the process that owns the buffer has ended; at once if
nobody else is in the pool.
"""
from __future__ import annotations

import errno
import os
import select
import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ._constants import BufferFlags
from .errors import HostGone, NotPermitted, Released, Stale

if TYPE_CHECKING:
    from .guard import BufferGuard
    from .pool import BufferPool

#: Seconds that a reference which another client's buffer is to have stays set aside.
_TIME = 60.0
_SHARED = int(BufferFlags.SHARED)

_lock = threading.Lock()
_pools: weakref.WeakSet[BufferPool] = weakref.WeakSet()


def _in_child() -> None:
    global _lock, _pools
    _lock = threading.Lock()        # Another thread of the parent may have had it.
    _pools = weakref.WeakSet()      # They are the parent's.


os.register_at_fork(after_in_child=_in_child)


def opened(pool: BufferPool) -> None:
    """A pool has been opened: messages that name it are loaded with it."""
    if pool.name is None:
        _hand_on_descriptors(type(pool))
    with _lock:
        _pools.add(pool)


def _find(wanted: Callable[[BufferPool], bool]) -> BufferPool | None:
    with _lock:
        known = list(_pools)
    for pool in known:
        if not pool.closed and not pool.forked and wanted(pool):
            return pool
    return None


# ---- pools ----

def pool(of: BufferPool) -> tuple[Any, ...]:
    """What pickle makes of a pool."""
    if of.name is None:
        raise TypeError("an anonymous pool has no name to pickle: pass it to a process, queue or "
                        "pipe of multiprocessing, or send the descriptor pool.fd() and call "
                        "BufferPool.from_fd there")
    return load_pool, (type(of), of.name, of.options)


def load_pool(cls: type[BufferPool], name: str, options: dict[str, Any]) -> BufferPool:
    """Get the pool of that name and those options, which this process opens once."""
    found = _find(lambda each: type(each) is cls and each.name == name and each.options == options)
    return found if found and _has_host(found) else cls(name, **options)


def _has_host(pool: BufferPool) -> bool:
    """Is its host still there? If not there may be another; or the pool was closed just now."""
    look = select.poll()
    try:
        look.register(pool.fileno(), 0)
    except (HostGone, Released):
        return False
    return not look.poll(0)         # it says nothing but "hung up"


def _anonymous_pool(of: BufferPool) -> tuple[Any, ...]:
    """What multiprocessing's pickler makes of a pool."""
    if of.name is not None:
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


def _load_anonymous(cls: type[BufferPool], duplicate: Any, identity: str,
                    options: dict[str, Any]) -> BufferPool:
    fd: int = duplicate.detach()
    try:
        found = _find(lambda each: type(each) is cls and each.identity == identity)
        if found:
            return found
        loaded = cls.from_fd(fd, **options)
        loaded.identity = identity
        return loaded
    finally:
        os.close(fd)


def _hand_on_descriptors(cls: type[BufferPool]) -> None:
    """Let multiprocessing's pickler know the class: only it can hand descriptors on."""
    from multiprocessing import reduction

    reduction.ForkingPickler.register(cls, _anonymous_pool)


# ---- guards ----

def guard(of: BufferGuard) -> tuple[Any, ...]:
    """What pickle makes of a guard. Raises NotPermitted while it is written, Released."""
    if of.gone:
        raise Released(errno.EBADF, "this guard is gone, and cannot be pickled any more: a "
                       "multiprocessing.Queue pickles some time after put(), so give it "
                       "guard.parcel()")
    if not of.readonly:
        raise NotPermitted(errno.EPERM, "a buffer that is being written cannot be pickled: "
                           "publish(keep=True) or set_ref_count() completes it")
    offer(of)
    where = of.pool
    shared = bool(of.flags & _SHARED)
    if where.name is None:
        return load_anonymous_guard, (where, of.token)
    options = where.options if shared else {"foreign": where.options["foreign"]}
    return load_guard, (type(where), where.name, options, of.token)


def offer(of: BufferGuard) -> None:
    """Set one reference aside for as long as this client may."""
    try:
        of.offer(1, lasts=None)
    except NotPermitted:
        of.offer(1, lasts=_TIME)


def load_guard(cls: type[BufferPool], name: str, options: dict[str, Any],
               token: int) -> BufferGuard:
    """Get a buffer by any pool of that name which this process has; a reader's, if it has none.

    What all writers can write is for writers only, and so it is loaded by one.
    """
    writer = options.get("writer", False)

    found = _find(lambda each: each.name == name and (each.options["writer"] or not writer))
    if found:
        try:
            return _load(found, token)
        except (HostGone, Released):
            pass        # Its host has gone, and there may be another; or it was closed just now.
    return _load(load_pool(cls, name, {**options, "existing": True}), token)


def load_anonymous_guard(pool: BufferPool, token: int) -> BufferGuard:
    """Get a buffer of an anonymous pool."""
    return _load(pool, token)


def _load(pool: BufferPool, token: int) -> BufferGuard:
    try:
        return pool.get(token)
    except Stale:
        raise Stale(errno.ESTALE, "the buffer that was pickled is gone: the message has been "
                    "loaded before, its time has passed, or its owner has ended") from None
