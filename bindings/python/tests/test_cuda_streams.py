# SPDX-License-Identifier: MIT
"""Order on streams: what is published before it is written, and released before it is read.

A stream is held up by a gate; so each test says itself in which order things happen.
"""
from __future__ import annotations

import ctypes
import queue
import signal
import threading
import types
from typing import Any, Callable, Iterator

import pytest

import xmem
from gpu import Stream, consume, driver, needs_gpu, new_name, no_violations, stream  # noqa: F401
from support import LIMIT, Thread, until_asleep

pytestmark = needs_gpu
BYTES = 4096


@pytest.fixture
def pool() -> Iterator[xmem.BufferPool]:
    with xmem.BufferPool(new_name(), writer=True) as pool:
        pool.preallocate_cuda(BYTES, 2)
        yield pool


def unfinished(pool: xmem.BufferPool, stream: Stream, value: int) -> xmem.BufferGuard:
    """Contents that the stream writes when its gate opens."""
    guard = pool.acquire_cuda((BYTES,), dtype="uint8", timeout=LIMIT)
    guard.wait_on(stream)
    stream.close_gate()
    stream.fill(guard.cuda_ptr_mut, value, BYTES)
    guard.publish(keep=True, stream=stream)
    return guard


def pinned(nbytes: int) -> ctypes.Array[ctypes.c_char]:
    """Memory of the CPU that streams copy to without a stop; it lasts as the process does."""
    at = ctypes.c_void_p()
    driver().cuMemHostAlloc(ctypes.byref(at), ctypes.c_size_t(nbytes), 0)
    assert at.value
    return (ctypes.c_char * nbytes).from_address(at.value)


def test_who_waits_sees_the_contents_complete(pool: xmem.BufferPool, stream: Stream) -> None:
    guard = unfinished(pool, stream, 7)
    with pytest.raises(xmem.WouldBlock):
        guard.wait(0)
    with pytest.raises(xmem.TimedOut):
        guard.wait(timeout=0.02)
    opener = stream.open_when_asleep()
    guard.wait()                # without the GIL, or the other thread could not open it
    guard.wait(0)
    assert bytes(guard.copy_to_host()) == bytes([7]) * BYTES
    opener.join()


def test_a_look_waits_for_the_contents(pool: xmem.BufferPool, stream: Stream) -> None:
    guard = unfinished(pool, stream, 8)
    opener = stream.open_when_asleep()
    assert driver().read(guard.cuda_ptr, BYTES) == bytes([8]) * BYTES
    opener.join()


def test_a_stream_waits_in_the_place_of_the_thread(pool: xmem.BufferPool, stream: Stream) -> None:
    guard, reader = unfinished(pool, stream, 9), Stream()
    out = pinned(BYTES)
    guard.wait_on(reader)
    guard.copy_to_host(out, stream=reader)
    interface = guard.__cuda_array_interface__          # and nobody has waited
    assert interface["stream"] == reader.number
    with pytest.raises(xmem.WouldBlock):
        guard.wait(0)
    stream.open_gate()
    reader.synchronize()
    assert out.raw == bytes([9]) * BYTES
    assert consume(guard)[1] == bytes([9]) * BYTES


def test_the_default_stream_has_a_number_in_the_interface(pool: xmem.BufferPool) -> None:
    with pool.acquire_cuda(64) as guard:
        guard.wait_on(0)
        assert guard.__cuda_array_interface__["stream"] == 1
        assert consume(guard)[1]


def test_copies_on_a_stream(pool: xmem.BufferPool, stream: Stream) -> None:
    here = pinned(BYTES)
    here.raw = bytes(range(256)) * 16
    one, two = (pool.acquire_cuda((BYTES,), dtype="uint8") for _ in range(2))
    stream.close_gate()
    one.copy_from_host(here, stream=stream)
    one.copy_to(two, stream=stream)
    assert two.__cuda_array_interface__["stream"] == stream.number
    one.publish(keep=True)      # the copies are the contents, on whatever stream they are
    two.publish(keep=True)
    for guard in (one, two):
        with pytest.raises(xmem.WouldBlock):
            guard.wait(0)
    stream.open_gate()
    assert bytes(two.copy_to_host()) == here.raw and bytes(one.copy_to_host()) == here.raw


def test_a_buffer_is_held_until_the_stream_has_read_it(stream: Stream) -> None:
    with xmem.BufferPool(new_name(), writer=True) as pool:
        pool.preallocate_cuda(BYTES, 1)
        for lent in (False, True):
            guard = pool.acquire_cuda((BYTES,), dtype="uint8", timeout=LIMIT)
            guard.publish(keep=True)
            kept = consume(guard) if lent else None
            stream.close_gate()
            guard.release(stream=stream)
            assert guard.gone
            with pytest.raises(xmem.WouldBlock):
                pool.acquire_cuda(BYTES, timeout=0)
            stream.open_gate()
            stream.synchronize()
            if lent:            # until both are gone
                with pytest.raises(xmem.WouldBlock):
                    pool.acquire_cuda(BYTES, timeout=0)
            del kept, guard
            pool.acquire_cuda(BYTES, timeout=LIMIT).release()


def test_the_array_of_a_consumer_goes_after_its_work(stream: Stream) -> None:
    """numba and CuPy drop an array while their kernel still reads it."""
    with xmem.BufferPool(new_name(), writer=True) as pool:
        pool.preallocate_cuda(BYTES, 1)
        blocking = Stream(flags=0)
        guard = pool.acquire_cuda((BYTES,), dtype="uint8")
        guard.publish(keep=True)
        array = consume(guard)
        blocking.close_gate()
        del array, guard
        try:
            with pytest.raises(xmem.WouldBlock):
                pool.acquire_cuda(BYTES, timeout=0)
        finally:
            blocking.open_gate()
        pool.acquire_cuda(BYTES, timeout=LIMIT).release()


