# SPDX-License-Identifier: MIT
"""xmem.numba on the host's side, without a GPU: arenas, columns, and the linking of shims.

Kernels of xmem.numba itself run on the CPU, as users' kernels do in test_numba.py.
"""
from __future__ import annotations

import ctypes
import os
import random
import re
import shutil
import subprocess
import sys
from types import SimpleNamespace

import numpy
import pytest

from numba_twin import (ARRAY, COLUMN, FREE, TOP, Counts, Managed, View, building,  # noqa: F401
                        column_kernel, column_of, linked, prepared)
from numba import cuda
from numba.cuda import types
from numba.cuda.cudadrv import driver as numba_driver
from numba.cuda.cudadrv.linkable_code import CUSource, Fatbin
import xmem
from xmem.numba import arena, arrays, columns, managed_string, runtime, string_view

BYTES, INTS = types.CPointer(types.uint8), types.CPointer(types.int32)
WORDS = types.CPointer(types.uint64)


def echo(s):
    return s + ""


# ---- Kernels of xmem.numba ----

MAKE_ARENA, COUNT_ARENA = arena.make_arena.py_func, arena.count_arena.py_func
MAKE_VIEWS = arrays.make_views.py_func
PARTS = (types.CPointer(managed_string), types.int64, WORDS, types.CPointer(types.uint32), INTS,
         BYTES)
STEPS = [(columns.measure.py_func, (PARTS[0], types.int64, WORDS)),
         (columns.scan.py_func, (WORDS, types.int64, WORDS)),
         (columns.offsets.py_func, PARTS), (columns.gather.py_func, PARTS)]


@pytest.fixture(scope="module")
def twin(building):
    return building([echo], [
        (MAKE_ARENA, (WORDS, BYTES, types.int64)), (COUNT_ARENA, (WORDS, BYTES)),
        (MAKE_VIEWS, (BYTES, INTS, BYTES, types.int64, types.CPointer(string_view))), *STEPS])


def test_an_arena_is_made_and_counted_by_kernels(twin):
    memory = (ctypes.c_uint64 * (1 << 13))()
    made, counts = ctypes.c_uint64(), Counts()
    for nbytes, expected in (16, 0), (ctypes.sizeof(memory), ctypes.addressof(memory)):
        twin.launch(MAKE_ARENA, 1, ctypes.byref(made), memory, ctypes.c_int64(nbytes))
        assert made.value == expected
    before, twin.arena.value = twin.arena.value, made.value
    twin.run(twin.kernels[echo], ["abc"] * 3)
    twin.launch(COUNT_ARENA, 1, ctypes.byref(counts), memory)
    twin.arena.value = before
    assert (counts.made, counts.freed, counts.failed) == (6, 0, 0)
    assert 16500 < counts.mark < 17000


