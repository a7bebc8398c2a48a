# SPDX-License-Identifier: MIT
"""Threads: objects that many threads use, or close while others use them, and calls without the
GIL."""
from __future__ import annotations

import errno
import functools
import gc
import itertools
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import xmem
from support import GIL, LIMIT, Thread, fresh_name, pair, published, python

THREADS = 8
TURNS = 100 if GIL else 400       # in which a race is to be seen; with a GIL they are slow


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
        barrier.wait(LIMIT)
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
                        guard.clone_ref().release()
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
        writer.preallocate_cpu(8, 1)
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
            writer.acquire_cpu(8, timeout=LIMIT).release()


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
        writer.preallocate_cpu(8, 1)
        held = writer.acquire_cpu(8)
        threads = [Thread(lambda: writer.acquire_cpu(8)), 
                   Thread(functools.partial(empty.subscribe, lasts=False))]
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
        writer.preallocate_cpu(8, 1)
        held = [reader.get(published(writer).token)]
        entered, go_on = threading.Event(), threading.Event()

        def hook(limbo: Any) -> None:
            entered.set()
            go_on.wait(LIMIT)

        writer.limbo_hook(hook, count=0)
        acquiring = Thread(lambda: writer.acquire_cpu(8))
        assert entered.wait(LIMIT)
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


# ---- races: each has one winner, and all others an exception ----

def ends(call: Callable[[], Any]) -> bool:
    """Has this call taken the guard? Otherwise it was refused, and says so."""
    try:
        call()
        return True
    except (xmem.NotPermitted, xmem.Released):
        return False
    except xmem.Error as error:
        assert error.errno == errno.EBUSY, error
        return False


class Meeting:
    """Where two threads meet: they go on within a microsecond of each other, on two processors."""

    def __init__(self) -> None:
        self.turns = [0, 0]

    def meet(self, number: int) -> None:
        self.turns[number] += 1
        begun = time.monotonic()
        while self.turns[1 - number] < self.turns[number]:
            waited = time.monotonic() - begun
            assert waited < LIMIT, "the other thread does not come"
            if waited > 1e-4:
                os.sched_yield()        # it may have to come to this processor


ENDS: dict[str, Callable[[xmem.BufferGuard], Any]] = {
    "release": lambda guard: guard.release(), "publish": lambda guard: guard.publish(),
    "exit": lambda guard: guard.__exit__(None, None, None),
}


@pytest.mark.parametrize("ways", [*itertools.combinations_with_replacement(ENDS, 2)])
def test_a_guard_is_ended_once(ways: tuple[str, str]) -> None:
    """By two threads at the same moment: one does it, and the other is told."""
    slots, meeting = 2, Meeting()
    calls = [ENDS[way] for way in ways]
    guards: list[xmem.BufferGuard] = []
    with pair(demand_bytes=None) as (writer, _):
        writer.preallocate_cpu(8, slots)

        def work(number: int) -> list[bool]:
            done = []
            for turn in range(TURNS):
                if not number:
                    guards.append(writer.acquire_cpu(8, timeout=LIMIT))
                meeting.meet(number)
                done.append(ends(lambda: calls[number](guards[turn])))
                meeting.meet(number)
            return done

        first, second = all_at_once(work, 2)
        assert all(guard.gone for guard in guards)
        if "exit" not in ways:              # which is content with a guard that is gone
            assert [one + other for one, other in zip(first, second)] == [1] * len(first)
        held = [writer.acquire_cpu(8, timeout=0) for _ in range(slots)]
        assert len({guard.cpu_ptr for guard in held}) == slots


def test_a_guard_ended_while_it_is_looked_at() -> None:
    """Check that the seen contents have not changed, and that the views give the buffer back."""
    meeting, guards = Meeting(), list[xmem.BufferGuard]()
    with pair(demand_bytes=None) as (writer, _):
        writer.preallocate_cpu(8, 1)

        def work(number: int) -> None:
            for turn in range(200):
                if not number:
                    guards.append(writer.acquire_cpu(8, timeout=LIMIT))
                    memoryview(guards[turn])[:] = b"contents"
                meeting.meet(number)
                guard = guards[turn]
                if number:
                    look(guard)
                elif turn % 2:
                    guard.release()
                else:
                    while not ends(guard.publish):
                        pass                # a clone of it was being made
                meeting.meet(number)

        all_at_once(work, 2)


def look(guard: xmem.BufferGuard) -> None:
    """All that looks at a guard, or shares its handle, until it is gone."""
    while not guard.gone:
        try:
            assert guard.cpu_ptr and guard.nbytes == 8
            with memoryview(guard) as view:
                assert bytes(view) == b"contents"
            shared = guard.__array_interface__["data"]
            assert bytes(memoryview(shared)) == b"contents"
            guard.__dlpack__(max_version=(1, 0))
        except (xmem.Error, BufferError):
            pass


