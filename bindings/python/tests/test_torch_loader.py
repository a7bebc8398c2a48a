# SPDX-License-Identifier: MIT
"""DataLoader's workers, threads, the collector, and memory over many hand-overs."""
from __future__ import annotations

import gc
import pickle
import threading
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from typing import Any, Iterator

import pytest

torch = pytest.importorskip("torch")

from torch.utils.data import DataLoader, Dataset    # noqa: E402
from torch_children import Child, ask, sum_of, until    # noqa: E402

import xmem.torch                                   # noqa: E402
from xmem import _torch                             # noqa: E402


@pytest.fixture(autouse=True)
def installed() -> Iterator[None]:
    xmem.torch.install()
    yield
    xmem.torch.uninstall()


def held() -> int:
    gc.collect()
    return _torch.stat(xmem.torch.installing.pool().number)["held"]


class Numbers(Dataset[Any]):
    """Items of a tensor, a number, and a dict with a tensor that all items share."""

    def __init__(self, common: Any) -> None:
        self.common = common

    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> Any:
        return torch.full((256,), float(index)), index, {"common": self.common}


@pytest.mark.parametrize("method, persistent", [
    ("fork", False), ("fork", True), pytest.param("spawn", True, marks=pytest.mark.long)])
def test_batches_come_in_the_pool(method: str, persistent: bool) -> None:
    common = torch.arange(10.0).share_memory_()
    before = held()
    loader = DataLoader(Numbers(common), batch_size=8, num_workers=2,
                        persistent_workers=persistent, multiprocessing_context=method)
    for epoch in range(2):
        indices = []
        for batch, numbers, more in loader:
            assert xmem.torch.is_pooled(batch) and xmem.torch.is_pooled(more["common"])
            assert batch.is_shared()
            assert torch.equal(batch, numbers[:, None].expand(8, 256).float())
            assert torch.equal(more["common"], common.expand(8, 10))
            indices += numbers.tolist()
            batch.add_(epoch)       # a batch is the consumer's to write
        assert indices == list(range(64))
    del loader, batch, numbers, more
    until(lambda: held() <= before, "all batches went back, when the host knows of the ends")


def test_an_epoch_that_is_left_early() -> None:
    before = held()
    loader = DataLoader(Numbers(torch.zeros(1)), batch_size=4, num_workers=2)
    for batch, _, _ in loader:
        assert batch.shape == (4, 256)
        break
    del loader, batch, _
    until(lambda: held() <= before, "what was in flight to nobody came back")


@pytest.mark.parametrize("pinned", [False, True])
@pytest.mark.parametrize("persistent", [False, True])
def test_loops_that_are_left_early_leave_nothing(persistent: bool, pinned: bool) -> None:
    before = stat()
    for _ in range(5):
        loader = DataLoader(Numbers(torch.zeros(1)), batch_size=2, num_workers=2, prefetch_factor=4,
                            persistent_workers=persistent, pin_memory=pinned)
        for epoch in range(2 if persistent else 1):
            for number, (batch, _, _) in enumerate(loader):
                assert batch.shape == (2, 256)
                if number == 2:
                    break
        del loader, batch, _
        gc.collect()
    until(lambda: all(stat()[what] <= before[what] for what in ("claims", "held")),
          "nothing is in flight to nobody")


def stat() -> dict[str, int]:
    gc.collect()
    return _torch.stat(xmem.torch.installing.pool().number)


def test_a_message_that_is_cut_is_none() -> None:
    whole = [b"one", b"", b"x" * 300]
    contents = b"".join(len(each).to_bytes(4, "big") + each for each in whole)
    large = (-1).to_bytes(4, "big", signed=True) + (5).to_bytes(8, "big") + b"large"
    split = xmem.torch.installing.loader._messages
    assert split(contents) == whole and split(large + contents) == [b"large", *whole]
    assert split(contents[:-1]) == whole[:2] and split(large[:-1]) == []
    assert split(large[:7]) == [] and split(b"\0") == [] and split(b"") == []
    for size in -4, -2, -1 << 31:       # of contents that are read as a message
        assert split(size.to_bytes(4, "big", signed=True) * 8 + contents) == []


