# SPDX-License-Identifier: MIT
"""Waits that nothing would end, and what ends a wait: said at once, and by its name."""
from __future__ import annotations

import errno
import functools
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import xmem
from support import LIMIT, Thread, fresh_name, pair, published, python, sanitized
from xmem import holders


# ---- a signal's handler that closes or cancels ----

@contextmanager
def on_alarm(handler: Callable[[], object]) -> Iterator[None]:
    """A timer whose signal comes again and again: the first one may come before the wait."""
    count = 0

    def call(*unused: object) -> None:
        nonlocal count
        count += 1
        assert count < 500, "the wait goes on"
        handler()

    old = signal.signal(signal.SIGALRM, call)
    signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)


Wait = Callable[[xmem.BufferPool, xmem.Subscription], Any]
WAITS: dict[str, Wait] = {
    "receive": lambda pool, frames: frames.receive(LIMIT),
    "next": lambda pool, frames: next(frames),
    "for": lambda pool, frames: list(frames),
    "any": lambda pool, frames: pool.receive(LIMIT),
    "acquire": lambda pool, frames: pool.acquire_cpu(64, timeout=LIMIT),
    "subscribe": lambda pool, frames: pool.subscribe(label="nobody", timeout=LIMIT),
}


@pytest.mark.parametrize("end", ["close", "cancel"])
@pytest.mark.parametrize("wait", WAITS)
def test_a_handler_that_closes_the_pool_ends_its_waits(wait: str, end: str) -> None:
    name = fresh_name()
    with xmem.BufferPool(name, writer=True) as other:
        pool = xmem.BufferPool(name, writer=True)
        pool.preallocate_cpu(64, 1)
        held = pool.acquire_cpu(64)
        frames = pool.subscribe(publisher=other.client) if wait == "subscribe" else pool.subscribe()
        with on_alarm(getattr(pool, end)), pytest.raises(xmem.Canceled):
            WAITS[wait](pool, frames)
        held.release()
        pool.close()
        published(other)
        with frames.receive(0) as frame:            # what does not wait goes on
            assert bytes(frame) == b"contents"


def test_a_subscription_of_a_pool_that_was_closed_before_waits_on() -> None:
    """close() has ended the waits of then, and not those that begin later."""
    count = 0

    def note() -> None:
        nonlocal count
        count += 1

    with pair() as (writer, reader):
        frames = reader.subscribe()
        reader.close()
        with on_alarm(note), pytest.raises(xmem.TimedOut):
            frames.receive(0.1)
        assert count > 0


def test_who_ends_a_wait_is_named() -> None:
    with pair() as (writer, reader):
        frames = reader.subscribe()
        thread = Thread(frames.receive)
        thread.waits()
        frames.close()
        with pytest.raises(xmem.Canceled, match=r"cancel\(\) or close\(\) of the pool, or "
                                                r"close\(\) of the subscription, has ended"):
            thread.get()


# ---- other threads run while the host does not answer ----

SILENT = """
import os, signal, sys, time, xmem
sys.path.insert(0, sys.argv[1])
from support import Thread, daemon_at, published
os.environ.update(XMEM_BACKEND="daemon", XMEM_SOCKET=sys.argv[2])
writer, reader = xmem.BufferPool("x", writer=True), xmem.BufferPool("x")
frames = reader.subscribe()
host, kept = daemon_at(sys.argv[2]), []

def silence():
    \"\"\"Publish in memory that the reader has not mapped, and stop the host.\"\"\"
    kept.append(published(writer, bytes(100000 << len(kept) % 4)))
    os.kill(host, signal.SIGSTOP)
"""


def silent(script: str, folder: Path) -> None:
    python(SILENT + script, str(Path(__file__).parent), str(folder / "socket"))


def test_the_first_look_at_contents_keeps_no_thread_from_running(tmp_path: Path) -> None:
    silent("""
silence()
guard = reader.get(kept[0].token)
thread = Thread(lambda: bytes(memoryview(guard)))
thread.waits()
os.kill(host, signal.SIGCONT)
assert thread.get() == bytes(100000)
""", tmp_path)