def test_the_last_view_gives_the_buffer_back() -> None:
    """Whichever it is of those that two threads drop at the same moment."""
    meeting, views = Meeting(), list[list[memoryview]]()
    with pair(demand_bytes=None) as (writer, _):
        writer.preallocate_cpu(8, 1)

        def work(number: int) -> None:
            for turn in range(TURNS):
                if not number:
                    guard = writer.acquire_cpu(8, timeout=LIMIT)
                    views.append([memoryview(guard), memoryview(guard)])
                    guard.release()
                meeting.meet(number)
                views[turn][number].release()
                meeting.meet(number)

        all_at_once(work, 2)
        writer.acquire_cpu(8, timeout=0).release()


def test_views_are_counted() -> None:
    """Those that threads make and drop at once: none is forgotten, and none counted twice."""
    with pair(demand_bytes=None) as (writer, _):
        writer.preallocate_cpu(8, 1)
        guard = writer.acquire_cpu(8)

        def work(number: int) -> None:
            for _ in range(100 * TURNS):
                memoryview(guard).release()

        all_at_once(work, 4)
        guard.release()
        writer.acquire_cpu(8, timeout=0).release()


def test_one_hold_for_all_views() -> None:
    """Two threads that share a handle for the first time get one hold: either share keeps it."""
    meeting, guards, shares = Meeting(), list[xmem.BufferGuard](), [None, None]
    with pair(demand_bytes=None) as (writer, _):
        writer.preallocate_cpu(8, 1)

        def work(number: int) -> None:
            for turn in range(TURNS):
                if not number:
                    guards.append(writer.acquire_cpu(8, timeout=LIMIT))
                meeting.meet(number)
                shares[number] = guards[turn].__dlpack__(max_version=(1, 0))
                meeting.meet(number)
                if not number:
                    guards[turn].release()
                    shares[turn % 2] = None
                    with pytest.raises(xmem.WouldBlock):
                        writer.acquire_cpu(8, timeout=0)
                    shares[1 - turn % 2] = None

        all_at_once(work, 2)
        writer.acquire_cpu(8, timeout=0).release()


def receive_any(reader: xmem.BufferPool) -> None:
    try:
        reader.receive(0)
    except xmem.NotFound:
        pass                    # There is no subscription at the moment.


def test_a_pool_closed_under_all_that_use_it() -> None:
    """No call ends up in the pool that is opened next, at the same address as likely as not."""
    name, other = fresh_name(), fresh_name()
    calls: list[Callable[[xmem.BufferPool, int], Any]] = [
        lambda reader, token: bytes(reader.get(token)) == b"contents" or 1 / 0,
        lambda reader, token: reader.subscribe(timeout=0).close(),
        lambda reader, token: reader.claims(token),
        lambda reader, token: reader.stat(),
        lambda reader, token: reader.fileno(),
        lambda reader, token: receive_any(reader),
    ]
    with xmem.BufferPool(name, writer=True) as writer, xmem.BufferPool(other, writer=True):
        guard = published(writer)
        token = guard.token
        for turn in range(20):
            reader = xmem.BufferPool(name)
            following = reader.subscribe() if turn % 2 else None    # which keeps the address
            opened = list[xmem.BufferPool]()

            def work(number: int, reader: xmem.BufferPool = reader,
                     opened: list[xmem.BufferPool] = opened) -> None:
                if not number:
                    reader.close()
                    opened.append(xmem.BufferPool(other))
                    return
                try:
                    while True:
                        try:
                            calls[number - 1](reader, token)
                        except (xmem.WouldBlock, xmem.Exists):
                            pass
                except (xmem.Released, xmem.Canceled):
                    assert reader.closed

            all_at_once(work, 1 + len(calls))
            assert not following or not following.closed
            opened[0].close()


def test_a_pool_closed_by_many() -> None:
    name = fresh_name()
    with xmem.BufferPool(name, writer=True):
        for _ in range(60):
            reader = xmem.BufferPool(name)
            subscription = reader.subscribe()
            all_at_once(lambda number, reader=reader: reader.close(), 4)
            assert reader.closed and not subscription.closed
            all_at_once(lambda number, closed=subscription: closed.close(), 4)


