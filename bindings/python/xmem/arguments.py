# SPDX-License-Identifier: MIT
"""Checks of arguments: bytes, or the shape and type of a tensor."""
from __future__ import annotations

import math
import operator

from . import dtypes
from .typing import DTypeLike, ShapeLike

#: Dimensions that a tensor has at most.
MAX_DIMENSIONS = 8
_UINT8 = dtypes.NUMBERS["uint8"]


def text(value: str | None, what: str) -> None:
    """Check that an argument is a str or None. Raises TypeError, which names the argument."""
    if not isinstance(value, (str, type(None))):
        raise TypeError(f"{what} is a str or None, not {value!r}")


def shape_of(shape: ShapeLike) -> tuple[int, ...]:
    """Check a shape: a tuple or list of at most 8 integers, none negative.

    Raises TypeError and ValueError, which say what is wrong with it.
    """
    if not isinstance(shape, (tuple, list)):
        raise TypeError("a shape is a tuple or list of integers, such as (2, 3), not "
                        f"{shape!r}")
    try:
        found = tuple(map(operator.index, shape))
    except TypeError:
        raise TypeError(f"a shape has integers and nothing else: {shape!r}") from None
    if len(found) > MAX_DIMENSIONS:
        raise ValueError(f"a shape has at most {MAX_DIMENSIONS} dimensions, not {len(found)}")
    if found and min(found) < 0:
        raise ValueError(f"a shape has no negative numbers: {shape!r}")
    return found


def made(size: int | ShapeLike | None, count: int | None, shape: ShapeLike | None,
         dtype: DTypeLike | None) -> tuple[int, int]:
    """Get the bytes and number of the buffers to make; size may be the shape."""
    if count is None:
        raise TypeError("give count, how many buffers are to be made")
    if size is None and shape is None:
        raise TypeError("give size, the bytes of each buffer, or shape and dtype")
    size, shape = _size_or_shape(size, shape)
    return _sized(size, None if shape is None else shape_of(shape), dtype)[0], count


def _sized(size: int | None, shape: tuple[int, ...] | None,
           dtype: DTypeLike | None) -> tuple[int, int]:
    """Get how many bytes are wanted, and the number of the type of elements.

    An empty shape needs one byte, because 0 stands for any buffer.
    """
    if shape is None:
        if dtype is not None and size is not None:
            raise TypeError("with a dtype give a shape and not a number of bytes: "
                            f"({size!r},) is {size!r} elements in a row")
        if dtype is not None:
            raise TypeError("a dtype needs a shape")
        return size or 0, 0
    if size is not None:
        raise TypeError("give size, or shape and dtype, not both")
    if dtype is None:
        raise TypeError("a shape needs a dtype")
    number = dtypes.number(dtype)
    return max(math.prod(shape) * dtypes.item_bytes(number), 1), number


def _size_or_shape(size: int | ShapeLike | None,
                   shape: ShapeLike | None) -> tuple[int | None, ShapeLike | None]:
    if isinstance(size, (tuple, list)):
        if shape is not None:
            raise TypeError("give the shape once")
        return None, size
    if size is None:
        return None, shape
    try:
        return operator.index(size), shape
    except TypeError:
        raise TypeError("give a number of bytes, or a shape as a tuple or list, not "
                        f"{size!r}") from None


def wanted(size: int | ShapeLike | None, shape: ShapeLike | None,
           dtype: DTypeLike | None) -> tuple[int, tuple[int, ...] | None, int]:
    """Get the bytes, shape and type of the buffer to acquire; size may be the shape.

    A size of 0 becomes a tensor without bytes, because undescribed contents have at least one
    byte.
    """
    size, shape = _size_or_shape(size, shape)
    checked = None if shape is None else shape_of(shape)
    total, number = _sized(size, checked, dtype)
    if size == 0:
        return 1, (0,), _UINT8
    return total, checked, number
