# SPDX-License-Identifier: MIT
"""Contents without bytes, parts of described contents, and errors of wrong shapes and types."""
from __future__ import annotations

import ctypes
import errno
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy
import pytest
import xmem
from support import LIMIT, pair, python
from xmem import dtypes


# ---- no bytes ----

@pytest.mark.parametrize("arguments", [(0,), ((0,), "float32"), ((3, 0, 2), "int64"),
                                       ([0], "bfloat16")])
def test_contents_of_no_bytes_are_received_as_such(arguments: tuple[Any, ...]) -> None:
    """Never the whole buffer, in which an earlier publication's bytes still are."""
    with pair() as (writer, reader):
        writer.preallocate_cpu(1 << 16, 2)
        subscription = reader.subscribe()
        for _ in range(2):
            with writer.acquire_cpu(1 << 16) as guard:
                memoryview(guard)[:] = b"s" * (1 << 16)
                guard.publish()
        for _ in range(2):
            subscription.receive(0).release()
        with writer.acquire_cpu(*arguments) as guard:
            assert guard.nbytes == 0 and 0 in guard.shape
            assert guard.copy_from(b"") == 0
            with pytest.raises(xmem.Error) as caught:
                guard.copy_from(b"1")
            assert caught.value.errno == errno.ERANGE
            guard.publish()
        with subscription.receive(0) as got:
            assert got.nbytes == 0 and 0 in got.shape
            assert numpy.asarray(got._span()).size == 0
            if got.dtype != "bfloat16":
                assert numpy.asarray(got).size == 0 and bytes(got) == b""
            with writer.acquire_cpu(*arguments, timeout=LIMIT) as copy:
                assert copy.copy_from(got) == 0 and copy.nbytes == 0


def test_a_message_may_be_empty() -> None:
    with pair() as (writer, reader):
        subscription = reader.subscribe()
        for message in (b"first", b"", b"third", b""):
            with writer.acquire_cpu(len(message)) as guard:
                assert guard.copy_from(message) == len(message)
                guard.publish()
            with subscription.receive(0) as got:
                assert bytes(got) == message and got.nbytes == len(message)


def test_nothing_said_is_any_buffer() -> None:
    with pair() as (writer, _):
        writer.preallocate_cpu(4096, 1)
        with writer.acquire_cpu() as guard:
            assert guard.nbytes == guard.capacity == 4096 and guard.dtype is None


def test_each_live_guard_is_true() -> None:
    with pair() as (writer, _):
        for arguments in ((3,), (0,), ((0,), "uint8"), ((), "uint8")):
            with writer.acquire_cpu(*arguments) as guard:
                assert guard
                with pytest.raises(TypeError):
                    len(guard)


# ---- parts ----

def test_a_part_that_cuts_what_is_described_is_the_publishers_error() -> None:
    with pair() as (writer, reader):
        subscription = reader.subscribe()
        guard = writer.acquire_cpu((10, 4), "uint8")
        numpy.asarray(guard)[...] = numpy.arange(40).reshape(10, 4)
        hands: list[Callable[..., int]] = [guard.publish, partial(guard.send, reader.client)]
        for offset, length in ((0, 8), (8, 0), (8, 8), (0, 39)):
            for hand in hands:
                with pytest.raises(xmem.Error, match=r"\(10, 4\): describe what") as caught:
                    hand(offset=offset, length=length)
                assert caught.value.errno == errno.ERANGE and not guard.gone
        with pytest.raises(xmem.WouldBlock):
            subscription.receive(0)
        guard.describe((2, 4), "uint8")
        guard.publish(offset=8, length=8)
        with subscription.receive(0) as got:
            assert numpy.asarray(got).tolist() == [[8, 9, 10, 11], [12, 13, 14, 15]]
        whole = writer.acquire_cpu((4,), "uint8")
        whole.publish(length=4, keep=True)
        with pytest.raises(xmem.Error, match="part of 3 bytes"):
            whole.forward(length=3, offset=whole.metadata.offset)
        assert not whole.gone


def test_a_part_of_an_image_has_all_planes() -> None:
    with pair() as (writer, reader):
        subscription = reader.subscribe()
        guard = writer.acquire_cpu(64)
        guard.describe_image(xmem.ImageFormat.NV12, 4, 4)
        for length in (16, 23):                 # the first plane is there
            with pytest.raises(xmem.Error, match=f"part of {length} bytes"):
                guard.publish(length=length)
        guard.publish(length=24)
        with subscription.receive(0) as got:
            assert got.nbytes == 24
            assert got.image()[:3] == (xmem.ImageFormat.NV12, 4, 4)
            assert isinstance(got.image(), xmem.Image)
            assert [plane.offset for plane in got.image().planes] == [0, 16]


# ---- shapes ----

