# SPDX-License-Identifier: MIT
"""numpy, memoryview and others by the buffer protocol and the array interface; copies into guards.

hypothesis makes up tensors of each type, with up to four dimensions in any order and with gaps, as
publishers may describe them.
"""
from __future__ import annotations

import ctypes
import hashlib
import os
import pickle
import threading
from types import SimpleNamespace
from typing import Any

import numpy
import pytest
import views
import xmem
from hypothesis import given
from hypothesis import strategies as st
from views import BYTES, SLOTS, Tally, pool, shared  # noqa: F401
from xmem import dtypes

NUMPYS = [name for name in dtypes.NUMBERS if not name.startswith(("bfloat", "float8", "float4"))]
OTHERS = [name for name in dtypes.NUMBERS if name not in NUMPYS]
NEW = numpy.lib.NumpyVersion(numpy.__version__) >= "2.1.0"
SIMPLE, WRITABLE, FORMAT, ND, STRIDES = 0, 1, 4, 8, 24
C_ORDER, F_ORDER, ANY_ORDER = 32 | STRIDES, 64 | STRIDES, 128 | STRIDES


@st.composite
def tensors(draw: st.DrawFn, names: list[str] = NUMPYS) -> tuple[str, tuple[int, ...], Any]:
    """A type, a shape and strides in bytes, of dimensions that lie in any order, with gaps."""
    name = draw(st.sampled_from(names))
    shape = draw(st.lists(st.integers(0, 5), max_size=4).map(tuple))
    order = draw(st.permutations(range(len(shape))))
    if draw(st.booleans()):
        return name, shape, None
    item = dtypes.item_bytes(dtypes.NUMBERS[name])
    strides, step = [0] * len(shape), item
    for dimension in order:
        strides[dimension] = step
        step *= max(shape[dimension], 1)
        step += draw(st.sampled_from([0, 0, 1, 3])) * item
    return name, shape, tuple(strides)


def values(name: str, shape: tuple[int, ...]) -> Any:
    count = int(numpy.prod(shape, dtype=int))
    return (numpy.arange(count) % 127).astype(name).reshape(shape)


# ---- numpy ----

@given(tensors())
def test_what_a_writer_puts_in_comes_out_of_each_view(shared: Tally, tensor: Any) -> None:
    name, shape, strides = tensor
    wanted = values(name, shape)
    guard = shared.acquire(BYTES)
    guard.describe(shape, name, strides)
    array = numpy.asarray(guard)
    assert (array.dtype, array.shape, array.flags.writeable) == (name, shape, True)
    assert array.ctypes.data == guard.cpu_ptr or not array.size
    array[...] = wanted
    del array
    token = guard.publish()
    with shared.reader.get(token) as read:
        array = numpy.asarray(read)
        assert (array.dtype, array.shape, array.flags.writeable) == (name, shape, False)
        assert read.shape == shape and read.dtype == name and read.readonly
        numpy.testing.assert_array_equal(array, wanted)
        numpy.testing.assert_array_equal(numpy.asarray(memoryview(read)), wanted)
        # No class of its own: where there is no GIL, CPython 3.13 never frees one.
        interface = SimpleNamespace(__array_interface__=read.__array_interface__)
        numpy.testing.assert_array_equal(numpy.asarray(interface), wanted)
        assert not numpy.asarray(interface).flags.writeable
        if NEW:
            lent = numpy.from_dlpack(read)
            numpy.testing.assert_array_equal(lent, wanted)
            assert not lent.flags.writeable or not lent.size
            copy = numpy.from_dlpack(read, copy=True)
            numpy.testing.assert_array_equal(copy, wanted)
            assert copy.flags.c_contiguous and copy.flags.writeable
            del lent
        assert read.tobytes() == wanted.tobytes()
        del array, interface
    assert shared.free() == SLOTS


