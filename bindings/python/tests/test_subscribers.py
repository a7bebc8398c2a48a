# SPDX-License-Identifier: MIT
"""A writer's subscribers: which they are, and waiting for some, in threads and in event loops."""
from __future__ import annotations

import asyncio
import select
from collections.abc import Coroutine
from typing import Any

import pytest

import xmem
from support import LIMIT, Thread, fresh_name, pair, published


def run(main: Coroutine[Any, Any, Any]) -> Any:
    async def bounded() -> Any:
        async with asyncio.timeout(LIMIT):
            return await main

    return asyncio.run(bounded(), debug=True)


async def until_waiting(pool: xmem.BufferPool, count: int) -> None:
    while sum(len(waiters.waiting) for waiters in pool._watchers.values()) < count:
        await asyncio.sleep(0)


def test_which_they_are_and_how_far_behind() -> None:
    with pair() as (writer, reader):
        assert writer.subscribers() == []
        with reader.subscribe(waits=False) as frames:
            published(writer).release()
            published(writer).release()
            only, = writer.subscribers()
            assert isinstance(only, xmem.SubscriberInfo)
            assert (only.client, only.behind, only.waits, only.demoted) == (reader.client, 2, 0, 0)
            info = writer.client_info(reader.client)
            assert (only.label, only.incarnation) == (info.label, info.incarnation)
            frames.receive(LIMIT).release()
            assert writer.subscribers()[0].behind == 1
        with pytest.raises(xmem.NotPermitted):
            reader.subscribers()


def test_waiting_in_a_thread() -> None:
    with pair() as (writer, reader):
        with pytest.raises(xmem.WouldBlock, match="0 of 1 follow this writer"):
            writer.wait_for_subscribers(timeout=0)
        with pytest.raises(xmem.TimedOut, match="0 of 2 follow this writer"):
            writer.wait_for_subscribers(2, timeout=0.01)
        with pytest.raises(xmem.NotPermitted):
            reader.wait_for_subscribers()
        assert writer.wait_for_subscribers(0) == 0
        waiting = Thread(writer.wait_for_subscribers)
        with reader.subscribe():
            assert waiting.get() == 1
            assert writer.wait_for_subscribers(timeout=0) == 1


def test_cancel_ends_a_wait() -> None:
    with pair() as (writer, _):
        waiting = Thread(writer.wait_for_subscribers)
        writer.cancel()
        with pytest.raises(xmem.Canceled):
            waiting.get()


def test_the_descriptor_is_readable_until_the_program_looks() -> None:
    with pair() as (writer, reader):
        fd = writer.subscribers_fileno()

        def readable(timeout: float) -> bool:
            return bool(select.select([fd], [], [], timeout)[0])

        assert not readable(0)
        with reader.subscribe():
            assert readable(LIMIT) and readable(0)
            writer.subscribers()
            assert not readable(0)
        assert readable(LIMIT)
        assert writer.wait_for_subscribers(0, timeout=0) == 0
        assert not readable(0)


def test_coroutines_wait_for_different_numbers() -> None:
    name = fresh_name()
    writer = xmem.BufferPool(name, writer=True)
    readers = [xmem.BufferPool(name) for _ in range(3)]
    subscriptions: list[xmem.Subscription] = []     # without a reference they would end

    async def main() -> None:
        assert await writer.wait_for_subscribers_async(0) == 0
        with pytest.raises(xmem.WouldBlock):
            await writer.wait_for_subscribers_async(1, timeout=0)
        with pytest.raises(xmem.TimedOut):
            await writer.wait_for_subscribers_async(1, timeout=0.01)
        tasks = [asyncio.create_task(writer.wait_for_subscribers_async(count))
                 for count in (1, 3, 2)]
        await until_waiting(writer, 3)
        for number, task in enumerate((tasks[0], tasks[2], tasks[1]), 1):
            subscriptions.append(readers[number - 1].subscribe())
            assert await task == number
        # A task that finds enough subscribers does not wait behind tasks that want more.
        later = asyncio.create_task(writer.wait_for_subscribers_async(4))
        await until_waiting(writer, 1)
        assert await writer.wait_for_subscribers_async(3) == 3
        writer.cancel()
        with pytest.raises(xmem.Canceled):
            await later

    run(main())


def test_a_look_of_the_program_takes_nothing_from_a_coroutine() -> None:
    with pair() as (writer, reader):
        async def main(look: Any) -> None:
            task = asyncio.create_task(writer.wait_for_subscribers_async())
            await until_waiting(writer, 1)
            with reader.subscribe():
                look()              # before the loop has seen that the descriptor is readable
                assert await task == 1
            while writer.subscribers():
                await asyncio.sleep(0)

        run(main(writer.subscribers))
        run(main(lambda: writer.wait_for_subscribers(timeout=0)))


def test_a_subscriber_that_comes_between_two_looks_wakes_a_coroutine(
        monkeypatch: pytest.MonkeyPatch) -> None:
    """A look for 5 finds too few, and makes the descriptor unready for a task that waits for 1."""
    with pair() as (writer, reader):
        look = writer._wait_for_subscribers
        subscriptions: list[xmem.Subscription] = []

        def look_and_subscribe(count: int, timeout: float | None) -> int:
            try:
                return look(count, timeout)
            finally:
                if not subscriptions:
                    subscriptions.append(reader.subscribe())

        async def main() -> None:
            task = asyncio.create_task(writer.wait_for_subscribers_async())
            await until_waiting(writer, 1)
            monkeypatch.setattr(writer, "_wait_for_subscribers", look_and_subscribe)
            with pytest.raises(xmem.WouldBlock):
                writer.wait_for_subscribers(5, timeout=0)
            assert await task == 1

        run(main())
