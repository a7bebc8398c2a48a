# SPDX-License-Identifier: MIT
"""How tensors go into messages of multiprocessing: by the name of the pool and their token.

One reference is set aside for each message, so that a tensor in flight stays when the sender drops
it or is killed. The reader of the message takes the reference over. Everything that torch handles
itself, such as subclasses, sparse and nested tensors, goes through torch's functions, which come
here for the storages.

The extension has a fast path for the usual case: a whole tensor of a plain type that has been sent
before, and is not in the receiver. In all other cases it calls the slow path, which is here
(../../src/torch_message.h).
"""
from __future__ import annotations

import functools
import os
import struct
from typing import Any, Callable

import torch
from torch.multiprocessing import reductions as stock

from .. import _torch, errors
from . import cuda, guards, modes, pools, state, storages, versions
from .modes import without_modes
from .versions import UntypedStorage, has_names, untyped

Reduced = tuple[Callable[..., Any], tuple[Any, ...]]
_Parameter = torch.nn.parameter.Parameter


def _get(get: Callable[..., Any], name: str, *what: Any) -> Any:
    pool = pools.join(name)
    try:
        return get(pool, *what)
    except errors.HostGone:
        pools.forget(pool)          # the sender may have made a new one
        try:
            return get(pools.join(name), *what)
        except errors.NotFound:
            pass
        raise


def _receive(installed: bool, get: Callable[..., Any], name: str, *what: Any) -> Any:
    """Get a message's tensor or storage by a function of storages. installed: whether the sender
    had the pool installed.

    what: the token, and the other arguments of that function.
    """
    try:
        got = _get(get, name, *what)
    except errors.Stale as error:
        error.add_note("Nobody has this tensor any more. It was set aside for 60 seconds, as its "
                       "sender had ended, or did not own the memory; or for the seconds of "
                       "install(in_flight=).")
        raise
    state.adopt(name, installed)
    return got


@without_modes
def rebuild_storage(name: str, token: int, installed: bool = True) -> Any:
    """In the receiver: get a storage."""
    return _receive(installed, storages.get, name, token)


@without_modes
def rebuild_tensor(name: str, token: int, dtype: str, place: tuple[int, ...],
                   shape: tuple[int, ...], flags: int) -> torch.Tensor:
    """In the receiver: get a plain tensor. `place` is offset and strides; `flags` are as below."""
    tensor: torch.Tensor = _receive(not flags & _KEPT, storages.get_tensor, name, token,
                                    getattr(torch, dtype), place, shape)
    return _finish(tensor, flags) if flags else tensor


# The extension has the same numbers.
_REQUIRES_GRAD, _PARAMETER = 1, 2
_CONJ, _NEG = 8, 16     # the numbers are the conjugate, or negative, of those in memory
_KEPT = 4       # its sender has uninstalled, and the tensor was in a pool already


def _finish(tensor: torch.Tensor, flags: int) -> torch.Tensor:
    if flags & _CONJ:
        tensor = tensor.conj()
    if flags & _NEG:
        tensor = torch._neg_view(tensor)
    if flags & _PARAMETER:
        return _Parameter(tensor, requires_grad=bool(flags & _REQUIRES_GRAD))
    if flags & _REQUIRES_GRAD:
        tensor.requires_grad = True
    return tensor


@functools.lru_cache(maxsize=None)
def _name_of(dtype: torch.dtype) -> str:
    """Get torch's name of a type for messages: it is shorter to pickle than the type."""
    return str(dtype).removeprefix("torch.")


_HEAD = struct.Struct("=QHBB")      # token, type of DLPack, flags, dimensions
_DTYPES = {number: _name_of(dtype) for dtype, number in storages.TYPES.items()}


def rebuild_whole(message: bytes) -> torch.Tensor:
    """In the receiver: make a whole tensor, from a message of the extension."""
    tensor: torch.Tensor = _torch.rebuild(message)
    return tensor


def _rebuild_whole(message: bytes) -> torch.Tensor:
    """Make the tensor of such a message by the slow path."""
    token, number, flags, dimensions = _HEAD.unpack_from(message)
    name = _HEAD.size + 8 * dimensions
    shape = struct.unpack(f"={dimensions}q", message[_HEAD.size:name])
    strides = [1]
    for size in reversed(shape[1:]):
        strides.insert(0, strides[0] * size)
    return rebuild_tensor(message[name:].decode(), token, _DTYPES[number],
                          (0, *strides[:dimensions]), shape, flags)


@without_modes
def rebuild_quantized(name: str, token: int, dtype: torch.dtype, place: tuple[int, ...],
                      shape: tuple[int, ...], quantizer: tuple[Any, ...], flags: int
                      ) -> torch.Tensor:
    """In the receiver: make a quantized tensor, with one scale or one for each index of an axis."""
    scheme, scale, zero, *axis = quantizer
    if axis:
        make: Any = torch._empty_per_channel_affine_quantized
        empty = make(shape, scales=scale, zero_points=zero, axis=axis[0], dtype=dtype, device="cpu")
    else:
        empty = torch._empty_affine_quantized(shape, scale=scale, zero_point=zero, dtype=dtype,
                                              device="cpu")
    empty.set_(_receive(not flags & _KEPT, storages.get, name, token), place[0], shape, place[1:])
    return _finish(empty, flags)


