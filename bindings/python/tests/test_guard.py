# SPDX-License-Identifier: MIT
"""Guards: what each state allows, and that views keep the contents whatever becomes of them."""
from __future__ import annotations

import binascii
import copy
import ctypes
import errno
import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xmem
from support import pair, published

PROPERTIES = ("token", "meta_index", "nbytes", "capacity", "sequence", "timestamp_ns", "flags",
              "publisher", "publisher_label", "readonly", "cpu_ptr", "shape", "strides",
              "dtype_number", "dtype")
# Every method, with arguments that are right.
CALLS: dict[str, tuple[Any, ...]] = {
    "release": (), "__enter__": (), "clone_ref": (), "publish": (), "send": (1,), "forward": (),
    "get_mut": (), "forget": (), "set_ref_count": (1,), "offer": (),
    "describe_tensor": (264, (1,)), "describe_image": (1, 1, 1), "describe_strings": (1, 1),
    "describe_content": ("a",), "describe_time": (1,), "describe": ((1,), "uint8"), "__copy__": ()}
WRITES = ("publish", "describe_tensor", "describe_image", "describe_strings", "describe_content",
          "describe_time")

Pair = tuple[xmem.BufferPool, xmem.BufferPool]


@pytest.fixture
def pools() -> Iterator[Pair]:
    with pair() as both:
        yield both


def released(writer: xmem.BufferPool) -> xmem.BufferGuard:
    guard = published(writer)
    guard.release()
    return guard


def thrown_away(writer: xmem.BufferPool) -> xmem.BufferGuard:
    with writer.acquire_cpu(8) as guard:
        pass
    return guard


def handed_over(writer: xmem.BufferPool) -> xmem.BufferGuard:
    guard = writer.acquire_cpu(8)
    guard.publish()
    return guard


def forgotten(writer: xmem.BufferPool) -> xmem.BufferGuard:
    guard = published(writer)
    guard.forget()
    return guard


def forwarded(writer: xmem.BufferPool) -> xmem.BufferGuard:
    guard = published(writer)
    guard.forward()
    return guard


ENDS = (released, thrown_away, handed_over, forgotten, forwarded)


@pytest.mark.parametrize("end", ENDS)
def test_each_use_of_a_guard_that_is_gone_raises_released(
        pools: Pair, end: Callable[[xmem.BufferPool], xmem.BufferGuard]) -> None:
    guard = end(pools[0])
    assert guard.gone and "gone" in repr(guard) and guard.pool is pools[0]
    says = "has been forgotten" if end is forgotten else "has been released, or published"
    for name in PROPERTIES:
        with pytest.raises(xmem.Released, match=says):
            getattr(guard, name)
    for name, arguments in CALLS.items():
        with pytest.raises(xmem.Released) as caught:
            getattr(guard, name)(*arguments)
        assert caught.value.errno == errno.EBADF and isinstance(caught.value, ValueError)
    with pytest.raises(xmem.Released):
        memoryview(guard)
    with pytest.raises(xmem.Released):
        bytes(guard)
    guard.__exit__(None, None, None)        # `with` does not mind what its block has done
    del guard
    gc.collect()


def test_what_is_being_written(pools: Pair) -> None:
    guard = pools[0].acquire_cpu(100)
    assert not guard.readonly and not guard.gone and "being written" in repr(guard)
    assert guard.token == 0 and guard.nbytes == 100 and guard.capacity >= 100
    assert guard.publisher == pools[0].client
    assert guard.dtype is None and guard.shape == (100,) and guard.strides == (1,)
    for call in (guard.clone_ref, guard.forward, guard.offer, guard.get_mut):
        with pytest.raises(xmem.NotPermitted):
            call()
    slot = guard.meta_index
    assert pools[0].slot_info(slot).state == xmem.SlotUse.WRITING
    ctypes.memset(guard.cpu_ptr, 7, 100)
    assert bytes(guard) == b"\7" * 100
    guard.publish(keep=True)
    assert guard.meta_index == slot == guard.token & 0xffff


