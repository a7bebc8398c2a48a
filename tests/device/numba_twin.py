# SPDX-License-Identifier: MIT
"""Shared by the tests of xmem.numba: kernels of numba-cuda are compiled, and run on the CPU.

clang compiles the LLVM IR that numba-cuda has made, and numba_twin.cc stands in for what only a GPU
has. So tests run the control flow and the counts that numba-cuda has put there, in one thread, and
not a translation of them.
"""
from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

TOP = Path(__file__).resolve().parents[2]

# The sources of xmem.numba, without the rest of the package, which has to be built.
sys.modules["xmem"] = ModuleType("xmem")
sys.modules["xmem"].__path__ = [str(TOP / "bindings/python/xmem")]

import xmem.numba                                               # noqa: E402
from numba import cuda                                          # noqa: E402
from numba.cuda import config, dispatcher, types                # noqa: E402
from numba.cuda.compiler import compile_cuda, kernel_fixup      # noqa: E402
from numba.cuda.cudadrv.driver import _Linker                   # noqa: E402
from numba.cuda.descriptor import cuda_target                   # noqa: E402
from xmem.numba import managed_string, runtime, string_view     # noqa: E402

COLUMN = (types.CPointer(string_view), types.CPointer(managed_string), types.int64)
ARRAY = (types.CPointer(managed_string), types.int64)


@pytest.fixture(autouse=True)
def prepared(monkeypatch):
    prepare(monkeypatch)


def prepare(patch):
    """numba-cuda asks for the GPU of this machine when a kernel calls another function."""
    device = SimpleNamespace(compute_capability=(9, 0), id=0)
    patch.setattr(dispatcher, "get_current_device", lambda: device)
    patch.setattr(runtime, "INCLUDE", TOP / "include")
    patch.setattr(config, "CUDA_ENABLE_NRT", True)


def column_kernel(function):
    """The document's containing kernel."""
    passed_udf = cuda.jit(device=True)(function)

    def kernel(strings, output_string_ary, rows):
        tid = cuda.grid(1)
        if tid < rows:
            result = passed_udf(strings[tid])
            output_string_ary[tid] = result
    return kernel


def linked(kernel, arguments, capability, lto=False, flags=None, debug=False):
    """A kernel with all that numba-cuda links: its name, and a cubin (with the flag -ptx: PTX)."""
    options = {"g": None, "opt": 0} if debug else {"opt": 3}
    done = compile_cuda(kernel, types.void, arguments, cc=capability, lto=lto, debug=debug,
                        nvvm_options=options)
    library, added = done.library, []
    library._lto = lto
    kernel_fixup(library.get_function(done.fndesc.llvm_func_name), debug)
    dispatcher._Kernel.maybe_link_nrt(dispatcher._Kernel, added, cuda_target.target_context,
                                      library.get_asm_str(capability))
    for file in added:
        library.add_linking_file(file)
    linker = _Linker(max_registers=0, cc=capability, lto=lto, additional_flags=flags)
    library._link_all(linker, capability)
    return (done.fndesc.llvm_func_name,
            linker.get_linked_ptx().decode() if flags else linker.complete().code)


FREE = xmem.numba.free_managed_udf_string_array.py_func


class View(ctypes.Structure):
    _fields_ = [("p", ctypes.c_char_p), ("bytes", ctypes.c_int32), ("char_pos", ctypes.c_int32),
                ("byte_pos", ctypes.c_int32)]


class Managed(ctypes.Structure):
    _fields_ = [("meminfo", ctypes.POINTER(ctypes.c_uint64)), ("m_data", ctypes.c_void_p),
                ("m_bytes", ctypes.c_int32), ("m_capacity", ctypes.c_int32)]


class Counts(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("made", "freed", "failed", "mark")]


class Twin:
    """Kernels of numba-cuda on the CPU, in one library with the shims and an arena."""

    def __init__(self, folder, kernels, arena=1 << 24):
        """kernels: (function, types of its arguments)."""
        clang = shutil.which("clang++")
        if not clang:
            pytest.skip("there is no clang++: apt-get install clang")
        modules, self.names = {}, {}
        for kernel, arguments in kernels:
            done = compile_cuda(kernel, types.void, arguments, cc=(9, 0))
            self.names[kernel] = done.fndesc.llvm_func_name
            for text in done.library.llvm_strs:
                text = re.sub(r"^target .*\n", "", text, flags=re.MULTILINE)
                text = text.replace("llvm.nvvm.read.ptx.sreg.", "twin_")
                # A compiler leaves a function of linkonce out if its own module never calls it.
                modules[text.replace("linkonce_odr", "weak_odr")] = None
        paths = [folder / f"{number}.ll" for number in range(len(modules))]
        for path, text in zip(paths, modules):
            path.write_text(text)
        subprocess.run([clang, "-std=c++14", "-O1", "-fPIC", "-shared", "-Wno-override-module",
                        f"-I{TOP / 'include'}", "-o", folder / "twin.so", "-x", "c++",
                        TOP / "tests/device/numba_twin.cc", "-x", "ir", *paths], check=True)
        self.library = ctypes.CDLL(str(folder / "twin.so"))
        self.memory = ctypes.create_string_buffer(arena + 16)
        address = (ctypes.addressof(self.memory) + 15) & ~15
        self.arena = ctypes.c_void_p.in_dll(self.library, "xmem_arena")
        self.library.xmem_arena_init.restype = ctypes.c_void_p
        self.arena.value = self.library.xmem_arena_init(ctypes.c_void_p(address),
                                                        ctypes.c_uint64(arena))
        assert self.arena.value

    def counts(self):
        """How many allocations were made, freed and refused."""
        found = Counts()
        self.library.xmem_arena_count(self.arena, ctypes.byref(found))
        return found.made, found.freed, found.failed

    def recorded(self):
        """The counts that each incref and decref has left since the last call."""
        found = (ctypes.c_uint64 * 4096)()
        return found[:self.library.twin_counts(found)]

    def launch(self, kernel, rows, *arguments):
        """Run a kernel in one thread after another."""
        function = getattr(self.library, self.names[kernel])
        returned = ctypes.c_void_p()
        for row in range(rows):
            self.library.twin_at(ctypes.c_uint64(row), ctypes.c_uint64(rows))
            function(ctypes.byref(returned), *arguments)

    def run(self, kernel, column):
        """A column of strings in, an array of managed strings out."""
        encoded = [None if row is None else row.encode() for row in column]
        views = (View * len(column))(*[View(row, len(row or b""), 0, 0) for row in encoded])
        out = (Managed * len(column))()
        self.launch(kernel, len(column), views, out, ctypes.c_uint64(len(column)))
        return out

    def free(self, out):
        self.launch(FREE, len(out), out, ctypes.c_uint64(len(out)))


def column_of(out):
    return [ctypes.string_at(row.m_data, row.m_bytes).decode() if row.meminfo else None
            for row in out]


@pytest.fixture(scope="module")
def building(tmp_path_factory):
    """Make a twin of functions of strings, each in the document's kernel, and of the others."""
    def build(functions, others=(), **options):
        kernels = {function: column_kernel(function) for function in functions}
        twin = Twin(tmp_path_factory.mktemp("twin"), [
            *((kernel, COLUMN) for kernel in kernels.values()), (FREE, ARRAY), *others], **options)
        twin.kernels = kernels
        return twin
    with pytest.MonkeyPatch.context() as patch:
        prepare(patch)
        yield build
