# SPDX-License-Identifier: MIT
"""DLPack and Arrow of contents on a GPU: the device, the consumer's stream, and when it lets go."""
from __future__ import annotations

import ctypes
import subprocess
import threading
from pathlib import Path
from typing import Any, Callable, Iterator

import numpy
import pytest

import views
import xmem
from gpu import (Child, Gate, Stream, consume, driver, needs_gpu, new_name,  # noqa: F401
                 no_violations, stream)
from support import LIMIT, python

pytestmark = needs_gpu
BYTES = 4096


@pytest.fixture
def pool() -> Iterator[xmem.BufferPool]:
    with xmem.BufferPool(new_name(), writer=True) as pool:
        pool.preallocate_cuda(BYTES, 1)
        yield pool


def published(pool: xmem.BufferPool, value: int = 7) -> xmem.BufferGuard:
    guard = pool.acquire_cuda((BYTES // 4, 4), dtype="uint8", timeout=LIMIT)
    guard.copy_from_host(bytes([value]) * BYTES)
    guard.publish(keep=True)
    return guard


def unfinished(pool: xmem.BufferPool, stream: Stream, value: int) -> xmem.BufferGuard:
    """Contents that the stream writes when its gate opens."""
    guard = pool.acquire_cuda((BYTES,), dtype="uint8", timeout=LIMIT)
    guard.wait_on(stream)
    stream.close_gate()
    stream.fill(guard.cuda_ptr_mut, value, BYTES)
    guard.publish(keep=True, stream=stream)
    return guard


def drop(capsule: Any) -> None:
    """As a consumer does: take the tensor, and call its deleter."""
    address = views.take(capsule)
    views.Owner(views.Versioned.from_address(address).deleter)(address)


def test_the_capsule_names_the_gpu_and_holds(pool: xmem.BufferPool) -> None:
    guard = published(pool)
    assert guard.__dlpack_device__() == (2, 0)
    capsule = guard.__dlpack__(max_version=(1, 0))
    said = views.look(capsule)
    assert (said.flags, said.tensor.device_type, said.tensor.device_id) == (views.READ_ONLY, 2, 0)
    assert said.tensor.data == guard.cuda_ptr and said.tensor.shape[:2] == [BYTES // 4, 4]
    guard.release()
    with pytest.raises(xmem.TimedOut):
        pool.acquire_cuda(BYTES, timeout=0.05)
    assert driver().read(said.tensor.data, 4) == b"\7\7\7\7"
    drop(capsule)
    pool.acquire_cuda(BYTES, timeout=LIMIT).release()


def test_what_is_written_is_not_read_only(pool: xmem.BufferPool) -> None:
    with pool.acquire_cuda((BYTES,), dtype="uint8", timeout=LIMIT) as guard:
        capsule = guard.__dlpack__(max_version=(1, 0))
        assert views.look(capsule).flags == 0
        assert views.look(capsule).tensor.data == guard.cuda_ptr_mut
        drop(capsule)


def test_the_consumers_stream_waits_in_the_place_of_the_thread(pool: xmem.BufferPool,
                                                               stream: Stream) -> None:
    guard, reader = unfinished(pool, stream, 9), Stream()
    capsule = guard.__dlpack__(max_version=(1, 0), stream=reader.number)   # and nobody has waited
    with pytest.raises(xmem.WouldBlock):
        guard.wait(0)
    stream.open_gate()
    reader.synchronize()
    assert driver().read(views.look(capsule).tensor.data, BYTES) == bytes([9]) * BYTES
    drop(capsule)
    guard.release()


@pytest.mark.parametrize("which", [-1, None, 1, 2])
def test_streams_that_have_names(pool: xmem.BufferPool, stream: Stream, which: Any) -> None:
    guard = unfinished(pool, stream, 8)
    opener = stream.open_when_asleep()              # -1: this thread waits, and without the GIL
    capsule = guard.__dlpack__(max_version=(1, 0), stream=which)
    driver().cuStreamSynchronize(ctypes.c_void_p(1 if which in (None, -1) else which))
    assert driver().read(views.look(capsule).tensor.data, BYTES) == bytes([8]) * BYTES
    drop(capsule)
    guard.release()
    opener.join()


@pytest.mark.parametrize("which", [0, -2])
def test_streams_that_nobody_can_tell(pool: xmem.BufferPool, which: int) -> None:
    with published(pool) as guard, pytest.raises(ValueError, match="stream"):
        guard.__dlpack__(max_version=(1, 0), stream=which)


def test_a_copy_to_the_cpu(pool: xmem.BufferPool) -> None:
    with published(pool, 5) as guard:
        capsule = guard.__dlpack__(max_version=(1, 0), dl_device=(1, 0))
        said = views.look(capsule)
        assert (said.flags, said.tensor.device_type) == (views.IS_COPIED, 1)
        assert views.bytes_of(said.tensor, BYTES) == bytes([5]) * BYTES
        drop(capsule)
        for refused in ({"dl_device": (1, 0), "copy": False}, {"copy": True},
                        {"dl_device": (2, 99)}):
            with pytest.raises(BufferError):
                guard.__dlpack__(max_version=(1, 0), **refused)
        with pytest.raises(BufferError, match="read-only"):
            guard.__dlpack__()


def test_the_hold_goes_when_the_consumers_stream_has_read(pool: xmem.BufferPool) -> None:
    """Consumers drop their tensors while kernels that read them wait in a stream."""
    guard, stream, other = published(pool), Stream(0), Stream()
    capsules = [guard.__dlpack__(max_version=(1, 0), stream=each.number)
                for each in (stream, other)]
    guard.release()
    gate = Gate(stream)
    for capsule in capsules:
        drop(capsule)
    other.synchronize()
    try:
        with pytest.raises(xmem.TimedOut):
            pool.acquire_cuda(BYTES, timeout=0.05)
    finally:
        gate.open()
    pool.acquire_cuda(BYTES, timeout=LIMIT).release()


def borrow(guard: xmem.BufferGuard, way: str, stream: int) -> Callable[[], object]:
    """Take the contents as a library does that keeps no guard. The result lets go of them."""
    if way == "dlpack":
        capsule = guard.__dlpack__(max_version=(1, 0), stream=stream)
        return lambda: drop(capsule)
    kept = [consume(guard)] if way == "interface" else [guard.__arrow_c_device_array__()]
    return kept.clear


def drop_while_read(way: str, destroyed: bool) -> None:
    """The stream that reads is ordered with no other one, and cannot be named if destroyed."""
    with xmem.BufferPool(new_name(), writer=True) as pool, \
            xmem.BufferPool(new_name(), writer=True) as others:
        pool.preallocate_cuda(BYTES, 1)
        others.preallocate_cuda(BYTES, 1)
        guard, other, reader = published(pool), published(others), Stream()
        let_go = borrow(guard, way, reader.number or 0)
        gate = Gate(reader)
        if destroyed:
            driver().cuStreamDestroy_v2(ctypes.c_void_p(reader.number))
        if way != "interface":
            guard.release()
        let_go()
        del guard
        default = 1
        driver().cuStreamSynchronize(ctypes.c_void_p(default))
        other.release(stream=default)           # the library looks at what streams have done
        try:
            with pytest.raises(xmem.WouldBlock):
                pool.acquire_cuda(BYTES, timeout=0)
        finally:
            gate.open()
        pool.acquire_cuda(BYTES, timeout=LIMIT).release()


WAYS = ("dlpack", "interface", "arrow")


@pytest.mark.parametrize("destroyed", (False, True), ids=("kept", "destroyed"))
@pytest.mark.parametrize("way", WAYS)
def test_a_view_goes_after_all_streams(way: str, destroyed: bool) -> None:
    """Libraries drop views while kernels read them in a stream that nobody has named."""
    drop_while_read(way, destroyed)


def drop_in_child(pipe: Any, way: str) -> None:
    drop_while_read(way, destroyed=True)
    pipe.send(driver().calls())


@pytest.mark.parametrize("way", WAYS)
def test_a_view_goes_after_all_streams_of_an_old_driver(way: str,
                                                        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKECUDA_MISSING", "cuCtxRecordEvent")
    with Child(drop_in_child, way) as child:
        child.hear()
        child.end()


SPY = """
int (*real)(void *, void *), (*has_gil)(void), calls, with_gil;

int xmem_release_on(void *buffer, void *stream)
{
	calls++;
	with_gil += has_gil();
	return real(buffer, stream);
}
"""

PROGRAM = """
import ctypes, re, sys, threading, views, xmem

def pointer(function):
    return ctypes.cast(function, ctypes.c_void_p).value

with xmem.BufferPool("spied", writer=True) as pool:
    pool.preallocate_cuda(64, 1)
    with open("/proc/self/maps") as maps:
        library = ctypes.CDLL(re.search("/.*libxmem.*", maps.read())[0])
    spy = ctypes.CDLL(sys.argv[1])
    ctypes.c_void_p.in_dll(spy, "real").value = pointer(library.xmem_release_on)
    ctypes.c_void_p.in_dll(spy, "has_gil").value = pointer(ctypes.pythonapi.PyGILState_Check)

    def drop(kind):
        guard = pool.acquire_cuda((64,), dtype="uint8", timeout=60)
        guard.publish(keep=True)
        address = views.take(guard.__dlpack__(max_version=(1, 0)))
        guard.release()
        kind(None, ctypes.c_void_p)(views.Versioned.from_address(address).deleter)(address)

    drop(ctypes.PYFUNCTYPE)                 # with the GIL
    drop(ctypes.CFUNCTYPE)                  # without it
    thread = threading.Thread(target=drop, args=(ctypes.PYFUNCTYPE,))
    thread.start()
    thread.join()
    print(*(ctypes.c_int.in_dll(spy, name).value for name in ("calls", "with_gil")))
"""


def test_the_driver_is_not_called_with_the_gil(tmp_path: Path,
                                               monkeypatch: pytest.MonkeyPatch) -> None:
    source, spy = tmp_path / "spy.c", tmp_path / "spy.so"
    source.write_text(SPY)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", spy, source], check=True)
    monkeypatch.setenv("LD_PRELOAD", str(spy))
    calls, with_gil = python(PROGRAM, str(spy)).split()
    assert int(calls) >= 3 and with_gil == "0"


def test_copies_into_a_gpu(pool: xmem.BufferPool) -> None:
    array = numpy.arange(64, dtype="uint8").reshape(8, 8)
    guard = pool.acquire_cuda((8, 8), dtype="uint8", timeout=LIMIT)
    assert guard.copy_from(array.T) == 64
    assert bytes(guard.copy_to_host()) == array.T.tobytes()
    assert guard.copy_from(array[0], 8) == 8
    assert bytes(guard.copy_to_host())[8:16] == bytes(range(8))
    guard.release()


def test_a_column_of_strings_on_a_gpu(pool: xmem.BufferPool) -> None:
    strings = ["one", None, "", "f\u00fcnf"]
    guard = pool.acquire_strings(strings, device_id=0, timeout=LIMIT)
    plan = guard.strings()
    assert plan == xmem.strings_plan(4, 8, True)
    guard.publish(keep=True)
    schema, capsule = guard.__arrow_c_device_array__()
    found = views.DeviceArray.from_address(views.pointer(capsule, "arrow_device_array"))
    assert (found.device_type, found.device_id, found.sync_event) == (2, 0, None)
    assert (found.array.length, found.array.null_count, found.array.n_buffers) == (4, -1, 3)
    address = guard.cuda_ptr
    assert found.array.buffers[0] == address + (plan.validity_at or 0)
    assert found.array.buffers[1] == address + plan.offsets_at
    assert found.array.buffers[2] == address + plan.chars_at
    data = bytes(guard.copy_to_host())
    assert data[0] == 0b1101 and data[plan.chars_at:plan.nbytes] == "onef\u00fcnf".encode()
    offsets = numpy.frombuffer(data, "int32", 5, plan.offsets_at)
    assert offsets.tolist() == [0, 3, 3, 3, 8]
    with pytest.raises(TypeError, match="__arrow_c_device_array__"):
        guard.__arrow_c_array__()
    guard.release()
    with pytest.raises(xmem.WouldBlock):        # the array holds the only buffer
        pool.acquire_cuda(BYTES, timeout=0)
    del found, capsule, schema
    pool.acquire_cuda(BYTES, timeout=LIMIT).release()


def test_numpy_and_arrow_say_where_it_is(pool: xmem.BufferPool) -> None:
    with published(pool) as guard:
        for ask in (numpy.asarray, memoryview):
            with pytest.raises((BufferError, xmem.Error), match="GPU"):
                ask(guard)
        with pytest.raises(TypeError, match="__arrow_c_device_array__"):
            guard.__arrow_c_array__()
        _, capsule = guard.__arrow_c_device_array__()
        found = views.DeviceArray.from_address(views.pointer(capsule, "arrow_device_array"))
        assert (found.device_type, found.device_id, found.sync_event) == (2, 0, None)
        assert found.array.children[0].contents.buffers[1] == guard.cuda_ptr
        del capsule
