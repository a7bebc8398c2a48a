# SPDX-License-Identifier: MIT
"""xmem.numba without a GPU: what numba-cuda makes of kernels with strings, and what that does.

The code is read as PTX. It also runs on the CPU: clang compiles the LLVM IR that numba-cuda has
made, and numba_twin.cc stands in for what only a GPU has. So these tests run the control flow and
the counts that numba-cuda has put there, in one thread, and not a translation of them.
"""
from __future__ import annotations

import ast
import ctypes
import re
import threading

import pytest

from numba_twin import (ARRAY, COLUMN, FREE, TOP, Managed, building, column_kernel,  # noqa: F401
                        column_of, prepared)
from numba import cuda
from numba.cuda import config, dispatcher, types
from numba.cuda.compiler import compile_cuda
from numba.cuda.core.errors import NumbaRuntimeError, TypingError
from numba.cuda.descriptor import cuda_target
from numba.cuda.memory_management.nrt import NRT_LIBRARY
from xmem.numba import NRT_decref, make_string, managed_string, runtime, string_view

CAPABILITIES = [(7, 5), (9, 0), (12, 0)]


# ---- The document's code ----

def udf(string):
    if len(string) > 2:
        result = string.upper()     # new allocation
    else:
        result = string + string    # new allocation
    return result + 'abc'


def expected(string):
    return (string.upper() if len(string) > 2 else string + string) + "abc"


# ---- The code is read ----

def ptx_of(kernel, arguments, capability=(9, 0)):
    text, _ = cuda.compile(kernel, types.void(*arguments), device=False, abi="numba",
                           cc=capability, output="ptx")
    return text


def calls(ptx):
    """The calls in their order: (function, register with its first argument)."""
    return re.findall(r"\[param0(?:\+0)?\], (\S+);(?:(?!call\.uni).)*?call\.uni[^;]*?(xmem_\w+)",
                      ptx, re.DOTALL)


def counts_in(ptx):
    """The calls that count: (incref or decref, number of the string in order of creation)."""
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
    freeing = counts_in(ptx_of(FREE, ARRAY, capability))
    assert freeing == [("incref", 0), ("decref", 0), ("decref", 0)]     # 5.2


def added_by_numba(kernel, arguments):
    """The files that numba-cuda links with a kernel by itself."""
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
    for kernel, arguments in (column_kernel(udf), COLUMN), (FREE, ARRAY):
        library = compile_cuda(kernel, types.void, arguments, cc=(9, 0)).library
        assert library._linking_files == {runtime.SHIMS}


def test_a_kernel_that_would_not_count_is_refused(monkeypatch):
    monkeypatch.setattr(config, "CUDA_ENABLE_NRT", False)
    with pytest.raises(NumbaRuntimeError, match="set numba.cuda.config.CUDA_ENABLE_NRT = True"):
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


# ---- The code runs on the CPU ----

ROWS = ["", "a", "bc", "def", "ÄÖ", "日本語", "x" * 500]


def test_the_udf_gives_the_documents_results_and_counts(building):
    twin = building([udf])
    for row in ROWS:
        out = twin.run(twin.kernels[udf], [row])
        assert column_of(out) == [expected(row)]
        assert twin.recorded() == [2, 1, 0,     # result in the UDF: assigned, the UDF ends
                                   2, 1,        # 4.1, of a string that was made with 1
                                   2,           # 4.2
                                   1]           # 5.1
        assert out[0].meminfo[0] == 1
        twin.free(out)
        assert twin.recorded() == [2, 1, 0]     # 5.2
    assert twin.counts() == (len(ROWS) * 4, len(ROWS) * 4, 0)


def test_a_column_of_many_rows(building):
    twin = building([udf])
    column = [ROWS[row % len(ROWS)] + str(row % 100) for row in range(50_000)]
    for _ in range(2):                          # the second time it gets the blocks of the first
        out = twin.run(twin.kernels[udf], column)
        assert column_of(out) == [expected(row) for row in column]
        twin.free(out)
        made, freed, failed = twin.counts()
        assert (made, failed) == (freed, 0)


