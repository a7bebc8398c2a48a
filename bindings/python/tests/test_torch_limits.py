# SPDX-License-Identifier: MIT
"""Limits of a pool: what is said when one is reached, and what happens then."""
from __future__ import annotations

import os
from typing import Any

import pytest

pytest.importorskip("torch")

from torch_children import run  # noqa: E402

def test_no_slot_is_left() -> None:
    out = run("""
xmem.torch.install(slots=64)
kept = []
try:
    for number in range(100):
        kept.append(torch.full((4,), float(number)).share_memory_())
except xmem.Error as error:
    assert "slot" in str(error) and error.__notes__, error
assert len(kept) == 64
tensor = torch.arange(3)
try:
    dumps(tensor)
    raise SystemExit("it was shared all the same")
except xmem.Error as error:
    print(error.__notes__)
    assert error.strerror.startswith("Use install(slots=...), up to 65536"), error
    assert "slot" in error.strerror.partition("its slots. ")[2], error
assert tensor.tolist() == [0, 1, 2] and not tensor.is_shared()
del kept[:8]
assert pickle.loads(dumps(tensor)).tolist() == [0, 1, 2]
assert kept[0].eq(8).all()
""")
    assert "fallback=True" in out


def test_torch_is_asked_only_if_the_user_says_so() -> None:
    run("""
xmem.torch.install(slots=64, fallback=True)
kept = [torch.zeros(4).share_memory_() for _ in range(64)]
tensor = torch.arange(3)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for _ in range(2):
        message = dumps(tensor)
assert len(caught) == 1 and "torch's own way" in str(caught[0].message)
assert b"xmem" not in message and tensor.is_shared() and not xmem.torch.is_pooled(tensor)
assert pickle.loads(message).tolist() == [0, 1, 2]
assert torch.zeros(2).share_memory_().is_shared()
del kept
assert b"xmem" in dumps(torch.arange(4)), "it goes back to the pool when there is room"
""")


def test_no_bytes_are_left() -> None:
    run("""
xmem.torch.install(nbytes=4 << 20)
kept = torch.zeros(1 << 19).share_memory_()
try:
    torch.zeros(1 << 20).share_memory_()
    raise SystemExit("more than allowed")
except xmem.Error as error:
    assert error.strerror.startswith("Use install(nbytes=...)") and "slots" not in str(error)
assert kept.is_shared()
""")


def test_no_file_is_left() -> None:
    """The daemon may have few, because the program that starts it may have few descriptors."""
    run("""
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
xmem.torch.install()
kept = []
try:
    for number in range(1000):
        nbytes = 50_000 + number * 7919 % 300_000
        kept.append(torch.zeros(nbytes, dtype=torch.uint8).share_memory_())
    raise SystemExit("as many files as one likes")
except xmem.Error as error:
    note = error.strerror
    assert "payload files" in str(error), error
    assert "whatever slots= and nbytes= are" in note and "install(slots" not in note, note
assert len(kept) > 100
# Small ones share files, so that many more of them are to be had with as few.
del kept
small = [torch.zeros(1000 + number % 9 * 1000, dtype=torch.uint8).share_memory_()
         for number in range(2000)]
assert all(tensor.is_shared() for tensor in small)
""", XMEM_SOCKET=f"{os.environ['XMEM_SOCKET']}-few")


@pytest.mark.long
def test_no_place_is_left_for_a_process() -> None:
    name = f"torch-full-{os.getpid()}"
    program = f"""
import xmem, xmem.torch
try:
    xmem.torch.install({name!r}, clients=1)
    raise SystemExit("there is a place")
except xmem.Limit as error:
    print(error, error.__notes__[0])
"""
    out = run(f"""
import os, subprocess
xmem.torch.install({name!r}, clients=1)
print(os.getpid(), subprocess.run([sys.executable, "-c", {program!r}], check=True, text=True,
                                  stdout=subprocess.PIPE).stdout)
""")
    pid, said = out.split(maxsplit=1)
    assert "which is 1: 1 are alive" in said and "install(clients=...)" in said, said
    assert f" pid {pid}" in said, said


