# SPDX-License-Identifier: MIT
"""install() and uninstall(): torch hands tensors over through a pool, or does not.

Installing and recognising are two things. A process that has installed moves the tensors that it
shares into its pool. Every process that has tensors in a pool recognises them, also after
uninstall(): such a tensor goes into a message by its token, and is not moved away from the other
processes that have it.

A process that was started by one that has installed has also installed: a child by fork inherits
that, and a child by spawn or forkserver is told (see ../_torch_child.py). A process that receives
a tensor in a pool installs that pool, unless it has called uninstall().
"""
from __future__ import annotations

import numbers
import os
import threading
import warnings
from multiprocessing.process import AuthenticationString  # type: ignore[attr-defined]
from multiprocessing.reduction import ForkingPickler
from typing import Any

import torch

from .. import _torch, _torch_child, errors
from . import cuda as cuda_tensors
from . import guards, loader, pools, reductions, state, storages
from .modes import without_modes
from .state import falls_back, is_idle, is_shared_by_torch, pool
from .state import stock as _stock
from .versions import UntypedStorage

_LONGEST = 1e9                  # seconds; the library can count more


# ---- methods of torch ----


@without_modes
def _is_shared(storage: Any) -> bool:
    return is_shared_by_torch(storage) or (
        storage.device.type == "cpu" and _torch.find(storage.data_ptr()) is not None)


def _move(storage: Any) -> bool:
    """Move a storage into the pool. False: that is not possible, and torch must share it."""
    guards.refuse_written(storage)
    if state.installed() is None:
        return False
    try:
        storages.move(pool(), storage)
    except errors.Error as error:
        if not falls_back(error):
            raise
        return False
    return True


@without_modes
def _share_memory_(storage: Any, *args: Any, **kwargs: Any) -> Any:
    if not is_idle() and storage.device.type == "cpu" and storage.nbytes():
        if _is_shared(storage) or _move(storage):
            return storage
    return _stock["share_memory_"](storage, *args, **kwargs)


@without_modes
def _new_shared(cls: Any, size: int, *, device: Any = "cpu") -> Any:
    """Make the storage for a batch of DataLoader's workers."""
    if state.installed() is not None and size and torch.device(device).type == "cpu":
        try:
            return storages.make(pool(), size)
        except errors.Error as error:
            if not falls_back(error):
                raise
    return _stock["_new_shared"](size, device=device)


def _put_ours() -> None:
    _stock["is_shared"] = UntypedStorage.is_shared
    _stock["share_memory_"] = UntypedStorage.share_memory_
    _stock["_new_shared"] = UntypedStorage._new_shared
    UntypedStorage.is_shared = _is_shared
    UntypedStorage.share_memory_ = _share_memory_
    UntypedStorage._new_shared = classmethod(_new_shared)
    loader.patch()
    cuda_tensors.patch()
    reductions.register(ForkingPickler.register)


def _put_stock() -> None:
    reductions.register_stock(ForkingPickler.register)
    cuda_tensors.unpatch()
    loader.unpatch()
    for name in ("is_shared", "share_memory_", "_new_shared"):
        delattr(UntypedStorage, name)       # the inherited method is visible again
    if _stock["is_shared"] is not UntypedStorage.is_shared:
        UntypedStorage.is_shared = _stock["is_shared"]
    if _stock["share_memory_"] is not getattr(UntypedStorage, "share_memory_", None):
        UntypedStorage.share_memory_ = _stock["share_memory_"]


def _key_goes_along(does: bool) -> None:
    if does:
        ForkingPickler.register(AuthenticationString, _torch_child.reduce_key)
    else:
        ForkingPickler._extra_reducers.pop(AuthenticationString, None)  # type: ignore[attr-defined]


state.set_changes(_put_ours, _put_stock, _key_goes_along)


# ---- the calls ----


