# SPDX-License-Identifier: MIT
"""Arrow's C data and device interfaces: what pyarrow sees, and how long the contents stay."""
from __future__ import annotations

import ctypes
import errno
import os
import struct
from typing import Any

import numpy
import pytest
import support
import views
import xmem
from hypothesis import given
from hypothesis import strategies as st
from views import SLOTS, Tally, pool, shared  # noqa: F401
from xmem import dtypes

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")

ARROWS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
          "float32", "float64"]


def values(name: str, shape: tuple[int, ...]) -> Any:
    return (numpy.arange(numpy.prod(shape, dtype=int)) % 100).astype(name).reshape(shape)


@given(st.sampled_from(ARROWS), st.lists(st.integers(0, 4), max_size=4).map(tuple))
def test_what_is_published_is_what_arrow_sees(shared: Tally, name: str,
                                              shape: tuple[int, ...]) -> None:
    wanted = values(name, shape)
    token = shared.published(wanted.tobytes(), shape, name)
    with shared.reader.get(token) as guard:
        array = pa.array(guard)
        array.validate(full=True)
        assert len(array) == (shape[0] if shape else 1) and array.null_count == 0
        if len(shape) < 2:
            assert array.type == pa.from_numpy_dtype(name)
            numbers = array
        else:
            assert array.type == pa.fixed_shape_tensor(pa.from_numpy_dtype(name), shape[1:])
            numbers = array.storage.flatten()
        assert numbers.to_pylist() == wanted.ravel().tolist()
        if wanted.size:
            assert numbers.buffers()[1].address == guard.cpu_ptr
        # The schema alone also says so.
        field = pa.field(pa.Field._import_from_c_capsule(guard.__arrow_c_schema__()))
        assert field.type == array.type
    del array, numbers
    assert shared.free() == SLOTS


def test_a_tensor_comes_back_as_an_array_of_numpy(pool: Tally) -> None:
    wanted = values("float32", (4, 3, 2))
    guard = pool.reader.get(pool.published(wanted.tobytes(), wanted.shape, "float32"))
    array = pa.array(guard).to_numpy_ndarray()
    assert array.ctypes.data == guard.cpu_ptr
    guard.release()
    pool.overwrite()
    numpy.testing.assert_array_equal(array, wanted)
    assert pool.free() == SLOTS - 1


def test_booleans_are_bytes_of_an_extension(pool: Tally) -> None:
    guard = pool.reader.get(pool.published(bytes([1, 0, 1]), (3,), "bool"))
    array = pa.array(guard)
    assert array.type == pa.bool8() and array.to_pylist() == [True, False, True]
    assert array.storage.buffers()[1].address == guard.cpu_ptr
    del array
    guard.release()


def test_contents_that_nobody_described_are_bytes(pool: Tally) -> None:
    with pool.reader.get(pool.published(b"words")) as guard:
        assert pa.array(guard).type == pa.uint8()
        assert bytes(pa.array(guard).to_pylist()) == b"words"


@pytest.mark.parametrize("name", [name for name in dtypes.NUMBERS
                                  if name not in [*ARROWS, "bool"]])
def test_types_that_arrow_does_not_have_are_refused(pool: Tally, name: str) -> None:
    with pool.reader.get(pool.published(bytes(64), (2,), name)) as guard:
        for ask in (guard.__arrow_c_array__, guard.__arrow_c_schema__,
                    guard.__arrow_c_device_array__):
            with pytest.raises(TypeError, match="DLPack"):
                ask()


def test_gaps_and_odd_addresses_are_refused(pool: Tally) -> None:
    guard = pool.acquire(64)
    guard.describe((3,), "int32", (8,))
    guard.publish(keep=True)
    with pytest.raises(TypeError, match="follow each other"):
        guard.__arrow_c_array__()
    guard.release()
    guard = pool.acquire(64)
    guard.describe((2,), "int32")
    guard.publish(keep=True, offset=2, length=8)
    with pytest.raises(TypeError, match="multiples"):
        guard.__arrow_c_array__()
    guard.release()


