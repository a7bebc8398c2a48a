# SPDX-License-Identifier: MIT
"""Tensors of guards."""
from __future__ import annotations

import torch

from .. import BufferGuard, _torch
from . import versions



def tensor(guard: BufferGuard) -> torch.Tensor:
    """A tensor of the contents of a guard, without a copy, in their shape and type.

    Contents that nobody has described are bytes: torch.uint8, one dimension. The tensor keeps the
    buffer: it stays as it is after the guard is released and the pool closed.

    A guard that is being written gives the contents themselves: what is stored in the tensor before
    publish() is published. After publish() the tensor is not to be written any more. A guard for
    reading gives memory that the tensor may write, for torch has no tensors that are read-only; but
    what is stored there only the tensors of this guard see, and nobody else ever does. Contents on
    a GPU are on that GPU, ordered after whatever stream writes them; they are shared, and not to be
    written.

    The tensor of a guard that is being written leaves the guard when it is put into a queue, or
    shared: it is moved into the pool of install(). A child by fork may not use it.

    Raises xmem.Released: the guard is gone; BufferError: strides that torch cannot have.
    """
    if guard.flags & _CUDA:
        return torch.from_dlpack(guard)     # type: ignore[arg-type]
    return versions.from_capsule(_torch.guard_capsule(guard))


_CUDA = 1 << 5      # XMEM_BUFFER_CUDA