def install(pool_name: str | None = None, *, slots: int = 16384, clients: int = 256,
            nbytes: int | None = None, cache_bytes: int = 256 << 20, cache_time: float = 10.0,
            in_flight: float | None = None, fallback: bool = False, cuda: bool = False) -> None:
    """Let torch.multiprocessing hand tensors over through a pool, from now on.

    Queues, pipes, arguments of processes and the workers of DataLoader then pass the name of the
    pool and a token. share_memory_() and the batches of DataLoader's workers also use the pool.
    Call it once, in the first process, before other processes are started: those that
    torch.multiprocessing or multiprocessing starts have it as well. Tensors that torch has already
    shared stay in torch's own shared memory, because other processes may have them.

    pool_name: None: a new pool of this program. Programs that are not started by each other share a
        pool by giving its name.
    slots, clients: how many tensors and processes there can be at a time, at most 65536 and 256,
        if this process makes the pool. Each process takes slots by 64.
    nbytes: most bytes of shared tensors that each process makes; None: as much memory as there is.
    cache_bytes, cache_time: each process keeps so much unused memory, for so many seconds, for its
        next tensors. It gives more back when it makes a tensor in the pool and finds no memory of
        that size ready. A process that makes no more tensors keeps its memory until it ends.
    in_flight: seconds after which an unread message loses its tensor, unless a process has the
        tensor; None: never, as long as the tensor's maker lives. If the maker has ended, or is not
        the sender, the tensor of an unread message stays for at most 60 s, or as long as a process
        has it.
    fallback: when the pool is full, or there is no host, torch shares tensors in its own way, and
        a RuntimeWarning says so once. Otherwise such a tensor raises an error that names what is
        missing.
    cuda: tensors of GPUs go through the pool as well, without a copy. Otherwise torch sends them in
        its own way, except those of cuda_allocator().
    Raises xmem.Error: the pool cannot be made; ValueError: another pool is installed, or a number
        is out of range; TypeError: an argument is not a number, or not a whole number.
    """
    if pool_name is not None and not isinstance(pool_name, str):
        raise TypeError(f"pool_name is a name, or None, and not {pool_name!r}")
    for what, chosen in (("fallback", fallback), ("cuda", cuda)):
        if not isinstance(chosen, bool):
            raise TypeError(f"{what} is True or False, and not {chosen!r}")
    for what, number, kind in (
            ("slots", slots, numbers.Integral), ("clients", clients, numbers.Integral),
            ("nbytes", nbytes, numbers.Integral), ("cache_bytes", cache_bytes, numbers.Integral),
            ("cache_time", cache_time, numbers.Real), ("in_flight", in_flight, numbers.Real)):
        may_be_none = what in ("nbytes", "in_flight")
        if isinstance(number, bool) or not (isinstance(number, kind)
                                            or number is None and may_be_none):
            raise TypeError(f"{what} is a {'whole ' if kind is numbers.Integral else ''}number"
                            f"{' or None' if may_be_none else ''}, and not {number!r}")
    if pool_name == "":
        raise ValueError("the name of a pool is not empty; None makes a new one")
    for what, number, least, most in (
            ("slots", slots, 1, 65536), ("clients", clients, 1, 256),
            ("nbytes", nbytes, 1, 1 << 62), ("cache_bytes", cache_bytes, 0, 1 << 62),
            ("cache_time", cache_time, 0, _LONGEST), ("in_flight", in_flight, 0, _LONGEST)):
        if number is not None and not least <= number <= most:     # excludes nan as well
            raise ValueError(f"{what} is {number}: it is to be from {least} to {most:g}")
    if pool_name is not None and state.installed() not in (None, pool_name):
        raise ValueError(f"the pool '{state.installed()}' is installed: uninstall() it first")
    name = pool_name or state.live_name() or pools.new_name()
    sizes = pools.Sizes(slots, clients, 1 << 62 if nbytes is None else nbytes, cache_bytes,
                        cache_time)
    in_flight_ns = -1 if in_flight is None else max(1, int(in_flight * 1e9))
    state.settle(name, sizes, fallback, cuda)
    _torch.set_in_flight(in_flight_ns)
    state.install(name)


def uninstall() -> None:
    """Let torch.multiprocessing hand new tensors over in torch's own way again.

    Tensors that lie in a pool stay there, and are still sent by their token: the other processes
    that have them see what is written. is_shared() stays true of them. Messages in flight can be
    received. When the last such tensor of this process is gone, everything is torch's own again.
    Children that have been started keep their installation. Children that are started later, and
    other receivers of messages of this process, do not install.
    """
    state.uninstall()


# ---- fork ----


# Forks of several threads take turns, because what is prepared for one fork is for its child.
# Functions of other libraries run between these and the fork itself, and may wait without the GIL.
_forking = threading.RLock()
_forker: int | None = None      # the thread that has it


def _before_fork() -> None:
    global _forker
    _forking.acquire()
    _forker = threading.get_ident()
    if _torch.holds():
        _torch.fork_offer()


def _after_fork_in_parent() -> None:
    """Also after a fork that has failed."""
    global _forker
    if _forker == threading.get_ident():    # a signal's handler may have ended the wait for it
        _forker = None
        _forking.release()


def _after_fork() -> None:
    global _forking, _forker
    _forking, _forker = threading.RLock(), None
    if not _torch.holds():
        return
    lost, copied = _torch.fork_restore()
    if copied:
        warnings.warn(f"{copied} shared tensors of the parent are copies of this child's own, as "
                      "it could not join their pool: nobody else sees what is written",
                      RuntimeWarning, stacklevel=2)
    if lost:
        warnings.warn(f"{lost} shared tensors of the parent are lost in this child, which may not "
                      "use them: it could not join their pool, or get them in time",
                      RuntimeWarning, stacklevel=2)


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent,
                    after_in_child=_after_fork)
