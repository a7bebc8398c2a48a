# SPDX-License-Identifier: MIT
"""Arenas: the memory from which kernels allocate their strings."""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy
from numba import cuda
from numba.cuda import types

from . import runtime
from .arrays import of


class ArenaCounts(NamedTuple):
    """How often kernels have used an arena."""

    made: int       #: allocations: two for each string
    freed: int      #: releases
    failed: int     #: allocations that got nothing; each has given a null string
    mark: int       #: bytes that were ever used, with the arena's header


class Arena:
    """An arena at the start of memory of a GPU, such as a guard that is being written.

    Only kernels of this GPU use it. It keeps the memory alive, and kernels that make or free
    strings must have ended before it goes. Strings of one arena may be freed while another one is
    in use.
    """

    def __init__(self, memory: Any) -> None:
        """memory: anything with __cuda_array_interface__, contiguous, aligned to 16 bytes.

        Raises ValueError if it is too small for a string, or not aligned.
        """
        self.memory = of(cuda.as_cuda_array(memory), types.uint8)
        nbytes = self.memory.memory.nbytes
        if not self._ask(make_arena, 1, nbytes)[0]:
            raise ValueError(f"xmem.numba: {nbytes} bytes at {self.memory:#x} are no room for an "
                             "arena: it takes 17 KiB, aligned to 16 bytes")

    def use(self) -> None:
        """Let all kernels of the current GPU allocate from it, until stop() or another arena.

        It is kept alive until then. No kernel with strings runs on this GPU during the call.
        """
        runtime.use_arena(int(self.memory), self)

    def stop(self) -> None:
        """Let kernels allocate from the GPU's own heap again, if they use this arena."""
        runtime.stop_arena(self)

    def counts(self) -> ArenaCounts:
        """Wait for the kernels of the default stream, and count."""
        return ArenaCounts(*map(int, self._ask(count_arena, 4)))

    def _ask(self, kernel: Any, words: int, *arguments: int) -> Any:
        answer = of(cuda.to_device(numpy.zeros(words, "u8")), types.uint64)
        kernel[1, 1](answer, self.memory, *arguments)
        return answer.memory.copy_to_host()


arena_init = runtime.declare("xmem_arena_init", "uint64(CPointer(uint8), uint64)")
arena_count = runtime.declare("xmem_arena_count", "void(CPointer(uint8), CPointer(uint64))")


@cuda.jit
def make_arena(made: Any, memory: Any, nbytes: Any) -> None:
    made[0] = arena_init(memory, nbytes)


@cuda.jit
def count_arena(counts: Any, memory: Any) -> None:
    arena_count(memory, counts)
