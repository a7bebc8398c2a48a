# SPDX-License-Identifier: MIT
"""xmem.numba without a GPU: what numba-cuda makes of kernels with strings, and what that does.

The code is read as PTX. It also runs on the CPU: clang compiles the LLVM IR that numba-cuda has
made, and numba_twin.cc stands in for what only a GPU has. So these tests run the control flow and
the counts that numba-cuda has put there, in one thread, and not a translation of them.
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
from numba.cuda.compiler import compile_cuda                    # noqa: E402
from numba.cuda.core.errors import NumbaRuntimeError, TypingError   # noqa: E402
from numba.cuda.descriptor import cuda_target                   # noqa: E402
from numba.cuda.memory_management.nrt import NRT_LIBRARY        # noqa: E402
from xmem.numba import NRT_decref, managed_string, runtime, string_view  # noqa: E402

CAPABILITIES = [(7, 5), (9, 0), (12, 0)]
COLUMN = (types.CPointer(string_view), types.CPointer(managed_string), types.int64)
ARRAY = (types.CPointer(managed_string), types.int64)


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch):
    """numba-cuda asks for the GPU of this machine when a kernel calls another function."""
    device = SimpleNamespace(compute_capability=(9, 0), id=0)
    monkeypatch.setattr(dispatcher, "get_current_device", lambda: device)
    monkeypatch.setattr(runtime, "INCLUDE", TOP / "include")


# ---- The document's code ----

def udf(string):
    if len(string) > 2:
        result = string.upper()     # new allocation
    else:
        result = string + string    # new allocation
    return result + 'abc'


def expected(string):
    return (string.upper() if len(string) > 2 else string + string) + "abc"


def column_kernel(function):
    """The document's containing kernel."""
    passed_udf = cuda.jit(device=True)(function)

    def kernel(strings, output_string_ary, rows):
        tid = cuda.grid(1)
        if tid < rows:
            result = passed_udf(strings[tid])
            output_string_ary[tid] = result
    return kernel


def free_managed_udf_string_array(ary, size):
    gid = cuda.grid(1)
    if gid < size:
        NRT_decref(ary[gid])


# ---- What the code says ----

def ptx_of(kernel, arguments, capability=(9, 0)):
    text, _ = cuda.compile(kernel, types.void(*arguments), device=False, abi="numba",
                           cc=capability, output="ptx")
    return text


def calls(ptx):
    """The calls in their order: (function, register with its first argument)."""
    return re.findall(r"\[param0(?:\+0)?\], (\S+);(?:(?!call\.uni).)*?call\.uni[^;]*?(xmem_\w+)", ptx,
                      re.DOTALL)


def counts_in(ptx):
    """The calls that count, as (incref or decref, number of the string) in the order of creation."""
    seen = {}
    return [(function.removeprefix("xmem_"), seen.setdefault(register, len(seen)))
            for register, function in calls(ptx) if function.endswith("cref") and register != "0"]


@pytest.mark.parametrize("output", ["ptx", "ltoir"])
@pytest.mark.parametrize("capability", CAPABILITIES)
def test_the_udf_compiles(capability, output):
    code, result = cuda.compile(udf, (string_view,), abi="numba", device=True, cc=capability,
                                output=output)
    assert result is managed_string
    if output == "ptx":
        assert f".target sm_{capability[0]}{capability[1]}" in code
    else:
        assert len(code) > 1000


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_counts_stand_where_the_document_says(capability):
    """Two branches make a string, which ends after the last concat; phases 4.1 to 5.1 follow."""
    found = counts_in(ptx_of(column_kernel(udf), COLUMN, capability))
    branch = [("incref", 0), ("decref", 0)]     # result = new string
    assert found == branch * 2 + [
        ("decref", 0),                          # result, as the UDF ends
        ("incref", 1), ("decref", 1),           # 4.1: result = passed_udf(...), which ends
        ("incref", 1),                          # 4.2: output_string_ary[tid] = result
        ("decref", 1)]                          # 5.1: the kernel ends
    freeing = counts_in(ptx_of(free_managed_udf_string_array, ARRAY, capability))
    assert freeing == [("incref", 0), ("decref", 0), ("decref", 0)]     # 5.2


def added_by_numba(kernel, arguments):
    """What numba-cuda adds to the linking of a kernel by itself."""
    ptx, added = ptx_of(kernel, arguments), []
    dispatcher._Kernel.maybe_link_nrt(dispatcher._Kernel, added, cuda_target.target_context, ptx)
    return added


def test_numbas_own_runtime_is_not_linked(monkeypatch):
    assert added_by_numba(column_kernel(udf), COLUMN) == []
    assert "NRT_" not in ptx_of(column_kernel(udf), COLUMN)
    # It would be.
    monkeypatch.setattr(runtime, "provide", lambda module: runtime.link())
    assert added_by_numba(column_kernel(udf), COLUMN) == [NRT_LIBRARY]


def test_each_kernel_is_linked_with_the_shims_once():
    for kernel, arguments in (column_kernel(udf), COLUMN), (free_managed_udf_string_array, ARRAY):
        library = compile_cuda(kernel, types.void, arguments, cc=(9, 0)).library
        assert library._linking_files == {runtime.SHIMS}


