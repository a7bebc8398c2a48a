#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""reader.py POOL: hold the column that the writer publishes, wait until the writer has ended, and
print the rows. The column is complete although nobody else has it any more.
"""
import sys

import pyarrow
import xmem


def receive_last(pool):
    """The newest publication of a writer that has ended; None: it has ended without any."""
    last = None
    for guard in pool.subscribe(history=1, lasts=False):
        print("reader.py: holding a column", file=sys.stderr, flush=True)
        last = guard
    return last


def rows_of(guard):
    """The column as Arrow sees it: on the CPU without a copy. pyarrow does not read GPUs."""
    if not guard.is_cuda:
        return pyarrow.array(guard)
    plan, data = guard.strings(), pyarrow.py_buffer(guard.copy_to_host())
    validity = None
    if plan.validity_at is not None:
        validity = data.slice(plan.validity_at, (plan.rows + 7) // 8)
    offsets = data.slice(plan.offsets_at, 4 * (plan.rows + 1))
    return pyarrow.Array.from_buffers(pyarrow.string(), plan.rows,
                                      [validity, offsets, data.slice(plan.chars_at, plan.chars)])


def main():
    with xmem.BufferPool(sys.argv[1] if len(sys.argv) > 1 else "strings") as pool:
        guard = receive_last(pool)
    if guard is None:
        sys.exit("reader.py: the writer has published nothing")
    with guard:
        rows = rows_of(guard)
        rows.validate(full=True)
        for row in rows.to_pylist():
            print("null" if row is None else row)
        del rows


if __name__ == "__main__":
    try:
        main()
    except (OSError, pyarrow.ArrowException) as error:
        sys.exit(f"reader.py: {error}")