def test_a_receive_that_does_not_wait_keeps_no_thread_from_running(tmp_path: Path) -> None:
    """It asks a silent host for a second. A thread that runs after that second says nothing, so
    the scene is repeated."""
    silent("""
def receive():
    events.append("begins")
    try:
        frames.receive(0)
    except xmem.WouldBlock:
        pass
    events.append("ends")

sys.setswitchinterval(1000)         # only a thread that gives the GIL up lets another one run
for scene in range(100):
    events = []
    silence()
    thread = Thread(receive)
    while not events:
        time.sleep(0)
    events.append("runs")
    thread.get()
    os.kill(host, signal.SIGCONT)
    if events == ["begins", "runs", "ends"]:
        break
    frames.receive().release()
else:
    raise SystemExit("the GIL was kept")
""", tmp_path)


# ---- waiting that cannot help ----

def test_a_writer_without_slots_does_not_wait_for_others_to_end() -> None:
    """Sixteen writers have all groups of slots of a pool as it is by default."""
    name = fresh_name()
    writers = [xmem.BufferPool(name, writer=True, label=f"w{number}") for number in range(17)]
    for writer in writers[:16]:
        published(writer)
    last = writers[16]
    for timeout in None, 20, 0:
        thread = Thread(functools.partial(last.acquire_cpu, 8, timeout=timeout))
        named = r"no slots: .*all of the 16 groups.*\(client 0 w0 pid "
        with pytest.raises(xmem.NoSpace, match=named):
            thread.get()
    writers[3].close()
    last.acquire_cpu(8, timeout=LIMIT).release()
    for writer in writers:
        writer.close()


@pytest.mark.skipif(sanitized(), reason="the sanitizer ends a process in which it gets no memory")
def test_memory_that_the_system_refuses_is_named() -> None:
    """The writer waits for its own buffers, since a thread may give one up, and says why. In a
    process of its own, for what it has left depends on what other tests have used."""
    python("""
import errno, resource, sys, xmem
pool = xmem.BufferPool(sys.argv[1], writer=True)
held = [pool.acquire_cpu(1 << 20)]
with open("/proc/self/status", encoding="ascii") as file:
    size, = (int(line.split()[1]) << 10 for line in file if line.startswith("VmSize"))
before = resource.getrlimit(resource.RLIMIT_AS)
resource.setrlimit(resource.RLIMIT_AS, (size + (64 << 20), before[1]))
caught, timeout = None, 0.01
while len(held) < 200 and timeout < 30 and "too little memory" not in str(caught):
    try:
        held.append(pool.acquire_cpu(1 << 20, timeout=timeout))
    except xmem.TimedOut as error:
        caught = error
        timeout *= 2        # the host may not have come to answer
refused = None
try:
    pool.acquire_cpu(1 << 28)       # none of these can come free
except xmem.Error as error:
    refused = error
resource.setrlimit(resource.RLIMIT_AS, before)
assert "too little memory is left" in str(caught), caught
assert "being written by this writer itself" in str(caught), caught
assert caught.holders == [] and refused.errno == errno.ENOMEM
""", fresh_name())


def test_a_reader_is_not_followed_and_not_waited_for() -> None:
    with pair() as (writer, reader):
        other = xmem.BufferPool(writer.name)
        for timeout in None, 20, 0:
            thread = Thread(functools.partial(reader.subscribe, publisher=other.client,
                                              timeout=timeout))
            with pytest.raises(xmem.NotFound, match="is a reader, not a writer"):
                thread.get()
        with reader.subscribe(publisher=writer.client, timeout=0) as frames:
            token = published(writer).token
            assert frames.receive(0).token == token
        with writer.subscribe(publisher=writer.client, timeout=0) as own:
            token = published(writer).token
            assert own.receive(0).token == token        # only if it is asked for
        other.close()


