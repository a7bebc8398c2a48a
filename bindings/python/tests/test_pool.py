# SPDX-License-Identifier: MIT
"""Pools: how they are opened and closed, their buffers, and what they refuse."""
from __future__ import annotations

import errno
import functools
import gc
import os
import sys
import weakref
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xmem
from support import LIMIT, Thread, fresh_name, pair, published


def test_a_writer_and_a_reader_share_one_pool() -> None:
    with pair() as (writer, reader):
        token = published(writer, b"hello").token
        with writer.acquire_cpu(5) as other:
            memoryview(other)[:] = b"other"
            kept = other.publish(keep=True)
            assert bytes(reader.get(kept)) == b"other"
        assert writer.client != reader.client
        assert writer.backend == reader.backend
        assert writer.backend in ("daemon", "kernel")
        assert token != kept


def test_existing_and_exclusive() -> None:
    name = fresh_name()
    with pytest.raises(xmem.NotFound, match=name):
        xmem.BufferPool(name, existing=True)
    with xmem.BufferPool(name, exclusive=True):
        with pytest.raises(xmem.Exists, match=name):
            xmem.BufferPool(name, exclusive=True)
        xmem.BufferPool(name, existing=True).close()


def test_sizes_that_the_pool_does_not_have() -> None:
    name = fresh_name()
    with xmem.BufferPool(name, slots=64, clients=4, ring_entries=8):
        with pytest.raises(xmem.Error) as caught:
            xmem.BufferPool(name, slots=4096)
        assert caught.value.errno == errno.ERANGE


@pytest.mark.parametrize("options", [
    {"slots": 1 << 20}, {"clients": 1000}, {"ring_entries": 3}, {"keep": 1 << 20},
    {"label": "sixteen letters!"}, {"label": "\t"}])
def test_what_the_library_refuses(options: dict[str, Any]) -> None:
    with pytest.raises(xmem.Error) as caught:
        xmem.BufferPool(fresh_name(), writer=True, **options)
    assert caught.value.errno == errno.EINVAL
    assert caught.value.strerror and next(iter(options)) in caught.value.strerror


def test_names_have_slashes_and_128_characters() -> None:
    name = f"/{fresh_name()}/image_raw".ljust(128, "x")
    with xmem.BufferPool(name, writer=True, exclusive=True) as writer:
        published(writer, b"hello")
        assert [entry.clients for entry in xmem.pools() if entry.name == name] == [1]
        xmem.BufferPool(f"{os.getuid()}:{name}", existing=True).close()
        with pytest.raises(xmem.NotFound):
            xmem.BufferPool(name[1:], existing=True)


def test_an_anonymous_pool_is_looked_at_by_its_number() -> None:
    before = {entry.number for entry in xmem.pools()}
    with xmem.BufferPool(writer=True) as pool:
        number, = {entry.number for entry in xmem.pools() if not entry.name} - before
        with xmem.BufferPool(f"@{number}") as look:
            assert pool.stat().clients == look.stat().clients == 2
        with pytest.raises(xmem.Error, match="only a reader can join by it"):
            xmem.BufferPool(f"@{number}", writer=True)


@pytest.mark.parametrize("name", ["a b", ".dot", "x" * 129, "ä", "a//b", "a/", "a/../b", "a!b",
                                  "nobody-here:a"])
def test_bad_names(name: str) -> None:
    with pytest.raises(xmem.Error) as caught:
        xmem.BufferPool(name)
    assert caught.value.errno == errno.EINVAL


@pytest.mark.parametrize(("options", "error"), [
    ({"slots": -1}, ValueError), ({"slots": 1 << 32}, ValueError), ({"slots": "1"}, TypeError),
    ({"clients": 1.5}, TypeError), ({"ring_entries": None}, TypeError),
    ({"wait_bound": -0.1}, ValueError), ({"wait_bound": "1"}, TypeError),
    ({"wait_bound": float("nan")}, ValueError), ({"label": 3}, TypeError),
    ({"label": "a\0b"}, ValueError), ({"demand_bytes": -1}, ValueError),
    ({"demand_bytes": 1 << 64}, ValueError), ({"cache_bytes": -1}, ValueError),
    ({"cache_time": -1}, ValueError), ({"keep": -1}, ValueError), ({"keep": []}, TypeError),
    ({"mode": "rw"}, TypeError), ({"mode": -1}, ValueError), ({"group": 2.5}, TypeError),
    ({"nonsense": 1}, TypeError)])
