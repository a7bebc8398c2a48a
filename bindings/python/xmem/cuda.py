# SPDX-License-Identifier: MIT
"""Buffers on GPUs: the part of BufferGuard that is about them, and which GPUs there are.

A stream is an int (a CUstream or cudaStream_t; 0 is the default stream), or an object of cuda.core
(``__cuda_stream__``), CuPy (``ptr``), PyTorch (``cuda_stream``) or numba (``handle``). None means
that nothing is ordered on a stream.
"""
from __future__ import annotations

import atexit
import errno
from typing import NamedTuple, Self

from . import _core, dtypes
from ._core import CudaDeviceInfo, CudaInfo
from .errors import NoDevice

CPU = -1        # as a device: memory of the CPU

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

    def copy_to_cuda(self, device_id: int, *, timeout: float | None = None) -> Self:
        """Copy the contents into a new guard of this pool on a GPU, which is being written.

        The new guard gets the description of the contents, too. This guard stays as it is. If a
        stream has yet to write into this guard's contents, what it writes is copied only if they
        were published on that stream.
        timeout: as of acquire_cuda. Raises what acquire_cuda and copy_from raise.
        """
        if device_id < 0:
            raise NoDevice(errno.ENODEV, f"there is no GPU {device_id}")
        return self.pool._copied(self, device_id, timeout)

    def copy_to_cpu(self, *, timeout: float | None = None) -> Self:
        """Copy the contents into a new guard of this pool in memory of the CPU, being written.

        All else is as in copy_to_cuda. Raises what acquire_cpu and copy_from raise.
        """
        return self.pool._copied(self, CPU, timeout)

    def copy_to_device(self, device_id: int, *, timeout: float | None = None) -> Self:
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
