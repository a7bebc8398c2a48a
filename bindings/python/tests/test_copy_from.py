# SPDX-License-Identifier: MIT
"""copy_from: which sizes, shapes and types it takes; copies of a guard's own views."""
from __future__ import annotations

import array
import ctypes
import errno
from typing import Any

import numpy
import pytest
import views
import xmem
from hypothesis import given
from hypothesis import strategies as st
from views import Tally, pool, shared  # noqa: F401


def refused(guard: Any, source: Any, offset: int = 0) -> str:
    """Get the text of the ERANGE with which a copy is refused."""
    with pytest.raises(xmem.Error) as caught:
        guard.copy_from(source, offset)
    assert caught.value.errno == errno.ERANGE
    return str(caught.value)


# ---- sizes and shapes ----

def test_no_more_is_copied_than_was_acquired(pool: Tally) -> None:
    """Nobody would receive bytes beyond the contents, however large the buffer is."""
    with pool.acquire(3) as guard:
        assert guard.capacity > 10
        text = refused(guard, b"1234567890")
        assert "10 bytes" in text and "3 bytes" in text
        assert "offset 2" in refused(guard, b"12", 2)
        refused(guard, numpy.zeros((2, 4), "uint8")[:, ::2])
        assert guard.copy_from(b"ab", 1) == 2 and bytes(guard)[1:] == b"ab"
    with pool.acquire((3,), "float32") as guard:
        refused(guard, numpy.arange(4, dtype="float32"))
        refused(guard, b"0123456789012")
    with pool.reader.get(pool.published(bytes(24), (2, 3), "int32")) as source:
        with pool.acquire(8) as guard:
            refused(guard, source)
            assert guard.dtype is None and guard.nbytes == 8


@pytest.mark.parametrize("shape", [(2, 3), (3, 2, 1), (6,), (), (3,), (1, 3, 2)])
def test_a_described_guard_takes_its_own_shape(pool: Tally, shape: tuple[int, ...]) -> None:
    with pool.acquire((3, 2), "int16") as guard:
        numpy.asarray(guard)[...] = 7
        with pytest.raises(ValueError, match=r"shape of this guard is \(3, 2\)") as caught:
            guard.copy_from(numpy.zeros(shape, "int16"))
        assert str(shape) in str(caught.value)
        assert (numpy.asarray(guard) == 7).all()
        assert guard.copy_from(numpy.ones((2, 3), "int16").T) == 12
        assert (numpy.asarray(guard) == 1).all()


def test_gray_is_not_copied_into_colour(pool: Tally) -> None:
    with pool.acquire((4, 5, 3), "uint8") as guard:
        with pytest.raises(ValueError, match="shape"):
            guard.copy_from(numpy.zeros((4, 5), "uint8"))
        assert guard.copy_from(bytes(range(60))) == 60
        assert numpy.asarray(guard)[3, 4].tolist() == [57, 58, 59]


def test_a_described_guard_takes_a_guard_of_its_shape_and_type(pool: Tally) -> None:
    with pool.reader.get(pool.published(bytes(range(24)), (2, 3), "int32")) as source:
        with pool.acquire((2, 3), "int32") as guard:
            assert guard.copy_from(source) == 24 and bytes(guard) == bytes(range(24))
        with pool.acquire((3, 2), "int32") as guard, pytest.raises(ValueError, match="shape"):
            guard.copy_from(source)
        with pool.acquire((2, 3), "float32") as guard:
            with pytest.raises(TypeError, match="float32, and those that are copied int32"):
                guard.copy_from(source)
    with pool.reader.get(pool.published(bytes(range(24)))) as source:
        with pool.acquire((2, 3), "int32") as guard:    # bytes, which keep the description
            assert guard.copy_from(source) == 24
            assert guard.shape == (2, 3) and bytes(guard) == bytes(range(24))


def test_an_image_of_planes_is_copied_whole(pool: Tally) -> None:
    with pool.acquire(24) as guard:
        guard.describe_image(xmem.ImageFormat.NV12, 4, 4)
        assert guard.copy_from(numpy.full((6, 4), 9, "uint8")) == 24
        with pytest.raises(ValueError, match="shape"):
            guard.copy_from(numpy.zeros((5, 4), "uint8"))


# ---- types ----

