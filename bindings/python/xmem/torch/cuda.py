# SPDX-License-Identifier: MIT
"""Tensors of GPUs in messages: the memory itself, opened by the receiver once, and not copied.

Memory of xmem.torch.cuda_allocator() is in a pool. Other memory of torch is attached to the pool
for each message, and kept until the last process has dropped it; it ends with its process.

The part below the calls of torch is tested on a driver that stands in for a GPU's, and was tested
once on an H100 (docs/cuda.md).
"""
from __future__ import annotations

from typing import Any, Callable

import torch
from torch.multiprocessing import reductions as stock

from .. import _torch, errors
from . import pools, state, versions
from .modes import without_modes
from .versions import untyped

_REQUIRES_GRAD, _PARAMETER = 1, 2
_KEPT = 4       # its sender has uninstalled, but the tensor was already in a pool


@without_modes
def rebuild_tensor(name: str, token: int, dtype: torch.dtype, place: tuple[int, ...],
                   shape: tuple[int, ...], flags: int) -> torch.Tensor:
    """In the receiver: make a tensor on its GPU, whose contents are complete."""
    torch.cuda.init()
    pool = pools.join(name)
    storage = pool.known(token)
    if storage is None:
        capsule, _, _ = _torch.cuda_get(pool.number, token)
        storage = untyped(versions.from_capsule(capsule))
        pool.remember(token, storage)
    else:
        _torch.drop(pool.number, token)
    state.adopt(name, not flags & _KEPT)
    tensor = torch.empty(0, dtype=dtype, device=storage.device)
    tensor.set_(storage, place[0], shape, place[1:])    # type: ignore[call-overload]
    if flags & _PARAMETER:
        return torch.nn.parameter.Parameter(tensor, requires_grad=bool(flags & _REQUIRES_GRAD))
    tensor.requires_grad = bool(flags & _REQUIRES_GRAD)
    return tensor


def _offer(tensor: torch.Tensor) -> tuple[str, int] | None:
    """Set one reference aside for the receiver, of memory that this process's stream has filled.

    None: the tensor is in no pool, and none is installed.
    """
    storage = untyped(tensor)
    stream = torch.cuda.current_stream(tensor.device)
    if _torch.find(storage.data_ptr()) is not None:
        stream.synchronize()    # the buffer was published when it was allocated
        found = _torch.offer(storage.data_ptr())
        if found is None:
            raise RuntimeError("another thread has resized this tensor while it is sent")
        name, token, _ = found
        pools.join(name).remember_new(token, storage)
        return name, token
    if state.installed() is None:
        return None
    pool = state.pool()
    token = _torch.cuda_share(pool.number, storage.data_ptr(), storage.nbytes(),
                              stream.cuda_stream, storage)
    return pool.name, token


def reduce_tensor(tensor: torch.Tensor) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Pickle a strided tensor of a GPU, for ForkingPickler."""
    if type(tensor) not in (torch.Tensor, torch.nn.parameter.Parameter) or \
            not untyped(tensor).nbytes() or (tensor.requires_grad and not tensor.is_leaf):
        return stock.reduce_tensor(tensor)
    try:
        where = _offer(tensor)
    except errors.Error as error:
        if not state.falls_back(error):
            raise
        return stock.reduce_tensor(tensor)
    if where is None:
        return stock.reduce_tensor(tensor)
    flags = (_REQUIRES_GRAD if tensor.requires_grad else 0) | (
        _PARAMETER if isinstance(tensor, torch.nn.parameter.Parameter) else 0) | (
        0 if state.installed() else _KEPT)
    place = (tensor.storage_offset(), *tensor.stride())
    return rebuild_tensor, (*where, tensor.dtype, place, tuple(tensor.size()), flags)
