# SPDX-License-Identifier: MIT
"""Memory of GPUs for torch, below torch: on a GPU, or on the driver that stands in for one's.

NVIDIA's runtime, which torch's CUDA is made of, refuses that driver. So the functions that torch
calls are called here as torch calls them.
"""
from __future__ import annotations

import ctypes
import gc
import os
from typing import Any, Iterator

import pytest

torch = pytest.importorskip("torch")

from gpu import Gate, Memory, Stream, driver, on_fake, why_not      # noqa: E402
from support import Thread                  # noqa: E402
from torch_children import Child, until     # noqa: E402

import xmem                                 # noqa: E402
import xmem.torch                           # noqa: E402
from xmem import _core, _torch              # noqa: E402
from xmem.torch import cuda, pools, state, versions         # noqa: E402

MIB = 1 << 20


def legacy(device: int) -> int:
    """The current stream of a device, where torch is not asked."""
    return 0


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
    capsule, device, nbytes = _torch.cuda_get(pool.number, token, legacy)
    assert device == 0 and nbytes == MIB
    functions.free(address, MIB)
    assert _torch.find(address) is not None, "the capsule has it"
    del capsule
    assert _torch.find(address) is None, "and drops it"
    functions.allocate_again(address, MIB)
    with pytest.raises(xmem.Error):
        _torch.cuda_get(pool.number, token + (1 << 20), legacy)


class Storage:
    """Stands for a storage of torch, which is to live as long as others have its memory."""

    alive = 0

    def __init__(self) -> None:
        Storage.alive += 1

    def __del__(self) -> None:
        Storage.alive -= 1


def is_back(pool: pools.Pool) -> bool:
    """Look for what has come back, as torch.cuda.ipc_collect() does."""
    _torch.cuda_collect(pool.number)
    return not Storage.alive


def share(pool: pools.Pool, memory: Memory, stream: int = 0, back: Any = legacy) -> int:
    return _torch.cuda_share(pool.number, memory.ptr, memory.nbytes, stream, Storage(), 0,
                             lambda: back(0))


def test_memory_of_torch_is_lent_and_comes_back(pool: pools.Pool) -> None:
    called: list[int] = []
    memory = Memory()
    token = share(pool, memory, back=called.append)
    assert Storage.alive == 1 and _torch.claims(pool.number, token) == 1
    capsule, device, nbytes = _torch.cuda_get(pool.number, token, legacy)
    assert (device, nbytes) == (0, memory.nbytes)
    assert not is_back(pool) and Storage.alive == 1, "somebody has it"
    del capsule
    until(lambda: is_back(pool), "nobody has it")
    assert called == [0]
    memory.free()


def test_what_cannot_be_lent_is_dropped(pool: pools.Pool) -> None:
    with pytest.raises(xmem.Error):
        _torch.cuda_share(pool.number, 4096, 4 * MIB, 0, Storage(), 0, legacy)
    assert Storage.alive == 0


def test_a_message_to_nobody_comes_back_when_it_is_voided(pool: pools.Pool) -> None:
    token = share(pool, Memory())
    assert _torch.drop(pool.number, token) is True
    until(lambda: is_back(pool), "nobody wants it")


def test_what_others_have_is_sent_again(pool: pools.Pool) -> None:
    token = share(pool, Memory())
    assert _torch.cuda_again(pool.number, token) is True
    assert _torch.claims(pool.number, token) == 2
    first = _torch.cuda_get(pool.number, token, legacy)
    assert _torch.drop(pool.number, token) is True
    assert _torch.cuda_again(pool.number, token) is True, "somebody has it"
    assert _torch.claims(pool.number, token) == 1 and Storage.alive == 1
    assert _torch.drop(pool.number, token) is True
    del first
    until(lambda: is_back(pool), "nobody has it")
    assert _torch.cuda_again(pool.number, token) is False
    with pytest.raises(xmem.Stale):
        _torch.cuda_get(pool.number, token, legacy)


def test_room_is_made_while_another_thread_keeps_the_gil(pool: pools.Pool) -> None:
    """Torch's allocator makes room with its lock held, which a thread with the GIL may want."""
    name = ctypes.create_string_buffer(b"not empty")     # stands for a storage
    token = _torch.cuda_share(pool.number, Memory().ptr, 4 * MIB, 0, Storage(),
                              ctypes.addressof(name), lambda: None)
    library = ctypes.PyDLL(None)    # its functions are called with the GIL

    def made() -> bool:
        thread, room, limit = ctypes.c_ulong(), ctypes.c_void_p(), (ctypes.c_long * 2)()
        library.clock_gettime(0, limit)
        limit[0] += 60
        library.pthread_create(ctypes.byref(thread), None, ctypes.c_void_p(_torch.cuda_room()),
                               library.strlen)      # it "empties" what has a length
        assert not library.pthread_timedjoin_np(thread, ctypes.byref(room), limit)
        return bool((room.value or 0) & 0xff)

    assert not made(), "somebody may still want it"
    _torch.drop(pool.number, token)
    until(made, "nobody wants it")
    until(lambda: is_back(pool), "the object goes when a thread has the GIL")


def test_without_a_compiler_a_warning_says_what_is_lacking(
        monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*unused: Any, **keywords: Any) -> None:
        raise PermissionError("the folder cannot be written")

    monkeypatch.setattr(cuda, "_makes_room", False)
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(cuda.compiled, "load", fails)
    with pytest.warns(RuntimeWarning, match="collect.*the folder cannot be written"):
        cuda._make_room()
    cuda._make_room()                       # and it is tried once


