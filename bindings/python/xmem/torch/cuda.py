# SPDX-License-Identifier: MIT
"""Tensors of GPUs in messages: the memory itself, opened by the receiver once, and not copied.

Memory of xmem.torch.cuda_allocator() is in a pool. After install(cuda=True), other memory of torch
is attached to the pool when it is sent, and kept until the last process has dropped it; it ends
with its process. As with torch, neither side waits for a stream: the receiver's current stream
waits for what the sender's current stream had to do.

The part below the calls of torch is tested on a driver that stands in for a GPU's, and was tested
once on an H100 (docs/cuda.md).
"""
from __future__ import annotations

import ctypes
import errno
import gc
import warnings
import weakref
from typing import Any, Callable

import torch
from torch.multiprocessing import reductions as stock

from .. import _torch, errors
from . import compiled, pools, state, versions
from .modes import without_modes
from .versions import untyped

_REQUIRES_GRAD, _PARAMETER = 1, 2
_KEPT = 4       # its sender has uninstalled, but the tensor was already in a pool
# Memory that cannot be attached, such as that of cudaMallocAsync, or several pieces of memory that
# torch has put beside each other (expandable segments).
_CANNOT_LEND = (errno.EMEDIUMTYPE, errno.ERANGE)
_CUDA = 8       # its sender has installed with cuda=True


def _stream(device: int) -> int:
    """The current stream of a device, as a number."""
    number: int = torch.cuda.current_stream(device).cuda_stream
    return number


@without_modes
def rebuild_tensor(name: str, token: int, fence: int, dtype: torch.dtype, place: tuple[int, ...],
                   shape: tuple[int, ...], flags: int) -> torch.Tensor:
    """In the receiver: make a tensor on its GPU, for which the current stream waits."""
    torch.cuda.init()
    pool = pools.join(name)
    storage = pool.known(token)
    if storage is None:
        capsule, _, _ = _torch.cuda_get(pool.number, token, _stream)
        storage = untyped(versions.from_capsule(capsule))
        pool.remember(token, storage)
    else:
        _torch.drop(pool.number, token)
    if fence:
        _torch.cuda_wait(pool.number, fence, _stream(storage.device.index))
    state.adopt(name, not flags & _KEPT, bool(flags & _CUDA))
    tensor = torch.empty(0, dtype=dtype, device=storage.device)
    tensor.set_(storage, place[0], shape, place[1:])    # type: ignore[call-overload]
    if flags & _PARAMETER:
        return torch.nn.parameter.Parameter(tensor, requires_grad=bool(flags & _REQUIRES_GRAD))
    tensor.requires_grad = bool(flags & _REQUIRES_GRAD)
    return tensor


# ---- memory of torch that is lent ----


def _back(address: int, token: int) -> None:
    """Memory that was lent has come back."""
    if pools.lent.get(address, (None, 0))[1] == token:
        pools.lent.pop(address, None)


def lend(pool: pools.Pool, storage: Any, address: int, nbytes: int, stream: int) -> int:
    """Attach memory of torch, complete on that stream, and set one reference aside. Returns the
    token."""
    token = 0

    def back() -> None:
        _back(address, token)

    token = _torch.cuda_share(pool.number, address, nbytes, stream, storage, storage._cdata, back)
    pools.lent[address] = pool.name, token, nbytes
    pool.remember(token, storage)
    return token


def offer_lent(address: int, nbytes: int, device: int, stream: int
               ) -> tuple[str, int, int] | None:
    """Set a reference aside of memory that other processes have, and a fence on the stream.

    So they get the storage that they have, and several tensors of a message get one storage. None:
    no other process has the memory any more.
    """
    name, token, size = pools.lent.get(address, ("", 0, 0))
    if size != nbytes:
        return None
    pool = pools.join(name)
    fence = _torch.cuda_fence(pool.number, device, stream)
    if _torch.cuda_again(pool.number, token):
        return name, token, fence
    _torch.drop(pool.number, fence)
    return None


def offer_pooled(address: int, device: int, stream: int) -> tuple[str, int, int] | None:
    """Set a reference aside of memory that is in a pool, and a fence. None: it is in no pool."""
    found = _torch.find(address)
    if found is None:
        return None
    pool = pools.join(found[0])
    fence = _torch.cuda_fence(pool.number, device, stream)
    try:
        offered = _torch.offer(address)
    except BaseException:
        _torch.drop(pool.number, fence)
        raise
    if offered is None:
        _torch.drop(pool.number, fence)
        raise RuntimeError("another thread has resized this tensor while it is sent")
    return found[0], offered[1], fence


