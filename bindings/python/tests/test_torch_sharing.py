# SPDX-License-Identifier: MIT
"""Tensors through torch.multiprocessing by xmem: what its users rely on, in both processes."""
from __future__ import annotations

import os
import pickle
from multiprocessing.reduction import ForkingPickler
from typing import Any, Iterator

import pytest

torch = pytest.importorskip("torch")

import torch.multiprocessing as multiprocessing     # noqa: E402
from torch_children import (IS_OLD, Child, ask, backward, both_see,     # noqa: E402
                            describe, echo, fill, installed_pool, send_new, sum_of)

import xmem                                         # noqa: E402
import xmem.torch                                   # noqa: E402
from xmem import _torch                             # noqa: E402
from support import fresh_name                      # noqa: E402
from xmem.torch import versions                     # noqa: E402

METHODS = ["fork", "spawn", "forkserver"]
ONCE = ["fork", pytest.param("spawn", marks=pytest.mark.long), "forkserver"]


@pytest.fixture(autouse=True)
def installed() -> Iterator[None]:
    xmem.torch.install()
    yield
    xmem.torch.uninstall()


def message(thing: Any) -> bytes:
    return bytes(ForkingPickler.dumps(thing))


def cdata(thing: Any) -> int:
    """Which storage it is."""
    if isinstance(thing, torch.Tensor):
        return versions.untyped(thing)._cdata
    return thing._cdata


# ---- the same memory in both processes ----


@pytest.mark.parametrize("method", ONCE)
def test_the_child_writes_and_the_parent_sees_it(method: str) -> None:
    tensor = torch.zeros(5, 5)
    with Child(fill, 4.0, method=method) as child:
        child.put([tensor, tensor[:, 1]])
        assert child.get() == "filled"
        assert bool(tensor.eq(4).all()) and bool(tensor[:, 1].eq(4).all())
        child.end()


def test_a_view_is_a_view_in_the_child() -> None:
    tensor = torch.zeros(5, 5)
    with Child(fill, 7.0) as child:
        child.put([tensor[:, 1], tensor])
        assert child.get() == "filled"
        assert tensor.sum() == 35 and bool(tensor[:, 1].eq(7).all())
        child.end()


def test_what_was_not_in_the_message_stays_a_view() -> None:
    tensor = torch.zeros(4, 4)
    row, column, detached = tensor[2], tensor[:, 0], tensor.detach()
    message(row)
    tensor.fill_(3)
    assert row.tolist() == [3] * 4 and column.tolist() == [3] * 4
    detached[0, 0] = 9
    assert tensor[0, 0] == 9 and column[0] == 9


def test_the_child_sends_what_it_made() -> None:
    with Child(send_new, 20, 100) as child:
        for number in range(20):
            assert child.get().eq(number).all()
        child.put(None)
        child.end()


@pytest.mark.parametrize("method", ONCE)
def test_an_argument_of_a_process(method: str) -> None:
    tensor = torch.arange(4.0)
    tensor.share_memory_()
    with Child(both_see, tensor, method=method) as child:
        assert child.get() == [0, 1, 2, 3]
        tensor.mul_(10)
        child.put("go on")
        assert child.get() == "added"
        assert tensor.tolist() == [1, 11, 21, 31]
        tensor[0] = -1
        child.put("go on")
        assert child.get() == [-1, 11, 21, 31]
        child.end()


def test_a_received_tensor_is_sent_on() -> None:
    tensor = torch.arange(6.0)
    with Child(echo) as first, Child(echo) as second:
        first.put(tensor)
        there = first.get()
        second.put(there)
        back = second.get()
        assert cdata(back) == cdata(tensor), "it is the storage that was sent"
        back[0] = 5
        assert tensor[0] == 5
        del tensor, there, back
        for child in (first, second):
            child.put(None)
            child.end()


def test_re_sharing_by_one_who_did_not_make_it() -> None:
    with Child(send_new, 1, 8) as maker, Child(echo) as other:
        tensor = maker.get()
        other.put(tensor)
        maker.put(None)
        maker.end()
        del tensor
        assert other.get().eq(0).all()
        other.put(None)
        other.end()


# ---- identity ----


def test_identity_within_a_process() -> None:
    tensor = torch.randn(5, 5)
    things = [tensor.storage(), tensor, tensor[2], tensor[:, 1]]
    again = pickle.loads(message(things))
    assert torch.equal(again[1], tensor)
    assert {cdata(thing) for thing in again} == {cdata(tensor)}
    assert cdata(pickle.loads(message(tensor.t()))) == cdata(tensor), "and of a later message"


