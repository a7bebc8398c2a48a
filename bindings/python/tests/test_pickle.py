# SPDX-License-Identifier: MIT
"""Pickling of pools and guards, also through multiprocessing by fork, spawn and forkserver."""
from __future__ import annotations

import copy
import gc
import multiprocessing
import pickle
from pathlib import Path
from typing import Any

import pytest

import xmem
from support import LIMIT, fresh_name, pair, published, python

METHODS = ("fork", "spawn", "forkserver")


def through_a_file(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


def test_a_pool_is_loaded_as_the_one_that_is_there() -> None:
    with pair() as (writer, reader):
        for pool in (writer, reader):
            assert through_a_file(pool) is pool
            assert copy.copy(pool) is pool and copy.deepcopy(pool) is pool


def test_another_process_opens_a_pool_once() -> None:
    with pair(label="original") as (writer, _):
        messages = [pickle.dumps(writer).hex() for _ in range(3)]
        guards = [published(writer, bytes([i])) for i in range(100)]
        messages += [pickle.dumps(guard).hex() for guard in guards]
        out = python("""
import pickle, sys
messages = [pickle.loads(bytes.fromhex(each)) for each in sys.stdin.read().split()]
pools, guards = messages[:3], messages[3:]
assert pools[0] is pools[1] is pools[2]
assert pools[0].options["label"] == "original" and pools[0].options["writer"]
assert {guard.pool for guard in guards} == {pools[0]}
assert [bytes(guard)[0] for guard in guards] == list(range(100))
print(pools[0].client)
""", send=" ".join(messages))
        assert int(out) == 2


def test_a_guard_s_process_is_a_reader() -> None:
    with pair() as (writer, _):
        messages = [pickle.dumps(published(writer, bytes([i]))).hex() for i in range(2)]
        python("""
import pickle, sys
guards = [pickle.loads(bytes.fromhex(each)) for each in sys.stdin.read().split()]
assert guards[0].pool is guards[1].pool and not guards[0].pool.options["writer"]
guards[0].pool.close()
assert bytes(guards[1]) == b"\\1"
""", send=" ".join(messages))


def test_contents_that_are_loaded_are_written_in_place() -> None:
    with pair() as (writer, _):
        guard = published(writer)
        message = pickle.dumps(guard).hex()
        guard.release()
        python("""
import pickle, sys
guard = pickle.loads(bytes.fromhex(sys.stdin.read()))
memoryview(guard.get_mut())[:1] = b"C"
assert bytes(guard)[:2] == b"Co"
""", send=message)


def test_a_message_holds_the_buffer_until_it_is_loaded() -> None:
    with pair() as (writer, _):
        writer.preallocate_cpu(8, 1)
        guard = published(writer)
        token = guard.token
        message = pickle.dumps(guard)
        assert writer.claims(token) == 1
        guard.release()
        with pytest.raises(xmem.WouldBlock):
            writer.acquire_cpu(8, timeout=0)
        loaded = pickle.loads(message)
        assert bytes(loaded) == b"contents" and loaded.token == token
        assert writer.claims(token) == 0
        again = pickle.loads(message)       # it is still there: another hold
        assert again is not loaded and again.token == token
        loaded.release()
        again.release()
        writer.acquire_cpu(8, timeout=0).release()
        with pytest.raises(xmem.Stale, match="loaded before"):
            pickle.loads(message).token


def test_a_message_that_is_made_twice_can_be_loaded_twice() -> None:
    with pair() as (writer, reader):
        guard = published(writer)
        first, second = pickle.dumps(guard), pickle.dumps(guard)
        token = guard.token
        assert writer.claims(token) == 2
        guard.release()
        pickle.loads(first).release()
        pickle.loads(second).release()
        writer.collect()
        with pytest.raises(xmem.Stale):
            reader.get(token)


def test_who_does_not_own_the_buffer_can_pickle_it() -> None:
    with pair() as (writer, reader):
        kept = published(writer)
        guard = reader.get(kept.token)
        message = pickle.dumps(guard)
        assert writer.claims(kept.token) == 1
        assert bytes(pickle.loads(message)) == b"contents"


def test_what_cannot_be_pickled() -> None:
    with pair() as (writer, _):
        guard = writer.acquire_cpu(8)
        with pytest.raises(xmem.NotPermitted, match="being written"):
            pickle.dumps(guard)
        guard.release()
        with pytest.raises(xmem.Released):
            pickle.dumps(guard)
    with xmem.BufferPool() as anonymous, pytest.raises(TypeError, match="multiprocessing"):
        pickle.dumps(anonymous)
    assert pickle.loads(pickle.dumps(1 << 63)) == 1 << 63       # a token


def test_a_pool_that_has_been_closed_is_opened_anew() -> None:
    name = fresh_name()
    pool = xmem.BufferPool(name)
    message = pickle.dumps(pool)
    pool.close()
    with pickle.loads(message) as other:
        assert other is not pool and other.name == name and not other.closed
    with xmem.BufferPool(name, exclusive=True) as pool:
        message = pickle.dumps(pool)
    with pickle.loads(message) as other:
        assert not other.options["exclusive"]


def test_nobody_is_kept_alive_by_having_been_pickled() -> None:
    pool = xmem.BufferPool(fresh_name())
    pickle.dumps(pool)
    with xmem.BufferPool(pool.name) as other:
        client = pool.client
        del pool
        gc.collect()
        assert other.reopen().client == client      # its place is free


# ---- parcels ----

def test_a_parcel_outlives_its_guard() -> None:
    with pair() as (writer, _):
        writer.preallocate_cpu(8, 1)
        with published(writer) as guard:
            token = guard.token
            parcel = guard.parcel()
        assert guard.gone and writer.claims(token) == 1 and str(token) in repr(parcel)
        message = pickle.dumps(parcel)
        assert repr(parcel).endswith(", pickled>")
        del parcel
        assert writer.claims(token) == 1
        with pickle.loads(message) as loaded:
            assert isinstance(loaded, xmem.BufferGuard) and bytes(loaded) == b"contents"
        writer.acquire_cpu(8, timeout=0).release()


def test_a_parcel_that_is_not_sent_gives_its_reference_back() -> None:
    with pair() as (writer, reader):
        writer.preallocate_cpu(8, 1)
        guard = published(writer)
        token = guard.token
        for parcel in (guard.parcel(), reader.get(token).parcel()):
            assert writer.claims(token) == 1
            with pytest.raises(TypeError, match="not copied"):
                copy.copy(parcel)
            with pytest.raises(TypeError, match="not copied"):
                copy.deepcopy(parcel)
            del parcel
        gc.collect()
        guard.release()
        writer.acquire_cpu(8, timeout=0).release()


def test_what_cannot_be_made_a_parcel() -> None:
    with pair() as (writer, _):
        guard = writer.acquire_cpu(8)
        with pytest.raises(xmem.NotPermitted, match="being written"):
            guard.parcel()
        guard.release()
        with pytest.raises(xmem.Released):
            guard.parcel()
        with pytest.raises(xmem.Released, match=r"guard\.parcel\(\)"):
            pickle.dumps(guard)


def first_bytes(questions: Any, answers: Any) -> None:
    for guard in iter(questions.get, None):
        with guard:
            answers.put(bytes(guard)[0])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", [None, "named"])
def test_a_queue_gets_parcels_of_guards_that_are_released_at_once(method: str,
                                                                  name: str | None) -> None:
    context: Any = multiprocessing.get_context(method)
    questions, answers = context.Queue(), context.Queue()
    worker = context.Process(target=first_bytes, args=(questions, answers))
    worker.start()
    try:
        with xmem.BufferPool(name and fresh_name(name), writer=True) as pool:
            for number in range(20):
                with published(pool, bytes([number])) as guard:
                    questions.put(guard.parcel())
            questions.put(None)
            assert [answers.get(timeout=LIMIT) for _ in range(20)] == list(range(20))
            worker.join(LIMIT)
            assert worker.exitcode == 0
    finally:
        worker.kill()
        worker.join(LIMIT)
        questions.close()


# ---- multiprocessing ----

def answer(queue: Any, back: Any, pool: xmem.BufferPool | None) -> None:
    """A worker: send a guard of its own for each that comes, until None comes."""
    if pool and pool.forked:
        pool = pool.reopen()
    for guard in iter(queue.get, None):
        writer = pool or xmem.BufferPool(guard.pool.name, writer=True)
        other = writer.acquire_cpu(guard.nbytes)
        memoryview(other)[:] = bytes(guard)[::-1]
        other.publish(keep=True)
        back.put(other)
        back.put(guard.token)
        guard.release()
    back.close()
    back.join_thread()


def exchange(method: str, pool: xmem.BufferPool, given: xmem.BufferPool | None) -> None:
    context: Any = multiprocessing.get_context(method)
    queue, back = context.Queue(), context.Queue()
    worker = context.Process(target=answer, args=(queue, back, given))
    worker.start()
    try:
        for turn in range(5):
            guard = published(pool, bytes([turn, 1, 2, 3]))
            queue.put(guard)
            got = back.get(timeout=LIMIT)
            assert bytes(got) == bytes([3, 2, 1, turn]) and got.publisher != pool.client
            assert back.get(timeout=LIMIT) == guard.token
            got.release()
        queue.put(None)
        worker.join(LIMIT)
        assert worker.exitcode == 0
    finally:
        worker.kill()
        worker.join(LIMIT)
        queue.close()


@pytest.mark.parametrize("method", METHODS)
def test_guards_through_queues(method: str) -> None:
    with pair() as (writer, _):
        exchange(method, writer, None)


@pytest.mark.parametrize("method", METHODS)
def test_a_pool_as_a_process_s_argument(method: str) -> None:
    with pair() as (writer, _):
        exchange(method, writer, writer)


@pytest.mark.parametrize("method", METHODS)
def test_an_anonymous_pool_as_a_process_s_argument(method: str) -> None:
    with xmem.BufferPool(writer=True, inherit=True) as pool:
        exchange(method, pool, pool)


def load(pipe: Any) -> None:
    for _ in range(2):
        pool, guard = pipe.recv()
        assert guard.pool is pool and bytes(guard) == b"contents"
    pipe.send("well")


@pytest.mark.parametrize("method", METHODS)
def test_an_anonymous_pool_and_its_guard_through_a_pipe(method: str) -> None:
    context: Any = multiprocessing.get_context(method)
    here, there = context.Pipe()
    with xmem.BufferPool(writer=True) as pool:
        worker = context.Process(target=load, args=(there,))
        worker.start()
        there.close()
        try:
            for _ in range(2):
                here.send((pool, published(pool)))
            assert here.poll(LIMIT) and here.recv() == "well"
            worker.join(LIMIT)
            assert worker.exitcode == 0
        finally:
            worker.kill()
            worker.join(LIMIT)
            here.close()


def square(guard: xmem.BufferGuard) -> int:
    with guard:
        return sum(bytes(guard)) ** 2


def test_a_pool_of_workers() -> None:
    with pair() as (writer, _), multiprocessing.get_context("spawn").Pool(2) as workers:
        guards = [published(writer, bytes([i])) for i in range(20)]
        assert workers.map(square, guards) == [i * i for i in range(20)]
        assert all(writer.claims(guard.token) == 0 for guard in guards)


def hang(queue: Any, ready: Any) -> None:
    guards = [queue.get() for _ in range(10)]
    ready.send(len(guards))
    ready.recv()


def test_a_worker_that_is_killed_gives_all_back() -> None:
    context = multiprocessing.get_context("spawn")
    with pair() as (writer, _):
        writer.preallocate_cpu(8, 10)
        queue = context.Queue()
        here, there = context.Pipe()
        worker = context.Process(target=hang, args=(queue, there))
        worker.start()
        for _ in range(10):
            queue.put(published(writer))
        assert here.poll(LIMIT) and here.recv() == 10
        with pytest.raises(xmem.WouldBlock):
            writer.acquire_cpu(8, timeout=0)
        worker.kill()
        worker.join(LIMIT)
        got = [writer.acquire_cpu(8, timeout=LIMIT) for _ in range(10)]
        assert len(got) == 10


def test_a_pool_is_loaded_anew_when_its_host_has_gone(tmp_path: Path) -> None:
    """In a process of its own, with a daemon of its own that is killed."""
    python("""if True:
        import os, pickle, select, signal, socket, sys
        os.environ["XMEM_SOCKET"] = sys.argv[1]
        import xmem
        pool = xmem.BufferPool("hostless")
        message = pickle.dumps(pool)
        assert pickle.loads(message) is pool
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asked:
            asked.connect(os.environ["XMEM_SOCKET"])
            who = asked.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        os.kill(int.from_bytes(who[:4], sys.byteorder), signal.SIGKILL)
        look = select.poll()
        look.register(pool.fileno(), 0)
        assert look.poll(240_000)        # a process ends step by step, and this comes last
        other = pickle.loads(message)
        assert other is not pool and other.stat().clients == 1
        """, str(tmp_path / "socket"))


def test_a_pool_of_the_parent_says_so() -> None:
    assert python("""if True:
        import os, xmem
        pool = xmem.BufferPool("of-the-parent")
        if os.fork() == 0:
            print(pool, flush=True)
            os._exit(0)
        os.wait()
        """) == "<xmem.BufferPool 'of-the-parent', of the parent process>\n"
