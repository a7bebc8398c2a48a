# SPDX-License-Identifier: MIT
"""The programs of examples/strings: kernels of one process make a column of strings, and other
processes read it after that process was killed."""
from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import xmem
from gpu import needs_gpu, no_violations  # noqa: F401
from support import LIMIT, fresh_name

pytest.importorskip("pyarrow", reason="pyarrow is not installed")

TOP = Path(__file__).resolve().parents[3]
BUILT = TOP / "build/test"      # make FLAVOUR=test strings
READER = [sys.executable, str(TOP / "examples/strings/reader.py")]
PACKAGE = str(Path(xmem.__file__).absolute().parents[1])
ROWS = 1000000


def row(number: int) -> str:
    """A row as the kernels make it of its name: upper() if that is longer than 2, else twice."""
    name = f"r{number}"
    return (name.upper() if len(name) > 2 else name + name) + "abc" if number % 10 != 9 else "null"


class Program:
    def __init__(self, *command: str) -> None:
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": PACKAGE}, bufsize=0)

    def says(self, words: bytes, by: str) -> bytes:
        """Wait for a line with these words."""
        stream, line = getattr(self.process, by), b""
        while words not in line:
            assert select.select([stream], [], [], LIMIT)[0], f"it does not say {words!r}"
            line = stream.readline()
            assert line, (words, self.process.stderr.read())
        return line

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(LIMIT)

    def prints(self) -> list[str]:
        out, err = self.process.communicate(timeout=LIMIT)
        assert (self.process.returncode, err) == (0, b"")
        return out.decode().splitlines()


@pytest.fixture
def programs() -> Iterator[list[Program]]:
    started: list[Program] = []
    yield started
    for program in started:
        program.kill()


def outlives(programs: list[Program], readers: list[list[str]], *ptx: str) -> None:
    name = fresh_name("strings")
    programs.append(Program(str(BUILT / "strings_writer"), name, str(ROWS), *ptx))
    said = programs[0].says(b"published", "stdout")
    # Four allocations for each row that is not null, and none is left in the arena.
    counts = f"made {ROWS // 10 * 36}, freed {ROWS // 10 * 36}, failed 0"
    assert said.decode() == f"published {ROWS} rows; {counts}\n"
    for reader in readers:
        programs.append(Program(*reader, name))
        programs[-1].says(b"holding a column", "stderr")
    programs[0].kill()
    expected = [row(number) for number in range(ROWS)]
    for reading in programs[1:]:
        assert reading.prints() == expected


def test_a_column_outlives_the_process_whose_threads_made_it(programs: list[Program]) -> None:
    outlives(programs, [READER, [str(BUILT / "strings_reader")]])


@needs_gpu
def test_a_column_on_a_gpu_outlives_the_process_of_its_kernels(programs: list[Program]) -> None:
    outlives(programs, [READER], str(BUILT / "strings.ptx"))