class Pictures(Numbers):
    """With bytes that are no heads of messages."""

    def __getitem__(self, index: int) -> Any:
        return torch.full((256,), float(index)), b"\xff\xff\xff\xfc" * 10_000


@pytest.mark.parametrize("part", ["head", "contents"])
def test_ctrl_c_while_a_batch_is_read(monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    """The rest in the pipe begins in the middle of a message, and is not taken for a message."""
    monkeypatch.setattr(xmem.torch.installing.loader, "_rest", lambda pipe: pytest.fail("read"))
    stock, broken = Connection._recv, []

    def interrupted(self: Any, size: int, *more: Any) -> Any:
        if size > 4 and part == "contents" and not broken:
            stock(self, 4)
        if (size > 4) is (part == "contents") and not broken:
            broken.append(size)
            raise KeyboardInterrupt
        return stock(self, size, *more)

    iterator = iter(DataLoader(Pictures(torch.zeros(1)), batch_size=2, num_workers=2))
    next(iterator)
    monkeypatch.setattr(Connection, "_recv", interrupted)
    with pytest.raises(KeyboardInterrupt):
        for _ in range(20):
            next(iterator)
    monkeypatch.setattr(Connection, "_recv", stock)
    iterator._shutdown_workers()
    assert broken and iterator._shutdown


def test_workers_find_batches_by_a_collate_of_their_own() -> None:
    loader = DataLoader(Numbers(torch.zeros(1)), batch_size=4, num_workers=1, collate_fn=_first)
    assert [int(item[0]) for item in loader] == list(range(0, 64, 4))


def _first(items: list[Any]) -> Any:
    return items[0][0]


def test_threads_hand_over_at_the_same_time() -> None:
    errors: list[BaseException] = []
    shared = torch.zeros(64).share_memory_()

    def work(seed: int) -> None:
        try:
            for number in range(200):
                tensor = torch.full((seed + 1,), float(number))
                again, other = pickle.loads(bytes(ForkingPickler.dumps([tensor, shared])))
                assert again.eq(number).all() and other.data_ptr() == shared.data_ptr()
        except BaseException as error:      # noqa: B036
            errors.append(error)

    before = held()
    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert held() <= before


def test_one_storage_is_moved_once_by_many_threads() -> None:
    tensors = [torch.zeros(100) for _ in range(50)]
    barrier = threading.Barrier(4)
    seen: list[list[int]] = []

    def work() -> None:
        barrier.wait()
        seen.append([tensor.share_memory_().data_ptr() for tensor in tensors])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 4 and all(each == seen[0] for each in seen)


def test_cycles_with_tensors_inside_are_collected() -> None:
    before = held()
    for _ in range(100):
        ring: list[Any] = [torch.zeros(10).share_memory_()]
        ring.append(ring)
    del ring
    gc.collect()
    assert held() <= before


def own_bytes() -> int:
    """Bytes of memory of this process's own: what it shares depends on who else is there."""
    with open("/proc/self/smaps_rollup", encoding="ascii") as file:
        return sum(int(line.split()[1]) << 10 for line in file if line.startswith("Anonymous:"))


def pool_bytes() -> int:
    return _torch.stat(xmem.torch.installing.pool().number)["bytes_files"]


def test_memory_is_flat_over_10000_hand_overs() -> None:
    kept = torch.zeros(1 << 12).share_memory_()
    with Child(ask, sum_of) as child:
        sizes = []
        for number in range(10000):
            tensor = kept if number % 2 else torch.full((1 << 12,), 1.0)
            child.put(tensor)
            assert child.get() == (0 if number % 2 else 1 << 12)
            if number in (2000, 9999):
                gc.collect()
                sizes.append((own_bytes(), held(), pool_bytes()))
        child.put(None)
        child.end()
    assert sizes[1][0] < sizes[0][0] + (2 << 20), "bytes of this process"
    assert sizes[1][1] <= sizes[0][1] + 2, "buffers in use"
    assert sizes[1][2] <= sizes[0][2] + (2 << 20), "bytes of the pool"
    assert len(xmem.torch.installing.pool()._known) <= 512
