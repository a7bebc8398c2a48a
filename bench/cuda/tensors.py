#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tensors on a GPU from process to process by torch.multiprocessing, as bench/gpu.c hands over
buffers: 16 of 64 KiB on each side, sent to and fro, whose contents are neither read nor written.
The result of xmem on streams in results.json, which keeps this order as well, is printed with it.

The queue is a SimpleQueue, which has no thread of its own. Each side keeps one tensor of the
other's block, so that the block stays open; without that PyTorch would open and close it each time.

It prints SKIP, and why, if torch or its CUDA is missing.
"""
import json
import statistics
import sys
import time

TENSORS = 16
BYTES = 65536
ROUNDS = 200
BATCHES = 51
XMEM_ROW = "hand-over on streams"


def skip(why):
    print(f"SKIP torch.multiprocessing: {why}")
    sys.exit(0)


def bounce(side, inbox, outbox, answer):
    """Half a round trip in nanoseconds, of each batch, into @answer."""
    import torch

    ring = [torch.empty(BYTES, dtype=torch.uint8, device="cuda:0") for _ in range(TENSORS + 1)]
    outbox.put(ring[TENSORS])
    kept = inbox.get()
    times = []
    for _ in range(BATCHES):
        start = time.perf_counter_ns()
        for n in range(ROUNDS):
            if side == 0:
                outbox.put(ring[n % TENSORS])
            tensor = inbox.get()
            del tensor
            if side == 1:
                outbox.put(ring[n % TENSORS])
        times.append((time.perf_counter_ns() - start) / (2 * ROUNDS))
    if side == 0:
        answer.put(times)
    # Nobody leaves while the other still has its tensors.
    del kept
    outbox.put(None)
    inbox.get()


def measure(multiprocessing):
    context = multiprocessing.get_context("spawn")
    there, back, answer = context.SimpleQueue(), context.SimpleQueue(), context.SimpleQueue()
    sides = [
        context.Process(target=bounce, args=(0, back, there, answer)),
        context.Process(target=bounce, args=(1, there, back, answer)),
    ]
    for process in sides:
        process.start()
    for process in sides:
        process.join()
    failed = [process.exitcode for process in sides if process.exitcode]
    if failed:
        sys.exit(f"tensors.py: a process has ended with {failed[0]}")
    return statistics.median(answer.get())


def xmem_median(path):
    with open(path, encoding="utf-8") as file:
        for row in json.load(file)["rows"]:
            if row["what"] == XMEM_ROW:
                return row["value"]["median"]
    return None


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: tensors.py RESULTS.json")
    xmem = xmem_median(sys.argv[1])
    if xmem is None:
        skip("xmem was not timed on streams: the driver is the fake one")
    try:
        import torch
        import torch.multiprocessing as multiprocessing
    except ImportError as error:
        skip(str(error))
    if not torch.cuda.is_available():
        skip(f"torch {torch.__version__} finds no GPU")
    theirs = measure(multiprocessing)
    print(f"torch {torch.__version__}, multiprocessing: {theirs:.0f} ns a hand-over; "
          f"xmem on streams {xmem:.0f} ns; {theirs / xmem:.3g} x")


if __name__ == "__main__":
    main()
