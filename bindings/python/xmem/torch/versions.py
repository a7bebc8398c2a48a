# SPDX-License-Identifier: MIT
"""The differences between versions of torch, from 1.13 on, that matter here."""
from __future__ import annotations

import ctypes
import sys
from typing import Any, Callable

import torch

from .. import _torch
from .modes import without_modes

UntypedStorage: Any = torch.UntypedStorage

#: Make a tensor of a DLPack capsule; the public function also calls this.
from_capsule: Callable[[Any], torch.Tensor] = torch._C._from_dlpack

if hasattr(torch.Tensor, "untyped_storage"):
    untyped: Callable[[torch.Tensor], Any] = torch.Tensor.untyped_storage
else:
    untyped = torch.Tensor._storage     # type: ignore[attr-defined]

#: Are the dimensions of a tensor named? None: this version has no such tensors.
names_of: Callable[[torch.Tensor], bool] | None = getattr(torch.Tensor, "has_names", None)
has_names: Callable[[torch.Tensor], bool] = names_of or (lambda tensor: False)

#: Has torch a function that exchanges the memory of two storages? Otherwise _torch.swap does.
CAN_SWAP = hasattr(UntypedStorage, "_swap_data_ptr_")

# ---- the layout of a storage, where torch has no such function ----

# The words of a storage, as in src/torch_swap.c.
_USERS, _ADDRESS, _DEVICE, _NBYTES, _FLAGS, _ALLOCATOR, _WORDS = 1, 3, 6, 7, 8, 9, 10
_CPU = 0xff00               # the type of the device is 0, and its index -1
_RESIZABLE = 0x000100       # of the three flags; the others are for symbolic sizes and for CUDA
_unknown: str | None = "not looked at"      # how the layout differs from this


def _words(storage: Any) -> list[int]:
    return list((ctypes.c_size_t * _WORDS).from_address(storage._cdata))


def _describes(words: list[int], storage: Any, resizable: bool) -> bool:
    """Do these words agree with torch's own values of the storage?"""
    return (words[_ADDRESS] == storage.data_ptr() and words[_NBYTES] == storage.nbytes()
            and words[_DEVICE] & 0xffff == _CPU
            and words[_FLAGS] & 0xffffff == (_RESIZABLE if resizable else 0)
            and bool(words[_ALLOCATOR]) == resizable)


@without_modes
def _look() -> str | None:
    """Try an exchange with storages of our own. Returns what is wrong; None: nothing."""
    lent = bytearray(b"\1" * 24)
    unused = sys.getrefcount(lent)
    tensor = torch.full((5,), 2, dtype=torch.uint8, device="cpu")
    foreign = torch.frombuffer(lent, dtype=torch.uint8)
    storage, other = untyped(tensor), untyped(foreign)
    words, others = _words(storage), _words(other)
    if not _describes(words, storage, True) or not _describes(others, other, False):
        return "the words of a storage are not what torch says of it"
    view = tensor[1:]
    if _words(storage)[_USERS] != words[_USERS] + 1 or sys.getrefcount(lent) != unused + 1:
        return "the users of a storage are counted elsewhere"
    _torch.swap(storage._cdata, other._cdata)
    if (storage.data_ptr(), other.data_ptr()) != (others[_ADDRESS], words[_ADDRESS]) or \
            not _describes(_words(storage), storage, False) or \
            not _describes(_words(other), other, True) or \
            (storage.nbytes(), other.nbytes()) != (24, 5):
        return "an exchange gives other storages"
    if view.tolist() != [1] * 4 or foreign[:5].tolist() != [2] * 5:
        return "an exchange does not move the tensors"
    del foreign, other
    if sys.getrefcount(lent) != unused + 1:
        return "memory is freed with a storage that does not have it any more"
    del tensor, view, storage
    return None if sys.getrefcount(lent) == unused else "memory is not freed with its storage"


def check_exchange() -> None:
    """Raise RuntimeError if the memory of storages cannot be exchanged in this torch."""
    global _unknown
    if _unknown is not None:
        _unknown = None if CAN_SWAP else _look()
    if _unknown is not None:
        raise RuntimeError(f"tensors of torch {torch.__version__} cannot be moved into a pool: it "
                           "has no UntypedStorage._swap_data_ptr_, and its storages are not those "
                           f"of torch 1.13: {_unknown}")


def exchange(storage: Any, other: Any) -> None:
    """Exchange the memory of two storages, so that all tensors of each move at once."""
    if CAN_SWAP:
        storage._swap_data_ptr_(other)
        return
    check_exchange()
    _torch.swap(storage._cdata, other._cdata)