def test_what_is_for_reading(pools: Pair) -> None:
    guard = published(pools[0])
    assert guard.readonly and "for reading" in repr(guard) and guard.token
    assert guard.meta_index == guard.token & 0xffff
    assert ctypes.string_at(guard.cpu_ptr, guard.nbytes) == b"contents"
    with pytest.raises(TypeError):
        memoryview(guard)[0] = 1
    for name in WRITES:
        with pytest.raises(xmem.NotPermitted, match="for reading"):
            getattr(guard, name)(*CALLS[name])
    assert bytes(guard.clone_ref()) == b"contents"


def test_publishing_says_when_and_which_part(pools: Pair) -> None:
    writer, reader = pools
    subscription = reader.subscribe()
    guard = writer.acquire_cpu(100)
    memoryview(guard)[:] = bytes(range(100))
    token = guard.publish(timestamp_ns=123456789, offset=10, length=20)
    assert guard.gone
    got = subscription.receive(0)
    assert (got.token, got.timestamp_ns, got.sequence) == (token, 123456789, 0)
    assert bytes(got) == bytes(range(10, 30)) and got.publisher == writer.client
    assert got.publisher_label


def test_a_part_that_is_too_large_leaves_the_guard_as_it_was(pools: Pair) -> None:
    guard = pools[0].acquire_cpu(100)
    with pytest.raises(xmem.Error) as caught:
        guard.publish(offset=1 << 40)
    assert caught.value.errno == errno.ERANGE
    memoryview(guard)[0] = 1
    assert guard.publish()


def test_with_releases_what_the_block_leaves(pools: Pair) -> None:
    with pytest.raises(KeyError), pools[0].acquire_cpu(8) as guard:
        raise KeyError
    assert guard.gone
    with published(pools[0]) as guard:
        view = memoryview(guard)
    assert guard.gone and bytes(view) == b"contents"


# ---- views ----

@pytest.mark.parametrize("end", ["release", "publish", "forward", "forget", "drop"])
def test_contents_stay_under_a_view(pools: Pair, end: str) -> None:
    """The one buffer is not acquired again as long as a view of it is there."""
    writer, _ = pools
    writer.preallocate_cpu(8, 1)
    guard = writer.acquire_cpu(8)
    if end == "publish":
        view = memoryview(guard)
        view[:] = b"contents"
    else:
        memoryview(guard)[:] = b"contents"
        guard.publish(keep=True)
        view = memoryview(guard)
    sub = view[2:4]
    if end == "drop":
        del guard
    else:
        getattr(guard, end)()
        assert guard.gone
    gc.collect()
    if end == "forget":
        writer.void_claims(_token_of(writer))
    with pytest.raises(xmem.WouldBlock):
        writer.acquire_cpu(8, timeout=0)
    assert bytes(view) == b"contents"
    view.release()
    with pytest.raises(xmem.WouldBlock):
        writer.acquire_cpu(8, timeout=0)
    assert bytes(sub) == b"nt"
    sub.release()
    writer.acquire_cpu(8, timeout=0).release()


def _token_of(writer: xmem.BufferPool) -> int:
    """The token of what is in slot 0, by the reference that was left there."""
    with writer.get(0) as guard:
        token = guard.token
        guard.forget()
    return token


def test_a_view_that_writes_keeps_writing_nothing_else(pools: Pair) -> None:
    writer, _ = pools
    guard = writer.acquire_cpu(8)
    view = memoryview(guard)
    guard.release()                 # thrown away, but not while the view is there
    view[:] = b"12345678"
    others = [writer.acquire_cpu(8) for _ in range(4)]
    for other in others:
        memoryview(other)[:] = b"\0" * 8
    assert bytes(view) == b"12345678"
    view.release()


def test_a_guard_with_views_is_not_described_anew(pools: Pair) -> None:
    guard = pools[0].acquire_cpu(64)
    view = memoryview(guard)
    for name in ("describe_tensor", "describe_image", "describe_strings"):
        with pytest.raises(BufferError, match="views"):
            getattr(guard, name)(*CALLS[name])
    view.release()
    guard.describe((4, 4), "int32")
    assert memoryview(guard).shape == (4, 4) and memoryview(guard).format == "i"


