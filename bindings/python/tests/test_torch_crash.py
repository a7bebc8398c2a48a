# SPDX-License-Identifier: MIT
"""Tensors when processes are killed, end, or fork. No crash leaks memory or harms others."""
from __future__ import annotations

import gc
import os
import re
import signal
import subprocess
import sys
import warnings
from typing import Any, Iterator

import pytest

torch = pytest.importorskip("torch")

from torch_children import (LIMIT, Child, ask, both_see, echo, end_with, hold,  # noqa: E402
                            run, send_and_stay, send_new, sum_of, until)

import xmem                                     # noqa: E402
import xmem.torch                               # noqa: E402
from xmem import _torch                         # noqa: E402


@pytest.fixture(autouse=True)
def installed() -> Iterator[None]:
    xmem.torch.install()
    yield
    xmem.torch.uninstall()


def stat() -> dict[str, int]:
    gc.collect()
    return _torch.stat(xmem.torch.installing.pool().number)


def settled(before: dict[str, int]) -> None:
    """Wait until the pool is as it was: no hold and no claim more, and as many clients."""
    def same() -> bool:
        now = stat()
        return all(now[name] <= before[name] for name in ("held", "holds", "claims", "clients"))

    until(same, f"the pool is as before: {before}, not {stat()}")


# ---- killed ----


def test_a_killed_consumer_of_1000_tensors_leaves_nothing() -> None:
    before = stat()
    with Child(hold) as child:
        for number in range(1000):
            child.put(torch.full((16,), float(number)))
            assert child.get() == number + 1
        there = stat()
        assert there["holds"] >= before["holds"] + 1000, "it holds them"
        child.kill()
    settled(before)


def test_a_consumer_killed_again_and_again_leaves_nothing() -> None:
    before = stat()
    kept = torch.arange(1000.0).share_memory_()
    for _ in range(20):
        with Child(hold, method="fork") as child:
            for number in range(8):
                child.put(kept if number % 2 else torch.zeros(1 << 16))
                child.get()
            child.kill()
    assert kept.sum() == 499500
    del kept
    settled(before)
    assert stat()["bytes_files"] < 64 << 20, "buffers are used again"


def test_tensors_of_a_killed_producer_stay_readable() -> None:
    before = stat()
    with Child(send_and_stay, 50, 1000) as child:
        received = [child.get() for _ in range(25)]
        assert child.pipe.poll(LIMIT)
        until(lambda: stat()["claims"] >= before["claims"] + 25, "all have been sent")
        child.kill()
        for number, tensor in enumerate(received):
            assert tensor.eq(number).all()
            tensor.add_(1)      # and writable
        in_flight = [child.get() for _ in range(25)]
    for number, tensor in enumerate(in_flight):
        assert tensor.eq(number + 25).all(), "what was in flight is there, too"
    assert received[3].eq(4).all()
    del received, in_flight, tensor
    settled(before)


def test_a_killed_producer_whose_tensor_is_sent_on() -> None:
    with Child(send_and_stay, 1, 8) as producer, Child(ask, sum_of) as consumer:
        tensor = producer.get()
        producer.kill()
        tensor.fill_(2)
        consumer.put(tensor)
        assert consumer.get() == 16
        consumer.put(None)
        consumer.end()


def test_what_was_in_flight_to_a_killed_consumer_comes_back_in_time() -> None:
    before = stat()
    xmem.torch.install(in_flight=0.05)
    try:
        with Child(hold) as child:
            os.kill(child.process.pid, signal.SIGSTOP)
            for _ in range(20):
                child.put(torch.zeros(100))
            child.kill()
        settled(before)
    finally:
        xmem.torch.install()


# ---- ended ----


@pytest.mark.parametrize("method", [
    "fork", pytest.param("spawn", marks=pytest.mark.long), "forkserver"])
