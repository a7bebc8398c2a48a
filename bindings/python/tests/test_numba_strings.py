# SPDX-License-Identifier: MIT
"""Strings in kernels of numba-cuda, on a GPU. tests/device/numba.sh tries them without one."""
from __future__ import annotations

from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Iterator

import numpy
import pytest

import xmem
from gpu import Child, new_name, no_violations, on_fake, why_not  # noqa: F401
from test_docs import TOP, run, sections

pytest.importorskip("numba", reason="numba-cuda is not installed")
pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
ROWS, THREADS = 100_000, 128
BLOCKS = (ROWS + THREADS - 1) // THREADS


@pytest.fixture(autouse=True)
def numba_cuda() -> Iterator[Any]:
    if why_not() or on_fake():
        pytest.skip("kernels of numba-cuda run on a GPU only")
    from numba import cuda
    before, cuda.config.CUDA_ENABLE_NRT = cuda.config.CUDA_ENABLE_NRT, True
    yield cuda
    cuda.config.CUDA_ENABLE_NRT = before


def expected(string: str) -> str:
    return (string.upper() if len(string) > 2 else string + string) + "abc"


def column_of(guard: xmem.BufferGuard) -> Any:
    """A column on a GPU, copied to the CPU."""
    plan, data = guard.strings(), pyarrow.py_buffer(guard.copy_to_host())
    validity = None
    if plan.validity_at is not None:
        validity = data.slice(plan.validity_at, (plan.rows + 7) // 8)
    column = pyarrow.Array.from_buffers(
        pyarrow.string(), plan.rows, [validity, data.slice(plan.offsets_at, 4 * plan.rows + 4),
                                      data.slice(plan.chars_at, plan.chars)])
    column.validate(full=True)
    return column


def read(pipe: Connection, name: str, token: int) -> None:
    with xmem.BufferPool(name) as pool:
        pipe.send(column_of(pool.get(token)).to_pylist())


def test_the_documents_kernels(numba_cuda: Any) -> None:
    """A column in, a column out to another process, and everything is freed."""
    import xmem.numba as strings

    @numba_cuda.jit(device=True)                                # type: ignore[untyped-decorator]
    def udf(string: Any) -> Any:
        if len(string) > 2:
            result = string.upper()
        else:
            result = string + string
        return result + "abc"

    @numba_cuda.jit                                             # type: ignore[untyped-decorator]
    def kernel(views: Any, output_string_ary: Any, rows: Any) -> None:
        tid = numba_cuda.grid(1)
        if tid < rows:
            result = udf(views[tid])
            output_string_ary[tid] = result

    rows = [None if row % 7 == 3 else ["", "a", "bc", "grün", "日本語"][row % 5] + str(row % 11)
            for row in range(ROWS)]
    column = pyarrow.array(rows, pyarrow.string())
    parts = [numba_cuda.to_device(numpy.frombuffer(part, kind))
             for part, kind in zip(column.buffers(), ("u1", "i4", "u1"))]
    with xmem.BufferPool(new_name(), writer=True) as pool:
        arena = strings.Arena(pool.acquire_cuda(64 << 20, dtype="uint8"))
        arena.use()
        views = strings.view_array(parts[2], parts[1][:ROWS + 1], parts[0])
        for _ in range(2):
            out = strings.string_array(ROWS)
            kernel[BLOCKS, THREADS](views, out, ROWS)
            counts = arena.counts()
            assert counts.failed == 0 and counts.made > counts.freed
            made = strings.column_from_managed_udf_string_array(out, pool)
            token = made.publish(keep=True, stream=0)
            strings.free_managed_udf_string_array[BLOCKS, THREADS](out, ROWS)
            assert arena.counts().made == arena.counts().freed
            with Child(read, pool.name, token) as other:
                assert other.hear() == [None if row is None else expected(row) for row in rows]
                other.end()
            made.release()
        arena.stop()


def test_an_arena_that_is_too_small(numba_cuda: Any) -> None:
    import xmem.numba as strings
    with pytest.raises(ValueError, match="1024 bytes at .* are no room for an arena"):
        strings.Arena(numba_cuda.device_array(1024, "u1"))


def test_the_first_program(tmp_path: Path) -> None:
    (program,) = (program for title, _, program in sections(TOP / "docs/device.md")
                  if title.startswith("Python"))
    run(program, tmp_path, "first.py")
