#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tensors on a GPU from process to process by torch.multiprocessing, as bench/streams.c hands over
buffers: 16 of 64 KiB on each side, sent to and fro, with no work, 100 us and 1 ms of work on the
stream before each of them. Prints a line for each amount of work: its name and the nanoseconds of
a hand-over, as half a round trip with both streams idle at the end.

The queue is a SimpleQueue, which has no thread of its own. Each side keeps one tensor of the
other's block, so that the block stays open; without that PyTorch would open and close it each time.

It prints SKIP, and why, if torch or its CUDA is missing.
"""
import statistics
import sys
import time

TENSORS = 16
BYTES = 65536
WORK_BYTES = 64 << 20
HOPS = 20
WORKS = (("no work", 0, 51), ("100 us work", 100_000, 51), ("1 ms work", 1_000_000, 15))


def skip(why):
    print(f"SKIP torch.multiprocessing: {why}")
    sys.exit(0)


def nanoseconds(torch, call):
    torch.cuda.synchronize()
    start = time.perf_counter_ns()
    call()
    torch.cuda.synchronize()
    return time.perf_counter_ns() - start


def bounce(side, inbox, outbox, answer):
    """The median time of a hand-over for each amount of work, into @answer."""
    import torch

    ring = [torch.empty(BYTES, dtype=torch.uint8, device="cuda:0") for _ in range(TENSORS + 1)]
    scratch = torch.empty(WORK_BYTES, dtype=torch.uint8, device="cuda:0")
    outbox.put(ring[TENSORS])
    kept = inbox.get()

    def work(fills):
        for _ in range(fills):
            scratch.fill_(1)

    def batch(fills):
        for n in range(HOPS):
            if side == 0:
                work(fills)
                outbox.put(ring[n % TENSORS])
            tensor = inbox.get()
            del tensor
            if side == 1:
                work(fills)
                outbox.put(ring[n % TENSORS])

    results = []
    for _, wanted, batches in WORKS:
        fills = 0
        if side == 0:
            work(50)
            fills = int(wanted / (nanoseconds(torch, lambda: work(50)) / 50)) + 1 if wanted else 0
            outbox.put(fills)
        else:
            fills = inbox.get()
        batch(fills)
        times = [nanoseconds(torch, lambda: batch(fills)) / (2 * HOPS) for _ in range(batches)]
        results.append(statistics.median(times))
    if side == 0:
        answer.put(results)
    # No side ends while the other one still has its tensors.
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
    return answer.get()


def main():
    if len(sys.argv) != 1:
        sys.exit("usage: tensors.py")
    try:
        import torch
        import torch.multiprocessing as multiprocessing
    except ImportError as error:
        skip(str(error))
    if not torch.cuda.is_available():
        skip(f"torch {torch.__version__} finds no GPU")
    print(f"torch.multiprocessing of torch {torch.__version__}")
    for (name, _, _), ns in zip(WORKS, measure(multiprocessing)):
        print(f"{name}\t{ns:.0f}")


if __name__ == "__main__":
    main()
