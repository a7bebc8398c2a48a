# SPDX-License-Identifier: MIT
"""The programs of xmem's technical design (seed 004), sections 7, 8 and 9, as they stand there.

They run on the driver that stands in for a GPU's, and in memory of the CPU with the names of that
in place of CUDA's. Section 7 is in Rust there, and in Python here. After them comes what the design
says of the calls and its programs do not show.
"""
from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Iterator

import numpy
import pytest

import xmem
from gpu import Child, driver, needs_gpu, no_violations  # noqa: F401
from support import LIMIT, PACKAGE, pair, published, without_notes

SIZE = 4096
FRAME = 1920 * 1080 * 3

SECTION_7 = """
# CPU → CUDA
cpu_buf = pool.acquire_cpu(size)
write_data(cpu_buf)
cuda_buf = cpu_buf.copy_to_cuda(0)
assert_same(cuda_buf, cpu_buf)
cuda_buf.set_ref_count(2, lasts=None)
meta_index = cuda_buf.meta_index

# CUDA → CPU
cuda_buf = pool.get(meta_index)
cpu_buf = cuda_buf.copy_to_cpu()
assert_same(cuda_buf, cpu_buf)

# CUDA 0 → CUDA 1
buf_gpu0 = pool.acquire_cuda(size, 0)
buf_gpu1 = buf_gpu0.copy_to_device(1)
"""

SECTION_8 = """
from xmem import BufferPool

pool = BufferPool("my_pool")

# 预分配
pool.preallocate_cuda(size=1920*1080*3, count=8, device_id=0)

# 生产者
buf = pool.acquire_cuda(1920*1080*3, device_id=0)
decode_to(buf.cuda_ptr_mut)
pool.set_ref_count(buf.meta_index, 2)
meta_index = buf.meta_index
buf.forget()

# 消费者
buf = pool.get(meta_index)
process(buf.cuda_ptr)

# CPU/CUDA 互操作
cpu_buf = pool.acquire_cpu(size)
cuda_buf = cpu_buf.copy_to_cuda(device_id=0)
"""

SECTION_9_TORCH = """
import torch

buf = pool.get(meta_index)
tensor = torch.from_blob(
    buf.cuda_ptr,
    shape=(1080, 1920, 3),
    dtype=torch.uint8,
    device='cuda:0'
)
"""

SECTION_9_ONNX = """
io_binding = session.io_binding()
io_binding.bind_input(
    name='input',
    device_type='cuda',
    device_id=0,
    element_type=np.float32,
    shape=(1, 3, 224, 224),
    buffer_ptr=buf.cuda_ptr
)
"""

ON_THE_CPU = (("preallocate_cuda(", "preallocate_cpu("), ("count=8, device_id=0", "count=8"),
              ("acquire_cuda(1920*1080*3, device_id=0)", "acquire_cpu(1920*1080*3)"),
              ("cuda_ptr_mut", "cpu_ptr"), ("cuda_ptr", "cpu_ptr"), ("cuda:0", "cpu"),
              ("copy_to_cuda(device_id=0)", "copy_to_cpu()"))


def run(block: str, given: dict[str, Any], on_the_cpu: bool = False) -> dict[str, Any]:
    """Execute a block of the design, with what it is given. Returns all its names."""
    for cuda, cpu in ON_THE_CPU if on_the_cpu else ():
        block = block.replace(cuda, cpu)
    names = dict(given)
    exec(block, names)
    return names


def read(ptr: int, nbytes: int, on_the_cpu: bool) -> bytes:
    import ctypes

    return ctypes.string_at(ptr, nbytes) if on_the_cpu else driver().read(ptr, nbytes)


def write(ptr: int, data: bytes, on_the_cpu: bool) -> None:
    import ctypes

    if on_the_cpu:
        ctypes.memmove(ptr, data, len(data))
    else:
        driver().write(ptr, data)


