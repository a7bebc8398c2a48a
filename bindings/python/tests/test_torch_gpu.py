# SPDX-License-Identifier: MIT
"""Tensors on a GPU from process to process, with torch's own CUDA on top: skipped if torch finds no
GPU. test_torch_cuda.py tests the part below torch on any driver.
"""
from __future__ import annotations

import gc
from multiprocessing.reduction import ForkingPickler
from typing import Any, Iterator

import pytest

torch = pytest.importorskip("torch")

from gpu import Stream, stream              # noqa: E402, F401
from torch_children import Child, until     # noqa: E402

import xmem.torch                           # noqa: E402
from xmem import _torch                     # noqa: E402
from xmem.torch import installing           # noqa: E402

if not torch.cuda.is_available():
    pytest.skip("torch finds no GPU of NVIDIA's", allow_module_level=True)

COUNT = 1 << 20


@pytest.fixture
def installed() -> Iterator[None]:
    xmem.torch.install(cuda=True)
    yield
    xmem.torch.uninstall()


def _total(pipe: Any) -> None:
    """Send the sum of each tensor that comes and then write into it, until None."""
    while (tensor := pipe.recv()) is not None:
        total = float(tensor.sum())
        tensor[0] = -1
        torch.cuda.synchronize()
        pipe.send((total, str(tensor.device)))
        del tensor


def _keep(pipe: Any) -> None:
    """Keep what comes."""
    kept = []
    while (tensor := pipe.recv()) is not None:
        kept.append(tensor)
        pipe.send(float(tensor[-1]))


def _all_is_back(number: int) -> bool:
    _torch.stat(number)     # closes and frees what has come back
    torch.cuda.ipc_collect()
    return torch.cuda.memory_allocated() == 0


def test_a_tensor_is_opened_and_not_copied(installed: None) -> None:
    tensor = torch.arange(COUNT, dtype=torch.float64, device="cuda")
    with Child(_total, method="spawn") as child:
        for _ in range(3):
            tensor[0] = 0
            child.put(tensor)
            assert child.get() == (COUNT * (COUNT - 1) / 2, "cuda:0")
            assert float(tensor[0]) == -1, "both have the same memory"
        child.put(None)
        child.end()
    del tensor
    until(lambda: _all_is_back(installing.pool().number), "nobody has it any more")


def test_parts_and_shapes_are_what_they_were(installed: None) -> None:
    whole = torch.arange(COUNT, dtype=torch.float32, device="cuda").reshape(1024, -1)
    part = whole.t()[3:5, ::2]
    want = float(part.sum())
    with Child(_total, method="spawn") as child:
        child.put(part)
        assert child.get() == (want, "cuda:0")
        assert float(whole[0, 3]) == -1 and float(whole[0, 2]) == 2


def test_what_a_killed_process_had_comes_back(installed: None) -> None:
    tensor = torch.arange(COUNT, dtype=torch.float32, device="cuda")
    with Child(_keep, method="spawn") as child:
        child.put(tensor)
        assert child.get() == COUNT - 1
        del tensor
        gc.collect()
        assert not _all_is_back(installing.pool().number), "the other one has it"
        child.kill()
    until(lambda: _all_is_back(installing.pool().number), "it has ended")


def _says_before_it_waits(pipe: Any) -> None:
    """Say that a tensor has come, and only then wait for its contents."""
    while (tensor := pipe.recv()) is not None:
        total = tensor.sum()
        pipe.send("it has come")
        pipe.send(float(total))
        del tensor, total


def test_neither_side_waits_for_the_senders_stream(installed: None, stream: Stream) -> None:
    """The first round loads the kernels, and the second one makes the fence's memory. For both CUDA
    may wait for all streams."""
    tensor = torch.zeros(COUNT, device="cuda")
    torch.cuda.synchronize()
    with Child(_says_before_it_waits, method="spawn") as child:
        with torch.cuda.stream(torch.cuda.ExternalStream(stream.number)):
            for number in range(1, 5):
                if number > 2:
                    stream.close_gate()
                tensor.fill_(number)
                child.put(tensor)
                assert child.get() == "it has come"
                if number > 2:
                    stream.open_gate()
                assert child.get() == number * COUNT
        child.put(None)
        child.end()


def _storages(pipe: Any) -> None:
    tensors = pipe.recv()
    tensors[0][2, 0] = 5
    torch.cuda.synchronize()
    pipe.send((len({each.untyped_storage()._cdata for each in tensors}), float(tensors[1][0])))


def test_several_tensors_of_a_storage_get_one(installed: None) -> None:
    whole = torch.zeros(4, COUNT, device="cuda")
    with Child(_storages, method="spawn") as child:
        child.put([whole, whole[2]])
        assert child.get() == (1, 5)
        child.end()
    assert float(whole[2, 0]) == 5


def test_without_cuda_torch_sends_them() -> None:
    xmem.torch.install()
    try:
        message = bytes(ForkingPickler.dumps(torch.zeros(COUNT, device="cuda")))
        assert b"rebuild_cuda_tensor" in message and b"xmem" not in message
    finally:
        xmem.torch.uninstall()


def test_memory_of_the_allocator_goes_without_being_attached() -> None:
    allocator = xmem.torch.cuda_allocator()
    own = torch.cuda.MemPool(allocator.allocator())
    with torch.cuda.use_mem_pool(own):
        tensor = torch.full((COUNT,), 2.0, device="cuda")
    assert _torch.find(tensor.untyped_storage().data_ptr()) is not None
    with Child(_total, method="spawn") as child:
        child.put(tensor)
        assert child.get() == (2.0 * COUNT, "cuda:0")
        assert float(tensor[0]) == -1
        child.put(None)
        child.end()
