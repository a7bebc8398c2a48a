# SPDX-License-Identifier: MIT
"""How fast is copy_from compared with numpy, if the elements are in another order?

    PYTHONPATH=build/release/python python3 bench/python/copies.py [PART of a name...]

Arrays of 8 and 16 bytes an element are copied into one guard, by copy_from and by numpy's
`view[...] = array`, in turns. The best of SERIES is printed for each, and numpy's time divided by
xmem's: above 1, xmem is faster. Half a microsecond of each call is that of Python and the library,
so arrays of a few KiB say nothing about the copy. Contents are compared once.
"""
from __future__ import annotations

import os
import sys
import timeit
from collections.abc import Iterator
from typing import Any

import numpy

import xmem

SERIES, BYTES_A_SERIES = 7, 4_000_000
TYPES = "float64", "complex128"
SQUARES = 64, 100, 256, 512, 1000, 1024, 2048, 3000
PICTURES = (48, 64), (480, 640), (1080, 1920)


def sources(dtype: str) -> Iterator[tuple[str, Any]]:
    """Names, and the arrays to copy, as views of others."""
    def array(*shape: int) -> Any:
        return numpy.arange(numpy.prod(shape), dtype="int32").astype(dtype).reshape(shape)

    for side in SQUARES:
        yield f"({side}, {side}).T", array(side, side).T
    yield "(1080, 1920).T", array(1080, 1920).T
    yield "(1920, 1080).T", array(1920, 1080).T
    for height, width in PICTURES:
        planes = array(3, height, width)
        yield f"(3, {height}, {width}) to (h, w, 3)", planes.transpose(1, 2, 0)
        pixels = planes.reshape(height, width, 3)
        yield f"({height}, {width}, 3) to (3, h, w)", pixels.transpose(2, 0, 1)
    yield "(2000, 2000)[:, ::4].T", array(2000, 2000)[:, ::4].T
    yield "(1000, 1000)[::2, ::2]", array(1000, 1000)[::2, ::2]
    yield "(8, 300, 200) back to front", array(8, 300, 200).T
    yield "(100, 100, 100) back to front", array(100, 100, 100).T
    yield "(64, 1000, 16), the first two", array(64, 1000, 16).transpose(1, 0, 2)


def measure(pool: xmem.BufferPool, source: Any) -> tuple[float, float]:
    """Microseconds of copy_from, and of numpy, into the same buffer."""
    with pool.acquire_cpu(source.shape, str(source.dtype)) as guard:
        view: Any = numpy.asarray(guard)

        def xmem_copies() -> None:
            guard.copy_from(source)

        def numpy_copies() -> None:
            view[...] = source

        xmem_copies()
        assert (view == source).all()
        number = max(1, BYTES_A_SERIES // source.nbytes)
        took = [[timeit.timeit(call, number=number) / number * 1e6
                 for call in (xmem_copies, numpy_copies)] for _ in range(SERIES)]
        return min(each[0] for each in took), min(each[1] for each in took)


def main() -> None:
    print(f"{'us':48} {'xmem':>9} {'numpy':>9} {'ratio':>6}")
    largest = 3 * 1080 * 1920 * 16
    with xmem.BufferPool(f"copies-{os.getpid()}", writer=True) as pool:
        pool.preallocate_cpu(largest, 1)
        for dtype in TYPES:
            for name, source in sources(dtype):
                name = f"{dtype} {name}"
                if source.nbytes > largest or not any(
                        part in name for part in sys.argv[1:] or [""]):
                    continue
                ours, theirs = measure(pool, source)
                print(f"{name:48} {ours:9.1f} {theirs:9.1f} {theirs / ours:6.2f}", flush=True)


if __name__ == "__main__":
    main()