@given(tensors(), st.integers(0, 70))
def test_copy_from_takes_arrays_with_gaps(shared: Tally, tensor: Any, offset: int) -> None:
    name, shape, strides = tensor
    wanted = values(name, shape)
    source = numpy.zeros(BYTES, "uint8")
    at = numpy.ndarray(shape, name, source, strides=strides)
    at[...] = wanted
    for array in (at, at[::-1] if shape else at, at.T, at[..., ::2] if shape else at):
        guard = shared.acquire(BYTES)
        assert guard.copy_from(array, offset) == array.nbytes
        token = guard.publish()
        with shared.reader.get(token) as read:
            assert bytes(read)[offset:offset + array.nbytes] == array.tobytes()


@given(tensors(NUMPYS))
def test_copy_from_takes_tensors_by_dlpack(shared: Tally, tensor: Any) -> None:
    name, shape, strides = tensor
    wanted = values(name, shape)

    class Tensor:
        """An object without the buffer protocol and without the keywords of later versions of
        DLPack."""

        def __dlpack__(self, stream: None = None) -> Any:
            return wanted.T.__dlpack__()

    guard = shared.acquire(BYTES)
    if name == "bool" and not NEW:
        guard.release()
        return
    assert guard.copy_from(Tensor()) == wanted.nbytes
    token = guard.publish()
    with shared.reader.get(token) as read:
        assert bytes(read)[:wanted.nbytes] == wanted.T.tobytes()


# ---- types that numpy does not know ----

@pytest.mark.parametrize("name", OTHERS)
def test_a_type_without_a_format_is_lent_as_bytes_or_by_ml_dtypes(pool: Tally, name: str) -> None:
    token = pool.published(bytes(range(8)), (2, 2), name)
    with pool.reader.get(token) as guard:
        with pytest.raises(BufferError, match="DLPack"):
            memoryview(guard)
        # A consumer that takes bytes without a type gets them.
        assert hashlib.sha256(guard).digest() == hashlib.sha256(
            bytes(range(4 * dtypes.item_bytes(dtypes.number(name))))).digest()
        with pytest.raises(AttributeError):
            guard.__array_interface__
        try:
            import ml_dtypes
        except ImportError:
            with pytest.raises(TypeError, match="install ml_dtypes"):
                numpy.asarray(guard)
            return
        if not hasattr(ml_dtypes, name):
            with pytest.raises(TypeError, match="neither"):
                numpy.asarray(guard)
            return
        array = numpy.asarray(guard)
        assert array.dtype == getattr(ml_dtypes, name) and not array.flags.writeable
        guard.release()
        pool.overwrite()
        assert array.tobytes() == bytes(range(array.nbytes))
        del array
        assert pool.free() == SLOTS


def test_arrays_of_ml_dtypes_are_copied(pool: Tally) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = numpy.arange(12).astype(ml_dtypes.bfloat16).reshape(3, 4)
    guard = pool.acquire((4, 3), "bfloat16")
    assert guard.copy_from(array.T) == 24
    assert (numpy.asarray(guard) == array.T).all()
    wide = numpy.asarray(guard, dtype="float32")
    assert wide.dtype == "float32" and wide[1].tolist() == [1, 5, 9]
    with pytest.raises(TypeError, match="float8"):
        guard.copy_from(array.astype(ml_dtypes.float8_e5m2))
    guard.release()


def test_a_type_that_nobody_names_is_refused(pool: Tally) -> None:
    guard = pool.acquire(8)
    guard.describe_tensor(15 | 6 << 8 | 4 << 16, (2,))      # float6, four in three bytes
    with pytest.raises(TypeError, match="0x4060f"):
        numpy.asarray(guard)
    guard.release()


# ---- guards that are gone ----

def test_numpy_never_makes_an_object_of_a_guard(pool: Tally) -> None:
    guard = pool.reader.get(pool.published())
    guard.release()
    for ask in (numpy.asarray, numpy.array, memoryview, bytes, hashlib.sha256):
        with pytest.raises(xmem.Released):
            ask(guard)


# ---- where numpy looks at the type ----

HAS_PROTOCOL = numpy.lib.NumpyVersion(numpy.__version__) >= "2.4.0"
LOOKS: list[Any] = [
    numpy.zeros_like, numpy.empty_like, numpy.ones_like, lambda it: numpy.full_like(it, 1),
    numpy.asarray, numpy.ascontiguousarray, numpy.ma.asarray, lambda it: numpy.array(it, copy=True),
    lambda it: numpy.zeros(3, it.dtype), lambda it: numpy.asarray(it, dtype=it.dtype)]
