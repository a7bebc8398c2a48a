# SPDX-License-Identifier: MIT
"""Arrays of strings in memory of a GPU, as arguments of kernels."""
from __future__ import annotations

from typing import Any

import numpy
from numba import cuda
from numba.cuda import types
from numba.cuda.extending import typeof_impl

from . import runtime
from .operations import NRT_decref
from .strings import managed_string, string_view

THREADS = 256       # of a block


class DeviceArray(int):
    """The address of an array on a GPU. A kernel gets it as a pointer to elements of a dtype."""

    dtype: Any      #: a type of numba-cuda
    memory: Any     #: the array of numba-cuda whose address it is, or None; it is kept alive
    parts: Any      #: what else is kept alive

    def __new__(cls, address: int, dtype: Any, memory: Any = None, parts: Any = ()) -> DeviceArray:
        self = super().__new__(cls, address)
        self.dtype, self.memory, self.parts = dtype, memory, parts
        return self


def of(memory: Any, dtype: Any, parts: Any = ()) -> DeviceArray:
    """The address of an array of numba-cuda."""
    return DeviceArray(int(memory.device_ctypes_pointer.value or 0), dtype, memory, parts)


@typeof_impl.register(DeviceArray)
def _typeof_array(array: DeviceArray, context: Any) -> Any:
    return types.CPointer(array.dtype)


def string_array(rows: int, stream: Any = 0) -> DeviceArray:
    """Make an array of null strings, into which kernels put strings that they have made.

    An element has a reference of its own to its string. Overwriting an element does not drop that
    reference: free_managed_udf_string_array does. When the array goes, its strings stay.
    """
    return of(cuda.to_device(numpy.zeros((rows, 3), "u8"), stream=stream), managed_string)


def view_array(chars: Any, offsets: Any, validity: Any = None, stream: Any = 0) -> DeviceArray:
    """View a column of strings as Arrow has it: row i is chars[offsets[i]:offsets[i + 1]].

    chars, offsets: contiguous arrays of uint8 and of int32 with one element more than rows.
    validity: a bit for each row, 0: it is null; uint8. All are on the GPU, are anything with
    __cuda_array_interface__. The result keeps them alive. The offsets are used as they are.
    """
    given = [cuda.as_cuda_array(part) for part in (chars, offsets)]
    if [part.dtype.name for part in given] != ["uint8", "int32"] or given[1].size < 1:
        raise TypeError("xmem.numba: a column has chars of uint8 and at least one offset of int32")
    rows = given[1].size - 1
    bits = DeviceArray(0, types.uint8)
    if validity is not None:
        bits = of(cuda.as_cuda_array(validity), types.uint8)
    views = of(cuda.device_array((rows, 3), "u8", stream=stream), string_view, (*given, bits))
    if rows:
        make_views[(rows + THREADS - 1) // THREADS, THREADS, stream](
            of(given[0], types.uint8), of(given[1], types.int32), bits, rows, views)
    return views


view_row = runtime.declare("xmem_view_row", types.void(
    types.CPointer(types.uint8), types.CPointer(types.int32), types.CPointer(types.uint8),
    types.uint64, types.CPointer(string_view)))


@cuda.jit
def make_views(chars: Any, offsets: Any, validity: Any, rows: Any, views: Any) -> None:
    row = cuda.grid(1)
    if row < rows:
        view_row(chars, offsets, validity, row, views)


@cuda.jit
def free_managed_udf_string_array(ary: Any, size: Any) -> None:
    """Drop the reference of each element. Nobody uses the elements after that."""
    gid = cuda.grid(1)
    if gid < size:
        NRT_decref(ary[gid])
