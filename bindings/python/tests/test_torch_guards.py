# SPDX-License-Identifier: MIT
"""Tensors of guards: no copy, no crash, and nobody's contents change that are not to."""
from __future__ import annotations

import ctypes
import errno
import gc
import os
import pickle
import weakref
from multiprocessing.reduction import ForkingPickler
from typing import Any, Callable, Iterator

import pytest

torch = pytest.importorskip("torch")

from torch_children import Child, ask, both_see, sum_of     # noqa: E402

import xmem             # noqa: E402
import xmem.torch       # noqa: E402


@pytest.fixture
def pool() -> Iterator[xmem.BufferPool]:
    with xmem.BufferPool("guards-of-torch", writer=True) as opened:
        yield opened


def published(pool: xmem.BufferPool, shape: tuple[int, ...], dtype: str, fill: Any) -> Any:
    """A guard for reading."""
    guard = pool.acquire_cpu(shape, dtype)
    xmem.torch.tensor(guard).fill_(fill)
    guard.set_ref_count(1)
    return guard


def test_what_is_written_into_the_tensor_is_published(pool: xmem.BufferPool) -> None:
    guard = pool.acquire_cpu((3, 4), "float32")
    tensor = xmem.torch.tensor(guard)
    assert tensor.shape == (3, 4) and tensor.dtype is torch.float32
    assert tensor.data_ptr() == guard.cpu_ptr
    tensor.copy_(torch.arange(12.0).reshape(3, 4))
    del tensor
    token = guard.publish(keep=True)
    assert memoryview(pool.get(token))[2, 3] == 11


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float16", "float64", "complex64", "int8"])
@pytest.mark.parametrize("shape", [(), (1,), (5,), (3, 4), (300, 200), (2, 3, 4, 5)], ids=str)
def test_types_and_shapes(pool: xmem.BufferPool, dtype: str, shape: tuple[int, ...]) -> None:
    guard = published(pool, shape, dtype, 3)
    tensor = xmem.torch.tensor(guard)
    assert tuple(tensor.shape) == shape and tensor.dtype is getattr(torch, dtype)
    assert bool(tensor.eq(3).all())


@pytest.mark.parametrize("numbers", [16, 1 << 20], ids=["small", "large"])
def test_stores_into_what_is_for_reading_are_seen_by_nobody(pool: xmem.BufferPool,
                                                            numbers: int) -> None:
    guard = published(pool, (numbers,), "float32", 5)
    first, other = xmem.torch.tensor(guard), xmem.torch.tensor(pool.get(guard.token))
    first.fill_(7)      # torch ignores that it is read-only; this is no SIGSEGV
    first.add_(1)
    assert bool(first.eq(8).all())
    assert bool(other.eq(5).all()) and memoryview(guard)[numbers - 1] == 5
    assert memoryview(pool.get(guard.token))[0] == 5


@pytest.mark.parametrize("numbers", [16, 1 << 20], ids=["small", "large"])
def test_a_tensor_outlives_the_handle_that_forget_drops(pool: xmem.BufferPool,
                                                        numbers: int) -> None:
    guard = published(pool, (numbers,), "float32", 5)
    token, tensor = guard.token, xmem.torch.tensor(guard)
    guard.forget()
    for _ in range(3):                  # what has been freed would be used for this
        xmem.torch.tensor(published(pool, (numbers,), "float32", 9)).add_(1)
    assert bool(tensor.add_(1).eq(6).all())
    with pool.get(token) as again:
        assert memoryview(again)[numbers - 1] == 5


@pytest.mark.filterwarnings("ignore:The given buffer is not writable")
@pytest.mark.parametrize("numbers", [16, 1 << 20], ids=["small", "large"])
def test_frombuffer_keeps_the_contents_as_long_as_its_tensor(numbers: int) -> None:
    with xmem.BufferPool("frombuffer", writer=True) as pool:
        guard = pool.acquire_cpu((numbers,), "int32")
        xmem.torch.tensor(guard).fill_(5)
        guard.publish(keep=True)
        tensor = torch.frombuffer(guard, dtype=torch.int32)
        other = torch.frombuffer(guard, dtype=torch.int32)
        with pool.get(guard.token) as again:
            guard.release()
            tensor.fill_(6)
            assert bool(tensor.eq(6).all()) and bool(other.eq(5).all())
            assert again.tobytes() == b"\5\0\0\0" * numbers
            del tensor
            with pytest.raises(xmem.Error, match="holds"):
                again.get_mut()
            del other
            gc.collect()
            again.get_mut()
        assert guard.gone               # and its object is still here