def test_what_is_being_written_is_not_given_to_arrow(pool: Tally) -> None:
    guard = pool.acquire((3,), "int32")
    with pytest.raises(xmem.NotPermitted, match="publish"):
        guard.__arrow_c_array__()
    guard.publish(keep=True)
    assert len(pa.array(guard)) == 3
    guard.release()
    for ask in (guard.__arrow_c_array__, guard.__arrow_c_schema__, guard.__arrow_c_device_array__):
        with pytest.raises(xmem.Released):
            ask()


def test_the_device_is_the_cpu(pool: Tally) -> None:
    with pool.reader.get(pool.published(bytes(8), (2,), "int32")) as guard:
        schema, capsule = guard.__arrow_c_device_array__(None)
        found = views.DeviceArray.from_address(views.pointer(capsule, "arrow_device_array"))
        assert (found.device_type, found.device_id, found.sync_event) == (1, -1, None)
        assert found.array.buffers[1] == guard.cpu_ptr
        array = pa.Array._import_from_c_device_capsule(schema, capsule)
        assert array.to_pylist() == [0, 0]
        guard.__arrow_c_device_array__(requested_schema=None, later=None)
        with pytest.raises(NotImplementedError, match="later"):
            guard.__arrow_c_device_array__(later=1)
        del array, schema, capsule


def test_an_array_outlives_guard_and_pool() -> None:
    tally = Tally()
    array = pa.array(tally.reader.get(tally.published(b"stays")))
    tally.overwrite()
    tally.reader.close()
    tally.reader = None
    tally.overwrite()
    part = array[1:3]
    del array
    assert bytes(part.to_pylist()) == b"ta" and tally.free() == SLOTS - 1
    del part
    assert tally.free() == SLOTS
    tally.writer.close()


def test_capsules_that_nobody_takes_let_go(pool: Tally) -> None:
    guard = pool.reader.get(pool.published(bytes(24), (2, 3), "int32"))
    capsules = [guard.__arrow_c_array__(), guard.__arrow_c_device_array__(),
                guard.__arrow_c_schema__()]
    guard.release()
    assert pool.free() == SLOTS - 1
    del capsules
    assert pool.free() == SLOTS


def test_a_child_that_is_taken_alone_holds(pool: Tally) -> None:
    """A consumer moves a child out of its parent, and a thread of C without the GIL drops both."""
    guard = pool.reader.get(pool.published(bytes(range(24)), (2, 3), "int32"))
    schema, capsule = guard.__arrow_c_array__()
    guard.release()
    parent = views.Array.from_address(views.pointer(capsule, "arrow_array"))
    child = views.Array()
    inner = parent.children[0].contents
    ctypes.memmove(ctypes.addressof(child), ctypes.addressof(inner), ctypes.sizeof(child))
    inner.release = None
    views.call_in_thread(parent.release, ctypes.addressof(parent))
    assert parent.release is None
    pool.overwrite()
    assert pool.free() == SLOTS - 1
    assert (child.length, child.n_buffers) == (6, 2)
    assert ctypes.string_at(child.buffers[1], 24) == bytes(range(24))
    views.call_in_thread(child.release, ctypes.addressof(child))
    assert child.release is None
    del capsule, schema
    assert pool.free() == SLOTS


AT_EXIT = """
import ctypes, sys, xmem
sys.path.insert(0, sys.argv[3])
import views
guard = xmem.BufferPool(sys.argv[1]).get(int(sys.argv[2]))
schema, capsule = guard.__arrow_c_array__()
array = views.Array.from_address(views.pointer(capsule, "arrow_array"))
copy = ctypes.create_string_buffer(bytes(array))
array.release = None                    # moved: the copy owns it
kept = ctypes.cast(copy, ctypes.c_void_p).value
ctypes.pythonapi.Py_IncRef(ctypes.py_object(copy))
c = ctypes.CDLL(None)
c.__cxa_atexit.argtypes = [ctypes.c_void_p] * 3
c.__cxa_atexit(ctypes.cast(c._exit, ctypes.c_void_p), 7, None)
c.__cxa_atexit(views.Array.from_address(kept).release, kept, None)
"""