def test_null_rows(building):
    twin = building([udf])
    out = twin.run(twin.kernels[udf], ["a", None, "def"])
    assert column_of(out) == ["aaabc", None, "DEFabc"]
    twin.free(out)
    made, freed, failed = twin.counts()
    assert (made, failed) == (freed, 0)


def test_an_arena_that_is_full_gives_null_strings(building):
    twin = building([udf], arena=17 * 1024)
    out = twin.run(twin.kernels[udf], ["abcdefgh" * 4] * 100)
    got = column_of(out)
    assert None in got and set(got) <= {None, "ABCDEFGH" * 4 + "abc"}
    made, _, failed = twin.counts()
    assert failed >= got.count(None)
    twin.free(out)
    assert twin.counts()[:2] == (made, made)


def share(strings, out, rows):
    row = cuda.grid(1)
    if row < rows:
        shared = strings[0]
        out[row] = shared
        out[row + rows] = shared + "x"


def drop(strings, out, rows):
    row = cuda.grid(1)
    if row < rows:
        NRT_decref(strings[0])
        NRT_decref(out[row])
        NRT_decref(out[row + rows])


ARRAYS = (types.CPointer(managed_string), types.CPointer(managed_string), types.int64)


def test_threads_share_a_string(building):
    """Numba's code in four threads at once: each drops what each has taken, and one the last."""
    def echo(s):
        return s + ""
    rows, each = 4000, 1000
    twin = building([echo], [(share, ARRAYS), (drop, ARRAYS)])
    strings, out = twin.run(twin.kernels[echo], ["shared"]), (Managed * (2 * rows))()
    strings[0].meminfo[0] += rows           # drop() takes one for each row

    def on_threads(kernel):
        function = ctypes.cast(getattr(twin.library, twin.names[kernel]), ctypes.c_void_p)
        threads = [threading.Thread(target=twin.library.twin_rows, args=(
            function, ctypes.c_uint64(begin), ctypes.c_uint64(begin + each), strings, out,
            ctypes.c_uint64(rows))) for begin in range(0, rows, each)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    on_threads(share)
    assert strings[0].meminfo[0] == 1 + 2 * rows
    assert set(column_of(out)) == {"shared", "sharedx"}
    on_threads(drop)
    assert strings[0].meminfo[0] == 1
    twin.free(strings)
    assert twin.counts() == (2 + 2 * rows, 2 + 2 * rows, 0)


# ---- Operations: as in Python ----

SUFFIX = "grün"


def loops(s):
    result = str(s)
    for i in range(3):
        result = result + s[i:]
        if len(result) > 12:
            break
    return result


def returns_early(s):
    if s == "abc":
        return s.upper()
    other = s + "x"
    if "b" in other:
        return other
    return other.upper()


def grows(s):
    s2 = str(s)
    s2 += "1"
    s2 += s2
    return s2


def keeps_two(s):
    first, second = s.upper(), s.lower()
    if first < second:
        return first + second
    return second + first


def passes_on(s):
    return both(s.strip(), s) + SUFFIX


def both(left, right):
    return left + right


def numbers(s):
    """A string with a character for each answer."""
    result = s + ""
    for wanted in (s[1:3], s[:0], s + "b"):
        if s.find(wanted) >= 0:
            result = result + "f"
        if s.rfind(wanted) > s.find(wanted):
            result = result + "r"
        if s.count(wanted) > 1:
            result = result + "c"
        if s.startswith(wanted):
            result = result + "s"
        if s.endswith(wanted):
            result = result + "e"
    return result


OPERATIONS = [
    loops, returns_early, grows, keeps_two, numbers,
    lambda s: s.upper(), lambda s: s.lower(), lambda s: str(s),
    lambda s: s.replace("b", "xyz"), lambda s: s.replace(s[:2], ""), lambda s: s.upper().lower(),
    lambda s: s.strip(), lambda s: s.lstrip(), lambda s: s.rstrip(), lambda s: s.strip("ab"),
    lambda s: s.lstrip("a"), lambda s: s.rstrip(s[-1:]),
    lambda s: s[1:], lambda s: s[:2], lambda s: s[-2:], lambda s: s[:-1], lambda s: s[1:-1],
    lambda s: s[2:1], lambda s: s[-100:100], lambda s: (s + "abc")[1:3],
    lambda s: "<" + s + ">", lambda s: SUFFIX + s, lambda s: s + "\0é",
    lambda s: s + "t" if s.startswith("ab") else s + "f",
    lambda s: s + "t" if s.endswith("c") else s + "f",
    lambda s: s + "t" if s.find("b") == 1 else s + "f",
    lambda s: s + "t" if s == "abc" else s + "f", lambda s: s + "t" if s != "abc" else s + "f",
    lambda s: s + "t" if s < "abc" else s + "f", lambda s: s + "t" if "abc" <= s else s + "f",
    lambda s: s + "t" if s > "b" else s + "f", lambda s: s + "t" if s.upper() >= "B" else s + "f",
    lambda s: s + "t" if "bc" in s else s + "f", lambda s: s + "t" if len(s + s) > 4 else s + "f",
]
TEXTS = ["", "a", "b", "abc", "abcabc", "  ab c\t\n", "ab", "bab", "Abc", "日本語", "xbc", "aaaa",
         "ÄÖÜ", "abcdefghijklm"]


def test_operations_are_pythons(building):
    twin = building(OPERATIONS)
    for function in OPERATIONS:
        out = twin.run(twin.kernels[function], TEXTS)
        assert column_of(out) == [function(text) for text in TEXTS], function.__code__
        twin.free(out)
        made, freed, failed = twin.counts()
        assert (made, failed) == (freed, 0), function.__code__


def mixes(s):
    if len(s) > 2:
        result = s
    else:
        result = s + s
    return result


def copies_a_row(strings, out, rows):
    out[0] = strings[0]


def copies_a_literal(strings, out, rows):
    out[0] = "literal"


def test_a_row_does_not_become_a_new_string_by_itself():
    with pytest.raises(TypingError, match="Cannot unify (managed_string|string_view) and"):
        ptx_of(column_kernel(mixes), COLUMN)
    for kernel in copies_a_row, copies_a_literal:
        with pytest.raises(TypingError, match=r"a new string is wanted here: str\(row\)"):
            ptx_of(kernel, COLUMN)


def test_null_strings_go_through(building):
    def is_null(s):
        if s is None:
            return make_string("null")
        if s.upper() is not None:
            return s.upper()
        return s[1:]
    twin = building([keeps_two, is_null])
    for function, expected in (keeps_two, [None, "Aa"]), (is_null, ["null", "A"]):
        out = twin.run(twin.kernels[function], [None, "a"])
        assert column_of(out) == expected
        twin.free(out)
        made, freed, failed = twin.counts()
        assert (made, failed) == (freed, 0)


def test_the_first_program_of_the_page(building):
    """Its kernel runs here; bindings/python/tests/test_numba_strings.py runs all of it on a GPU."""
    page = (TOP / "docs/device.md").read_text()
    program = page.partition("\n## Python")[2].partition("```python\n")[2].partition("```\n")[0]
    (greet,) = (part for part in ast.parse(program).body if isinstance(part, ast.FunctionDef))
    greet.decorator_list = []
    names = {"cuda": cuda}
    exec(compile(ast.Module([greet], []), "device.md", "exec"), names)
    twin = building([], [(names["greet"], COLUMN)])
    words = [" Ada ", "Bo", "Grace", None, ""]
    out = twin.run(names["greet"], words)
    assert column_of(out) == ["Hello Ada", "Hello Bo", "Hello GRACE", None, "Hello "]
    twin.free(out)
    made, freed, failed = twin.counts()
    assert (made, failed) == (freed, 0)
