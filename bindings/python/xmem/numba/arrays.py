# SPDX-License-Identifier: MIT
"""Arrays of strings in memory of a GPU, as arguments of kernels."""
from __future__ import annotations

from typing import Any

import numpy
from llvmlite import ir
from numba import cuda
from numba.cuda import cgutils, types
from numba.cuda.extending import intrinsic, typeof_impl

from .operations import NRT_decref
from .strings import managed_string, string_view

THREADS = 256       # of a block


class DeviceArray(int):
    """The address of an array on a GPU, which it keeps alive. A kernel gets a pointer to a dtype."""

    memory: Any     #: an array of numba-cuda
    dtype: Any      #: a type of numba-cuda

    def __new__(cls, memory: Any, dtype: Any) -> DeviceArray:
        self = super().__new__(cls, int(memory.device_ctypes_pointer.value or 0))
        self.memory, self.dtype = memory, dtype
        return self


@typeof_impl.register(DeviceArray)
def _typeof_array(array: DeviceArray, context: Any) -> Any:
    return types.CPointer(array.dtype)


def string_array(rows: int, stream: Any = 0) -> DeviceArray:
    """Make an array of null strings, into which kernels put strings that they have made.

    An element has a reference of its own to its string. Overwriting an element does not drop that
    reference: free_managed_udf_string_array does. When the array goes, its strings stay.
    """
    return DeviceArray(cuda.to_device(numpy.zeros((rows, 3), "u8"), stream=stream),
                       managed_string)


def view_array(chars: Any, offsets: Any, validity: Any = None, stream: Any = 0) -> DeviceArray:
    """View a column of strings as Arrow has it: row i is chars[offsets[i]:offsets[i + 1]].

    chars, offsets: contiguous arrays of uint8 and of int32 with one element more than rows.
    validity: a bit for each row, 0: it is null; uint8. All are on the GPU, are anything with
    __cuda_array_interface__, and must outlive the views: the result keeps no reference to them.
    The offsets are used as they are.
    """
    given = [cuda.as_cuda_array(part) for part in (chars, offsets)]
    if [part.dtype.name for part in given] != ["uint8", "int32"] or given[1].size < 1:
        raise TypeError("xmem.numba: a column has chars of uint8 and at least one offset of int32")
    rows = given[1].size - 1
    bits = 0 if validity is None else DeviceArray(cuda.as_cuda_array(validity), types.uint8)
    views = DeviceArray(cuda.device_array((rows, 3), "u8", stream=stream), string_view)
    if rows:
        make_views[(rows + THREADS - 1) // THREADS, THREADS, stream](
            views, int(DeviceArray(given[0], types.uint8)), DeviceArray(given[1], types.int32),
            bits or DeviceArray(given[0], types.uint8), bool(bits), rows)
    return views


@intrinsic
def make_view(typingctx: Any, address: Any, nbytes: Any) -> Any:
    """A string_view of so many bytes at an address; address 0: a null string."""
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        view = cgutils.create_struct_proxy(string_view)(context, builder)
        view.p = builder.inttoptr(args[0], cgutils.voidptr_t)
        view.bytes = args[1]
        view.char_pos = view.byte_pos = ir.Constant(ir.IntType(32), 0)
        return view._getvalue()
    return string_view(types.uint64, types.int32), codegen


@cuda.jit
def make_views(out: Any, chars: Any, offsets: Any, validity: Any, nullable: Any, rows: Any) -> None:
    row = cuda.grid(1)
    if row < rows:
        if nullable and not validity[row // 8] >> row % 8 & 1:
            out[row] = make_view(0, 0)
        else:
            out[row] = make_view(chars + offsets[row], offsets[row + 1] - offsets[row])


@cuda.jit
def free_managed_udf_string_array(ary: Any, size: Any) -> None:
    """Drop the reference of each element. Nobody uses the elements after that."""
    gid = cuda.grid(1)
    if gid < size:
        NRT_decref(ary[gid])
