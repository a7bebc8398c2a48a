# SPDX-License-Identifier: MIT
"""A storage that moves into a pool moves for all that have it, whoever they are."""
from __future__ import annotations

import gc
import pickle
import sys
from multiprocessing.reduction import ForkingPickler
from types import SimpleNamespace
from typing import Any, Iterator

import pytest

torch = pytest.importorskip("torch")

import xmem.torch                       # noqa: E402
from xmem.torch import versions         # noqa: E402


@pytest.fixture(autouse=True)
def installed() -> Iterator[None]:
    xmem.torch.install()
    yield
    xmem.torch.uninstall()


def send(thing: Any) -> None:
    """Put it into a message, and receive that."""
    pickle.loads(bytes(ForkingPickler.dumps(thing)))


def test_conjugate_and_negative_views_go_on_being_that() -> None:
    tensor = torch.tensor([1 + 2j, 3 - 1j])
    conjugate = tensor.conj()
    negative = conjugate.imag
    send(tensor)
    assert conjugate.is_conj() and negative.is_neg()
    assert conjugate.tolist() == [1 - 2j, 3 + 1j] and negative.tolist() == [-2, 1]
    tensor[0] = 4j
    assert conjugate[0] == -4j and negative[0] == -4, "they show the memory that was moved to"


def test_what_autograd_has_saved_moves() -> None:
    weight = torch.ones(3, requires_grad=True)
    middle = weight * 1
    loss = (middle * middle).sum()
    middle.detach().share_memory_()
    assert xmem.torch.is_pooled(middle.detach())
    middle.data.fill_(5)            # unknown to autograd, so backward() takes it as it is there
    loss.backward()
    assert weight.grad is not None and weight.grad.tolist() == [10, 10, 10]


def test_the_parts_of_a_sparse_tensor_move() -> None:
    places, values = torch.tensor([[0, 2]]), torch.tensor([3.0, 4.0])
    sparse = torch.sparse_coo_tensor(places, values, (3,))
    assert sparse._values().data_ptr() == values.data_ptr(), "it has no memory of its own"
    send([places, values])
    values[0] = 7
    places[0, 0] = 1
    assert sparse.to_dense().tolist() == [0, 7, 4]
    assert sparse._values().is_shared() and sparse._indices().is_shared()


def test_a_storage_without_a_tensor_moves() -> None:
    storage = versions.untyped(torch.arange(4, dtype=torch.uint8))
    gc.collect()
    storage.share_memory_()
    assert storage.is_shared() and list(storage) == [0, 1, 2, 3]
    tensor = torch.empty(0, dtype=torch.uint8)
    tensor.set_(storage)
    assert xmem.torch.is_pooled(tensor) and tensor.tolist() == [0, 1, 2, 3]


def test_all_objects_of_one_storage_know_the_new_place() -> None:
    tensor = torch.arange(4.0)
    first, second = versions.untyped(tensor), versions.untyped(tensor[1:])
    first.share_memory_()
    assert first.data_ptr() == second.data_ptr() == tensor.data_ptr()
    assert second.is_shared() and second.nbytes() == 16


def test_a_module_of_torchscript_moves() -> None:
    module = torch.jit.script(torch.nn.Linear(2, 1, bias=False))    # its tensors are C++'s
    assert not module.weight.is_shared()
    module.share_memory()
    with torch.no_grad():
        module.weight.fill_(3)
    assert module.weight.is_shared() and module(torch.ones(1, 2)).item() == 6


def test_the_old_memory_is_freed_once_and_the_new_stays() -> None:
    lent = bytearray(b"\5" * 100)
    unused = sys.getrefcount(lent)
    tensor = torch.frombuffer(lent, dtype=torch.uint8)
    view = tensor[50:]
    assert sys.getrefcount(lent) == unused + 1
    tensor.share_memory_()
    gc.collect()
    assert sys.getrefcount(lent) == unused, "the storage that was moved has freed it"
    lent[:] = b"\6" * 100
    assert bool(view.eq(5).all()) and bool(tensor.eq(5).all())


def test_many_storages_move_and_go() -> None:
    def rss() -> int:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    def some() -> None:
        for number in range(50):
            tensor = torch.full((1 << 18,), float(number))
            tensor.share_memory_()
            assert tensor[-1] == number

    some()
    before = rss()
    for _ in range(6):
        some()
    assert rss() < before + (100 << 20), "300 MB of old memory have been freed"


def test_what_has_moved_is_not_resized_by_mistake() -> None:
    tensor = torch.arange(4.0).share_memory_()
    address = tensor.data_ptr()
    with pytest.raises(RuntimeError, match="not resizable"):
        versions.untyped(tensor).resize_(4000)
    storage = versions.untyped(tensor)
    assert storage.nbytes() == 16 and storage.data_ptr() == tensor.data_ptr() == address
    assert xmem.torch.is_pooled(tensor) and tensor.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("why, broken", [
    ("the address of a storage's memory is not", {"_HEADERS": (0, 1)}),
    ("the words of a storage", {"_RESIZABLE": 0}),
    ("the users of a storage", {"_USERS": 0}),
    ("an exchange gives", {"_torch": SimpleNamespace(swap=lambda memory, other: None)})])
def test_a_torch_with_other_storages_is_refused(why: str, broken: dict[str, Any],
                                                monkeypatch: pytest.MonkeyPatch) -> None:
    if versions.CAN_SWAP and "_HEADERS" not in broken:
        pytest.skip("this torch exchanges by itself, and may have another layout")
    monkeypatch.setattr(versions, "CAN_SWAP", False)
    for name, value in broken.items():
        monkeypatch.setattr(versions, name, value)
    with pytest.raises(ImportError, match="^install another release of torch: .*2.0 to.*" + why):
        versions.check()
