# SPDX-License-Identifier: MIT
"""Subscriptions: what is received, in which order, and how they end."""
from __future__ import annotations

import errno
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xmem
from support import LIMIT, PACKAGE, Thread, fresh_name, pair, published

Pair = tuple[xmem.BufferPool, xmem.BufferPool]


@pytest.fixture
def pools() -> Iterator[Pair]:
    with pair() as both:
        yield both


def put(writer: xmem.BufferPool, *numbers: int) -> list[int]:
    """Publish each number as the one byte of a buffer; the tokens."""
    tokens = []
    for number in numbers:
        guard = writer.acquire_cpu(1)
        memoryview(guard)[0] = number
        tokens.append(guard.publish())
    return tokens


def take(subscription: xmem.Subscription) -> list[int]:
    """All that is there."""
    got = []
    while True:
        try:
            with subscription.receive(0) as guard:
                got.append(bytes(guard)[0])
        except (xmem.WouldBlock, xmem.Ended):
            return got


def test_publications_come_in_order(pools: Pair) -> None:
    writer, reader = pools
    put(writer, 1)
    subscription = reader.subscribe()
    put(writer, 2, 3, 4)
    assert take(subscription) == [2, 3, 4] and subscription.lost == 0
    assert subscription.publisher == writer.client and subscription.pool is reader
    with pytest.raises(xmem.WouldBlock):
        subscription.receive(timeout=0)
    with pytest.raises(xmem.TimedOut):
        subscription.receive(0.01)


def test_history_depth_and_keep() -> None:
    with pair(keep=3) as (writer, reader):
        writer.preallocate_cpu(8, 8)
        put(writer, 1, 2, 3, 4, 5)
        with reader.subscribe(history=2) as subscription:
            assert take(subscription) == [4, 5]
            put(writer, 6)
            assert take(subscription) == [6]
        with reader.subscribe(depth=1) as subscription:
            put(writer, 7, 8, 9)
            assert take(subscription) == [9]


def test_labels_are_topics() -> None:
    name = fresh_name()
    with xmem.BufferPool(name) as reader, \
            xmem.BufferPool(name, writer=True, label="camera-1") as first, \
            xmem.BufferPool(name, writer=True, label="camera-2") as second, \
            xmem.BufferPool(name, writer=True, label="audio") as third:
        cameras = reader.subscribe(label="camera-*")
        for number, writer in enumerate((first, second, third)):
            put(writer, number)
        with cameras.receive(0) as one, cameras.receive(0) as two:
            assert {one.publisher_label, two.publisher_label} == {"camera-1", "camera-2"}
        assert take(cameras) == []
        with pytest.raises(xmem.Error) as caught:
            reader.subscribe(label="x" * 16)
        assert caught.value.errno == errno.EINVAL


def test_one_publisher(pools: Pair) -> None:
    writer, reader = pools
    with writer.reopen() as other:
        subscription = reader.subscribe(publisher=other.client)
        put(writer, 1)
        put(other, 2)
        assert take(subscription) == [2]
        with pytest.raises(xmem.Exists):
            reader.subscribe(publisher=other.client)
        with pytest.raises(xmem.NotFound):
            reader.subscribe(publisher=60, timeout=0)


def test_nobody_publishes(pools: Pair) -> None:
    writer, reader = pools
    with xmem.BufferPool(fresh_name()) as alone:
        with pytest.raises(xmem.NotFound):
            alone.subscribe(timeout=0)
        with pytest.raises(xmem.TimedOut):
            alone.subscribe(timeout=0.01)
        with pytest.raises(xmem.NotFound):
            alone.receive(0)


def test_a_publisher_that_waits() -> None:
    with pair(wait_bound=60) as (writer, reader):
        writer.preallocate_cpu(8, 2)
        subscription = reader.subscribe(waits=True)
        put(writer, 1, 2)
        with pytest.raises(xmem.WouldBlock):
            writer.acquire_cpu(1, timeout=0)
        thread = Thread(lambda: put(writer, 3))
        thread.waits()
        assert take(subscription)[:2] == [1, 2]
        thread.get()
        assert subscription.lost == 0
    with pair() as (writer, reader), pytest.raises(xmem.Error) as caught:
        reader.subscribe(waits=True, lasts=False)
    assert caught.value.errno == errno.EOPNOTSUPP