def test_views_after_publishing_with_older_ones_alive(pools: Pair) -> None:
    guard = pools[0].acquire_cpu(8)
    view = memoryview(guard)
    view[:] = b"contents"
    guard.publish(keep=True)
    later = memoryview(guard)
    assert later.readonly and bytes(later) == bytes(view) == b"contents"
    view.release()
    assert bytes(later) == b"contents"
    assert memoryview(guard).readonly and bytes(guard) == b"contents"
    del later
    guard.release()
    guard = pools[0].acquire_cpu(8)
    view = memoryview(guard)
    guard.publish(keep=True, length=4)          # other contents than the view shows
    with pytest.raises(BufferError, match="before"):
        memoryview(guard)
    view.release()
    assert memoryview(guard).nbytes == 4


def test_strides_and_callers_that_take_none(pools: Pair) -> None:
    guard = pools[0].acquire_cpu(64)
    memoryview(guard)[:] = bytes(range(64))
    guard.describe((2, 3), "uint8", strides=(32, 2))
    view = memoryview(guard)
    assert view.strides == (32, 2) and view.tobytes() == bytes([0, 2, 4, 32, 34, 36])
    del view
    with pytest.raises(BufferError, match="contiguous"):
        binascii.crc32(guard)
    guard.describe((2,), "bfloat16")
    with pytest.raises(BufferError, match="DLPack"):
        memoryview(guard)


def test_a_cycle_of_guard_and_view_gives_its_hold_back(pools: Pair) -> None:
    class Holder:
        pass

    writer, _ = pools
    writer.preallocate_cpu(8, 1)
    for _ in range(3):
        holder = Holder()
        holder.guard = published(writer)                    # type: ignore[attr-defined]
        holder.view = memoryview(holder.guard)              # type: ignore[attr-defined]
        holder.itself = holder                              # type: ignore[attr-defined]
        gone = weakref.ref(holder.guard)                    # type: ignore[attr-defined]
        del holder
        gc.collect()
        assert gone() is None
        writer.acquire_cpu(8, timeout=0).release()


# ---- handing over ----

def test_sending_to_one_subscriber(pools: Pair) -> None:
    writer, reader = pools
    with reader.reopen() as other:
        mine, others = reader.subscribe(), other.subscribe()
        guard = writer.acquire_cpu(8)
        token = guard.send(reader.client, timestamp_ns=5)
        got = mine.receive(0)
        assert (got.token, got.timestamp_ns) == (token, 5)
        with pytest.raises(xmem.WouldBlock):
            others.receive(0)
        again = published(writer)
        again.send(other.client, keep=True)
        assert not again.gone
        with pytest.raises(xmem.NotFound):
            writer.acquire_cpu(8).send(writer.client)
        with pytest.raises(xmem.Error) as caught:
            writer.acquire_cpu(8).send(100000)
        assert caught.value.errno == errno.EINVAL


def test_forwarding_is_the_same_buffer(pools: Pair) -> None:
    writer, reader = pools
    with writer.reopen() as stage:
        subscription = reader.subscribe(publisher=stage.client)
        source = stage.subscribe()
        token = writer.acquire_cpu(16).publish()
        got = source.receive(0)
        assert got.forward(offset=4, length=8, keep=True) == token
        last = subscription.receive(0)
        assert (last.token, last.nbytes, last.publisher) == (token, 8, stage.client)
        with pytest.raises(xmem.Error) as caught:
            got.forward(offset=12, length=8)
        assert caught.value.errno == errno.ERANGE and not got.gone
        with writer.acquire_cpu(16) as guard:
            with pytest.raises(xmem.NotPermitted, match="still being written"):
                guard.forward()
            assert guard.cpu_ptr and not guard.gone
            with pytest.raises(xmem.NotPermitted):
                got.publish()
    with pytest.raises(xmem.NotPermitted):
        reader.get(token).forward()


