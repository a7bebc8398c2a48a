# SPDX-License-Identifier: MIT
"""Views of a guard's contents for numpy and others, beyond the protocols of the extension.

The extension gives the contents without a copy: by the buffer protocol, DLPack, Arrow's C
interfaces and numpy's array interface. This module has the part that needs Python: types of
elements that numpy only knows by ml_dtypes.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _core, dtypes
from .typing import ArrayLike, HasArrayInterface

if TYPE_CHECKING:
    import numpy


def _type_of(guard: _core.Guard) -> numpy.dtype[Any]:
    """The numpy.dtype of the elements, by its name in ml_dtypes if numpy has none."""
    number = guard.dtype_number or dtypes.NUMBERS["uint8"]
    name = dtypes.NAMES.get(number)
    if name is None:
        raise TypeError(f"numpy has no type for elements of dtype {number:#x}: use DLPack")
    return dtypes.numpy_type(name)


def _as_unsigned(array: Any) -> tuple[HasArrayInterface, int] | None:
    """An array of a type of ml_dtypes, as unsigned integers because numpy does not lend it as it
    is, and the number of its type."""
    dtype: Any = getattr(array, "dtype", None)
    if getattr(dtype, "isbuiltin", None) != 2 or not hasattr(array, "view"):
        return None
    unsigned: HasArrayInterface = array.view(f"u{dtype.itemsize}")
    return unsigned, dtypes.number(dtype)


class Views(_core.Guard):
    """The part of BufferGuard that gives views of its contents."""

    __slots__ = ()

    @property
    def __numpy_dtype__(self) -> numpy.dtype[Any]:
        """The value of numpy.dtype(guard), from numpy 2.4 on: the type of numpy.asarray(guard).

        Raises TypeError where there is no such type, or no ml_dtypes.
        """
        return _type_of(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> numpy.ndarray[Any, Any]:
        """Get an array of elements that Python's buffers have no format for, such as bfloat16.

        numpy calls this after the buffer protocol has refused. The array is a view of the
        contents, of a type of ml_dtypes, and keeps them.
        Raises TypeError where there is no such type, or no ml_dtypes.
        """
        import numpy
        span: Any = self._span()        # numpy's stubs do not know of buffers in general
        array = numpy.ndarray(self.shape, _type_of(self), span, strides=self.strides)
        wanted = numpy.dtype(dtype) if dtype is not None else array.dtype
        if wanted != array.dtype:
            if copy is False:
                raise ValueError(f"these elements are {array.dtype}, and get to be {wanted} only "
                                 "by a copy")
            return array.astype(wanted)
        return array.copy() if copy else array

    def copy_from(self, source: ArrayLike, offset: int = 0) -> int:
        """Copy other contents into this guard, which is being written.

        source: a buffer (bytes, an array of numpy, also one with gaps), a tensor that has
        __dlpack__ in memory of the CPU, or a guard. Its elements lie dense in this one, the last
        index varying fastest. Views of this guard are copied as they were before. If offset is 0,
        another guard is copied with its description, and this guard gets its length.
        offset: bytes of this guard before the first that is written.

        A guard that is described takes elements of its own shape and type; and, as any guard,
        contiguous bytes.
        Returns the number of bytes. Raises Error (ERANGE) if they do not fit into nbytes;
        TypeError if the elements are of another type than this guard's, have the other byte order,
        or are objects, records or text; ValueError if they have another shape; NotPermitted of a
        guard for reading. The GIL is released.
        """
        try:
            return super()._copy_from(source, offset)
        except (BufferError, ValueError):
            unsigned = _as_unsigned(source)
            if unsigned is None:
                dtype: Any = getattr(source, "dtype", None)
                if getattr(dtype, "kind", "") not in ("m", "M"):
                    raise
                raise TypeError(f"elements of type {dtype} are not copied: give the numbers, as "
                                "array.view('int64')") from None
        return super()._copy_from(unsigned[0], offset, unsigned[1])

    def tobytes(self) -> bytes:
        """Get a copy of all elements, dense, the last index varying fastest.

        Of any type: bytes need no format. Raises BufferError on a GPU; Released.
        """
        return self._tobytes()

    def __bytes__(self) -> bytes:
        return self._tobytes()
