# SPDX-License-Identifier: MIT
"""DLPack: capsules of both kinds, the table of C functions, and how long the contents stay."""
from __future__ import annotations

import ctypes
import os
import threading
from typing import Any

import numpy
import pytest
import views
import xmem
from views import IS_COPIED, READ_ONLY, SLOTS, Tally, Tensor, Versioned, pool  # noqa: F401
from xmem import dtypes

NEW = numpy.lib.NumpyVersion(numpy.__version__) >= "2.1.0"
needs_new = pytest.mark.skipif(not NEW, reason="numpy before 2.1 takes legacy capsules only")


def versioned(guard: Any, **keywords: Any) -> Any:
    return guard.__dlpack__(max_version=(1, 0), **keywords)


# ---- what a capsule says ----

@pytest.mark.parametrize("name", list(dtypes.NUMBERS))
def test_each_type_is_said_with_its_code_bits_and_lanes(pool: Tally, name: str) -> None:
    token = pool.published(bytes(range(48)), (1, 3), name)
    with pool.reader.get(token) as guard:
        capsule = versioned(guard)
        said = views.look(capsule)
        assert said.tensor.dtype == dtypes.NUMBERS[name]
        assert (said.major, said.flags) == (1, READ_ONLY)
        assert (said.tensor.device_type, said.tensor.device_id) == (1, 0)
        assert said.tensor.shape[:2] == [1, 3] and said.tensor.strides[:2] == [3, 1]
        bytes_ = 3 * dtypes.item_bytes(said.tensor.dtype)
        assert views.bytes_of(said.tensor, bytes_) == bytes(range(bytes_))


def test_two_numbers_in_a_byte_are_lanes(pool: Tally) -> None:
    guard = pool.acquire(8)
    guard.describe_tensor(17 | 4 << 8 | 2 << 16, (8,))      # float4_e2m1fn, in pairs
    assert views.look(versioned(guard)).tensor.dtype == 17 | 4 << 8 | 2 << 16
    guard.release()


def test_contents_that_nobody_described_are_bytes(pool: Tally) -> None:
    with pool.reader.get(pool.published(b"words")) as guard:
        capsule = versioned(guard)
        tensor = views.look(capsule).tensor
        assert (tensor.ndim, tensor.shape[0], tensor.dtype) == (1, 5, dtypes.NUMBERS["uint8"])
        assert views.bytes_of(tensor, 5) == b"words"


def test_a_scalar_and_an_empty_tensor(pool: Tally) -> None:
    guard = pool.acquire(8)
    guard.describe((), "float64")
    numpy.asarray(guard)[...] = 2.5
    assert views.look(versioned(guard)).tensor.ndim == 0
    assert float(numpy.from_dlpack(guard)) == 2.5
    guard.describe((3, 0, 2), "float32")
    capsule = versioned(guard)
    assert views.look(capsule).tensor.data is None
    assert numpy.from_dlpack(guard).shape == (3, 0, 2)
    del capsule
    guard.release()


def test_a_guard_that_is_written_is_not_read_only(pool: Tally) -> None:
    guard = pool.acquire((2, 2), "int32")
    assert views.look(versioned(guard)).flags == 0
    array = numpy.from_dlpack(guard)
    assert array.flags.writeable == NEW     # numpy 1.24 writes no tensor that it has got so
    numpy.asarray(guard)[:] = 7
    assert array.tolist() == [[7, 7], [7, 7]]
    guard.publish(keep=True)
    assert memoryview(guard).tolist() == [[7, 7], [7, 7]]
    del array
    assert views.look(versioned(guard)).flags == READ_ONLY
    guard.release()


def test_a_file_that_is_attached_is_read_only_also_to_its_writer(pool: Tally) -> None:
    import fcntl

    writer = xmem.BufferPool(views.name(), writer=True)
    fd = os.memfd_create("attached", os.MFD_ALLOW_SEALING)
    os.write(fd, b"sealed")
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE)
    guard = writer.attach_fd(fd)
    os.close(fd)
    for ask in (guard.__dlpack__, lambda: versioned(guard)):
        with pytest.raises(BufferError, match="publish"):
            ask()
    assert bytes(versioned(guard, copy=True) and guard) == b"sealed"
    guard.publish(keep=True)
    assert views.look(versioned(guard)).flags == READ_ONLY
    guard.release()
    writer.close()