def test_bytes_that_nobody_has_described(pool: xmem.BufferPool) -> None:
    guard = pool.acquire_cpu(10)
    memoryview(guard)[:] = bytes(range(10))
    guard.set_ref_count(1)
    tensor = xmem.torch.tensor(guard)
    assert tensor.dtype is torch.uint8 and tensor.tolist() == list(range(10))


def test_strides(pool: xmem.BufferPool) -> None:
    guard = pool.acquire_cpu(64)
    guard.describe((2, 3), "float32", (32, 4))
    tensor = xmem.torch.tensor(guard)
    assert tensor.stride() == (8, 1)
    guard.describe((2, 3), "float32", (30, 4))
    with pytest.raises(BufferError, match="stride"):
        xmem.torch.tensor(guard)


def test_a_tensor_keeps_the_contents(pool: xmem.BufferPool) -> None:
    guard = published(pool, (1000,), "int32", 4)
    token = guard.token
    tensor = xmem.torch.tensor(guard)[10:]
    guard.release()
    for _ in range(20):
        published(pool, (1000,), "int32", 9).release()
    assert bool(tensor.eq(4).all())
    pool.get(token).release()
    del tensor
    gc.collect()
    for _ in range(70):
        published(pool, (1000,), "int32", 9)
    with pytest.raises(xmem.Stale):
        pool.get(token)


def test_a_tensor_outlives_the_pool() -> None:
    pool = xmem.BufferPool("short-lived", writer=True)
    guard = published(pool, (100,), "float32", 6)
    tensor = xmem.torch.tensor(guard)
    guard.release()
    pool.close()
    tensor[0] = 1
    assert tensor.sum() == 595


def test_a_guard_that_is_gone(pool: xmem.BufferPool) -> None:
    guard = pool.acquire_cpu(10)
    guard.release()
    with pytest.raises(xmem.Released):
        xmem.torch.tensor(guard)
    with pytest.raises((TypeError, AttributeError)):
        xmem.torch.tensor(b"no guard")      # type: ignore[arg-type]


# ---- types that not all versions of torch have ----

@pytest.mark.parametrize("shape", [(), (5,), (3, 4), (300, 200)], ids=str)
def test_bool(pool: xmem.BufferPool, shape: tuple[int, ...]) -> None:
    guard = pool.acquire_cpu(shape, "bool")
    tensor = xmem.torch.tensor(guard)
    assert tensor.dtype is torch.bool and tuple(tensor.shape) == shape
    assert tensor.data_ptr() == guard.cpu_ptr, "there is no copy"
    tensor.fill_(True)
    guard.set_ref_count(1)
    again = xmem.torch.tensor(guard)
    assert again.dtype is torch.bool and bool(again.all())
    assert bytes(memoryview(guard).cast("B")) == b"\1" * guard.nbytes


OTHERS = {"uint16": 2, "uint32": 4, "uint64": 8, "float8_e4m3fn": 1, "float8_e5m2": 1,
          "float8_e4m3fnuz": 1, "float8_e5m2fnuz": 1, "float8_e8m0fnu": 1, "float4_e2m1fn_x2": 1}


@pytest.mark.parametrize("dtype", OTHERS)
def test_types_that_came_later(pool: xmem.BufferPool, dtype: str) -> None:
    guard = pool.acquire_cpu((6,), dtype)
    numbers = bytes(range(1, 1 + guard.nbytes))
    ctypes.memmove(guard.cpu_ptr, numbers, len(numbers))
    if not hasattr(torch, dtype):
        with pytest.raises(TypeError, match=f"no tensors of {dtype}: torch 2"):
            xmem.torch.tensor(guard)
        return
    tensor = xmem.torch.tensor(guard)
    assert tensor.dtype is getattr(torch, dtype) and tuple(tensor.shape) == (6,)
    assert tensor.element_size() == OTHERS[dtype] and tensor.data_ptr() == guard.cpu_ptr
    assert tensor.view(torch.uint8).tolist() == list(numbers)


