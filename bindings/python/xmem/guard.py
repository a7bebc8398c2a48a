# SPDX-License-Identifier: MIT
"""BufferGuard: a handle of a buffer, whose contents stay as they are as long as it lives."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _core, dtypes

if TYPE_CHECKING:
    from .pool import BufferPool


class BufferGuard(_core.Guard):
    """A handle of a buffer: one that is being written, or contents that are held for reading.

    It is a buffer for ``memoryview`` and ``numpy.asarray``, with the shape and type that its
    writer gave, read-only once it is published. Such views keep the buffer also after the guard is
    released, and after the pool is closed.

    ``with`` releases it at the end of the block, unless the block has published it.
    Threads: any; a guard that one thread publishes or releases is gone for all.
    """

    __slots__ = ("__weakref__",)

    @property
    def dtype(self) -> str | None:
        """The name of the elements' type; None: nobody has said what the contents are."""
        number = self.dtype_number
        return dtypes.NAMES.get(number, f"dtype {number:#x}") if number else None

    def describe(self, shape: tuple[int, ...], dtype: Any,
                 strides: tuple[int, ...] | None = None) -> None:
        """Say that the contents are a tensor; strides are bytes, None: dense."""
        self.describe_tensor(dtypes.number(dtype), shape, strides)

    def __repr__(self) -> str:
        if self.gone:
            return "<xmem.BufferGuard, gone>"
        state = "for reading" if self.readonly else "being written"
        return f"<xmem.BufferGuard {state}, {self.nbytes} bytes>"

    def __len__(self) -> int:
        return int(self.shape[0])
