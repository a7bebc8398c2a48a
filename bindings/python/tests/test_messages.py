# SPDX-License-Identifier: MIT
"""Messages that nobody loads: how long they keep a buffer, the errors about them, and how the
buffer comes back."""
from __future__ import annotations

import copy
import gc
import multiprocessing
import os
import pickle
import threading
import time
from typing import Any

import pytest

import xmem
from support import LIMIT, Thread, fresh_name, pair, published
from test_fork import in_child


# ---- how long ----

@pytest.mark.parametrize("as_parcel", [False, True])
def test_a_message_that_nobody_loads_keeps_its_buffer_for_a_time(as_parcel: bool) -> None:
    with pair(in_flight=0.05) as (writer, _):
        writer.preallocate_cpu(8, 1)
        for _ in range(3):
            with writer.acquire_cpu(8, timeout=LIMIT) as guard:
                guard.publish(keep=True)
                begun = time.monotonic()
                pickle.dumps(guard.parcel() if as_parcel else guard)
            writer.acquire_cpu(8, timeout=LIMIT).release()
            assert time.monotonic() - begun >= 0.05


def test_a_send_that_fails_does_not_use_the_pool_up() -> None:
    here, there = multiprocessing.Pipe()
    there.close()
    with pair(in_flight=0.05) as (writer, _):
        writer.preallocate_cpu(8, 1)
        for _ in range(3):
            with writer.acquire_cpu(8, timeout=LIMIT) as guard:
                guard.publish(keep=True)
                with pytest.raises(BrokenPipeError):
                    here.send(guard)
    here.close()


def test_messages_wait_ten_minutes_if_nothing_is_said() -> None:
    with pair() as (writer, reader):
        assert writer.options["in_flight"] == 600.0
        guard = published(writer)
        pickle.dumps(guard)
        assert [each.lasts for each in writer.unread()] == [600.0]
        # The reference to another client's buffer lasts a minute at most, and less with a shorter
        # in_flight.
        pickle.dumps(reader.get(guard.token))
        assert [each.lasts for each in reader.unread()] == [60.0]
        with xmem.BufferPool(writer.name, in_flight=7) as third:
            pickle.dumps(third.get(guard.token))
            assert [each.lasts for each in third.unread()] == [7]


def test_a_parcel_has_a_time_of_its_own() -> None:
    with pair(in_flight=0.01) as (writer, reader):
        guard = published(writer)
        with pytest.raises(xmem.NotPermitted, match="60 seconds"):
            reader.get(guard.token).parcel(lasts=61)
        with pytest.raises(ValueError, match="lasts is None"):
            guard.parcel(lasts=0)
        kept = guard.parcel(lasts=None)
        assert [each.lasts for each in writer.unread()] == [None]
        del kept
    with pair(in_flight=None) as (writer, _):
        writer.preallocate_cpu(8, 1)
        with published(writer) as guard:
            pickle.dumps(guard.parcel(lasts=0.05))
        writer.acquire_cpu(8, timeout=LIMIT).release()


@pytest.mark.parametrize("wrong", [0, -1, float("nan")])
def test_a_time_that_is_none_is_refused(wrong: float) -> None:
    with pytest.raises(ValueError, match="in_flight is None"):
        xmem.BufferPool(fresh_name(), in_flight=wrong)


def test_a_pickled_pool_keeps_its_time() -> None:
    with xmem.BufferPool(fresh_name(), in_flight=5.5) as pool:
        assert pickle.loads(pickle.dumps(pool)) is pool
        message = pickle.dumps(pool)
    with pickle.loads(message) as loaded:
        assert loaded.options["in_flight"] == 5.5


def test_all_that_is_set_aside_of_a_buffer_lasts_as_long_as_the_longest() -> None:
    """The host has one time for a buffer: what offer() has set aside waits as the message does."""
    with pair(in_flight=2) as (writer, _):
        writer.preallocate_cpu(8, 1)
        together = False
        while not together:     # on a busy machine the offer may be over before the message is made
            with published(writer) as guard:
                guard.offer(1, lasts=0.1)
                begun = time.monotonic()
                message = pickle.dumps(guard)
                together = writer.stat().claims == 2
                pickle.loads(message).release()
            writer.acquire_cpu(8, timeout=LIMIT).release()
        assert time.monotonic() - begun >= 2


# ---- who is told ----