ASKS: list[Any] = [
    numpy.common_type, numpy.result_type, lambda it: numpy.finfo(it.dtype).dtype,
    lambda it: numpy.result_type(it.dtype)]


@pytest.mark.parametrize("name", NUMPYS)
def test_functions_that_look_at_the_type_of_what_they_are_given(pool: Tally, name: str) -> None:
    with pool.reader.get(pool.published(bytes(64), (2, 2), name)) as guard:
        array = numpy.asarray(guard)
        assert guard.dtype == name == str(array.dtype)
        assert numpy.dtype(guard.dtype) == array.dtype
        for look in LOOKS:
            assert look(guard).dtype == look(array).dtype == name
        for attribute in dtypes._OF_NUMPY | {"name"}:
            assert getattr(guard.dtype, attribute) == getattr(array.dtype, attribute)
        if array.dtype.kind in "fc":
            for ask in ASKS[:1] if not HAS_PROTOCOL else ASKS:
                assert ask(guard) == ask(array)
        del array


@pytest.mark.skipif(not HAS_PROTOCOL, reason="numpy before 2.4 looks at .dtype, and warns of it")
@pytest.mark.parametrize("name", list(dtypes.NUMBERS))
def test_a_guard_where_numpy_takes_a_type(pool: Tally, name: str) -> None:
    import ml_dtypes

    with pool.reader.get(pool.published(bytes(64), (1, 2), name)) as guard:
        if not hasattr(numpy, name) and not hasattr(ml_dtypes, name):
            with pytest.raises(TypeError, match="use DLPack"):
                numpy.dtype(guard)
            return
        wanted = numpy.asarray(guard).dtype
        assert numpy.dtype(guard) == numpy.result_type(guard) == wanted
        assert numpy.zeros(3, dtype=guard).dtype == wanted
        assert numpy.can_cast(guard, wanted)
    with pool.reader.get(pool.published(b"bytes")) as guard:
        assert guard.dtype is None and numpy.dtype(guard) == "uint8"


def test_the_name_of_a_type_is_a_string(pool: Tally) -> None:
    with pool.reader.get(pool.published(bytes(64), (2, 2), "float32")) as guard:
        dtype = guard.dtype
    assert type(dtype) is dtypes.DType and {"float32": 1}[dtype] == 1 and repr(dtype) == "'float32'"
    assert type(pickle.loads(pickle.dumps(dtype))) is str == type(dtype.name)
    assert dtypes.number(dtype) == dtypes.NUMBERS["float32"]
    assert not hasattr(dtype, "unknown") and not hasattr(dtypes.DType("float4_e2m1fn_x2"), "kind")


# ---- the buffer protocol, as C asks for it ----

class Buffer(ctypes.Structure):
    _fields_ = [("buf", ctypes.c_void_p), ("obj", ctypes.py_object), ("len", ctypes.c_ssize_t),
                ("itemsize", ctypes.c_ssize_t), ("readonly", ctypes.c_int),
                ("ndim", ctypes.c_int), ("format", ctypes.c_char_p),
                ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
                ("strides", ctypes.POINTER(ctypes.c_ssize_t)), ("suboffsets", ctypes.c_void_p),
                ("internal", ctypes.c_void_p)]


def ask(guard: Any, flags: int) -> Any:
    """Get the result of PyObject_GetBuffer, without the object; or BufferError."""
    view = Buffer()
    get, release = ctypes.pythonapi.PyObject_GetBuffer, ctypes.pythonapi.PyBuffer_Release
    get.argtypes = [ctypes.py_object, ctypes.POINTER(Buffer), ctypes.c_int]
    get(guard, view, flags)
    release.argtypes, release.restype = [ctypes.POINTER(Buffer)], None
    found = (view.len, view.itemsize, view.ndim, bool(view.shape), bool(view.strides), view.format)
    release(view)
    return found