SHAPES: list[tuple[tuple[Any, ...], dict[str, Any], type[Exception], str]] = [
    ((5, "float32"), {}, TypeError, r"\(5,\) is 5 elements"),
    ((numpy.array([2, 3]), "float32"), {}, TypeError, "tuple or list, not array"),
    ((), {"shape": 5, "dtype": "float32"}, TypeError, "a shape is a tuple or list.*not 5"),
    ((), {"shape": "ab", "dtype": "float32"}, TypeError, "not 'ab'"),
    (((-1, 2), "float32"), {}, ValueError, r"no negative numbers: \(-1, 2\)"),
    (((-1, -2), "float32"), {}, ValueError, r"no negative numbers: \(-1, -2\)"),
    (((2.5,), "float32"), {}, TypeError, "integers and nothing else"),
    (((1,) * 9, "float32"), {}, ValueError, "at most 8 dimensions, not 9"),
    ((), {"dtype": "float32"}, TypeError, "needs a shape"),
    ((2.5,), {}, TypeError, "a number of bytes, or a shape"),
]


@pytest.mark.parametrize("arguments, keywords, error, text", SHAPES,
                         ids=[each[3] for each in SHAPES])
def test_what_is_wrong_with_a_shape_is_said(arguments: tuple[Any, ...], keywords: dict[str, Any],
                                            error: type[Exception], text: str) -> None:
    with pair() as (writer, _):
        with pytest.raises(error, match=text):
            writer.acquire_cpu(*arguments, **keywords)
        assert writer.stat().attached == 0


def test_describing_says_what_is_wrong_with_a_shape() -> None:
    with pair() as (writer, _), writer.acquire_cpu(64) as guard:
        with pytest.raises(TypeError, match="tuple or list of integers.*not 6"):
            guard.describe(6, "uint8")                      # type: ignore[arg-type]
        with pytest.raises(TypeError, match="tuple or list of integers.*not 6"):
            guard.describe_tensor(dtypes.number("uint8"), 6)        # type: ignore[arg-type]
        with pytest.raises(ValueError, match="no negative"):
            guard.describe((-1, -2), "uint8")
        guard.describe([2, 3], "uint8", [3, 1])
        assert guard.shape == (2, 3)


# ---- names of types ----

SHORT = {"f4": "float32", "<f4": "float32", "=f8": "float64", "u1": "uint8", "|u1": "uint8",
         ">u1": "uint8", "i1": "int8", "b": "int8", "B": "uint8", "?": "bool", "|b1": "bool",
         "c8": "complex64", "<i8": "int64", "l": "int64", "q": "int64", "e": "float16",
         "d": "float64", "single": "float32", "intc": "int32", "ubyte": "uint8"}


def test_short_names_need_no_numpy() -> None:
    """And it is not imported in passing."""
    text = python("""
import sys
sys.modules["numpy"] = None                     # whoever imports it gets ImportError
import xmem
for name in sys.argv[1:]:
    print(xmem.dtypes.NAMES[xmem.dtypes.number(name)])
with xmem.BufferPool(None, writer=True) as pool, pool.acquire_cpu((2,), "<f4") as guard:
    assert guard.dtype == "float32"
try:
    xmem.dtypes.number(">f4")
except TypeError as error:
    print("other byte order" in str(error))
""", *SHORT)
    assert text.split() == [*SHORT.values(), "True"]
    assert {short: numpy.dtype(short).name for short in SHORT} == SHORT


def test_names_do_not_import_numpy() -> None:
    assert python("""
import sys, xmem
for name in ("f4", "<f4", "nonsense"):
    try:
        xmem.dtypes.number(name)
    except TypeError:
        pass
print("numpy" in sys.modules)
""").strip() == "False"


@pytest.mark.parametrize("dtype", [">f4", numpy.dtype(">f4"), numpy.dtype(">i8"), ">c8"])
def test_the_other_byte_order_is_refused_and_named(dtype: Any) -> None:
    with pair() as (writer, _), writer.acquire_cpu(64) as guard:
        for call in (lambda: writer.acquire_cpu((3,), dtype), lambda: guard.describe((3,), dtype)):
            with pytest.raises(TypeError, match="other byte order") as caught:
                call()
            assert ">" in str(caught.value)
        assert guard.dtype is None


def test_types_of_others_are_known_by_their_names() -> None:
    for given, name in ((numpy.float32, "float32"), (numpy.dtype("<f4"), "float32"),
                        (numpy.longlong, "int64"), (numpy.bool_, "bool"), (float, "float64"),
                        (numpy.dtype(">u1"), "uint8"), (ctypes.c_float, "float32"),
                        (ctypes.c_uint16, "uint16"), (int, "int64")):
        assert dtypes.NAMES[dtypes.number(given)] == name
    for wrong in (object, "O", "U4", "M8[s]", numpy.dtype("M8[s]"), "V4", "f3", "", ">", "<"):
        with pytest.raises(TypeError, match="cannot be shared"):
            dtypes.number(wrong)