def test_wrong_types_and_ranges(options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        xmem.BufferPool(fresh_name(), **options)
    with pytest.raises((TypeError, ValueError)):
        xmem.BufferPool(b"bytes")       # type: ignore[arg-type]
    with pytest.raises(ValueError, match="null"):
        xmem.BufferPool("a\0b")


def test_the_types_cannot_be_made_without_a_call() -> None:
    for cls in (xmem.BufferGuard, xmem.Subscription, xmem._core.Pool, xmem._core.Guard,
                xmem._core.Subscription):
        with pytest.raises(TypeError):
            cls()
    with pytest.raises(TypeError, match="no Pool"):
        xmem._core.pool_open(int, None, -1, 0, 0, 0, 0, 0, None,    # type: ignore[type-var]
                             0, 0, 0, 0, 0, 0, 0)
    with pytest.raises(TypeError):
        xmem._core.set_types(int, int)      # type: ignore[arg-type]
    with pytest.raises(TypeError):
        xmem._core.set_errors([], str)      # type: ignore[arg-type]
    with pytest.raises(TypeError):
        xmem._core.set_errors({}, None)     # type: ignore[arg-type]


# Every call of a pool, with arguments that are right.
CALLS: dict[str, tuple[Any, ...]] = {
    "_acquire": (8, 0), "acquire_cpu": (8,), "attach_fd": (0,), "cancel": (), "claims": (1,),
    "add_ref": (1,), "collect": (), "release": (1,), "fd": (), "fileno": (), "get": (1,),
    "get_mut": (1,), "set_ref_count": (1, 1), "limbo_hook": (None,),
    "_preallocate": (8, 1, 0), "preallocate_cpu": (8, 1),
    "receive": (0,), "reopen": (), "retract": (1,), "subscribe": (), "trim": (),
    "void_claims": (1,)}
# Calls that wait for ever, make pools, or take arguments that are not of a pool.
NOT_FUZZED = {"subscribe", "cancel", "reopen", "fd", "attach_fd"}


@pytest.mark.parametrize("name", CALLS)
def test_a_closed_pool_refuses_each_call(name: str) -> None:
    pool = xmem.BufferPool(fresh_name(), writer=True)
    pool.close()
    pool.close()
    assert pool.closed and "closed" in repr(pool)
    with pytest.raises(xmem.Released, match="this pool has been closed") as caught:
        getattr(pool, name)(*CALLS[name])
    assert caught.value.errno == errno.EBADF
    assert isinstance(caught.value, ValueError)


def test_a_closed_pool_refuses_each_property() -> None:
    pool = xmem.BufferPool(fresh_name())
    pool.close()
    for name in ("client", "backend"):
        with pytest.raises(xmem.Released):
            getattr(pool, name)


junk = st.one_of(st.none(), st.text(max_size=3), st.binary(max_size=3), st.floats(), st.booleans(),
                 st.integers(), st.lists(st.integers(), max_size=2), st.just(object()))


@settings(max_examples=60)
@given(st.data(), st.sampled_from(sorted(set(CALLS) - NOT_FUZZED)))
def test_any_arguments_end_in_an_exception_or_a_result(data: st.DataObject, name: str) -> None:
    """Nothing crashes, and every exception is an Error, a TypeError or a ValueError."""
    count = len(CALLS[name])
    with xmem.BufferPool(None, writer=True, demand_bytes=1 << 20) as pool:
        arguments = data.draw(st.lists(junk, min_size=count, max_size=count))
        if name in ("_acquire", "acquire_cpu", "receive"):
            arguments = arguments[:1] + [0] if name == "_acquire" else [0]
        try:
            getattr(pool, name)(*arguments)
        except (xmem.Error, TypeError, ValueError):
            pass
        assert not pool.closed and pool.client >= 0


@given(junk)
def test_any_timeout(value: Any) -> None:
    with xmem.BufferPool(None) as pool:
        with pytest.raises((xmem.Error, TypeError, ValueError)) as caught:
            pool.subscribe(timeout=0 if value is None or value == value and
                           isinstance(value, (int, float)) and value >= 0 else value)
        if isinstance(caught.value, xmem.Error):
            assert isinstance(caught.value, xmem.NotFound)


def test_preallocated_buffers_are_all_there_is() -> None:
    with pair() as (writer, _):
        writer.preallocate_cpu(4096, 2)
        first, second = writer.acquire_cpu(4096), writer.acquire_cpu(100)
        assert (first.nbytes, second.nbytes, second.capacity) == (4096, 100, 4096)
        with pytest.raises(xmem.WouldBlock):
            writer.acquire_cpu(10, timeout=0)
        with pytest.raises(xmem.TimedOut, match="(?i)held|hold|none") as caught:
            writer.acquire_cpu(10, timeout=0.01)
        assert isinstance(caught.value, TimeoutError)
        with pytest.raises(xmem.NoSpace, match="5000"):
            writer.acquire_cpu(5000, timeout=0)
        first.release()
        writer.acquire_cpu(10, timeout=0)


def test_shapes_and_types_of_what_is_acquired() -> None:
    with pair() as (writer, _):
        frame = writer.acquire_cpu((2, 3, 4), "float32")
        assert (frame.shape, frame.strides, frame.dtype) == ((2, 3, 4), (48, 16, 4), "float32")
        assert frame.nbytes == 96
        assert writer.acquire_cpu(shape=(5,), dtype="uint8").nbytes == 5
        for arguments in ({"dtype": "uint8"}, {"shape": (2,)},
                          {"shape": (2,), "dtype": "uint8", "nbytes": 3}):
            with pytest.raises(TypeError):
                writer.acquire_cpu(**arguments)
        with pytest.raises(TypeError, match="once"):
            writer.acquire_cpu((2,), "uint8", shape=(2,))
        with pytest.raises(TypeError, match="these can"):
            writer.acquire_cpu((2,), "object")
        with pytest.raises(ValueError, match="at most 8"):
            writer.acquire_cpu((1,) * 9, "uint8")
        with pytest.raises(ValueError, match="negative"):
            writer.acquire_cpu((-2,), "uint8")


def test_a_reader_is_told_how_to_write() -> None:
    with pair() as (_, reader):
        assert reader.trim() == 0       # it has nothing to give back
        for call in lambda: reader.acquire_cpu(8), lambda: reader.preallocate_cpu(8, 1):
            with pytest.raises(xmem.NotPermitted) as caught:
                call()
            assert isinstance(caught.value, PermissionError)


def sealed(contents: bytes) -> int:
    import fcntl
    fd = os.memfd_create("sealed", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
    os.write(fd, contents)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW |
                fcntl.F_SEAL_WRITE)
    return fd


def test_a_sealed_file_is_published_uncopied() -> None:
    contents = bytes(range(256)) * 16
    with pair() as (writer, reader):
        fd = sealed(contents)
        guard = writer.attach_fd(fd, 64, 1000)
        os.close(fd)
        view = memoryview(guard)
        assert view.readonly
        view.release()
        token = guard.publish(keep=True)
        assert bytes(reader.get(token)) == contents[64:1064]
        with pytest.raises(xmem.Released, match="descriptor|open"):
            writer.attach_fd(fd)
        unsealed = os.memfd_create("unsealed", os.MFD_ALLOW_SEALING)
        os.write(unsealed, b"x")
        with pytest.raises(xmem.Error, match="F_SEAL") as caught:
            writer.attach_fd(unsealed)
        assert caught.value.errno == errno.ENOEXEC
        os.close(unsealed)
        with pytest.raises(TypeError):
            writer.attach_fd("file")


def test_claims_are_counted_taken_and_voided() -> None:
    with pair() as (writer, reader):
        guard = writer.acquire_cpu(8)
        guard.set_ref_count(3)          # this guard's, and two that are set aside
        token = guard.token
        assert writer.claims(token) == 2
        first = reader.get(token)
        assert writer.claims(token) == 1
        second = reader.get(guard.meta_index)
        assert writer.claims(token) == 0
        guard.release()
        assert writer.claims(token) == 0
        reader.get(token & 0xffff).release()    # it is there, and nothing is set aside
        first.forget()
        assert writer.claims(token) == 1
        writer.add_ref(token)
        writer.release(token)
        assert writer.claims(token) == 1
        writer.void_claims(token)
        assert writer.claims(token) == 0
        with pytest.raises(xmem.NotFound):
            writer.void_claims(token)
        with pytest.raises(xmem.Error) as caught:
            writer.release(token)
        assert caught.value.errno == errno.ERANGE
        second.release()
        writer.collect()
        for call in (writer.get, writer.claims, writer.add_ref, writer.release):
            for number in (token, token & 0xffff):
                with pytest.raises(xmem.Stale):
                    call(number)


def test_what_nobody_has_can_be_taken_back() -> None:
    with pair() as (writer, reader):
        subscription = reader.subscribe()
        token = writer.acquire_cpu(8).publish()
        writer.retract(token)
        with pytest.raises(xmem.WouldBlock):
            subscription.receive(0)
        token = writer.acquire_cpu(8).publish()
        held = subscription.receive(0)
        with pytest.raises(xmem.Error) as caught:
            writer.retract(token)
        assert caught.value.errno == errno.EBUSY
        held.release()
        writer.retract(token)
        with pytest.raises(xmem.Stale):
            writer.retract(token)


def test_collect_and_trim() -> None:
    with pair() as (writer, _):
        writer.acquire_cpu(1 << 20).publish()
        assert writer.collect() >= 0
        assert writer.trim() >= 1 << 20
        assert writer.trim(keep=1 << 30) == 0


def test_cancel_ends_a_wait_for_ever() -> None:
    with pair() as (writer, reader):
        subscription = reader.subscribe()
        thread = Thread(subscription.receive)
        thread.waits()
        reader.cancel()
        with pytest.raises(xmem.Canceled):
            thread.get()
        with pytest.raises(xmem.Canceled):
            subscription.receive(1)
        writer.acquire_cpu(8).publish()
        subscription.receive(0).release()


def test_a_descriptor_hands_an_anonymous_pool_on() -> None:
    with xmem.BufferPool(writer=True) as writer:
        assert writer.name is None and writer.identity
        fd = writer.fd()
        with xmem.BufferPool.from_fd(fd) as reader:
            assert bytes(reader.get(published(writer, b"x" * 9).token)) == b"x" * 9
        with pytest.raises(TypeError, match="nonsense"):
            xmem.BufferPool.from_fd(fd, nonsense=1)
        os.close(fd)
    with pytest.raises(ValueError, match="negative"):
        xmem.BufferPool.from_fd(-1)
    with open(os.devnull, encoding="ascii") as file, pytest.raises(xmem.Released):
        xmem.BufferPool.from_fd(file.fileno())


def test_a_descriptor_is_narrowed() -> None:
    with xmem.BufferPool(writer=True) as writer:
        fd = writer.fd()
        reads = xmem.BufferPool.narrow_fd(fd)
        with xmem.BufferPool.from_fd(reads) as reader:
            assert reader.client != writer.client
        with pytest.raises(xmem.NotPermitted, match="narrowed"):
            xmem.BufferPool.from_fd(reads, writer=True)
        with pytest.raises(xmem.NotPermitted):
            xmem.BufferPool.narrow_fd(reads, writer=True)
        with pytest.raises(xmem.Error, match="reader=True") as refused:
            xmem.BufferPool.narrow_fd(fd, reader=False)
        assert refused.value.errno == errno.EINVAL
        with xmem.BufferPool.from_fd(fd, writer=True):
            pass
        os.close(fd)
        os.close(reads)
    with open(os.devnull, encoding="ascii") as file, pytest.raises(xmem.Released):
        xmem.BufferPool.narrow_fd(file.fileno())


def test_modes_say_who_may_join() -> None:
    def entry() -> xmem.PoolEntry:
        return next(pool for pool in xmem.pools() if pool.name == name)

    name = fresh_name()
    with xmem.BufferPool(name, writer=True, mode=0o400, group=os.getegid()) as pool:
        assert (entry().mode, entry().gid, entry().owner_uid) == (0o400, os.getegid(),
                                                                  os.geteuid())
        if os.geteuid() or pool.backend == "daemon":
            assert entry().roles == 2
            with pytest.raises(xmem.NotPermitted, match="0600") as refused:
                xmem.BufferPool(name, writer=True)
            assert refused.value.errno == errno.EACCES
        pool.set_mode(0o600)
        assert (entry().mode, entry().roles) == (0o600, 6)
        pool.set_mode(group=os.getegid())
        assert entry().mode == 0o600
        with xmem.BufferPool(f"{os.geteuid()}:{name}", writer=True) as again:
            assert again.stat().clients == 2
        if pool.backend == "daemon":
            with pytest.raises(xmem.Error, match="xmemd") as refused:
                xmem.BufferPool(name + "x", mode=0o640)
            assert refused.value.errno == errno.EOPNOTSUPP
        with pytest.raises(ValueError, match="0o640"):
            pool.set_mode(0)
        with pytest.raises(xmem.Error, match="0200"):
            pool.set_mode(0o200)
    with pytest.raises(xmem.Error, match="may not read"):
        xmem.BufferPool(name, mode=0o620)
    with pytest.raises(xmem.NotFound, match="no-such-group-here"):
        xmem.BufferPool(name, group="no-such-group-here")


def test_evict_and_drain() -> None:
    name = fresh_name()
    with xmem.BufferPool(name, writer=True) as pool, xmem.BufferPool(name) as other:
        info = pool.client_info(other.client)
        with pytest.raises(xmem.Error, match="^.Errno [0-9]+. evict: client") as refused:
            pool.evict(pool.client_info(pool.client))
        assert refused.value.errno == errno.EINVAL
        if pool.backend == "daemon":
            with pytest.raises(xmem.Error, match="live process") as refused:
                pool.evict(info)
            assert refused.value.errno == errno.EOPNOTSUPP
            with pytest.raises(xmem.Error, match="live process") as refused:
                pool.drain(evict=True)
            assert refused.value.errno == errno.EOPNOTSUPP
        else:
            pool.evict(info)
            with pytest.raises(xmem.Stale):
                pool.evict(info)
        assert pool.drain() == 0
        with pytest.raises(xmem.Error, match="drained") as refused:
            xmem.BufferPool(name)
        assert refused.value.errno == errno.ESHUTDOWN
    with xmem.BufferPool(name) as pool:
        assert pool.stat().clients == 1


def test_grant() -> None:
    with pair() as (writer, reader):
        info = writer.client_info(reader.client)
        writer.grant(info)
        with pytest.raises(xmem.NotPermitted, match="writer"):
            reader.grant(reader.client_info(writer.client))


def test_reopen_is_a_second_client() -> None:
    with pair() as (writer, _), writer.reopen() as second:
        assert type(second) is xmem.BufferPool and second.name == writer.name
        assert second.client != writer.client
        guard = published(second)
        assert bytes(writer.get(guard.token)) == b"contents"
    with xmem.BufferPool() as anonymous, pytest.raises(xmem.Error) as caught:
        anonymous.reopen()
    assert caught.value.errno == errno.EOPNOTSUPP


def test_buffers_and_views_outlive_the_pool() -> None:
    with pair() as (writer, reader):
        token = published(writer, b"still here").token
        guard = published(writer, b"still here")
        view = memoryview(guard)
        subscription = reader.subscribe()
    assert bytes(view) == b"still here" and guard.token != token
    guard.release()
    assert bytes(view) == b"still here"
    subscription.close()


def test_garbage_with_a_pool_in_it_is_collected() -> None:
    class Mine(xmem.BufferPool):
        pass

    pool = Mine(fresh_name(), writer=True)
    pool.itself = pool              # type: ignore[attr-defined]
    gone = weakref.ref(pool)
    client = xmem.BufferPool(pool.name).client
    del pool
    gc.collect()
    assert gone() is None and client >= 0


# ---- limbo ----

def full(writer: xmem.BufferPool) -> list[xmem.BufferGuard]:
    """Take all of two buffers, whose contents another client holds."""
    writer.preallocate_cpu(64, 2)
    other = writer.reopen()
    return [other.get(published(writer, bytes([i])).token) for i in range(2)]


def test_a_limbo_hook_is_called_in_the_acquire() -> None:
    with pair() as (writer, _):
        seen: list[Any] = []
        held = full(writer)

        def hook(limbo: Any) -> None:
            seen.append(limbo)
            held.pop().release()        # so that the acquire that waits goes on

        writer.limbo_hook(hook, count=1)
        writer.acquire_cpu(8, timeout=LIMIT).release()
        assert len(seen) == 1
        assert (seen[0].overdue, seen[0].ended) == (2, 0)
        assert seen[0].bytes_overdue >= 2 * 64 and "overdue=2" in repr(seen[0])


def test_what_a_limbo_hook_raises_is_unraisable(monkeypatch: pytest.MonkeyPatch) -> None:
    raised: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda it: raised.append((it.exc_type, it.object)))
    with pair() as (writer, _):
        held = full(writer)

        def hook(limbo: Any) -> None:
            raise KeyError("oops")

        writer.limbo_hook(hook, count=1)
        with pytest.raises(xmem.WouldBlock):
            writer.acquire_cpu(8, timeout=0)
        assert raised == [(KeyError, hook)]
        held.pop().release()
        writer.acquire_cpu(8, timeout=0)