# ---- memory that has come back ----

_makes_room = False             # torch's allocator calls limbo.cpp, or cannot
_sent: dict[int, "weakref.ref[torch.Tensor]"] = {}      # tensors that were lent, by their id


def _make_room() -> None:
    """Let torch's allocator collect, before it takes more memory of a GPU."""
    global _makes_room
    if _makes_room or torch.version.cuda is None:
        return
    _makes_room = True
    try:
        library = compiled.load("limbo.cpp", "what torch's allocator calls",
                                libraries=["-lc10_cuda"])
    except (RuntimeError, OSError) as error:    # OSError: nothing can be written, or loaded
        warnings.warn("torch's allocator cannot collect memory of GPUs that other processes have "
                      f"given back: call xmem.torch.collect() before memory is short. {error}",
                      RuntimeWarning, stacklevel=2)
        return
    library.xmem_torch_limbo_begin(ctypes.c_void_p(_torch.cuda_room()))


def _collect_with(tensor: torch.Tensor) -> None:
    """Collect when this tensor is deleted."""
    number = id(tensor)
    if number in _sent and _sent[number]() is tensor:
        return

    def deleted(ref: object) -> None:
        if _sent.get(number) is ref:
            del _sent[number]
        if pools.lent:
            collect()

    _sent[number] = weakref.ref(tensor, deleted)


def collect() -> None:
    """Drop the memory of torch that other processes have given back, and give back theirs that
    this process has dropped.

    torch.cuda.ipc_collect() does it too, and so do torch's allocator before it takes more memory of
    a GPU, the end of a tensor that was sent, and Python's collections of garbage, except those of
    the youngest.
    """
    for pool in pools.joined():
        _torch.cuda_collect(pool.number)


def _collected(phase: str, info: dict[str, int]) -> None:
    """Collect after Python has, but not after the youngest garbage, which it does very often."""
    if phase == "stop" and info["generation"] and pools.lent:
        collect()


def _ipc_collect() -> None:
    collect()
    state.stock["ipc_collect"]()


def patch() -> None:
    """Let torch and Python collect."""
    state.stock["ipc_collect"] = torch.cuda.ipc_collect
    torch.cuda.ipc_collect = _ipc_collect
    gc.callbacks.append(_collected)


def unpatch() -> None:
    if torch.cuda.ipc_collect is _ipc_collect:
        torch.cuda.ipc_collect = state.stock["ipc_collect"]
    gc.callbacks.remove(_collected)


# ---- the sender ----


def _offer(tensor: torch.Tensor) -> tuple[str, int, int] | None:
    """Set one reference aside for the receiver: (name of the pool, token, token of a fence or 0).

    None: the tensor is in no pool, and torch is to send it.
    """
    storage = untyped(tensor)
    address, nbytes, device = storage.data_ptr(), storage.nbytes(), tensor.device.index
    stream = _stream(device)
    where = offer_pooled(address, device, stream)
    if where is None:
        where = offer_lent(address, nbytes, device, stream)
        if where is not None:
            _collect_with(tensor)
    if where is not None:
        pools.join(where[0]).remember_new(where[1], storage)
        return where
    if not state.shares_cuda():
        return None
    _make_room()
    pool = state.pool()
    token = lend(pool, storage, address, nbytes, stream)
    _collect_with(tensor)
    return pool.name, token, 0


def reduce_tensor(tensor: torch.Tensor) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Pickle a strided tensor of a GPU, for ForkingPickler."""
    if type(tensor) not in (torch.Tensor, torch.nn.parameter.Parameter) or \
            not untyped(tensor).nbytes() or (tensor.requires_grad and not tensor.is_leaf):
        return stock.reduce_tensor(tensor)
    try:
        where = _offer(tensor)
    except errors.Error as error:
        if error.errno not in _CANNOT_LEND and not state.falls_back(error):
            raise
        return stock.reduce_tensor(tensor)
    if where is None:
        return stock.reduce_tensor(tensor)
    flags = (_REQUIRES_GRAD if tensor.requires_grad else 0) | (
        _PARAMETER if isinstance(tensor, torch.nn.parameter.Parameter) else 0) | (
        0 if state.installed() else _KEPT) | (_CUDA if state.shares_cuda() else 0)
    place = (tensor.storage_offset(), *tensor.stride())
    return rebuild_tensor, (*where, tensor.dtype, place, tuple(tensor.size()), flags)
