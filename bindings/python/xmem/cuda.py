# SPDX-License-Identifier: MIT
"""Buffers on GPUs: what BufferPool and BufferGuard have for them, and what GPUs there are.

A stream is an int (a CUstream or cudaStream_t; 0 is the default stream), or an object of cuda.core
(``__cuda_stream__``), CuPy (``ptr``), PyTorch (``cuda_stream``) or numba (``handle``). None means
that nothing is ordered on a stream.
"""
from __future__ import annotations

import atexit
import errno
from typing import TYPE_CHECKING, Any, Callable, NamedTuple

from . import _core, dtypes, holders, unread
from ._constants import MemoryFlags
from ._core import CudaDeviceInfo, CudaInfo
from .arguments import made, wanted
from .errors import Error, NoDevice, NoSpace, TimedOut, WouldBlock
from .typing import CudaArrayLike, DTypeLike, ShapeLike

if TYPE_CHECKING:
    from .guard import BufferGuard
    from .unread import Sent

_, _SEALED, _CUDA, _READERS, _LEGACY = (int(flag) for flag in MemoryFlags)
_CPU = -1               # as a device: memory of the CPU
_DLPACK_CUDA = 2
_TOGETHER = 16 << 20    # on demand make so many bytes of buffers at once, but at least one buffer
_MOST = 8               # and at most so many buffers
_LEGACY_STREAM = 1      # as DLPack and the CUDA array interface count

atexit.register(_core.end_later)


# ---- what is there ----

def cuda_info() -> CudaInfo:
    """Find the driver, and say what it is.

    Raises NoDevice, whose text says why there is no GPU; Forked in the child of a process that
    has used the driver.
    """
    return _core.cuda_query()


def gpus() -> list[CudaDeviceInfo]:
    """Get the GPUs that this process sees; none where there is no driver or no GPU.

    Why there is none, cuda_info() says. Raises Error where the driver fails otherwise.
    """
    try:
        count = cuda_info().devices
    except NoDevice:
        return []
    return [gpu(number) for number in range(count)]


def gpu(device_id: int) -> CudaDeviceInfo:
    """Get what is known of one GPU. Raises NoDevice, also if there is none of that number."""
    return _core.cuda_device_query(device_id)


def cuda_last_result(*, forget: bool = True) -> tuple[int, str] | None:
    """Get the number and name of this thread's last failed call of the driver.

    None: none has failed since it was last forgotten. What an exception is about, its cuda_result
    says; this is for results that ended in none.
    """
    result = _core.cuda_last_result()
    if forget:
        _core.clear_last_error()
    return result


def cuda_clear_last_result() -> None:
    """Forget this thread's last result."""
    _core.clear_last_error()


# ---- the pool ----

class _Memory(NamedTuple):
    """Memory of somebody else's, as its interface describes it."""

    ptr: int
    nbytes: int
    shape: tuple[int, ...] | None
    dtype: int              # 0: bytes
    strides: tuple[int, ...] | None
    stream: int | None      # on which its contents are complete
    kept: Any               # what the memory belongs to


