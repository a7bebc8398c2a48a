# SPDX-License-Identifier: MIT
"""Shared by the tests of GPUs: the driver by ctypes, streams with gates, other processes.

Everything here works on a GPU and on the driver of tests/fakecuda. The fake driver logs errors
that a real driver tolerates although they sometimes break programs; each test ends with an empty
log.
"""
from __future__ import annotations

import ctypes
import functools
import itertools
import multiprocessing
import os
import signal
import threading
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

from support import LIMIT, until_asleep

TOP = Path(__file__).resolve().parents[3]
FAKE = TOP / "build/test/fakecuda/libcuda.so.1"
SPAWN = multiprocessing.get_context("spawn")
_count = itertools.count()


def driver_file() -> str:
    return os.environ.get("XMEM_CUDA_DRIVER") or "libcuda.so.1"


def why_not() -> str | None:
    """Why these tests cannot run here; None: they can."""
    file = driver_file()
    if "/" in file and not os.path.exists(file):
        return f"{file} is not built: make FLAVOUR=test fakecuda"
    try:
        ctypes.CDLL(file)
    except OSError as error:
        return f"there is no driver: {error}"
    return None


needs_gpu = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))


def new_name() -> str:
    return f"gpu-{os.getpid()}-{next(_count)}"


@pytest.fixture(autouse=True)
def no_violations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Check that this test and its processes break no rule of the driver."""
    log = tmp_path / "violations"
    monkeypatch.setenv("FAKECUDA_LOG", str(log))
    yield
    assert not log.exists(), log.read_text()


# ---- the driver ----

class Driver:
    """The driver's functions; each call must succeed. The primary context is current."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL(driver_file(), ctypes.RTLD_GLOBAL)
        self.cuInit(0)
        self.context = ctypes.c_void_p()
        self.cuDevicePrimaryCtxRetain(ctypes.byref(self.context), 0)
        self.enter()

    def enter(self) -> None:
        self.cuCtxSetCurrent(self.context)

    def __getattr__(self, name: str) -> Callable[..., None]:
        function = getattr(self.library, name)

        def call(*arguments: Any) -> None:
            result = function(*arguments)
            assert result == 0, f"{name}: {result}"
        return call

    def read(self, ptr: int, nbytes: int) -> bytes:
        to = ctypes.create_string_buffer(nbytes)
        self.cuMemcpyDtoH_v2(to, ctypes.c_void_p(ptr), ctypes.c_size_t(nbytes))
        return to.raw

    def write(self, ptr: int, data: bytes) -> None:
        self.cuMemcpyHtoD_v2(ctypes.c_void_p(ptr), data, ctypes.c_size_t(len(data)))

    def calls(self) -> int:
        """The number of calls so far, which only the fake driver counts."""
        count = getattr(self.library, "cuFakeCalls", None)
        if count is None:
            pytest.skip("only the fake driver counts calls")
        count.restype = ctypes.c_ulong
        return int(count(None))


@functools.cache
def driver() -> Driver:
    return Driver()


def on_fake() -> bool:
    return hasattr(driver().library, "cuFakeCalls")


class Stream:
    """A stream with a gate: what is put into it from close_gate() on waits for open_gate()."""

    _kept: list[Any] = []       # streams use it as long as the process lives

    def __init__(self, flags: int = 1) -> None:
        """flags: 1 is a stream that the default stream does not wait for; 0: it does."""
        self.driver = driver()
        stream = ctypes.c_void_p()
        self.driver.cuStreamCreate(ctypes.byref(stream), flags)
        self.number = stream.value
        self.gate = ctypes.create_string_buffer(64)
        self.libc = ctypes.CDLL(None)
        self.libc.sem_init(self.gate, 0, 0)
        self._kept.append(self.gate)

    def __cuda_stream__(self) -> tuple[int, int]:
        assert self.number
        return (0, self.number)

    def close_gate(self) -> None:
        wait = ctypes.cast(self.libc.sem_wait, ctypes.c_void_p)
        self.driver.cuLaunchHostFunc(ctypes.c_void_p(self.number), wait, self.gate)

    def open_gate(self) -> None:
        self.libc.sem_post(self.gate)

    def open_when_asleep(self) -> threading.Thread:
        """Open the gate once the calling thread sleeps without the GIL, that is, waits for the
        stream."""
        def work() -> None:
            until_asleep(caller, again=True)
            self.open_gate()

        caller, thread = threading.get_native_id(), threading.Thread(target=work)
        thread.start()
        return thread

    def fill(self, ptr: int, value: int, nbytes: int) -> None:
        self.driver.cuMemsetD8Async(ctypes.c_void_p(ptr), ctypes.c_ubyte(value),
                                    ctypes.c_size_t(nbytes), ctypes.c_void_p(self.number))

    def synchronize(self) -> None:
        self.driver.cuStreamSynchronize(ctypes.c_void_p(self.number))


