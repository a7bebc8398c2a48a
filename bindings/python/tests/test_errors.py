# SPDX-License-Identifier: MIT
"""Errors: their classes and base classes, messages; signals that end waits and lose nothing."""
from __future__ import annotations

import errno
import pickle
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import xmem
from support import LIMIT, fresh_name, pair, published, python

BUILTIN = {
    xmem.TimedOut: TimeoutError, xmem.WouldBlock: BlockingIOError, xmem.Ended: BrokenPipeError,
    xmem.NotPermitted: PermissionError, xmem.NotFound: FileNotFoundError,
    xmem.Exists: FileExistsError, xmem.HostGone: ConnectionError, xmem.Released: ValueError,
    xmem.Stale: OSError, xmem.Forked: OSError, xmem.Canceled: OSError, xmem.OwnerDead: OSError,
    xmem.NoDevice: OSError, xmem.NoSpace: OSError, xmem.Limit: OSError}


def test_each_class_is_what_python_calls_it() -> None:
    from xmem.errors import CLASSES
    assert set(CLASSES.values()) == {*BUILTIN, xmem.Error}
    for number, cls in CLASSES.items():
        assert issubclass(cls, xmem.Error) and issubclass(cls, BUILTIN.get(cls, OSError))
        if number is not None:
            error = cls(number, "a sentence")
            assert (error.errno, error.strerror) == (number, "a sentence")
            again = pickle.loads(pickle.dumps(error))
            assert type(again) is cls and again.args == error.args


def stale(pool: xmem.BufferPool) -> None:
    pool.get(1 << 40)


def would_block(pool: xmem.BufferPool) -> None:
    pool.preallocate_cpu(8, 1)
    held = pool.acquire_cpu(8)
    try:
        pool.acquire_cpu(8, timeout=0)
    finally:
        held.release()


def timed_out(pool: xmem.BufferPool) -> None:
    pool.preallocate_cpu(8, 1)
    held = pool.acquire_cpu(8)
    try:
        pool.acquire_cpu(8, timeout=0.001)
    finally:
        held.release()


def no_space(pool: xmem.BufferPool) -> None:
    pool.preallocate_cpu(8, 1)
    pool.acquire_cpu(1 << 30, timeout=0)


def ended(pool: xmem.BufferPool) -> None:
    with pool.reopen() as other:
        subscription = pool.subscribe(publisher=other.client)
    subscription.receive(LIMIT)


RAISES: list[tuple[Callable[[Any], object], type[xmem.Error], int]] = [
    (stale, xmem.Stale, errno.ESTALE), (would_block, xmem.WouldBlock, errno.EAGAIN),
    (timed_out, xmem.TimedOut, errno.ETIMEDOUT), (no_space, xmem.NoSpace, errno.ENOSPC),
    (ended, xmem.Ended, errno.EPIPE),
    (lambda pool: pool.subscribe(timeout=0), xmem.NotFound, errno.ENOENT),
    (lambda pool: xmem.BufferPool(pool.name, exclusive=True), xmem.Exists, errno.EEXIST),
    (lambda pool: xmem.BufferPool(pool.name, writer=False).acquire_cpu(8), xmem.NotPermitted,
     errno.EPERM),
    (lambda pool: (pool.cancel(), pool.acquire_cpu(8, timeout=1)), xmem.Canceled,
     errno.ECANCELED),
    (lambda pool: xmem.BufferPool("a b"), xmem.Error, errno.EINVAL)]


@pytest.mark.parametrize(("call", "cls", "number"), RAISES)
def test_each_error_has_its_number_and_a_sentence(call: Callable[[Any], object],
                                                  cls: type[xmem.Error], number: int) -> None:
    with xmem.BufferPool(fresh_name(), writer=True) as pool:
        with pytest.raises(cls) as caught:
            call(pool)
        assert type(caught.value) is cls and caught.value.errno == number
        assert caught.value.strerror and len(caught.value.strerror) > 12
        assert caught.value.filename is None