@pytest.mark.parametrize("dtype", ["float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz"])
def test_types_that_torch_does_not_have(pool: xmem.BufferPool, dtype: str) -> None:
    if hasattr(torch, dtype):
        pytest.fail(f"torch has {dtype} now: guards.py is to say since when")
    guard = pool.acquire_cpu((6,), dtype)
    with pytest.raises(TypeError, match=f"no tensors of {dtype}: no version"):
        xmem.torch.tensor(guard)


# ---- shared ----


@pytest.fixture
def installed() -> Iterator[None]:
    xmem.torch.install()
    yield
    xmem.torch.uninstall()


def test_the_tensor_of_a_guard_goes_through_a_queue(pool: xmem.BufferPool, installed: None) -> None:
    guard = published(pool, (1000,), "float32", 2)
    tensor = xmem.torch.tensor(guard)
    with Child(ask, sum_of) as child:
        child.put(tensor)
        assert child.get() == 2000
        child.put(None)
        child.end()
    assert xmem.torch.is_pooled(tensor), "it was moved to where all may write it"
    assert memoryview(guard)[0] == 2


def message(thing: Any) -> bytes:
    return bytes(ForkingPickler.dumps(thing))


def test_a_part_of_it_by_numpy_is_not_shared_either(pool: xmem.BufferPool, installed: None) -> None:
    guard = pool.acquire_cpu((1000,), "float32")
    whole = xmem.torch.tensor(guard)
    part = torch.from_numpy(whole.numpy()[10:])
    assert part.data_ptr() == whole.data_ptr() + 40
    with pytest.raises(xmem.Error, match="being written"):
        message(part)
    part.fill_(5)
    token = guard.publish(keep=True)
    assert memoryview(pool.get(token))[10] == 5
    assert pickle.loads(message(part)).sum() == 5 * 990


@pytest.mark.parametrize("share", [
    message, lambda tensor: message(tensor[1:]), lambda tensor: message([tensor.storage()]),
    lambda tensor: message(torch.nn.Parameter(tensor)), lambda tensor: tensor.share_memory_(),
    xmem.torch.share], ids=["tensor", "view", "storage", "parameter", "share_memory_", "share"])
def test_what_is_being_written_is_not_shared(pool: xmem.BufferPool, installed: None,
                                             share: Callable[[Any], Any]) -> None:
    guard = pool.acquire_cpu((1000,), "float32")
    tensor = xmem.torch.tensor(guard)
    tensor.fill_(1)
    with pytest.raises(xmem.Error, match="being written.*clone") as caught:
        share(tensor)
    assert caught.value.errno == errno.EBUSY
    assert tensor.data_ptr() == guard.cpu_ptr, "it has not moved"
    assert pickle.loads(message(tensor.clone())).sum() == 1000
    tensor.fill_(3)
    token = guard.publish(keep=True)
    assert memoryview(pool.get(token))[999] == 3, "and is published"
    share(tensor)                   # a copy, which is written by all that get it
    assert xmem.torch.is_pooled(tensor)
    tensor.fill_(4)
    assert memoryview(guard)[0] == memoryview(pool.get(token))[0] == 3
    assert bool(pickle.loads(message(tensor)).eq(4).all())


def test_torch_itself_is_not_asked_to_share_what_is_being_written(pool: xmem.BufferPool) -> None:
    xmem.torch.install(fallback=True)
    try:
        guard = pool.acquire_cpu((10,), "float32")
        tensor = xmem.torch.tensor(guard)
        for share in (message, torch.Tensor.share_memory_):
            with pytest.raises(xmem.Error, match="being written"):
                share(tensor)
        assert tensor.data_ptr() == guard.cpu_ptr
    finally:
        xmem.torch.uninstall()
        xmem.torch.install()
        xmem.torch.uninstall()


def test_what_was_thrown_away_is_shared_as_it_is(pool: xmem.BufferPool, installed: None) -> None:
    guard = pool.acquire_cpu((10,), "float32")
    tensor = xmem.torch.tensor(guard).fill_(6)
    guard.release()
    assert pickle.loads(message(tensor)).sum() == 60 and xmem.torch.is_pooled(tensor)
    other = xmem.torch.tensor(pool.acquire_cpu((10,), "float32")).fill_(7)      # its guard is gone
    gc.collect()
    assert pickle.loads(message(other)).sum() == 70 and xmem.torch.is_pooled(other)