def test_neither_side_waits_for_a_stream(pool: pools.Pool) -> None:
    memory, stream, reader = Memory(), Stream(), Stream()
    gate = Gate(stream)
    stream.fill(memory.ptr, 1, memory.nbytes)
    token = share(pool, memory, stream.number or 0)
    capsule, _, _ = _torch.cuda_get(pool.number, token, lambda device: reader.number or 0)
    reader.fill(memory.ptr, 2, memory.nbytes)
    end = Thread(reader.synchronize)
    if on_fake():                   # a thread that waits for a GPU does not sleep
        end.waits()
    assert end.is_alive()
    gate.open()
    end.get()
    stream.synchronize()
    assert driver().read(memory.ptr, 1) == b"\2", "it is written behind what the sender wrote"
    del capsule
    until(lambda: is_back(pool), "nobody has it")
    memory.free()


def test_a_fence_is_what_a_stream_waits_for(pool: pools.Pool) -> None:
    memory, stream, reader = Memory(), Stream(), Stream()
    gate = Gate(stream)
    stream.fill(memory.ptr, 1, memory.nbytes)
    token = _torch.cuda_fence(pool.number, 0, stream.number or 0)
    _torch.cuda_wait(pool.number, token, reader.number or 0)
    reader.fill(memory.ptr, 2, memory.nbytes)
    end = Thread(reader.synchronize)
    if on_fake():                   # a thread that waits for a GPU does not sleep
        end.waits()
    assert end.is_alive()
    gate.open()
    end.get()
    stream.synchronize()
    assert driver().read(memory.ptr, 1) == b"\2"
    with pytest.raises(xmem.Stale):
        _torch.cuda_wait(pool.number, token + (1 << 20), 0)
    memory.free()


def test_what_is_received_goes_when_the_receivers_stream_has_read(pool: pools.Pool) -> None:
    token, stream = share(pool, Memory()), Stream()
    capsule, _, _ = _torch.cuda_get(pool.number, token, lambda device: stream.number or 0)
    gate = Gate(stream)
    del capsule
    driver().cuStreamSynchronize(None)
    assert not is_back(pool) and Storage.alive == 1, "the stream may still read it"
    assert _torch.cuda_again(pool.number, token) is True
    _torch.drop(pool.number, token)
    gate.open()
    until(lambda: is_back(pool), "nobody has it")


def test_several_tensors_of_a_storage_get_one_token(pool: pools.Pool) -> None:
    memory = Memory()
    stand_in = versions.untyped(torch.zeros(1))     # knows nothing of that memory
    token = cuda.lend(pool, stand_in, memory.ptr, memory.nbytes, 0)
    name, other, fence = cuda.offer_lent(memory.ptr, memory.nbytes, 0, 0) or ("", 0, 0)
    assert (name, other) == (pool.name, token) and _torch.claims(pool.number, token) == 2
    assert cuda.offer_lent(memory.ptr, memory.nbytes - 1, 0, 0) is None, "it was resized"
    _torch.cuda_wait(pool.number, fence, 0)
    for _ in range(2):
        _torch.drop(pool.number, token)

    def gone() -> bool:
        cuda.collect()
        return not pools.lent

    until(gone, "nobody has it")
    assert cuda.offer_lent(memory.ptr, memory.nbytes, 0, 0) is None
    memory.free()


def test_memory_of_the_allocator_goes_with_a_fence(pool: pools.Pool, functions: Functions) -> None:
    address = functions.allocate(MIB)
    name, token, fence = cuda.offer_pooled(address, 0, 0) or ("", 0, 0)
    assert (name, token) == _torch.find(address)[:2] and fence    # type: ignore[index]
    assert _torch.claims(pool.number, token) == _torch.claims(pool.number, fence) == 1
    _torch.cuda_wait(pool.number, fence, 0)
    _torch.drop(pool.number, token)
    assert cuda.offer_pooled(Memory().ptr, 0, 0) is None
    functions.free(address, MIB)


@pytest.fixture
def own_settings() -> Iterator[None]:
    yield
    xmem.torch.uninstall()


def test_garbage_collection_and_torch_collect(pool: pools.Pool, own_settings: None,
                                              monkeypatch: pytest.MonkeyPatch) -> None:
    xmem.torch.install(cuda=True)
    monkeypatch.setitem(state.stock, "ipc_collect", lambda: None)   # it needs a GPU
    for collected in (gc.collect, xmem.torch.collect, torch.cuda.ipc_collect):
        memory, stand_in = Memory(), versions.untyped(torch.zeros(1))
        token = cuda.lend(pool, stand_in, memory.ptr, memory.nbytes, 0)
        _torch.drop(pool.number, token)

        def gone() -> bool:
            collected()
            return not pools.lent

        until(gone, "it has come back")
        memory.free()


def _settings(pipe: Any) -> None:
    pipe.send((xmem.torch.installed(), state.shares_cuda()))


@pytest.mark.parametrize("method, chosen", [("fork", True), ("spawn", True), ("spawn", False)])
def test_gpus_are_opt_in(method: str, chosen: bool, own_settings: None) -> None:
    xmem.torch.install(cuda=chosen)
    assert state.shares_cuda() is chosen
    with Child(_settings, method=method) as child:
        assert child.get() == (xmem.torch.installed(), chosen)
        child.end()
    xmem.torch.install()
    assert not state.shares_cuda()
    with pytest.raises(TypeError, match="cuda"):
        xmem.torch.install(cuda=1)          # type: ignore[arg-type]


def test_the_allocator_is_what_torch_wants(pool: pools.Pool) -> None:
    if not hasattr(torch.cuda.memory, "CUDAPluggableAllocator"):
        assert torch.__version__ < "2"
        return
    if not torch.backends.cuda.is_built():
        pytest.skip("this torch is built without CUDA")
    assert isinstance(xmem.torch.cuda_allocator(pool.name),
                      torch.cuda.memory.CUDAPluggableAllocator)