def test_no_memory_is_left() -> None:
    run("""
from xmem.torch import installing, storages
xmem.torch.install()
try:
    storages.make(installing.pool(), 1 << 44)
    raise SystemExit("so much memory")
except xmem.Error as error:
    assert not installing.falls_back(error)
    note = error.strerror
    assert "Memory is lacking" in note and "install(slots" not in note, note
""")


@pytest.mark.parametrize("options", [
    {"slots": 0}, {"slots": 65537}, {"clients": 0}, {"nbytes": -1}, {"nbytes": 0},
    {"cache_bytes": -1}, {"cache_time": -1.0}, {"cache_time": 1e12}, {"in_flight": -5.0},
    {"in_flight": float("nan")}, {"in_flight": 1e30}, {"pool_name": ""}], ids=str)
def test_numbers_that_cannot_be(options: dict[str, Any]) -> None:
    import xmem.torch

    with pytest.raises(ValueError, match=str(next(iter(options))).replace("pool_", "")):
        xmem.torch.install(**options)
    assert xmem.torch.installed() is None


def test_no_host() -> None:
    run("""
try:
    xmem.torch.install()
    raise SystemExit("there is none")
except xmem.NoDevice as error:
    assert error.__notes__
assert xmem.torch.installed() is None
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    xmem.torch.install(fallback=True)
    assert len(caught) == 1
tensor = torch.arange(3)
assert b"xmem" not in dumps(tensor) and tensor.is_shared()
""", XMEM_DAEMON="none", XMEM_SOCKET="xmem-nobody-listens-here")


def test_tensors_whose_program_has_ended() -> None:
    import pathlib
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        where = str(pathlib.Path(folder, "message"))
        run(f"""
xmem.torch.install()
open({where!r}, "wb").write(dumps(torch.arange(3)))
""")
        run(f"""
try:
    pickle.loads(open({where!r}, "rb").read())
    raise SystemExit("there is nobody who has it")
except xmem.NotFound as error:
    assert "have ended" in error.__notes__[0], error.__notes__
""")


@pytest.mark.long
def test_another_program_uses_a_pool_by_its_name() -> None:
    name = f"torch-test-{os.getpid()}"
    run(f"""
import subprocess
xmem.torch.install({name!r})
tensor = torch.arange(3)
program = '''
import sys, pickle, xmem.torch
tensor = pickle.loads(sys.stdin.buffer.read())
tensor.add_(1)
assert xmem.torch.installed() == {name!r}
'''
subprocess.run([sys.executable, "-c", program], input=dumps(tensor), check=True)
assert tensor.tolist() == [1, 2, 3]
""")


def test_a_lost_reference_is_an_error_that_says_why() -> None:
    run("""
xmem.torch.install()
tensor = torch.arange(3)
message = dumps(tensor)
del tensor
pickle.loads(message)       # takes the only reference, and drops it
xmem._torch.stat(xmem.torch.installing.pool().number)       # its buffer is found to be free
try:
    pickle.loads(message)
    raise SystemExit("it is gone")
except xmem.Stale as error:
    assert error.__notes__
""")


@pytest.mark.parametrize("call, says", [
    ("share(3)", "a tensor of torch"), ("is_pooled([1])", "a tensor of torch"),
    ("tensor(3)", "a BufferGuard"), ("install(3)", "pool_name"),
    ("install(slots=True)", "slots is a whole number"), ("install(clients=3.5)", "clients"),
    ("install(nbytes=1e9)", "nbytes is a whole number or None"), ("install(slots=None)", "slots"),
    ("install(in_flight='x')", "in_flight is a number or None"),
    ("install(cache_time=None)", "cache_time"), ("install(fallback=1)", "fallback is True or")])
def test_what_is_of_another_type(call: str, says: str) -> None:
    import xmem.torch

    before = xmem.torch.installed()
    with pytest.raises(TypeError, match=says):
        eval(f"xmem.torch.{call}", {"xmem": xmem})
    assert xmem.torch.installed() == before
