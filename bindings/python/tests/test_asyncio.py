# SPDX-License-Identifier: MIT
"""Event loops: many coroutines that wait, are canceled, have theirs closed; and no busy loop."""
from __future__ import annotations

import asyncio
import gc
import os
import time
from collections.abc import Coroutine
from typing import Any

import pytest

import xmem
from support import LIMIT, Thread, fresh_name, pair, published
from xmem import aio


def run(main: Coroutine[Any, Any, Any], debug: bool = True) -> Any:
    async def bounded() -> Any:
        async with asyncio.timeout(LIMIT):
            return await main

    return asyncio.run(bounded(), debug=debug)


async def settle() -> None:
    """Let every coroutine that can run do so."""
    for _ in range(10):
        await asyncio.sleep(0)


def wakeups(of: xmem.Subscription | xmem.BufferPool) -> int:
    """How often loops have found the descriptor ready."""
    return sum(waiters.wakeups for waiters in of._waiters.values())


def put(writer: xmem.BufferPool, number: int) -> None:
    guard = writer.acquire_cpu(1)
    memoryview(guard)[0] = number
    guard.publish()


def test_async_for_receives_in_order_and_ends() -> None:
    name = fresh_name()
    reader = xmem.BufferPool(name)
    writer = xmem.BufferPool(name, writer=True)
    subscription = reader.subscribe(lasts=False)

    async def consume() -> list[int]:
        return [bytes(guard)[0] async for guard in subscription]

    async def main() -> list[int]:
        task = asyncio.create_task(consume())
        for number in range(10):
            put(writer, number)
            if number % 3 == 0:
                await settle()
        writer.close()
        return await task

    assert run(main()) == list(range(10))
    with pytest.raises(xmem.Ended):
        run(subscription.receive_async())
    reader.close()


def test_coroutines_take_turns_and_wake_up_once_each() -> None:
    with pair() as (writer, reader):
        subscription = reader.subscribe()

        async def main() -> None:
            tasks = [asyncio.create_task(subscription.receive_async()) for _ in range(5)]
            await settle()
            for number in range(5):
                put(writer, number)
                await tasks[number]
                assert [task.done() for task in tasks] == [i <= number for i in range(5)]
            assert [bytes(task.result())[0] for task in tasks] == list(range(5))
            assert wakeups(subscription) == 5

        run(main())


def test_a_publication_wakes_two_at_most_of_many() -> None:
    """One receives it; the next one may find that it was the last."""
    with pair() as (writer, reader):
        subscription = reader.subscribe()

        async def main() -> None:
            tasks = [asyncio.create_task(subscription.receive_async()) for _ in range(8)]
            await settle()
            for number in range(4):
                put(writer, number)
                await tasks[number]
                await settle()
                assert wakeups(subscription) <= 2 * (number + 1)
            for task in tasks[4:]:
                task.cancel()

        run(main())


def test_nothing_wakes_up_in_vain_while_nothing_happens() -> None:
    with pair() as (writer, reader):
        subscription = reader.subscribe()

        async def main() -> None:
            task = asyncio.create_task(subscription.receive_async())
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(asyncio.shield(task), 0.2)
            assert wakeups(subscription) == 0
            put(writer, 1)
            await task
            # A publication that comes while no coroutine waits wakes none.
            put(writer, 2)
            put(writer, 3)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(asyncio.Future(), 0.1)
            assert wakeups(subscription) == 1

        run(main())


def test_what_is_ready_in_vain_is_waited_for_again() -> None:
    """A publication that is taken back, or sent to another, wakes up a few times at most."""
    with pair() as (writer, reader):
        subscription = reader.subscribe()

        async def main() -> None:
            task = asyncio.create_task(subscription.receive_async())
            await settle()
            for _ in range(5):
                writer.retract(writer.acquire_cpu(1).publish())
                await settle()
            assert not task.done()
            put(writer, 7)
            assert bytes(await task) == b"\7"
            assert wakeups(subscription) <= 16

        run(main())


@pytest.mark.parametrize("how", ["cancel", "timeout", "wait_for"])
def test_who_is_canceled_has_received_nothing(how: str) -> None:
    with pair() as (writer, reader):
        subscription = reader.subscribe()

        async def main() -> None:
            other = asyncio.create_task(subscription.receive_async())
            await settle()
            if how == "cancel":
                task = asyncio.create_task(subscription.receive_async())
                await settle()
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            elif how == "timeout":
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.01):
                        await subscription.receive_async()
            else:
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(subscription.receive_async(), 0.01)
            put(writer, 1)
            assert bytes(await other) == b"\1"
            put(writer, 2)
            assert bytes(await subscription.receive_async()) == b"\2"

        run(main())


