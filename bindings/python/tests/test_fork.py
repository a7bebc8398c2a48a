# SPDX-License-Identifier: MIT
"""Forks: what a child has inherited raises Forked and is dropped in peace; it joins anew."""
from __future__ import annotations

import errno
import gc
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

import pytest

import xmem
from support import Thread, fresh_name, pair, published, python
from test_guard import CALLS as GUARD_CALLS
from test_guard import PROPERTIES
from test_pool import CALLS as POOL_CALLS


def in_child(call: Callable[[], Any]) -> None:
    """Fork, and call it in the child, which must end well."""
    sys.stdout.flush()
    child = os.fork()
    if not child:
        try:
            call()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def raises_forked(call: Callable[[], Any]) -> None:
    with pytest.raises(xmem.Forked, match="inherited by fork") as caught:
        call()
    assert caught.value.errno == errno.ECHILD


def test_what_is_inherited_refuses_each_use() -> None:
    with pair() as (writer, reader):
        guard, writing = published(writer), writer.acquire_cpu(8)
        assert bytes(guard) == b"contents" and guard.cpu_ptr     # the address is remembered
        subscription = reader.subscribe()

        def child() -> None:
            for name, arguments in POOL_CALLS.items():
                if name != "reopen":
                    raises_forked(lambda: getattr(writer, name)(*arguments))
            for name in ("client", "backend"):
                raises_forked(lambda: getattr(writer, name))
            assert writer.forked and not writer.closed
            for each in (guard, writing):
                for name in PROPERTIES:
                    raises_forked(lambda: getattr(each, name))
                for name in set(GUARD_CALLS) - {"release"}:
                    raises_forked(lambda: getattr(each, name)(*GUARD_CALLS[name]))
                raises_forked(lambda: memoryview(each))
                assert not each.gone
            for use in (lambda: subscription.receive(0), lambda: next(subscription),
                        subscription.fileno, lambda: subscription.lost,
                        lambda: subscription.publisher):
                raises_forked(use)

        in_child(child)
        assert not writer.forked
        assert bytes(guard) == b"contents"
        token = writing.publish()
        assert subscription.receive(0).token == token


@pytest.mark.parametrize("views", [False, True])
def test_dropping_in_the_child_does_nothing_to_the_parent(views: bool) -> None:
    with pair() as (writer, reader):
        guards = [published(writer), writer.acquire_cpu(8)]
        kept = [memoryview(guard) for guard in guards] if views else []
        tokens = [guards[0].token]
        subscription = reader.subscribe()

        def child() -> None:
            guards[0].release()
            guards[1].__exit__(None, None, None)
            assert all(guard.gone for guard in guards)
            guards.clear()
            kept.clear()
            subscription.close()
            writer.close()
            reader.close()
            gc.collect()

        in_child(child)
        assert bytes(reader.get(tokens[0])) == b"contents"
        memoryview(guards[1])[:] = b"12345678"
        kept.clear()
        guards[1].publish()
        assert bytes(subscription.receive(0)) == b"12345678"


def test_a_child_joins_anew() -> None:
    with pair() as (writer, reader):
        guard = published(writer)
        token = guard.token
        there, told = os.pipe()
        wait, go_on = os.pipe()

        def child() -> None:
            os.close(go_on)
            with writer.reopen() as mine:
                assert mine.name == writer.name and not mine.forked
                assert bytes(mine.get(token)) == b"contents"
                own = published(mine, b"by the child")
                os.write(told, str(own.token).encode())
                os.read(wait, 1)

        def parent() -> None:
            assert bytes(reader.get(int(os.read(there, 100)))) == b"by the child"
            os.close(go_on)

        thread = Thread(parent)
        in_child(child)
        thread.get()
        for fd in (there, told, wait):
            os.close(fd)


def test_a_child_joins_an_anonymous_pool_only_if_it_may() -> None:
    with xmem.BufferPool(writer=True, inherit=True) as pool, xmem.BufferPool() as other:
        token = published(pool).token
        guard = pool.acquire_cpu(8)
        memoryview(guard)[:] = b"contents"
        token = guard.publish(keep=True)

        def child() -> None:
            with pool.reopen() as mine:
                assert bytes(mine.get(token)) == b"contents"
            with pytest.raises(xmem.Error) as caught:
                other.reopen()
            assert caught.value.errno == errno.EOPNOTSUPP

        in_child(child)


def test_forking_while_other_threads_publish_and_wait() -> None:
    """Whatever they do at that moment, the child can drop all and join anew."""
    with pair() as (writer, reader):
        stop = False
        subscription = reader.subscribe()

        def publish() -> None:
            while not stop:
                writer.acquire_cpu(64).publish()

        def receive() -> None:
            while not stop:
                try:
                    subscription.receive(1).release()
                except xmem.TimedOut:
                    pass

        threads = [Thread(publish), Thread(receive)]

        def child() -> None:
            subscription.close()
            with writer.reopen() as mine:
                published(mine).release()
            gc.collect()

        for _ in range(10):
            in_child(child)
        stop = True
        for thread in threads:
            thread.get()


def test_the_exit_of_a_child_is_silent() -> None:
    out = python("""
import os, sys, xmem
pool = xmem.BufferPool("exits", writer=True)
subscription = xmem.BufferPool("exits").subscribe()
guard = pool.acquire_cpu(8)
view = memoryview(guard)
child = os.fork()
if child:
    status = os.waitpid(child, 0)[1]
    assert status == 0, status
    guard.publish()
    print(subscription.receive(0).nbytes)
""")
    assert out == "8\n"


def test_an_event_loop_s_descriptors_stay_with_the_parent() -> None:
    import asyncio

    with pair() as (writer, reader):
        subscription = reader.subscribe()

        async def main() -> None:
            waiting = asyncio.ensure_future(subscription.receive_async())
            for _ in range(3):          # its first turn may let others run before it waits
                await asyncio.sleep(0)
            waiters, = subscription._waiters.values()
            fd = waiters.fd

            def child() -> None:
                with pytest.raises(OSError):
                    os.fstat(fd)
                assert waiters.fd == -1

            in_child(child)
            writer.acquire_cpu(8).publish()
            assert (await waiting).nbytes == 8

        asyncio.run(main())


def test_subprocesses_inherit_nothing() -> None:
    with xmem.BufferPool(fresh_name(), writer=True, inherit=True) as pool:
        pool.fileno()
        before = python("import os; print(len(os.listdir('/proc/self/fd')))")
        assert before == python("import os; print(len(os.listdir('/proc/self/fd')))")
        assert int(before) <= 5
