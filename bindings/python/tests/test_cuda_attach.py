# SPDX-License-Identifier: MIT
"""Memory of a GPU that others have made: attached without a copy, kept, and given back."""
from __future__ import annotations

import ctypes
import errno
import gc
import os
import subprocess
import sys
import textwrap
import threading
import time
import weakref
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

import xmem
from gpu import (LIMIT, Array, Memory, Stream, driver, needs_gpu, new_name,
                 no_violations)  # noqa: F401
from support import without_notes

pytestmark = needs_gpu
BYTES = 4096


@pytest.fixture
def pool() -> Iterator[xmem.BufferPool]:
    with xmem.BufferPool(new_name(), writer=True) as pool:
        yield pool


@pytest.fixture
def memory() -> Iterator[Memory]:
    driver()
    memory = Memory()
    driver().write(memory.ptr, bytes(range(256)) * 64)
    yield memory


def eventually(pool: xmem.BufferPool, condition: Callable[[], object]) -> None:
    """The host says within a moment that nobody has the memory open."""
    until = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < until
        pool.collect()


def test_an_address(pool: xmem.BufferPool, memory: Memory) -> None:
    done: list[int] = []
    guard = pool.attach_cuda(memory.ptr + 512, BYTES, done=lambda: done.append(1))
    assert (guard.nbytes, guard.dtype, guard.cuda_ptr) == (BYTES, None, memory.ptr + 512)
    with pytest.raises(xmem.NotPermitted):
        guard.cuda_ptr_mut
    with pytest.raises(xmem.NotPermitted):
        guard.copy_from_host(b"x")
    assert guard.__cuda_array_interface__["data"] == (memory.ptr + 512, True)
    token = guard.publish(keep=True)
    with pool.get(token) as got:
        assert bytes(got.copy_to_host()) == bytes(range(256)) * 16
    assert not done
    guard.release()
    del guard
    eventually(pool, lambda: done)
    pool.collect()
    assert done == [1]
    memory.free()


def test_without_done_and_without_an_object(pool: xmem.BufferPool, memory: Memory) -> None:
    pool.attach_cuda(memory.ptr, BYTES).release()
    pool.close()
    memory.free()


def test_what_cannot_be_attached(pool: xmem.BufferPool, memory: Memory) -> None:
    done: list[int] = []

    class Kept(Array):
        pass

    def attach(ptr: int, nbytes: int) -> object:
        return pool.attach_cuda(ptr, nbytes, done=lambda: done.append(1))

    here = ctypes.create_string_buffer(BYTES)
    aligned = (ctypes.addressof(here) + 63) & ~63
    for call, err in ((lambda: attach(memory.ptr + 1, 64), errno.EINVAL),
                      (lambda: attach(aligned, 64), errno.EMEDIUMTYPE),
                      (lambda: attach(memory.ptr, memory.nbytes + 1), errno.ERANGE)):
        with pytest.raises(xmem.Error) as caught:
            call()
        assert caught.value.errno == err
    array = Kept(memory.ptr + 1, (64,), "|u1")
    gone = weakref.ref(array)
    with pytest.raises(xmem.Error):
        pool.attach_cuda(array)
    del array
    gc.collect()
    assert gone() is None               # what failed keeps nothing
    with xmem.BufferPool(pool.name, writer=False) as reader, pytest.raises(xmem.NotPermitted):
        reader.attach_cuda(memory.ptr, 64)
    with pytest.raises(TypeError, match="nbytes"):
        pool.attach_cuda(memory.ptr)
    pool.collect()
    pool.close()
    assert not done
    memory.free()


def test_an_array_is_kept_until_all_is_over(pool: xmem.BufferPool, memory: Memory) -> None:
    array = Array(memory.ptr, (8, 4), "<f4")
    gone, seen = weakref.ref(array), []
    guard = pool.attach_cuda(array, done=lambda: seen.append(gone() is not None))
    del array
    assert (guard.shape, guard.dtype, guard.strides) == ((8, 4), "float32", (16, 4))
    token = guard.publish(keep=True)
    got = pool.get(token)
    guard.release()
    del guard
    gc.collect()
    assert gone() is not None and not seen
    assert bytes(got.copy_to_host().cast("B")) == (bytes(range(256)) * 16)[:128]
    got.release()
    eventually(pool, lambda: seen)
    assert seen == [True]               # done is called first, and then the array goes
    gc.collect()
    assert gone() is None
    memory.free()


