# SPDX-License-Identifier: MIT
"""Tensors of memory at an address, as torch::from_blob() makes them in C++."""
from __future__ import annotations

import ctypes
import math
from typing import Any

import torch

from ..arguments import shape_of
from ..typing import ShapeLike
from .modes import without_modes


class _Bytes:
    """Bytes of a GPU's memory, as torch takes them without a copy."""

    def __init__(self, ptr: int, nbytes: int) -> None:
        self.__cuda_array_interface__ = {"data": (ptr, False), "shape": (nbytes,),
                                         "typestr": "|u1", "strides": None, "version": 3}


@without_modes
def from_blob(ptr: int, shape: ShapeLike, dtype: torch.dtype = torch.float32,
              device: Any = "cpu") -> torch.Tensor:
    """Make a dense tensor of the memory at an address, without a copy.

    ptr: guard.cpu_ptr or cuda_ptr, or any other address where the tensor's bytes are. device: the
    device that has this memory. As in C++, the tensor does not keep the guard, which must live for
    as long as the tensor is used. A store into contents that are for reading ends the process
    (CPU), or changes the contents for other readers (GPU). tensor(guard) has none of these
    hazards.

    Raises ValueError: ptr is 0, or not an address of that GPU; TypeError: shape is not a shape.
    """
    sizes, place = shape_of(shape), torch.device(device)
    nbytes = math.prod(sizes) * torch.empty(0, dtype=dtype).element_size()
    if ptr <= 0:
        raise ValueError(f"an address is more than 0, not {ptr}")
    if not nbytes:
        return torch.empty(sizes, dtype=dtype, device=place)
    if place.type == "cpu":
        lent = (ctypes.c_ubyte * nbytes).from_address(ptr)
        return torch.frombuffer(lent, dtype=dtype).view(sizes)
    if place.type != "cuda":
        raise ValueError(f"memory of xmem is that of the CPU or of a GPU, not of {place.type!r}")
    made = torch.as_tensor(_Bytes(ptr, nbytes))     # on the GPU that has the address
    if place.index is not None and made.device.index not in (None, place.index):
        raise ValueError(f"the address {ptr:#x} is on {made.device}, not on {place}")
    return made.view(dtype).view(sizes)
