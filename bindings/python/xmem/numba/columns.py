# SPDX-License-Identifier: MIT
"""Columns of Arrow, made of strings of kernels; xmem/device/column.cuh has the steps."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numba import cuda
from numba.cuda import types

from . import runtime
from .arrays import THREADS, DeviceArray, of
from .strings import managed_string

if TYPE_CHECKING:
    from xmem import BufferGuard, BufferPool

BLOCKS = 1024       # at most; a thread takes several rows
_STRINGS, _WORDS = types.CPointer(managed_string), types.CPointer(types.uint64)
_PARTS = (_STRINGS, types.uint64, _WORDS, types.CPointer(types.uint32),
          types.CPointer(types.int32), types.CPointer(types.uint8))

column_measure = runtime.declare("xmem_column_measure", types.void(_STRINGS, types.uint64, _WORDS))
column_scan = runtime.declare("xmem_column_scan", types.void(_WORDS, types.uint64, _WORDS))
column_offsets = runtime.declare("xmem_column_offsets", types.void(*_PARTS))
column_gather = runtime.declare("xmem_column_gather", types.void(*_PARTS))


@cuda.jit
def measure(strings: Any, rows: Any, sums: Any) -> None:
    column_measure(strings, rows, sums)


@cuda.jit
def scan(sums: Any, rows: Any, total: Any) -> None:
    column_scan(sums, rows, total)


@cuda.jit
def offsets(strings: Any, rows: Any, sums: Any, validity: Any, begins: Any, chars: Any) -> None:
    column_offsets(strings, rows, sums, validity, begins, chars)


@cuda.jit
def gather(strings: Any, rows: Any, sums: Any, validity: Any, begins: Any, chars: Any) -> None:
    column_gather(strings, rows, sums, validity, begins, chars)


def column_from_managed_udf_string_array(strings: DeviceArray, pool: BufferPool,
                                         stream: Any = 0) -> BufferGuard:
    """Make a column of Arrow of the strings, in a buffer on their GPU.

    strings: of string_array, written by kernels of this stream, which is numba-cuda's or 0, the
    default stream. Null strings are null rows.
    pool: a writer's, which acquires the buffer as acquire_cuda does.
    The result is described as a column (``BufferGuard.strings``) and is complete once the stream
    has come there, so publish(stream=stream). The strings stay: free_managed_udf_string_array.
    Raises what acquire_cuda raises, and Error (EINVAL: more than 2^31 - 1 bytes).
    """
    from xmem import strings_plan

    own = stream or cuda.default_stream()
    rows = strings.memory.shape[0]
    grid = max(1, min(BLOCKS, (rows + THREADS - 1) // THREADS)), THREADS, own
    # Tiles have whole words of the validity, so there is room for all sums.
    sums = of(cuda.device_array((rows // 32 + 2, 2), "u8", stream=own), types.uint64)
    total = of(cuda.device_array(2, "u8", stream=own), types.uint64)
    measure[grid](strings, rows, sums)
    scan[1, 1, own](sums, rows, total)
    found = total.memory.copy_to_host(stream=own)
    own.synchronize()
    nbytes, nulls = map(int, found)
    plan = strings_plan(rows, nbytes, nulls > 0)
    guard = pool.acquire_cuda(plan.nbytes, cuda.current_context().device.id)
    try:
        guard.describe_strings(rows, nbytes, nulls > 0)
        guard.wait_on(stream)
        begin = guard.cuda_ptr_mut
        bits = 0 if plan.validity_at is None else begin + plan.validity_at
        parts = (DeviceArray(bits, types.uint32),
                 DeviceArray(begin + plan.offsets_at, types.int32),
                 DeviceArray(begin + plan.chars_at, types.uint8))
        offsets[grid](strings, rows, sums, *parts)
        gather[grid](strings, rows, sums, *parts)
    except BaseException:
        guard.release()
        raise
    return guard
