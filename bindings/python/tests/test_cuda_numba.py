# SPDX-License-Identifier: MIT
"""numba-cuda, cuda.core and CuPy with buffers on GPUs: as users of xmem's, and xmem of theirs.

Parts that need functions of the driver which tests/fakecuda does not have are tried on a GPU only.
test_cuda.py checks the rules of __cuda_array_interface__ for all libraries.
"""
from __future__ import annotations

import ctypes
import gc
import weakref
from multiprocessing.connection import Connection
from typing import Any, Iterator

import numpy
import pytest

import xmem
from gpu import LIMIT, Child, Stream, driver, driver_file, needs_gpu, new_name  # noqa: F401
from gpu import no_violations  # noqa: F401

pytest.importorskip("numba", reason="numba-cuda is not installed")
pytestmark = needs_gpu
ROWS, COLUMNS = 1024, 1024          # 4 MiB: no block is shared with another allocation


@pytest.fixture
def numba_cuda() -> Any:
    numba = pytest.importorskip("numba.cuda", reason="numba-cuda is not installed")
    ctypes.CDLL(driver_file(), ctypes.RTLD_GLOBAL)      # the one that numba finds by its name
    return numba


@pytest.fixture
def core() -> Any:
    core = pytest.importorskip("cuda.core", reason="cuda-core is not installed")
    ctypes.CDLL(driver_file(), ctypes.RTLD_GLOBAL)
    driver()
    core.Device(0).set_current()
    return core


@pytest.fixture
def pool() -> Iterator[xmem.BufferPool]:
    with xmem.BufferPool(new_name(), writer=True) as pool:
        pool.preallocate_cuda(count=3, shape=(ROWS, COLUMNS), dtype="float32", readers=True)
        yield pool


def table(number: int = 0) -> numpy.ndarray[Any, Any]:
    return numpy.arange(ROWS * COLUMNS, dtype="f4").reshape(ROWS, COLUMNS) + number


# ---- numba ----

def test_numba_writes_and_reads_a_guard(pool: xmem.BufferPool, numba_cuda: Any) -> None:
    guard = pool.acquire_cuda((ROWS, COLUMNS), dtype="float32")
    array = numba_cuda.as_cuda_array(guard)
    assert (array.shape, array.dtype) == ((ROWS, COLUMNS), numpy.float32)
    assert int(array.device_ctypes_pointer.value) == guard.cuda_ptr_mut     # no copy
    stream = numba_cuda.stream()
    source = numba_cuda.pinned_array((ROWS, COLUMNS), dtype="f4")
    source[:] = table(1)
    array.copy_to_device(source, stream=stream)
    token = guard.publish(stream=stream)
    with xmem.BufferPool(pool.name) as reader:
        got = reader.get(token)
        read = numba_cuda.as_cuda_array(got)
        assert (read.copy_to_host() == table(1)).all()
        assert (read[5:7, ::2].copy_to_host() == table(1)[5:7, ::2]).all()
        del read


def test_numba_keeps_what_it_has(pool: xmem.BufferPool, numba_cuda: Any) -> None:
    """Its array outlives the guard, the pool's handle and all that the writer does meanwhile."""
    with pool.acquire_cuda((ROWS, COLUMNS), dtype="float32") as guard:
        guard.copy_from_host(table(2))
        token = guard.publish(keep=True)
        reader = xmem.BufferPool(pool.name)
        got = reader.get(token)
    row = numba_cuda.as_cuda_array(got)[7]
    got.release()
    gone = weakref.ref(got)
    del got
    reader.close()
    for number in range(6):             # all other buffers go round
        with pool.acquire_cuda((ROWS, COLUMNS), dtype="float32", timeout=LIMIT) as other:
            other.copy_from_host(table(100 + number))
            other.publish()
    assert gone() is not None and (row.copy_to_host() == table(2)[7]).all()
    del row, reader
    gc.collect()
    assert gone() is None
    guards = [pool.acquire_cuda(4, timeout=LIMIT) for _ in range(3)]
    for each in guards:
        each.release()


