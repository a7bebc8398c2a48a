# SPDX-License-Identifier: MIT
"""Calls of xmem's technical design (seed 004): its rules that its programs do not show.

test_seed_004.py has the programs.
"""
from __future__ import annotations

import errno
from typing import Any, Callable, Iterator

import numpy
import pytest

import xmem
from gpu import needs_gpu, no_violations  # noqa: F401
from support import LIMIT, pair, published
from test_seed_004 import SIZE, handed_over


# ---- section 6: what is made, and which slot it has ----

def test_what_is_preallocated_has_these_slots() -> None:
    with pair() as (pool, _):
        slots = pool.preallocate_cpu(SIZE, 3) + pool.preallocate_cpu(size=SIZE, count=2)
        slots += pool.preallocate_cpu((4, 4), 2, dtype="float32")
        slots += pool.preallocate_cpu(shape=(4, 4), dtype="float32", count=1)
        assert [pool.slot_info(slot).bytes for slot in slots] == 5 * [SIZE] + 3 * [64]
        assert len(set(slots)) == 8 == pool.stat().attached
        guards = [pool.acquire_cpu(size) for size in 5 * [SIZE] + 3 * [64]]
        assert {guard.meta_index for guard in guards} == set(slots)


@needs_gpu
def test_what_is_preallocated_on_a_gpu_has_these_slots() -> None:
    with pair() as (pool, _):
        slots = pool.preallocate_cuda(SIZE, 3, 0)
        guards = [pool.acquire_cuda(SIZE, 0, timeout=0) for _ in range(3)]
        assert sorted(slots) == sorted(guard.meta_index for guard in guards)
        with pytest.raises(xmem.WouldBlock):
            pool.acquire_cuda(size=SIZE, device_id=0, timeout=0)


@pytest.mark.parametrize("arguments, keywords", [
    ((SIZE,), {}), ((), {"count": 2}), ((SIZE, 2), {"shape": (2,), "dtype": "uint8"}),
    ((SIZE, 2), {"dtype": "uint8"}), (("4096", 2), {}), (((2, 2), 2), {})])