def test_a_kernel_that_would_not_count_is_refused(monkeypatch):
    monkeypatch.setattr(config, "CUDA_ENABLE_NRT", False)
    with pytest.raises(NumbaRuntimeError, match="CUDA_ENABLE_NRT is false"):
        ptx_of(column_kernel(udf), COLUMN)


# ---- The shims ----

def nvrtc_ptx(source, capability):
    """PTX of CUDA C++, which NVRTC compiles without a driver."""
    nvrtc = pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")

    def done(answer):
        error, *values = answer
        log = b""
        if int(error) and program:
            _, size = nvrtc.nvrtcGetProgramLogSize(program)
            log = b" " * size
            nvrtc.nvrtcGetProgramLog(program, log)
        assert not int(error), f"{error}: {log.decode()}"
        return values[0] if values else None

    program = None
    program = done(nvrtc.nvrtcCreateProgram(source.encode(), b"shims.cu", 0, [], []))
    options = [b"--gpu-architecture=compute_%d%d" % capability, b"-rdc=true", b"-std=c++14"]
    done(nvrtc.nvrtcCompileProgram(program, len(options), options))
    ptx = b" " * done(nvrtc.nvrtcGetPTXSize(program))
    done(nvrtc.nvrtcGetPTX(program, ptx))
    nvrtc.nvrtcDestroyProgram(program)
    return ptx.decode()


def body_of(ptx, function):
    return re.search(rf"\.visible \.func\s+{function}\b.*?^\}}", ptx, re.DOTALL | re.MULTILINE)[0]


def is_one_step(decref):
    """Is the count changed by one atomic operation of acquire and release, and read by no other?"""
    decides = re.findall(r"atom\.(\S*)\.add\.u64\s+%rd\d+, \[(%rd\d+)\]", decref)
    if not decides or decides[0][0] != "acq_rel.gpu":
        return False
    return len(re.findall(rf"\[{decides[0][1]}(?:\+0)?\]", decref)) == 1


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_the_decref_is_one_atomic_operation(capability):
    ptx = nvrtc_ptx(runtime.source(), capability)
    for name in "xmem_decref", "NRT_decref":
        assert is_one_step(body_of(ptx, name)), name


TWO_STEPS = """
extern "C" __device__ void xmem_decref(unsigned long long *count)
{
        unsigned long long old, now;

        asm volatile("atom.acq_rel.gpu.add.u64 %0, [%1], %2;"
                     : "=l"(old) : "l"(count), "l"(~0ull) : "memory");
        asm volatile("ld.acquire.gpu.u64 %0, [%1];" : "=l"(now) : "l"(count) : "memory");
        if (!now)
                *count = old;
}
"""


def test_a_decref_of_two_steps_would_be_seen():
    assert not is_one_step(body_of(nvrtc_ptx(TWO_STEPS, (9, 0)), "xmem_decref"))


# ---- What the code does: on the CPU ----

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
                # What is inlined on a GPU may be left out of a module that does not call it.
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
        self.library.xmem_arena_init_shim(ctypes.byref(self.arena), ctypes.c_void_p(address),
                                          ctypes.c_uint64(arena))
        assert self.arena.value

    def counts(self):
        """How many allocations were made, freed and refused."""
        found = Counts()
        self.library.xmem_arena_count_shim(ctypes.byref(found), self.arena)
        return found.made, found.freed, found.failed

    def recorded(self):
        """The counts that each incref and decref has left since the last call."""
        found = (ctypes.c_uint64 * 4096)()
        return found[:self.library.twin_counts(found)]

    def launch(self, kernel, strings, out):
        self.library.twin_run(getattr(self.library, self.names[kernel]), strings, out,
                              ctypes.c_uint64(len(out)))

    def run(self, kernel, column):
        """A column of strings in, an array of managed strings out."""
        encoded = [None if row is None else row.encode() for row in column]
        views = (View * len(column))(*[View(row, len(row or b""), 0, 0) for row in encoded])
        out = (Managed * len(column))()
        self.launch(kernel, views, out)
        return out

    def free(self, kernel, out):
        self.library.twin_run_free(getattr(self.library, self.names[kernel]), out,
                                   ctypes.c_uint64(len(out)))


def column_of(out):
    return [ctypes.string_at(row.m_data, row.m_bytes).decode() if row.meminfo else None
            for row in out]


ROWS = ["", "a", "bc", "def", "ÄÖ", "日本語", "x" * 500]


@pytest.fixture(scope="module")
def document(tmp_path_factory):
    device = SimpleNamespace(compute_capability=(9, 0), id=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dispatcher, "get_current_device", lambda: device)
        kernel = column_kernel(udf)
        twin = Twin(tmp_path_factory.mktemp("document"),
                    [(kernel, COLUMN), (free_managed_udf_string_array, ARRAY)])
        twin.kernel = kernel
        return twin


def test_the_udf_gives_the_documents_results_and_counts(document):
    for row in ROWS:
        out = document.run(document.kernel, [row])
        assert column_of(out) == [expected(row)]
        assert document.recorded() == [2, 1, 0,     # result in the UDF: assigned, the UDF ends
                                       2, 1,        # 4.1, of a string that was made with 1
                                       2,           # 4.2
                                       1]           # 5.1
        assert out[0].meminfo[0] == 1
        document.free(free_managed_udf_string_array, out)
        assert document.recorded() == [2, 1, 0]     # 5.2
    made, freed, failed = document.counts()
    assert (made, failed) == (freed, 0) and made == len(ROWS) * 4
