# SPDX-License-Identifier: MIT
"""Tensors in pools after uninstall(), and settings after install() has failed."""
from __future__ import annotations

import os
import pickle
from multiprocessing.reduction import ForkingPickler
from typing import Any, Iterator

import pytest

torch = pytest.importorskip("torch")

from torch_children import Child, receive_and_return, run, watch    # noqa: E402

import xmem                                 # noqa: E402
import xmem.torch                           # noqa: E402
from xmem import _torch                     # noqa: E402
from xmem.torch import state            # noqa: E402

METHODS = ["fork", pytest.param("spawn", marks=pytest.mark.long), "forkserver"]


@pytest.fixture(autouse=True)
def installed() -> Iterator[None]:
    xmem.torch.install()
    yield
    xmem.torch.uninstall()


def message(thing: Any) -> bytes:
    return bytes(ForkingPickler.dumps(thing))


# ---- uninstall ----


def test_who_has_a_tensor_goes_on_seeing_it() -> None:
    tensor = torch.arange(3.0)
    with Child(watch) as child:
        child.put(tensor)
        xmem.torch.uninstall()
        address = tensor.data_ptr()
        for thing in (tensor, tensor[:2], torch.nn.Parameter(tensor)):
            child.put(thing)
            assert child.get() is True, "it is the memory that the child has"
        assert tensor.share_memory_().data_ptr() == address and tensor.is_shared()
        tensor.add_(1)
        child.put("look")
        assert child.get() == [1, 2, 3]
        child.put(None)
        child.end()


@pytest.mark.parametrize("method", METHODS)
def test_children_that_are_started_later_receive_it(method: str) -> None:
    tensor = torch.arange(3.0).share_memory_()
    xmem.torch.uninstall()
    with Child(receive_and_return, method=method) as child:
        child.put(tensor)
        name, pooled, back = child.get()
        assert name is None and pooled, "it has the tensor, and has not installed"
        assert back.data_ptr() == tensor.data_ptr() and tensor.tolist() == [1, 2, 3]
        child.put("end")
        child.end()
    assert xmem.torch.installed() is None


def test_an_argument_of_a_child_by_fork() -> None:
    tensor = torch.arange(3.0).share_memory_()
    xmem.torch.uninstall()
    with Child(_send_inherited, tensor, method="fork") as child:
        assert child.get().data_ptr() == tensor.data_ptr()
        tensor[0] = 9
        child.put("look")
        assert child.get() == [9, 1, 2]
        child.end()


def _send_inherited(pipe: Any, tensor: Any) -> None:
    pipe.send(tensor)
    pipe.recv()
    pipe.send(tensor.tolist())


def test_a_program_that_has_never_installed_receives_it_and_sends_it_on(tmp_path: Any) -> None:
    tensor = torch.arange(3.0).share_memory_()
    xmem.torch.uninstall()
    file = tmp_path / "message"
    file.write_bytes(message([tensor, tensor.storage()]))
    run("""
tensor, storage = pickle.loads(open(sys.argv[1], "rb").read())
assert tensor.tolist() == [0, 1, 2] and xmem.torch.installed() is None
address = tensor.data_ptr()
assert tensor.is_shared() and b"xmem" in dumps(tensor), "it is passed on as it came"
assert tensor.share_memory_().data_ptr() == address
assert b"xmem" not in dumps(torch.zeros(3)), "what is new goes torch's own way"
tensor.mul_(2)
""", str(file))
    assert tensor.tolist() == [0, 2, 4]


def test_new_tensors_go_torchs_own_way() -> None:
    kept = torch.arange(3.0).share_memory_()
    xmem.torch.uninstall()
    tensor = torch.arange(4.0)
    assert b"xmem" not in message(tensor) and b"xmem" in message(kept)
    assert tensor.is_shared() and not xmem.torch.is_pooled(tensor)
    storage = torch.UntypedStorage._new_shared(64)
    assert storage.is_shared() and _torch.find(storage.data_ptr()) is None
    assert torch.zeros(2).share_memory_().is_shared()


def test_with_the_last_tensor_all_is_torchs_own() -> None:
    run("""
from torch.multiprocessing import reductions
stock = dict(vars(torch.UntypedStorage))
kinds = dict(ForkingPickler._extra_reducers)
xmem.torch.install()
kept = [torch.arange(3.0).share_memory_() for _ in range(3)]
xmem.torch.uninstall()
assert all(b"xmem" in dumps(tensor) for tensor in kept)
del kept[:2]
assert b"xmem" in dumps(kept[0]) and dict(vars(torch.UntypedStorage)) != stock
xmem._torch.set_in_flight(-1)
del kept
gc.collect()
assert b"xmem" not in dumps(torch.zeros(2))
assert dict(vars(torch.UntypedStorage)) == stock
left = ForkingPickler._extra_reducers
assert {kind: left.get(kind) for kind in kinds} == kinds and len(left) >= len(kinds)
assert not any("xmem" in function.__module__ for function in left.values())
""")