def test_no_host() -> None:
    python("""
import errno, os, xmem
os.environ.update(XMEM_BACKEND="daemon", XMEM_DAEMON="none", XMEM_SOCKET="xmem-nobody-listens")
try:
    xmem.BufferPool("x")
except xmem.NoDevice as error:
    assert error.errno == errno.ENODEV, error
else:
    raise SystemExit("it was opened")
""")


def test_a_host_that_goes(tmp_path: Path) -> None:
    python("""
import os, signal, sys, tempfile, xmem
os.environ.update(XMEM_BACKEND="daemon", XMEM_SOCKET=sys.argv[1])
pool = xmem.BufferPool("x", writer=True)
guard = pool.acquire_cpu(8)
memoryview(guard)[:] = b"contents"
guard.publish(keep=True)
view = memoryview(guard)
found = []
for process in os.listdir("/proc"):
    try:
        with open(f"/proc/{process}/environ", "rb") as file:
            mine = sys.argv[1].encode() in file.read()
        with open(f"/proc/{process}/comm") as file:
            if mine and file.read() == "xmemd\\n":
                found.append(int(process))
    except OSError:
        pass
daemon, = found
os.kill(daemon, signal.SIGKILL)
try:
    while True:
        pool.preallocate_cpu(4096, 1)
except xmem.HostGone as error:
    assert isinstance(error, ConnectionError)
assert bytes(view) == b"contents"
with pool.reopen() as anew:
    anew.acquire_cpu(8).publish()
pool.close()
assert bytes(view) == b"contents"
""", str(tmp_path / "socket"))


# ---- signals ----

class Stop(Exception):
    pass


def in_time(call: Callable[[], Any], number: signal.Signals = signal.SIGUSR1) -> Any:
    """Call, with a timer that sends a signal again and again: a single one may come too early."""
    signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
    try:
        return call()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def handled(handler: Any) -> Any:
    return signal.signal(signal.SIGALRM, handler)


def test_an_exception_in_a_handler_ends_each_wait_and_loses_nothing() -> None:
    def stop(*unused: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        raise KeyboardInterrupt

    old = handled(stop)
    try:
        with pair() as (writer, reader):
            writer.preallocate_cpu(8, 1)
            subscription = reader.subscribe()
            held = writer.acquire_cpu(8)
            empty = xmem.BufferPool(fresh_name())
            waits: list[Callable[[], Any]] = [
                subscription.receive, lambda: next(subscription), reader.receive,
                lambda: writer.acquire_cpu(8), lambda: empty.subscribe(lasts=False)]
            for wait in waits:
                with pytest.raises(KeyboardInterrupt):
                    in_time(wait)
            held.release()
            token = published(writer).token
            assert subscription.receive(0).token == token
    finally:
        handled(old)


def test_a_handler_that_returns_does_not_end_a_wait() -> None:
    count = 0

    def note(*unused: object) -> None:
        nonlocal count
        count += 1

    old = handled(note)
    try:
        with pair() as (writer, reader):
            subscription = reader.subscribe()
            while count < 2:
                begun = time.monotonic()
                with pytest.raises(xmem.TimedOut):
                    in_time(lambda: subscription.receive(0.15))
                assert time.monotonic() - begun >= 0.15
            count = 0
            timer = threading.Thread(target=lambda: published(writer))

            def start(*unused: object) -> None:
                nonlocal count
                count += 1
                if count == 20:
                    timer.start()

            handled(start)
            assert bytes(in_time(subscription.receive)) == b"contents"
            timer.join()
    finally:
        handled(old)


def test_ctrl_c_ends_a_program_in_receive() -> None:
    out = python("""
import os, signal, threading, xmem
from support import until_asleep
writer = xmem.BufferPool("ctrl-c", writer=True)
subscription = xmem.BufferPool("ctrl-c").subscribe()

def press(main=threading.get_native_id()):
    until_asleep(main)
    os.kill(os.getpid(), signal.SIGINT)

try:
    threading.Thread(target=press).start()
    subscription.receive()
except KeyboardInterrupt:
    writer.acquire_cpu(3).publish()
    print(subscription.receive(0).nbytes)
""")
    assert out == "3\n"
