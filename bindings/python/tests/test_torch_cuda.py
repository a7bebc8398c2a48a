# SPDX-License-Identifier: MIT
"""Memory of GPUs for torch, below torch: on a GPU, or on the driver that stands in for one's.

NVIDIA's runtime, which torch's CUDA is made of, refuses that driver. So the functions that torch
calls are called here as torch calls them.
"""
from __future__ import annotations

import ctypes
import os
from typing import Any, Iterator

import pytest

torch = pytest.importorskip("torch")

from gpu import why_not                     # noqa: E402
from torch_children import Child, until     # noqa: E402

import xmem                                 # noqa: E402
import xmem.torch                           # noqa: E402
from xmem import _core, _torch              # noqa: E402
from xmem.torch import pools                # noqa: E402

MIB = 1 << 20


class Functions:
    """The allocator's two functions, found by their names in the file, as torch finds them."""

    def __init__(self) -> None:
        library = ctypes.CDLL(_core.__file__)
        self._allocate = library.xmem_torch_cuda_allocate
        self._allocate.restype = ctypes.c_void_p
        self._allocate.argtypes = [ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]
        self._free = library.xmem_torch_cuda_free
        self._free.restype = None
        self._free.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]

    def allocate(self, nbytes: int, device: int = 0) -> int:
        return self._allocate(nbytes, device, None) or 0

    def free(self, address: int, nbytes: int, device: int = 0) -> None:
        self._free(address, nbytes, device, None)

    def allocate_again(self, address: int, nbytes: int) -> None:
        """Allocate until it is that memory, which a stream has yet to let go of."""
        def got() -> bool:
            found = self.allocate(nbytes)
            if found != address:
                self.free(found, nbytes)
            return found == address

        until(got, "what is free is used again")


@pytest.fixture
def pool() -> Iterator[pools.Pool]:
    if why := why_not():
        pytest.fail(why)
    opened = pools.join(f"cuda-{os.getpid()}", existing=False)
    _torch.cuda_use(opened.number)
    yield opened


@pytest.fixture
def functions() -> Functions:
    return Functions()


def test_memory_is_allocated_and_used_again(pool: pools.Pool, functions: Functions) -> None:
    first = functions.allocate(6 * MIB)
    assert first and first % 512 == 0
    name, token, nbytes = _torch.find(first)
    assert name == pool.name and token and nbytes == 6 * MIB
    other = functions.allocate(6 * MIB)
    assert other and other != first
    functions.free(first, 6 * MIB)
    assert _torch.find(first) is None
    functions.allocate_again(first, 6 * MIB - 1000)
    functions.free(first, 6 * MIB - 1000)
    functions.free(other, 6 * MIB)
    functions.free(0, 0)


def test_small_ones_share_and_take_no_large_ones(pool: pools.Pool, functions: Functions) -> None:
    large = functions.allocate(16 * MIB)
    functions.free(large, 16 * MIB)
    small = [functions.allocate(1000) for _ in range(200)]
    assert len(set(small)) == 200 and all(small)
    functions.allocate_again(large, 16 * MIB)       # no small one lies in it
    for address in small:
        functions.free(address, 1000)
    functions.free(large, 16 * MIB)


def test_there_is_no_memory(pool: pools.Pool, functions: Functions) -> None:
    assert functions.allocate(1 << 60) == 0
    assert functions.allocate(MIB, device=77) == 0
    assert functions.allocate(0) == 0
    address = functions.allocate(MIB)
    assert address
    functions.free(address, MIB)


def _look(pipe: Any, name: str) -> None:
    """Open the contents of each token by the package's own means, and keep them."""
    pool = xmem.BufferPool(name, writer=True, existing=True)
    kept = []
    while (token := pipe.recv()) is not None:
        kept.append(pool.get(token))
        pipe.send((kept[-1].nbytes, bool(kept[-1].cuda_ptr)))


