# SPDX-License-Identifier: MIT
"""xmem.numba on the host's side, without a GPU: arenas, columns, and the linking of shims.

Kernels of xmem.numba itself run on the CPU, as users' kernels do in test_numba.py.
"""
from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from types import SimpleNamespace

import pytest

from numba_twin import (COLUMN, TOP, Counts, View, building,  # noqa: F401
                        column_kernel, column_of, prepared)
from numba.cuda import types
from numba.cuda.compiler import compile_cuda, kernel_fixup
from numba.cuda.cudadrv import driver as numba_driver
from numba.cuda.cudadrv.linkable_code import CUSource, Fatbin
from xmem.numba import arena, arrays, runtime, string_view

BYTES, INTS = types.CPointer(types.uint8), types.CPointer(types.int32)
WORDS = types.CPointer(types.uint64)


def echo(s):
    return s + ""


# ---- Kernels of xmem.numba ----

MAKE_ARENA, COUNT_ARENA = arena.make_arena.py_func, arena.count_arena.py_func
MAKE_VIEWS = arrays.make_views.py_func


@pytest.fixture(scope="module")
def twin(building):
    return building([echo], [
        (MAKE_ARENA, (WORDS, BYTES, types.int64)), (COUNT_ARENA, (WORDS, BYTES)),
        (MAKE_VIEWS, (BYTES, INTS, BYTES, types.int64, types.CPointer(string_view)))])


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


# ---- The arena of a module ----

def test_modules_have_the_arena_of_their_gpu(monkeypatch):
    """One is loaded before use_arena(), and one after it. Nothing is written into one that has gone."""
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


def linked(capability, lto):
    """The document's kernel with all that numba-cuda links: PTX after LTO, or a cubin."""
    done = compile_cuda(column_kernel(echo), types.void, COLUMN, cc=capability, lto=lto)
    library = done.library
    library._lto = lto
    kernel_fixup(library.get_function(done.fndesc.llvm_func_name), False)
    linker = numba_driver._Linker(max_registers=0, cc=capability, lto=lto,
                                  additional_flags=["-ptx"] if lto else None)
    library._link_all(linker, capability)
    return linker.get_linked_ptx().decode() if lto else linker.complete().code


CAPABILITIES = [(7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0)]


@pytest.fixture
def linker():
    if not numba_driver._have_nvjitlink():
        pytest.skip("only nvJitLink links without a driver, and it is not installed: "
                    "pip install nvidia-nvjitlink")


def decrefs(ptx):
    """How many times the kernel has the shims' decref, which the linker has inlined."""
    assert "xmem_decref" not in ptx and "NRT_" not in ptx
    return len(re.findall(r"atom\.acq_rel\.gpu\.add\.u64", ptx))


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_built_shims_are_linked(linker, capability, built, monkeypatch):
    monkeypatch.setattr(runtime, "FOLDER", built)
    monkeypatch.setattr(runtime, "SHIMS", runtime.Shims(None))
    assert runtime.SHIMS.kind == Fatbin.kind
    assert decrefs(linked(capability, lto=True)) == 2     # 4.1 and 5.1
    assert b"xmem_arena" in linked(capability, lto=False)


@pytest.mark.parametrize("capability", [(7, 5), (9, 0), (12, 0)])
def test_nvrtc_compiles_shims_that_are_not_built(linker, capability, monkeypatch):
    assert runtime.SHIMS.kind == CUSource.kind
    assert decrefs(linked(capability, lto=True)) == 2     # 4.1 and 5.1


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    if not shutil.which("nvcc") and not shutil.which("/usr/local/cuda/bin/nvcc"):
        pytest.skip("there is no nvcc, with which make device builds shims")
    folder = tmp_path_factory.mktemp("built")
    subprocess.run(["make", "-s", "-C", TOP, "device", f"B={folder}"], check=True)
    return folder / "python/xmem/numba"
