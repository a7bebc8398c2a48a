# SPDX-License-Identifier: MIT
"""Consumers that write contents although these are marked as for reading.

The consumers here are C code, which takes the memory that a protocol gives and stores there.
Nobody else may see these stores, neither a reader nor the writer's own process, and no store may
end the process.
"""
from __future__ import annotations

import ctypes
import fcntl
import gc
import os
from pathlib import Path
from typing import Any, Callable

import numpy
import pytest
import views
import xmem
from test_waits import silent
from views import READ_ONLY, SLOTS, Tally, Tensor, Versioned, pool  # noqa: F401

SMALL, LARGE = 1 << 10, views.BYTES + 4096      # sizes that the library copies, and that it maps
SIMPLE, WRITABLE, FULL_RO = 0, 1, 0x11c
WORD = 0x5a


class View(ctypes.Structure):
    _fields_ = [("buf", ctypes.c_void_p), ("obj", ctypes.c_void_p), ("len", ctypes.c_ssize_t),
                ("itemsize", ctypes.c_ssize_t), ("readonly", ctypes.c_int),
                ("ndim", ctypes.c_int), ("format", ctypes.c_char_p),
                ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p),
                ("suboffsets", ctypes.c_void_p), ("internal", ctypes.c_void_p)]


# Not those of ctypes.pythonapi, whose types of arguments other tests set as well.
_get = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(View), ctypes.c_int)(
    ("PyObject_GetBuffer", ctypes.pythonapi))
_release = ctypes.PYFUNCTYPE(None, ctypes.POINTER(View))(("PyBuffer_Release", ctypes.pythonapi))


class Memory:
    """The state of a consumer: an address, and an object that keeps it."""

    def __init__(self, address: int, keeper: object) -> None:
        self.address, self.keeper = address, keeper

    def store(self) -> None:
        ctypes.memset(self.address, WORD, 64)

    def load(self) -> bytes:
        return ctypes.string_at(self.address, 64)


def legacy(guard: Any) -> Memory:
    """As PyTorch before 2.8, JAX and ONNX Runtime ask."""
    capsule = guard.__dlpack__()
    return Memory(views.Legacy.from_address(views.pointer(capsule, "dltensor")).tensor.data,
                  capsule)


def versioned(guard: Any, **more: Any) -> Memory:
    """As PyTorch asks, which ignores the flag."""
    capsule = guard.__dlpack__(max_version=(1, 0), **more)
    said = views.look(capsule)
    assert said.flags == READ_ONLY
    return Memory(said.tensor.data, capsule)


def uncopied(guard: Any) -> Memory:
    return versioned(guard, copy=False)


class Owned:
    """A tensor of the table, which its owner drops."""

    def __init__(self, tensor: Versioned) -> None:
        self.tensor = tensor

    def __del__(self) -> None:
        views.Owner(self.tensor.deleter)(ctypes.addressof(self.tensor))


def by_table(guard: Any) -> Memory:
    """As extensions ask that know DLPack's table of C functions."""
    capsule = type(guard).__dlpack_c_exchange_api__
    table = views.Exchange.from_address(views.pointer(capsule, "dlpack_exchange_api"))
    tensor = ctypes.POINTER(Versioned)()
    assert table.from_object(guard, ctypes.byref(tensor)) == 0
    return Memory(tensor.contents.tensor.data, Owned(tensor.contents))


def frombuffer(guard: Any) -> Memory:
    """As torch.frombuffer asks: it keeps the owner that the view names, and no view."""
    view = View()
    with pytest.raises(BufferError, match="read-only"):
        _get(guard, ctypes.byref(view), WRITABLE)
    _get(guard, ctypes.byref(view), SIMPLE)
    address, owner = view.buf, ctypes.cast(view.obj or 0, ctypes.py_object).value
    _release(ctypes.byref(view))
    assert address is not None
    return Memory(address, owner)


CONSUMERS = [legacy, versioned, uncopied, by_table, frombuffer]


