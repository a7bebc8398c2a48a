# SPDX-License-Identifier: MIT
"""Strings that kernels of numba-cuda make, count and free.

    from numba import cuda
    import xmem.numba

    cuda.config.CUDA_ENABLE_NRT = True              # numba-cuda counts references

    @cuda.jit
    def kernel(names, out, rows):
        row = cuda.grid(1)
        if row < rows:
            out[row] = names[row].upper() + "!"     # two new strings, one of which ends here

    xmem.numba.Arena(guard).use()                   # where kernels allocate strings
    out = xmem.numba.string_array(rows)
    kernel[blocks, threads](xmem.numba.view_array(chars, offsets), out, rows)

``names[row]`` is a ``string_view``, which looks at characters of a column. ``out[row]`` is a
``managed_string``: numba-cuda counts the references to it, by a single atomic operation for each.
Operations that make a string: ``+``, ``str()``, ``upper``, ``lower``, ``replace``, ``strip``,
``lstrip``, ``rstrip``, ``s[i:j]``, ``make_string("literal")``. Others: ``len``, ``in``, ``find``,
``rfind``, ``count``, ``startswith``, ``endswith``, ``is None``, and comparisons. Literals are
operands, too. An operation with a null string, or without memory, gives a null string, and no
error: see ``Arena.counts``.

docs/device.md is the page for this. This module needs numba-cuda 0.30; it compiles kernels without
a GPU. Nothing else of xmem imports it.
"""
from numba import cuda as _cuda

if _cuda.config.ENABLE_CUDASIM:
    raise ImportError("xmem.numba compiles kernels, and numba-cuda's simulator does not "
                      "(NUMBA_ENABLE_CUDASIM): there a function of strings takes Python's")

from .arena import Arena, ArenaCounts
from .arrays import (DeviceArray, free_managed_udf_string_array, string_array, view_array)
from .columns import column_from_managed_udf_string_array
from .operations import NRT_decref, make_string
from .strings import (ManagedString, StringView, UDFString, managed_string, string_view,
                      udf_string)

#: The names of cuDF's documentation.
ManagedUDFString = ManagedString
managed_udf_string = managed_string

__all__ = ["Arena", "ArenaCounts", "DeviceArray", "ManagedString", "ManagedUDFString",
           "NRT_decref", "StringView", "UDFString", "column_from_managed_udf_string_array",
           "free_managed_udf_string_array",
           "make_string", "managed_string", "managed_udf_string", "string_array",
           "string_view", "udf_string", "view_array"]
