# SPDX-License-Identifier: MIT
"""What the workers of a DataLoader have sent, and nobody will read, once the loop has been left.

The batches that they have prefetched lie in the pipe of a queue that ends with the iterator. Their
makers have ended, and what is in flight stays for as long as any process of the pool lives. So
when torch shuts the workers down, these messages are read here, and their tensors dropped. A
worker that ends lets its queue's thread write what it has made messages of.
"""
from __future__ import annotations

import os
from multiprocessing.reduction import ForkingPickler
from typing import Any, Callable

from torch.utils.data import _utils, dataloader

_Iterator: Any = dataloader._MultiProcessingDataLoaderIter
_OURS = b"xmem.torch.reductions"    # in each message that has a tensor of a pool
_LONGEST = 0.5      # seconds that a worker waits for that: the pipe may be full of other things
_stock: Callable[[Any], None] = _Iterator._shutdown_workers
_stock_loop: Callable[..., None] = _utils.worker._worker_loop


def _messages(contents: bytes) -> list[bytes]:
    """The messages of a pipe of multiprocessing, as Connection writes them; not one that is cut."""
    messages, at = [], 0
    while at + 4 <= len(contents):
        size = int.from_bytes(contents[at:at + 4], "big", signed=True)
        at += 4
        if size == -1:
            size = int.from_bytes(contents[at:at + 8], "big")
            at += 8
        if at + size > len(contents):
            break
        messages.append(contents[at:at + size])
        at += size
    return messages


def _rest(pipe: int) -> bytes:
    """What is in a pipe now. Nobody else reads it any more, so that it may be set to not wait."""
    os.set_blocking(pipe, False)
    parts = []
    try:
        while part := os.read(pipe, 1 << 16):
            parts.append(part)
    except BlockingIOError:
        pass
    return b"".join(parts)


def _drop(message: bytes) -> None:
    try:
        ForkingPickler.loads(message)       # what it gives has its tensors, and is dropped
    except Exception:                       # noqa: B036
        pass        # it needs its sender, who has ended; or it is the user's, and is not wanted


def _reader(iterator: Any) -> int:
    """A descriptor of the workers' queue, which torch may close; -1: it has none any more."""
    queue = getattr(iterator, "_worker_result_queue", None)
    if queue is None or getattr(iterator, "_shutdown", True):
        return -1
    try:
        return os.dup(queue._reader.fileno())
    except OSError:
        return -1       # it is closed, or there are too many


def _shutdown_workers(iterator: Any) -> None:
    pipe = _reader(iterator)
    try:
        _stock(iterator)
        if pipe >= 0 and iterator._shutdown:
            for message in _messages(_rest(pipe)):
                if _OURS in message:
                    _drop(message)
    finally:
        if pipe >= 0:
            os.close(pipe)


def _worker_loop(kind: Any, dataset: Any, indices: Any, results: Any, *more: Any) -> None:
    """What a worker runs."""
    try:
        _stock_loop(kind, dataset, indices, results, *more)
    finally:
        thread = getattr(results, "_thread", None)
        if thread is not None and getattr(results, "_closed", False):
            thread.join(_LONGEST)


_PLACES = ((_Iterator, "_shutdown_workers", _shutdown_workers),
           (_utils.worker, "_worker_loop", _worker_loop))
_patched: set[str] = set()      # what others have wrapped since then stays


def patch() -> None:
    global _stock, _stock_loop
    if "_shutdown_workers" not in _patched:
        _stock = _Iterator._shutdown_workers
    if "_worker_loop" not in _patched:
        _stock_loop = _utils.worker._worker_loop
    for where, name, ours in _PLACES:
        if name not in _patched:
            setattr(where, name, ours)
            _patched.add(name)


def unpatch() -> None:
    for (where, name, ours), stock in zip(_PLACES, (_stock, _stock_loop)):
        if getattr(where, name) is ours:
            setattr(where, name, stock)
            _patched.discard(name)
