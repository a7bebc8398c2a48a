# SPDX-License-Identifier: MIT
"""Arrays, GPUs and what is known of pools, as camera.py: judged line by line, and not run."""

from typing import Any, assert_type

import numpy

import xmem
from xmem.typing import ArrayLike, DTypeLike, ShapeLike, StreamLike


class Stream:
    """A library's stream, as cuda.core has it."""

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, 1


def arrays(pool: xmem.BufferPool, picture: numpy.ndarray[Any, Any]) -> int:
    pool.acquire_cpu((2, 3), numpy.float32)
    pool.acquire_cpu([2, 3], numpy.dtype("int8"))
    pool.acquire_cpu(shape=(4,), dtype=float)
    guard = pool.acquire_cpu(picture.shape, picture.dtype)
    assert_type(guard.copy_from(picture), int)
    assert_type(guard.copy_from(b"abc", offset=3), int)
    assert_type(guard.copy_from(memoryview(b"abc")), int)
    assert_type(guard.copy_from(pool.get(1)), int)
    assert_type(guard.tobytes(), bytes)
    assert_type(guard.shape, tuple[int, ...])
    assert_type(memoryview(guard), memoryview[int])
    numpy.asarray(guard)[:] = picture
    numpy.from_dlpack(guard)
    return guard.publish(keep=True)


def gpus(pool: xmem.BufferPool, array: numpy.ndarray[Any, Any], stream: StreamLike) -> None:
    for gpu in xmem.gpus():
        assert_type(gpu, xmem.CudaDeviceInfo)
        assert_type(gpu.uuid, bytes)
        if gpu.can & xmem.CudaCanFlags.EXPORT:
            pool.preallocate_cuda(count=2, shape=(4, 4), dtype="bfloat16", device_id=gpu.device_id)
        assert_type(pool.preallocate_cuda(4096, 8, gpu.device_id), list[int])
    guard = pool.acquire_cuda((4, 4), dtype="float32", timeout=0)
    guard.copy_from_host(array, stream=stream)
    guard.copy_from_host(b"abc", stream=0)
    guard.publish(keep=True, stream=Stream())
    guard.wait_on(Stream())
    assert_type(guard.copy_to_host(), memoryview)
    assert_type(guard.copy_to_host(array), numpy.ndarray[Any, Any])
    assert_type(guard.copy_to_host(bytearray(4), nbytes=4), bytearray)
    assert_type(guard.copy_to_cuda(device_id=0), xmem.BufferGuard)
    assert_type(guard.copy_to_cpu(), xmem.BufferGuard)
    assert_type(guard.cuda_tensor().dtype, str)
    assert_type(guard.image(), xmem.Image)
    assert_type(guard.image().planes, tuple[xmem.Plane, ...])
    assert_type(guard.image().planes[0].offset, int)
    assert_type(guard.cuda_image().planes, tuple[xmem.CudaPlane, ...])
    assert_type(pool.attach_cuda(guard), xmem.BufferGuard)
    assert_type(pool.attach_cuda(0x1000, 4096, done=lambda: None), xmem.BufferGuard)


def known(pool: xmem.BufferPool) -> None:
    assert_type(pool.preallocate_cpu(size=4096, count=8), list[int])
    assert_type(pool.get_mut(1).clone_ref(), xmem.BufferGuard)
    pool.set_ref_count(1, 2, lasts=None)
    assert_type(pool.stat().bytes, int)
    assert_type(pool.client_info(1).label, str)
    assert_type(pool.slot_info(1).state, int)
    assert_type(xmem.pools(), list[xmem.PoolEntry])
    assert_type(xmem.host().backend, str)
    assert_type(pool.get(1).metadata.shape, tuple[int, ...])
    assert_type(pool.reopen(), xmem.BufferPool)
    if pool.get(1).flags & xmem.BufferFlags.CUDA:
        pool.limbo_hook(lambda limbo: print(limbo.overdue), nbytes=1 << 30)


def wrapper(pool: xmem.BufferPool, shape: ShapeLike, dtype: DTypeLike, source: ArrayLike) -> int:
    guard = pool.acquire_cpu(shape, dtype)
    guard.copy_from(source)
    return guard.publish()


def mistakes(pool: xmem.BufferPool, guard: xmem.BufferGuard) -> None:
    pool.acquire_cpu((4, 4), 8)                     # type: ignore[arg-type]
    pool.acquire_cpu((4.0, 4.0), "uint8")           # type: ignore[arg-type]
    pool.acquire_cuda((4, 4), "float32")            # type: ignore[arg-type]
    pool.acquire_cpu(4096, 0.5)                     # type: ignore[arg-type]
    guard.copy_from("text")                         # type: ignore[arg-type]
    guard.copy_from([1, 2, 3])                      # type: ignore[arg-type]
    guard.copy_to_host([0] * 4)                     # type: ignore[call-overload]
    guard.publish(True)                             # type: ignore[call-arg]
    guard.publish(stream="default")                 # type: ignore[arg-type]
    guard.publish().release()                       # type: ignore[attr-defined]
    pool.attach_cuda(b"bytes of the CPU")           # type: ignore[arg-type]
    pool.limbo_hook(print, bytes=3)                 # type: ignore[call-arg]
    pool.stat().slots = 3                           # type: ignore[misc]
    pool.subscribe(3)                               # type: ignore[call-arg]
