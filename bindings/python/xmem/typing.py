# SPDX-License-Identifier: MIT
"""Types of arguments of this package, for a program's own annotations.

They are for type checkers; a program imports them under ``if TYPE_CHECKING`` or at any time.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["ArrayLike", "BufferLike", "CudaArrayLike", "DTypeLike", "HasArrayInterface",
           "HasCudaArrayInterface", "HasDLPack", "ShapeLike", "StreamLike"]


class HasArrayInterface(Protocol):
    """An array of numpy. The stubs of numpy say only from Python 3.12 on that it is a buffer."""

    @property
    def __array_interface__(self) -> dict[str, Any]: ...


class HasCudaArrayInterface(Protocol):
    """An array on a GPU: of CuPy, numba, PyTorch and others."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...


class HasDLPack(Protocol):
    """A tensor with DLPack."""

    @property
    def __dlpack__(self) -> Callable[..., Any]: ...
    @property
    def __dlpack_device__(self) -> Callable[..., Any]: ...


class _NamedType(Protocol):
    """numpy.dtype, and other types with a name."""

    @property
    def name(self) -> str: ...


class _TorchType(Protocol):
    """torch.dtype, whose text is its name."""

    @property
    def is_floating_point(self) -> bool: ...


class _StreamOfCudaCore(Protocol):
    def __cuda_stream__(self) -> tuple[int, int]: ...


class _StreamOfCupy(Protocol):
    @property
    def ptr(self) -> Any: ...


class _StreamOfTorch(Protocol):
    @property
    def cuda_stream(self) -> Any: ...


class _StreamOfNumba(Protocol):
    @property
    def handle(self) -> Any: ...


#: Objects with bytes in memory of the CPU: bytes, memoryview, array.array, numpy's arrays, guards.
BufferLike: TypeAlias = "Buffer | HasArrayInterface"
#: A BufferLike, or a tensor that only has DLPack.
ArrayLike: TypeAlias = "BufferLike | HasDLPack"
#: Objects with memory of a GPU.
CudaArrayLike: TypeAlias = HasCudaArrayInterface | HasDLPack
#: A type of elements: its name ("uint8", "bfloat16"), or numpy's, torch's or Python's type.
DTypeLike: TypeAlias = str | type[Any] | _NamedType | _TorchType
#: Elements in each dimension.
ShapeLike: TypeAlias = tuple[int, ...] | list[int]
#: A stream of CUDA: its address, 0 for the default stream, or a library's object (xmem/cuda.py).
StreamLike: TypeAlias = int | _StreamOfCudaCore | _StreamOfCupy | _StreamOfTorch | _StreamOfNumba
