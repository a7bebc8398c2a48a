# SPDX-License-Identifier: MIT
"""numba_build.py FOLDER MAJOR.MINOR: compiles and links kernels for numba_gpu.py, without a GPU.

They are the document's kernels, one for each operation of test_numba.py, and those of arenas. Each
is a file, and index.json has their names, and a column with the expected results for each.
It needs nvJitLink.
"""
from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import numba_twin
import test_numba
from numba.cuda import types
from numba.cuda.cudadrv.driver import _have_nvjitlink
from numba_twin import ARRAY, COLUMN, FREE, column_kernel, linked
from xmem.numba import arena

WORDS, BYTES = types.CPointer(types.uint64), types.CPointer(types.uint8)
ROWS = 100_000


def main(folder: Path, capability: tuple[int, ...]) -> None:
    functions = [test_numba.udf, *test_numba.OPERATIONS]
    texts = [test_numba.ROWS, *[test_numba.TEXTS] * len(test_numba.OPERATIONS)]
    expected = [test_numba.expected, *test_numba.OPERATIONS]
    kernels = {"make_arena": (arena.make_arena.py_func, (WORDS, BYTES, types.int64)),
               "count_arena": (arena.count_arena.py_func, (WORDS, BYTES)), "free": (FREE, ARRAY)}
    index = {"entries": {}, "columns": {}}
    for number, function in enumerate(functions):
        name = f"column-{number}"
        kernels[name] = column_kernel(function), COLUMN
        index["columns"][name] = [texts[number], list(map(expected[number], texts[number]))]
    index["columns"]["column-0"] = [
        [text + str(row % 99) for row in range(ROWS) for text in [texts[0][row % len(texts[0])]]],
        [test_numba.expected(texts[0][row % len(texts[0])] + str(row % 99)) for row in range(ROWS)]]
    folder.mkdir(parents=True, exist_ok=True)
    for name, (kernel, arguments) in kernels.items():
        entry, code = linked(kernel, arguments, capability, lto=True)
        (folder / f"{name}.cubin").write_bytes(code)
        index["entries"][name] = entry
    (folder / "index.json").write_text(json.dumps(index))


if __name__ == "__main__":
    if not _have_nvjitlink():
        sys.exit("numba_build.py: nvJitLink is not installed: pip install nvidia-nvjitlink")
    with pytest.MonkeyPatch.context() as patch:
        numba_twin.prepare(patch)
        main(Path(sys.argv[1]), tuple(map(int, sys.argv[2].split("."))))
