# SPDX-License-Identifier: MIT
"""The pools of this process for tensors, by name. Each process joins one when it first needs it.

The first process that installs makes the name; all others learn it from the messages, or from the
parent that starts them.
"""
from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from typing import Any

from .. import _torch, errors
from .versions import UntypedStorage

_torch.set_weak(UntypedStorage._free_weak_ref, UntypedStorage._expired,
                UntypedStorage._new_with_weak_ptr)


@dataclass(frozen=True)
class Sizes:
    """The size of a pool, for the process that makes it, and the cache of each writer."""

    slots: int = 16384          # tensors that can be shared at a time; at most 65536
    clients: int = 256          # processes at a time; at most 256
    nbytes: int = 1 << 62       # bytes that this process makes, in all: as much memory as there is
    cache_bytes: int = 256 << 20    # bytes of unused memory that are kept for the next tensors,
    cache_time: float = 10.0    # for so many seconds


# Storages of torch's own GPU memory that this process has lent to others, by the address of their
# first byte: (name of the pool, token, bytes), as _torch.find() tells it of memory in a pool.
lent: dict[int, tuple[str, int, int]] = {}
os.register_at_fork(after_in_child=lent.clear)      # a child has no memory of GPUs


class Pool:
    """A pool that this process has joined, and the storages of it that are alive here."""

    __slots__ = ("name", "number", "_known", "_limit")

    def __init__(self, name: str, number: int) -> None:
        self.name = name
        self.number = number
        self._known: dict[int, _torch.WeakRef] = {}
        self._limit = 128

    def tell(self) -> None:
        """Share the known storages with the extension, for its fast path of messages."""
        _torch.set_known(self.number, self._known, self.remember)

    def known(self, token: int) -> Any:
        """Get the storage of that token, if it is alive in this process; otherwise None.

        A storage that has been resized, or that torch has moved, is alive but does not count.
        """
        ref = self._known.get(token)
        storage = None if ref is None else ref.storage()
        if storage is None:
            return None
        address = storage.data_ptr()
        found = lent.get(address) or _torch.find(address)
        return storage if found and found[0] == self.name and found[1] == token else None

    def remember_new(self, token: int, storage: Any) -> None:
        """Remember the storage of a token, unless one is known."""
        ref = self._known.get(token)
        if ref is None or ref.expired():
            self.remember(token, storage)

    def remember(self, token: int, storage: Any) -> None:
        """Remember that this storage lies in the buffer of that token."""
        self._known[token] = _torch.WeakRef(storage)
        if len(self._known) > self._limit:
            for each, ref in list(self._known.items()):
                if ref.expired():
                    self._known.pop(each, None)
            self._limit = max(128, 2 * len(self._known))


_pools: dict[str, Pool] = {}


def joined() -> list[Pool]:
    """Get the pools that this process has joined, except those whose hosts are known to have
    ended."""
    return list(_pools.values())


def is_gone(name: str | None) -> bool:
    """Has this process joined that pool, and has its host ended?"""
    pool = None if name is None else _pools.get(name)
    return pool is not None and _torch.gone(pool.number)


def forget(pool: Pool) -> None:
    """Forget a pool whose host has ended: its name may belong to another pool from now on."""
    _torch.gone(pool.number)        # so that the extension does not find it by the name, either
    if _pools.get(pool.name) is pool:
        _pools.pop(pool.name, None)


def new_name() -> str:
    """Make a name that no other program has."""
    return f"torch-{os.getpid()}-{secrets.token_hex(4)}"


def join(name: str, sizes: Sizes = Sizes(), existing: bool = True) -> Pool:
    """Get the pool of that name, joined now if need be. `existing`: it must exist.

    A pool whose host has ended is only returned with `existing`, for the tensors that lie in it.
    """
    pool = _pools.get(name)
    if pool is not None:
        if existing or not _torch.gone(pool.number):
            return pool
        forget(pool)
    try:
        number = _torch.join(name, existing, 0 if existing else sizes.slots,
                             0 if existing else sizes.clients, sizes.nbytes, sizes.cache_bytes,
                             int(sizes.cache_time * 1e9))
    except errors.NotFound as error:
        error.add_note(f"All processes that had tensors in the pool '{name}' have ended, and with "
                       "the last of them the tensors that were still in flight.")
        raise
    pool = _pools.setdefault(name, Pool(name, number))
    pool.tell()
    return pool