# ---- what a consumer asks for ----

def test_a_legacy_capsule_of_contents_for_reading(pool: Tally) -> None:
    with pool.reader.get(pool.published()) as guard:
        for keywords in ({"max_version": None}, {"max_version": (0, 8)}, {"copy": True}):
            capsule = guard.__dlpack__(**keywords)
            tensor = views.Legacy.from_address(views.pointer(capsule, "dltensor")).tensor
            assert views.bytes_of(tensor, 16) == b"0123456789abcdef"
            assert tensor.data != guard.cpu_ptr         # test_careless.py says why


def test_a_legacy_capsule_of_what_is_written(pool: Tally) -> None:
    guard = pool.acquire((3,), "int16")
    for old in (None, (0, 8)):
        capsule = guard.__dlpack__(max_version=old)
        legacy = views.Legacy.from_address(views.pointer(capsule, "dltensor"))
        assert legacy.tensor.data == guard.cpu_ptr and legacy.tensor.shape[0] == 3
    del capsule
    guard.release()


class Offers:
    """A producer whose capsule exists already."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **unused: Any) -> Any:
        return self.capsule


@pytest.mark.parametrize("shape", [(1 << 62, 8), (1 << 32, 1 << 32), (-1, 8), (-2, -8)])
def test_a_shape_that_no_memory_has(pool: Tally, shape: tuple[int, int]) -> None:
    guard = pool.acquire(16)
    with pool.reader.get(pool.published(bytes(16), (2, 8), "uint8")) as source:
        capsule = versioned(source)
        lengths = views.look(capsule).tensor.shape
        lengths[0], lengths[1] = shape
        with pytest.raises(BufferError, match="shape"):
            guard.copy_from(Offers(capsule))
        lengths[0], lengths[1] = 2, 8
        guard.copy_from(Offers(capsule))
    guard.release()


def test_a_copy_is_the_consumers_alone(pool: Tally) -> None:
    with pool.reader.get(pool.published(bytes(range(12)), (3, 4), "uint8")) as guard:
        capsule = versioned(guard, copy=True)
        said = views.look(capsule)
        assert said.flags == IS_COPIED
        assert said.tensor.data != guard.cpu_ptr
        assert views.bytes_of(said.tensor, 12) == bytes(range(12))
        guard.release()
        assert pool.free() == SLOTS
        pool.overwrite()
        assert views.bytes_of(said.tensor, 12) == bytes(range(12))


def test_copy_false_and_the_cpu_share(pool: Tally) -> None:
    guard = pool.acquire(16)
    for keywords in ({"copy": False}, {"dl_device": (1, 0)}, {"stream": -1},
                     {"dl_device": None, "copy": None, "stream": None}):
        assert views.look(versioned(guard, **keywords)).tensor.data == guard.cpu_ptr
    guard.release()


@pytest.mark.parametrize(("keywords", "error", "says"), [
    ({"dl_device": (2, 0)}, BufferError, r"not to \(2, 0\)"),
    ({"dl_device": (1, 1)}, BufferError, r"not to \(1, 1\)"),
    ({"dl_device": 1}, TypeError, "number|int|sequence|len|keyword|unexpected|str"),
    ({"dl_device": (1,)}, TypeError, "two numbers"),
    ({"dl_device": ("cpu", 0)}, TypeError, "number|int|sequence|len|keyword|unexpected|str"),
    ({"max_version": 1}, TypeError, "number|int|sequence|len|keyword|unexpected|str"),
    ({"max_version": (1, 0, 0)}, TypeError, "two numbers"),
    ({"stream": 2}, BufferError, "have no stream"),
    ({"stream": "one"}, TypeError, "number|int|sequence|len|keyword|unexpected|str"),
    ({"unknown": 1}, TypeError, "number|int|sequence|len|keyword|unexpected|str"),
])
def test_what_cannot_be_done_is_refused(pool: Tally, keywords: dict[str, Any],
                                        error: type[Exception], says: str) -> None:
    with pool.reader.get(pool.published()) as guard:
        with pytest.raises(error, match=says):
            guard.__dlpack__(**{"max_version": (1, 0), **keywords})
        with pytest.raises(TypeError):
            guard.__dlpack__(None)


def test_strides_that_are_no_elements_are_refused_unless_copied(pool: Tally) -> None:
    guard = pool.acquire(64)
    guard.describe((3, 2), "int32", (10, 4))
    with pytest.raises(BufferError, match="multiple"):
        versioned(guard)
    numpy.asarray(guard)[...] = [[1, 2], [3, 4], [5, 6]]
    tensor = views.look(capsule := versioned(guard, copy=True)).tensor
    assert memoryview(views.bytes_of(tensor, 24)).cast("i").tolist() == [1, 2, 3, 4, 5, 6]
    del capsule
    # One element has no next one, so its stride may be anything.
    guard.describe((1, 2), "int32", (10, 4))
    assert numpy.from_dlpack(guard).tolist() == [[1, 2]]
    guard.release()


def test_numbers_that_are_not_aligned_are_refused_unless_copied(pool: Tally) -> None:
    guard = pool.acquire(64)
    memoryview(guard)[3:11] = b"\1\0\0\0\2\0\0\0"
    guard.describe((2,), "int32")
    guard.publish(keep=True, offset=3, length=8)
    with pytest.raises(BufferError, match="address"):
        versioned(guard)
    tensor = views.look(capsule := versioned(guard, copy=True)).tensor
    assert views.bytes_of(tensor, 8) == b"\1\0\0\0\2\0\0\0"
    assert numpy.asarray(guard).tolist() == [1, 2]
    del capsule
    guard.release()


def test_a_guard_that_is_gone_gives_nothing(pool: Tally) -> None:
    guard = pool.reader.get(pool.published())
    guard.release()
    for ask in (guard.__dlpack__, guard.__dlpack_device__, lambda: versioned(guard)):
        with pytest.raises(xmem.Released):
            ask()


class Evil:
    """An object that releases the guard when its truth is asked for."""

    def __init__(self, guard: Any) -> None:
        self.guard = guard

    def __bool__(self) -> bool:
        self.guard.release()
        return False


def test_a_guard_that_is_released_by_its_own_question(pool: Tally) -> None:
    guard = pool.reader.get(pool.published())
    with pytest.raises(xmem.Released):
        versioned(guard, copy=Evil(guard))


# ---- how long it stays ----

@needs_new
def test_an_array_outlives_the_guard_and_the_pool() -> None:
    tally = Tally()
    array = numpy.from_dlpack(tally.reader.get(tally.published(b"stays")))
    assert not array.flags.writeable
    assert tally.free() == SLOTS - 1
    tally.overwrite()
    assert array.tobytes() == b"stays"
    tally.reader.close()
    tally.overwrite()
    assert array.tobytes() == b"stays"
    tally.reader = None
    assert array.tobytes() == b"stays"
    assert tally.free() == SLOTS - 1
    del array
    assert tally.free() == SLOTS
    tally.writer.close()


@needs_new
def test_release_leaves_the_array_its_hold(pool: Tally) -> None:
    guard = pool.reader.get(pool.published(b"stays"))
    array = numpy.from_dlpack(guard)
    part = array[1:3]
    guard.release()
    del array
    pool.overwrite()
    assert part.tobytes() == b"ta"
    assert pool.free() == SLOTS - 1
    del part
    assert pool.free() == SLOTS


def test_publish_under_an_array_keeps_the_buffer(pool: Tally) -> None:
    guard = pool.acquire((4,), "uint8")
    numpy.asarray(guard)[:] = 9
    array = numpy.from_dlpack(guard)
    token = guard.publish()
    assert guard.gone
    pool.overwrite()
    assert array.tolist() == [9] * 4 and pool.free() == SLOTS - 1
    with pool.reader.get(token) as again:
        assert bytes(again) == b"\x09" * 4
    del array, again
    assert pool.free() == SLOTS


def test_forget_under_a_view_leaves_both_the_reference_and_the_view(pool: Tally) -> None:
    token = pool.published(b"stays")
    guard = pool.reader.get(token)
    capsule = versioned(guard)
    guard.forget()
    tensor = views.look(capsule).tensor
    pool.overwrite()
    assert views.bytes_of(tensor, 5) == b"stays"
    pool.reader.release(token)             # the reference that forget has left behind
    pool.overwrite()
    assert views.bytes_of(tensor, 5) == b"stays" and pool.free() == SLOTS - 1
    del capsule
    assert pool.free() == SLOTS
    # And the other way round: the view goes first.
    token = pool.published(b"stays")
    guard = pool.reader.get(token)
    capsule = versioned(guard)
    guard.forget()
    del capsule
    assert pool.free() == SLOTS - 1
    pool.reader.release(token)
    assert pool.free() == SLOTS


def test_a_buffer_that_is_given_up_under_an_array_stays(pool: Tally) -> None:
    guard = pool.acquire((4,), "uint8")
    numpy.asarray(guard)[:] = 3
    array = numpy.from_dlpack(guard)
    guard.release()
    assert pool.free() == SLOTS - 1
    pool.overwrite()
    assert array.tolist() == [3] * 4


def test_a_capsule_that_nobody_takes_lets_go(pool: Tally) -> None:
    guard = pool.reader.get(pool.published())
    capsules = [versioned(guard) for _ in range(10)]
    guard.release()
    assert pool.free() == SLOTS - 1
    del capsules
    assert pool.free() == SLOTS


class Again:
    """A producer that gives the same capsule each time, which is an error of its own."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **unused: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


