# SPDX-License-Identifier: MIT
"""Tensors after the host of their pool has ended, and how a process gets a new pool."""
from __future__ import annotations

import os

import pytest

pytest.importorskip("torch")

from torch_children import killed_host, run     # noqa: E402


def run_alone(program: str, number: int) -> str:
    """With a host that may be killed."""
    return run(killed_host + program,
               XMEM_SOCKET=f"{os.environ['XMEM_SOCKET']}-hosts-{os.getpid()}-{number}")


GONE = """
kept = torch.arange(3.0).share_memory_()
first = xmem.torch.installed()
kill_host()
def refuses(call):
    try:
        call()
    except xmem.HostGone as error:
        return " ".join([str(error), *error.__notes__])
    raise SystemExit("there is no host")
"""


@pytest.mark.parametrize("name", ["", "the-same"])
def test_install_makes_a_new_pool(name: str) -> None:
    run_alone(f"name = {name!r} or None\nxmem.torch.install(name)\n" + GONE + """
notes = refuses(lambda: dumps(torch.zeros(3)))
assert "uninstall() and install()" in notes, notes
xmem.torch.uninstall()
xmem.torch.install(name)
assert (xmem.torch.installed() == first) == (name is not None)
tensor = torch.full((3,), 7.0)
message = dumps(tensor)
assert b"xmem" in message and pickle.loads(message).data_ptr() == tensor.data_ptr()
assert tensor.is_shared() and kept.is_shared() and kept.tolist() == [0, 1, 2]
assert "clone()" in refuses(lambda: dumps(kept)), "it lies in the old one"
assert pickle.loads(dumps(kept.clone())).tolist() == [0, 1, 2]
child = os.fork()
if not child:
    ok = tensor.tolist() == [7, 7, 7] and kept.tolist() == [0, 1, 2]
    tensor[0] = kept[0] = 9
    os._exit(0 if ok and b"xmem" in dumps(tensor) else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert tensor[0] == 9 and kept[0] == 0, "the old one's are copies in children"
""", len(name))


def test_what_has_references_set_aside_is_refused_too() -> None:
    run_alone("""xmem.torch.install()
often = torch.arange(6.0)
for _ in range(3):
    pickle.loads(dumps(often))
assert b"rebuild_whole" in dumps(often), "nobody was asked"
""" + GONE + """
for _ in range(2):
    assert "clone()" in refuses(lambda: dumps(often))
""", 9)


def test_install_again_needs_no_uninstall() -> None:
    run_alone("xmem.torch.install()\n" + GONE + """
xmem.torch.install()
assert xmem.torch.installed() != first
assert b"xmem" in dumps(torch.zeros(3))
""", 1)


def test_who_has_it_keeps_it_without_a_host() -> None:
    """With fallback=True new tensors go torch's own way. Tensors that others have are not moved."""
    run_alone("xmem.torch.install(fallback=True)\nmessage = dumps(torch.zeros(2))\n" + GONE + """
warnings.simplefilter("ignore")
address = kept.data_ptr()
assert "clone()" in refuses(lambda: dumps(kept))
assert "fallback=True" not in refuses(lambda: dumps(kept[1:]))
assert kept.data_ptr() == address and kept.is_shared() and xmem.torch.is_pooled(kept)
new = torch.ones(3)
message = dumps(new)
assert b"xmem" not in message and pickle.loads(message).tolist() == [1, 1, 1]
""", 2)


def test_a_receiver_follows_its_sender_into_a_new_pool() -> None:
    run_alone("""
import torch.multiprocessing as multiprocessing
context = multiprocessing.get_context("fork")
def receive(pipe):
    while (tensor := pipe.recv()) is not None:
        pipe.send(torch.full((2,), float(tensor.sum())))    # new: it goes into the pool, too

for name in (None, "one-name"):
    xmem.torch.install(name)
    near, far = context.Pipe()
    child = context.Process(target=receive, args=(far,))
    child.start()
    far.close()
    near.send(torch.ones(3))
    assert near.recv().tolist() == [3, 3]
    kill_host()
    xmem.torch.uninstall()
    xmem.torch.install(name)
    near.send(torch.ones(5))
    back = near.recv()
    assert back.tolist() == [5, 5] and xmem.torch.is_pooled(back)
    near.send(None)
    child.join()
    assert child.exitcode == 0
    del back
    xmem.torch.uninstall()
""", 3)