def test_contents_with_gaps_are_lent_to_those_who_take_strides(pool: Tally) -> None:
    guard = pool.acquire(1000)
    guard.describe((3, 2), "int16", (8, 2))
    assert ask(guard, STRIDES | FORMAT) == (12, 2, 2, True, True, b"h")
    for flags in (SIMPLE, ND, C_ORDER, F_ORDER, ANY_ORDER):
        with pytest.raises(BufferError):
            ask(guard, flags)
    guard.describe((3, 2), "int16")
    for flags in (SIMPLE, ND, STRIDES, C_ORDER, ANY_ORDER):
        assert ask(guard, flags)[:2] == (12, 2)
    with pytest.raises(BufferError, match="first index"):
        ask(guard, F_ORDER)
    guard.describe((3, 2), "int16", (2, 6))
    assert ask(guard, F_ORDER)[:3] == (12, 2, 2)
    with pytest.raises(BufferError):
        ask(guard, C_ORDER)
    guard.describe((), "int16")
    assert ask(guard, STRIDES | FORMAT) == (2, 2, 0, False, False, b"h")
    guard.release()
    with pytest.raises(xmem.Released):
        ask(guard, SIMPLE)


def test_contents_for_reading_are_not_lent_for_writing(pool: Tally) -> None:
    with pool.reader.get(pool.published()) as guard:
        assert ask(guard, SIMPLE)[0] == 16
        with pytest.raises(BufferError, match="read-only"):
            ask(guard, WRITABLE)
        with pytest.raises(TypeError):
            memoryview(guard)[0] = 1


# ---- how long it stays ----

def test_an_array_outlives_guard_pool_and_names() -> None:
    tally = Tally()
    array = numpy.asarray(tally.reader.get(tally.published(b"stays")))
    tally.overwrite()
    tally.reader.close()
    tally.reader = None
    tally.overwrite()
    assert array.tobytes() == b"stays" and tally.free() == SLOTS - 1
    del array
    assert tally.free() == SLOTS
    tally.writer.close()


def test_release_with_views_leaves_the_last_one_to_let_go(pool: Tally) -> None:
    guard = pool.reader.get(pool.published(b"stays"))
    first, second = memoryview(guard), numpy.asarray(guard)
    interface = guard.__array_interface__
    guard.release()
    first.release()
    pool.overwrite()
    assert second.tobytes() == b"stays" and pool.free() == SLOTS - 1
    del second
    assert bytes(interface["data"]) == b"stays" and pool.free() == SLOTS - 1
    del interface
    assert pool.free() == SLOTS


def test_publish_and_keep_under_a_view_can_be_viewed_again(pool: Tally) -> None:
    guard = pool.acquire((4,), "int32")
    array = numpy.asarray(guard)
    array[:] = [1, 2, 3, 4]
    guard.publish(keep=True)
    assert numpy.asarray(guard).tolist() == [1, 2, 3, 4]
    assert not numpy.asarray(guard).flags.writeable
    guard.release()
    pool.overwrite()
    assert array.tolist() == [1, 2, 3, 4]


def test_another_description_under_a_view_is_refused(pool: Tally) -> None:
    guard = pool.acquire((4,), "int32")
    array = numpy.asarray(guard)
    with pytest.raises(BufferError, match="views"):
        guard.describe((2, 2), "int32")
    with pytest.raises(xmem.Error, match="part of 8 bytes"):
        guard.publish(keep=True, length=8)
    assert array.shape == (4,)
    guard.release()


def test_what_was_said_of_earlier_contents_is_not_said_again(pool: Tally) -> None:
    pool.published(bytes(24), (2, 3), "int32")
    for _ in range(SLOTS):
        guard = pool.acquire(24)
        assert (guard.dtype, guard.shape) == (None, (24,))
        guard.publish()


def test_release_in_a_thread_while_another_looks(pool: Tally) -> None:
    for _ in range(50):
        guard = pool.acquire(64)
        start = threading.Barrier(2)
        errors: list[BaseException] = []

        def look() -> None:
            start.wait()
            try:
                for _ in range(100):
                    memoryview(guard).release()
            except xmem.Released:
                pass
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=look)
        thread.start()
        start.wait()
        guard.release()
        thread.join()
        assert not errors
    assert pool.free() == SLOTS


