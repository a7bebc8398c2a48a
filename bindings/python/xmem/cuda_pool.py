# SPDX-License-Identifier: MIT
"""Buffers on GPUs: the part of BufferPool that is about them."""
from __future__ import annotations

from typing import Any, Callable, NamedTuple, TypeVar

from . import _core, dtypes, holders, unread
from ._constants import MemoryFlags
from .arguments import made, wanted
from .cuda import CPU, CudaGuard
from .errors import TimedOut, WouldBlock
from .guard import BufferGuard
from .records import Sent
from .typing import CudaArrayLike, DTypeLike, ShapeLike

_Guard = TypeVar("_Guard", bound=CudaGuard)

_, _SEALED, _CUDA, _READERS, _LEGACY = (int(flag) for flag in MemoryFlags)
_DEFAULT_STREAMS = {2: 1, 10: 0}    # the default stream of GPUs of NVIDIA and AMD in DLPack


class _Memory(NamedTuple):
    """Memory of another library, as its interface describes it."""

    ptr: int
    nbytes: int
    shape: tuple[int, ...] | None
    dtype: int              # 0: bytes
    strides: tuple[int, ...] | None
    stream: int | None      # on which its contents are complete
    kept: Any               # what the memory belongs to


class CudaPool(_core.Pool):
    """What BufferPool has for GPUs."""

    options: dict[str, Any]     #: the arguments with which it was opened, except the name
    _sent: dict[int, Sent]      # by slot: the first message that may be unread (unread.py)

    def preallocate_cuda(self, size: int | ShapeLike | None = None, count: int | None = None,
                         device_id: int = 0, *,
                         shape: ShapeLike | None = None, dtype: DTypeLike | None = None,
                         readers: bool = False, legacy: bool = False,
                         sealed: bool = False) -> list[int]:
        """Make count buffers in the memory of a GPU, and return the list of their meta_index.

        size: bytes of each buffer. With shape and dtype instead, each has room for such a tensor.
        device_id: this process's number of the GPU. readers: readers of the pool also get the
        memory, and any process that opens it can write it. legacy: share it by the driver's IPC
        handles, even if there are descriptors. sealed: nobody writes the buffers in place
        (get_mut), as is always so with handles.
        From then on acquire_cuda() makes no buffers on that GPU, unless the pool was opened with
        demand_bytes.
        Raises NoDevice, NotPermitted (a reader), NoSpace, Limit, Error (ENOMEM: the GPU is full;
        EOPNOTSUPP: it cannot share memory; EMEDIUMTYPE: the host refuses this driver).
        """
        flags = (_CUDA | bool(readers) * _READERS | bool(legacy) * _LEGACY |
                 bool(sealed) * _SEALED)
        return self._preallocate(*made(size, count, shape, dtype), flags, device_id)

    def acquire_cuda(self, size: int | ShapeLike | None = None, device_id: int = 0,
                     dtype: DTypeLike | None = None, *, shape: ShapeLike | None = None,
                     timeout: float | None = None) -> BufferGuard:
        """Acquire a buffer on a GPU to write into, as acquire_cpu does for memory of the CPU.

        If no free buffer fits, the call makes one within demand_bytes, as acquire_cpu does, but
        with the default of demand_bytes only if this writer has preallocated none on that GPU.
        Raises what acquire_cpu raises; NoDevice; and, if it makes a buffer, what preallocate_cuda
        raises.
        """
        total, shape, number = wanted(size, shape, dtype)
        guard = self._explained(lambda: self._cuda_acquire(total, device_id, timeout))
        return _described(guard, number, shape, None)

    def _copied(self, guard: _Guard, device_id: int, timeout: float | None) -> _Guard:
        return self._explained(lambda: self._copy_of(guard, device_id, timeout))

    def _explained(self, acquire: Callable[[], _Guard]) -> _Guard:
        try:
            return acquire()
        except (TimedOut, WouldBlock) as error:
            unread.explain(error, self)
            if isinstance(error, TimedOut):
                error.holders = holders.if_known(self)
            raise

    def attach_cuda(self, source: int | CudaArrayLike, nbytes: int | None = None, *,
                    readers: bool = False,
                    done: Callable[[], object] | None = None) -> BufferGuard:
        """Make a buffer of existing memory of a GPU, without copying it.

        source: an array of a library (``__cuda_array_interface__`` or DLPack), whose shape and
        type the buffer gets; or an address as an int, with nbytes. The source is kept, and the
        program must not change its contents, until no process can see them any more; then done()
        is called.
        If a stream has yet to write the contents, publish() waits on that stream.

        The memory must be from cudaMalloc, or exportable (see xmem_attach_cuda(3)). Other
        processes get the whole allocation that it lies in. The buffer is not used again for other
        contents.

        done runs in some thread, a moment after the library has found that out: at the end of a
        call of close(), collect(), trim() or attach_cuda(), or in the main thread. It may call any
        function. An exception of it goes to sys.unraisablehook. It is no longer called once the
        interpreter ends.
        Raises ValueError, TypeError, Error (EMEDIUMTYPE: no memory that can be shared).
        """
        memory = _memory(source, nbytes)
        if memory.nbytes == 0:
            raise ValueError("there is nothing to attach: the array has no elements")
        guard = self._cuda_attach(memory.ptr, memory.nbytes, bool(readers) * _READERS,
                                  done, memory.kept, memory.stream)
        return _described(guard, memory.dtype, memory.shape, memory.strides)