def test_numba_waits_for_contents_on_its_stream(pool: xmem.BufferPool, numba_cuda: Any) -> None:
    writer, stream = Stream(), numba_cuda.stream()
    guard = pool.acquire_cuda((ROWS, COLUMNS), dtype="uint8")
    guard.wait_on(writer)
    writer.close_gate()
    writer.fill(guard.cuda_ptr_mut, 6, ROWS * COLUMNS)
    guard.publish(keep=True, stream=writer)
    guard.wait_on(stream)
    assert guard.__cuda_array_interface__["stream"] == int(stream)
    array = numba_cuda.as_cuda_array(guard, sync=False)
    to = numba_cuda.pinned_array((ROWS, COLUMNS), dtype="u1")
    array.copy_to_host(to, stream=stream)
    with pytest.raises(xmem.WouldBlock):
        guard.wait(0)
    writer.open_gate()
    stream.synchronize()
    assert (to == 6).all()
    guard.release(stream=stream)


def test_an_array_of_numbas_is_shared(numba_cuda: Any) -> None:
    with xmem.BufferPool(new_name(), writer=True) as pool:
        array = numba_cuda.to_device(table(3))
        gone, done = weakref.ref(array), []
        guard = pool.attach_cuda(array, readers=True, done=lambda: done.append(gone() is not None))
        assert (guard.shape, guard.dtype) == ((ROWS, COLUMNS), "float32")
        assert guard.cuda_ptr == int(array.device_ctypes_pointer.value)
        del array
        with Child(read_with_numba, pool.name, guard.publish(keep=True)) as other:
            assert other.hear() == float(table(3).sum(dtype="f8"))
            guard.release()
            del guard
            pool.collect()
            assert not done and gone() is not None      # it has it open
            other.tell("close it")
            other.end()
        while not done:
            pool.collect()
        assert done == [True]
        gc.collect()
        assert gone() is None
        numba_cuda.current_context().deallocations.clear()


def read_with_numba(pipe: Connection, name: str, token: int) -> None:
    import numba.cuda
    ctypes.CDLL(driver_file(), ctypes.RTLD_GLOBAL)
    with xmem.BufferPool(name) as pool:
        array = numba.cuda.as_cuda_array(pool.get(token))
        pipe.send(float(array.copy_to_host().sum(dtype="f8")))
        pipe.recv()
        del array


