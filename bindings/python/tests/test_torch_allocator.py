# SPDX-License-Identifier: MIT
"""Ordinary tensors of the CPU in a pool, by an allocator of torch that is compiled here."""
from __future__ import annotations

import gc
import pickle
import threading
from multiprocessing.reduction import ForkingPickler
from typing import Any, Iterator

import pytest

torch = pytest.importorskip("torch")

from torch_children import Child, ask, fill, run, sum_of    # noqa: E402

import xmem.torch                                       # noqa: E402
from xmem import _torch                                 # noqa: E402
from xmem.torch import allocator, compiled                        # noqa: E402


def has_headers() -> bool:
    try:
        compiled.folders("it")
    except RuntimeError:
        return False
    return True


needs_headers = pytest.mark.skipif(not has_headers(), reason="the headers of torch: libtorch-dev")


@pytest.fixture(autouse=True)
def installed() -> Iterator[None]:
    xmem.torch.install()
    yield
    xmem.torch.uninstall()


def held() -> int:
    gc.collect()
    return _torch.stat(xmem.torch.installing.pool().number)["held"]


@needs_headers
def test_new_tensors_lie_in_the_pool() -> None:
    before = held()
    with xmem.torch.cpu_allocator(smallest=1024):
        tensor = torch.arange(1000.0)
        other = tensor * 2 + 1
        small = torch.zeros(8)
    later = torch.zeros(1000)
    assert xmem.torch.is_pooled(tensor) and xmem.torch.is_pooled(other)
    assert not xmem.torch.is_pooled(small) and not xmem.torch.is_pooled(later)
    assert other[999] == 1999
    assert tensor.data_ptr() % 64 == 0
    del tensor, other
    assert held() <= before


@needs_headers
def test_a_hand_over_copies_nothing() -> None:
    with xmem.torch.cpu_allocator():
        tensor = torch.full((1 << 16,), 1.5)
    address = tensor.data_ptr()
    assert tensor.is_shared()
    with Child(fill, 2.0) as child:
        child.put([tensor])
        assert child.get() == "filled"
        assert tensor.data_ptr() == address and bool(tensor.eq(2).all())
        child.end()


@needs_headers
def test_it_takes_another_allocator_when_it_has_enough() -> None:
    with xmem.torch.cpu_allocator(smallest=1, most=100):
        tensors = [torch.full((5,), float(number)) for number in range(300)]
        assert all(tensor.eq(number).all() for number, tensor in enumerate(tensors))
        pooled = sum(xmem.torch.is_pooled(tensor) for tensor in tensors)
        assert 50 < pooled <= 100
        del tensors
        assert xmem.torch.is_pooled(torch.zeros(5)), "there is room again"


@needs_headers
def test_it_takes_another_allocator_where_the_pool_has_no_room() -> None:
    with xmem.torch.cpu_allocator():
        with pytest.raises(RuntimeError):
            torch.empty(1 << 60, dtype=torch.uint8)     # nobody has that much
        small = torch.empty(0)
    assert small.numel() == 0


@needs_headers
def test_tensors_grow_and_shrink() -> None:
    with xmem.torch.cpu_allocator(smallest=64):
        tensor = torch.arange(100)
        tensor.resize_(100000)
        assert tensor[:100].tolist() == list(range(100))
        again = pickle.loads(bytes(ForkingPickler.dumps(tensor)))
        assert again.data_ptr() == tensor.data_ptr()
    tensor.resize_(10)
    assert again[:10].tolist() == tensor.tolist()


@needs_headers
def test_a_message_is_what_was_sent_though_its_tensor_has_grown() -> None:
    with xmem.torch.cpu_allocator(smallest=64):
        tensor = torch.arange(100)
        sent = bytes(ForkingPickler.dumps(tensor))
        tensor.resize_(100000).fill_(-1)
    assert pickle.loads(sent).tolist() == list(range(100))


@needs_headers
def test_two_storages_in_one_buffer_are_dropped_one_by_one() -> None:
    before = held()
    with xmem.torch.cpu_allocator(smallest=64):
        tensor = torch.arange(100)
    _, token, _ = _torch.offer(tensor.data_ptr())
    other, _, _ = _torch.get(xmem.torch.installing.pool().number, token)
    again = xmem.torch.versions.from_capsule(other).view(torch.int64)
    assert again.data_ptr() == tensor.data_ptr()
    del tensor
    assert again.tolist() == list(range(100))
    assert held() == before + 1
    del again, other
    assert held() <= before


@needs_headers
def test_memory_is_dropped_by_any_thread() -> None:
    before = held()
    errors: list[BaseException] = []

    def work() -> None:
        try:
            kept: list[Any] = []
            for number in range(300):
                kept.append(torch.full((5000,), float(number)))
                if len(kept) > 5:
                    kept.pop(0)
                assert kept[-1][4999] == number
            tensor = torch.ones(5000, requires_grad=True)
            (tensor * 3).sum().backward()       # frees in a thread of autograd's
        except BaseException as error:          # noqa: B036
            errors.append(error)

    with xmem.torch.cpu_allocator():
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not errors
    assert held() <= before


@needs_headers
def test_a_forked_child_allocates_from_the_pool() -> None:
    with xmem.torch.cpu_allocator():
        tensor = torch.ones(1 << 14)
        with Child(ask, sum_of, method="fork") as child:
            child.put(tensor)
            assert child.get() == 1 << 14
            child.put(None)
            child.end()


@needs_headers
def test_allocators_nest() -> None:
    with xmem.torch.cpu_allocator(smallest=1 << 20):
        with xmem.torch.cpu_allocator(smallest=64):
            assert xmem.torch.is_pooled(torch.zeros(100))
        assert not xmem.torch.is_pooled(torch.zeros(100))
        assert xmem.torch.is_pooled(torch.zeros(1 << 18))


def test_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setattr(allocator, "_library", None)
    monkeypatch.setenv("HOME", str(tmp_path))
    if has_headers():
        with pytest.raises(RuntimeError, match="no-such-compiler.*cannot be run"):
            xmem.torch.cpu_allocator(compiler="no-such-compiler")
        with pytest.raises(RuntimeError, match="false .*fails"):
            xmem.torch.cpu_allocator(compiler="false")
    monkeypatch.setattr(torch, "__file__", str(tmp_path / "torch/__init__.py"))
    monkeypatch.setattr(compiled, "Path", lambda name: tmp_path / str(name).lstrip("/"))
    with pytest.raises(RuntimeError, match="libtorch-dev"):
        compiled.folders("it")
    with pytest.raises(ValueError, match="smallest"):
        xmem.torch.cpu_allocator(smallest=0)
    assert not list(tmp_path.glob(".cache/xmem/*"))


@needs_headers
def test_its_tensors_are_recognised_without_install() -> None:
    run("""
with xmem.torch.cpu_allocator(smallest=1024):
    assert b"xmem" not in dumps(torch.zeros(3)), "a small one is none of the pool's"
    tensor = torch.full((1000,), 2.0)
    address = tensor.data_ptr()
    again = pickle.loads(dumps(tensor))
    assert again.data_ptr() == tensor.data_ptr() == address and tensor.is_shared()
assert b"xmem" in dumps(tensor) and xmem.torch.installed() is None
del tensor, again
gc.collect()
assert b"xmem" not in dumps(torch.zeros(1000))
""")