@needs_new
def test_a_capsule_is_taken_once(pool: Tally) -> None:
    guard = pool.reader.get(pool.published(b"once"))
    producer = Again(versioned(guard))
    guard.release()
    array = numpy.from_dlpack(producer)
    with pytest.raises(ValueError):
        numpy.from_dlpack(producer)
    del producer
    assert array.tobytes() == b"once" and pool.free() == SLOTS - 1
    del array
    assert pool.free() == SLOTS


@needs_new
def test_a_consumer_that_refuses_leaves_no_hold(pool: Tally) -> None:
    guard = pool.reader.get(pool.published(bytes(8), (4,), "bfloat16"))
    with pytest.raises((BufferError, RuntimeError)):
        numpy.from_dlpack(guard)
    guard.release()
    assert pool.free() == SLOTS


# ---- threads, forks, the end ----

def test_a_thread_of_c_drops_it_while_another_has_the_gil(pool: Tally) -> None:
    guard = pool.reader.get(pool.published())
    address = views.take(versioned(guard))
    guard.release()
    assert pool.free() == SLOTS - 1
    views.call_in_thread(Versioned.from_address(address).deleter, address)
    assert pool.free() == SLOTS


def test_threads_drop_their_shares_at_the_same_time(pool: Tally) -> None:
    guard = pool.reader.get(pool.published(b"shared"))
    for _ in range(20):
        start = threading.Barrier(4)
        shares = [[versioned(guard) for _ in range(25)] for _ in range(4)]
        errors: list[bytes] = []

        def drop(mine: list[Any]) -> None:
            start.wait()
            while mine:
                capsule = mine.pop()
                said = views.bytes_of(views.look(capsule).tensor, 6)
                if said != b"shared":
                    errors.append(said)

        threads = [threading.Thread(target=drop, args=(mine,)) for mine in shares]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors and pool.free() == SLOTS - 1
    guard.release()
    assert pool.free() == SLOTS