def test_a_slow_subscriber_loses_the_oldest(pools: Pair) -> None:
    writer, reader = pools
    writer.preallocate_cpu(8, 4)
    subscription = reader.subscribe()
    put(writer, *range(20))
    got = take(subscription)
    assert got == sorted(got) and got[-1] == 19
    assert subscription.lost + len(got) == 20


def test_iteration_ends_with_the_publishers() -> None:
    name = fresh_name()
    reader = xmem.BufferPool(name)
    writer = xmem.BufferPool(name, writer=True)
    subscription = reader.subscribe(lasts=False)
    put(writer, 1, 2, 3)
    thread = Thread(lambda: [bytes(guard)[0] for guard in subscription])
    thread.waits()
    put(writer, 4)
    writer.close()
    assert thread.get() == [1, 2, 3, 4]
    assert list(subscription) == []
    with pytest.raises(xmem.Ended) as caught:
        subscription.receive()
    assert isinstance(caught.value, BrokenPipeError)
    reader.close()


def test_receiving_of_any_subscription(pools: Pair) -> None:
    writer, reader = pools
    with writer.reopen() as other:
        ours = reader.subscribe(publisher=writer.client)
        theirs = reader.subscribe(publisher=other.client)
        put(writer, 1)
        put(other, 2)
        assert {bytes(reader.receive(0))[0] for _ in range(2)} == {1, 2}
        with pytest.raises(xmem.WouldBlock):
            reader.receive(0)
        ours.close()
        theirs.close()


def test_a_closed_subscription(pools: Pair) -> None:
    writer, reader = pools
    subscription = reader.subscribe()
    put(writer, 1)
    held = subscription.receive(0)
    with subscription as same:
        assert same is subscription and iter(subscription) is subscription
    assert subscription.closed and "closed" in repr(subscription)
    subscription.close()
    for use in (lambda: subscription.receive(0), lambda: next(subscription), subscription.fileno,
                lambda: subscription.lost, lambda: subscription.publisher):
        with pytest.raises(xmem.Released, match="this subscription has been closed"):
            use()
    assert bytes(held) == b"\1"


def test_it_is_not_pickled(pools: Pair) -> None:
    with pytest.raises(TypeError, match="pickle the pool"):
        pickle.dumps(pools[1].subscribe())


def test_it_keeps_its_pool() -> None:
    with pair() as (writer, _):
        subscription = xmem.BufferPool(writer.name).subscribe()
        put(writer, 5)
        assert take(subscription) == [5] and not subscription.pool.closed


junk = st.one_of(st.none(), st.text(max_size=3), st.floats(), st.booleans(), st.integers(),
                 st.just(object()))


@settings(max_examples=150)
@given(st.dictionaries(st.sampled_from(["publisher", "label", "waits", "history", "depth",
                                        "nonsense"]), junk, max_size=3))
def test_any_keywords(keywords: dict[str, Any]) -> None:
    with pair() as (_, pool):
        try:
            pool.subscribe(timeout=0, **keywords).close()
        except (xmem.Error, TypeError, ValueError):
            pass
        assert not pool.closed


@settings(max_examples=60)
@given(junk)
def test_any_timeout(value: Any) -> None:
    with pair() as (writer, reader):
        with reader.subscribe() as subscription:
            published(writer)
            try:
                subscription.receive(value)
            except (TypeError, ValueError):
                subscription.receive(0)
            with pytest.raises(xmem.WouldBlock):
                subscription.receive(0)


# ---- subscriptions that last ----

def test_a_subscription_that_lasts_needs_no_publisher() -> None:
    name = fresh_name()
    with xmem.BufferPool(name, writer=False) as reader, reader.subscribe() as frames:
        for number in range(5):
            with pytest.raises(xmem.NotYet):
                frames.receive(0)
            with pytest.raises(xmem.NotYet):
                frames.receive(0.001)
            with xmem.BufferPool(name, writer=True) as writer:
                with pytest.raises(xmem.WouldBlock):
                    frames.receive(0)           # the writer is followed from here on
                assert writer.wait_for_subscribers(1, LIMIT) == 1
                put(writer, number)
            with frames.receive(LIMIT) as guard:
                assert bytes(guard)[0] == number
        assert frames.lost == 0