@pytest.mark.parametrize("typestr, strides, dtype, nbytes", [
    ("|b1", None, "bool", 24), ("<c16", None, "complex128", 384), ("<f2", (32, 4), "float16", 174),
    ("<f4", (0, 4), "float32", 16), ("|V8", None, None, 192)])
def test_shapes_and_types(pool: xmem.BufferPool, memory: Memory, typestr: str, strides: Any,
                          dtype: str | None, nbytes: int) -> None:
    with pool.attach_cuda(Array(memory.ptr, (6, 4), typestr, strides)) as guard:
        assert (guard.dtype, guard.nbytes) == (dtype, nbytes)
        if dtype:
            assert guard.shape == (6, 4)
            assert strides is None or guard.strides == strides
    pool.close()
    memory.free()


def test_contents_that_a_stream_has_yet_to_write(pool: xmem.BufferPool, memory: Memory) -> None:
    """The array's interface names the stream, and publish() waits for it on the GPU."""
    stream = Stream()
    for name, options, late in (("the array's", {}, True),
                                ("its caller's", {"stream": Stream()}, False)):
        stream.close_gate()
        stream.fill(memory.ptr, 5, BYTES)
        array = Array(memory.ptr, (BYTES,), "|u1", stream=stream.number)
        guard = pool.attach_cuda(array)
        assert guard.__cuda_array_interface__["stream"] == stream.number
        guard.publish(keep=True, **options)
        try:
            if late:
                with pytest.raises(xmem.WouldBlock):
                    guard.wait(0)
            else:
                guard.wait(LIMIT)
        finally:
            stream.open_gate()
        guard.wait()
        stream.synchronize()
        assert bytes(guard.copy_to_host()) == bytes([5]) * BYTES, name
        guard.release()
        del guard
    pool.close()
    memory.free()


# ---- DLPack ----

class _Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32),
                ("device", ctypes.c_int32), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


class _Legacy(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class _Versioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32),
                ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
                ("flags", ctypes.c_uint64), ("tensor", _Tensor)]


_DESTRUCTOR = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Producer:
    """A library's tensor of float32 by DLPack, with rows of 64 bytes; it counts its capsules."""

    def __init__(self, ptr: int, versioned: bool, device_type: int = 2) -> None:
        self.ptr, self.versioned, self.device_type = ptr, versioned, device_type
        self.streams: list[int] = []
        self.dropped = 0
        self.kept: list[Any] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return (self.device_type, 0)

    def __dlpack__(self, *, stream: int, **options: Any) -> object:
        if options and not self.versioned:
            raise TypeError("max_version is not known here")
        self.streams.append(stream)
        shape, strides = (ctypes.c_int64 * 2)(4, 3), (ctypes.c_int64 * 2)(16, 1)
        tensor = _Tensor(self.ptr, self.device_type, 0, 2, 2, 32, 1, shape, strides, 64)
        made = (_Versioned(1, 1, None, None, 0, tensor) if self.versioned else
                _Legacy(tensor, None, None))

        def destroy(capsule: object) -> None:
            self.dropped += 1

        destructor = _DESTRUCTOR(destroy)
        self.kept += [made, shape, strides, destructor]
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p,
                                                       ctypes.c_void_p]
        name = b"dltensor_versioned" if self.versioned else b"dltensor"
        return new(ctypes.addressof(made), name, ctypes.cast(destructor, ctypes.c_void_p))


@pytest.mark.parametrize("versioned", [False, True])
def test_dlpack(pool: xmem.BufferPool, memory: Memory, versioned: bool) -> None:
    producer = Producer(memory.ptr, versioned)
    guard = pool.attach_cuda(producer)
    assert producer.streams == [1] and not producer.dropped
    assert guard.cuda_ptr == memory.ptr + 64
    assert (guard.shape, guard.strides, guard.dtype) == ((4, 3), (64, 4), "float32")
    guard.publish(keep=True)
    guard.wait()                        # what the default stream has to do first
    guard.release()
    del guard
    eventually(pool, lambda: producer.dropped)
    assert producer.dropped == 1        # nobody has taken it: its destructor calls the deleter
    memory.free()


def test_dlpack_of_the_cpu(pool: xmem.BufferPool, memory: Memory) -> None:
    with pytest.raises(ValueError, match="device type is 1"):
        pool.attach_cuda(Producer(memory.ptr, True, device_type=1))
    for bad in (7, None):
        with pytest.raises(TypeError):
            xmem._core.dlpack_look(bad)         # type: ignore[attr-defined]
    memory.free()


