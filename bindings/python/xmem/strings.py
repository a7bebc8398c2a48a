# SPDX-License-Identifier: MIT
"""Columns of strings: where their parts lie in a buffer, and the parts of an array of pyarrow.

A column has the layout of Arrow's type utf8 with offsets of 32 bits.
"""
from __future__ import annotations

from typing import Any, NamedTuple

from . import _core


class Strings(NamedTuple):
    """Where the parts of a column of strings lie in the contents; positions are bytes."""

    rows: int                   #: how many strings
    chars: int                  #: bytes of all strings, in UTF-8
    nbytes: int                 #: of all parts
    validity_at: int | None     #: a bit for each row, 0: it is null; None: no row is null
    offsets_at: int             #: rows + 1 numbers of type int32: where each string begins
    chars_at: int               #: the strings


def strings_plan(rows: int, chars: int, validity: bool = False) -> Strings:
    """Get where the parts of such a column lie, to acquire nbytes and to write them.

    chars: bytes of all strings. validity: rows may be null.
    Raises Error: EINVAL if rows or chars has more than 31 bits.
    """
    return Strings(*_core.strings_plan(rows, chars, validity))


class Column:
    """A column that is to be written: its plan, and each part that is not empty with its place."""

    def __init__(self, source: Any) -> None:
        import pyarrow  # type: ignore[import-untyped]

        array = source
        if not isinstance(array, (pyarrow.Array, pyarrow.ChunkedArray)):
            array = pyarrow.array(source, pyarrow.string())
        array = array.cast(pyarrow.string())
        if isinstance(array, pyarrow.ChunkedArray):
            array = array.combine_chunks()
        array.validate(full=True)
        rows = len(array)
        bits, offsets, chars = (_bytes(part) for part in array.buffers())
        if rows and (array.offset or offsets[:4].cast("i")[0]):     # a slice of another column
            array = pyarrow.concat_arrays([array, array[:0]])
            bits, offsets, chars = (_bytes(part) for part in array.buffers())
        offsets = offsets[:4 * (rows + 1)] if rows else memoryview(bytes(4))
        self.plan = strings_plan(rows, offsets[-4:].cast("i")[0], bool(array.null_count))
        self.parts = [(offsets, self.plan.offsets_at)]
        if self.plan.chars:
            self.parts.append((chars[:self.plan.chars], self.plan.chars_at))
        if self.plan.validity_at is not None:
            self.parts.append((bits[:(rows + 7) // 8], self.plan.validity_at))


def _bytes(part: Any) -> memoryview:
    return memoryview(part).cast("B") if part else memoryview(b"")
