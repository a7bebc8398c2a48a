# SPDX-License-Identifier: MIT
"""The programs of xmem's technical design (seed 004), sections 7, 8 and 9, as they stand there.

They run on the driver that stands in for a GPU's, and in memory of the CPU with the names of that
in place of CUDA's. Section 7 is in Rust there, and in Python here. test_seed_004_calls.py has the
rules of the design that its programs do not show.
"""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy
import pytest

import xmem
from gpu import Child, driver, needs_gpu, no_violations  # noqa: F401
from support import LIMIT, PACKAGE, pair, without_notes

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
