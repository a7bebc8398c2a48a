# SPDX-License-Identifier: MIT
"""Messages whose buffer or pool is gone: they are loaded, and each use says what is gone and why.

Loading must raise nothing: the threads of multiprocessing.Pool take an OSError for the end of their
pipe and end, and a ProcessPoolExecutor is broken for good.
"""
from __future__ import annotations

import concurrent.futures
import copy
import errno
import multiprocessing
import os
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import xmem
from support import LIMIT, fresh_name, pair, published, python
from test_guard import CALLS, PROPERTIES
from test_pool import CALLS as POOL_CALLS

METHODS = ("fork", "spawn")


def voided(writer: xmem.BufferPool) -> bytes:
    """A message whose buffer others have by now."""
    guard = published(writer)
    message = pickle.dumps(guard)
    writer.void_claims(guard.token)
    guard.release()
    writer.collect()
    return message


def lost(writer: xmem.BufferPool) -> xmem.BufferGuard:
    guard: xmem.BufferGuard = pickle.loads(voided(writer))
    return guard


def ended() -> bytes:
    """A message whose pool has ended."""
    with xmem.BufferPool(fresh_name("ended"), writer=True) as pool, published(pool) as guard:
        return pickle.dumps(guard)


# ---- what a lost guard is ----

def test_each_use_of_a_lost_guard_says_why() -> None:
    with pair() as (writer, _):
        guard = lost(writer)
        assert guard.gone and guard.pool.name == writer.name
        for name in PROPERTIES:
            with pytest.raises(xmem.Stale, match="buffer of this message is gone"):
                getattr(guard, name)
        for name in set(CALLS) - {"release"}:
            with pytest.raises(xmem.Stale, match="void_claims") as caught:
                getattr(guard, name)(*CALLS[name])
            assert caught.value.errno == errno.ESTALE
        for use in (memoryview, bytes, copy.copy, xmem.BufferGuard.parcel, xmem.BufferGuard.image):
            with pytest.raises(xmem.Stale, match="loaded before"):
                use(guard)
        assert "this message is gone" in repr(guard)


def test_numpy_is_told_what_is_lost() -> None:
    numpy = pytest.importorskip("numpy")
    with pair() as (writer, _):
        with pytest.raises(xmem.Stale, match="buffer of this message is gone"):
            numpy.asarray(lost(writer))


def test_there_is_nothing_to_release_in_what_is_lost() -> None:
    with pair() as (writer, _):
        guard = lost(writer)
        guard.release()
        guard.release(stream=0)
        with pytest.raises(xmem.Stale):
            with guard:
                pytest.fail("there is nothing in it")
        guard.__exit__(None, None, None)
        del guard
        assert writer.stat().holds == 0


def test_what_is_lost_is_so_for_the_next_process_too() -> None:
    with pair() as (writer, _):
        guard = lost(writer)
        again = pickle.loads(pickle.dumps(guard))
        for name in ("token", "pool"):
            with pytest.raises(xmem.Stale, match="buffer of this message is gone"):
                getattr(again, name)
        assert repr(again) == repr(guard)


def test_a_message_says_that_its_time_has_passed() -> None:
    with pair(in_flight=0.02) as (writer, _):
        writer.preallocate_cpu(8, 1)
        message = pickle.dumps(published(writer))
        writer.acquire_cpu(8, timeout=LIMIT).release()
        with pytest.raises(xmem.Stale, match=r"set aside for 0\.02 s \(in_flight\)"):
            pickle.loads(message).token


def test_a_message_says_that_its_pool_has_ended() -> None:
    guard = pickle.loads(ended())
    with pytest.raises(FileNotFoundError, match="ended.* a pool ends with the last process"):
        guard.token
    with pytest.raises(xmem.NotFound, match="keep it open"):
        guard.pool.stat()


# ---- pools ----

def test_a_pool_that_has_ended_is_loaded_and_says_so() -> None:
    name = fresh_name()
    with xmem.BufferPool(name) as there, xmem.BufferPool(name, existing=True) as pool:
        message = pickle.dumps(pool)
        assert there.stat().clients == 2
    gone = pickle.loads(message)
    assert gone.closed and gone.name == name and gone.options["existing"]
    assert "a pool ends with the last process" in repr(gone)
    for call, arguments in POOL_CALLS.items():
        with pytest.raises(xmem.NotFound, match="a pool ends with the last process"):
            getattr(gone, call)(*arguments)
    for use in ("client", "backend"):
        with pytest.raises(xmem.NotFound):
            getattr(gone, use)
    with gone:
        gone.close()
    with xmem.BufferPool(name) as back:     # it is looked for anew
        found = pickle.loads(pickle.dumps(gone))
        assert found.stat().clients == 2 and back.stat().clients == 2


