# SPDX-License-Identifier: MIT
"""Tensors of PyTorch in the memory of pools, and torch.multiprocessing on top of that.

    import torch.multiprocessing as multiprocessing
    import xmem.torch

    xmem.torch.install()
    # From here on queues, pipes and the workers of DataLoader pass tensors by token.

Tensors that are handed over lie in a pool, where all processes that have them write and read one
memory, as with torch's own shared memory. The difference is in the death of a process: the host of
the pool drops all its holds, and nothing stays behind.
"""
from __future__ import annotations

from .allocator import cpu_allocator, cuda_allocator
from .blob import from_blob
from .cuda import collect
from .guards import tensor
from .installing import install, uninstall
from .state import installed
from .storages import is_pooled, share

__all__ = ["collect", "cpu_allocator", "cuda_allocator", "from_blob", "install", "installed",
           "is_pooled", "share", "tensor", "uninstall"]