def test_an_acquire_in_vain_says_which_messages_wait() -> None:
    with pair() as (writer, _):
        writer.preallocate_cpu(8, 2)
        guards = [published(writer) for _ in range(2)]
        pickle.dumps(guards[0])
        guards[1].offer(1, lasts=30)
        token = guards[0].token
        for guard in guards:
            guard.release()
        assert [each[:2] for each in writer.unread()] == [(token, 1)]
        for timeout, kind in ((0, xmem.WouldBlock), (0.01, xmem.TimedOut)):
            with pytest.raises(kind, match="2 set aside; of those set aside 1 are in messages that "
                               "this process has made .* after 600 s .*; 1 are set") as caught:
                writer.acquire_cpu(8, timeout=timeout)
        assert "pool.void_claims(token)" in str(caught.value)
        assert caught.value.args == (caught.value.errno, caught.value.strerror)
        assert isinstance(caught.value, xmem.TimedOut)
        assert [(each.client, each.holds, each.unread) for each in caught.value.holders] == [
            (writer.client, 0, 1)]
        writer.void_claims(writer.unread()[0].token)
        assert writer.unread() == [] and writer.holders() == []
        writer.acquire_cpu(8, timeout=0).release()


def test_the_oldest_message_that_nobody_has_loaded_comes_first() -> None:
    with pair() as (writer, _):
        guards = [published(writer, bytes([number])) for number in range(3)]
        messages = [pickle.dumps(guard) for guard in guards]
        tokens = [guard.token for guard in guards]
        assert [each.token for each in writer.unread()] == tokens
        pickle.loads(messages[1]).release()
        pickle.dumps(guards[0])             # the first one waits still
        found = writer.unread()
        assert [each[:2] for each in found] == [(tokens[0], 2), (tokens[2], 1)]
        assert found[0].seconds > found[1].seconds >= 0
        pickle.loads(messages[0])
        pickle.loads(messages[0])
        pickle.dumps(guards[0])             # and now it is another
        assert [each.token for each in writer.unread()] == [tokens[2], tokens[0]]
        assert len(writer._sent) == 2


# ---- parcels ----

def test_a_parcel_that_could_not_be_sent_is_sent_again() -> None:
    with pair() as (writer, _):
        writer.preallocate_cpu(8, 1)
        with published(writer) as guard:
            parcel, token = guard.parcel(), guard.token
        with pytest.raises(TypeError):
            pickle.dumps((parcel, threading.Lock()))
        message = pickle.dumps(parcel)
        assert writer.claims(token) == 2        # that of the first is still there
        assert bytes(pickle.loads(message)) == b"contents"
        writer.void_claims(token)
        gc.collect()
        writer.acquire_cpu(8, timeout=0).release()
        with pytest.raises(xmem.Stale, match="this parcel has been pickled before"):
            pickle.dumps(parcel)


def test_a_parcel_sets_aside_anew_what_has_been_voided() -> None:
    with pair() as (writer, _):
        guard = published(writer)
        parcel = guard.parcel()
        writer.void_claims(guard.token)
        message = pickle.dumps(parcel)
        assert writer.claims(guard.token) == 1
        guard.release()
        assert bytes(pickle.loads(message)) == b"contents"


def test_a_parcel_whose_buffer_is_gone_tells_its_receiver() -> None:
    with pair() as (writer, _):
        with published(writer) as guard:
            parcel = guard.parcel()
        writer.void_claims(guard_token(parcel))
        writer.collect()
        with pytest.raises(xmem.Stale, match="buffer of this message is gone"):
            pickle.loads(pickle.dumps(parcel)).token


def guard_token(parcel: xmem.Parcel) -> int:
    return parcel._token


def test_a_parcel_gives_back_what_it_has_after_its_pool_was_closed() -> None:
    name = fresh_name()
    with xmem.BufferPool(name, label="looks") as other:
        with xmem.BufferPool(name, writer=True) as pool, published(pool) as guard:
            token, parcels = guard.token, [guard.parcel() for _ in range(3)]
        assert pool.closed and other.claims(token) == 3
        with pytest.raises(xmem.Released, match="this pool has been closed"):
            pool.claims(token)
        parcels.pop()
        assert other.claims(token) == 2 and other.stat().clients == 2
        message = pickle.dumps(parcels.pop())
        parcels.pop()
        assert other.claims(token) == 1 and other.stat().clients == 1   # the last closes it
        assert bytes(pickle.loads(message)) == b"contents"


