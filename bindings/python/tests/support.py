# SPDX-License-Identifier: MIT
"""Shared by the tests: names of pools, guards in each state, children, threads that wait."""
from __future__ import annotations

import itertools
import os
import select
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import xmem

PACKAGE = str(Path(xmem.__file__).parent.parent)
GIL: bool = getattr(sys, "_is_gil_enabled", lambda: True)()
"""Does this Python have a GIL, with the extension loaded? A free-threaded Python has none."""
LIMIT = 240.0
"""Seconds after which a test gives up a wait that hangs: far more than ten times the slowest wait
on a busy machine, an import of torch."""
_numbers = itertools.count()


def fresh_name(what: str = "t") -> str:
    """A name that no pool of this machine has."""
    return f"{what}-{os.getpid()}-{next(_numbers)}"


@contextmanager
def pair(**options: Any) -> Iterator[tuple[xmem.BufferPool, xmem.BufferPool]]:
    """A writer and a reader of a new pool."""
    name = fresh_name()
    with xmem.BufferPool(name, writer=True, **options) as writer, \
            xmem.BufferPool(name, writer=False, existing=True) as reader:
        yield writer, reader


def sanitized() -> bool:
    """Whether this process runs with the address sanitizer."""
    with open("/proc/self/maps", encoding="ascii") as file:
        return "libasan" in file.read()


def published(writer: xmem.BufferPool, contents: bytes = b"contents") -> xmem.BufferGuard:
    """A guard, for reading, of contents that are published."""
    guard = writer.acquire_cpu(len(contents))
    memoryview(guard)[:] = contents
    guard.publish(keep=True)
    return guard


def without_notes(stderr: str) -> str:
    """Get the output of a program, without the notes of the xmemd that it started."""
    return "".join(line for line in stderr.splitlines(keepends=True)
                   if not line.startswith("xmemd: note: "))


def python(script: str, *arguments: str, expect: int = 0, quiet: bool = True,
           send: str | None = None, unset: Sequence[str] = ()) -> str:
    """Run a script in a process of its own. Returns what it prints."""
    environment = {**os.environ, "PYTHONPATH": PACKAGE}
    for variable in unset:
        environment.pop(variable, None)
    done = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True,
                          text=True, timeout=LIMIT, env=environment, input=send, check=False)
    assert done.returncode == expect, f"rc {done.returncode}: {done.stdout}{done.stderr}"
    if quiet:
        assert without_notes(done.stderr) == ""
    return done.stdout


def daemon_at(socket: str) -> int:
    """The process of the daemon that was started with this XMEM_SOCKET."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            environment = (process / "environ").read_bytes().split(b"\0")
            if (process / "comm").read_text() == "xmemd\n" and \
                    f"XMEM_SOCKET={socket}".encode() in environment:
                found.append(int(process.name))
        except OSError:
            continue                # It is another user's process, or it has ended.
    only, = found
    return only


def until_asleep(thread: int, look: Callable[[], object] = lambda: None,
                 again: bool = False) -> None:
    """Return once a thread of this process sleeps without wanting the GIL, so in a call of the
    library. A thread that wants the GIL gets it while this one lets go of it, or asks again.
    again: the call wakes up repeatedly to look at a GPU's memory."""
    same, before = 0, ""
    while same < 3:
        look()
        select.select([], [], [], 0.006)
        with open(f"/proc/self/task/{thread}/status", encoding="ascii") as file:
            now = "".join(line for line in file if line.startswith(("State", "voluntary")))
        same = same + 1 if (again or now == before) and "S (sleeping)" in now else 0
        before = now


class Thread(threading.Thread):
    """A thread whose result, or exception, get() gives."""

    def __init__(self, call: Callable[[], Any]) -> None:
        super().__init__(daemon=True)
        self.call = call
        self.result: Any = None
        self.error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self.result = self.call()
        except BaseException as error:
            self.error = error

    def get(self) -> Any:
        self.join(LIMIT)
        assert not self.is_alive(), "the thread still waits"
        if self.error:
            raise self.error
        return self.result

    def waits(self) -> None:
        """Return once the thread waits in a call of the library."""
        assert self.native_id
        until_asleep(self.native_id, self.still_there)

    def still_there(self) -> None:
        assert self.is_alive(), f"the thread has ended: {self.result} {self.error!r}"