def test_a_child_of_fork_drops_what_it_inherited_and_nothing_happens(pool: Tally) -> None:
    guard = pool.reader.get(pool.published(b"parent"))
    capsule, kept = versioned(guard), versioned(guard)
    child = os.fork()
    if not child:
        code = 1
        try:
            del capsule                 # a share
            try:
                versioned(guard)
            except xmem.Forked:
                code = 0
            guard.release()
            del kept                    # the last share, and so the handle
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert views.bytes_of(views.look(capsule).tensor, 6) == b"parent"
    guard.release()
    assert pool.free() == SLOTS - 1
    pool.overwrite()
    assert views.bytes_of(views.look(kept).tensor, 6) == b"parent"


EXIT = """
import sys, numpy, xmem
pool = xmem.BufferPool(sys.argv[1])
guard = pool.get(int(sys.argv[2]))
capsule = guard.__dlpack__(max_version=(1, 0))
array, view, cycle = numpy.asarray(guard), memoryview(guard), [guard]
cycle.append(cycle)
sys.modules["kept"] = [array, view, capsule]
print(array.tobytes().decode())
"""

AT_EXIT = """
import ctypes, sys, xmem
sys.path.insert(0, sys.argv[3])
import views
guard = xmem.BufferPool(sys.argv[1]).get(int(sys.argv[2]))
address = views.take(guard.__dlpack__(max_version=(1, 0)))
deleter = views.Versioned.from_address(address).deleter
c = ctypes.CDLL(None)
c.__cxa_atexit.argtypes = [ctypes.c_void_p] * 3
# The function that is registered last is called first: the deleter, and then _exit(7).
c.__cxa_atexit(ctypes.cast(c._exit, ctypes.c_void_p), 7, None)
c.__cxa_atexit(deleter, address, None)
"""


