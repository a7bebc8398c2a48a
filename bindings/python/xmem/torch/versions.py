# SPDX-License-Identifier: MIT
"""What differs between versions of torch, from 1.13 on, and is needed here."""
from __future__ import annotations

import ctypes
import gc
from typing import Any, Callable

import torch

UntypedStorage: Any = torch.UntypedStorage

#: Make a tensor of a DLPack capsule; the public function calls it, too.
from_capsule: Callable[[Any], torch.Tensor] = torch._C._from_dlpack

if hasattr(torch.Tensor, "untyped_storage"):
    untyped: Callable[[torch.Tensor], Any] = torch.Tensor.untyped_storage
else:
    untyped = torch.Tensor._storage     # type: ignore[attr-defined]

#: Are the dimensions of a tensor named? Later versions have no such tensors.
has_names: Callable[[torch.Tensor], bool] = getattr(torch.Tensor, "has_names", lambda tensor: False)

#: Can the memory below a storage be exchanged? Then all of its tensors move at once.
CAN_SWAP = hasattr(UntypedStorage, "_swap_data_ptr_")


def users(storage: Any) -> int:
    """How many have this storage: tensors, Python objects such as the argument, and others."""
    if hasattr(torch._C, "_storage_Use_Count"):
        return torch._C._storage_Use_Count(storage._cdata)      # type: ignore[attr-defined]
    # Before 2.1 the count is what follows the pointer to the virtual functions.
    return ctypes.c_size_t.from_address(storage._cdata + ctypes.sizeof(ctypes.c_void_p)).value


def _tensors_of(storage: Any) -> list[torch.Tensor]:
    """All tensors of a storage that Python has objects for."""
    found = []
    for thing in gc.get_objects():
        if issubclass(type(thing), torch.Tensor):
            try:
                if untyped(thing)._cdata == storage._cdata:
                    found.append(thing)
            except (RuntimeError, NotImplementedError):
                pass            # sparse ones and others without a storage
    return found


def _point(tensor: torch.Tensor, storage: Any) -> None:
    """Give a tensor the same place in another storage. To autograd it is the same contents."""
    place = (tensor.storage_offset(), tensor.size(), tensor.stride())
    if tensor.is_quantized:             # it keeps its scale, and autograd has none of them
        tensor.set_(storage, *place)    # type: ignore[call-overload]
        return
    tensor.data = torch.empty(0, dtype=tensor.dtype).set_(storage, *place)  # type: ignore


def replace(storage: Any, new: Any, tensor: torch.Tensor | None) -> None:
    """Let all that have `storage` have the memory of `new` instead; `tensor` is one of them.

    Where torch cannot exchange the memory, its tensors are pointed to the new storage one by one.
    Those that only C++ has, such as what a graph of autograd has saved, keep the old memory.
    """
    if CAN_SWAP:
        storage._swap_data_ptr_(new)
        return
    known = 1 if tensor is None else 2          # the argument itself, and the tensor
    if tensor is None or users(storage) > known:
        tensors = _tensors_of(storage)
    else:
        tensors = [tensor]
    for each in tensors:
        _point(each, new)
    storage._set_cdata(new._cdata)