REFUSED = [
    (numpy.array([1, "a"], object), "object"),
    (numpy.ones(1, [("x", "float32"), ("y", "int32")]), r"\[\('x'"),
    (numpy.array(["ab"]), "<U2"),
    (numpy.ones(2, ">f4"), ">f4"),
    (numpy.ones(2, ">i8"), ">i8"),
    (numpy.array([1, 2], "M8[s]"), r"datetime64\[s\]"),
    (numpy.array([1, 2], "m8[ns]"), r"timedelta64\[ns\]"),
    (array.array("u", "ab"), "'[uw]'"),
    ((ctypes.c_void_p * 2)(), "'.*P'"),
    ((ctypes.c_uint32.__ctype_be__ * 2)(), "'>.*'"),
]


@pytest.mark.parametrize("described", [True, False])
@pytest.mark.parametrize("source, name", REFUSED, ids=[each[1] for each in REFUSED])
def test_types_that_mean_nothing_elsewhere_are_named(pool: Tally, source: Any, name: str,
                                                     described: bool) -> None:
    with pool.acquire(64) as guard:
        memoryview(guard)[:] = b"x" * 64
        if described:
            guard.describe((2,), "int64")
        with pytest.raises(TypeError, match=f"elements of type {name}.* not copied"):
            guard.copy_from(source)
        assert bytes(guard)[:16] == b"x" * 16


@pytest.mark.parametrize("own, other", [
    ("uint32", "int32"), ("uint8", "float32"), ("float32", "float64"), ("bool", "int8"),
    ("complex64", "float32"), ("float8_e4m3fn", "int8"), ("bfloat16", "float16")])
def test_types_that_differ_are_called_by_their_names(pool: Tally, own: str, other: str) -> None:
    with pool.acquire((2,), own) as guard:
        with pytest.raises(TypeError, match=f"guard are {own}, .* copied {other}: "):
            guard.copy_from(numpy.ones(2, other)[:2])


def test_every_type_has_its_name_in_messages(pool: Tally) -> None:
    for name in xmem.dtypes.NUMBERS:
        with pool.acquire((2,), name) as guard:
            if name != "int64":
                with pytest.raises(TypeError, match=f"this guard are {name}, "):
                    guard.copy_from(numpy.ones(2, "int64"))


def test_what_is_not_described_takes_bytes_of_any_number(pool: Tally) -> None:
    sources: list[Any] = [
        (ctypes.c_double * 2)(1, 2), array.array("i", [1, 2]), numpy.ones((2, 2), "int16"),
        numpy.array([b"ab", b"c"]), memoryview(b"abc").cast("c"), numpy.ones(3, ">u1")]
    for source in sources:
        with pool.acquire(memoryview(source).nbytes) as guard:
            assert guard.copy_from(source) == guard.nbytes
            assert bytes(guard) == memoryview(source).tobytes()


# ---- how it lies ----

def test_own_views_are_copied_as_they_were(pool: Tally) -> None:
    with pool.acquire((6,), "int16") as guard:
        own = numpy.asarray(guard)
        own[...] = range(6)
        guard.copy_from(own[::-1])
        assert own.tolist() == [5, 4, 3, 2, 1, 0]
        guard.copy_from(own)
        assert own.tolist() == [5, 4, 3, 2, 1, 0]
        del own
    with pool.acquire(16) as guard:
        view = memoryview(guard)
        view[:] = bytes(range(16))
        guard.copy_from(view[:12], 4)
        assert bytes(view) == bytes([0, 1, 2, 3, *range(12)])
        view.release()


@st.composite
def strided(draw: st.DrawFn) -> Any:
    """An array of any order of dimensions, steps and directions, long enough for each loop."""
    item = draw(st.sampled_from(["uint8", "uint16", "V3", "int32", "int64", "complex128", "V5"]))
    shape = draw(st.lists(st.sampled_from([1, 2, 3, 4, 5, 17, 70]), min_size=1, max_size=4)
                 .filter(lambda shape: numpy.prod(shape) < 3000))
    whole = numpy.arange(2 ** len(shape) * int(numpy.prod(shape)), dtype="uint32")
    whole = whole.astype("uint8" if item == "uint8" else "uint16")
    if item not in ("uint8", "uint16"):
        count = whole.size * numpy.dtype(item).itemsize
        whole = numpy.resize(numpy.arange(251, dtype="uint8"), count).view(item)
    whole = whole.reshape([2 * each for each in shape])
    cuts = tuple(slice(None, None, draw(st.sampled_from([1, 2, -1, -2]))) for _ in shape)
    return whole[cuts].transpose(draw(st.permutations(range(len(shape)))))


