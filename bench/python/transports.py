# SPDX-License-Identifier: MIT
"""The ways in which these benchmarks hand a tensor over, under one name each.

Each of them runs in processes of its own, because a way is chosen for a whole process.
"""
from __future__ import annotations

import importlib.util

NAMES = ("file_descriptor", "file_system", "xmem")
#: xmem with its allocator: tensors lie in the pool from the beginning.
ALLOCATOR = "xmem, allocator"


def available() -> list[str]:
    """Those that this Python has: torch's two always, xmem if its package is there."""
    return [name for name in NAMES if name != "xmem" or importlib.util.find_spec("xmem")]


def has_allocator() -> bool:
    """Can it be compiled here? It wants a compiler and torch's headers."""
    try:
        import xmem.torch

        xmem.torch.cpu_allocator()
    except (ImportError, RuntimeError) as error:
        print(f"without xmem's allocator: {error}\n")
        return False
    return True


def choose(name: str) -> None:
    """Let torch.multiprocessing hand tensors over in this way, in this process, from now on."""
    import torch
    import torch.multiprocessing as multiprocessing

    torch.set_num_threads(1)
    if name in ("xmem", ALLOCATOR):
        import xmem.torch

        xmem.torch.install()
        if name == ALLOCATOR:
            xmem.torch.cpu_allocator().__enter__()      # until this process ends
    else:
        multiprocessing.set_sharing_strategy(name)