def test_release_on_a_stream_of_what_is_written(pool: xmem.BufferPool, stream: Stream) -> None:
    guard = pool.acquire_cuda(BYTES)
    with pytest.raises(xmem.NotPermitted):
        guard.release(stream=stream)
    assert not guard.gone
    guard.release()


def test_publish_without_a_stream_calls_no_driver(pool: xmem.BufferPool) -> None:
    def calls(**options: Any) -> int:
        guard = pool.acquire_cuda(BYTES, timeout=LIMIT)
        guard.cuda_ptr_mut
        before = driver().calls()
        guard.publish(keep=True, **options)
        after = driver().calls()
        guard.wait()
        guard.release()
        return after - before

    calls(stream=0)             # registers the page of ready words
    assert calls() == 0 and calls(stream=None) == 0
    assert calls(stream=0) > 0


STREAMS: list[Callable[[int], object]] = [
    lambda number: number,
    lambda number: types.SimpleNamespace(__cuda_stream__=lambda: (0, number)),
    lambda number: types.SimpleNamespace(__cuda_stream__=(0, number)),
    lambda number: types.SimpleNamespace(ptr=number),
    lambda number: types.SimpleNamespace(cuda_stream=number),
    lambda number: types.SimpleNamespace(handle=ctypes.c_void_p(number)),
    lambda number: types.SimpleNamespace(handle=number),
    ctypes.c_void_p,
]


@pytest.mark.parametrize("way", range(len(STREAMS)))
def test_a_stream_as_each_library_has_it(pool: xmem.BufferPool, way: int) -> None:
    stream = Stream()
    assert stream.number
    with pool.acquire_cuda(64) as guard:
        guard.wait_on(STREAMS[way](stream.number))
        assert guard.__cuda_array_interface__["stream"] == stream.number
        guard.wait_on(STREAMS[way](0))
        assert guard.__cuda_array_interface__["stream"] == 1


@pytest.mark.parametrize("bad", [None, "7", 1.5, object(), -1, 1 << 64, b"7",
                                 types.SimpleNamespace(ptr="7"),
                                 types.SimpleNamespace(handle=2.5),
                                 types.SimpleNamespace(__cuda_stream__=lambda: 7)])
def test_what_is_no_stream(pool: xmem.BufferPool, bad: Any) -> None:
    guard = pool.acquire_cuda(64)
    with pytest.raises((TypeError, ValueError), match="stream|range"):
        guard.wait_on(bad)
    if bad is not None:
        for call in (guard.publish, guard.release):
            with pytest.raises((TypeError, ValueError)):
                call(stream=bad)        # type: ignore[call-arg]
        with pytest.raises((TypeError, ValueError)):
            guard.copy_from_host(b"x", stream=bad)
    guard.release()


def test_an_exception_of_a_streams_own_goes_on(pool: xmem.BufferPool) -> None:
    class Broken:
        @property
        def ptr(self) -> int:
            raise KeyError("its stream is closed")

    with pool.acquire_cuda(64) as guard, pytest.raises(KeyError, match="closed"):
        guard.wait_on(Broken())


def test_cancel_ends_a_wait(pool: xmem.BufferPool, stream: Stream) -> None:
    guard = unfinished(pool, stream, 1)
    with xmem.BufferPool(pool.name, writer=True) as other, other.get(guard.token) as got:
        main = threading.get_native_id()
        canceler = Thread(lambda: (until_asleep(main, again=True), other.cancel()))
        with pytest.raises(xmem.Canceled):
            got.wait()
        canceler.get()
    stream.open_gate()
    guard.wait()


def test_a_signal_ends_a_wait_if_its_handler_raises(pool: xmem.BufferPool,
                                                    stream: Stream) -> None:
    guard = unfinished(pool, stream, 2)
    seen: queue.SimpleQueue[int] = queue.SimpleQueue()
    main, main_thread = threading.get_ident(), threading.get_native_id()
    count = 0

    def handler(number: int, frame: object) -> None:
        nonlocal count
        count += 1
        seen.put(count)
        if count == 2:
            raise KeyboardInterrupt

    def send() -> None:
        for turn in (1, 2):
            until_asleep(main_thread, again=True)
            signal.pthread_kill(main, signal.SIGUSR1)
            assert seen.get(timeout=LIMIT) == turn

    old = signal.signal(signal.SIGUSR1, handler)
    try:
        sender = Thread(send)
        with pytest.raises(KeyboardInterrupt):
            guard.wait()
        sender.get()
    finally:
        signal.signal(signal.SIGUSR1, old)
    assert count == 2
    stream.open_gate()
    guard.wait()


def test_one_thread_waits_and_another_releases(pool: xmem.BufferPool, stream: Stream) -> None:
    """The handle that a wait uses goes when the wait has ended."""
    guard = unfinished(pool, stream, 3)
    errors: list[BaseException] = []
    entered = threading.Event()

    def wait() -> None:
        entered.set()
        try:
            guard.wait(LIMIT)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    entered.wait()
    guard.release()
    stream.open_gate()
    thread.join()
    assert not errors or isinstance(errors[0], xmem.Released)
    guards = [pool.acquire_cuda(BYTES, timeout=LIMIT) for _ in range(2)]
    for each in guards:
        each.release()