def test_storages_come_before_and_after_their_tensors() -> None:
    for order in (lambda t: [t, t.storage()], lambda t: [t.storage(), t]):
        tensor = torch.zeros(3)
        things = pickle.loads(message(order(tensor)))
        assert {cdata(thing) for thing in things} == {cdata(tensor)}


def test_identity_in_the_child() -> None:
    tensor = torch.randn(5, 5)
    with Child(ask, _are_one_storage) as child:
        child.put([tensor, tensor[1], tensor.storage(), tensor.t()])
        assert child.get() is True
        child.put(None)
        child.end()


def _are_one_storage(things: list[Any]) -> bool:
    return len({cdata(thing) for thing in things}) == 1


def test_two_messages_of_one_tensor_meet_in_the_child() -> None:
    tensor = torch.zeros(2)
    with Child(ask, _same_as_before) as child:
        child.put(tensor)
        assert child.get() is False
        child.put(tensor)
        assert child.get() is True
        child.put(None)
        child.end()


_before: list[Any] = []


def _same_as_before(tensor: Any) -> bool:
    _before.append(tensor)
    return len(_before) > 1 and cdata(_before[-2]) == cdata(tensor)


# ---- kinds of tensors ----

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64]
OTHERS = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]


@pytest.mark.parametrize("dtype", FLOATS + OTHERS, ids=str)
def test_types(dtype: Any) -> None:
    tensor = torch.arange(12).reshape(3, 4).to(dtype)
    again = pickle.loads(message(tensor))
    assert again.dtype is dtype and torch.equal(again, tensor)


@pytest.mark.parametrize("make", [
    lambda t: t.t(), lambda t: t[1:, ::2], lambda t: t[2], lambda t: t[1, 1], lambda t: t.flip(0),
    lambda t: t.expand(2, 4, 6), lambda t: t.unsqueeze(0)], ids=range(7))
def test_shapes_and_strides(make: Any) -> None:
    tensor = make(torch.arange(24.0).reshape(4, 6))
    again = pickle.loads(message(tensor))
    assert torch.equal(again, tensor)
    assert again.stride() == tensor.stride()
    assert again.storage_offset() == tensor.storage_offset()


def test_empty_tensors() -> None:
    with Child(echo) as child:
        for tensor in (torch.tensor([]), torch.zeros(0, 3), torch.empty((0, 5, 0))):
            child.put(tensor)
            again = child.get()
            assert again.shape == tensor.shape and again.dtype is tensor.dtype
        child.put(None)
        child.end()


def test_an_empty_view_of_a_storage_that_is_not_empty() -> None:
    tensor = torch.arange(4.0)[2:2]
    again = pickle.loads(message(tensor))
    assert again.shape == (0,) and again.storage_offset() == 2


@pytest.mark.skipif(torch.__version__ < "2.5", reason="torch sends meta tensors since 2.5")
def test_meta_tensors() -> None:
    tensor = torch.randn(5, 3, device="meta")
    again = pickle.loads(message(tensor))
    assert again.device.type == "meta" and again.shape == (5, 3)


def test_leaves_require_grad() -> None:
    tensor = torch.arange(3.0, requires_grad=True)
    with Child(ask, describe) as child:
        child.put(tensor)
        assert child.get() == ("Tensor", "torch.float32", (3,), True, True)
        child.put(None)
        child.end()
    assert tensor.requires_grad and tensor.is_leaf


def test_autograd_works_in_a_spawned_child() -> None:
    tensor = torch.arange(3.0, requires_grad=True)
    (tensor * 2).sum().backward()
    with Child(ask, backward) as child:
        child.put(tensor)
        assert child.get() == [0, 2, 4]
        child.put(None)
        child.end()
    assert tensor.grad is not None and tensor.grad.tolist() == [2, 2, 2]


def test_what_is_no_leaf_is_refused() -> None:
    tensor = torch.zeros(3, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="requires_grad"):
        message(tensor)
    assert pickle.loads(message(tensor.detach())).tolist() == [0, 0, 0]


@pytest.mark.parametrize("parameter", [
    lambda: torch.nn.Parameter(torch.arange(5.0)),
    lambda: torch.nn.Parameter(torch.arange(5), requires_grad=False)], ids=["float", "integer"])
def test_parameters(parameter: Any) -> None:
    tensor = parameter()
    with Child(echo) as child:
        child.put(tensor)
        again = child.get()
        assert type(again) is torch.nn.Parameter
        assert again.requires_grad == tensor.requires_grad and torch.equal(again, tensor)
        again.data[0] = 9
        assert tensor[0] == 9
        child.put(None)
        child.end()


def test_a_module_is_shared() -> None:
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3))
    model.share_memory()
    assert all(tensor.is_shared() for tensor in model.state_dict().values())
    with Child(ask, _train_a_little) as child:
        child.put(model)
        before = model[0].weight.detach().clone()
        child.get()
        assert not torch.equal(before, model[0].weight), "the child's step is seen here"
        assert model[1].num_batches_tracked == 1
        child.put(None)
        child.end()


