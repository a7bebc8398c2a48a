# SPDX-License-Identifier: MIT
"""How long does it take to hand a tensor over through a queue of torch.multiprocessing?

A hand-over is: put; the consumer, a spawned process, reads a float of each page, drops the tensor
and answers with the sum; the answer is there and right. "fresh" tensors are made for each hand-over
(not timed), "reused" ones are handed over again and again, with another number written into them.

The ways take turns, a batch each, in pairs of processes of their own, so that all see one machine
at one time. The ratio of medians to file_descriptor, which is torch's default, is judged: of xmem,
or of xmem with its allocator if that is faster. "a number" goes through such a queue without a
tensor: nothing can be faster than that.
"""
from __future__ import annotations

import multiprocessing
import statistics
import struct
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import transports

PAGE_FLOATS = 1024
ANSWER = struct.Struct("d")


@dataclass(frozen=True)
class Case:
    """One row: a size, and whether the tensor is handed over once or many times."""

    label: str
    floats: int         # 0: a number instead of a tensor
    fresh: bool
    batch: int          # hand-overs of a turn
    target: float       # how many times faster than file_descriptor; 0: none


CASES = (
    Case("6 MiB, fresh", 6 << 18, True, 8, 8.0),
    Case("6 MiB, reused", 6 << 18, False, 20, 10.0),
    Case("64 KiB, fresh", 64 << 8, True, 20, 5.0),
    Case("64 KiB, reused", 64 << 8, False, 20, 5.0),
    Case("a number", 0, True, 20, 0.0),
)


def consume(name: str, queue, answers: Connection) -> None:
    """The consumer: answers each tensor with the sum of a float a page, until it gets None."""
    transports.choose(name)
    answers.send_bytes(b"ready")
    while (tensor := queue.get()) is not None:
        if isinstance(tensor, int):
            answers.send_bytes(ANSWER.pack(tensor))
            continue
        total = float(tensor[::PAGE_FLOATS].sum())
        del tensor
        answers.send_bytes(ANSWER.pack(total))


def hand_over(case: Case, queue, answers: Connection) -> list[int]:
    """Do one turn. Returns the nanoseconds of each hand-over."""
    import torch

    tensor: Any = torch.zeros(case.floats)
    times = []
    for number in range(case.batch):
        if not case.floats:
            tensor = number
        elif case.fresh:
            tensor = torch.full((case.floats,), float(number))
        else:
            tensor[0] = number
        start = time.perf_counter_ns()
        queue.put(tensor)
        total, = ANSWER.unpack(answers.recv_bytes())
        times.append(time.perf_counter_ns() - start)
        pages = case.floats // PAGE_FLOATS if case.fresh and case.floats else 1
        expected = number * pages
        if total != expected:
            raise AssertionError(f"the consumer read {total}, not {expected}")
    return times


def produce(name: str, orders: Connection) -> None:
    """The producer of one way: starts its consumer, and does turns as it is told."""
    import torch.multiprocessing

    transports.choose(name)
    context = torch.multiprocessing.get_context("spawn")
    queue = context.SimpleQueue()
    answers, far = context.Pipe()
    consumer = context.Process(target=consume, args=(name, queue, far))
    consumer.start()
    far.close()
    answers.recv_bytes()
    orders.send("ready")
    while (index := orders.recv()) is not None:
        orders.send(hand_over(CASES[index], queue, answers))
    queue.put(None)
    consumer.join()


def measure(names: list[str], rounds: int) -> dict[str, list[list[int]]]:
    """For each way and case, the nanoseconds of its hand-overs."""
    context = multiprocessing.get_context("spawn")
    ends: dict[str, Connection] = {}
    producers = []
    for name in names:
        ends[name], far = context.Pipe()
        producers.append(context.Process(target=produce, args=(name, far)))
        producers[-1].start()
        far.close()
    for name in names:
        ends[name].recv()
    times: dict[str, list[list[int]]] = {name: [[] for _ in CASES] for name in names}
    for turn in range(rounds + 1):
        for index in range(len(CASES)):
            for name in names:
                ends[name].send(index)
                got = ends[name].recv()
                if turn:                # the first one warms up
                    times[name][index] += got
    for name in names:
        ends[name].send(None)
    for producer in producers:
        producer.join()
        if producer.exitcode:
            raise AssertionError(f"a producer ended with {producer.exitcode}")
    return times


def report(times: dict[str, list[list[int]]]) -> bool:
    """Print the table. Are all targets met?"""
    names = list(times)
    ours = [name for name in names if name.startswith("xmem")]
    met = True
    print("| median, us | " + " | ".join(names) + " | than file_descriptor | than file_system | "
          "target | |")
    print("|---|" + "---:|" * (len(names) + 3) + "---|")
    for index, case in enumerate(CASES):
        medians = {name: statistics.median(times[name][index]) / 1e3 for name in names}
        row = f"| {case.label} | " + " | ".join(f"{medians[name]:.0f}" for name in names)
        if case.target and ours:
            best = min(medians[name] for name in ours)
            ratio = medians["file_descriptor"] / best
            good = ratio >= case.target
            met = met and good
            row += (f" | {ratio:.1f} x | {medians['file_system'] / best:.1f} x | "
                    f"{case.target:.0f} x | {'met' if good else 'MISSED'} |")
        else:
            row += " | | | | |"
        print(row)
    return met


def main(rounds: int = 15) -> bool:
    """Measure and print; True: all targets are met."""
    names = transports.available()
    if "xmem" in names and transports.has_allocator():
        names.append(transports.ALLOCATOR)
    return report(measure(names, rounds))


if __name__ == "__main__":
    raise SystemExit(0 if main() else 1)
