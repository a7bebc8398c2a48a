# SPDX-License-Identifier: MIT
"""Threads: the same objects used by many, closed under them, and who keeps the GIL."""
from __future__ import annotations

import errno
import functools
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import xmem
from support import Thread, fresh_name, pair, published

THREADS = 8


@pytest.fixture(autouse=True)
def switching() -> Iterator[None]:
    """Threads take turns after 10 us instead of 5 ms."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def all_at_once(call: Callable[[int], Any], count: int = THREADS) -> list[Any]:
    barrier = threading.Barrier(count)

    def run(number: int) -> Any:
        barrier.wait(30)
        return call(number)

    threads = [Thread(functools.partial(run, number)) for number in range(count)]
    return [thread.get() for thread in threads]


def test_each_thread_publishes_gets_and_releases() -> None:
    with pair() as (writer, reader):
        subscription = reader.subscribe()

        def work(number: int) -> int:
            done = 0
            for turn in range(200):
                contents = bytes([number, turn]) * 50
                guard = writer.acquire_cpu(len(contents))
                memoryview(guard)[:] = contents
                token = guard.publish(keep=True)
                with reader.get(token) as other, memoryview(other) as view:
                    assert bytes(view) == contents == bytes(guard)
                try:
                    with subscription.receive(0) as got:
                        done += len(bytes(got)) == 100
                except xmem.WouldBlock:
                    pass
                guard.release()
            return done

        assert sum(all_at_once(work)) > 0


def test_one_guard_released_by_one_and_used_by_all() -> None:
    """Each use succeeds or raises Released or EBUSY; exactly one release does."""
    with pair() as (writer, reader):
        for turn in range(60):
            guard = published(writer)
            if turn % 2:
                guard = writer.get(guard.token)

            def work(number: int, guard: xmem.BufferGuard = guard) -> int:
                try:
                    for _ in range(3):
                        assert guard.token and guard.nbytes == 8
                        assert bytes(guard) == b"contents"
                        guard.clone().release()
                        if number % 3 == 1:
                            guard.offer()
                        if number % 3 == 2:
                            guard.forward(keep=True, timeout=0)
                    guard.release()
                    return 1
                except xmem.Released:
                    return 0
                except xmem.Error as error:
                    assert error.errno == errno.EBUSY, error
                    return 0

            assert sum(all_at_once(work)) <= 1
            assert guard.gone or guard.token


def test_one_guard_published_by_many() -> None:
    with pair() as (writer, reader):
        subscription = reader.subscribe()
        for _ in range(60):
            guard = writer.acquire_cpu(8)

            def work(number: int, guard: xmem.BufferGuard = guard) -> int:
                try:
                    return guard.publish()
                except (xmem.Released, xmem.NotPermitted):
                    return 0

            tokens = [token for token in all_at_once(work, 4) if token]
            assert len(tokens) == 1 and guard.gone
            assert subscription.receive(0).token == tokens[0]


def test_views_made_and_dropped_while_the_guard_goes() -> None:
    with pair() as (writer, _):
        writer.preallocate_cpu(1, 8)
        for _ in range(60):
            guard = published(writer)

            def work(number: int, guard: xmem.BufferGuard = guard) -> None:
                try:
                    for _ in range(5):
                        with memoryview(guard) as view:
                            assert bytes(view) == b"contents"
                    guard.release()
                except xmem.Released:
                    pass

            all_at_once(work, 4)
            del work
            writer.acquire_cpu(8, timeout=10).release()


@pytest.mark.parametrize("close", ["subscription", "pool"])
def test_closing_ends_a_receive(close: str) -> None:
    with pair() as (_, reader):
        subscription = reader.subscribe()
        threads = [Thread(subscription.receive) for _ in range(3)]
        for thread in threads:
            thread.waits()
        (subscription if close == "subscription" else reader).close()
        for thread in threads:
            with pytest.raises(xmem.Canceled):
                thread.get()


def test_closing_ends_an_acquire_and_a_subscribe() -> None:
    with pair() as (writer, _), xmem.BufferPool(fresh_name()) as empty:
        writer.preallocate_cpu(1, 8)
        held = writer.acquire_cpu(8)
        threads = [Thread(lambda: writer.acquire_cpu(8)), Thread(empty.subscribe)]
        for thread in threads:
            thread.waits()
        writer.close()
        empty.close()
        for thread in threads:
            with pytest.raises((xmem.Canceled, xmem.Released)):
                thread.get()
        held.release()


def test_closing_while_others_get() -> None:
    """With claims, so that a get asks the host without the GIL, and without."""
    name = fresh_name()
    with xmem.BufferPool(name, writer=True) as writer:
        for turn in range(20):
            reader = xmem.BufferPool(name)
            guard = published(writer)
            if turn % 2:
                guard.offer(1000)
            token = guard.token

            def work(number: int, reader: xmem.BufferPool = reader, token: int = token) -> None:
                try:
                    for _ in range(20 if number else 3):
                        assert bytes(reader.get(token)) == b"contents"
                    reader.close()
                except xmem.Released:
                    pass

            all_at_once(work, 4)
            assert reader.closed
            if turn % 2:
                writer.void_claims(token)


def test_closing_in_a_limbo_hook_s_time() -> None:
    """Another thread that closes the pool waits until the hook has returned."""
    with pair() as (writer, reader):
        writer.preallocate_cpu(1, 8)
        held = [reader.get(published(writer).token)]
        entered, go_on = threading.Event(), threading.Event()

        def hook(limbo: Any) -> None:
            entered.set()
            go_on.wait(30)

        writer.limbo_hook(hook, count=0)
        acquiring = Thread(lambda: writer.acquire_cpu(8))
        assert entered.wait(30)
        closing = Thread(writer.close)
        closing.waits()
        go_on.set()
        closing.get()
        with pytest.raises((xmem.Canceled, xmem.Released)):
            acquiring.get()
        held.clear()


def test_a_wait_lets_other_threads_run() -> None:
    with pair() as (writer, reader):
        subscription = reader.subscribe()
        thread = Thread(subscription.receive)
        thread.waits()
        token = writer.acquire_cpu(8).publish()
        assert thread.get().token == token


def test_one_guard_thrown_away_and_looked_at() -> None:
    """Giving up what is being written lets go of the GIL, and the guard is gone before."""
    with pair() as (writer, _):
        for _ in range(40):
            guard = writer.acquire_cpu(8)

            def work(number: int, guard: xmem.BufferGuard = guard) -> None:
                try:
                    while not number:
                        guard.release()
                    while True:
                        assert guard.nbytes == 8 and not guard.token
                except xmem.Released:
                    pass

            all_at_once(work)
