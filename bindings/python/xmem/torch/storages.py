# SPDX-License-Identifier: MIT
"""Storages in buffers of a pool: making them, moving them there, and finding them again.

The address of its first byte identifies a storage. xmem._torch keeps it as long as the storage has
the buffer.
"""
from __future__ import annotations

import os
import threading
from typing import Any

import torch
from .. import _torch
from . import guards, pools, state, versions
from .modes import without_modes
from .versions import untyped

# What DLPack calls the types that all versions of torch take from it: code << 8 | bits.
TYPES: dict[torch.dtype, int] = {
    torch.int8: 0x008, torch.int16: 0x010, torch.int32: 0x020, torch.int64: 0x040,
    torch.uint8: 0x108, torch.float16: 0x210, torch.float32: 0x220, torch.float64: 0x240,
    torch.bfloat16: 0x410, torch.complex64: 0x540, torch.complex128: 0x580,
}

_lock = threading.RLock()       # held while a storage is moved
getting = threading.RLock()    # held while one is made for a token; reentrant, for signal handlers


def make(pool: pools.Pool, nbytes: int, contents: int = 0) -> Any:
    """Make a storage of so many bytes in the pool, with a copy of the bytes at an address, unless
    0.

    With 0 the contents are undefined.
    """
    capsule, token, _ = _torch.make(pool.number, nbytes, contents)
    storage = untyped(versions.from_capsule(capsule))
    pool.remember(token, storage)
    return storage


def get(pool: pools.Pool, token: int) -> Any:
    """Get the storage of a token for which a reference has been set aside."""
    with getting:
        storage = pool.known(token)
        if storage is None:
            capsule, _, _ = _torch.get(pool.number, token)
            storage = untyped(versions.from_capsule(capsule))
            pool.remember(token, storage)
            return storage
    _torch.drop(pool.number, token)
    return storage


def get_tensor(pool: pools.Pool, token: int, dtype: torch.dtype, place: tuple[int, ...],
               shape: tuple[int, ...]) -> torch.Tensor:
    """Get a tensor in the storage of a token, as get() does. `place` is offset and strides.

    A tensor that is all of its storage is made together with it.
    """
    with getting:
        storage = pool.known(token)
        if storage is None:
            capsule, whole = _torch.get_tensor(pool.number, token, TYPES.get(dtype, 0), place,
                                               shape)
            tensor = versions.from_capsule(capsule)
            storage = untyped(tensor)
            pool.remember(token, storage)
            if whole:
                return tensor
        else:
            _torch.drop(pool.number, token)
    return torch.empty(0, dtype=dtype, device="cpu").set_(storage, place[0], shape, place[1:])


def is_in_pool(storage: Any) -> bool:
    """Does the storage lie in a pool?"""
    return storage.device.type == "cpu" and _torch.find(storage.data_ptr()) is not None


def move(pool: pools.Pool, storage: Any) -> None:
    """Move a storage of the CPU into the pool, with all of its tensors, unless it is in one.

    This copies the contents once. The contents of a guard that is being written are not moved: see
    guards.py.
    """
    with _lock:
        if _torch.find(storage.data_ptr()) is not None:
            return
        guards.refuse_written(storage)
        new = make(pool, storage.nbytes(), storage.data_ptr())
        versions.exchange(storage, new)
        there = _torch.find(storage.data_ptr())
        if there is not None:
            pool.remember(there[1], storage)


def _after_fork() -> None:
    global _lock, getting
    _lock = threading.RLock()
    getting = threading.RLock()


os.register_at_fork(after_in_child=_after_fork)


def _check(tensor: object) -> None:
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"a tensor of torch is wanted, not {type(tensor)!r}")


@without_modes
def share(tensor: torch.Tensor, pool: str | None = None) -> torch.Tensor:
    """Move a tensor of the CPU into a pool, and give it back.

    The tensor is moved in place, with all other tensors of its storage: one copy, or none if it is
    in a pool already. After that, a hand-over copies nothing, and all processes that have the
    tensor see each other's writes.

    pool: the name of the pool; None: that of install(), or a new one of this process.
    Raises xmem.Error: the pool has no slot or memory left, there is no host, or the tensor is that
    of a guard that is being written (EBUSY); TypeError: it is no tensor; and torch's RuntimeError
    for tensors without a storage.
    """
    _check(tensor)
    if tensor.device.type == "cpu":
        storage = untyped(tensor)
        if storage.nbytes():
            where = state.pool() if pool is None else pools.join(pool, existing=False)
            move(where, storage)
            state.recognise()
    return tensor


@without_modes
def is_pooled(tensor: torch.Tensor) -> bool:
    """Does the tensor lie in a pool, so that a hand-over copies nothing?

    Raises TypeError: it is no tensor.
    """
    _check(tensor)
    return tensor.device.type == "cpu" and is_in_pool(untyped(tensor))