def test_a_limbo_hook_cannot_close_its_pool_and_can_do_all_else() -> None:
    with pair() as (writer, _):
        errors: list[Any] = []
        held = full(writer)

        def hook(limbo: Any) -> None:
            for call in (writer.close, lambda: writer.acquire_cpu(8, timeout=0)):
                try:
                    call()
                except xmem.Error as error:
                    errors.append(error.errno)
            writer.limbo_hook(None)

        writer.limbo_hook(hook, count=1)
        with pytest.raises(xmem.WouldBlock):
            writer.acquire_cpu(8, timeout=0)
        assert errors == [errno.EDEADLK, errno.EAGAIN] and not writer.closed
        held.clear()


def test_limbo_hooks_are_collected_and_checked() -> None:
    pool = xmem.BufferPool(fresh_name(), writer=True)
    gone = weakref.ref(pool)
    pool.limbo_hook(functools.partial(print, pool), count=3)
    with pytest.raises(TypeError, match="function"):
        pool.limbo_hook(3, count=1)                     # type: ignore[arg-type]
    with pytest.raises(TypeError, match="too much"):
        pool.limbo_hook(print)
    with pytest.raises(ValueError):
        pool.limbo_hook(print, count=-1)
    del pool
    gc.collect()
    assert gone() is None


def test_limits_of_the_host_and_of_a_pool() -> None:
    with pair() as (writer, _):
        ours = xmem.limits()
        pools = ours[0]
        assert (pools.what, pools.scope) == ("pools", xmem.LimitScope.USER)
        assert 1 <= pools.used <= pools.most and not pools.in_bytes
        assert all(one.scope in (xmem.LimitScope.USER, xmem.LimitScope.HOST) for one in ours)
        numbers = [one.number for one in ours]
        assert numbers == sorted(set(numbers))
        clients = next(one for one in writer.limits()
                       if one.scope == xmem.LimitScope.POOL and one.what == "clients")
        assert (clients.used, clients.most) == (2, writer.stat().clients_max)
        writer.close()
        with pytest.raises(xmem.Error):
            writer.limits()
