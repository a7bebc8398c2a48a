# SPDX-License-Identifier: MIT
"""Nothing grows: memory, objects and descriptors stay as they are, however often it is done."""
from __future__ import annotations

import asyncio
import functools
import gc
import os
import pickle
import sys
from collections.abc import Callable
from typing import Any

import xmem
from support import GIL, fresh_name, pair, python, sanitized


def resident() -> int:
    """Bytes of this process that are its own, and not of shared files."""
    with open("/proc/self/status", encoding="ascii") as file:
        for line in file:
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) * 1024
    raise AssertionError("the kernel does not say it")


def grown(turn: Callable[[], Any], turns: int) -> str:
    """Say what has grown in so many turns, by a block in every fourth turn or more; "": nothing."""
    gc.collect()
    memory, files = resident(), len(os.listdir("/proc/self/fd"))
    blocks = sys.getallocatedblocks()
    for _ in range(turns):
        turn()
    gc.collect()
    blocks = sys.getallocatedblocks() - blocks
    files = len(os.listdir("/proc/self/fd")) - files
    memory = resident() - memory
    if sanitized():         # it keeps freed memory for a while
        memory = 0
    if not GIL:         # CPython 3.13 then keeps a block of each cycle that has a weak reference
        blocks = 0
    flat = blocks < min(150, turns // 4) and not files and memory < 512 * 1024
    return "" if flat else f"{blocks} blocks, {files} descriptors, {memory} bytes in {turns} turns"


def stays_flat(turn: Callable[[], Any], turns: int) -> None:
    """After a warm-up of a quarter nothing grows. What Python keeps to use again comes by and by,
    so a second and third look may be needed; a leak is seen in each of them."""
    for _ in range(turns // 4):
        turn()
    looks = []
    while len(looks) < 3 and (not looks or looks[-1]):
        looks.append(grown(turn, turns))
    assert not looks[-1], looks


def test_a_hundred_thousand_buffers_are_handed_over() -> None:
    with pair() as (writer, reader):
        writer.preallocate_cpu(4096, 4)
        subscription = reader.subscribe()

        def turn() -> None:
            guard = writer.acquire_cpu(4096)
            guard.publish()
            subscription.receive(0).release()

        stays_flat(turn, 100_000)
        assert subscription.lost == 0


def test_gets_clones_and_views() -> None:
    with pair() as (writer, reader):
        guard = writer.acquire_cpu((16, 16), "float32")
        token = guard.publish(keep=True)

        def turn() -> None:
            with reader.get(token) as got, memoryview(got) as view:
                assert view.shape == (16, 16) and got.clone_ref().dtype == "float32"

        stays_flat(turn, 20_000)


def test_errors() -> None:
    with pair() as (writer, reader):
        subscription = reader.subscribe()
        gone = writer.acquire_cpu(8)
        gone.release()
        bad: Any = "now"

        def turn() -> None:
            for call in (lambda: subscription.receive(0), lambda: reader.get(1),
                         lambda: gone.token, lambda: reader.acquire_cpu(8),
                         lambda: subscription.receive(bad)):
                try:
                    call()
                except (xmem.Error, TypeError):
                    pass

        stays_flat(turn, 5_000)


def test_pools_and_subscriptions() -> None:
    name = fresh_name()
    with xmem.BufferPool(name, writer=True) as writer:

        def turn() -> None:
            with xmem.BufferPool(name) as reader, reader.subscribe() as subscription:
                reader.fileno()
                subscription.fileno()
                writer.acquire_cpu(8).publish()
                subscription.receive(0).release()
            with xmem.BufferPool(writer=True) as alone:
                alone.limbo_hook(functools.partial(print, alone), count=1)
                alone.acquire_cpu(64).release()

        stays_flat(turn, 200)


def test_messages_and_loops() -> None:
    with pair() as (writer, reader):
        guard = writer.acquire_cpu(8)
        guard.publish(keep=True)
        subscription = reader.subscribe()

        async def wait() -> None:
            task = asyncio.ensure_future(subscription.receive_async())
            await asyncio.sleep(0)
            writer.acquire_cpu(8).publish()
            (await task).release()
            task = asyncio.ensure_future(subscription.receive_async())
            await asyncio.sleep(0)
            task.cancel()

        def turn() -> None:
            pickle.loads(pickle.dumps(guard)).release()
            asyncio.run(wait())

        stays_flat(turn, 600)
        assert writer.claims(guard.token) == 0


def test_no_reference_is_lost_or_kept() -> None:
    """A build with counters of references says it of itself; here the classes' counts do."""
    with pair() as (writer, reader):
        subscription = reader.subscribe()
        classes = (xmem.BufferGuard, xmem.BufferPool, xmem.Subscription, xmem.Error)
        counts = [sys.getrefcount(cls) for cls in classes]
        for _ in range(1000):
            writer.acquire_cpu(8).publish()
            guard = subscription.receive(0)
            guard.clone_ref()
            try:
                reader.get(1)
            except xmem.Stale:
                pass
        del guard
        gc.collect()
        for cls, count in zip(classes, counts):
            assert abs(sys.getrefcount(cls) - count) <= 3, cls


def test_importing_opens_and_starts_nothing() -> None:
    out = python("""
import os, sys, threading
before = len(os.listdir("/proc/self/fd"))
import xmem
assert len(os.listdir("/proc/self/fd")) == before and threading.active_count() == 1
print([name for name in ("numpy", "torch", "multiprocessing") if name in sys.modules])
""")
    assert out == "[]\n"
