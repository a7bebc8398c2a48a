# SPDX-License-Identifier: MIT
"""Tensors of storages that the receiver does not know: the whole storage, or a view of it."""
from __future__ import annotations

from typing import Any, Callable, Iterator

import pytest

torch = pytest.importorskip("torch")

from torch_children import Child, ask, details      # noqa: E402

import xmem                                         # noqa: E402
import xmem.torch                                   # noqa: E402
from xmem import _torch                             # noqa: E402
from xmem.torch import pools, versions              # noqa: E402

TYPES = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16,
         torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128]
TYPES += [getattr(torch, name) for name in ("uint16", "uint32", "uint64") if hasattr(torch, name)]


@pytest.fixture(autouse=True)
def installed() -> Iterator[None]:
    xmem.torch.install()
    yield
    xmem.torch.uninstall()


@pytest.fixture(scope="module")
def child() -> Iterator[Child]:
    """It gets each storage once, so that it knows none before."""
    with Child(ask, details) as child:
        yield child
        child.put(None)
        child.end()


def check(child: Child, tensor: Any) -> None:
    child.put(tensor)
    assert child.get() == details(tensor)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_each_type(child: Child, dtype: Any) -> None:
    whole = torch.arange(12).to(dtype).reshape(3, 4)
    check(child, whole)
    check(child, torch.arange(12).to(dtype)[3:11])


@pytest.mark.parametrize("make", [
    lambda t: t, lambda t: t.reshape(24), lambda t: t.reshape(1, 24), lambda t: t.reshape(24, 1),
    lambda t: t.reshape(1, 2, 1, 3, 1, 4, 1, 1), lambda t: t.reshape(1, 2, 1, 3, 1, 4, 1, 1, 1),
    lambda t: t.t(), lambda t: t[1:], lambda t: t[:2], lambda t: t[:, 1], lambda t: t[2, 3],
    lambda t: t[:0], lambda t: t.expand(3, 4, 6), lambda t: t.view(torch.int32),
    lambda t: t.view(torch.uint8), lambda t: t.as_strided((1, 24), (7, 1)),
    lambda t: t.as_strided((24, 1), (1, 5)), lambda t: t.as_strided((23,), (1,)),
    lambda t: t.as_strided((5, 6), (4, 1)), lambda t: t.as_strided((2, 2, 6), (0, 12, 1)),
    lambda t: t.requires_grad_(), lambda t: t[1:].requires_grad_()], ids=range(22))
def test_each_shape(child: Child, make: Callable[[Any], Any]) -> None:
    check(child, make(torch.arange(24.0).reshape(4, 6)))


def test_one_number(child: Child) -> None:
    check(child, torch.tensor(5.5))
    check(child, torch.tensor(7, dtype=torch.int8))


def test_a_storage_that_is_no_multiple_of_the_type(child: Child) -> None:
    check(child, torch.arange(7, dtype=torch.uint8)[:6].view(torch.int16))


def test_arguments_that_are_wrong_take_no_reference() -> None:
    tensor = xmem.torch.share(torch.arange(6.0))
    name, token, _ = _torch.offer(tensor.data_ptr())
    number = pools.join(name).number
    for place, shape, error in (((0, "1"), (6,), TypeError), ((0, 1), (None,), TypeError),
                                ((1 << 70, 1), (6,), OverflowError), ([0, 1], (6,), TypeError)):
        with pytest.raises(error):
            _torch.get_tensor(number, token, 0x220, place, shape)
    capsule, whole = _torch.get_tensor(number, token, 0x220, (0, 1), (6,))
    again = versions.from_capsule(capsule)
    assert whole and again.dtype is torch.float32 and torch.equal(again, tensor)
    again[0] = 8
    assert tensor[0] == 8, "it is the same memory"
    with pytest.raises(ValueError):
        _torch.get_tensor(-1, token, 0x220, (0, 1), (6,))


def test_what_is_not_whole_comes_as_bytes() -> None:
    tensor = xmem.torch.share(torch.arange(6.0))
    number = pools.join(_torch.find(tensor.data_ptr())[0]).number
    for kind, place, shape in ((0, (0, 1), (6,)), (0x220, (1, 1), (6,)), (0x220, (0, 2), (6,)),
                               (0x220, (0, 1), (5,)), (0x220, (0, 1), (1 << 62,)),
                               (0x220, (0, 1, 1), (6,)), (0x220, (0,), (6,)), (0x240, (0, 1), (6,)),
                               (0x220, (), ()), (0x220, (0, 6, 1), (-1, 6))):
        _, token, _ = _torch.offer(tensor.data_ptr())
        capsule, whole = _torch.get_tensor(number, token, kind, place, shape)
        again = versions.from_capsule(capsule)
        assert not whole and again.dtype is torch.uint8 and again.shape == (24,)