def consume(pipe: Any, name: str, meta_index: int) -> None:
    """The second consumer, in a process of its own."""
    with xmem.BufferPool(name, existing=True) as pool:
        with pool.get(meta_index) as buf:
            first = buf.copy_to_host(nbytes=4) if buf.is_cuda else memoryview(buf)[:4]
            pipe.send(bytes(first))
            pipe.recv()


PICTURE = bytes(range(251)) * (FRAME // 251 + 1)


# ---- section 8 ----

@pytest.mark.parametrize("on_the_cpu", [pytest.param(False, marks=needs_gpu), True])
def test_the_program_of_section_8(on_the_cpu: bool) -> None:
    seen: list[bytes] = []
    names = run(SECTION_8, {
        "decode_to": lambda ptr: write(ptr, PICTURE[:FRAME], on_the_cpu),
        "process": lambda ptr: seen.append(read(ptr, FRAME, on_the_cpu)), "size": SIZE}, on_the_cpu)
    pool, buf, meta_index = names["pool"], names["buf"], names["meta_index"]
    with pool:
        assert seen == [PICTURE[:FRAME]]
        assert buf.readonly and buf.meta_index == meta_index
        assert names["cuda_buf"].is_cuda is not on_the_cpu and names["cuda_buf"].nbytes == SIZE
        assert not names["cpu_buf"].readonly and not names["cuda_buf"].readonly
        for name in "cpu_buf", "cuda_buf":
            names.pop(name).release()
        with Child(consume, "my_pool", meta_index) as child:
            assert child.hear() == PICTURE[:4]
            assert pool.claims(meta_index) == 0     # each consumer has taken its reference
            buf.release()
            assert pool.slot_info(meta_index).holds == 1
            child.tell("release it")
            child.end()
        # With the second consumer the buffer is free: all eight can be had.
        acquire = pool.acquire_cpu if on_the_cpu else pool.acquire_cuda
        eight = [acquire(FRAME, timeout=LIMIT) for _ in range(8)]
        assert meta_index in [each.meta_index for each in eight]
        with pytest.raises(xmem.WouldBlock):
            acquire(FRAME, timeout=0)


# ---- section 7 ----

TWO_GPUS = """
import sys
import xmem
block, size = sys.argv[1], int(sys.argv[2])

def write_data(buf):
    memoryview(buf)[:] = bytes(range(256)) * (size // 256)

def assert_same(one, other):
    one, other = (bytes(each.copy_to_host() if each.is_cuda else each) for each in (one, other))
    assert one == other == bytes(range(256)) * (size // 256)

assert len(xmem.gpus()) == 2
with xmem.BufferPool("section-7", writer=True) as pool:
    exec(block)
    assert (buf_gpu0.device_id, buf_gpu1.device_id, buf_gpu1.nbytes) == (0, 1, size)
    assert cpu_buf.meta_index != cuda_buf.meta_index and not cpu_buf.is_cuda
print("done")
"""


@needs_gpu
def test_the_program_of_section_7(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": PACKAGE, "FAKECUDA_DEVICES": "2"}
    if len(xmem.gpus()) < 2 and "fakecuda" not in os.environ["XMEM_CUDA_DRIVER"]:
        pytest.skip("there is only one GPU")
    done = subprocess.run([sys.executable, "-c", TWO_GPUS, SECTION_7, str(SIZE)], text=True,
                          capture_output=True, timeout=LIMIT, env=environment, check=False)
    assert (done.returncode, done.stdout, without_notes(done.stderr)) == (0, "done\n", "")


# ---- section 9 ----

def handed_over(pool: xmem.BufferPool, guard: xmem.BufferGuard) -> int:
    index = guard.meta_index
    pool.set_ref_count(index, 1, lasts=None)
    guard.forget()
    assert pool.claims(index) == 1
    return index


def test_the_tensor_of_section_9_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    import xmem.torch

    # torch has from_blob() in C++ alone; xmem.torch.from_blob() is that for Python.
    monkeypatch.setattr(torch, "from_blob", xmem.torch.from_blob, raising=False)
    with pair() as (pool, _):
        guard = pool.acquire_cpu(FRAME)
        memoryview(guard)[:] = PICTURE[:FRAME]
        index = handed_over(pool, guard)
        names = run(SECTION_9_TORCH, {"pool": pool, "meta_index": index}, on_the_cpu=True)
        tensor, buf = names["tensor"], names["buf"]
        assert tensor.shape == (1080, 1920, 3) and tensor.dtype == torch.uint8
        assert tensor.data_ptr() == buf.cpu_ptr     # it is no copy
        assert tensor.numpy().tobytes() == PICTURE[:FRAME]


@needs_gpu
def test_the_tensor_of_section_9_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """NVIDIA's runtime refuses the driver that stands in: so what torch is given is looked at."""
    torch = pytest.importorskip("torch")
    import xmem.torch

    given = []

    def as_tensor(source: Any) -> Any:
        given.append(source.__cuda_array_interface__)
        nbytes, = given[0]["shape"]
        return torch.frombuffer(bytearray(driver().read(given[0]["data"][0], nbytes)),
                                dtype=torch.uint8)

    monkeypatch.setattr(torch, "from_blob", xmem.torch.from_blob, raising=False)
    monkeypatch.setattr(torch, "as_tensor", as_tensor)
    with pair() as (pool, _):
        guard = pool.acquire_cuda(FRAME)
        guard.copy_from_host(PICTURE[:FRAME])
        index = handed_over(pool, guard)
        names = run(SECTION_9_TORCH, {"pool": pool, "meta_index": index})
        assert given == [{"data": (names["buf"].cuda_ptr, False), "shape": (FRAME,),
                          "typestr": "|u1", "strides": None, "version": 3}]
        assert names["tensor"].shape == (1080, 1920, 3)
        assert names["tensor"].numpy().tobytes() == PICTURE[:FRAME]


def test_what_is_no_blob() -> None:
    torch = pytest.importorskip("torch")
    import xmem.torch

    with pair() as (pool, _), pool.acquire_cpu((3, 4), "float32") as guard:
        numpy.asarray(guard)[:] = 1.5
        made = xmem.torch.from_blob(guard.cpu_ptr, (3, 4))
        assert made.dtype == torch.float32 and made[2, 3] == 1.5
        made[0, 0] = 2
        assert numpy.asarray(guard)[0, 0] == 2      # it is written, so the tensor may write
        assert xmem.torch.from_blob(guard.cpu_ptr, (0, 4)).shape == (0, 4)
        for wrong in ({"ptr": 0}, {"device": "meta"}, {"shape": (-1,)}):
            with pytest.raises(ValueError):
                xmem.torch.from_blob(**{"ptr": guard.cpu_ptr, "shape": (1,), **wrong})
        with pytest.raises(TypeError):
            xmem.torch.from_blob(guard.cpu_ptr, 12)     # type: ignore[arg-type]
        del made


class Session:
    """In place of a session of ONNX Runtime with the provider of CUDA: it needs a GPU."""

    def __init__(self) -> None:
        self.bound: list[dict[str, Any]] = []

    def io_binding(self) -> Session:
        return self

    def bind_input(self, name: str, device_type: str, device_id: int, element_type: Any,
                   shape: Any, buffer_ptr: int) -> None:
        """As onnxruntime.IOBinding.bind_input."""
        self.bound.append({"name": name, "device_type": device_type, "device_id": device_id,
                           "element_type": element_type, "shape": shape,
                           "buffer_ptr": buffer_ptr})


@needs_gpu
def test_the_binding_of_section_9_on_a_gpu() -> None:
    session = Session()
    with pair() as (pool, _), pool.acquire_cuda((1, 3, 224, 224), dtype="float32") as buf:
        run(SECTION_9_ONNX, {"session": session, "np": numpy, "buf": buf})
        bound, = session.bound
        assert (bound["buffer_ptr"], bound["device_id"]) == (buf.cuda_ptr, buf.device_id)


def test_the_binding_of_section_9_on_the_cpu() -> None:
    """By ONNX Runtime itself, which computes with what it was bound to."""
    onnx, onnxruntime = pytest.importorskip("onnx"), pytest.importorskip("onnxruntime")
    shape, numbers = [1, 3, 224, 224], onnx.TensorProto.FLOAT
    values = [onnx.helper.make_tensor_value_info(each, numbers, shape)
              for each in ("input", "output")]
    graph = onnx.helper.make_graph([onnx.helper.make_node("Neg", ["input"], ["output"])], "neg",
                                   values[:1], values[1:])
    session = onnxruntime.InferenceSession(onnx.helper.make_model(
        graph, ir_version=8, opset_imports=[onnx.helper.make_opsetid("", 17)]).SerializeToString())
    with pair() as (pool, _), pool.acquire_cpu(tuple(shape), "float32") as buf:
        numpy.asarray(buf)[:] = numpy.arange(3 * 224 * 224).reshape(shape)
        block = SECTION_9_ONNX.replace("'cuda'", "'cpu'")
        binding = run(block, {"session": session, "np": numpy, "buf": buf}, True)["io_binding"]
        binding.bind_output("output")
        session.run_with_iobinding(binding)
        assert (binding.copy_outputs_to_cpu()[0] == -numpy.asarray(buf)).all()
        del binding


# ---- section 6: what is made, and which slot it has ----

def test_what_is_preallocated_has_these_slots() -> None:
    with pair() as (pool, _):
        slots = pool.preallocate_cpu(SIZE, 3) + pool.preallocate_cpu(size=SIZE, count=2)
        slots += pool.preallocate_cpu((4, 4), 2, dtype="float32")
        slots += pool.preallocate_cpu(shape=(4, 4), dtype="float32", count=1)
        assert [pool.slot_info(slot).bytes for slot in slots] == 5 * [SIZE] + 3 * [64]
        assert len(set(slots)) == 8 == pool.stat().attached
        guards = [pool.acquire_cpu(size) for size in 5 * [SIZE] + 3 * [64]]
        assert {guard.meta_index for guard in guards} == set(slots)


@needs_gpu
def test_what_is_preallocated_on_a_gpu_has_these_slots() -> None:
    with pair() as (pool, _):
        slots = pool.preallocate_cuda(SIZE, 3, 0)
        guards = [pool.acquire_cuda(SIZE, 0, timeout=0) for _ in range(3)]
        assert sorted(slots) == sorted(guard.meta_index for guard in guards)
        with pytest.raises(xmem.WouldBlock):
            pool.acquire_cuda(size=SIZE, device_id=0, timeout=0)


@pytest.mark.parametrize("arguments, keywords", [
    ((SIZE,), {}), ((), {"count": 2}), ((SIZE, 2), {"shape": (2,), "dtype": "uint8"}),
    ((SIZE, 2), {"dtype": "uint8"}), (("4096", 2), {}), (((2, 2), 2), {})])
def test_what_is_not_preallocated(arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
    with pair() as (pool, _):
        for call in pool.preallocate_cpu, pool.preallocate_cuda:
            with pytest.raises(TypeError):
                call(*arguments, **keywords)
        assert pool.stat().attached == 0


@needs_gpu
def test_memory_of_a_gpu_is_made_on_demand() -> None:
    """Section 11: cudaMalloc as it is needed."""
    with pair() as (pool, _):
        guards = [pool.acquire_cuda(1 << 20, timeout=0) for _ in range(20)]
        assert len({guard.meta_index for guard in guards}) == 20
        made = pool.stat().attached
        for guard in guards:
            guard.release()
        for _ in range(40):         # and then it is used again
            pool.acquire_cuda(1 << 20, timeout=0).release()
        assert pool.stat().attached == made
        with pytest.raises(xmem.NoDevice):
            pool.acquire_cuda(SIZE, 9)
        with pytest.raises(xmem.Error) as caught:
            pool.acquire_cuda(1 << 46)
        assert caught.value.errno == errno.ENOMEM
    with pair(demand_bytes=None) as (pool, _), pytest.raises(xmem.NoSpace):
        pool.acquire_cuda(SIZE)


# ---- section 6: by the index of a slot ----

def test_an_index_is_what_is_in_the_slot_now() -> None:
    with pair() as (pool, reader):
        pool.preallocate_cpu(8, 1)
        for contents in b"contents", b"others..":
            guard = published(pool, contents)
            index, token = guard.meta_index, guard.token
            for other in pool, reader:
                with other.get(index) as same:
                    assert same.token == token and bytes(same) == contents
            assert pool.slot_info(token).token == pool.slot_info(index).token == token
            assert pool.holds(pool.client, token) == pool.holds(pool.client, index) == 1
            guard.release()
            with reader.get(index) as same:         # nobody has it, and it is there still
                assert bytes(same) == contents


BY_INDEX = ("get", "get_mut", "add_ref", "release", "claims", "void_claims", "retract")


@pytest.mark.parametrize("name", [*BY_INDEX, "set_ref_count"])
def test_there_is_nothing_by_that_index(name: str) -> None:
    with pair(slots=64) as (pool, reader):
        index, = pool.preallocate_cpu(8, 1)
        more = (2,) if name == "set_ref_count" else ()
        call = getattr(pool, name)
        with pytest.raises(xmem.Stale, match=f"nothing in slot {index}"):
            call(index, *more)                      # it is free
        with pool.acquire_cpu(8), pytest.raises(xmem.Stale, match="being written"):
            call(index, *more)
        with pytest.raises(xmem.Error, match="there is no slot 65535") as caught:
            call(65535, *more)
        assert caught.value.errno == errno.EINVAL
        with pytest.raises(xmem.Stale, match="gone"):
            call(65536, *more)                      # a token
        for wrong in -1, 1 << 64:
            with pytest.raises(ValueError):
                call(wrong, *more)
        with pytest.raises(TypeError):
            call("0", *more)


def test_references_of_the_pool() -> None:
    with pair() as (pool, reader):
        pool.preallocate_cpu(8, 1)
        guard = published(pool)
        index = guard.meta_index
        with pytest.raises(xmem.Error) as caught:
            pool.release(index)                     # nothing is set aside
        assert caught.value.errno == errno.ERANGE and not guard.gone
        guard.set_ref_count(1, lasts=None)
        pool.add_ref(index)
        assert reader.claims(index) == 2
        pool.release(index)                         # undoes it
        assert reader.claims(index) == 1
        reader.add_ref(index)
        guard.release()
        with pytest.raises(xmem.WouldBlock):
            pool.acquire_cpu(8, timeout=0)
        pool.release(index)                         # the last one
        pool.acquire_cpu(8, timeout=LIMIT).release()


def test_a_count_is_the_guards_and_those_of_others() -> None:
    with pair() as (pool, reader):
        pool.preallocate_cpu(8, 1)
        guard = pool.acquire_cpu(8)
        memoryview(guard)[:] = b"contents"
        index = guard.meta_index
        pool.set_ref_count(index, 3, lasts=None)
        assert guard.readonly and pool.claims(index) == 3
        pool.set_ref_count(guard.token, 2, lasts=30)
        assert pool.claims(index) == 2
        pool.release(index)                         # takes one of those
        first = reader.get(index)                   # and this the other
        assert pool.claims(index) == 0
        guard.forget()                              # then it has none to leave
        assert pool.claims(index) == 0
        first.release()
        pool.acquire_cpu(8, timeout=LIMIT).release()


def test_a_count_without_a_guard_is_for_others() -> None:
    with pair() as (pool, reader):
        pool.preallocate_cpu(8, 1)
        index = handed_over(pool, published(pool))
        for client in pool, reader:
            for count in 3, 1, 2:
                client.set_ref_count(index, count)
                assert pool.claims(index) == count
                assert pool.slot_info(index).holds == 0
        with pytest.raises(xmem.Error) as caught:
            pool.set_ref_count(index, 0)
        assert caught.value.errno == errno.ERANGE and pool.claims(index) == 2
        with pytest.raises(xmem.NotPermitted):
            reader.set_ref_count(index, 2, lasts=100)       # that is for the owner
        assert pool.claims(index) == 2 and pool.slot_info(index).holds == 0
        reader.get(index).release()
        pool.get(index).release()
        pool.acquire_cpu(8, timeout=LIMIT).release()


def test_the_guard_that_was_asked_last_is_counted_in() -> None:
    with pair() as (pool, _):
        guard = published(pool)
        other = guard.clone_ref()
        pool.set_ref_count(other.meta_index, 2, lasts=None)
        with pytest.raises(xmem.Error) as caught:
            pool.set_ref_count(guard.meta_index, 2)
        assert caught.value.errno == errno.EBUSY    # the other one is
        other.forget()
        assert pool.claims(guard.meta_index) == 2
        pool.set_ref_count(guard.meta_index, 1)
        assert pool.claims(guard.meta_index) == 1


def test_a_guard_that_is_written_is_forgotten_with_its_reference() -> None:
    with pair() as (pool, reader):
        pool.preallocate_cpu(8, 1)
        guard = pool.acquire_cpu(8)
        view = memoryview(guard)
        view[:] = b"contents"
        index = guard.meta_index
        guard.forget()                              # its view keeps the buffer, too
        with pytest.raises(xmem.Released, match="forgotten"):
            guard.meta_index                        # noqa: B018
        with reader.get(index) as got:
            assert bytes(got) == b"contents" and pool.claims(index) == 0
        with pytest.raises(xmem.WouldBlock):
            pool.acquire_cpu(8, timeout=0)
        del view
        pool.acquire_cpu(8, timeout=LIMIT).release()


def test_get_mut_by_index() -> None:
    with pair() as (pool, _):
        guard = published(pool)
        index = guard.meta_index
        with pytest.raises(xmem.Error) as caught:
            pool.get_mut(index)                     # the guard holds it
        assert caught.value.errno == errno.EBUSY and pool.slot_info(index).holds == 1
        guard.set_ref_count(2, lasts=None)
        guard.forget()
        with pytest.raises(xmem.Error) as caught:
            pool.get_mut(index)                     # one more is to come
        assert caught.value.errno == errno.EBUSY
        assert pool.claims(index) == 2 and pool.slot_info(index).holds == 0
        pool.release(index)
        with pool.get_mut(index) as guard:
            assert not guard.readonly and guard.meta_index == index
            memoryview(guard)[:3] = b"new"
            guard.publish(keep=True)
            assert bytes(guard) == b"newtents"


def meddled(meddle: Callable[[], object]) -> type[xmem.BufferPool]:
    """Pools in which that happens just before a get."""
    class Meddled(xmem.BufferPool):
        def get(self, meta_index: int) -> xmem.BufferGuard:
            meddle()
            return super().get(meta_index)
    return Meddled


def fail_by_index(pool: xmem.BufferPool, index: int, name: str) -> None:
    with pytest.raises(xmem.Error) as caught:
        pool.set_ref_count(index, 0) if name == "set_ref_count" else pool.get_mut(index)
    assert caught.value.errno == (errno.ERANGE if name == "set_ref_count" else errno.EBUSY)


@pytest.mark.parametrize("name", ["get_mut", "set_ref_count"])
@pytest.mark.parametrize("before, more", [(1, 0), (0, 1)])
def test_what_fails_by_index_puts_back_what_it_has_taken(name: str, before: int,
                                                         more: int) -> None:
    """Others take a reference, or set one aside, between its looks: none is lost, none is left."""
    with pair() as (pool, reader):
        guard = published(pool)
        index = guard.meta_index
        held = []
        meddle = (lambda: reader.add_ref(index)) if more else (
            lambda: held.append(reader.get(index)))
        for _ in range(before):
            pool.add_ref(index)
        with meddled(meddle)(pool.name, writer=True) as other:
            fail_by_index(other, index, name)
        assert pool.claims(index) == more and len(held) == before
        for taken in held:
            taken.release()
        assert pool.slot_info(index).holds == 1


# ---- sections 5 and 7: guards ----

def written_guards(pool: xmem.BufferPool) -> Iterator[xmem.BufferGuard]:
    yield pool.acquire_cpu((2, 3), "float32")
    if xmem.gpus():
        yield pool.acquire_cuda((2, 3), dtype="float32")


def test_copies_are_new_guards_of_the_pool() -> None:
    array = numpy.arange(6, dtype="float32").reshape(2, 3)
    with pair() as (pool, _):
        for guard in written_guards(pool):
            guard.copy_from(array)
            guard.describe_content("tensor/float32", "test")
            guard.publish(keep=True)
            copies = [guard.copy_to_cpu()]
            if xmem.gpus():
                copies += [guard.copy_to_cuda(0), guard.copy_to_device(device_id=0)]
            assert [copy.is_cuda for copy in copies] == [False, True, True][:len(copies)]
            for copy in copies:
                assert copy.pool is pool and not copy.readonly
                assert copy.meta_index != guard.meta_index
                assert (copy.shape, copy.dtype) == ((2, 3), "float32")
                assert copy.metadata.content_type == "tensor/float32"
                there = copy.copy_to_host() if copy.is_cuda else copy
                assert (numpy.asarray(there) == array).all()
                token = copy.publish(keep=True)
                assert token != guard.token and copy.nbytes == guard.nbytes == 24
                del there


def test_copies_of_nothing_and_of_bytes() -> None:
    with pair() as (pool, _):
        with pool.acquire_cpu((0, 4), "int16") as empty, empty.copy_to_cpu() as copy:
            assert (copy.shape, copy.dtype, copy.nbytes) == ((0, 4), "int16", 0)
        with pool.acquire_cpu(5) as some:
            some.copy_from(b"bytes")
            with some.copy_to_cpu() as copy:
                assert bytes(copy) == b"bytes" and copy.dtype is None


def test_a_copy_that_cannot_be_made_leaves_nothing() -> None:
    with pair() as (pool, _), xmem.BufferPool(pool.name, writer=False) as reader:
        guard = published(pool)
        with reader.get(guard.token) as got, pytest.raises(xmem.NotPermitted):
            got.copy_to_cpu()                       # a reader acquires nothing
        with pytest.raises(xmem.NoDevice):
            guard.copy_to_cuda(99)
        guard.release()
        with pytest.raises(xmem.Released):
            guard.copy_to_cpu()
        assert pool.stat().held == 0
    with pair() as (pool, _):
        pool.preallocate_cpu(8, 1)
        with published(pool) as guard, pytest.raises(xmem.WouldBlock):
            guard.copy_to_cpu(timeout=0)


@needs_gpu
def test_a_guard_for_reading_is_not_written() -> None:
    with pair() as (pool, _):
        for guard in written_guards(pool):
            guard.copy_from(numpy.zeros((2, 3), "float32"))
            guard.publish(keep=True)
            for call in (lambda: guard.copy_from(bytes(24)), lambda: guard.cuda_ptr_mut,
                         lambda: guard.copy_from_host(bytes(24))):
                with pytest.raises(xmem.NotPermitted):
                    call()
            if not guard.is_cuda:
                with pytest.raises(TypeError):
                    memoryview(guard)[0, 0] = 1
                with pytest.raises(ValueError):
                    numpy.asarray(guard)[:] = 1
            assert guard.is_cuda or guard.cpu_ptr % 64 == 0
            assert not guard.is_cuda or guard.cuda_ptr


def test_clone_ref_is_another_handle() -> None:
    with pair() as (pool, _):
        pool.preallocate_cpu(8, 1)
        guard = published(pool)
        other = guard.clone_ref()
        assert (other.token, other.meta_index) == (guard.token, guard.meta_index)
        guard.release()
        assert bytes(other) == b"contents"
        with pytest.raises(xmem.WouldBlock):
            pool.acquire_cpu(8, timeout=0)
        other.release()
        pool.acquire_cpu(8, timeout=LIMIT).release()
