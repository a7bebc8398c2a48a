# SPDX-License-Identifier: MIT
"""Tensors of guards: no copy, no crash, and nobody's contents change that are not to."""
from __future__ import annotations

import gc
from typing import Any, Iterator

import pytest

torch = pytest.importorskip("torch")

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


def test_the_tensor_of_a_guard_goes_through_a_queue(pool: xmem.BufferPool) -> None:
    from torch_children import Child, ask, sum_of

    xmem.torch.install()
    try:
        guard = published(pool, (1000,), "float32", 2)
        tensor = xmem.torch.tensor(guard)
        with Child(ask, sum_of) as child:
            child.put(tensor)
            assert child.get() == 2000
            child.put(None)
            child.end()
        assert xmem.torch.is_pooled(tensor), "it was moved to where all may write it"
        assert memoryview(guard)[0] == 2
    finally:
        xmem.torch.uninstall()