def _described(guard: BufferGuard, number: int, shape: ShapeLike | None,
               strides: ShapeLike | None) -> BufferGuard:
    if shape is not None and number:
        try:
            guard.describe_tensor(number, shape, strides)
        except BaseException:
            guard.release()
            raise
    return guard


def _memory(source: Any, nbytes: int | None) -> _Memory:
    """Get the memory of an object."""
    if isinstance(source, int):
        if nbytes is None:
            raise TypeError("an address needs nbytes")
        return _Memory(source, nbytes, None, 0, None, None, None)
    if nbytes is not None:
        raise TypeError("nbytes is for an address; an array says itself how long it is")
    interface = getattr(source, "__cuda_array_interface__", None)
    if interface is not None:
        return _of_interface(source, interface)
    if hasattr(source, "__dlpack__"):
        return _of_dlpack(source)
    raise TypeError(f"{type(source).__name__} is not an array on a GPU: it has neither "
                    f"__cuda_array_interface__ nor __dlpack__")


def _of_interface(source: Any, interface: dict[str, Any]) -> _Memory:
    if interface.get("mask") is not None:
        raise ValueError("an array with a mask cannot be shared")
    typestr = interface["typestr"]
    item = int(typestr[2:])
    try:
        number = dtypes.number(_TYPES[typestr])
    except KeyError:
        if typestr[0] == ">":
            raise ValueError(f"elements of type {typestr} have the other byte order") from None
        number = 0              # such as records: bytes
    shape = tuple(interface["shape"])
    strides = interface.get("strides")
    nbytes = _span(shape, strides, item)
    return _Memory(interface["data"][0], nbytes, shape, number,
                   strides and tuple(strides), interface.get("stream"), source)


def _of_dlpack(source: Any) -> _Memory:
    device_type = int(source.__dlpack_device__()[0])
    if device_type not in _DEFAULT_STREAMS:
        raise ValueError(f"the array is on no GPU: its device type is {device_type} in DLPack")
    stream = _DEFAULT_STREAMS[device_type]
    try:
        capsule = source.__dlpack__(stream=stream, max_version=(1, 0))
    except TypeError:           # from before DLPack 1.0
        capsule = source.__dlpack__(stream=stream)
    ptr, _, _, number, shape, steps = _core.dlpack_look(capsule)
    if number not in dtypes.NAMES:
        raise TypeError(f"elements of DLPack's type {number:#x} cannot be shared")
    item = dtypes.item_bytes(number)
    strides = None if steps is None else tuple(step * item for step in steps)
    return _Memory(ptr, _span(shape, strides, item), shape, number, strides, 0, capsule)


def _span(shape: tuple[int, ...], strides: tuple[int, ...] | None, item: int) -> int:
    """Bytes from the first element to the end of the last one."""
    if 0 in shape:
        return 0
    if strides is None:
        for length in shape:
            item *= length
        return item
    if any(stride < 0 for stride in strides):
        raise ValueError("an array with negative strides cannot be shared: make it contiguous")
    return sum((length - 1) * stride for length, stride in zip(shape, strides)) + item


_TYPES = {"|b1": "bool", "|i1": "int8", "|u1": "uint8"}
_TYPES.update({f"<{kind}{size}": f"{name}{8 * size}"
               for kind, name, sizes in (("i", "int", (2, 4, 8)), ("u", "uint", (2, 4, 8)),
                                         ("f", "float", (2, 4, 8)), ("c", "complex", (8, 16)))
               for size in sizes})