@pytest.fixture(params=[SMALL, LARGE], ids=["small", "large"])
def contents(request: pytest.FixtureRequest) -> bytes:
    size: int = request.param
    return bytes(range(1, 65)) * (size // 64)


def frame_of(where: str, pool: xmem.BufferPool, reader: xmem.BufferPool, contents: bytes) -> Any:
    """Published contents, held by their writer or by a reader."""
    guard = pool.acquire_cpu(len(contents))
    memoryview(guard)[:] = contents
    guard.publish(keep=True)
    if where == "writer":
        return guard
    with guard:
        return reader.get(guard.token)


@pytest.mark.parametrize("where", ["writer", "reader"])
@pytest.mark.parametrize("take", CONSUMERS)
def test_a_store_into_what_is_for_reading(take: Callable[[Any], Memory], where: str,
                                          contents: bytes) -> None:
    name = views.name()
    with xmem.BufferPool(name, writer=True) as pool, xmem.BufferPool(name) as reader:
        frame = frame_of(where, pool, reader, contents)
        token = frame.token
        taken = take(frame)
        assert taken.load() == contents[:64]
        taken.store()
        assert taken.load() == bytes([WORD]) * 64
        for other in (pool, reader):
            with other.get(token) as again:
                assert bytes(again) == contents
        assert frame.tobytes() == contents and numpy.asarray(frame).tobytes() == contents
        # The memory stays with its consumer after the guard is gone, whatever other clients do.
        frame.release()
        for _ in range(2 * SLOTS):
            with pool.acquire_cpu(len(contents)) as guard:
                memoryview(guard)[:] = bytes(len(contents))
                guard.publish()
        taken.store()
        assert taken.load() == bytes([WORD]) * 64
        with pool.get(token) as again:
            assert bytes(again) == contents
        del frame, taken
        gc.collect()


@pytest.mark.parametrize("take", CONSUMERS)
def test_the_last_consumer_gives_the_buffer_back(take: Callable[[Any], Memory],
                                                 pool: Tally) -> None:
    frame: Any = pool.reader.get(pool.published(bytes(SMALL)))
    taken = take(frame)
    frame.release()
    del frame
    assert pool.free() == SLOTS - 1
    taken.store()
    del taken
    assert pool.free() == SLOTS


@pytest.mark.parametrize("where", ["writer", "reader"])
@pytest.mark.parametrize("take", CONSUMERS)
def test_the_guard_object_keeps_no_consumers_memory(take: Callable[[Any], Memory], where: str,
                                                    contents: bytes) -> None:
    with xmem.BufferPool(views.name(), writer=True) as pool:
        frame = frame_of(where, pool, pool, contents)
        with pool.get(frame.token) as again:
            taken = take(frame)
            frame.release()
            with pytest.raises(xmem.Error, match="holds"):
                again.get_mut()         # the consumer would see the contents change
            del taken
            gc.collect()
            again.get_mut()
        del frame                       # it was there all the time


@pytest.mark.parametrize("take", CONSUMERS)
def test_what_is_stored_is_one_consumers_and_outlives_the_handle(take: Callable[[Any], Memory],
                                                                 contents: bytes) -> None:
    with xmem.BufferPool(views.name(), writer=True) as pool:
        frame = frame_of("writer", pool, pool, contents)
        taken, other = take(frame), legacy(frame)
        taken.store()
        token = frame.token
        frame.forget()                  # the handle goes, and leaves its reference behind
        assert (taken.load(), other.load()) == (bytes([WORD]) * 64, contents[:64])
        with pool.get(token) as again:
            with pytest.raises(xmem.Error, match="alone|others|hold"):
                again.get_mut()         # these two see no change of the contents
        del taken, other


@pytest.mark.parametrize("keeper", ["frombuffer(guard).keeper", "guard.__dlpack__()",
                                    "guard.__arrow_c_array__()",
                                    "guard.__array_interface__['data']"])
def test_the_last_handle_of_a_closed_pool_keeps_no_thread_from_running(keeper: str,
                                                                       tmp_path: Path) -> None:
    """The call waits a second for a silent host. A thread that runs after that second proves
    nothing, so the scene is repeated."""
    silent(f"""
from test_careless import frombuffer

def drop():
    events.append("begins")
    keepers.clear()
    events.append("ends")

token = published(writer).token
sys.setswitchinterval(1000)         # only a thread that gives the GIL up lets another one run
for scene in range(100):
    events = []
    pool = xmem.BufferPool("x")
    guard = pool.get(token)
    keepers = [{keeper}]
    guard.release()
    del guard
    pool.close()
    os.kill(host, signal.SIGSTOP)
    thread = Thread(drop)
    while not events:
        time.sleep(0)
    events.append("runs")
    os.kill(host, signal.SIGCONT)
    thread.get()
    if events == ["begins", "runs", "ends"]:
        break
else:
    raise SystemExit("the GIL was kept")
""", tmp_path)


def test_what_asks_for_bytes_alone_gets_the_contents_and_no_longer_than_it_keeps_them(
        pool: Tally) -> None:
    frame = pool.reader.get(pool.published(b"to be sent"))
    view = View()
    _get(frame, ctypes.byref(view), SIMPLE)
    assert view.buf == frame.cpu_ptr
    _release(ctypes.byref(view))
    frame.release()
    assert pool.free() == SLOTS


def test_who_reads_by_views_shares_after_a_consumer_that_did_not(pool: Tally) -> None:
    frame = pool.reader.get(pool.published(b"contents" * 8))
    taken = frombuffer(frame)
    taken.store()
    view = View()
    _get(frame, ctypes.byref(view), FULL_RO)
    assert view.buf == frame.cpu_ptr != taken.address
    _release(ctypes.byref(view))
    assert bytes(memoryview(frame)) == b"contents" * 8
    frame.release()


def test_a_store_into_a_plane_of_an_image(pool: Tally) -> None:
    guard = pool.writer.acquire_cpu(384)
    guard.describe_image(xmem.ImageFormat.NV12, 16, 16)
    memoryview(guard)[:] = bytes(384)
    guard.publish(keep=True)
    for frame in guard, pool.reader.get(guard.token):
        chroma = frame.image().planes[1]
        taken = frombuffer(chroma)
        taken.store()
        assert taken.address != frame.cpu_ptr + chroma.offset
        assert bytes(frame) == bytes(384)
        frame.release()


def test_numpy_cannot_be_told_to_write(pool: Tally) -> None:
    for dtype in ("float32", "bfloat16"):
        frame = pool.reader.get(pool.published(bytes(range(32)), (8,), dtype))
        arrays = [numpy.asarray(frame)]
        if dtype == "float32":
            arrays.append(numpy.frombuffer(frame, dtype))
            arrays.append(numpy.asarray(memoryview(frame)))
            if numpy.lib.NumpyVersion(numpy.__version__) >= "2.1.0":
                arrays.append(numpy.from_dlpack(frame))
        for array in arrays:
            assert not array.flags.writeable
            with pytest.raises(ValueError):
                array.flags.writeable = True
            with pytest.raises(ValueError):
                array.setflags(write=True)
        del array, arrays
        frame.release()


def test_an_attached_file_is_lent_once_it_is_published() -> None:
    with xmem.BufferPool(views.name(), writer=True) as pool:
        fd = os.memfd_create("attached", os.MFD_ALLOW_SEALING)
        os.write(fd, bytes(range(64)) * (LARGE // 64))
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS,
                    fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE)
        guard = pool.attach_fd(fd)
        os.close(fd)
        for take in (legacy, versioned, by_table):
            with pytest.raises(BufferError, match="publish"):
                take(guard)
        guard.publish(keep=True)
        for take in CONSUMERS:
            taken = take(guard)
            taken.store()
            assert numpy.asarray(guard)[:64].tobytes() == bytes(range(64))
        del taken
        guard.release()