def test_who_is_canceled_after_it_was_woken_wakes_the_next() -> None:
    with pair() as (writer, reader):
        subscription = reader.subscribe()

        async def main() -> None:
            first = asyncio.create_task(subscription.receive_async())
            second = asyncio.create_task(subscription.receive_async())
            await settle()
            waiters, = subscription._waiters.values()
            put(writer, 1)
            waiters._ready()            # as the loop calls it; then, before the first one runs:
            first.cancel()
            assert bytes(await second) == b"\1"
            with pytest.raises(asyncio.CancelledError):
                await first
            assert not waiters.waiting and not waiters.armed

        run(main())


@pytest.mark.parametrize("thread", [False, True])
@pytest.mark.parametrize("close", ["subscription", "pool"])
def test_closing_ends_all_waits(close: str, thread: bool) -> None:
    with pair() as (writer, reader):
        writer.preallocate_cpu(8, 1)
        held = writer.acquire_cpu(8)
        subscription = reader.subscribe()

        async def main() -> None:
            waits = [subscription.receive_async() for _ in range(3)] if close == "subscription" \
                else [reader.receive_async(), writer.acquire_cpu_async(8)]
            tasks = [asyncio.create_task(wait) for wait in waits]
            await settle()
            what = [subscription] if close == "subscription" else [reader, writer]
            for each in what:
                if thread:
                    Thread(each.close).get()
                else:
                    each.close()
            for task in tasks:
                with pytest.raises(xmem.Released):
                    await task
            assert all(not each._waiters for each in what)

        run(main())
        held.release()