def test_an_array_is_released_when_the_interpreter_has_ended(pool: Tally) -> None:
    here = os.path.dirname(__file__)
    views.script(AT_EXIT, pool.name, str(pool.published(b"bye")), here, code=7)


def test_a_child_of_fork_drops_what_it_inherited(pool: Tally) -> None:
    guard = pool.reader.get(pool.published(b"parent"))
    capsules = guard.__arrow_c_array__()
    child = os.fork()
    if not child:
        code = 1
        try:
            del capsules
            with pytest.raises(xmem.Forked):
                guard.__arrow_c_array__()
            guard.release()
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    guard.release()
    pool.overwrite()
    array = pa.Array._import_from_c_capsule(*capsules)
    assert bytes(array.to_pylist()) == b"parent" and pool.free() == SLOTS - 1
    del array, capsules
    assert pool.free() == SLOTS


# ---- columns of strings ----

COLUMNS = [
    [], [None], [""], ["a"], ["a", None, "", "f\u00fcnf"], [None] * 70, ["x" * 7] * 600,
    [*map(str, range(100)), None]]


def column(pool: Tally, source: Any) -> int:
    return int(pool.writer.acquire_strings(source, timeout=support.LIMIT).publish())


@pytest.mark.parametrize("strings", COLUMNS, ids=lambda strings: str(len(strings)))
def test_a_column_of_strings_comes_back(pool: Tally, strings: list[str | None]) -> None:
    with pool.reader.get(column(pool, strings)) as guard:
        array = pa.array(guard)
        array.validate(full=True)
        assert array.type == pa.string() and array.to_pylist() == strings
        assert array.null_count == strings.count(None)
        plan = guard.strings()
        chars = sum(len(string.encode()) for string in strings if string)
        assert plan == xmem.strings_plan(len(strings), chars, None in strings)
        assert plan.nbytes == guard.nbytes
        bits, offsets, text = array.buffers()
        assert offsets.address == guard.cpu_ptr + plan.offsets_at
        assert not chars or text.address == guard.cpu_ptr + plan.chars_at
        assert (bits is None) == (plan.validity_at is None)
        field = pa.field(pa.Field._import_from_c_capsule(guard.__arrow_c_schema__()))
        assert (field.type, field.nullable) == (pa.string(), None in strings)
        del array, bits, offsets, text


@given(st.lists(st.none() | st.text(), max_size=40), st.integers(0, 40), st.integers(0, 40))
def test_slices_of_columns_are_columns(shared: Tally, strings: list[str | None], start: int,
                                       stop: int) -> None:
    source = pa.array(strings, pa.string())[start:stop]
    with shared.reader.get(column(shared, source)) as guard:
        array = pa.array(guard)
        array.validate(full=True)
        assert array.to_pylist() == source.to_pylist()
    del array


def test_other_arrays_of_strings_become_columns(pool: Tally) -> None:
    strings = ["one", None, "two", "one"]
    for source in (pa.array(strings, pa.large_string()), pa.chunked_array([strings, ["more"]]),
                   pa.chunked_array([], pa.string()), pa.array(strings).dictionary_encode(),
                   pa.nulls(3)):
        with pool.reader.get(column(pool, source)) as guard:
            assert pa.array(guard).to_pylist() == source.to_pylist()
    with pytest.raises(pa.ArrowException):
        pool.writer.acquire_strings([b"\xff"], timeout=0)
    with pytest.raises(pa.ArrowException):
        pool.writer.acquire_strings(pa.array([[1]]), timeout=0)
    for offsets in (0, 8, 2, 4), (0, 1, 2, 99), (-1, 1, 2, 4):
        parts = [None, pa.py_buffer(struct.pack("4i", *offsets)), pa.py_buffer(b"abcd")]
        with pytest.raises(pa.ArrowInvalid):
            pool.writer.acquire_strings(pa.Array.from_buffers(pa.string(), 3, parts), timeout=0)