def _train_a_little(model: Any) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    model(torch.ones(2, 4) * torch.tensor([[1.0], [2.0]])).pow(3).sum().backward()
    optimizer.step()
    with torch.no_grad():
        model[0].weight.add_(1)


def test_sparse_tensors() -> None:
    dense = torch.tensor([[0.0, 2, 0], [3, 0, 0]])
    kinds = [dense.to_sparse()] + ([] if IS_OLD else [dense.to_sparse_csr()])
    with Child(echo) as child:
        for tensor in kinds:
            try:
                torch.multiprocessing.reductions.reduce_tensor(tensor)
            except (NotImplementedError, RuntimeError):
                continue        # not before torch 2.1
            child.put(tensor)
            assert torch.equal(child.get().to_dense(), dense)
        child.put(None)
        child.end()


def by_one_scale(numbers: Any) -> Any:
    return torch.quantize_per_tensor(numbers, 0.5, 2, torch.qint8)


def by_columns(numbers: Any) -> Any:
    scales, zeros = torch.tensor([0.5, 1, 0.25]), torch.tensor([0, 1, 3])
    return torch.quantize_per_channel(numbers, scales, zeros, 1, torch.quint8)


@pytest.mark.parametrize("quantize", [by_one_scale, by_columns])
def test_quantized_tensors(quantize: Any) -> None:
    tensor = quantize(torch.arange(6.0).reshape(2, 3))
    with Child(echo) as child:
        child.put([tensor, tensor[1], tensor.t() if quantize is by_one_scale else tensor])
        again, row, other = child.get()
        child.put(None)
        child.end()
    assert again.is_quantized and again.dtype is tensor.dtype and cdata(again) == cdata(tensor)
    assert again.qscheme() == tensor.qscheme() and torch.equal(again, tensor)
    assert torch.equal(row.dequantize(), torch.arange(3.0, 6))
    assert torch.equal(other, tensor.t() if quantize is by_one_scale else tensor)
    assert xmem.torch.is_pooled(tensor)


class Named(torch.Tensor):
    """A subclass, which torch sends by its own function."""


def test_subclasses() -> None:
    tensor = torch.arange(3.0).as_subclass(Named)
    tensor.note = "torch 1.13 wants one"    # type: ignore[attr-defined]
    again = pickle.loads(message(tensor))
    assert torch.equal(again.as_subclass(torch.Tensor), torch.arange(3.0))
    assert xmem.torch.is_pooled(tensor)


def test_conjugate_and_negative_views_arrive_as_what_they_are() -> None:
    tensor = torch.tensor([1 + 2j, 3 - 1j])
    conjugate, negative = tensor.conj(), tensor.conj().imag
    assert conjugate.is_conj() and negative.is_neg()
    again, less, plain = pickle.loads(message([conjugate, negative, conjugate.resolve_conj()]))
    assert again.tolist() == [1 - 2j, 3 + 1j] and less.tolist() == [-2, 1]
    assert plain.tolist() == [1 - 2j, 3 + 1j]
    tensor[0] = 5j
    assert again[0] == -5j and less[0] == -5, "they are views of the same memory"


# ---- is_shared, share_memory_ ----


def test_is_shared_says_what_is() -> None:
    tensor = torch.randn(5, 5)
    assert not tensor.is_shared()
    address = tensor.share_memory_().data_ptr()
    assert tensor.is_shared() and xmem.torch.is_pooled(tensor)
    assert tensor.share_memory_().data_ptr() == address, "it is not moved again"
    message(tensor)
    assert tensor.data_ptr() == address, "nor by a hand-over"
    assert not tensor.clone().is_shared()
    assert torch.tensor([]).share_memory_() is not None


def test_what_torch_had_shared_before_stays_shared_with_those_who_have_it() -> None:
    xmem.torch.uninstall()
    tensor = torch.arange(3.0).share_memory_()
    address = tensor.data_ptr()
    with Child(both_see, tensor) as before:
        assert before.get() == [0, 1, 2]
        xmem.torch.install()
        assert tensor.is_shared() and tensor.share_memory_().data_ptr() == address
        with Child(fill, 2.0) as child:
            child.put([tensor])
            assert child.get() == "filled"
            child.end()
        assert tensor.tolist() == [2, 2, 2] and tensor.data_ptr() == address
        before.put("go on")
        assert before.get() == "added"
        assert tensor.tolist() == [3, 3, 3]
        before.put("go on")
        assert before.get() == [3, 3, 3]
        before.end()