def test_acquiring_waits_until_a_buffer_is_free() -> None:
    with pair() as (writer, reader):
        writer.preallocate_cpu(64, 2)

        async def main() -> None:
            held = [await writer.acquire_cpu_async(64) for _ in range(2)]
            tasks = [asyncio.create_task(writer.acquire_cpu_async((n, 8), "uint8"))
                     for n in (1, 8, 4)]
            await settle()
            assert not any(task.done() for task in tasks)
            held.pop().release()
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            assert len(done) == 1
            guard, = [task.result() for task in done]
            guard.release()
            while any(not task.done() for task in tasks):
                done, _ = await asyncio.wait([task for task in tasks if not task.done()],
                                             return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result().release()
            assert wakeups(writer) <= 12
            held.pop().release()

        run(main())


def test_who_wants_little_is_not_behind_who_wants_much() -> None:
    with pair() as (writer, _):
        writer.preallocate_cpu(64, 1)
        writer.preallocate_cpu(4096, 1)

        async def main() -> None:
            large, small = writer.acquire_cpu(4096), writer.acquire_cpu(64)
            much = asyncio.create_task(writer.acquire_cpu_async(4096))
            little = asyncio.create_task(writer.acquire_cpu_async(8))
            await settle()
            small.release()
            (await little).release()
            assert not much.done()
            large.release()
            assert (await much).nbytes == 4096

        run(main())


def test_errors_other_than_would_block_come_at_once() -> None:
    with pair() as (writer, reader):
        for wait, error in ((reader.acquire_cpu_async(8), xmem.NotPermitted),
                            (reader.receive_async(), xmem.NotFound),
                            (writer.acquire_cpu_async(dtype="uint8"), TypeError)):
            with pytest.raises(error):
                run(wait)


def test_receiving_of_any_subscription() -> None:
    with pair() as (writer, reader), writer.reopen() as other:
        subscriptions = [reader.subscribe(publisher=each.client) for each in (writer, other)]

        async def main() -> None:
            task = asyncio.create_task(reader.receive_async())
            await settle()
            put(other, 2)
            assert bytes(await task) == b"\2"

        run(main())
        subscriptions.clear()


def test_loops_one_after_the_other_and_their_descriptors() -> None:
    with pair() as (writer, reader):
        subscription = reader.subscribe()

        async def once(number: int) -> None:
            task = asyncio.create_task(subscription.receive_async())
            await settle()
            put(writer, number)
            assert bytes(await task)[0] == number

        run(once(0))
        gc.collect()
        before = len(os.listdir("/proc/self/fd"))
        for number in range(1, 6):
            run(once(number))
        gc.collect()
        assert len(os.listdir("/proc/self/fd")) == before
        assert len(subscription._waiters) == 1


def test_a_loop_that_is_closed_under_its_waiters() -> None:
    with pair() as (writer, reader):
        subscription = reader.subscribe()
        loop = asyncio.new_event_loop()
        task = loop.create_task(subscription.receive_async())
        loop.run_until_complete(settle())
        assert not task.done()
        task._log_destroy_pending = False       # type: ignore[attr-defined]
        loop.close()
        del task
        gc.collect()
        put(writer, 1)
        assert bytes(run(subscription.receive_async())) == b"\1"
        subscription.close()


def test_two_loops_in_two_threads() -> None:
    with pair() as (writer, reader):
        subscription = reader.subscribe()

        async def consume() -> int:
            total = 0
            async for guard in subscription:
                total += bytes(guard)[0]
                if total >= 100:
                    return total
                guard.release()
            return total

        threads = [Thread(lambda: run(consume())) for _ in range(2)]
        for thread in threads:
            thread.waits()
        for _ in range(2):
            put(writer, 100)
        assert [thread.get() for thread in threads] == [100, 100]


def test_a_thread_publishes_while_the_loop_waits() -> None:
    with pair() as (writer, reader):
        subscription = reader.subscribe()

        async def main() -> None:
            task = asyncio.create_task(subscription.receive_async())
            await settle()
            thread = Thread(lambda: published(writer, b"from a thread").release())
            assert bytes(await task) == b"from a thread"
            thread.get()

        run(main(), debug=False)


@pytest.mark.parametrize("end", ["cancel", "close"])
def test_the_end_of_a_pools_waits_ends_those_of_coroutines(end: str) -> None:
    with pair(demand_bytes=None) as (writer, reader):
        writer.preallocate_cpu(64, 1)
        kept = writer.acquire_cpu(64)
        subscription = reader.subscribe()

        async def main() -> list[BaseException | xmem.BufferGuard]:
            waits = [asyncio.create_task(each) for each in (
                subscription.receive_async(), reader.receive_async(),
                writer.acquire_cpu_async(64))]
            await settle()
            getattr(reader, end)()
            getattr(writer, end)()
            return await asyncio.gather(*waits, return_exceptions=True)

        ended = run(main())
        assert isinstance(ended[0], xmem.Canceled)
        assert all(isinstance(each, (xmem.Canceled, xmem.Released)) for each in ended)
        with pytest.raises(xmem.Canceled):              # and for ever, as for threads
            run(subscription.receive_async())
        kept.release()


def test_who_receives_from_any_learns_that_there_is_none_left() -> None:
    with pair() as (writer, reader):
        subscription = reader.subscribe()

        async def main() -> None:
            task = asyncio.create_task(reader.receive_async())
            await settle()
            subscription.close()
            with pytest.raises(xmem.NotFound):
                await task

        run(main())
        assert writer.holders() == []


def test_closing_between_the_try_and_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread closes it and finds no coroutine that waits; a coroutine that is about to
    wait finds it closed."""
    with pair() as (_, reader):
        subscription = reader.subscribe()

        class Late(aio.Waiters):
            def __init__(self, *arguments: Any) -> None:
                super().__init__(*arguments)
                Thread(subscription.close).get()

        monkeypatch.setattr(aio, "Waiters", Late)
        with pytest.raises(xmem.Released):
            run(subscription.receive_async())
        monkeypatch.undo()
        assert not subscription._waiters


# ---- what is always there ----

MANY = 100_000      # tries that take longer than the loop may be kept busy


def hands_out(what: str, writer: xmem.BufferPool, frames: xmem.Subscription) -> Any:
    """A coroutine that gets a guard which is there."""
    if what == "acquire":
        return writer.acquire_cpu_async(1)
    put(writer, 1)
    return frames.receive_async() if what == "receive" else frames.pool.receive_async()


@pytest.mark.parametrize("what", ["receive", "any", "acquire"])
def test_whoever_always_gets_something_lets_others_run(what: str) -> None:
    with pair() as (writer, reader):
        frames = reader.subscribe()

        async def main() -> None:
            turns = 0

            async def other() -> None:
                nonlocal turns
                while True:
                    turns += 1
                    await asyncio.sleep(0)

            task = asyncio.create_task(other())
            for tries in range(MANY):
                (await hands_out(what, writer, frames)).release()
                if turns == 5:
                    break
            task.cancel()
            assert turns == 5 and tries < MANY - 1

        run(main(), debug=False)


@pytest.mark.parametrize("end", ["cancel", "timeout"])
def test_whoever_always_gets_something_can_be_ended(end: str) -> None:
    with pair() as (writer, reader):
        frames = reader.subscribe()
        count = 0

        async def consume() -> None:
            nonlocal count
            while count < MANY:
                put(writer, 1)
                with await anext(aiter(frames)):
                    count += 1

        async def main() -> None:
            task = asyncio.create_task(consume())
            if end == "timeout":
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(task, 0.001)
            else:
                await asyncio.sleep(0)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task

        run(main(), debug=False)
        assert count < MANY


@pytest.mark.parametrize("what", ["receive", "any", "acquire"])
def test_who_is_canceled_while_the_loop_goes_round_has_got_nothing(
        what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aio, "_ROUND", -1)      # it goes round before each try
    with pair() as (writer, reader):
        writer.preallocate_cpu(8, 1)
        frames = reader.subscribe()

        async def main() -> None:
            for _ in range(3):
                task = asyncio.create_task(hands_out(what, writer, frames))
                await asyncio.sleep(0)          # it begins, and waits for its turn
                assert not task.done()
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                if what == "acquire":
                    writer.acquire_cpu(8, timeout=0).release()
                else:
                    frames.receive(0).release()
            assert frames.lost == 0

        run(main())


@pytest.mark.parametrize("what", ["receive", "any", "acquire"])
def test_what_is_there_is_got_without_time(what: str) -> None:
    with pair() as (writer, reader):
        frames = reader.subscribe()
        got = []

        async def main() -> None:
            for number in range(20):
                put(writer, number)
                since = time.monotonic()
                while time.monotonic() - since < 2 * aio._ROUND:
                    pass                        # the program's own work
                await asyncio.sleep(0)
                async with asyncio.timeout(0):
                    got.append(await hands_out(what, writer, frames))
                got[-1].release()

        run(main(), debug=False)
        assert len(got) == 20


def test_coroutines_get_buffers_in_turn() -> None:
    with pair() as (writer, _):
        writer.preallocate_cpu(8, 2)
        turns = [0] * 10

        async def work(number: int) -> None:
            while sum(turns) < 2000:
                with await writer.acquire_cpu_async(8):
                    turns[number] += 1
                    await asyncio.sleep(0)

        async def main() -> None:
            await asyncio.gather(*(work(number) for number in range(10)))

        run(main(), debug=False)
        assert max(turns) < 2 * min(turns)


@pytest.mark.parametrize("what", ["receive", "any", "acquire"])
def test_waits_have_a_timeout(what: str) -> None:
    with pair() as (writer, reader):
        writer.preallocate_cpu(8, 1)
        frames = reader.subscribe()
        held = writer.acquire_cpu(8)

        async def wait(timeout: float) -> xmem.BufferGuard:
            if what == "acquire":
                return await writer.acquire_cpu_async(8, timeout=timeout)
            return await (frames if what == "receive" else reader).receive_async(timeout=timeout)

        async def main() -> None:
            with pytest.raises(xmem.WouldBlock):
                await wait(0)
            with pytest.raises(xmem.TimedOut):
                await wait(0.001)
            with pytest.raises(TimeoutError) as caught:     # the caller's own, which ends first
                async with asyncio.timeout(0.001):
                    await wait(LIMIT)
            assert not isinstance(caught.value, xmem.TimedOut)
            task = asyncio.create_task(wait(LIMIT))
            await settle()
            held.publish()
            (await task).release()

        run(main())


@pytest.mark.parametrize("timeout, error", [
    (-1, ValueError), (float("nan"), ValueError), (float("-inf"), ValueError), ("x", TypeError)])
def test_a_timeout_that_cannot_be_meant_is_refused(timeout: Any, error: type[Exception]) -> None:
    async def main() -> None:
        for wait in (writer.acquire_cpu_async, reader.receive_async,
                     writer.wait_for_subscribers_async):
            with pytest.raises(error):
                await wait(timeout=timeout)

    with pair() as (writer, reader):
        run(main())


def test_a_timeout_lists_the_holders() -> None:
    async def main() -> None:
        with pytest.raises(xmem.TimedOut) as caught:
            await writer.acquire_cpu_async(8, timeout=0.001)
        assert [holder.pid for holder in caught.value.holders] == [os.getpid()]

    with pair() as (writer, reader):
        writer.preallocate_cpu(8, 1)
        frames = reader.subscribe()
        writer.acquire_cpu(8).publish()
        with frames.receive():
            run(main())