def test_each_publication_is_received_once() -> None:
    """By threads that receive from one subscription, which is closed under them."""
    count, receivers = 300, 4
    with pair(wait_bound=LIMIT) as (writer, reader):
        subscription = reader.subscribe(waits=True)

        def work(number: int) -> list[int]:
            if not number:
                sizes = [8] * count + [4] * receivers
                return [writer.acquire_cpu(size, timeout=LIMIT).publish() for size in sizes]
            got: list[int] = []
            while True:
                with subscription.receive(LIMIT) as guard:
                    got.append(guard.token)
                    if guard.nbytes == 4:       # the last of this thread
                        return got

        sent, *received = all_at_once(work, 1 + receivers)
        assert sorted(token for tokens in received for token in tokens) == sorted(sent)

        def close(number: int) -> None:
            if number:
                with pytest.raises((xmem.Canceled, xmem.Released)):
                    while True:
                        subscription.receive()
            else:
                subscription.close()

        all_at_once(close, 4)


def test_guards_copied_into_each_other() -> None:
    """Each takes both: they do not wait for each other, and go when nobody copies any more."""
    with pair(demand_bytes=None) as (writer, _):
        writer.preallocate_cpu(8, 2)
        for turns in (10, 10, 10 * TURNS):
            guards: Any = [writer.acquire_cpu(8, timeout=0) for _ in range(2)]
            for guard in guards:
                memoryview(guard)[:] = b"contents"

            def work(number: int, guards: Any = guards, turns: int = turns) -> None:
                into, source = guards[number % 2], guards[1 - number % 2]
                try:
                    for _ in range(turns):
                        into.copy_from(source)
                    if number > 1:
                        assert bytes(source) == b"contents"
                        into.release()
                except (xmem.Released, BufferError):
                    pass
                except xmem.Error as error:
                    assert error.errno in (errno.EBUSY, errno.EPERM), error

            all_at_once(work, 4)
            for guard in guards:
                assert guard.gone or ends(guard.release)


def test_contents_described_while_they_are_viewed() -> None:
    """A view has the shape that it was made with, until it goes; and none is forgotten."""
    shapes = [(2, 3, 4), (24,), (4, 6), (1, 24)]
    uint8 = xmem.dtypes.number("uint8")
    with pair(demand_bytes=None) as (writer, _):
        writer.preallocate_cpu(24, 1)
        guard = writer.acquire_cpu(24)
        guard.describe_tensor(uint8, shapes[0])
        memoryview(guard).cast("B")[:] = bytes(range(24))

        def work(number: int) -> None:
            for turn in range(10 * TURNS):
                try:
                    if number == 3:
                        guard.describe_tensor(uint8, shapes[turn % len(shapes)])
                        continue
                    with memoryview(guard) as view:
                        shape = view.shape
                        assert shape in shapes and view.tobytes() == bytes(range(24))
                        assert memoryview(view).shape == shape == view.shape
                except BufferError:
                    pass

        all_at_once(work, 4)
        guard.release()
        writer.acquire_cpu(24, timeout=0).release()


def test_limbo_hooks_set_while_they_are_called() -> None:
    """Each function lives while it runs, and none is kept that was replaced."""
    with pair() as (writer, reader):
        held = reader.get(published(writer).token)
        hooks, turns = list[Any](), 10 * TURNS

        class Hook:
            def __call__(self, limbo: Any) -> None:
                assert limbo is not None

        def work(number: int) -> None:
            for _ in range(turns):
                if number % 2:
                    hook = Hook()
                    hooks.append(weakref.ref(hook))
                    writer.limbo_hook(hook, count=0)
                else:
                    writer.collect()
                    writer.acquire_cpu(8).release()

        all_at_once(work, 4)
        writer.limbo_hook(None)
        gc.collect()
        assert len(hooks) == 2 * turns and not any(hook() for hook in hooks)
        held.release()


def test_subscribing_while_the_pool_is_closed() -> None:
    """close() tells the subscriptions that there are, whoever adds to them."""
    name = fresh_name()
    with xmem.BufferPool(name, writer=True):
        for _ in range(30):
            reader = xmem.BufferPool(name)

            def work(number: int, reader: xmem.BufferPool = reader) -> None:
                try:
                    for _ in range(30):
                        try:
                            reader.subscribe(timeout=0)
                        except xmem.Exists:
                            pass
                        if number:
                            reader.cancel()
                except (xmem.NotFound, xmem.Released):
                    pass            # The wait for a writer is one, and ends with the others.
                reader.close()

            all_at_once(work, 4)
            assert reader.closed


def test_the_gil_stays_as_it_was() -> None:
    """A free-threaded Python that imports the extension goes on without a GIL, and says nothing."""
    out = python("""
import sys, sysconfig, warnings
warnings.simplefilter("error")
import xmem, xmem._torch
print(getattr(sys, "_is_gil_enabled", lambda: True)(),
      not sysconfig.get_config_var("Py_GIL_DISABLED"))
""", unset=["PYTHON_GIL"])
    assert out == f"{GIL} {GIL}\n"
