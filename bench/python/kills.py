# SPDX-License-Identifier: MIT
"""How much shared memory is left when consumers are killed, again and again?

A producer hands eight tensors of 64 KiB to a consumer, which keeps them and is killed by SIGKILL,
100 times. With "in flight" the consumer is killed before it has read them. Then the producer drops
all tensors, and the shared memory that is left while it lives is counted: bytes and files below
/dev/shm, descriptors of the producer for shared memory, or buffers of the pool that a process holds
or that are set aside. After that the producer is killed.
"""
from __future__ import annotations

import gc
import multiprocessing
import os
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import transports

KILLS = 100
TENSORS = 8
FLOATS = 64 << 8


@dataclass
class Left:
    """Count the objects of one way, in one way."""

    nbytes: int
    things: int
    what: str


def keep(queue: Any, answers: Connection, read: bool) -> None:
    """The consumer: reads what comes, or only says that it is there."""
    kept = [queue.get() for _ in range(TENSORS)] if read else []
    answers.send_bytes(bytes([len(kept)]))
    answers.recv_bytes()


def in_files() -> Left:
    """Count the files of torch's two ways in /dev/shm, and those of this process that have no
    name."""
    named = [os.stat(f"/dev/shm/{name}").st_size for name in os.listdir("/dev/shm")
             if name.startswith("torch_")]
    unnamed = []
    for number in os.listdir("/proc/self/fd"):
        try:
            where = os.readlink(f"/proc/self/fd/{number}")
            if where.startswith("/dev/shm/torch_"):
                unnamed.append(os.stat(f"/proc/self/fd/{number}").st_size)
        except OSError:
            pass            # the descriptor of the folder itself
    return Left(sum(named + unnamed), len(named) + len(unnamed), "segments")


def in_pool() -> Left:
    """Count the buffers of the pool that are in use by any process."""
    import xmem
    import xmem.torch

    with xmem.BufferPool(xmem.torch.installed(), writer=True, existing=True) as pool:
        pool.collect()
        info = pool.stat()
        slots = [pool.slot_info(number) for number in range(info.slots)]
    used = [slot.bytes for slot in slots if slot.holds or slot.claims]
    return Left(sum(used), len(used), "buffers")


def count(name: str) -> Left:
    gc.collect()
    return in_pool() if name == "xmem" else in_files()


def produce(name: str, far: Connection, read: bool) -> None:
    """The producer of one way: reports what is left, and waits to be killed."""
    import torch
    import torch.multiprocessing

    transports.choose(name)
    context = torch.multiprocessing.get_context("fork")     # 100 spawned ones take minutes
    for _ in range(KILLS):
        queue = context.SimpleQueue()
        answers, other = context.Pipe()
        consumer = context.Process(target=keep, args=(queue, other, read))
        consumer.start()
        for number in range(TENSORS):
            queue.put(torch.full((FLOATS,), float(number)))
        answers.recv_bytes()
        consumer.kill()
        consumer.join()
        answers.close()
        other.close()
        queue.close()
        del queue
    far.send(count(name))
    far.recv()


def left_by(name: str, read: bool) -> tuple[Left, Left | None]:
    """Get what is left while the producer lives, and after it has also been killed."""
    context = multiprocessing.get_context("spawn")
    near, far = context.Pipe()
    producer = context.Process(target=produce, args=(name, far, read))
    producer.start()
    far.close()
    living: Left = near.recv()
    producer.kill()
    producer.join()
    near.close()
    if name == "xmem":
        return living, None         # the pool has ended with its last process
    return living, in_files()


def main() -> bool:
    """Print the table; True: xmem leaves nothing of what consumers had."""
    good = True
    print(f"| {KILLS} consumers killed, {TENSORS} tensors of 64 KiB each | left while the producer "
          "lives | after it is killed, too |")
    print("|---|---:|---:|")
    for read in (True, False):
        for name in transports.available():
            before = in_files()
            living, dead = left_by(name, read)
            after = Left(0, 0, living.what) if dead is None else \
                Left(dead.nbytes - before.nbytes, dead.things - before.things, dead.what)
            cells = [f"{left.things} {left.what}, {left.nbytes / 1e6:.1f} MB"
                     for left in (living, after)]
            print(f"| {name}, {'held' if read else 'in flight'} | " + " | ".join(cells) + " |")
            if name == "xmem" and read:
                good = living.things == 0
    print("\nxmem keeps what is in flight for a consumer to come, while its sender lives; "
          "install(in_flight=SECONDS) bounds that.")
    return good


if __name__ == "__main__":
    raise SystemExit(0 if main() else 1)