def test_a_child_of_fork_is_told_and_does_not_crash(pool: Tally) -> None:
    guard = pool.reader.get(pool.published(b"parent"))
    array = numpy.asarray(guard)
    child = os.fork()
    if not child:
        code = 1
        try:
            for ask in (memoryview, numpy.asarray, lambda guard: guard.__array_interface__):
                with pytest.raises(xmem.Forked):
                    ask(guard)
            del array
            guard.release()
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    pool.overwrite()
    assert array.tobytes() == b"parent" and pool.free() == SLOTS - 1


# ---- copies ----

def test_copy_from_refuses_what_does_not_fit(pool: Tally) -> None:
    guard = pool.acquire(BYTES)
    before = bytes(guard)
    with pytest.raises(xmem.Error, match="copy"):
        guard.copy_from(bytes(BYTES), 1)
    with pytest.raises(xmem.Error):
        guard.copy_from(numpy.zeros((BYTES, 2), "uint8")[:, 0], 1)
    with pytest.raises(xmem.Error):
        guard.copy_from(b"1", 1 << 60)
    with pytest.raises(ValueError):
        guard.copy_from(b"1", -1)
    with pytest.raises(TypeError, match="copies from"):
        guard.copy_from([1, 2, 3])
    assert bytes(guard) == before
    assert guard.copy_from(b"", BYTES) == 0
    guard.publish(keep=True)
    with pytest.raises(xmem.NotPermitted):
        guard.copy_from(b"1")
    guard.release()
    with pytest.raises(xmem.Released):
        guard.copy_from(b"1")


def test_copy_from_does_not_take_numbers_for_others(pool: Tally) -> None:
    guard = pool.acquire((4,), "float32")
    for wrong in (numpy.arange(4, dtype="int32"), numpy.arange(4, dtype="float64")):
        with pytest.raises(TypeError, match="convert"):
            guard.copy_from(wrong)
    assert guard.copy_from(numpy.arange(4, dtype="float32")) == 16
    assert numpy.asarray(guard).tolist() == [0, 1, 2, 3]
    assert guard.copy_from(numpy.arange(4, dtype="float32").tobytes()[4:8]) == 4
    assert numpy.asarray(guard).tolist() == [1, 1, 2, 3]
    guard.describe((2,), "float32", (8,))
    with pytest.raises(BufferError, match="gaps"):
        guard.copy_from(numpy.arange(4, dtype="float32"))
    guard.release()


def test_copy_from_a_guard_takes_what_it_says(pool: Tally) -> None:
    token = pool.published(bytes(range(24)), (2, 3), "int32")
    with pool.reader.get(token) as source:
        guard = pool.acquire(24)
        assert guard.copy_from(source) == 24
        assert (guard.nbytes, guard.shape, guard.dtype) == (24, (2, 3), "int32")
        view = memoryview(guard)
        with pytest.raises(BufferError, match="views"):
            guard.copy_from(source)
        with pytest.raises(ValueError, match="itself"):
            guard.copy_from(guard)
        del view
        with pytest.raises(xmem.Error, match="24 bytes to offset 24"):
            guard.copy_from(source, 24)
        assert guard.copy_from(source) == 24
        with pool.reader.get(guard.publish(keep=True)) as copy:
            assert bytes(copy)[:24] == bytes(range(24))
        guard.release()
    source = pool.reader.get(pool.published())
    source.release()
    guard = pool.acquire()
    with pytest.raises(xmem.Released):
        guard.copy_from(source)
    guard.release()


def test_guards_of_each_other_are_copied_by_two_threads(pool: Tally) -> None:
    """A guard that is being copied is not released under the copy."""
    source = pool.reader.get(pool.published(bytes(range(256)) * (BYTES // 256)))
    for _ in range(20):
        guard = pool.acquire(BYTES)
        start = threading.Barrier(2)

        def release() -> None:
            start.wait()
            guard.release()

        thread = threading.Thread(target=release)
        thread.start()
        start.wait()
        try:
            assert guard.copy_from(source) == BYTES
        except xmem.Released:
            pass
        thread.join()
        assert guard.gone
    source.release()
    assert pool.free() == SLOTS