def test_what_a_subscription_that_lasts_cannot_have() -> None:
    with pair() as (_, reader):
        with pytest.raises(xmem.Error, match="with lasts=True"):
            reader.subscribe(lasts=True, timeout=1)
        with pytest.raises(xmem.Error, match="exclude each other"):
            reader.subscribe(lasts=True, publisher=0)
        reader.subscribe(lasts=True, timeout=0).close()     # it does not wait anyway


@pytest.mark.parametrize("how", ["lasts=False", "timeout=0", "timeout=30", "publisher"])
def test_what_ends_with_its_publishers(how: str) -> None:
    name = fresh_name()
    with xmem.BufferPool(name, writer=False) as reader:
        writer = xmem.BufferPool(name, writer=True)
        frames = (reader.subscribe(lasts=False) if how == "lasts=False" else
                  reader.subscribe(publisher=writer.client) if how == "publisher" else
                  reader.subscribe(timeout=int(how[len("timeout="):])))
        put(writer, 1)
        writer.close()
        assert [bytes(guard)[0] for guard in frames] == [1]
        with pytest.raises(xmem.Ended):
            frames.receive(0)


def test_an_iteration_goes_on_with_the_next_publisher() -> None:
    name = fresh_name()
    with xmem.BufferPool(name, writer=False) as reader, reader.subscribe() as frames:
        for number in range(3):
            with xmem.BufferPool(name, writer=True) as writer:
                put(writer, number)
                with next(frames) as guard:         # it was published before it was followed
                    assert bytes(guard)[0] == number
        thread = Thread(lambda: next(frames))
        thread.waits()
        with xmem.BufferPool(name, writer=True) as writer:
            put(writer, 9)
            assert bytes(thread.get())[0] == 9


PEER = """
import sys, xmem
name, mine, kept = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])

def step(what):
    print(what, flush=True)
    assert sys.stdin.readline()

with xmem.BufferPool(name, keep=kept) as pool, pool.subscribe() as frames:
    step("subscribed")
    for number in range(max(kept, 1)):
        with pool.acquire_cpu(1) as guard:
            memoryview(guard)[0] = mine + number
            guard.publish()
    step("published")
    got = []
    for guard in frames:
        with guard:
            got.append(bytes(guard)[0])
        if len(got) == max(kept, 1):
            break
    step(f"received {got} {frames.lost}")
"""


class Peer:
    """A process that does a step after each line of ours, and says what it has done."""

    def __init__(self, name: str, mine: int, kept: int) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PEER, name, str(mine), str(kept)], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": PACKAGE})

    def go(self) -> None:
        assert self.process.stdin
        print(file=self.process.stdin, flush=True)

    def says(self, what: str) -> None:
        assert self.process.stdout
        assert self.process.stdout.readline() == what + "\n"

    def ends(self) -> None:
        self.go()
        self.process.communicate(timeout=LIMIT)
        assert self.process.returncode == 0


@pytest.mark.parametrize("kept", [0, 3])
@pytest.mark.parametrize("order", ["one after the other", "at once", "the first one waits"])
def test_processes_that_subscribe_first_and_publish_then(order: str, kept: int) -> None:
    name = fresh_name()
    one, other = Peer(name, 10, kept), Peer(name, 20, kept)
    one.says("subscribed")
    other.says("subscribed")
    one.go()
    if order != "at once":
        one.says("published")
    if order == "the first one waits":
        one.go()
    other.go()
    other.says("published")
    if order == "at once":
        one.says("published")
    if order != "the first one waits":
        one.go()
    other.go()
    numbers = range(max(kept, 1))
    one.says(f"received {[20 + number for number in numbers]} 0")
    other.says(f"received {[10 + number for number in numbers]} 0")
    one.ends()
    other.ends()