def test_writing_in_place(pools: Pair) -> None:
    with pair() as (writer, _), writer.reopen() as second:
        token = published(writer, b"12345678").token
        guard = second.subscribe(history=1).receive(0)
        view = memoryview(guard)
        with pytest.raises(xmem.Error, match="views") as caught:
            guard.get_mut()
        assert caught.value.errno == errno.EBUSY and guard.readonly
        view.release()
        other = guard.clone_ref()
        with pytest.raises(xmem.Error) as caught:
            guard.get_mut()
        assert caught.value.errno == errno.EBUSY
        other.release()
        assert guard.get_mut() is guard
        assert not guard.readonly
        memoryview(guard)[:2] = b"ab"
        assert guard.publish(keep=True) != token
        assert bytes(guard) == b"ab345678"
        with pytest.raises(xmem.Stale):
            writer.get(token)
    pools[0].preallocate_cpu(8, 1, sealed=True)
    guard = published(pools[0], b"12345678")
    with pytest.raises(xmem.Error) as caught:
        guard.get_mut()
    assert caught.value.errno == errno.EOPNOTSUPP and not guard.gone


def test_counting_references(pools: Pair) -> None:
    writer, reader = pools
    guard = writer.acquire_cpu(8)
    guard.set_ref_count(2, lasts=None)
    assert guard.readonly
    token = guard.token
    guard.forget()
    got = [reader.get(token), reader.get(token)]
    assert writer.claims(token) == 0
    got[0].offer(3)
    assert writer.claims(token) == 3
    with pytest.raises(xmem.NotPermitted):
        got[0].offer(1, lasts=61)         # only the owner may ask for so long
    for count in (0, 65536):
        with pytest.raises(xmem.Error) as caught:
            got[0].set_ref_count(count)
        assert caught.value.errno == errno.ERANGE
    writer.void_claims(token)


def test_copies_are_clones(pools: Pair) -> None:
    guard = published(pools[0])
    for other in (copy.copy(guard), copy.deepcopy([guard])[0]):
        assert other is not guard and other.token == guard.token
    assert pools[0].claims(guard.token) == 0


# ---- arguments ----

junk = st.one_of(st.none(), st.text(max_size=3), st.binary(max_size=3), st.floats(), st.booleans(),
                 st.integers(), st.lists(st.integers(), max_size=3), st.just(object()))


@settings(max_examples=150)
@given(st.data(), st.sampled_from(sorted(set(CALLS) - {"__enter__", "__copy__"})),
       st.booleans())
def test_any_arguments_end_in_an_exception_or_a_result(data: st.DataObject, name: str,
                                                       readonly: bool) -> None:
    with xmem.BufferPool(None, writer=True, demand_bytes=1 << 20) as pool:
        guard = published(pool) if readonly else pool.acquire_cpu(8)
        try:
            getattr(guard, name)(*data.draw(st.lists(junk, max_size=4)))
        except (xmem.Error, TypeError, ValueError, BufferError, OverflowError):
            pass
        if not guard.gone:
            assert guard.nbytes >= 0 and guard.pool is pool
            bytes(guard)


@settings(max_examples=150)
@given(st.sampled_from(["publish", "send", "forward"]),
       st.dictionaries(st.sampled_from(["keep", "timestamp_ns", "offset", "length", "client",
                                        "nonsense"]), junk, max_size=3))
def test_any_keywords(name: str, keywords: dict[str, Any]) -> None:
    with xmem.BufferPool(None, writer=True, demand_bytes=1 << 20) as pool:
        guard = published(pool) if name == "forward" else pool.acquire_cpu(8)
        if name != "publish":
            keywords["timeout"] = 0
        try:
            token = getattr(guard, name)(**keywords)
            assert pool.claims(token) == 0 and guard.gone == (not keywords.get("keep"))
        except (xmem.Error, TypeError, ValueError):
            assert not guard.gone


@given(st.lists(st.integers(-3, 6), max_size=9),
       st.one_of(st.none(), st.lists(st.integers(-70, 70), max_size=9)))
def test_any_shape_is_within_the_contents_or_refused(shape: list[int],
                                                     strides: list[int] | None) -> None:
    with xmem.BufferPool(None, writer=True, demand_bytes=1 << 20) as pool:
        guard = pool.acquire_cpu(64)
        memoryview(guard)[:] = bytes(64)
        guard.describe((64,), "uint8")
        try:
            guard.describe(shape, "uint16", strides)    # type: ignore[arg-type]
        except (xmem.Error, ValueError):
            assert guard.shape == (64,)
            return
        try:
            view = memoryview(guard)
        except (xmem.Error, BufferError):
            return
        assert view.shape == tuple(shape)
        assert set(view.tobytes()) <= {0}