def test_the_interpreter_ends_with_views_alive(pool: Tally) -> None:
    assert views.script(EXIT, pool.name, str(pool.published(b"bye"))) == "bye\n"


def test_a_deleter_is_called_when_the_interpreter_has_ended(pool: Tally) -> None:
    here = os.path.dirname(__file__)
    views.script(AT_EXIT, pool.name, str(pool.published(b"bye")), here, code=7)


# ---- the table of C functions ----

def table(owner: Any) -> views.Exchange:
    capsule = type(owner).__dlpack_c_exchange_api__
    return views.Exchange.from_address(views.pointer(capsule, "dlpack_exchange_api"))


def test_the_table_gives_a_tensor_that_holds(pool: Tally) -> None:
    guard = pool.reader.get(pool.published(b"table"))
    functions = table(guard)
    assert (functions.major, functions.minor, functions.previous) == (1, 3, None)
    tensor = ctypes.POINTER(Versioned)()
    assert functions.from_object(guard, ctypes.byref(tensor)) == 0
    guard.release()
    pool.overwrite()
    assert tensor.contents.flags == READ_ONLY
    assert views.bytes_of(tensor.contents.tensor, 5) == b"table"
    assert pool.free() == SLOTS - 1
    views.Owner(tensor.contents.deleter)(ctypes.addressof(tensor.contents))
    assert pool.free() == SLOTS
    with pytest.raises(xmem.Released):
        functions.from_object(guard, ctypes.byref(tensor))
    with pytest.raises(TypeError, match="no guard"):
        functions.from_object([], ctypes.byref(tensor))


def test_the_table_lends_what_is_written(pool: Tally) -> None:
    guard = pool.acquire((2, 3), "float32")
    functions, tensor = table(guard), Tensor()
    assert functions.borrow(guard, ctypes.byref(tensor)) == 0
    assert (tensor.data, tensor.ndim, tensor.dtype) == (guard.cpu_ptr, 2, dtypes.number("float32"))
    assert tensor.shape[:2] == [2, 3] and tensor.strides[:2] == [3, 1]
    guard.publish(keep=True)
    with pytest.raises(BufferError, match="read-only"):
        functions.borrow(guard, ctypes.byref(tensor))
    guard.release()
    stream = ctypes.c_void_p(1)
    assert functions.current_stream(1, 0, ctypes.byref(stream)) == 0 and stream.value is None


def test_the_table_allocates(pool: Tally) -> None:
    guard = pool.acquire()
    functions, said = table(guard), []
    report = views.Report(lambda context, kind, message: said.append(kind))
    shape = (ctypes.c_int64 * 2)(3, 5)
    wanted = Tensor(device_type=1, ndim=2, dtype=dtypes.number("int16"), shape=shape)
    tensor = ctypes.POINTER(Versioned)()
    assert functions.allocate(wanted, ctypes.byref(tensor), None, report) == 0
    made = tensor.contents.tensor
    assert made.shape[:2] == [3, 5] and made.strides[:2] == [5, 1] and made.data % 64 == 0
    ctypes.memset(made.data, 0xff, 30)
    views.Owner(tensor.contents.deleter)(ctypes.addressof(tensor.contents))
    for field, value in (("device_type", 2), ("ndim", 9), ("ndim", -1), ("dtype", 2 | 4 << 8)):
        before = getattr(wanted, field)
        setattr(wanted, field, value)
        assert functions.allocate(wanted, ctypes.byref(tensor), None, report) == -1
        setattr(wanted, field, before)
    shape[1] = 1 << 62
    assert functions.allocate(wanted, ctypes.byref(tensor), None, report) == -1
    assert said == [b"BufferError"] * 5
    with pytest.raises(BufferError, match="copy_from"):
        functions.to_object(None, ctypes.byref(ctypes.c_void_p()))
    guard.release()