def test_another_process_opens_what_was_allocated(pool: pools.Pool, functions: Functions) -> None:
    address = functions.allocate(MIB)
    _, token, _ = _torch.offer(address)
    assert _torch.claims(pool.number, token) == 1
    with Child(_look, pool.name) as child:
        child.put(token)
        assert child.get() == (MIB, True)
        assert _torch.claims(pool.number, token) == 0
        functions.free(address, MIB)
        assert functions.allocate(MIB) != address, "it is in use there"
        child.kill()
    until(lambda: _torch.stat(pool.number)["clients"] == 1, "it has ended")
    functions.allocate_again(address, MIB)  # what the killed process held has come back


def test_what_is_got_by_its_token(pool: pools.Pool, functions: Functions) -> None:
    address = functions.allocate(MIB)
    _, token, _ = _torch.offer(address)
    capsule, device, nbytes = _torch.cuda_get(pool.number, token)
    assert device == 0 and nbytes == MIB
    functions.free(address, MIB)
    assert _torch.find(address) is not None, "the capsule has it"
    del capsule
    assert _torch.find(address) is None, "and drops it"
    functions.allocate_again(address, MIB)
    with pytest.raises(xmem.Error):
        _torch.cuda_get(pool.number, token + (1 << 20))


class Driver:
    """The few calls of the driver by which torch would have its memory."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL(os.environ["XMEM_CUDA_DRIVER"])
        context = ctypes.c_void_p()
        assert self.library.cuInit(0) == 0
        assert self.library.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
        assert self.library.cuCtxSetCurrent(context) == 0

    def allocate(self, nbytes: int) -> int:
        address = ctypes.c_uint64()
        assert self.library.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(nbytes)) == 0
        return address.value


class Storage:
    """Stands for a storage of torch, which is to live as long as others have its memory."""

    alive = 0

    def __init__(self) -> None:
        Storage.alive += 1

    def __del__(self) -> None:
        Storage.alive -= 1


def test_memory_of_torch_is_lent_and_comes_back(pool: pools.Pool) -> None:
    address = Driver().allocate(4 * MIB)
    token = _torch.cuda_share(pool.number, address, 4 * MIB, 0, Storage())
    assert Storage.alive == 1 and _torch.claims(pool.number, token) == 1
    capsule, device, nbytes = _torch.cuda_get(pool.number, token)
    assert (device, nbytes) == (0, 4 * MIB)
    _torch.stat(pool.number)
    assert _torch.cuda_drain() == 0 and Storage.alive == 1, "somebody has it"
    del capsule

    def back() -> bool:
        _torch.stat(pool.number)
        return _torch.cuda_drain() == 1

    until(back, "nobody has it")
    assert Storage.alive == 0


def test_what_cannot_be_lent_is_dropped(pool: pools.Pool) -> None:
    with pytest.raises(xmem.Error):
        _torch.cuda_share(pool.number, 4096, 4 * MIB, 0, Storage())
    assert Storage.alive == 0


def test_a_message_to_nobody_comes_back_when_it_is_voided(pool: pools.Pool) -> None:
    address = Driver().allocate(2 * MIB)
    token = _torch.cuda_share(pool.number, address, 2 * MIB, 0, Storage())
    assert _torch.drop(pool.number, token) is True

    def back() -> bool:
        _torch.stat(pool.number)
        return _torch.cuda_drain() == 1

    until(back, "nobody wants it")
    assert Storage.alive == 0


def test_the_allocator_is_what_torch_wants(pool: pools.Pool) -> None:
    if not hasattr(torch.cuda.memory, "CUDAPluggableAllocator"):
        assert torch.__version__ < "2"
        return
    if not torch.backends.cuda.is_built():
        pytest.skip("this torch is built without CUDA")
    assert isinstance(xmem.torch.cuda_allocator(pool.name),
                      torch.cuda.memory.CUDAPluggableAllocator)
