# SPDX-License-Identifier: MIT
"""Children by fork that cannot join their parent's pool, and buffers that were received twice."""
from __future__ import annotations

import gc
import os
import pickle
import sys
import threading
from multiprocessing.reduction import ForkingPickler
from typing import Any, Iterator

import pytest

torch = pytest.importorskip("torch")

from torch_children import killed_host, run     # noqa: E402

import xmem.torch                               # noqa: E402
from xmem import _torch                         # noqa: E402
from xmem.torch import pools, versions          # noqa: E402


@pytest.fixture
def installed() -> Iterator[None]:
    xmem.torch.install()
    yield
    xmem.torch.uninstall()


def end_of(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


# ---- received twice ----


def test_two_threads_that_receive_it_have_one_storage(installed: None) -> None:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for number in range(40):
            seen: list[Any] = []
            barrier = threading.Barrier(2)

            def receive(message: bytes) -> None:
                barrier.wait()
                seen.append(versions.untyped(pickle.loads(message)))

            threads = [threading.Thread(target=receive, args=(message,))
                       for message in _messages_of_a_tensor_that_is_gone(number)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert len(seen) == 2 and seen[0]._cdata == seen[1]._cdata
            assert seen[0].nbytes() == 4000
    finally:
        sys.setswitchinterval(interval)


def _messages_of_a_tensor_that_is_gone(number: int) -> list[bytes]:
    tensor = torch.full((1000,), float(number))
    return [bytes(ForkingPickler.dumps(tensor)) for _ in range(2)]


@pytest.mark.parametrize("first", [0, 1])
def test_a_child_drops_one_of_two_storages_of_a_buffer(installed: None, first: int) -> None:
    gc.collect()
    before = _torch.holds()     # of other tests
    tensor = torch.full((50000,), 3.0).share_memory_()
    name, token, _ = _torch.offer(tensor.data_ptr())
    capsule, _, _ = _torch.get(pools.join(name).number, token)
    both = [tensor, versions.from_capsule(capsule).view(torch.float32)]
    del tensor, capsule
    assert both[0].data_ptr() == both[1].data_ptr()
    child = os.fork()
    if not child:
        del both[first]
        ok = float(both[0][25000]) == 3
        both[0][25000] = 4
        both.clear()
        os._exit(0 if ok and _torch.holds() <= before else 1)
    assert end_of(child) == 0
    assert both[0][25000] == 4 and both[1][25000] == 4


# ---- no way into the pool ----

FORK = """
import os, sys, warnings, torch.multiprocessing

torch.set_num_threads(1)    # a child by fork has none of its parent's

def fork(what):
    child = os.fork()
    if not child:
        try:
            what()
        except BaseException as error:
            print(repr(error), flush=True)
            os._exit(1)
        sys.stdout.flush()
        os._exit(0)
    end = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert end == 0, end

small = [torch.full((3,), float(number)) for number in range(200)]
large = torch.arange(1 << 16)
"""

COPIES = """
def child():
    assert all(tensor.eq(number).all() for number, tensor in enumerate(small)), "read"
    assert torch.equal(large, torch.arange(1 << 16))
    small[5].fill_(-1)
    large[7] = -7
    assert not large.is_shared() and not xmem.torch.is_pooled(large)
    del small[::2]
    gc.collect()
    assert small[2].eq(-1).all() and small[0].eq(1).all()
    fork(grandchild)
    assert large[7] == -7

def grandchild():
    assert large[7] == -7 and small[2].eq(-1).all() and small[90].eq(181).all()
    large[7] = -8

def seen():
    return small[5].eq(5).all() and large[7] == 7 and large.is_shared()
"""


def test_a_child_for_which_the_pool_has_no_room_has_copies() -> None:
    out = run(FORK + COPIES + """
def full():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fork(lambda: print(*[str(each.message) for each in caught]))
    child()
    message = ""
    try:
        dumps(large)
    except xmem.Error as error:
        message = str(error)
    assert "clients" in message or "processes" in message, message

xmem.torch.install(clients=1)
for tensor in [*small, large]:
    tensor.share_memory_()
fork(full)
assert seen(), "nobody else sees what the child writes"
fork(child)
""")
    assert out == "\n", out


def test_a_warning_says_what_is_a_copy() -> None:
    done = run(FORK + """
xmem.torch.install(clients=1)
kept = large.share_memory_()
def child():
    pass
sys.stderr = sys.stdout
fork(child)
""")
    assert "1 shared tensors of the parent are copies of this child's own" in done


def test_a_child_without_a_host_has_copies() -> None:
    run(killed_host + FORK + COPIES + """
xmem.torch.install()
for tensor in [*small, large]:
    tensor.share_memory_()
kill_host()
warnings.simplefilter("ignore")
fork(child)
assert seen()
fork(child)
""", XMEM_SOCKET=f"{os.environ['XMEM_SOCKET']}-forks-{os.getpid()}")


def test_threads_that_fork_at_once_have_children_alike() -> None:
    """Other libraries' functions run before a fork, too, and wait: here for logging's lock."""
    run(killed_host + FORK + """
import logging, pathlib, threading
xmem.torch.install()
large.share_memory_()
kill_host()
warnings.simplefilter("ignore")

def sleeps(thread):
    stat = pathlib.Path(f"/proc/self/task/{thread.native_id}/stat").read_text()
    return stat.rpartition(")")[2].split()[0] == "S"

def fork_once():
    child = os.fork()
    if not child:
        os._exit(int(large[0].item() != 1))
    ends.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

ends = []
for _ in range(5):
    large.fill_(1)
    threads = [threading.Thread(target=fork_once) for _ in range(3)]
    logging._acquireLock()
    for thread in threads:
        thread.start()
    still = 0
    while still < 20:       # all of them wait, and not only for the GIL
        threading.Event().wait(0.001)
        still = still + 1 if all(map(sleeps, threads)) else 0
    logging._releaseLock()
    for thread in threads:
        thread.join()
assert ends == 15 * [0], ends
""", XMEM_SOCKET=f"{os.environ['XMEM_SOCKET']}-threads-{os.getpid()}")


def test_a_child_of_c_has_no_page_of_its_parents_pool() -> None:
    run(FORK + """
import ctypes
xmem.torch.install()
large.share_memory_()
del small
child = ctypes.PyDLL(None).fork()
if not child:
    large[0].item()     # SIGSEGV: it is nobody's memory
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -11
fork(lambda: large[:1].fill_(3))
assert large[0] == 3, "one by Python is a process of the pool"
""")