@pytest.mark.parametrize("waits", [2, "yes", 1.5])
def test_what_is_true_waits_and_is_no_other_flag(waits: Any) -> None:
    with pair(wait_bound=1) as (writer, reader):
        second = xmem.BufferPool(writer.name, writer=True)
        with reader.subscribe(waits=waits, timeout=0) as frames:
            for publisher in second, writer:
                token = published(publisher).token
                assert frames.receive(0).token == token
        second.close()


def test_a_writer_that_comes_later_is_lost_uncounted_but_for_history() -> None:
    for history, got in (0, 0), (5, 5):
        with pair() as (first, reader):
            frames = reader.subscribe(history=history, lasts=False)
            followed = reader.client_info(reader.client).follows
            with xmem.BufferPool(first.name, writer=True) as second:
                for _ in range(5):
                    published(second)
                # With no time at all it would not wait for the host's answer, by which it follows.
                for _ in range(got):
                    frames.receive(LIMIT).release()
                while reader.client_info(reader.client).follows == followed:
                    with pytest.raises(xmem.TimedOut):
                        frames.receive(0.05)
                with pytest.raises(xmem.WouldBlock):
                    frames.receive(0)
                assert frames.lost == 0
                token = published(second).token     # it is followed now
                assert frames.receive(LIMIT).token == token


# ---- the place of the daemon's socket ----

@pytest.mark.parametrize(("path", "says"), [
    ("/none-such/xmem/socket", "/none-such/xmem: No such file or directory"),
    ("/proc/socket", "in the folder /proc: "),
    ("FILE", "FILE is no socket"),
    ("FILE/socket", "FILE, in which xmemd is to listen, is no folder")])
def test_a_folder_in_which_no_daemon_can_listen_is_named(path: str, says: str,
                                                         tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()                # this user's own: of another one's file that is said first
    path, says = path.replace("FILE", str(file)), says.replace("FILE", str(file))
    out = python("""
import os, sys, xmem
os.environ.update(XMEM_BACKEND="daemon", XMEM_SOCKET=sys.argv[1])
try:
    xmem.BufferPool("x")
except xmem.NoDevice as error:
    print(error)
""", path, quiet=False)
    assert says in out and "set XMEM_SOCKET" in out


# ---- numbers that are too large for C ----

@pytest.mark.parametrize("call", [
    lambda pool, guard: xmem.BufferPool.from_fd(1 << 31),
    lambda pool, guard: pool.attach_fd(1 << 31),
    lambda pool, guard: pool.acquire_cpu((0, 1 << 63), "uint8"),
    lambda pool, guard: guard.describe((1 << 63,), "uint8"),
    lambda pool, guard: guard.describe((1,), "uint8", (1 << 63,)),
    lambda pool, guard: guard.__dlpack__(stream=1 << 63),
    lambda pool, guard: guard.__dlpack__(dl_device=(1 << 63, 0))])
def test_numbers_out_of_range_are_value_errors(
        call: Callable[[xmem.BufferPool, xmem.BufferGuard], object]) -> None:
    with xmem.BufferPool(fresh_name(), writer=True) as pool, pool.acquire_cpu(8) as guard, \
            pytest.raises(ValueError, match="range|31 bits"):
        call(pool, guard)


def test_negative_strides_are_said_not_to_be() -> None:
    with xmem.BufferPool(fresh_name(), writer=True) as pool, pool.acquire_cpu(8) as guard, \
            pytest.raises(xmem.Error, match="strides are not negative"):
        guard.describe((2,), "int32", (-4,))


def test_what_prevents_naming_holders_does_not_replace_the_error(
        monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*unused: object) -> None:
        raise xmem.Error(errno.ENOMEM, "no memory to count")

    with xmem.BufferPool(fresh_name(), writer=True) as pool:
        pool.preallocate_cpu(8, 1)
        with pool.acquire_cpu(8):
            monkeypatch.setattr(holders, "of", fails)
            with pytest.raises(xmem.TimedOut, match="by this writer itself") as caught:
                pool.acquire_cpu(8, timeout=0.001)
            assert caught.value.holders == []