def test_a_process_ends_normally_with_tensors_alive(method: str) -> None:
    before = stat()
    tensors = [torch.full((10,), float(number)) for number in range(10)]
    with Child(end_with, 10, method=method) as child:
        for tensor in tensors:
            child.put(tensor)
        assert child.get() == 20
        child.end()
    assert all(tensor.eq(number).all() for number, tensor in enumerate(tensors))
    del tensor, tensors
    settled(before)


def test_the_producer_has_ended_before_anybody_looks() -> None:
    with Child(send_new, 5, 100) as child:
        child.put("end")
        child.end()
        assert [float(child.get()[0]) for _ in range(5)] == [0, 1, 2, 3, 4]


WHOLE = """
import os, sys, torch, torch.multiprocessing as multiprocessing
import xmem.torch
from torch_children import Child, ask, sum_of

if __name__ == "__main__":
    xmem.torch.install()
    tensors = [torch.full((100,), float(number)) for number in range(20)]
    child = Child(ask, sum_of)
    for number, tensor in enumerate(tensors):
        child.put(tensor)
        assert child.get() == 100 * number
    tensors[0].cycle = tensors      # only the collector, or nobody, drops these
    print(xmem.torch.installed(), os.getpid(), child.process.pid, flush=True)
    if sys.argv[1] == "kill":
        os.kill(child.process.pid, 9)
        os.kill(os.getpid(), 9)
    child.put(None)
    child.end()
"""


def shared_files(processes: list[str]) -> list[str]:
    """Files of shared memory that have the number of one of these processes in their names."""
    return [name for name in os.listdir("/dev/shm")
            if not set(re.findall("[0-9]+", name)).isdisjoint(processes)]


def test_shared_files_of_torch_itself_are_found() -> None:
    xmem.torch.uninstall()
    strategy = torch.multiprocessing.get_sharing_strategy()
    torch.multiprocessing.set_sharing_strategy("file_system")
    try:
        tensor = torch.zeros(100).share_memory_()
        assert any(name.startswith("torch_") for name in shared_files([str(os.getpid())]))
        del tensor
    finally:
        torch.multiprocessing.set_sharing_strategy(strategy)


