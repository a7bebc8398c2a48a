# SPDX-License-Identifier: MIT
"""Messages that the workers of a DataLoader have sent, and nobody will read after the loop has
ended.

The prefetched batches lie in the pipe of a queue that ends with the iterator. Tensors in flight
stay while their maker lives, and for 60 seconds after its end. So when torch shuts the workers
down, these messages are read here, and their tensors dropped. A worker that ends waits until its
queue's thread has written the messages that it has made.

An exception, such as Ctrl-C, may leave a message half read. Then it is unknown where the next
message begins, and the pipe is left as it is: to read contents as messages would be worse.
"""
from __future__ import annotations

import os
import queue
from multiprocessing.reduction import ForkingPickler
from typing import Any, Callable

from torch.utils.data import _utils, dataloader

_Iterator: Any = dataloader._MultiProcessingDataLoaderIter
_OURS = b"xmem.torch.reductions"    # in each message that has a tensor of a pool
_LONGEST = 0.5      # seconds that a worker waits for its queue's thread: the pipe may be full
_HALF_READ = "_xmem_half_read"      # of an iterator: there may be half a message in its pipe


def _messages(contents: bytes) -> list[bytes]:
    """Get the whole messages of a pipe of multiprocessing, as Connection writes them."""
    messages, at = [], 0
    while at + 4 <= len(contents):
        size = int.from_bytes(contents[at:at + 4], "big", signed=True)
        at += 4
        if size == -1:
            size = int.from_bytes(contents[at:at + 8], "big")
            at += 8
        if size < 0 or at + size > len(contents):
            break
        messages.append(contents[at:at + size])
        at += size
    return messages


def _rest(pipe: int) -> bytes:
    """Read everything that is in a pipe now. No other reader is left, so it can be made
    non-blocking."""
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
        ForkingPickler.loads(message)       # the loaded object has the tensors, and is dropped
    except Exception:                       # noqa: B036
        pass        # it needs its sender, which has ended; or it fails in the user's code


def _reader(iterator: Any) -> int:
    """Duplicate the descriptor of the workers' queue, which torch may close; -1: there is none any
    more."""
    results = getattr(iterator, "_worker_result_queue", None)
    if results is None or getattr(iterator, "_shutdown", True) or \
            getattr(iterator, _HALF_READ, False):
        return -1
    try:
        return os.dup(results._reader.fileno())
    except OSError:
        return -1       # it is closed, or there are too many descriptors


def _try_get_data(iterator: Any, *arguments: Any, **more: Any) -> Any:
    setattr(iterator, _HALF_READ, True)
    try:
        got = _stock["_try_get_data"](iterator, *arguments, **more)
    except BaseException as error:
        # A wait that found nothing has read nothing; torch then looks which workers have ended.
        setattr(iterator, _HALF_READ, not isinstance(error.__cause__, queue.Empty))
        raise
    setattr(iterator, _HALF_READ, False)
    return got


def _shutdown_workers(iterator: Any) -> None:
    pipe = _reader(iterator)
    try:
        _stock["_shutdown_workers"](iterator)
        if pipe >= 0 and iterator._shutdown:
            for message in _messages(_rest(pipe)):
                if _OURS in message:
                    _drop(message)
    finally:
        if pipe >= 0:
            os.close(pipe)


def _worker_loop(kind: Any, dataset: Any, indices: Any, results: Any, *more: Any) -> None:
    """Run a worker."""
    try:
        _stock["_worker_loop"](kind, dataset, indices, results, *more)
    finally:
        thread = getattr(results, "_thread", None)
        if thread is not None and getattr(results, "_closed", False):
            thread.join(_LONGEST)


_PLACES = ((_Iterator, _try_get_data), (_Iterator, _shutdown_workers),
           (_utils.worker, _worker_loop))
_stock: dict[str, Callable[..., Any]] = {}      # torch's own, or what others had put there
_patched: set[str] = set()      # functions that others have wrapped since then stay


def patch() -> None:
    for where, ours in _PLACES:
        name = ours.__name__
        if name not in _patched:
            _stock[name] = getattr(where, name)
            setattr(where, name, ours)
            _patched.add(name)


def unpatch() -> None:
    for where, ours in _PLACES:
        name = ours.__name__
        if getattr(where, name) is ours:
            setattr(where, name, _stock[name])
            _patched.discard(name)