def test_what_is_not_preallocated(arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
    with pair() as (pool, _):
        for call in pool.preallocate_cpu, pool.preallocate_cuda:
            with pytest.raises(TypeError):
                call(*arguments, **keywords)
        assert pool.stat().attached == 0


@needs_gpu
def test_memory_of_a_gpu_is_made_on_demand() -> None:
    """Section 11: cudaMalloc as it is needed."""
    with pair() as (pool, _):
        guards = [pool.acquire_cuda(1 << 20, timeout=0) for _ in range(20)]
        assert len({guard.meta_index for guard in guards}) == 20
        made = pool.stat().attached
        for guard in guards:
            guard.release()
        for _ in range(40):         # and then it is used again
            pool.acquire_cuda(1 << 20, timeout=0).release()
        assert pool.stat().attached == made
        with pytest.raises(xmem.NoDevice):
            pool.acquire_cuda(SIZE, 9)
    with pair(demand_bytes=1 << 50) as (pool, _), pytest.raises(xmem.Error) as caught:
        pool.acquire_cuda(1 << 46)
    assert caught.value.errno == errno.ENOMEM
    with pair(demand_bytes=None) as (pool, _), pytest.raises(xmem.NoSpace):
        pool.acquire_cuda(SIZE)


@needs_gpu
def test_no_more_memory_of_a_gpu_is_made_than_demand_bytes() -> None:
    with pair(demand_bytes=4 << 20) as (pool, _):
        guards = [pool.acquire_cuda(2 << 20, timeout=0) for _ in range(2)]
        with pytest.raises(xmem.WouldBlock):
            pool.acquire_cuda(2 << 20, timeout=0)
        with pytest.raises(xmem.NoSpace, match="demand_bytes"):
            pool.acquire_cuda(8 << 20)
        for guard in guards:
            guard.release()
        assert pool.trim() == 4 << 20
        pool.preallocate_cuda(1 << 20, 1)
        pool.acquire_cuda(2 << 20, timeout=0).release()     # the program has given demand_bytes


# ---- section 6: by the index of a slot ----

def test_an_index_is_what_is_in_the_slot_now() -> None:
    with pair() as (pool, reader):
        pool.preallocate_cpu(8, 1)
        for contents in b"contents", b"others..":
            guard = published(pool, contents)
            index, token = guard.meta_index, guard.token
            for other in pool, reader:
                with other.get(index) as same:
                    assert same.token == token and bytes(same) == contents
            assert pool.slot_info(token).token == pool.slot_info(index).token == token
            assert pool.holds(pool.client, token) == pool.holds(pool.client, index) == 1
            guard.release()
            with reader.get(index) as same:         # nobody has it, and it is there still
                assert bytes(same) == contents


BY_INDEX = ("get", "get_mut", "add_ref", "release", "claims", "void_claims", "retract")


@pytest.mark.parametrize("name", [*BY_INDEX, "set_ref_count"])
def test_there_is_nothing_by_that_index(name: str) -> None:
    with pair(slots=64) as (pool, reader):
        index, = pool.preallocate_cpu(8, 1)
        more = (2,) if name == "set_ref_count" else ()
        call = getattr(pool, name)
        with pytest.raises(xmem.Stale, match=f"nothing in slot {index}"):
            call(index, *more)                      # it is free
        with pool.acquire_cpu(8), pytest.raises(xmem.Stale, match="being written"):
            call(index, *more)
        with pytest.raises(xmem.Error, match="there is no slot 65535") as caught:
            call(65535, *more)
        assert caught.value.errno == errno.EINVAL
        with pytest.raises(xmem.Stale, match="gone"):
            call(65536, *more)                      # a token
        for wrong in -1, 1 << 64:
            with pytest.raises(ValueError):
                call(wrong, *more)
        with pytest.raises(TypeError):
            call("0", *more)


def test_references_of_the_pool() -> None:
    with pair() as (pool, reader):
        pool.preallocate_cpu(8, 1)
        guard = published(pool)
        index = guard.meta_index
        with pytest.raises(xmem.Error) as caught:
            pool.release(index)                     # nothing is set aside
        assert caught.value.errno == errno.ERANGE and not guard.gone
        guard.set_ref_count(2, lasts=None)
        pool.add_ref(index)
        assert reader.claims(index) == 2
        pool.release(index)                         # undoes it
        assert reader.claims(index) == 1
        guard.release()
        with pytest.raises(xmem.WouldBlock):
            pool.acquire_cpu(8, timeout=0)
        pool.release(index)                         # the last one
        pool.acquire_cpu(8, timeout=LIMIT).release()


def test_a_count_is_the_guards_and_those_of_others() -> None:
    with pair() as (pool, reader):
        pool.preallocate_cpu(8, 1)
        guard = pool.acquire_cpu(8)
        memoryview(guard)[:] = b"contents"
        index = guard.meta_index
        pool.set_ref_count(index, 3, lasts=None)
        assert guard.readonly and pool.claims(index) == 2       # and its own
        pool.set_ref_count(guard.token, 2, lasts=30)
        assert pool.claims(index) == 1
        guard.forget()
        assert pool.claims(index) == 2
        pool.release(index)                         # takes one of those
        first = reader.get(index)                   # and this the other
        assert pool.claims(index) == 0
        first.release()
        pool.acquire_cpu(8, timeout=LIMIT).release()


def test_a_count_without_a_guard_is_for_others() -> None:
    with pair() as (pool, reader):
        pool.preallocate_cpu(8, 1)
        index = handed_over(pool, published(pool))
        for client in pool, reader:
            for count in 3, 1, 2:
                client.set_ref_count(index, count)
                assert pool.claims(index) == count
                assert pool.slot_info(index).holds == 0
        with pytest.raises(xmem.Error) as caught:
            pool.set_ref_count(index, 0)
        assert caught.value.errno == errno.ERANGE and pool.claims(index) == 2
        with pytest.raises(xmem.NotPermitted):
            reader.set_ref_count(index, 2, lasts=100)       # that is for the owner
        assert pool.claims(index) == 2 and pool.slot_info(index).holds == 0
        reader.get(index).release()
        pool.get(index).release()
        pool.acquire_cpu(8, timeout=LIMIT).release()


def test_the_guard_that_was_asked_last_keeps_its_reference() -> None:
    with pair() as (pool, _):
        guard = published(pool)
        other = guard.clone_ref()
        pool.set_ref_count(other.meta_index, 2, lasts=None)
        assert pool.claims(guard.meta_index) == 1
        pool.set_ref_count(guard.meta_index, 3)
        assert pool.claims(guard.meta_index) == 2
        other.forget()
        assert pool.claims(guard.meta_index) == 3
        pool.set_ref_count(guard.meta_index, 1)
        assert pool.claims(guard.meta_index) == 0


def test_a_guard_that_is_written_is_forgotten_with_its_reference() -> None:
    with pair() as (pool, reader):
        pool.preallocate_cpu(8, 1)
        guard = pool.acquire_cpu(8)
        view = memoryview(guard)
        view[:] = b"contents"
        index = guard.meta_index
        guard.forget()                              # its view keeps the buffer, too
        with pytest.raises(xmem.Released, match="forgotten"):
            guard.meta_index                        # noqa: B018
        with reader.get(index) as got:
            assert bytes(got) == b"contents" and pool.claims(index) == 0
        with pytest.raises(xmem.WouldBlock):
            pool.acquire_cpu(8, timeout=0)
        del view
        pool.acquire_cpu(8, timeout=LIMIT).release()


def test_get_mut_by_index() -> None:
    with pair() as (pool, _):
        guard = published(pool)
        index = guard.meta_index
        with pytest.raises(xmem.Error) as caught:
            pool.get_mut(index)                     # the guard holds it
        assert caught.value.errno == errno.EBUSY and pool.slot_info(index).holds == 1
        guard.set_ref_count(2, lasts=None)
        guard.forget()
        with pytest.raises(xmem.Error) as caught:
            pool.get_mut(index)                     # one more is to come
        assert caught.value.errno == errno.EBUSY
        assert pool.claims(index) == 2 and pool.slot_info(index).holds == 0
        pool.release(index)
        with pool.get_mut(index) as guard:
            assert not guard.readonly and guard.meta_index == index
            memoryview(guard)[:3] = b"new"
            guard.publish(keep=True)
            assert bytes(guard) == b"newtents"


def meddled(meddle: Callable[[], object]) -> type[xmem.BufferPool]:
    """Pools in which that happens just before a get."""
    class Meddled(xmem.BufferPool):
        def get(self, meta_index: int) -> xmem.BufferGuard:
            meddle()
            return super().get(meta_index)
    return Meddled


def fail_by_index(pool: xmem.BufferPool, index: int, name: str) -> None:
    with pytest.raises(xmem.Error) as caught:
        pool.set_ref_count(index, 0) if name == "set_ref_count" else pool.get_mut(index)
    assert caught.value.errno == (errno.ERANGE if name == "set_ref_count" else errno.EBUSY)


@pytest.mark.parametrize("name", ["get_mut", "set_ref_count"])
@pytest.mark.parametrize("before, more", [(1, 0), (0, 1)])
def test_what_fails_by_index_puts_back_what_it_has_taken(name: str, before: int,
                                                         more: int) -> None:
    """Others take a reference, or set one aside, between its looks: none is lost, none is left."""
    with pair() as (pool, reader):
        guard = published(pool)
        index = guard.meta_index
        held = []
        meddle = (lambda: reader.add_ref(index)) if more else (
            lambda: held.append(reader.get(index)))
        for _ in range(before):
            pool.add_ref(index)
        with meddled(meddle)(pool.name, writer=True) as other:
            fail_by_index(other, index, name)
        assert pool.claims(index) == more and len(held) == before
        for taken in held:
            taken.release()
        assert pool.slot_info(index).holds == 1


# ---- sections 5 and 7: guards ----

def written_guards(pool: xmem.BufferPool) -> Iterator[xmem.BufferGuard]:
    yield pool.acquire_cpu((2, 3), "float32")
    if xmem.gpus():
        yield pool.acquire_cuda((2, 3), dtype="float32")


def test_copies_are_new_guards_of_the_pool() -> None:
    array = numpy.arange(6, dtype="float32").reshape(2, 3)
    with pair() as (pool, _):
        for guard in written_guards(pool):
            guard.copy_from(array)
            guard.describe_content("tensor/float32", "test")
            guard.publish(keep=True)
            copies = [guard.copy_to_cpu()]
            if xmem.gpus():
                copies += [guard.copy_to_cuda(0), guard.copy_to_device(device_id=0)]
            assert [copy.is_cuda for copy in copies] == [False, True, True][:len(copies)]
            for copy in copies:
                assert copy.pool is pool and not copy.readonly
                assert copy.meta_index != guard.meta_index
                assert (copy.shape, copy.dtype) == ((2, 3), "float32")
                assert copy.metadata.content_type == "tensor/float32"
                there = copy.copy_to_host() if copy.is_cuda else copy
                assert (numpy.asarray(there) == array).all()
                token = copy.publish(keep=True)
                assert token != guard.token and copy.nbytes == guard.nbytes == 24
                del there


def test_copies_of_nothing_and_of_bytes() -> None:
    with pair() as (pool, _):
        with pool.acquire_cpu((0, 4), "int16") as empty, empty.copy_to_cpu() as copy:
            assert (copy.shape, copy.dtype, copy.nbytes) == ((0, 4), "int16", 0)
        with pool.acquire_cpu(5) as some:
            some.copy_from(b"bytes")
            with some.copy_to_cpu() as copy:
                assert bytes(copy) == b"bytes" and copy.dtype is None


def test_a_copy_that_cannot_be_made_leaves_nothing() -> None:
    with pair() as (pool, _), xmem.BufferPool(pool.name, writer=False) as reader:
        guard = published(pool)
        with reader.get(guard.token) as got, pytest.raises(xmem.NotPermitted):
            got.copy_to_cpu()                       # a reader acquires nothing
        with pytest.raises(xmem.NoDevice):
            guard.copy_to_cuda(99)
        guard.release()
        with pytest.raises(xmem.Released):
            guard.copy_to_cpu()
        assert pool.stat().held == 0
    with pair() as (pool, _):
        pool.preallocate_cpu(8, 1)
        with published(pool) as guard, pytest.raises(xmem.WouldBlock):
            guard.copy_to_cpu(timeout=0)


@needs_gpu
def test_a_guard_for_reading_is_not_written() -> None:
    with pair() as (pool, _):
        for guard in written_guards(pool):
            guard.copy_from(numpy.zeros((2, 3), "float32"))
            guard.publish(keep=True)
            for call in (lambda: guard.copy_from(bytes(24)), lambda: guard.cuda_ptr_mut,
                         lambda: guard.copy_from_host(bytes(24))):
                with pytest.raises(xmem.NotPermitted):
                    call()
            if not guard.is_cuda:
                with pytest.raises(TypeError):
                    memoryview(guard)[0, 0] = 1
                with pytest.raises(ValueError):
                    numpy.asarray(guard)[:] = 1
            assert guard.is_cuda or guard.cpu_ptr % 64 == 0
            assert not guard.is_cuda or guard.cuda_ptr


def test_clone_ref_is_another_handle() -> None:
    with pair() as (pool, _):
        pool.preallocate_cpu(8, 1)
        guard = published(pool)
        other = guard.clone_ref()
        assert (other.token, other.meta_index) == (guard.token, guard.meta_index)
        guard.release()
        assert bytes(other) == b"contents"
        with pytest.raises(xmem.WouldBlock):
            pool.acquire_cpu(8, timeout=0)
        other.release()
        pool.acquire_cpu(8, timeout=LIMIT).release()
