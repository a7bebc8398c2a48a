# SPDX-License-Identifier: MIT
"""Arenas: the memory from which kernels allocate their strings."""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy
from numba import cuda
from numba.cuda import types
from numba.cuda.extending import intrinsic

from . import runtime
from .arrays import DeviceArray


class ArenaCounts(NamedTuple):
    """What kernels have done with an arena."""

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
        self.memory = DeviceArray(cuda.as_cuda_array(memory), types.uint8)
        nbytes = self.memory.memory.nbytes
        if not self._ask(make_arena, 1, nbytes)[0]:
            raise ValueError(f"xmem.numba: {nbytes} bytes at {self.memory:#x} are no room for an "
                             "arena: it takes 17 KiB, aligned to 16 bytes")

    def use(self) -> None:
        """Let all kernels of the current GPU allocate from it; it lives as long as it is used.

        No kernel with strings runs on this GPU meanwhile.
        """
        runtime.use_arena(int(self.memory), self)

    def counts(self) -> ArenaCounts:
        """Wait for the kernels of the default stream, and count."""
        return ArenaCounts(*map(int, self._ask(count_arena, 4)))

    def _ask(self, kernel: Any, words: int, *arguments: int) -> Any:
        answer = DeviceArray(cuda.to_device(numpy.zeros(words, "u8")), types.uint64)
        kernel[1, 1](answer, self.memory, *arguments)
        return answer.memory.copy_to_host()


@intrinsic
def arena_init(typingctx: Any, made: Any, memory: Any, nbytes: Any) -> Any:
    """Make an arena; its address, or 0, is written to made[0]."""
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        runtime.call(builder, "arena_init", args)
        return context.get_dummy_value()
    return types.none(made, memory, types.uint64), codegen


@intrinsic
def arena_count(typingctx: Any, counts: Any, memory: Any) -> Any:
    """Write the four counts of an arena."""
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        runtime.call(builder, "arena_count", args)
        return context.get_dummy_value()
    return types.none(counts, memory), codegen


@cuda.jit
def make_arena(made: Any, memory: Any, nbytes: Any) -> None:
    arena_init(made, memory, nbytes)


@cuda.jit
def count_arena(counts: Any, memory: Any) -> None:
    arena_count(counts, memory)
