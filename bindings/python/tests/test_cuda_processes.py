# SPDX-License-Identifier: MIT
"""Buffers on GPUs between processes: handing over, dying with work in flight, forking."""
from __future__ import annotations

import errno
import os
import time
import traceback
from multiprocessing.connection import Connection
from typing import Any, Callable

import numpy
import pytest

import xmem
from gpu import (LIMIT, Array, Child, Memory, Stream, consume, driver, needs_gpu, new_name,
                 no_violations)  # noqa: F401

pytestmark = needs_gpu
BYTES = 1 << 16


def pattern(number: int) -> numpy.ndarray[Any, Any]:
    return (numpy.arange(BYTES // 4, dtype="u4") * 2654435761 + number).astype("u4")


def can_export() -> bool:
    return bool(xmem.gpus()[0].can & xmem.CudaCanFlags.EXPORT)


# ---- what the other processes do ----

def publish_frames(pipe: Connection, name: str, count: int, options: dict[str, bool]) -> None:
    with xmem.BufferPool(name, writer=True, wait_bound=LIMIT) as pool:
        pool.preallocate_cuda(BYTES, 2, **options)
        pipe.send(pool.client)
        pipe.recv()
        for number in range(count):
            with pool.acquire_cuda((BYTES // 4,), dtype="uint32", timeout=LIMIT) as frame:
                frame.copy_from_host(pattern(number))
                frame.publish()
        pipe.recv()                     # all have been received
    pipe.send("closed")
    pipe.recv()                         # the process outlives those who have its memory open


def hold_with_work(pipe: Connection, name: str, tokens: list[int], lent: bool) -> None:
    """Hold contents for whose release or reading a stream has yet to come along; be killed."""
    pool, stream = xmem.BufferPool(name, writer=True), Stream()
    guards = [pool.get(token) for token in tokens]
    arrays = [consume(guard)[0] for guard in guards] if lent else []
    stream.close_gate()
    for guard in guards:
        guard.wait_on(stream)
        stream.fill(Memory().ptr, 1, BYTES)
        if not lent:
            guard.release(stream=stream)
    pipe.send(len(arrays))
    pipe.recv()


def publish_and_wait(pipe: Connection, name: str, legacy: bool, unfinished: bool) -> None:
    pool = xmem.BufferPool(name, writer=True)
    pool.preallocate_cuda(BYTES, 1, legacy=legacy, readers=True)
    guard = pool.acquire_cuda((BYTES // 4,), dtype="uint32")
    guard.copy_from_host(pattern(5))
    if unfinished:
        stream = Stream()
        guard.wait_on(stream)
        stream.close_gate()
        stream.fill(guard.cuda_ptr_mut, 1, BYTES)
        pipe.send(guard.publish(keep=True, stream=stream))
    else:
        pipe.send(guard.publish(keep=True))
    pipe.recv()


def attach_and_wait(pipe: Connection, name: str) -> None:
    driver()
    memory, done = Memory(), []
    driver().write(memory.ptr, pattern(3).tobytes())
    pool = xmem.BufferPool(name, writer=True)
    guard = pool.attach_cuda(Array(memory.ptr, (BYTES // 4,), "<u4"), readers=True,
                             done=lambda: done.append(1))
    pipe.send(guard.publish(keep=True))
    pipe.recv()                         # somebody else has it open
    guard.release()
    del guard
    pool.collect()
    pipe.send(list(done))
    pipe.recv()                         # nobody has
    while not done:
        pool.collect()
    memory.free()
    pool.close()
    pipe.send(done)


# ---- the tests ----

@pytest.mark.parametrize("options", [{}, {"readers": True}, {"legacy": True}])
def test_frames_from_another_process(options: dict[str, bool]) -> None:
    name, count = new_name(), 20
    readers = "readers" in options
    with xmem.BufferPool(name, writer=not readers) as pool, \
            Child(publish_frames, name, count, options) as writer:
        publisher = writer.hear()
        subscription = pool.subscribe(publisher=publisher, waits=True)
        writer.tell("go")
        addresses = set()
        for number in range(count):
            with subscription.receive(LIMIT) as frame:
                assert (frame.shape, frame.dtype) == ((BYTES // 4,), "uint32")
                assert (numpy.asarray(frame.copy_to_host()) == pattern(number)).all()
                addresses.add(frame.cuda_ptr)
        assert len(addresses) <= 2      # opened once, and the two buffers go round
        writer.tell("close")
        assert writer.hear() == "closed"
        with pytest.raises(xmem.Ended):
            subscription.receive(LIMIT)
        subscription.close()
        del frame
        pool.close()
        writer.tell("end")
        writer.end()


@pytest.mark.parametrize("lent", [False, True])
def test_a_consumer_is_killed_with_work_in_flight(lent: bool) -> None:
    with xmem.BufferPool(new_name(), writer=True) as pool:
        pool.preallocate_cuda(BYTES, 4)
        kept = [pool.acquire_cuda((BYTES // 4,), dtype="uint32", timeout=0) for _ in range(4)]
        for number, guard in enumerate(kept):
            guard.copy_from_host(pattern(number))
            guard.publish(keep=True)
        with Child(hold_with_work, pool.name, [guard.token for guard in kept], lent) as consumer:
            assert consumer.hear() == (4 if lent else 0)
            for guard in kept:
                guard.release()
            with pytest.raises(xmem.TimedOut):          # it holds all of them
                pool.acquire_cuda(BYTES, timeout=0.05)
            consumer.kill()
            back = [pool.acquire_cuda(BYTES, timeout=LIMIT) for _ in range(4)]
            for guard in back:
                guard.release()


@pytest.mark.parametrize("legacy", [False, True])
def test_a_producer_is_killed(legacy: bool) -> None:
    if not legacy and not can_export():
        pytest.skip("this GPU has no descriptors")
    name = new_name()
    with xmem.BufferPool(name) as pool, \
            Child(publish_and_wait, name, legacy, False) as producer:
        guard = pool.get(producer.hear())
        late = guard.clone_ref()
        assert bool(guard.flags & 64) == legacy         # XMEM_BUFFER_MORTAL
        producer.kill()
        if legacy:
            for look in (lambda: guard.cuda_ptr, guard.copy_to_host,
                         lambda: guard.__cuda_array_interface__):
                with pytest.raises(xmem.OwnerDead) as caught:
                    until_it_is_known(look)
                assert caught.value.errno == errno.EOWNERDEAD and str(caught.value)
            assert guard.shape == (BYTES // 4,)         # what is said of them is there still
            copies_to_nothing(name, guard.token)
        else:
            assert (numpy.asarray(guard.copy_to_host()) == pattern(5)).all()
        guard.release()
        late.release()


def copies_to_nothing(name: str, token: int) -> None:
    """A copy of what is lost fails after it has acquired a buffer, which is free again."""
    with xmem.BufferPool(name, writer=True) as pool, pool.get(token) as guard:
        pool.preallocate_cpu(BYTES, 1)
        with pytest.raises(xmem.OwnerDead) as caught:
            guard.copy_to_cpu()
        pool.acquire_cpu(BYTES, timeout=0).release()
        assert caught.traceback         # which knows all that the call has had


def until_it_is_known(look: Callable[[], object]) -> None:
    """Look until that raises something: the host notices a death when it comes to it."""
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        look()


def test_a_producer_is_killed_before_its_stream_has_written() -> None:
    name = new_name()
    with xmem.BufferPool(name) as pool, \
            Child(publish_and_wait, name, False, True) as producer:
        guard = pool.get(producer.hear())
        with pytest.raises(xmem.WouldBlock):
            guard.wait(0)
        stream = Stream()
        guard.wait_on(stream)
        producer.kill()
        with pytest.raises(xmem.OwnerDead):
            guard.wait(LIMIT)
        stream.synchronize()            # a stream that has waited goes on,
        with pytest.raises(xmem.OwnerDead):
            guard.wait(0)               # and this says that what it has read is not complete
        with pytest.raises(xmem.OwnerDead):
            guard.copy_to_host()
        guard.release()


def test_done_comes_after_the_last_process_has_closed_it() -> None:
    name = new_name()
    with xmem.BufferPool(name) as pool, Child(attach_and_wait, name) as owner:
        guard = pool.get(owner.hear())
        assert (numpy.asarray(guard.copy_to_host()) == pattern(3)).all()
        owner.tell("it is open here")
        assert owner.hear() == []
        guard.release()
        pool.collect()
        pool.close()
        owner.tell("it is closed here")
        assert owner.hear() == [1]
        owner.end()


def in_forked_child(body: Callable[[], None]) -> None:
    child = os.fork()
    if not child:
        status = 1
        try:
            body()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0


def test_a_forked_child_is_told_so() -> None:
    with xmem.BufferPool(new_name(), writer=True) as pool:
        pool.preallocate_cuda(BYTES, 2)
        memory, done = Memory(), []
        guard = pool.acquire_cuda((BYTES // 4,), dtype="uint32")
        guard.copy_from_host(pattern(1))
        guard.publish(keep=True)
        consume(guard)
        attached = pool.attach_cuda(memory.ptr, BYTES, done=lambda: done.append(1))

        def child() -> None:
            for call in (xmem.cuda_info, lambda: xmem.cuda.gpu(0), lambda: guard.cuda_ptr,
                         guard.copy_to_host, lambda: guard.device_id, guard.wait,
                         lambda: guard.wait_on(0), lambda: guard.__cuda_array_interface__,
                         lambda: pool.acquire_cuda(BYTES), lambda: attached.publish(stream=0),
                         lambda: pool.preallocate_cuda(BYTES, 1),
                         lambda: pool.attach_cuda(memory.ptr, BYTES)):
                with pytest.raises(xmem.Forked) as caught:
                    call()
                assert caught.value.errno == errno.ECHILD
            pool.close()
            assert not done

        in_forked_child(child)
        # Here all goes on.
        assert (numpy.asarray(guard.copy_to_host()) == pattern(1)).all()
        guard.release()
        attached.release()
        del guard, attached
        while not done:
            pool.collect()
        memory.free()


def test_what_is_told_is_not_run_in_a_forked_child() -> None:
    """A duty that the fork finds undone is the parent's alone."""
    driver()
    memory = Memory()
    with xmem.BufferPool(new_name(), writer=True) as pool:
        done: list[int] = []
        good: list[int] = []

        def tell() -> None:
            done.append(os.getpid())
            if len(done) == 1:
                in_forked_child(child)
                good.append(1)          # what a callback raises ends here

        def child() -> None:
            xmem._core.end_later()      # it runs all that is left to run
            assert len(done) == 1

        guards = [pool.attach_cuda(memory.ptr + 512 * i, 512, done=tell) for i in range(3)]
        for guard in guards:
            guard.release()
        del guard, guards
        while len(done) < 3:
            pool.collect()
        assert done == [os.getpid()] * 3 and good
    memory.free()