def test_a_guard_that_is_written_again_is_not_shared(pool: xmem.BufferPool,
                                                     installed: None) -> None:
    guard = pool.acquire_cpu((10,), "float32")
    first = xmem.torch.tensor(guard).fill_(1)
    with pytest.raises(xmem.Error, match="being written"):
        message(first)
    guard.publish(keep=True)
    reading = xmem.torch.tensor(guard)
    assert pickle.loads(message(reading)).sum() == 10


def test_nothing_is_kept_of_guards(pool: xmem.BufferPool, installed: None) -> None:
    before = pool.stat().held
    for number in range(200):
        with pool.acquire_cpu((1000,), "float32") as guard:
            tensor = xmem.torch.tensor(guard)
            with pytest.raises(xmem.Error, match="being written"):
                message(tensor)
            ref = weakref.ref(guard)
            del tensor
        del guard
        assert ref() is None
    assert not xmem.torch.guards._written
    assert pool.stat().held <= before


# ---- forked ----


@pytest.mark.parametrize("numbers", [3, 5000, 1 << 20])
@pytest.mark.parametrize("state", ["written", "published", "released", "read"])
def test_a_forked_child_has_a_copy(pool: xmem.BufferPool, state: str, numbers: int) -> None:
    guard = pool.acquire_cpu((numbers,), "float32")
    tensor = xmem.torch.tensor(guard).fill_(1)
    if state != "written":
        guard.publish(keep=True)
    if state == "read":
        tensor = xmem.torch.tensor(guard)
    if state == "released":
        guard.release()
    with Child(both_see, tensor[-3:], method="fork") as child:
        assert child.get() == [1, 1, 1]
        if state != "published" and state != "released":
            tensor[-1] = 9
        child.put("write")
        assert child.get() == "added"
        child.put("look")
        assert child.get() == [2, 2, 2], "its own, and what it has written stays"
        child.end()
    assert tensor[:-1].eq(1).all(), "nobody else sees that"


def test_tensors_of_one_guard_in_a_forked_child(pool: xmem.BufferPool) -> None:
    guard = pool.acquire_cpu((1 << 18,), "float32")
    written = [xmem.torch.tensor(guard).fill_(1) for _ in range(3)]
    guard.publish(keep=True)
    read = [xmem.torch.tensor(guard) for _ in range(3)]
    child = os.fork()
    if not child:
        for tensors, seen in ((written, 3), (read, 1)):
            tensors[0].fill_(3)     # those that were written are the same memory still
            del tensors[::2]
            if not (len(tensors) == 1 and tensors[0].eq(seen).all()):
                os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert all(tensor.eq(1).all() for tensor in written + read)


def test_many_small_tensors_in_a_forked_child_and_its_child(pool: xmem.BufferPool) -> None:
    guards = [pool.acquire_cpu((7,), "int32") for _ in range(40)]
    tensors = [xmem.torch.tensor(guard).fill_(number) for number, guard in enumerate(guards)]
    child = os.fork()
    if not child:
        ok = all(tensor.eq(number).all() for number, tensor in enumerate(tensors))
        del tensors[::2]
        for number, tensor in enumerate(tensors):
            tensor.add_(1)
        grandchild = os.fork()
        ok = ok and all(tensor.eq(2 * number + 2).all() for number, tensor in enumerate(tensors))
        if grandchild:
            ok = os.waitpid(grandchild, 0)[1] == 0 and ok
        os._exit(0 if ok else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert all(tensor.eq(number).all() for number, tensor in enumerate(tensors))


def test_a_forked_child_may_not_share_what_its_parent_writes(pool: xmem.BufferPool,
                                                             installed: None) -> None:
    guard = pool.acquire_cpu((1000,), "float32")
    tensor = xmem.torch.tensor(guard).fill_(1)
    child = os.fork()
    if not child:
        try:
            message(tensor)
        except xmem.Forked:
            os._exit(0 if pickle.loads(message(tensor.clone())).sum() == 1000 else 2)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    guard.publish()
