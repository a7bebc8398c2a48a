# SPDX-License-Identifier: MIT
"""Allocators that put ordinary tensors into a pool, so that a hand-over copies nothing at all.

The allocator of the CPU is a C++ file of about a hundred lines, which is compiled at its first
use (compiled.py), because torch has no other way.
"""
from __future__ import annotations

import ctypes
import threading
from typing import Any

import torch

from .. import _core, _torch
from . import compiled, pools, state

_lock = threading.Lock()
_library: Any = None
_in_use: list["cpu_allocator"] = []


def _load(compiler: str) -> Any:
    global _library
    with _lock:
        if _library is None:
            library = compiled.load("allocator.cpp", "the allocator of the CPU", compiler)
            allocate, free = _torch.allocator()
            library.xmem_torch_cpu_begin(ctypes.c_void_p(allocate), ctypes.c_void_p(free))
            _library = library
    return _library


def _apply() -> None:
    """Use the last allocator that is in use."""
    using = _in_use[-1] if _in_use else None
    if using is None:
        _library.xmem_torch_cpu_from(ctypes.c_size_t(-1))
    else:
        _torch.allocate_from(using.pool.number, using.most)
        _library.xmem_torch_cpu_from(ctypes.c_size_t(using.smallest))


class cpu_allocator:
    """While this is in use, new tensors of the CPU lie in a pool, from some size on.

        with xmem.torch.cpu_allocator():
            batch = torch.stack(images)     # goes into a queue without a copy

    It applies to all threads, to results and to intermediate tensors. A tensor that is smaller, or
    for which the pool has no room, is allocated as usual. Tensors may live longer than the block.
    A tensor can be resized, and then may leave the pool.

    smallest: bytes from which on a tensor lies in the pool.
    most: tensors of this kind that this process has at a time; further ones are allocated as
        usual, because each takes one of the pool's slots, which other processes also need.
    pool: the name of the pool; None: that of install(), or a new one.
    compiler: the command that compiles it the first time.
    Raises RuntimeError: there is no compiler, or the headers of torch are missing; xmem.Error.
    """

    def __init__(self, *, smallest: int = 16384, most: int = 4096, pool: str | None = None,
                 compiler: str = "c++") -> None:
        if smallest < 1 or most < 1:
            raise ValueError("smallest is a number of bytes, and most of tensors: at least 1")
        self.smallest = smallest
        self.most = most
        self.pool = state.pool() if pool is None else pools.join(pool, existing=False)
        _load(compiler)

    def __enter__(self) -> "cpu_allocator":
        with _lock:
            _in_use.append(self)
            state.allocators += 1
            _apply()
        state.recognise()
        return self

    def __exit__(self, *_: object) -> None:
        with _lock:
            _in_use.remove(self)
            state.allocators -= 1
            _apply()


def cuda_allocator(pool: str | None = None) -> Any:
    """An allocator of torch.cuda that takes memory from a pool, which others can open.

        torch.cuda.memory.change_current_allocator(xmem.torch.cuda_allocator())

    or, for some tensors only, with torch.cuda.MemPool(allocator.allocator()). A tensor is handed
    over without a copy, and its memory stays while any process has it.

    pool: the name of the pool; None: that of install(), or a new one.
    Raises xmem.Error: the pool cannot be made.
    """
    where = state.pool() if pool is None else pools.join(pool, existing=False)
    _torch.cuda_use(where.number)
    state.allocators += 1          # torch keeps it
    state.recognise()
    return torch.cuda.memory.CUDAPluggableAllocator(_core.__file__, "xmem_torch_cuda_allocate",
                                                    "xmem_torch_cuda_free")