@pytest.fixture
def stream() -> Iterator[Stream]:
    stream = Stream()
    yield stream
    for _ in range(8):          # open the gates that a failed test has left closed
        stream.open_gate()


class Memory:
    """Memory of a GPU by cuMemAlloc, in blocks of its own."""

    def __init__(self, nbytes: int = 4 << 20) -> None:
        at = ctypes.c_void_p()
        driver().cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(nbytes))
        assert at.value
        self.ptr, self.nbytes = at.value, nbytes

    def free(self) -> None:
        driver().cuMemFree_v2(ctypes.c_void_p(self.ptr))


class Gate:
    """Holds a stream by a word, since a host function would hold those of all streams."""

    def __init__(self, stream: Stream) -> None:
        self.word = Memory()
        self.opener = Stream()
        self.opener.fill(self.word.ptr, 0, 8)
        self.opener.synchronize()
        at_least = 0
        driver().cuStreamWaitValue64_v2(ctypes.c_void_p(stream.number),
                                        ctypes.c_void_p(self.word.ptr), ctypes.c_uint64(1),
                                        at_least)

    def open(self) -> None:
        self.opener.fill(self.word.ptr, 1, 8)


class Array:
    """An array of a library that has __cuda_array_interface__."""

    def __init__(self, ptr: int, shape: tuple[int, ...], typestr: str,
                 strides: tuple[int, ...] | None = None, stream: int | None = None,
                 mask: Any = None) -> None:
        self.__cuda_array_interface__ = {
            "data": (ptr, False), "shape": shape, "typestr": typestr, "strides": strides,
            "stream": stream, "mask": mask, "version": 3}


def consume(source: Any) -> tuple[Any, bytes]:
    """Read a dense array as its interface's documentation says, and keep the objects that must be
    kept."""
    interface = source.__cuda_array_interface__
    assert interface["version"] == 3 and interface.get("mask") is None
    assert interface["strides"] is None and interface["stream"] != 0
    if interface["stream"] is not None:
        driver().cuStreamSynchronize(ctypes.c_void_p(interface["stream"]))
    nbytes = int(interface["typestr"][2:])
    for length in interface["shape"]:
        nbytes *= length
    return source, driver().read(interface["data"][0], nbytes) if nbytes else b""


# ---- other processes ----

class Child:
    """A function in a spawned process, with a pipe to it: function(pipe, *arguments)."""

    def __init__(self, function: Callable[..., None], *arguments: Any) -> None:
        self.pipe, theirs = SPAWN.Pipe()
        self.process = SPAWN.Process(target=function, args=(theirs, *arguments))
        self.process.start()
        theirs.close()

    def hear(self) -> Any:
        assert self.pipe.poll(LIMIT), "the other process says nothing"
        return self.pipe.recv()

    def tell(self, what: Any) -> None:
        self.pipe.send(what)

    def kill(self) -> None:
        assert self.process.pid
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.join(LIMIT)
        assert self.process.exitcode == -signal.SIGKILL

    def end(self) -> None:
        """Wait until the process ends by itself, and well."""
        self.process.join(LIMIT)
        assert self.process.exitcode == 0

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *unused: object) -> None:
        if self.process.is_alive():
            self.process.kill()
            self.process.join(LIMIT)
        self.pipe.close()
