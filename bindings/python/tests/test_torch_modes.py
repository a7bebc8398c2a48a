# SPDX-License-Identifier: MIT
"""Modes of torch, which see and change what its functions do: hand-overs while one is active."""
from __future__ import annotations

import pickle
from multiprocessing.reduction import ForkingPickler
from typing import Any, Iterator

import pytest

torch = pytest.importorskip("torch")

from torch.overrides import TorchFunctionMode                       # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode          # noqa: E402
from torch_children import Child, ask, sum_of                       # noqa: E402

import xmem                                                         # noqa: E402
import xmem.torch                                                   # noqa: E402


@pytest.fixture(autouse=True)
def installed() -> Iterator[None]:
    xmem.torch.install()
    yield
    xmem.torch.uninstall()


class Looks(TorchFunctionMode):     # type: ignore[misc]
    """Sees functions and methods of torch, and changes nothing."""

    seen = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen += 1
        return func(*args, **(kwargs or {}))


class Elsewhere(Looks):
    """Makes tensors on another device, as `with torch.device("meta")` of torch 2 does."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen += 1
        kwargs = dict(kwargs or {})
        if func in (torch.empty, torch.tensor, torch.zeros):
            kwargs.setdefault("device", "meta")
        return func(*args, **kwargs)


class Dispatches(TorchDispatchMode):    # type: ignore[misc]
    """Sees what functions of torch come to."""

    seen = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen += 1
        return func(*args, **(kwargs or {}))


class Changes(Dispatches):
    """Gives other numbers than asked for."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen += 1
        result = func(*args, **(kwargs or {}))
        if type(result) is torch.Tensor and result.is_floating_point():
            return torch.full_like(result, 42)
        return result


MODES = [Looks, Elsewhere, Dispatches, Changes]


def message(thing: Any) -> bytes:
    return bytes(ForkingPickler.dumps(thing))


def quantized() -> Any:
    return torch.quantize_per_tensor(torch.arange(3.0), 0.5, 2, torch.qint8)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("make", [
    lambda: torch.arange(6.0).reshape(2, 3).t(), lambda: torch.nn.Parameter(torch.arange(6.0)),
    quantized, lambda: torch.arange(6.0, requires_grad=True)],
    ids=["view", "parameter", "quantized", "leaf"])
def test_a_tensor_is_sent_and_received(mode: Any, make: Any) -> None:
    tensor, other = make(), make()
    sent_before = message(other)
    with mode():
        sent = message(tensor)
        again = pickle.loads(sent)
        from_before = pickle.loads(sent_before)
    for got, original in ((again, tensor), (from_before, other)):
        assert type(got) is type(original) and got.requires_grad == original.requires_grad
        assert got.device.type == "cpu" and torch.equal(got.detach(), original.detach())
        assert got.data_ptr() == original.data_ptr()


@pytest.mark.parametrize("mode", MODES)
def test_share_memory_and_what_is_said_of_it(mode: Any) -> None:
    first, second = torch.arange(3.0), torch.arange(3.0)
    with mode():
        shared = (first.share_memory_() is first, xmem.torch.share(second) is second)
        said = (first.is_shared(), second.is_shared(), xmem.torch.is_pooled(first))
        made = torch.UntypedStorage._new_shared(64)
    assert shared == (True, True) and said == (True, True, True)
    assert xmem._torch.find(made.data_ptr()) is not None
    assert first.tolist() == second.tolist() == [0, 1, 2]


@pytest.mark.parametrize("mode", MODES)
def test_the_tensor_of_a_guard(mode: Any) -> None:
    with xmem.BufferPool("modes-of-torch", writer=True) as pool:
        guards = [pool.acquire_cpu((4,), dtype) for dtype in ("float32", "bool")]
        for guard in guards:
            memoryview(guard).cast("B")[:] = bytes(guard.nbytes)
        with mode():
            tensors = [xmem.torch.tensor(guard) for guard in guards]
        assert [tensor.data_ptr() for tensor in tensors] == [guard.cpu_ptr for guard in guards]
        assert tensors[0].tolist() == [0.0] * 4 and tensors[1].tolist() == [False] * 4


@pytest.mark.parametrize("mode", MODES)
def test_a_child_receives_what_was_sent(mode: Any) -> None:
    with Child(ask, sum_of) as child:
        tensor = torch.arange(10.0)
        with mode():
            child.put(tensor)
        assert child.get() == 45
        child.put(None)
        child.end()


def function_modes() -> list[Any]:
    return [torch._C._get_function_stack_at(at)
            for at in range(torch._C._len_torch_function_stack())]


def test_modes_are_there_again_in_their_order() -> None:
    outer, inner, dispatching = Looks(), Looks(), Dispatches()
    tensor = torch.arange(3.0)
    with outer, inner, dispatching:
        stack = function_modes()
        message(tensor)
        assert stack == function_modes() == [outer, inner]
        before = (outer.seen, inner.seen, dispatching.seen)
        torch.add(tensor, 1)
        assert all(now > then for now, then in
                   zip((outer.seen, inner.seen, dispatching.seen), before))
    assert not torch._C._len_torch_dispatch_stack()
    seen = (outer.seen, inner.seen, dispatching.seen)
    torch.add(tensor, 1)
    assert seen == (outer.seen, inner.seen, dispatching.seen)


def test_modes_are_there_again_after_an_error() -> None:
    mode = Looks()
    with mode:
        with pytest.raises(RuntimeError, match="requires_grad"):
            message(torch.zeros(3, requires_grad=True) * 2)
        seen = mode.seen
        torch.add(torch.zeros(1), 1)
        assert mode.seen > seen


class Shares(TorchFunctionMode):    # type: ignore[misc]
    """Shares what functions make, from within the mode."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        return xmem.torch.share(result) if type(result) is torch.Tensor else result


def test_a_mode_that_shares() -> None:
    with Shares(), Looks() as looks:
        tensor = torch.arange(5.0) * 2
        seen = looks.seen
        torch.add(tensor, 1)
        assert looks.seen > seen
    assert xmem.torch.is_pooled(tensor) and tensor.tolist() == [0, 2, 4, 6, 8]