@given(strided())
def test_each_order_of_elements_comes_out_dense(shared: Tally, source: Any) -> None:
    source = source[tuple(slice(0, 64) for _ in source.shape)]
    while source.nbytes > views.BYTES - 64:
        source = source[:source.shape[0] // 2] if source.shape[0] > 1 else source[0]
    with shared.acquire(source.nbytes + 16) as guard:
        memoryview(guard)[:] = b"\xee" * guard.nbytes
        assert guard.copy_from(source, 8) == source.nbytes
        assert bytes(guard) == b"\xee" * 8 + source.tobytes() + b"\xee" * 8


@pytest.mark.parametrize("count", [1, 2, 3, 1000, 70000])
@pytest.mark.parametrize("item", ["uint8", "V3", "uint64", "V5", "V16384", "V16385", "V40000"])
def test_one_element_fills_all(item: str, count: int) -> None:
    """A broadcast: elements that go into the piece that is copied again, and larger ones."""
    one = numpy.resize(numpy.arange(251, dtype="uint8"), numpy.dtype(item).itemsize)
    source = numpy.broadcast_to(one, (max(min(count, 10**6 // one.nbytes), 1), *one.shape))
    if item in ("uint8", "uint64"):
        source = numpy.broadcast_to(one.view(item)[0], source.shape[:1])
    with xmem.BufferPool(views.name(), writer=True) as pool, \
            pool.acquire_cpu(source.nbytes + 2) as guard:
        memoryview(guard)[:] = b"\xee" * guard.nbytes
        assert guard.copy_from(source, 1) == source.nbytes
        assert bytes(guard) == b"\xee" + source.tobytes() + b"\xee"


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float4_e2m1fn_x2", "int32",
                                   "complex64"])
def test_bytes_need_no_format(dtype: str) -> None:
    """Dense ones, with gaps, without any, and of an empty tensor."""
    with xmem.BufferPool(views.name(), writer=True) as pool:
        item = xmem.dtypes.item_bytes(xmem.dtypes.NUMBERS[dtype])
        guard = pool.acquire_cpu((2, 3), dtype)
        contents = bytes(range(6 * item))
        guard.copy_from(contents)
        guard.publish(keep=True)
        assert guard.tobytes() == bytes(guard) == contents
        empty = pool.acquire_cpu((0, 3), dtype)
        assert empty.tobytes() == bytes(empty) == b""
        whole = pool.acquire_cpu(12 * item)
        memoryview(whole)[:] = bytes(range(12 * item))
        whole.describe((2, 3), dtype, (6 * item, 2 * item))
        assert whole.tobytes() == b"".join(bytes(range(at * item, at * item + item))
                                           for at in (0, 2, 4, 6, 8, 10))
        guard.release()
        for call in guard.tobytes, lambda: bytes(guard):
            with pytest.raises(xmem.Released):
                call()
        empty.release()
        whole.release()


@pytest.mark.parametrize("source", [[1, 2], (3, 4), {5}, range(6)])
def test_what_lends_no_buffer_is_told_what_does(pool: Tally, source: Any) -> None:
    with pool.acquire(16) as guard, pytest.raises(TypeError, match=r"give numpy\.asarray\(\)"):
        guard.copy_from(source)


@pytest.mark.parametrize("item", ["uint8", "uint16", "uint32", "uint64", "complex128"])
def test_large_pictures_are_turned_and_split(item: str) -> None:
    """More than one tile in each direction, with rests, of each number of bytes."""
    whole = (numpy.arange(3 * 131 * 75 * 2) % 251).astype(item).reshape(3, 131, 150)
    sources = [whole.transpose(1, 2, 0), whole.transpose(2, 1, 0), whole[0].T, whole[0, ::-1],
               whole[:, ::2, ::-2], whole[..., ::2], whole.transpose(1, 2, 0)[..., ::-1],
               numpy.broadcast_to(whole[:, :, :1], whole.shape),
               numpy.resize(whole, (131, 512)).T]       # rows as far apart as a power of two
    with xmem.BufferPool(views.name(), writer=True) as pool:
        for source in sources:
            with pool.acquire_cpu(source.shape, item) as guard:
                guard.copy_from(source)
                numpy.testing.assert_array_equal(numpy.asarray(guard), source)
