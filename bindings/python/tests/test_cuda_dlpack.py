# SPDX-License-Identifier: MIT
"""Contents on GPUs by DLPack: their device, the order with streams, and the owner of the buffer."""
from __future__ import annotations

import ctypes
from typing import Any, Iterator

import numpy
import pytest

import xmem
from gpu import LIMIT, Stream, driver, needs_gpu, new_name, no_violations  # noqa: F401

pytestmark = needs_gpu
NUMBERS = numpy.arange(24, dtype="f4").reshape(4, 6)


@pytest.fixture
def pool() -> Iterator[xmem.BufferPool]:
    with xmem.BufferPool(new_name(), writer=True) as pool:
        pool.preallocate_cuda(4096, 1)
        yield pool


def filled(pool: xmem.BufferPool) -> xmem.BufferGuard:
    guard = pool.acquire_cuda(NUMBERS.shape, dtype="float32", timeout=LIMIT)
    guard.copy_from_host(NUMBERS)
    return guard


class Consumer:
    """A consumer that takes a versioned capsule, and calls its deleter at its own end."""

    def __init__(self, capsule: Any) -> None:
        api = ctypes.pythonapi
        api.PyCapsule_GetPointer.restype = ctypes.c_void_p
        api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
        api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
        self.at = api.PyCapsule_GetPointer(capsule, b"dltensor_versioned")
        assert api.PyCapsule_SetName(capsule, b"used_dltensor_versioned") == 0
        words = (ctypes.c_uint64 * 12).from_address(self.at)
        self.deleter, self.flags, self.ptr = words[2], words[3], words[4]
        self.device = (words[5] & 0xffffffff, words[5] >> 32)

    def drop(self) -> None:
        """Without the GIL, as the threads of a library do it."""
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.deleter)(self.at)


def test_a_capsule_is_the_contents(pool: xmem.BufferPool) -> None:
    guard = filled(pool)
    assert guard.__dlpack_device__() == (2, 0)
    written = Consumer(guard.__dlpack__(max_version=(1, 0), stream=-1))
    assert (written.ptr, written.flags, written.device) == (guard.cuda_ptr_mut, 0, (2, 0))
    written.drop()
    guard.publish(keep=True)
    read = Consumer(guard.__dlpack__(max_version=(1, 0), stream=-1))
    assert (read.ptr, read.flags) == (guard.cuda_ptr, 1)        # and says that it is read-only
    with pytest.raises(BufferError, match="read-only"):
        guard.__dlpack__(stream=-1)
    with pytest.raises(ValueError):
        guard.__dlpack__(max_version=(1, 0), stream=0)
    read.drop()


def test_the_capsule_keeps_the_buffer(pool: xmem.BufferPool) -> None:
    guard = filled(pool)
    guard.publish(keep=True)
    kept = Consumer(guard.__dlpack__(max_version=(1, 0), stream=-1))
    guard.release()
    del guard
    with pytest.raises(xmem.WouldBlock):
        pool.acquire_cuda(64, timeout=0)
    assert driver().read(kept.ptr, NUMBERS.nbytes) == NUMBERS.tobytes()
    kept.drop()
    pool.acquire_cuda(64, timeout=LIMIT).release()


def test_the_consumers_stream_waits_for_the_contents(pool: xmem.BufferPool) -> None:
    writer, reader = Stream(), Stream()
    guard = pool.acquire_cuda((4096,), dtype="uint8")
    guard.wait_on(writer)
    writer.close_gate()
    writer.fill(guard.cuda_ptr_mut, 4, 4096)
    guard.publish(keep=True, stream=writer)
    kept = Consumer(guard.__dlpack__(max_version=(1, 0), stream=reader.number))
    with pytest.raises(xmem.WouldBlock):
        guard.wait(0)
    writer.open_gate()
    reader.synchronize()
    guard.wait(0)               # what the stream has waited for
    assert driver().read(kept.ptr, 4096) == bytes([4]) * 4096
    kept.drop()


def test_numpy_gets_a_copy_if_it_asks_for_one(pool: xmem.BufferPool) -> None:
    if not hasattr(numpy, "from_dlpack") or int(numpy.__version__.split(".")[0]) < 2:
        pytest.skip("numpy before 2 asks for no device")
    with filled(pool) as guard:
        copy = numpy.from_dlpack(guard, device="cpu")
        assert (copy == NUMBERS).all()
        with pytest.raises((RuntimeError, BufferError)):
            numpy.from_dlpack(guard)


def test_a_guard_is_an_array_for_another_pool(pool: xmem.BufferPool) -> None:
    """It is held until the other pool's last user has closed it."""
    guard, done = filled(pool), []
    guard.publish(keep=True)
    with xmem.BufferPool(new_name(), writer=True) as other:
        attached = other.attach_cuda(guard, done=lambda: done.append(1))
        del guard
        attached.publish(keep=True)
        assert (numpy.asarray(attached.copy_to_host()) == NUMBERS).all()
        with pytest.raises(xmem.WouldBlock):
            pool.acquire_cuda(64, timeout=0)
        attached.release()
        del attached
        while not done:
            other.collect()
        pool.acquire_cuda(64, timeout=LIMIT).release()


def test_copies_from_the_cpu_and_from_guards(pool: xmem.BufferPool) -> None:
    pool.preallocate_cpu(4096, 1)
    with filled(pool) as guard, pool.acquire_cpu(NUMBERS.shape, "float32") as cpu:
        cpu.copy_from(guard)                    # xmem_copy, from a GPU
        assert (numpy.asarray(cpu) == NUMBERS).all()
        numpy.asarray(cpu)[:] += 1
        guard.copy_from(cpu)
        assert (numpy.asarray(guard.copy_to_host()) == NUMBERS + 1).all()
        guard.copy_from(NUMBERS[:, ::-1])       # and an array whose rows do not lie so
        assert (numpy.asarray(guard.copy_to_host()) == NUMBERS[:, ::-1]).all()