# ---- done ----

def test_an_exception_of_done_is_unraisable(pool: xmem.BufferPool, memory: Memory,
                                            monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda it: seen.append((it.exc_type, it.object)))

    def done() -> None:
        raise LookupError("lost")

    pool.attach_cuda(memory.ptr, BYTES, done=done).release()
    eventually(pool, lambda: seen)
    assert seen == [(LookupError, done)]
    memory.free()


def test_done_may_use_the_pool(pool: xmem.BufferPool, memory: Memory) -> None:
    """It may even attach the same memory anew."""
    rounds: list[int] = []

    def done() -> None:
        rounds.append(1)
        if len(rounds) < 3:
            pool.attach_cuda(memory.ptr, BYTES, done=done).release()

    pool.attach_cuda(memory.ptr, BYTES, done=done).release()
    eventually(pool, lambda: len(rounds) == 3)
    memory.free()


def test_the_main_thread_runs_what_another_has_found_out(pool: xmem.BufferPool,
                                                         memory: Memory) -> None:
    """In a call that runs nothing itself: then the interpreter does, in its main thread."""
    done: list[int] = []
    ended = threading.Event()
    pool.attach_cuda(memory.ptr, BYTES, done=lambda: done.append(threading.get_ident())).release()

    def find_out() -> None:
        while not ended.is_set():
            with pytest.raises(xmem.Error):
                pool.preallocate_cuda(1 << 42, 1)       # it first looks what is free by now

    thread = threading.Thread(target=find_out)
    thread.start()
    until = time.monotonic() + LIMIT
    while not done and time.monotonic() < until:
        pass
    ended.set()
    thread.join()
    assert done == [threading.main_thread().ident]
    memory.free()


def test_threads_that_collect_and_threads_that_hold_the_gil() -> None:
    """Each is called once, whoever finds it out, and nobody waits for anybody for ever."""
    driver()
    memory = Memory()
    with xmem.BufferPool(new_name(), writer=True) as pool:
        pool.preallocate_cpu(64, 4)
        ended, done, failed = threading.Event(), [], []

        def collect() -> None:
            while not ended.is_set():
                pool.collect()

        def exchange() -> None:
            try:
                while not ended.is_set():
                    with pool.acquire_cpu(64) as guard:
                        pool.get(guard.publish(keep=True)).release()
            except BaseException as error:
                failed.append(error)

        threads = [threading.Thread(target=work) for work in (collect, exchange, exchange)]
        for thread in threads:
            thread.start()
        for _ in range(100):
            guard = pool.attach_cuda(memory.ptr, BYTES, done=lambda: done.append(1))
            guard.publish(keep=True)
            guard.release()
        eventually(pool, lambda: len(done) == 100)
        ended.set()
        for thread in threads:
            thread.join(LIMIT)
            assert not thread.is_alive()
        assert not failed
    memory.free()


@pytest.mark.parametrize("end", ["", "pool.close()", "guard.release(); pool.collect()",
                                 "atexit.register(pool.close)", "del guard, pool",
                                 "threading.Thread(target=spin, daemon=True).start()"])
def test_the_interpreter_ends(end: str) -> None:
    """With memory attached and views alive, whoever drops it last."""
    program = textwrap.dedent("""
        import atexit, sys, threading
        import xmem
        from gpu import Memory, driver

        class Loud:
            def __init__(self, ptr):
                self.__cuda_array_interface__ = {"data": (ptr, False), "shape": (64,),
                                                 "typestr": "|u1", "version": 3}

        def spin():
            while True:
                pool.collect()

        driver()
        memory = Memory()
        pool = xmem.BufferPool("ends", writer=True)
        guard = pool.attach_cuda(Loud(memory.ptr), done=lambda: print("done"))
        guard.publish(keep=True)
        keep = guard.__cuda_array_interface__
        %s
        print("ends", flush=True)
    """) % end
    done = subprocess.run([sys.executable, "-c", program], text=True, capture_output=True,
                          timeout=LIMIT, env=_environment())
    assert done.returncode == 0 and not without_notes(done.stderr), done.stderr
    assert sorted(set(done.stdout.split())) in (["done", "ends"], ["ends"])
    assert done.stdout.count("done") <= 1


def _environment() -> dict[str, str]:
    here = str(Path(__file__).parent)
    return dict(os.environ, PYTHONPATH=os.pathsep.join([here, *filter(None, sys.path)]))