def test_a_part_of_an_array_of_numbas(numba_cuda: Any) -> None:
    """Each second column, and from a row on that begins at a multiple of 64 bytes."""
    with xmem.BufferPool(new_name(), writer=True) as pool:
        array = numba_cuda.to_device(table(4))
        guard = pool.attach_cuda(array[16:20, ::2])
        assert (guard.shape, guard.strides) == ((4, COLUMNS // 2), (4 * COLUMNS, 8))
        guard.publish(keep=True)
        assert (numpy.asarray(guard.copy_to_host()) == table(4)[16:20, ::2]).all()
        with pytest.raises(ValueError, match="negative"):
            pool.attach_cuda(_Reversed(array))
        guard.release()
        del guard, array
    numba_cuda.current_context().deallocations.clear()


class _Reversed:
    def __init__(self, array: Any) -> None:
        self.__cuda_array_interface__ = dict(array.__cuda_array_interface__, strides=(-4096, 4))


def test_numba_as_a_stage(pool: xmem.BufferPool, numba_cuda: Any) -> None:
    """From one buffer into the next, on the GPU, and forgotten by all at the end."""
    with pool.acquire_cuda((ROWS, COLUMNS), dtype="float32") as first:
        first.copy_from_host(table(5))
        first.publish(keep=True)
        stream = numba_cuda.stream()
        with pool.acquire_cuda((ROWS, COLUMNS), dtype="float32") as second:
            first.wait_on(stream)
            second.wait_on(stream)
            numba_cuda.as_cuda_array(second, sync=False).copy_to_device(
                numba_cuda.as_cuda_array(first, sync=False), stream=stream)
            token = second.publish(stream=stream)
            kept = pool.get(token)
        first.release(stream=stream)
    del first, second
    assert (numpy.asarray(kept.copy_to_host()) == table(5)).all()
    kept.release()


# ---- cuda.core ----

def test_cuda_core_views_a_guard(pool: xmem.BufferPool, core: Any) -> None:
    from cuda.core.utils import StridedMemoryView
    with pool.acquire_cuda((ROWS, COLUMNS), dtype="float32") as guard:
        view = StridedMemoryView.from_cuda_array_interface(guard, stream_ptr=-1)
        assert (view.ptr, view.shape, view.readonly) == (guard.cuda_ptr, (ROWS, COLUMNS), False)
        guard.publish(keep=True)
        view = StridedMemoryView.from_cuda_array_interface(guard, stream_ptr=-1)
        assert (view.ptr, view.readonly, view.device_id) == (guard.cuda_ptr, True, 0)
        assert view.dtype == numpy.float32 and view.exporting_obj is guard
        view = StridedMemoryView.from_any_interface(guard, stream_ptr=-1)
        assert (view.ptr, view.readonly, view.is_device_accessible) == (guard.cuda_ptr, True, True)


def test_streams_of_cuda_core(pool: xmem.BufferPool, core: Any) -> None:
    stream = core.Device(0).create_stream()
    guard = pool.acquire_cuda((64,), dtype="uint8")
    guard.wait_on(stream)
    core.Buffer.from_handle(guard.cuda_ptr_mut, 64).fill(9, stream=stream)
    token = guard.publish(stream=stream)
    got = pool.get(token)
    got.wait_on(stream)
    assert got.__cuda_array_interface__["stream"] == int(stream.handle)
    assert bytes(got.copy_to_host()) == bytes([9]) * 64
    got.release(stream=stream)
    stream.sync()


def test_a_buffer_of_cuda_cores_is_shared(core: Any) -> None:
    """By DLPack: what comes of an exportable pool ends with this client."""
    stream = core.Device(0).create_stream()
    options = core.DeviceMemoryResourceOptions(max_size=1 << 24, ipc_enabled=True)
    resource = core.DeviceMemoryResource(core.Device(0), options=options)
    buffer = resource.allocate(1 << 16, stream=stream)
    buffer.fill(3, stream=stream)
    stream.sync()
    done: list[int] = []
    with xmem.BufferPool(new_name(), writer=True) as pool:
        guard = pool.attach_cuda(buffer, done=lambda: done.append(1))
        assert guard.nbytes == 1 << 16 and guard.cuda_ptr == int(buffer.handle)
        guard.publish(keep=True)
        assert bytes(guard.copy_to_host().cast("B")) == bytes([3]) * (1 << 16)
        guard.release()
        del guard
        while not done:
            pool.collect()
    buffer.close(stream)
    stream.sync()


def test_what_cuda_core_cannot_share(core: Any) -> None:
    """Its default pool is not exportable, which the text says, and what to do."""
    stream = core.Device(0).create_stream()
    buffer = core.Device(0).allocate(4096, stream=stream)
    with xmem.BufferPool(new_name(), writer=True) as pool:
        with pytest.raises(xmem.Error, match="copy it into a buffer") as caught:
            pool.attach_cuda(buffer)
        assert (caught.value.cuda_result or "").startswith("CUDA_ERROR")
    buffer.close(stream)
    stream.sync()


# ---- CuPy ----

def test_cupy_reads_and_writes_a_guard(pool: xmem.BufferPool) -> None:
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    ctypes.CDLL(driver_file(), ctypes.RTLD_GLOBAL)
    try:
        cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        pytest.skip(f"NVIDIA's runtime library, which CuPy uses, wants a genuine driver: {error}")
    guard = pool.acquire_cuda((ROWS, COLUMNS), dtype="float32")
    stream = cupy.cuda.Stream(non_blocking=True)
    guard.wait_on(stream)
    with stream:
        array = cupy.asarray(guard)
        assert array.data.ptr == guard.cuda_ptr_mut
        array[:] = cupy.asarray(table(6)) + 1
    got = pool.get(guard.publish(stream=stream))
    assert (cupy.asnumpy(cupy.asarray(got)) == table(7)).all()
    memory = cupy.cuda.Memory(ROWS * COLUMNS * 4)
    made = cupy.ndarray((ROWS, COLUMNS), "f4", cupy.cuda.MemoryPointer(memory, 0))
    made[:] = 5
    attached = pool.attach_cuda(made)
    attached.publish(keep=True)
    assert (numpy.asarray(attached.copy_to_host()) == 5).all()