def test_a_message_is_what_was_sent_though_its_tensor_has_left_the_pool() -> None:
    tensor = torch.arange(3.0)
    sent = message(tensor)
    versions.untyped(tensor)._share_fd_cpu_()       # torch itself moves it: it lies elsewhere now
    tensor.fill_(-1)
    again = pickle.loads(sent)
    assert again.tolist() == [0, 1, 2] and again.data_ptr() != tensor.data_ptr()


def test_share_and_is_pooled() -> None:
    tensor = torch.arange(5)
    view = tensor[1:]
    assert xmem.torch.share(tensor) is tensor
    assert xmem.torch.is_pooled(tensor) and xmem.torch.is_pooled(view[:0]) is True
    view[0] = 9
    assert tensor.tolist() == [0, 9, 2, 3, 4]


def test_autograd_saw_no_change() -> None:
    weight = torch.ones(3, requires_grad=True)
    loss = (weight * weight).sum()
    weight.share_memory_()
    loss.backward()
    assert weight.grad is not None and weight.grad.tolist() == [2, 2, 2]


# ---- messages ----


def test_a_message_is_small() -> None:
    tensor = torch.zeros(6 << 18)
    assert len(message(tensor)) < 200
    assert len(message(torch.nn.Parameter(tensor))) < 200


def set_aside(tensor: Any) -> int:
    """References set aside for messages of it, all together."""
    return _torch.claims(xmem.torch.installing.pool().number, _torch.find(tensor.data_ptr())[1])


def test_one_reference_is_set_aside_for_each_message() -> None:
    tensor = torch.zeros(4)
    messages = [message(tensor) for _ in range(5)]
    assert set_aside(tensor) == 5
    for left in (4, 3, 2, 1, 0):
        pickle.loads(messages[left])
        assert set_aside(tensor) == left


def test_a_tensor_that_is_sent_again_has_some_set_aside_ahead() -> None:
    pool = xmem.torch.installing.pool().number
    tensor = torch.arange(4.0)
    pickle.loads(message(tensor))
    assert set_aside(tensor) == 0
    for number in range(100):
        pickle.loads(message(tensor))
        assert set_aside(tensor) == 31 - number % 32
    token = _torch.find(tensor.data_ptr())[1]
    last = message(tensor)
    del tensor
    assert _torch.claims(pool, token) == 1, "that of the message in flight stays, the others go"
    assert pickle.loads(last).tolist() == [0, 1, 2, 3]
    _torch.stat(pool)       # the buffer is found to be free
    with pytest.raises(xmem.Stale):
        _torch.claims(pool, token)


def test_none_are_set_aside_ahead_where_messages_end_after_a_time() -> None:
    """All references of a buffer have one time, and each message has one of its own."""
    xmem.torch.uninstall()
    xmem.torch.install(in_flight=700)
    tensor = torch.arange(4.0)
    pickle.loads(message(tensor))
    messages = [message(tensor) for _ in range(3)]
    assert set_aside(tensor) == 3
    for left in (2, 1, 0):
        pickle.loads(messages[left])
        assert set_aside(tensor) == left


def test_every_child_installs_what_its_parent_has() -> None:
    for method in METHODS:
        with Child(installed_pool, method=method) as child:
            assert child.get() == xmem.torch.installed()
            child.put(None)
            child.end()
    xmem.torch.uninstall()
    with Child(installed_pool) as child:
        assert child.get() is None
        child.put(None)
        child.end()


def test_messages_that_are_in_flight_outlive_uninstall() -> None:
    sent = message(torch.arange(3))
    xmem.torch.uninstall()
    assert pickle.loads(sent).tolist() == [0, 1, 2]
    assert xmem.torch.installed() is None


def test_a_pool_of_the_longest_name_with_its_user() -> None:
    xmem.torch.uninstall()
    xmem.torch.install(f"{os.getuid()}:" + f"/{fresh_name()}/batches".ljust(128, "x"))
    tensor = torch.zeros(5, 5)
    with Child(fill, 4.0, method="forkserver") as child:
        child.put([tensor])
        assert child.get() == "filled"
        assert bool(tensor.eq(4).all())
        child.end()


def test_another_pool_is_refused() -> None:
    with pytest.raises(ValueError, match="is installed"):
        xmem.torch.install("another")


def test_queues() -> None:
    for kind in ("Queue", "SimpleQueue"):
        queue = getattr(multiprocessing.get_context("spawn"), kind)()
        with Child(_sum_of_queue, queue) as child:
            for number in range(30):
                queue.put(torch.full((100,), float(number)))
            queue.put(None)
            assert child.get() == sum(range(30)) * 100
            child.end()


def _sum_of_queue(pipe: Any, queue: Any) -> None:
    total = 0.0
    while (tensor := queue.get()) is not None:
        total += sum_of(tensor)
    pipe.send(total)