def test_a_column_outlives_guard_and_pool() -> None:
    tally = Tally()
    array = pa.array(tally.reader.get(column(tally, ["stays", None, "here"])))
    tally.overwrite()
    tally.reader.close()
    tally.reader = None
    tally.overwrite()
    part = array[1:]
    del array
    assert part.to_pylist() == [None, "here"] and tally.free() == SLOTS - 1
    del part
    assert tally.free() == SLOTS
    tally.writer.close()


# Each is described as a column of 100 rows with 900 bytes of strings, and then spoilt.
SPOILT = [
    ("column", 2, "no column of kind 2"), ("column_rows", 1 << 31, "rows"),
    ("column_rows", 99999, "not those"), ("column_chars", 1 << 40, "bytes of characters"),
    ("column_chars", 901, "not those"), ("column_flags", 1, "not those"),
    ("column_flags", 8, "flags 0x8"), ("shape", 10, "not those")]


@pytest.mark.parametrize(("field", "value", "says"), SPOILT)
def test_a_hostile_column_is_refused(pool: Tally, field: str, value: int, says: str) -> None:
    with views.spoilt_column(pool.name, field, value) as token, pool.reader.get(token) as guard:
        for ask in (guard.__arrow_c_array__, guard.__arrow_c_schema__,
                    guard.__arrow_c_device_array__, guard.strings):
            with pytest.raises(xmem.Error, match=says) as caught:
                ask()
            assert caught.value.errno == errno.EBADMSG


def test_a_column_begins_where_its_numbers_are_aligned(pool: Tally) -> None:
    guard = pool.acquire(4096)
    guard.describe_strings(100, 900)
    with pytest.raises(xmem.Error, match="does not hold"):
        guard.publish(length=1024)
    with pool.reader.get(guard.publish(offset=8)) as guard:
        with pytest.raises(xmem.Error, match="multiple of 64"):
            guard.__arrow_c_array__()
    with pool.reader.get(pool.published(b"words")) as guard:
        with pytest.raises(xmem.Error, match="describe_strings") as caught:
            guard.strings()
        assert caught.value.errno == errno.ENODATA


def offsets_of(guard: Any) -> Any:
    at = guard.strings().offsets_at
    return numpy.asarray(guard)[at:].view("int32")


def test_hostile_offsets_are_found(pool: Tally) -> None:
    guard = pool.acquire(4096)
    memoryview(guard)[:] = bytes(4096)
    guard.describe_strings(100, 900)
    offsets = offsets_of(guard)     # this process can write them after it has published them
    with pool.reader.get(guard.publish()) as guard:
        for last in (0, 901, -1, 1 << 30):
            offsets[100] = last
            with pytest.raises(xmem.Error, match="offsets") as caught:
                guard.__arrow_c_array__()
            assert caught.value.errno == errno.EBADMSG
        offsets[100] = 900
        pa.array(guard).validate(full=True)
        for wrong in (901, -1, 1 << 30):
            offsets[50] = wrong
            array = pa.array(guard)
            with pytest.raises(pa.ArrowInvalid):
                array.validate(full=True)
        del array
    del offsets


def test_the_device_of_a_column_is_the_cpu(pool: Tally) -> None:
    with pool.reader.get(column(pool, ["a", None])) as guard:
        schema, capsule = guard.__arrow_c_device_array__(None)
        found = views.DeviceArray.from_address(views.pointer(capsule, "arrow_device_array"))
        assert (found.device_type, found.device_id, found.sync_event) == (1, -1, None)
        assert (found.array.n_buffers, found.array.null_count) == (3, -1)
        assert pa.Array._import_from_c_device_capsule(schema, capsule).to_pylist() == ["a", None]
        del schema, capsule
    with pytest.raises(xmem.NotPermitted, match="publish"):
        pool.writer.acquire_strings(["a"], timeout=0).__arrow_c_array__()