def send_a_pool(pipe: Any) -> None:
    with xmem.BufferPool(writer=True) as pool, published(pool) as guard:
        pipe.send((pool, guard))
        pipe.recv()
        os._exit(0)


@pytest.mark.parametrize("method", METHODS)
def test_an_anonymous_pool_whose_sender_has_ended(method: str) -> None:
    context: Any = multiprocessing.get_context(method)
    here, there = context.Pipe()
    worker = context.Process(target=send_a_pool, args=(there,))
    worker.start()
    there.close()
    try:
        assert here.poll(LIMIT)
        message = here.recv_bytes()
        here.send("end")
        worker.join(LIMIT)
        assert worker.exitcode == 0
        pool, guard = pickle.loads(message)
        for use in (pool.stat, lambda: guard.token):
            with pytest.raises(xmem.NotFound, match="process that has sent it has ended"):
                use()
        assert pickle.loads(pickle.dumps(guard)).gone
        assert pickle.loads(pickle.dumps(pool)).closed
    finally:
        worker.kill()
        worker.join(LIMIT)
        here.close()


# ---- multiprocessing ----

def size(guard: xmem.BufferGuard) -> int:
    return guard.nbytes


def from_a_pool_of_its_own(name: str) -> Any:
    """A worker's parcel, which arrives as a guard: the pool ends with this function."""
    with xmem.BufferPool(name, writer=True) as pool, published(pool) as guard:
        return guard.parcel()


class Message:
    """Pickled, it is that message, which was made before."""

    def __init__(self, message: bytes) -> None:
        self.message = message

    def __reduce__(self) -> tuple[Callable[[bytes], Any], tuple[bytes]]:
        return pickle.loads, (self.message,)


@pytest.mark.parametrize("method", METHODS)
def test_a_pool_of_workers_survives_what_is_lost(method: str) -> None:
    with pair() as (writer, _), multiprocessing.get_context(method).Pool(1) as workers:
        with pytest.raises(xmem.Stale, match="buffer of this message is gone"):
            workers.apply_async(size, (Message(voided(writer)),)).get(30)
        got = workers.apply_async(from_a_pool_of_its_own, (fresh_name("own"),)).get(30)
        with pytest.raises(xmem.NotFound, match="there is no pool 'own-"):
            got.token
        assert workers.apply_async(size, (published(writer),)).get(30) == 8


@pytest.mark.parametrize("method", METHODS)
def test_an_executor_survives_what_is_lost(method: str) -> None:
    context: Any = multiprocessing.get_context(method)
    with pair() as (writer, _), \
            concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as workers:
        with pytest.raises(xmem.Stale, match="buffer of this message is gone"):
            workers.submit(size, Message(voided(writer))).result(30)    # type: ignore[arg-type]
        got = workers.submit(from_a_pool_of_its_own, fresh_name("own")).result(30)
        with pytest.raises(xmem.NotFound, match="there is no pool 'own-"):
            got.token
        assert workers.submit(size, published(writer)).result(30) == 8


@pytest.mark.parametrize("method", METHODS)
def test_queues_and_pipes_go_on_after_what_is_lost(method: str) -> None:
    context: Any = multiprocessing.get_context(method)
    with pair() as (writer, _), context.Manager() as manager:
        here, there = context.Pipe()
        ways = [(here.send, there.recv)]
        for queue in (context.Queue(), context.SimpleQueue(), manager.Queue()):
            ways.append((queue.put, queue.get))
        for put, get in ways:
            put(Message(voided(writer)))
            put(published(writer).parcel())
            with pytest.raises(xmem.Stale, match="buffer of this message is gone"):
                get().token
            assert bytes(get()) == b"contents"


def test_a_worker_s_own_pool_lives_while_the_parent_has_it() -> None:
    name = fresh_name()
    with xmem.BufferPool(name), multiprocessing.get_context("spawn").Pool(1) as workers:
        assert bytes(workers.apply(from_a_pool_of_its_own, (name,))) == b"contents"


def test_another_host_s_message_is_lost_too() -> None:
    """A process with another daemon has no such pool, and says that."""
    with pair() as (writer, _):
        out = python("""if True:
            import os, pickle, sys
            os.environ["XMEM_SOCKET"] += "-other"
            guard = pickle.loads(bytes.fromhex(sys.stdin.read()))
            print(guard.gone, guard)
            """, send=pickle.dumps(published(writer)).hex())
        assert out.startswith("True ") and "there is no pool" in out
