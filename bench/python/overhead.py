# SPDX-License-Identifier: MIT
"""What does Python add to the fast path of C?

C's time is that of `build/release/bench --loop get`, by the difference of two numbers of rounds,
and Python's is the best of several series of timeit. Both take turns, so that both see one machine
at one time. A receive needs a publication, so the time of a writer without subscribers is
subtracted from the time of whole hand-overs.
"""
from __future__ import annotations

import os
import subprocess
import time
import timeit
from pathlib import Path

import numpy

import xmem

BENCH = Path(__file__).parents[2] / "build" / "release" / "bench"
FEW, MANY = 200_000, 3_200_000
NUMBER, SERIES = 20_000, 15
GET_TARGET_NS, RECEIVE_TARGET_NS = 250.0, 1500.0


def c_get_ns() -> float:
    """Nanoseconds of xmem_get and xmem_release in C."""
    took = []
    for rounds in (FEW, MANY):
        begin = time.perf_counter_ns()
        subprocess.run([BENCH, "--loop", "get", "--rounds", str(rounds)], check=True)
        took.append(time.perf_counter_ns() - begin)
    return (took[1] - took[0]) / (MANY - FEW)


def ns(call: object) -> float:
    """Nanoseconds of one call."""
    return timeit.timeit("call()", globals={"call": call}, number=NUMBER) / NUMBER * 1e9


def row(what: str, value: float, target: float) -> bool:
    """Print a row; is the target reached?"""
    good = value <= target
    print(f"{what:44} {value:8.0f} ns   target {target:6.0f} ns   {'' if good else 'missed'}")
    return good


def main() -> bool:
    """Measure and print; True: the targets are reached."""
    name = f"overhead-{os.getpid()}"
    with xmem.BufferPool(name, writer=True) as writer, xmem.BufferPool(name) as reader, \
            reader.subscribe(timeout=0) as frames, \
            xmem.BufferPool(name + "-alone", writer=True) as alone:
        token = writer.acquire_cpu((64,), "float32").publish()
        guard = frames.receive()
        get, receive = reader.get, frames.receive

        def get_and_release() -> None:
            get(token).release()

        def publish() -> None:
            alone.acquire_cpu((64,), "float32").publish()

        def hand_over() -> None:
            writer.acquire_cpu((64,), "float32").publish()
            numpy.asarray(receive())

        c, python, published, whole, array = [], [], [], [], []
        for _ in range(SERIES):
            c.append(c_get_ns())
            python.append(ns(get_and_release))
            published.append(ns(publish))
            whole.append(ns(hand_over))
            array.append(ns(lambda: numpy.asarray(guard)))
        print(f"{'get and release, C':44} {min(c):8.0f} ns")
        print(f"{'get and release, Python':44} {min(python):8.0f} ns")
        good = row("get and release, Python above C", min(python) - min(c), GET_TARGET_NS)
        print(f"{'numpy.asarray of a guard':44} {min(array):8.0f} ns")
        print(f"{'acquire_cpu with a shape, and publish':44} {min(published):8.0f} ns")
        good &= row("receive as a numpy.ndarray, and drop it", min(whole) - min(published),
                    RECEIVE_TARGET_NS)
        return good


if __name__ == "__main__":
    raise SystemExit(not main())