@pytest.mark.long
@pytest.mark.parametrize("how", ["end", "kill"])
def test_nothing_is_left_of_a_whole_program(how: str, tmp_path: Any) -> None:
    program = tmp_path / "program.py"
    program.write_text(WHOLE)
    path = os.pathsep.join([os.path.dirname(__file__), *filter(None, sys.path)])
    done = subprocess.run([sys.executable, program, how], env={**os.environ, "PYTHONPATH": path},
                          capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == (-signal.SIGKILL if how == "kill" else 0), done.stderr
    assert "Traceback" not in done.stderr and "leaked" not in done.stderr
    name, *processes = done.stdout.split()
    assert len(processes) == 2
    assert name.startswith("torch-")

    def gone() -> bool:
        try:
            xmem.BufferPool(name, existing=True).close()
        except xmem.NotFound:
            return True
        return False

    until(gone, "the pool ends with its last process")
    assert not shared_files(processes)


# ---- forked ----


def test_a_forked_child_goes_on_with_its_parents_tensors() -> None:
    before = stat()
    large = torch.arange(1 << 18, dtype=torch.int32).share_memory_()
    small = [torch.full((3,), float(number)).share_memory_() for number in range(200)]
    with Child(_check_inherited, large, small, method="fork") as child:
        assert child.get() == "read"
        large[5] = -5
        small[7][0] = 70
        child.put("look")
        assert child.get() == (-5, 70)
        assert large[6] == -6 and float(small[8][1]) == 80, "the child has written"
        child.put("end")
        child.end()
    del large, small
    settled(before)


def _check_inherited(pipe: Any, large: Any, small: Any) -> None:
    assert torch.equal(large, torch.arange(1 << 18, dtype=torch.int32))
    assert all(tensor.eq(number).all() for number, tensor in enumerate(small))
    pipe.send("read")
    pipe.recv()
    seen = (int(large[5]), int(small[7][0]))
    large[6] = -6
    small[8][1] = 80
    pipe.send(seen)
    pipe.recv()


def test_a_forked_child_keeps_what_its_parent_drops() -> None:
    before = stat()
    tensor = torch.full((1 << 16,), 3.0).share_memory_()
    with Child(_keep_and_answer, tensor, method="fork") as child:
        assert child.get() == 3
        del tensor
        gc.collect()
        others = [torch.full((1 << 16,), 9.0).share_memory_() for _ in range(20)]
        child.put("look")
        assert child.get() == 3, "nobody has got its memory meanwhile"
        child.put("end")
        child.end()
    del others
    settled(before)


def _keep_and_answer(pipe: Any, tensor: Any) -> None:
    while True:
        pipe.send(float(tensor[1000]))
        if pipe.recv() == "end":
            return


def test_a_fork_of_a_fork() -> None:
    tensor = torch.zeros(4).share_memory_()
    with Child(_fork_again, tensor, method="fork") as child:
        assert child.get() == "done"
        assert tensor.tolist() == [1, 2, 0, 0]
        child.end()


def _fork_again(pipe: Any, tensor: Any) -> None:
    tensor[0] = 1
    with Child(_set_second, tensor, method="fork") as child:
        child.get()
        assert float(tensor[1]) == 2
        child.end()
    pipe.send("done")


def _set_second(pipe: Any, tensor: Any) -> None:
    assert float(tensor[0]) == 1
    tensor[1] = 2
    pipe.send("set")


def test_a_forked_child_sends_an_inherited_tensor_back() -> None:
    tensor = torch.arange(3.0).share_memory_()
    with Child(_send_inherited, tensor, method="fork") as child:
        back = child.get()
        assert xmem.torch.versions.untyped(back)._cdata == \
            xmem.torch.versions.untyped(tensor)._cdata
        child.put("end")
        child.end()


def _send_inherited(pipe: Any, tensor: Any) -> None:
    pipe.send(tensor)
    pipe.recv()


def test_a_child_whose_tensors_are_gone_says_so() -> None:
    tensor = torch.arange(3.0).share_memory_()
    reading, writing = os.pipe()
    child = _fork_without_hooks()
    if not child:       # a child that comes to Python only after its parent has dropped all
        os.close(writing)
        os.read(reading, 1)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            xmem.torch.installing._after_fork()
        os._exit(0 if "1 shared tensors" in str(caught[0].message) else 1)
    os.close(reading)
    del tensor
    stat()              # its buffer is found to be free
    os.close(writing)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _fork_without_hooks() -> int:
    """fork() of the C library, without what Python calls around it."""
    import ctypes

    return ctypes.PyDLL(None).fork()


FORKS_WHILE_OTHERS_SHARE = """
import os, threading

xmem.torch.install()
warnings.simplefilter("error")      # of a child: it says so on its stderr
kept = torch.zeros(50).share_memory_()
# torch must have made its state for these operations before: a child that is forked while another
# thread makes it waits for ever, with and without xmem.
kept[0] += 1
assert torch.ones(7).share_memory_().sum() == 7 and torch.ones(100).share_memory_()[0] == 1
end = threading.Event()

def share():
    while not end.is_set():
        torch.ones(100).share_memory_()

threads = [threading.Thread(target=share) for _ in range(3)]
for thread in threads:
    thread.start()
for number in range(8):
    child = os.fork()
    if not child:
        kept[0] += 1
        os._exit(0 if torch.ones(7).share_memory_().sum() == 7 else 1)
    assert os.waitpid(child, 0)[1] == 0
end.set()
for thread in threads:
    thread.join()
assert kept[0] == 9
"""


def test_a_child_does_not_miss_what_only_other_threads_had() -> None:
    run(FORKS_WHILE_OTHERS_SHARE, quiet=True)
