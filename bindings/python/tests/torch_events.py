# SPDX-License-Identifier: MIT
"""A program of test_torch_runtime.py: torch_events.py EVENT.

It sends tensors on a GPU to another process, which drops them and closes their memory. The function
of the event's name checks that this memory comes back to torch with that event, and not before.
"""
from __future__ import annotations

import gc
import sys
from typing import Any

import torch
import torch.multiprocessing as multiprocessing

import xmem.torch
from torch_children import until
from xmem import _torch
from xmem.torch import state

BYTES = 64 << 20


class Consumer:
    """Keeps the tensors that come, and does what messages say."""

    def __init__(self) -> None:
        self.kept: list[torch.Tensor] = []
        self.dropped = 0

    def keep(self, tensor: torch.Tensor) -> None:
        assert tensor.is_cuda and tensor.data_ptr()
        self.kept.append(tensor)

    def drop(self) -> None:
        self.number = state.pool().number
        self.look = xmem.BufferPool(state.pool().name, existing=True, writer=False)
        storages = {each.untyped_storage().data_ptr() for each in self.kept}
        self.dropped = self.look.stat().attached - len(storages)
        self.kept.clear()
        torch.cuda.synchronize()
        until(lambda: not _torch.stat(self.number)["held"], "the streams have read")

    def close(self) -> None:
        """Close the memory, once the host knows that its owner does not want it any more."""
        until(lambda: self.look.stat().attached <= self.dropped, "its owner has detached it")
        torch.cuda.ipc_collect()
        assert not _torch.gone(self.number)     # a request, which comes after what was posted
        self.look.close()


def consume(pipe: Any) -> None:
    consumer = Consumer()
    while (message := pipe.recv()) != "end":
        if isinstance(message, str):
            getattr(consumer, message)()
        else:
            consumer.keep(message)
            del message
        pipe.send("done")


class Other:
    """The other process."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=consume, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()

    def tell(self, message: Any) -> None:
        self.pipe.send(message)
        assert self.pipe.recv() == "done"

    def end(self) -> None:
        self.pipe.send("end")
        self.process.join()
        assert self.process.exitcode == 0


def empty(nbytes: int) -> torch.Tensor:
    return torch.empty(nbytes, dtype=torch.uint8, device="cuda")


def sent(other: Other, nbytes: int = BYTES) -> torch.Tensor:
    tensor = empty(nbytes)
    other.tell(tensor)
    return tensor


def no_block(other: Other) -> None:
    """torch's allocator finds no block that fits, and the GPU has no memory for another one."""
    nbytes = torch.cuda.mem_get_info()[0] // 8 * 5
    tensor = sent(other, nbytes)
    address = tensor.data_ptr()
    del tensor
    try:
        empty(nbytes)
        raise AssertionError("the other process has the memory")
    except RuntimeError:                # OutOfMemoryError; torch 2.1 lacks libnvidia-ml to say so
        pass
    other.tell("drop")
    torch.cuda.empty_cache()
    small = empty(1)                    # torch looks, and the library tells the other process
    other.tell("close")
    assert torch.cuda.memory_allocated() > nbytes
    tensor = empty(nbytes)
    assert tensor.data_ptr() == address and small.is_cuda
    xmem.torch.collect()                # drops the storage's object, and not the memory again
    assert nbytes < torch.cuda.memory_allocated() < 2 * nbytes


def deletion(other: Other) -> None:
    """A tensor that was sent is deleted."""
    tensor = sent(other)
    part = empty(0).set_(tensor.untyped_storage(), 1, (BYTES - 1,))     # a view keeps its base
    other.tell(part)
    other.tell("drop")
    del tensor                          # the library tells the other process
    other.tell("close")
    assert torch.cuda.memory_allocated() == BYTES
    del part
    assert torch.cuda.memory_allocated() == 0


def ipc_collect(other: Other) -> None:
    """The program calls torch.cuda.ipc_collect()."""
    tensor = sent(other)
    other.tell("drop")
    del tensor
    other.tell("close")
    assert torch.cuda.memory_allocated() == BYTES
    torch.cuda.ipc_collect()
    assert torch.cuda.memory_allocated() == 0


def still_there(other: Other) -> None:
    """A tensor that other processes have dropped stays while this process has it."""
    tensor = sent(other)
    other.tell("drop")
    torch.cuda.ipc_collect()
    other.tell("close")
    address = tensor.data_ptr()
    assert empty(BYTES).data_ptr() not in (0, address)
    torch.cuda.ipc_collect()
    assert tensor.data_ptr() == address and tensor.untyped_storage().nbytes() == BYTES
    storage = tensor.untyped_storage()
    del tensor
    other.tell(empty(0).set_(storage, 0, (BYTES,)))
    other.tell("drop")
    torch.cuda.ipc_collect()
    other.tell("close")
    assert empty(2 * BYTES).data_ptr() and storage.nbytes() == BYTES, "only Python has it"


if __name__ == "__main__":
    gc.disable()                        # its collections are an event, too
    xmem.torch.install(cuda=True)
    there = Other()
    globals()[sys.argv[1]](there)
    there.end()