def _quantizer(tensor: torch.Tensor) -> tuple[Any, ...]:
    """Get the parameters of a quantized tensor."""
    scheme = tensor.qscheme()
    if scheme is torch.per_tensor_affine:
        return scheme, tensor.q_scale(), tensor.q_zero_point()
    return (scheme, tensor.q_per_channel_scales(), tensor.q_per_channel_zero_points(),
            tensor.q_per_channel_axis())


def _is_plain(tensor: torch.Tensor) -> bool:
    """Is the tensor fully described by its memory, shape, type, scale and flags?"""
    return (tensor.layout is torch.strided and tensor.is_cpu
            and not tensor.is_nested and not tensor._backward_hooks and not has_names(tensor)
            and (tensor.is_leaf or not tensor.requires_grad))


def _offer(storage: Any) -> tuple[str, int] | None:
    """Set one reference aside; before that the storage is moved into the pool if need be.

    None: torch itself has shared it before, so other processes may have it, and it stays where it
    is; or it is in no pool, and none is installed.
    """
    found = _torch.offer(storage.data_ptr())
    if found is None:
        if state.installed() is None or state.is_shared_by_torch(storage):
            return None
        storages.move(state.pool(), storage)
        found = _torch.offer(storage.data_ptr())
    if found is None:
        raise RuntimeError("another thread has resized this tensor while it is sent")
    name, token, _ = found
    pools.join(name).remember_new(token, storage)       # an allocator may have made it
    return name, token


def _shared(storage: Any) -> tuple[str, int] | None:
    """Share a storage: its pool and token. None: that is not possible, and torch must share it."""
    guards.refuse_written(storage)
    try:
        return _offer(storage)
    except errors.Error as error:
        if _torch.find(storage.data_ptr()) is not None:
            error.add_note("This tensor lies in the pool, and others may have it: torch cannot "
                           "share it in its own way without taking it from them. Send "
                           "tensor.clone()" + (" after install(), which makes a new pool."
                                               if isinstance(error, errors.HostGone) else "."))
            raise
        if not state.falls_back(error):
            raise
        return None


@without_modes
def reduce_storage(storage: Any) -> Reduced:
    """Pickle a storage, for ForkingPickler; also the storage of tensors that torch pickles."""
    if not state.is_idle() and storage.device.type == "cpu" and storage.nbytes():
        where = _shared(storage)
        if where is not None:
            return rebuild_storage, (*where, state.installed() is not None)
    return stock.reduce_storage(storage)


def _flags(tensor: torch.Tensor) -> int:
    """Get the flags of a tensor for a message."""
    return ((_REQUIRES_GRAD if tensor.requires_grad else 0)
            | (_PARAMETER if type(tensor) is _Parameter else 0)
            | (_CONJ if tensor.is_conj() else 0) | (_NEG if tensor.is_neg() else 0)
            | (0 if state.installed() else _KEPT))


@without_modes
def _reduce_tensor(tensor: torch.Tensor) -> Reduced:
    """Pickle a tensor by the slow path; _torch.reduce, for ForkingPickler, calls it."""
    kind = type(tensor)
    if state.is_idle():
        return stock.reduce_tensor(tensor)
    if (kind is torch.Tensor or kind is _Parameter) and _is_plain(tensor):
        storage = untyped(tensor)
        where = _shared(storage) if storage.nbytes() else None
        if where is not None:
            flags = _flags(tensor)
            place = (tensor.storage_offset(), *tensor.stride())
            if tensor.is_quantized:         # torch's own function forgets the scale
                return rebuild_quantized, (*where, tensor.dtype, place, tuple(tensor.size()),
                                           _quantizer(tensor), flags)
            return rebuild_tensor, (*where, _name_of(tensor.dtype), place, tuple(tensor.size()),
                                    flags)
    elif tensor.layout is torch.strided and tensor.device.type == "cuda":
        return cuda.reduce_tensor(tensor)
    return stock.reduce_tensor(tensor)


def _tell() -> None:
    """Give the extension the objects that its fast path uses; in a child by fork again."""
    _torch.set_messages({
        "reduce": _reduce_tensor, "rebuild": _rebuild_whole, "function": rebuild_whole,
        "finish": _finish, "adopt": state.adopt,
        "function_modes": modes.count_functions, "dispatch_modes": modes.count_dispatches,
        "tensor": torch.Tensor, "parameter": _Parameter, "strided": torch.strided,
        "types": storages.TYPES, "untyped": untyped, "has_names": versions.names_of,
        "from_capsule": versions.from_capsule, "lock": storages.getting})


_tell()
os.register_at_fork(after_in_child=_tell)       # after storages.py, which makes the lock


def register(register_one: Callable[[Any, Any], None]) -> None:
    """Register all of this with a pickler."""
    register_one(UntypedStorage, reduce_storage)
    for kind in {torch.Tensor, _Parameter, *torch._tensor_classes}:
        register_one(kind, _torch.reduce)


def register_stock(register_one: Callable[[Any, Any], None]) -> None:
    """Register the functions of torch again."""
    register_one(UntypedStorage, stock.reduce_storage)
    for kind in {torch.Tensor, _Parameter, *torch._tensor_classes}:
        register_one(kind, stock.reduce_tensor)
