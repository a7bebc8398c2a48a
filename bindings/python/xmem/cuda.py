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

CPU = -1        # the number that stands for the CPU

atexit.register(_core.end_later)


# ---- what is there ----

def cuda_info() -> CudaInfo:
    """Find the driver and describe it.

    Raises NoDevice, whose text says why there is no GPU; Forked in the child of a process that
    has used the driver.
    """
    return _core.cuda_query()


def gpus() -> list[CudaDeviceInfo]:
    """Get the GPUs that this process sees; an empty list without a driver or a GPU.

    cuda_info() says why there is none. Raises Error if the driver fails otherwise.
    """
    try:
        count = cuda_info().devices
    except NoDevice:
        return []
    return [gpu(number) for number in range(count)]


def gpu(device_id: int) -> CudaDeviceInfo:
    """Get information about one GPU. Raises NoDevice, also if there is none of that number."""
    return _core.cuda_device_query(device_id)


def cuda_last_result(*, forget: bool = True) -> tuple[int, str] | None:
    """Get the number and name of this thread's last failed call of the driver.

    None: no call has failed since the last result was forgotten. An exception has its own result
    in cuda_result; this function is for results that led to no exception.
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

    A guard also has is_cuda, device_id, cuda_ptr (the device address of the contents, for reading)
    and cuda_ptr_mut (for writing). The first look at an address opens the memory, and waits until
    the contents are complete, unless wait_on() has ordered that. It raises OwnerDead if the
    contents are lost, and NotPermitted if only writers get them.

    copy_from_host(source, offset=0, *, stream=None): copy the bytes of a buffer of the CPU, such as
        bytes or a numpy array, into this buffer, which is being written, on the CPU or a GPU.
    copy_to_host(out=None, offset=0, nbytes=None, *, stream=None): copy the contents into out, a
        writable buffer of the CPU, as many bytes as out has, and return it. Without out, return
        new memory: a memoryview with their shape and type (flat bytes if only a part is copied, or
        if Python has no such type).
    copy_to(to, to_offset=0, offset=0, nbytes=None, *, stream=None): copy the contents into the
        guard `to`. Each of the two guards is on the CPU or a GPU.
    Offsets and nbytes count bytes. Without a stream, the copy is complete at the return. With a
    stream, it is complete once the stream has done its work so far. Until then the caller keeps
    the memory of the CPU, or the guard there, and drops a guard that is read only by
    release(stream=).

    wait(timeout=None): wait in this thread until the contents are complete.
    wait_on(stream): let a stream wait until the contents are complete.
    publish(stream=): the contents are complete once the stream has done its work so far.
    release(stream=): the buffer is held until the stream has done its work so far.

    Consumers of __cuda_array_interface__ (numba, CuPy, ...) keep this object, and so its handle,
    also after release() or publish(): the buffer is given back when the guard is released and the
    consumer is gone. If the guard lives longer than that, give them clone_ref(). The interface's
    stream, for which consumers wait, is that of the last wait_on() or copy.
    """

    __slots__ = ()

    def copy_to_cuda(self, device_id: int, *, timeout: float | None = None) -> Self:
        """Copy the contents into a new guard of this pool on a GPU, which is being written.

        The new guard also gets the description of the contents. This guard stays as it is. If a
        stream has yet to write this guard's contents, the copy waits for it only if they were
        published on that stream.
        timeout: as of acquire_cuda. Raises what acquire_cuda and copy_from raise.
        """
        if device_id < 0:
            raise NoDevice(errno.ENODEV, f"there is no GPU {device_id}")
        return self.pool._copied(self, device_id, timeout)

    def copy_to_cpu(self, *, timeout: float | None = None) -> Self:
        """Copy the contents into a new guard of this pool on the CPU, which is being written.

        Otherwise as copy_to_cuda. Raises what acquire_cpu and copy_from raise.
        """
        return self.pool._copied(self, CPU, timeout)

    def copy_to_device(self, device_id: int, *, timeout: float | None = None) -> Self:
        """Copy the contents into a new guard on this GPU or another one, as copy_to_cuda does."""
        return self.copy_to_cuda(device_id, timeout=timeout)

    def cuda_tensor(self) -> CudaTensor:
        """Get the tensor that the contents are, by the publisher's description, which is checked.

        Raises Error: ENODATA if they are not described, EBADMSG or ERANGE if the description is
        impossible; and as cuda_ptr.
        """
        ptr, number, shape, strides = self._cuda_tensor_view()
        return CudaTensor(ptr, dtypes.NAMES.get(number, f"dtype {number:#x}"), shape, strides)

    def cuda_image(self) -> CudaImage:
        """Get the image that the contents are. Raises as cuda_tensor()."""
        form, width, height, planes = self._cuda_image_view()
        return CudaImage(form, width, height, tuple(CudaPlane(*plane) for plane in planes))
