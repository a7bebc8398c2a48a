# SPDX-License-Identifier: MIT
"""Tensors of guards, and the check that none of them is shared while it is being written."""
from __future__ import annotations

import errno
import weakref
from typing import Any

import torch

from .. import BufferGuard, _torch, errors
from ..dtypes import NAMES, item_bytes
from . import versions
from .modes import without_modes
from .versions import untyped

_CUDA = 1 << 5      # XMEM_BUFFER_CUDA

# Guards that were being written when a tensor was made of them, by the address of their contents,
# and the end of the contents: a storage may begin within, if numpy lends a part. Nothing is kept
# alive here. An entry counts while its guard is being written, because nothing else is at that
# address then.
_written: dict[int, tuple[int, weakref.ref[BufferGuard]]] = {}

# The types that all versions of torch take from DLPack. Others come as integers of their size.
_PLAIN = {"uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "bfloat16",
          "complex64", "complex128"}
# The first version of torch that has tensors of a type; all versions have the other types.
_SINCE = {"uint16": "2.3", "uint32": "2.3", "uint64": "2.3", "float8_e4m3fn": "2.1",
          "float8_e5m2": "2.1", "float8_e4m3fnuz": "2.2", "float8_e5m2fnuz": "2.2",
          "float8_e8m0fnu": "2.7", "float4_e2m1fn_x2": "2.8"}


def _dtype_of(name: str) -> torch.dtype:
    dtype = getattr(torch, name, None)
    if isinstance(dtype, torch.dtype):
        return dtype
    since = _SINCE.get(name)
    raise TypeError(f"torch {torch.__version__} has no tensors of {name}: "
                    + (f"torch {since} has them" if since else "no version of torch has them"))


def _of_cpu(guard: BufferGuard) -> torch.Tensor:
    number = guard.dtype_number
    name = NAMES.get(number, "uint8")
    dtype = _dtype_of(name)
    if name in _PLAIN:
        return versions.from_capsule(_torch.guard_capsule(guard, False))
    integers = versions.from_capsule(_torch.guard_capsule(guard, True))
    assert integers.element_size() == item_bytes(number)
    tensor = torch.empty(0, dtype=dtype, device="cpu")
    place: tuple[Any, ...] = (0, integers.size(), integers.stride())
    return tensor.set_(untyped(integers), *place)


def _remember(tensor: torch.Tensor, guard: BufferGuard) -> None:
    """Note that the tensor is that of a guard which is being written."""
    storage = untyped(tensor)
    address = storage.data_ptr()

    def forget(ref: weakref.ref[BufferGuard]) -> None:
        if _written.get(address, (0, None))[1] is ref:
            _written.pop(address, None)

    _written[address] = address + storage.nbytes(), weakref.ref(guard, forget)


def refuse_written(storage: Any) -> None:
    """Raise xmem.Error (EBUSY) if the storage is the contents of a guard that is being written.

    A storage that is shared moves to other memory, and the guard would not publish what is stored
    into it after that.
    """
    if not _written:
        return
    begin = storage.data_ptr()
    end = begin + storage.nbytes()
    for first, (last, ref) in list(_written.items()):
        if first < end and begin < last and _is_written(ref()):
            raise errors.Error(errno.EBUSY, "this tensor is the contents of a guard that is being "
                               "written: publish the guard first, or share tensor.clone()")


def _is_written(guard: BufferGuard | None) -> bool:
    """Raises xmem.Forked: in a child the guard belongs to its parent."""
    return guard is not None and not guard.gone and not guard.readonly


@without_modes
def tensor(guard: BufferGuard) -> torch.Tensor:
    """Make a tensor of the contents of a guard, without a copy, in their shape and type.

    Contents without a description are bytes: torch.uint8, one dimension. The tensor keeps the
    buffer, even after the guard is released and the pool closed.

    A guard that is being written gives the contents themselves: stores into the tensor before
    publish() are published. After publish() the tensor must not be written any more. A guard for
    reading gives memory that the tensor may write, because torch has no read-only tensors; but
    only this tensor and its views ever see these stores. A tensor of contents on a GPU is on that
    GPU, ordered after the stream that writes them; it is shared, and must not be written.

    The tensor of a guard that is being written cannot be put into a queue, or shared: that raises
    xmem.Error (EBUSY). Once the guard is published or released, it can: the tensor's contents are
    copied into the pool of install(), the tensor is moved there, and the published contents do not
    change. A child by fork has a copy of its own, of the contents at the fork.

    Raises xmem.Released: the guard is gone; BufferError: strides that torch cannot have; TypeError:
    a type that this version of torch has no tensors of, or no guard.
    """
    if not isinstance(guard, BufferGuard):
        raise TypeError(f"a BufferGuard is wanted, not {type(guard)!r}")
    if guard.flags & _CUDA:
        return torch.from_dlpack(guard)     # type: ignore[arg-type]
    writing = not guard.readonly
    made = _of_cpu(guard)
    if writing and made.numel():
        _remember(made, guard)
    return made
