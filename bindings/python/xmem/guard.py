# SPDX-License-Identifier: MIT
"""BufferGuard: a handle of a buffer, whose contents do not change while the handle lives."""
from __future__ import annotations

from types import EllipsisType
from typing import Any, NamedTuple

from . import dtypes, reduce
from ._core import Plane
from .arguments import shape_of
from .cuda import CudaGuard
from .errors import Error
from .interop import Views
from .parcel import Parcel
from .strings import Strings
from .typing import DTypeLike, ShapeLike


class Image(NamedTuple):
    """An image that has been checked: all rows lie within the contents.

    Each of its planes is a buffer.
    """

    format: int         #: XMEM_IMAGE_*
    width: int          #: pixels
    height: int
    planes: tuple[Plane, ...]


class BufferGuard(Views, CudaGuard):
    """A handle of a buffer: one that is being written, or contents that are held for reading.

    It is a buffer for ``memoryview`` and ``numpy.asarray``, with the shape and type that its
    writer gave, read-only once it is published. Such views keep the buffer even after the guard is
    released and the pool is closed.

    ``with`` releases it at the end of the block, unless the block has published it.
    Pickled, it becomes a hold of the buffer in the process that loads it (reduce.py). For
    multiprocessing.Queue, which pickles later, there is parcel(). If the buffer is gone when the
    message is loaded, the loaded guard is gone: release() does nothing, and any other use raises
    what getting the buffer would have raised, such as Stale.
    A guard is always true, and has no len(), which an array of its contents has.
    Threads: any; a guard that one thread publishes or releases is gone for all.
    """

    __slots__ = ("__weakref__",)

    @property
    def dtype(self) -> dtypes.DType | None:
        """The name of the elements' type; None: the contents are not described.

        It is a str that also has the attributes of numpy's type of that name.
        """
        number = self.dtype_number
        return dtypes.NAMES.get(number, dtypes.DType(f"dtype {number:#x}")) if number else None

    @property
    def ndim(self) -> int:
        """How many dimensions the contents have. Raises as shape."""
        return len(self.shape)

    def image(self) -> Image:
        """Get the image that the contents are, by the publisher's description, which is checked.

        For images on a GPU there is cuda_image().
        Raises Error: ENODATA if they are not described, EBADMSG or ERANGE if the description is
        impossible, EMEDIUMTYPE on a GPU; and Released.
        """
        return Image(*self._image_view())

    def strings(self) -> Strings:
        """Get where the parts of the column of strings lie, by the publisher's description.

        The parts lie within the contents; the offsets are not checked. pyarrow.array(guard) gives
        the strings of a column in memory of the CPU.
        Raises Error: ENODATA if the contents are no column of strings, EBADMSG or ERANGE if the
        description is impossible; and Released.
        """
        return Strings(*self._strings_view())

    def parcel(self, *, lasts: float | EllipsisType | None = ...) -> Parcel:
        """Make a parcel for multiprocessing.Queue, which is loaded as a guard.

        Its reference is set aside now, so this guard may be released and the pool closed at once.
        lasts: seconds that the reference stays set aside if nobody loads the parcel; None: for
        ever; by default in_flight of the pool. Only the owner of the buffer may give more than 60
        seconds.
        Raises as pickling does: NotPermitted while the guard is being written, Released; and
        NotPermitted if that time is too long.
        """
        return Parcel(self, lasts)

    def describe(self, shape: ShapeLike, dtype: DTypeLike,
                 strides: ShapeLike | None = None) -> None:
        """Describe the contents as a tensor; strides are bytes, None: dense.

        Raises as describe_tensor, and TypeError if no such elements can be shared.
        """
        self.describe_tensor(dtypes.number(dtype), shape_of(shape), strides)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return reduce.guard(self)

    def __copy__(self) -> BufferGuard:
        return self.clone_ref()

    def __deepcopy__(self, memo: Any) -> BufferGuard:
        return self.__copy__()

    def __repr__(self) -> str:
        try:
            state = f"token {self.token}, for reading" if self.readonly else "being written"
            try:
                what = f"{self.dtype} {self.shape}" if self.dtype else f"{self.nbytes} bytes"
            except Error:       # the publisher's description is impossible
                what = f"{self.nbytes} bytes"
            name = "an anonymous pool" if self.pool.name is None else f"pool {self.pool.name!r}"
            return f"<xmem.BufferGuard {state}, {what}, of {name}>"
        except Error as error:  # also if another thread has just released it
            why = error.strerror if self._lost or not self.gone else "gone"
            return f"<xmem.BufferGuard, {why}>"