def column(rows):
    """The parts of a column of Arrow: characters, offsets, validity."""
    encoded = [(row or "").encode() for row in rows]
    ends = [0]
    for row in encoded:
        ends.append(ends[-1] + len(row))
    bits = bytearray((len(rows) + 31) // 32 * 4)
    for number, row in enumerate(rows):
        bits[number // 8] |= (row is not None) << number % 8
    return b"".join(encoded), ends, bytes(bits)


def test_rows_of_a_column_are_viewed(twin):
    rows = ["abc", "", None, "日本", None, "x", "", "y", "z", None]
    chars, ends, bits = column(rows)
    views = (View * len(rows))()
    offsets = (ctypes.c_int32 * len(ends))(*ends)
    arguments = offsets, bits, ctypes.c_int64(len(rows)), views
    twin.launch(MAKE_VIEWS, len(rows), chars, *arguments)
    text = ctypes.cast(views, ctypes.POINTER(ctypes.c_void_p))
    assert [ctypes.string_at(text[3 * i], view.bytes).decode() if text[3 * i] else None
            for i, view in enumerate(views)] == rows
    twin.launch(MAKE_VIEWS, len(rows), chars, offsets, None, *arguments[2:])
    assert all(view.p is not None for view in views)
    # A column of empty strings has no characters, and so perhaps no address of them.
    nothing = (ctypes.c_int32 * 2)()
    twin.launch(MAKE_VIEWS, 1, None, nothing, None, ctypes.c_int64(1), views)
    assert views[0].p is not None and views[0].bytes == 0


@pytest.mark.parametrize("rows", [0, 1, 31, 32, 33, 256, 257, 1000])
def test_strings_become_a_column(twin, rows):
    draw = random.Random(rows)
    texts = [draw.choice(["", "a", "bc", "日本語", None, "x" * 40]) for _ in range(rows)]
    out = twin.run(twin.kernels[echo], texts)
    chars, ends, bits = column(texts)
    # As column_from_managed_udf_string_array allocates it; the rest has to stay as it is.
    sums = (ctypes.c_uint64 * (2 * (rows // 32 + 2) + 1))()
    sums[len(sums) - 1] = 77
    total = (ctypes.c_uint64 * 2)()
    steps = [step for step, _ in STEPS]
    count = ctypes.c_int64(rows)
    twin.launch(steps[0], max(rows, 1), out, count, sums)
    twin.launch(steps[1], 1, sums, count, total)
    assert list(total) == [len(chars), texts.count(None)] and sums[len(sums) - 1] == 77
    validity = (ctypes.c_char * max(1, len(bits)))()
    offsets, made = (ctypes.c_int32 * (rows + 1))(), (ctypes.c_char * (len(chars) + 1))()
    for step in steps[2:]:
        twin.launch(step, max(rows, 1), out, count, sums, validity, offsets, made)
    assert (made.raw, list(offsets), validity.raw[:len(bits)]) == (chars + b"\0", ends, bits)
    twin.free(out)


class OnTwin:
    """A kernel whose launches run on the CPU."""

    def __init__(self, twin, kernel):
        self.twin, self.kernel = twin, kernel.py_func

    def __getitem__(self, grid):
        def launch(*arguments):
            self.twin.launch(self.kernel, grid[0] * grid[1], *map(ctypes.c_void_p, arguments))
        return launch


class HostArray:
    def __init__(self, shape, dtype="u8", stream=0):
        self.array = numpy.full(shape, 7, dtype)
        self.shape = self.array.shape
        self.device_ctypes_pointer = SimpleNamespace(value=self.array.ctypes.data)

    def copy_to_host(self, stream=0):
        return self.array


class Guard:
    """A buffer that is acquired, with a column behind 64 other bytes, and the calls it got."""

    def __init__(self, nbytes):
        self.memory = numpy.full(nbytes, 7, "u1")
        self.cuda_ptr_mut, self.calls = self.memory.ctypes.data, []

    def __getattr__(self, name):
        return lambda *arguments: self.calls.append((name, *arguments))


def plan_of(rows, chars, validity):
    bits = (rows + 31) // 32 * 4 if validity else 0
    return SimpleNamespace(
        nbytes=64 + bits + 4 * rows + 4 + chars, validity_at=64 if bits else None,
        offsets_at=64 + bits, chars_at=64 + bits + 4 * rows + 4)


@pytest.fixture
def on_cpu(twin, monkeypatch):
    stream = SimpleNamespace(synchronize=lambda: None)
    context = SimpleNamespace(device=SimpleNamespace(id=3))
    monkeypatch.setattr(columns, "cuda", SimpleNamespace(
        device_array=HostArray, default_stream=lambda: stream, current_context=lambda: context))
    for step in "measure", "scan", "offsets", "gather":
        monkeypatch.setattr(columns, step, OnTwin(twin, getattr(columns, step)))
    monkeypatch.setattr(xmem, "strings_plan", plan_of, raising=False)


@pytest.mark.parametrize("texts", [[], ["a", "", "bcd"], ["a", None, "日本"] * 100])
def test_a_column_is_written_where_the_plan_says(on_cpu, twin, texts):
    out = twin.run(twin.kernels[echo], texts)
    chars, ends, bits = column(texts)
    nulls = None in texts
    strings = arrays.DeviceArray(ctypes.addressof(out), managed_string,
                                 SimpleNamespace(shape=(len(texts), 3)))
    acquired = []

    def acquire(nbytes, device):
        acquired.append((nbytes, device))
        return Guard(nbytes)
    guard = columns.column_from_managed_udf_string_array(
        strings, SimpleNamespace(acquire_cuda=acquire))
    plan = plan_of(len(texts), len(chars), nulls)
    assert acquired == [(plan.nbytes, 3)]
    assert guard.calls == [("describe_strings", len(texts), len(chars), nulls),
                           ("wait_on", 0)]
    parts = bits if nulls else b"", numpy.array(ends, "i4").tobytes(), chars
    assert guard.memory.tobytes() == bytes([7]) * 64 + b"".join(parts)
    twin.free(out)


def test_a_column_that_fails_gives_its_buffer_back(on_cpu, twin, monkeypatch):
    out, guard = twin.run(twin.kernels[echo], ["abc"]), Guard(100)

    class Fails:
        def __getitem__(self, grid):
            raise MemoryError("no room for this kernel")
    monkeypatch.setattr(columns, "gather", Fails())
    with pytest.raises(MemoryError, match="no room"):
        columns.column_from_managed_udf_string_array(
            arrays.DeviceArray(ctypes.addressof(out), managed_string,
                               SimpleNamespace(shape=(1, 3))),
            SimpleNamespace(acquire_cuda=lambda nbytes, device: guard))
    assert guard.calls[-1] == ("release",)
    twin.free(out)


# ---- The arena of a module ----

def test_modules_have_the_arena_of_their_gpu(monkeypatch):
    """One is loaded before use_arena(), one after it, and one has gone and is not written."""
    gpu, memory = SimpleNamespace(device=SimpleNamespace(id=0)), {}
    modules = [SimpleNamespace(handle=number) for number in range(3)]
    fake = SimpleNamespace(cuLibraryGetGlobal=lambda handle, name: ((handle, name), 8),
                           cuMemcpyHtoD=lambda to, data, size: memory.update(
                               {to: int.from_bytes(data[:size], "little")}))
    monkeypatch.setattr(runtime, "driver", fake)
    monkeypatch.setattr(runtime.devices, "get_context", lambda: gpu)
    for name in "_arenas", "_modules":
        monkeypatch.setattr(runtime, name, {})

    def written(module):
        return memory.pop((module.handle, b"xmem_arena"), None)
    loaded, unloaded = runtime.SHIMS.setup_callback, runtime.SHIMS.teardown_callback
    loaded(modules[0])
    assert written(modules[0]) == 0
    runtime.use_arena(0x7000, "keeper")
    loaded(modules[1])
    assert list(map(written, modules)) == [0x7000, 0x7000, None]
    gpu.device.id = 1
    loaded(modules[2])
    assert written(modules[2]) == 0
    runtime.use_arena(0x9000, "other")
    assert list(map(written, modules)) == [None, None, 0x9000]
    gpu.device.id = 0
    unloaded(modules[0])
    runtime.use_arena(0x8000, "third")
    assert list(map(written, modules)) == [None, 0x8000, None]
    runtime.stop_arena("other")
    assert list(map(written, modules)) == [None, None, None]
    runtime.stop_arena("third")
    assert list(map(written, modules)) == [None, 0, None]


def test_the_simulator_is_refused():
    """It has no compiler, and runs Python's own strings."""
    done = subprocess.run([sys.executable, "-P", "-c", "import numba_twin"], text=True,
                          stderr=subprocess.PIPE, env={
        **os.environ, "NUMBA_ENABLE_CUDASIM": "1", "PYTHONPATH": str(TOP / "tests/device")})
    assert "ImportError: xmem.numba compiles kernels, and numba-cuda's simulator" in done.stderr


# ---- Linking ----

def test_the_newest_shims_that_the_linker_reads_are_taken(monkeypatch, tmp_path):
    monkeypatch.setattr(runtime, "FOLDER", tmp_path)
    monkeypatch.setattr(runtime, "source", lambda: "source")
    for toolkit in "12.8", "13.0", "13.10", "13.9":
        (tmp_path / f"shims-{toolkit}.fatbin").write_text(toolkit)
    for linker, taken in ((12, 0), None), ((12, 9), "12.8"), ((13, 0), "13.0"), ((14, 0), "13.10"):
        monkeypatch.setattr(runtime, "linker_version", lambda linker=linker: linker)
        shims = runtime.Shims(None)
        if taken is None:
            assert (shims.kind, shims.data) == (CUSource.kind, "source")
        else:
            assert (shims.kind, shims.data) == (Fatbin.kind, taken.encode())


CAPABILITIES = [(7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0)]


@pytest.fixture
def linker():
    if not numba_driver._have_nvjitlink():
        pytest.skip("only nvJitLink links without a driver, and it is not installed: "
                    "pip install nvidia-nvjitlink")


def ptx_of_all(capability):
    """The document's kernel with the shims, after the optimisation of both together."""
    return linked(column_kernel(echo), COLUMN, capability, lto=True, flags=["-ptx"])[1]


def decrefs(ptx):
    """How many times the kernel has the shims' decref, which the linker has inlined."""
    assert "xmem_decref" not in ptx and "NRT_" not in ptx
    return len(re.findall(r"atom\.acq_rel\.gpu\.add\.u64", ptx))


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_built_shims_are_linked(linker, capability, built, monkeypatch):
    monkeypatch.setattr(runtime, "FOLDER", built)
    monkeypatch.setattr(runtime, "SHIMS", runtime.Shims(None))
    assert runtime.SHIMS.kind == Fatbin.kind
    assert decrefs(ptx_of_all(capability)) == 2     # 4.1 and 5.1
    for debug in False, True:       # with debug each module is compiled by itself
        assert b"xmem_arena" in linked(column_kernel(echo), COLUMN, capability, debug=debug)[1]


@pytest.mark.parametrize("capability", [(7, 5), (9, 0), (12, 0)])
def test_nvrtc_compiles_shims_that_are_not_built(linker, capability, monkeypatch):
    assert runtime.SHIMS.kind == CUSource.kind
    assert decrefs(ptx_of_all(capability)) == 2     # 4.1 and 5.1


def test_a_kernel_that_needs_numbas_runtime_too_is_refused(linker):
    """The decref of the shims cannot free an array of numba-cuda, whose memory has no header."""
    def mixed(strings, out, rows):
        row = cuda.grid(1)
        if row < rows:
            numbers = numpy.empty(4, numpy.int32)
            numbers[row % 4] = 3
            if numbers[1] == 3:
                out[row] = strings[row] + "x"
    with pytest.raises(Exception) as caught:
        linked(mixed, COLUMN, (9, 0), lto=True)
    if "cuda/atomic" in str(caught.value):
        pytest.skip("nrt.cu needs a header that is not installed: pip install nvidia-cuda-cccl")
    assert re.search(r"'NRT_\w+': symbol multiply defined", str(caught.value))


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    if not shutil.which("nvcc") and not shutil.which("/usr/local/cuda/bin/nvcc"):
        pytest.skip("there is no nvcc, with which make device builds shims")
    folder = tmp_path_factory.mktemp("built")
    subprocess.run(["make", "-s", "-C", TOP, "device", f"B={folder}"], check=True)
    return folder / "python/xmem/numba"