class CudaPool(_core.Pool):
    """What BufferPool has for GPUs."""

    options: dict[str, Any]     #: what it was opened with: the arguments but the name
    _sent: dict[int, Sent]      # by slot: which message is the first that may wait (unread.py)
    _preallocated: set[int]     # on which GPUs the program has made buffers itself

    def preallocate_cuda(self, size: int | ShapeLike | None = None, count: int | None = None,
                         device_id: int = 0, *,
                         shape: ShapeLike | None = None, dtype: DTypeLike | None = None,
                         readers: bool = False, legacy: bool = False,
                         sealed: bool = False) -> list[int]:
        """Make count buffers in the memory of a GPU, and return the list of their meta_index.

        size: bytes of each buffer. With shape and dtype instead, each has room for such a tensor.
        device_id: this process's number of the GPU. readers: readers of the pool get the memory,
        too, which whoever opens it can write. legacy: by the driver's IPC handles, also where
        there are descriptors. sealed: nobody writes them in place (get_mut); nor does anybody
        what goes by handles.
        From then on acquire_cuda() makes none on that GPU.
        Raises NoDevice, NotPermitted (a reader), NoSpace, Limit, Error (ENOMEM: the GPU is full;
        EOPNOTSUPP: it cannot share memory; EMEDIUMTYPE: the host refuses this driver).
        """
        flags = (_CUDA | bool(readers) * _READERS | bool(legacy) * _LEGACY |
                 bool(sealed) * _SEALED)
        slots = self._preallocate(*made(size, count, shape, dtype), flags, device_id)
        self._preallocated.add(device_id)
        return slots

    def acquire_cuda(self, size: int | ShapeLike | None = None, device_id: int = 0,
                     dtype: DTypeLike | None = None, *, shape: ShapeLike | None = None,
                     timeout: float | None = None) -> BufferGuard:
        """Acquire a buffer on a GPU to write into, as acquire_cpu does for memory of the CPU.

        If this writer has preallocated no buffers on that GPU, and none that is large enough is
        free, the call makes new ones. They stay this writer's own for later acquires, until trim().
        Raises what acquire_cpu raises; NoDevice; and, if it makes some, what preallocate_cuda
        raises.
        """
        total, shape, number = wanted(size, shape, dtype)
        guard = self._explained(total, device_id, timeout,
                                lambda wait: self._cuda_acquire(total, device_id, wait))
        return _described(guard, number, shape, None)

    def _copied(self, guard: CudaGuard, device_id: int, timeout: float | None) -> BufferGuard:
        return self._explained(guard.nbytes or 1, device_id, timeout,
                               lambda wait: self._copy_of(guard, device_id, wait))

    def _explained(self, size: int, device_id: int, timeout: float | None,
                   acquire: Callable[[float | None], BufferGuard]) -> BufferGuard:
        try:
            if device_id == _CPU:
                return acquire(timeout)
            return self._acquire_or_make(size, device_id, timeout, acquire)
        except (TimedOut, WouldBlock) as error:
            unread.explain(error, self)
            if isinstance(error, TimedOut):
                error.holders = holders.if_known(self)
            raise

    def _acquire_or_make(self, size: int, device_id: int, timeout: float | None,
                         acquire: Callable[[float | None], BufferGuard]) -> BufferGuard:
        if not size or device_id in self._preallocated or self.options["demand_bytes"] is None:
            return acquire(timeout)
        try:
            return acquire(0)
        except (NoSpace, WouldBlock) as error:
            # Memory goes by blocks, and what a subscriber has yet to receive needs some, too.
            count = min(max(_TOGETHER // size, 1), _MOST)
            try:
                self._preallocate(size, count, _CUDA, device_id)
            except Error:
                if isinstance(error, NoSpace):
                    raise
        return acquire(timeout)

    def attach_cuda(self, source: int | CudaArrayLike, nbytes: int | None = None, *,
                    readers: bool = False,
                    done: Callable[[], object] | None = None) -> BufferGuard:
        """Make a buffer of memory of a GPU that is there already, without copying it.

        source: an array of a library (``__cuda_array_interface__`` or DLPack), whose shape and
        type the buffer gets; or an address as an int, with nbytes. It is kept, and its contents
        stay as they are, until nobody can look at them any more; then done() is called.
        What a stream has yet to write publish() waits for, on that stream.

        The memory has to be from cudaMalloc, or exportable (see xmem_attach_cuda(3)); others get
        the whole allocation that it lies in. The buffer is for one content.

        done runs in some thread, a moment after the library has found it out: at the end of a
        call of close(), collect(), trim() or attach_cuda(), or in the main thread. It may call
        anything. An exception of it goes to sys.unraisablehook. It is not called any more when
        the interpreter ends.
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
    """Where the memory of an object is."""
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
    raise TypeError(f"{type(source).__name__} is no array of a GPU: it has neither "
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
    if device_type != _DLPACK_CUDA:
        raise ValueError(f"the array is on no GPU: its device type is {device_type} in DLPack")
    try:
        capsule = source.__dlpack__(stream=_LEGACY_STREAM, max_version=(1, 0))
    except TypeError:           # from before DLPack 1.0
        capsule = source.__dlpack__(stream=_LEGACY_STREAM)
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


# ---- the guard ----

class CudaTensor(NamedTuple):
    """A tensor on a GPU that has been checked: all elements lie within the contents."""

    ptr: int                    #: the device address of the first element
    dtype: str                  #: its elements, by name
    shape: tuple[int, ...]
    strides: tuple[int, ...]    #: bytes


class CudaPlane(NamedTuple):
    """One plane of an image on a GPU."""

    ptr: int            #: the device address of the first row
    stride: int         #: bytes from one row to the next
    row_bytes: int      #: of pixels in each row
    rows: int


class CudaImage(NamedTuple):
    """An image on a GPU that has been checked: all rows lie within the contents."""

    format: int         #: XMEM_IMAGE_*
    width: int          #: pixels
    height: int
    planes: tuple[CudaPlane, ...]


class CudaGuard(_core.Guard):
    """What BufferGuard has for GPUs.

    Beside what is here: is_cuda, device_id, cuda_ptr (the device address of the contents, for
    reading), cuda_ptr_mut (for writing). The first look at an address opens the memory, and waits
    until the contents are complete unless wait_on() has ordered that; it raises OwnerDead where
    they are lost, and NotPermitted where only writers get them.

    copy_from_host(source, offset=0, *, stream=None): copy the bytes of a buffer of the CPU, such as
        bytes or a numpy array, into this buffer, which is being written, on the CPU or a GPU.
    copy_to_host(out=None, offset=0, nbytes=None, *, stream=None): copy the contents into out, a
        writable buffer of the CPU, as many bytes as that has, and return it. Without out they come
        in new memory: a memoryview with their shape and type (flat bytes if they are a part, or if
        Python has no such type).
    copy_to(to, to_offset=0, offset=0, nbytes=None, *, stream=None): copy the contents into the
        guard to. Each of the two is on the CPU or a GPU.
    Offsets and nbytes count bytes. Without a stream what is copied is there at the return. With
    one it is there when that has got so far: until then the caller keeps the memory of the CPU,
    also a guard there, and drops a guard that is read by release(stream=).

    wait(timeout=None): wait in this thread until the contents are complete.
    wait_on(stream): let a stream wait for that.
    publish(stream=): the contents are what has been put into that stream so far.
    release(stream=): the buffer is held until the stream has done what is in it.

    Consumers of __cuda_array_interface__ (numba, CuPy, ...) keep this object, and so its handle,
    also after release() or publish(): the buffer is given back when both are gone. Give them
    clone_ref() where the guard itself lives for longer. The interface's stream is that of the last
    wait_on() or copy, which consumers wait for.
    """

    __slots__ = ()

    def copy_to_cuda(self, device_id: int, *, timeout: float | None = None) -> BufferGuard:
        """Copy the contents into a new guard of this pool on a GPU, which is being written.

        The new guard gets the description of the contents, too. This guard stays as it is. If a
        stream has yet to write into this guard's contents, what it writes is copied only if they
        were published on that stream.
        timeout: as of acquire_cuda. Raises what acquire_cuda and copy_from raise.
        """
        if device_id < 0:
            raise NoDevice(errno.ENODEV, f"there is no GPU {device_id}")
        return self.pool._copied(self, device_id, timeout)

    def copy_to_cpu(self, *, timeout: float | None = None) -> BufferGuard:
        """Copy the contents into a new guard of this pool in memory of the CPU, being written.

        All else is as in copy_to_cuda. Raises what acquire_cpu and copy_from raise.
        """
        return self.pool._copied(self, _CPU, timeout)

    def copy_to_device(self, device_id: int, *, timeout: float | None = None) -> BufferGuard:
        """Copy the contents into a new guard on this GPU or another one, as copy_to_cuda does."""
        return self.copy_to_cuda(device_id, timeout=timeout)

    def cuda_tensor(self) -> CudaTensor:
        """Get the tensor that the contents are, as their publisher says, checked.

        Raises Error: ENODATA if nobody has said what they are, EBADMSG or ERANGE if what is said
        is impossible; and as cuda_ptr.
        """
        ptr, number, shape, strides = self._cuda_tensor_view()
        return CudaTensor(ptr, dtypes.NAMES.get(number, f"dtype {number:#x}"), shape, strides)

    def cuda_image(self) -> CudaImage:
        """Get the image that the contents are. Raises as cuda_tensor()."""
        form, width, height, planes = self._cuda_image_view()
        return CudaImage(form, width, height, tuple(CudaPlane(*plane) for plane in planes))
