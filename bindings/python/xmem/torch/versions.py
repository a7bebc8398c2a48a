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

#: The releases that work, in words.
RELEASES = "1.13 and all from 2.0 to 2.15"

#: Has torch a function that exchanges the memory of two storages? Otherwise _torch.swap does.
CAN_SWAP = hasattr(UntypedStorage, "_swap_data_ptr_")

# ---- the layout of a storage, where torch has no such function ----

# The words of a storage, as in src/torch_swap.c: its header, and behind that what describes its
# memory. The count of users is the low half of a word where the header has two words.
_HEADERS, _USERS = (2, 3), 1
_ADDRESS, _DEVICE, _NBYTES, _FLAGS, _ALLOCATOR, _WORDS = 0, 3, 4, 5, 6, 7
_CPU = 0xff00               # the type of the device is 0, and its index -1
_RESIZABLE = 0x000100       # of the three flags; the others are for symbolic sizes and for CUDA
_header = 0                 # words of the header in this torch; 0: unknown


def _words(at: int, count: int) -> list[int]:
    return list((ctypes.c_size_t * count).from_address(at))


def _users(storage: Any) -> int:
    return _words(storage._cdata, _USERS + 1)[_USERS]


def _memory(storage: Any) -> int:
    """The address of the words that describe the memory of a storage."""
    at: int = storage._cdata
    return at + ctypes.sizeof(ctypes.c_size_t) * _header


def _describing(storage: Any) -> list[int]:
    return _words(_memory(storage), _WORDS)


def _describes(words: list[int], storage: Any, resizable: bool) -> bool:
    """Do these words agree with torch's own values of the storage?"""
    return (words[_ADDRESS] == storage.data_ptr() and words[_NBYTES] == storage.nbytes()
            and words[_DEVICE] & 0xffff == _CPU
            and words[_FLAGS] & 0xffffff == (_RESIZABLE if resizable else 0)
            and bool(words[_ALLOCATOR]) == resizable)


@without_modes
def _look() -> str | None:
    """Try an exchange with storages of our own. Returns what is wrong; None: nothing."""
    global _header
    lent = bytearray(b"\1" * 24)
    unused = sys.getrefcount(lent)
    tensor = torch.full((5,), 2, dtype=torch.uint8, device="cpu")
    foreign = torch.frombuffer(lent, dtype=torch.uint8)
    storage, other = untyped(tensor), untyped(foreign)
    first = _words(storage._cdata, _HEADERS[-1] + 1)
    _header = next((size for size in _HEADERS if first[size] == storage.data_ptr()), 0)
    if not _header:
        return "the address of a storage's memory is not where it is in other releases"
    words, others, users = _describing(storage), _describing(other), _users(storage)
    if not _describes(words, storage, True) or not _describes(others, other, False):
        return "the words of a storage are not what torch says of it"
    view = tensor[1:]
    if _users(storage) != users + 1 or sys.getrefcount(lent) != unused + 1:
        return "the users of a storage are counted elsewhere"
    _torch.swap(_memory(storage), _memory(other))
    if (storage.data_ptr(), other.data_ptr()) != (others[_ADDRESS], words[_ADDRESS]) or \
            not _describes(_describing(storage), storage, False) or \
            not _describes(_describing(other), other, True) or \
            (storage.nbytes(), other.nbytes()) != (24, 5):
        return "an exchange gives other storages"
    if view.tolist() != [1] * 4 or foreign[:5].tolist() != [2] * 5:
        return "an exchange does not move the tensors"
    del foreign, other
    if sys.getrefcount(lent) != unused + 1:
        return "memory is freed with a storage that does not have it any more"
    del tensor, view, storage
    return None if sys.getrefcount(lent) == unused else "memory is not freed with its storage"


def check() -> None:
    """Raise ImportError if the memory of storages cannot be exchanged in this torch."""
    why = None if CAN_SWAP else _look()
    if why:
        raise ImportError(f"install another release of torch: {RELEASES} work. The memory of "
                          f"storages of torch {torch.__version__} cannot be exchanged, as it has "
                          f"no UntypedStorage._swap_data_ptr_, and {why}", name="torch")


def exchange(storage: Any, other: Any) -> None:
    """Exchange the memory of two storages, so that all tensors of each move at once."""
    if CAN_SWAP:
        storage._swap_data_ptr_(other)
    else:
        _torch.swap(_memory(storage), _memory(other))


check()