def test_a_tensor_that_is_shared_without_install_is_recognised() -> None:
    run("""
import os
tensor = xmem.torch.share(torch.arange(3.0))
address = tensor.data_ptr()
reading, writing = os.pipe()
child = os.fork()
if not child:
    os.read(reading, 1)
    os._exit(0 if tensor.tolist() == [5, 1, 2] else 1)
assert b"xmem" in dumps(tensor) and tensor.is_shared() and tensor.data_ptr() == address
tensor[0] = 5
os.write(writing, b"x")
assert os.waitpid(child, 0)[1] == 0
assert xmem.torch.installed() is None and b"xmem" not in dumps(torch.zeros(2))
""")


def test_install_again() -> None:
    name = xmem.torch.installed()
    before = torch.arange(3.0).share_memory_()
    xmem.torch.uninstall()
    xmem.torch.install()
    assert xmem.torch.installed() == name
    after = torch.arange(3.0).share_memory_()
    found = [_torch.find(tensor.data_ptr()) for tensor in (before, after)]
    assert [each[0] for each in found if each] == [name, name]
    with Child(receive_and_return) as child:
        child.put(before)
        assert child.get()[0] == name, "and children install again"
        child.put("end")
        child.end()
    assert before.tolist() == [1, 2, 3]


@pytest.mark.long
def test_another_pool_after_uninstall() -> None:
    name = f"other-{os.getpid()}"
    run(f"""
from torch_children import Child, receive_and_return
if __name__ == "__main__":
    xmem.torch.install()
    first = xmem.torch.installed()
    before = torch.arange(3.0).share_memory_()
    xmem.torch.uninstall()
    xmem.torch.install({name!r})
    after = torch.arange(3.0).share_memory_()
    for tensor, pool in ((before, first), (after, {name!r})):
        assert pool.encode() in dumps(tensor) and xmem._torch.find(tensor.data_ptr())[0] == pool
        for method in ("fork", "forkserver"):
            with Child(receive_and_return, method=method) as child:
                child.put(tensor)
                installed, pooled, back = child.get()
                assert installed == {name!r} and pooled, (installed, pooled)
                assert back.data_ptr() == tensor.data_ptr()
                child.put("end")
                child.end()
        assert tensor.tolist() == [2, 3, 4]
""")


# ---- install() that fails ----


@pytest.mark.parametrize("how", [
    {"pool_name": "another"}, {"cache_time": -1.0}, {"pool_name": ""}, {"slots": "many"},
    {"slots": 0}], ids=str)
def test_an_install_that_is_refused_leaves_all_as_it_was(how: dict[str, Any],
                                                         monkeypatch: pytest.MonkeyPatch) -> None:
    before = (state._sizes, state._fallback, xmem.torch.installed())
    monkeypatch.setattr(_torch, "set_in_flight", lambda ns: pytest.fail("it is set"))
    options: dict[str, Any] = {"slots": 99, "fallback": True, "in_flight": 0.001, **how}
    with pytest.raises((ValueError, TypeError)):
        xmem.torch.install(**options)
    assert (state._sizes, state._fallback, xmem.torch.installed()) == before


def test_a_pool_that_cannot_be_made_leaves_all_as_it_was() -> None:
    run("""
from xmem.torch import installing, pools, state
before = (state._sizes, state._fallback, state._name)
settings = []
installing._torch.set_in_flight = settings.append
for options in ({"slots": 7}, {"pool_name": "x", "in_flight": 1.0}, {"cache_bytes": 0}):
    try:
        xmem.torch.install(**options)
        raise SystemExit("there is no host")
    except xmem.NoDevice:
        pass
    assert (state._sizes, state._fallback, state._name) == before
assert not settings and xmem.torch.installed() is None
assert b"xmem" not in dumps(torch.zeros(3))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    xmem.torch.install(slots=7, fallback=True)
assert len(caught) == 1 and state._fallback and state._sizes.slots == 7
assert settings == [-1]
""", XMEM_DAEMON="none", XMEM_SOCKET="xmem-nobody-listens-here")


def test_a_number_of_the_wrong_kind_is_found_before_anything_is_set() -> None:
    run("""
from xmem.torch import installing, state
before = (state._sizes, state._fallback, state._name)
try:
    xmem.torch.install(slots=1.5, fallback=True)
    raise SystemExit("one and a half slots")
except TypeError:
    pass
assert (state._sizes, state._fallback, state._name) == before
assert xmem.torch.installed() is None
""")


# ---- a pool without install() ----


def test_a_pool_has_its_name_once_it_is_there() -> None:
    """Of two threads that need it first, one makes it, and the other waits until it is made."""
    run("""
from support import Thread
from xmem.torch import installing, pools, state
join, first, others = pools.join, [True], []

def joining(*arguments, **keywords):
    if first:
        first.clear()
        others.append(Thread(installing.pool))
        others[0].waits()
    return join(*arguments, **keywords)

def failing(*arguments, **keywords):
    raise xmem.NoDevice(19, "there is no host yet")

pools.join = failing
try:
    installing.pool()
except xmem.NoDevice:
    assert state._name is None, "no pool has that name"
pools.join = joining
assert installing.pool() is others[0].get()
""")