def test_a_parcel_ends_a_pool_that_is_dropped_without_close() -> None:
    name = fresh_name()
    with xmem.BufferPool(name) as other:
        pool = xmem.BufferPool(name, writer=True)
        with published(pool) as guard:
            parcel = guard.parcel()
        del pool, guard
        gc.collect()
        assert other.stat().clients == 2
        del parcel
        gc.collect()
        assert other.stat().clients == 1


def test_a_guard_is_not_pickled_after_its_pool_was_closed() -> None:
    with pair() as (writer, _):
        guard = published(writer)
        writer.close()
        assert bytes(guard) == b"contents" and bytes(copy.copy(guard)) == b"contents"
        for make in (pickle.dumps, xmem.BufferGuard.parcel):
            with pytest.raises(xmem.Released, match=r"messages are made before pool\.close\(\)"):
                make(guard)


def test_threads_that_pickle_one_parcel_have_a_message_each() -> None:
    with pair() as (writer, _):
        for _ in range(20):
            start = threading.Barrier(4)
            with published(writer) as guard:
                parcel, token = guard.parcel(), guard.token

            def send(parcel: xmem.Parcel = parcel, start: threading.Barrier = start) -> bytes:
                start.wait(LIMIT)
                return pickle.dumps(parcel)

            messages = [thread.get() for thread in [Thread(send) for _ in range(4)]]
            assert writer.claims(token) == 4
            loaded = [pickle.loads(message) for message in messages]
            assert {bytes(each) for each in loaded} == {b"contents"}
            assert writer.claims(token) == 0


def test_threads_that_drop_parcels_of_a_pool_that_is_closed() -> None:
    name = fresh_name()
    with xmem.BufferPool(name) as other:
        for _ in range(20):
            start = threading.Barrier(5)
            pool = xmem.BufferPool(name, writer=True)
            with published(pool) as guard:
                parcels = [guard.parcel() for _ in range(4)]

            def drop(parcels: list[xmem.Parcel] = parcels,
                     start: threading.Barrier = start) -> None:
                start.wait(LIMIT)
                del parcels[0]

            threads = [Thread(drop) for _ in range(4)]
            start.wait(LIMIT)
            pool.close()
            for thread in threads:
                thread.get()
            found = other.stat()
            assert (found.clients, found.claims) == (1, 0)


# ---- forks ----

def test_a_parcel_is_the_parent_s() -> None:
    with pair() as (writer, _):
        with published(writer) as guard:
            token, parcels = guard.token, [guard.parcel(), guard.parcel()]
        pickle.dumps(parcels[1])

        def child() -> None:
            for parcel in parcels:
                with pytest.raises(xmem.Forked, match="this parcel was inherited by fork"):
                    pickle.dumps(parcel)
            parcels.clear()
            gc.collect()

        in_child(child)
        assert writer.claims(token) == 2
        parcels.clear()
        assert writer.claims(token) == 1
        with xmem.BufferPool(writer.name) as third:
            assert third.claims(token) == 1


def test_a_parcel_of_a_closed_pool_is_the_parent_s_too() -> None:
    name = fresh_name()
    with xmem.BufferPool(name) as other:
        with xmem.BufferPool(name, writer=True) as pool, published(pool) as guard:
            parcels, token = [guard.parcel()], guard.token
        in_child(parcels.clear)
        assert other.claims(token) == 1 and other.stat().clients == 2
        parcels.clear()
        assert other.stat().clients == 1


def hand_back(queue: Any, answers: Any) -> None:
    """A stage: it passes each guard on, as a message of its own."""
    for guard in iter(queue.get, None):
        with guard:
            answers.put(guard.parcel())
    answers.close()
    answers.join_thread()
    os._exit(0)


def test_a_process_passes_on_what_it_does_not_own() -> None:
    context = multiprocessing.get_context("spawn")
    questions, answers = context.Queue(), context.Queue()
    worker = context.Process(target=hand_back, args=(questions, answers))
    worker.start()
    try:
        with pair() as (writer, _):
            for number in range(10):
                with published(writer, bytes([number])) as guard:
                    questions.put(guard.parcel())
            questions.put(None)
            assert [bytes(answers.get(timeout=LIMIT))[0] for _ in range(10)] == list(range(10))
            worker.join(LIMIT)
            assert worker.exitcode == 0 and writer.unread() == []
    finally:
        worker.kill()
        worker.join(LIMIT)
        questions.close()
