# SPDX-License-Identifier: MIT
"""Buffers on GPUs: making them, their attributes, copies, errors, and the GPUs that there are."""
from __future__ import annotations

import errno
import hashlib
import os
import subprocess
import sys
from typing import Any, Callable, Iterator

import numpy
import pytest
from hypothesis import given, strategies

import xmem
from gpu import FAKE, Array, consume, driver, needs_gpu, new_name, no_violations  # noqa: F401
from support import LIMIT

pytestmark = needs_gpu
BYTES = 4096


@pytest.fixture
def pool() -> Iterator[xmem.BufferPool]:
    with xmem.BufferPool(new_name(), writer=True) as pool:
        pool.preallocate_cuda(BYTES, 3)
        yield pool


def published(pool: xmem.BufferPool, array: numpy.ndarray) -> xmem.BufferGuard:
    guard = pool.acquire_cuda(array.shape, dtype=array.dtype)
    guard.copy_from_host(array)
    guard.publish(keep=True)
    return guard


# ---- what is there ----

def test_the_driver_and_its_devices() -> None:
    info = xmem.cuda_info()
    assert info.version >= 11000 and info.devices >= 1 and "libcuda" in info.file
    gpus = xmem.gpus()
    assert [gpu.device_id for gpu in gpus] == list(range(info.devices))
    assert gpus[0].bytes > 0 and len(gpus[0].uuid) == 16 and gpus[0].name
    assert gpus[0].can & xmem.CudaCanFlags.IPC or gpus[0].can & xmem.CudaCanFlags.EXPORT
    with pytest.raises(xmem.NoDevice, match="there is no GPU 99"):
        xmem.cuda.gpu(99)
    with pytest.raises(xmem.NoDevice):
        xmem.cuda.gpu(1 << 40)


def test_without_a_driver_all_else_works() -> None:
    program = """
import xmem
assert xmem.gpus() == []
try:
    xmem.cuda_info()
except xmem.NoDevice as error:
    assert "/no/driver" in str(error) and error.errno == 19
    assert error.cuda_result == "CUDA_ERROR_NOT_INITIALIZED"
else:
    assert False
pool = xmem.BufferPool("no-driver", writer=True)
for call in (lambda: pool.preallocate_cuda(4096, 1), lambda: pool.attach_cuda(4096, 64)):
    try:
        call()
    except xmem.NoDevice as error:
        assert "/no/driver" in str(error)
    else:
        assert False
pool.preallocate_cpu(64, 1)
with pool.acquire_cpu(64) as guard:
    memoryview(guard)[:3] = b"abc"
    guard.publish(keep=True)
    assert bytes(memoryview(guard)[:3]) == b"abc" and not guard.is_cuda
print("all else works")
"""
    environment = dict(os.environ, XMEM_CUDA_DRIVER="/no/driver")
    done = subprocess.run([sys.executable, "-c", program], env=environment, text=True,
                          capture_output=True, timeout=LIMIT)
    assert (done.returncode, done.stdout) == (0, "all else works\n"), done.stderr


def test_with_hip_arrays_are_on_gpus_of_amd() -> None:
    program = """
import numpy, xmem
info = xmem.cuda_info()
assert info.hip == 1 and "libamdhip64" in info.file and info.version >= 5060
with xmem.BufferPool("amd", writer=True) as pool:
    pool.preallocate_cuda(1 << 16, 3)
    guard = pool.acquire_cuda((16,), dtype="uint8")
    guard.copy_from_host(numpy.arange(16, dtype="uint8"))
    guard.publish(keep=True)
    assert guard.__dlpack_device__() == (10, 0)
    for stream in (None, 0, -1, 2):
        guard.__dlpack__(stream=stream, max_version=(1, 0))
    guard.__dlpack__(dl_device=(10, 0), max_version=(1, 0))
    try:
        guard.__dlpack__(dl_device=(2, 0), max_version=(1, 0))
    except BufferError as error:
        assert "are on device (10, 0)" in str(error)
    else:
        assert False
    with guard.copy_to_cpu() as here:
        assert bytes(here) == bytes(range(16))
    class Array:
        def __dlpack_device__(self):
            return guard.__dlpack_device__()
        def __dlpack__(self, stream, max_version):
            assert stream == 0
            return guard.__dlpack__(stream=stream, max_version=max_version)
    try:
        pool.attach_cuda(Array())
    except xmem.Error as error:         # its memory is xmem's own
        assert "hipMalloc" in str(error), error
    else:
        assert False
    guard.release()
print("as with CUDA")
"""
    environment = dict(os.environ,
                       XMEM_CUDA_DRIVER=str(FAKE.with_name("libamdhip64.so.6")))
    done = subprocess.run([sys.executable, "-c", program], env=environment, text=True,
                          capture_output=True, timeout=LIMIT)
    assert (done.returncode, done.stdout) == (0, "as with CUDA\n"), done.stderr


# ---- making and acquiring ----

def test_a_buffer_says_what_and_where_it_is(pool: xmem.BufferPool) -> None:
    with pool.acquire_cuda((16, 8), dtype="float32") as guard:
        assert guard.is_cuda and guard.device_id == 0 and not guard.readonly
        assert (guard.shape, guard.strides, guard.dtype) == ((16, 8), (32, 4), "float32")
        assert guard.nbytes == 512 and guard.capacity >= BYTES
        assert guard.cuda_ptr == guard.cuda_ptr_mut and guard.cuda_ptr % 512 == 0
    with pool.acquire_cuda(100) as guard:
        assert (guard.shape, guard.dtype, guard.nbytes) == ((100,), None, 100)
    with pool.acquire_cuda(shape=(2,), dtype=numpy.int16) as guard:
        assert (guard.shape, guard.dtype) == ((2,), "int16")


def test_preallocated_by_shape() -> None:
    with xmem.BufferPool(new_name(), writer=True) as pool:
        pool.preallocate_cuda(count=1, shape=(1080, 1920, 3), dtype="uint8")
        with pool.acquire_cuda((1080, 1920, 3), dtype="uint8") as guard:
            assert guard.nbytes == 1080 * 1920 * 3


def test_acquire_waits_its_time_and_says_who_holds() -> None:
    with xmem.BufferPool(new_name(), writer=True) as pool:
        pool.preallocate_cuda(BYTES, 1)
        with pytest.raises(xmem.NoSpace):
            pool.acquire_cuda(1 << 30, timeout=0)
        with pool.acquire_cuda(BYTES):
            with pytest.raises(xmem.WouldBlock):
                pool.acquire_cuda(BYTES, timeout=0)
            with pytest.raises(xmem.TimedOut, match="1 being written"):
                pool.acquire_cuda(BYTES, timeout=0.02)
        pool.acquire_cuda(BYTES, timeout=0).release()


WRONG: list[tuple[Callable[[xmem.BufferPool], object], type[Exception], int | None]] = [
    (lambda pool: pool.preallocate_cuda(BYTES, 0), xmem.Error, errno.EINVAL),
    (lambda pool: pool.preallocate_cuda(0, 1), xmem.Error, errno.EINVAL),
    (lambda pool: pool.preallocate_cuda(-1, 1), ValueError, None),
    (lambda pool: pool.preallocate_cuda(1, -1), ValueError, None),
    (lambda pool: pool.preallocate_cuda(1, 1, dtype="uint8"), TypeError, None),
    (lambda pool: pool.preallocate_cuda(count=1, shape=(1,)), TypeError, None),
    (lambda pool: pool.preallocate_cuda(1, 1, shape=(1,), dtype="uint8"), TypeError, None),
    (lambda pool: pool.preallocate_cuda(BYTES, 1, device_id=9), xmem.NoDevice, errno.ENODEV),
    (lambda pool: pool.preallocate_cuda(BYTES, 1, device_id=-1), xmem.NoDevice, errno.ENODEV),
    (lambda pool: pool.acquire_cuda(BYTES, device_id=9), xmem.NoDevice, errno.ENODEV),
    (lambda pool: pool.acquire_cuda(BYTES, timeout=-1), ValueError, None),
    (lambda pool: pool.acquire_cuda(BYTES, timeout="1"), TypeError, None),  # type: ignore
    (lambda pool: pool.acquire_cuda((4, -4), dtype="uint8"), ValueError, None),
    (lambda pool: pool.acquire_cuda((1,) * 9, dtype="uint8"), ValueError, None),
    (lambda pool: pool.acquire_cuda((4,), dtype="object"), TypeError, None),
    (lambda pool: pool.attach_cuda(0, 4096), xmem.Error, errno.EINVAL),
    (lambda pool: pool.attach_cuda(4096), TypeError, None),
    (lambda pool: pool.attach_cuda(4096, 0), ValueError, None),
    (lambda pool: pool.attach_cuda(b"bytes"), TypeError, None),
    (lambda pool: pool.attach_cuda(4096, 64, done=3), TypeError, None),  # type: ignore
    (lambda pool: pool.attach_cuda(Array(4096, (4,), "|u1"), 4), TypeError, None),
    (lambda pool: pool.attach_cuda(Array(4096, (0,), "|u1")), ValueError, None),
    (lambda pool: pool.attach_cuda(Array(4096, (4,), "|u1", mask=1)), ValueError, None),
    (lambda pool: pool.attach_cuda(Array(4096, (4,), ">u4")), ValueError, None),
    (lambda pool: pool.attach_cuda(Array(4096, (4,), "<u4", (-4,))), ValueError, None),
    (lambda pool: pool.attach_cuda(numpy.zeros(4)), ValueError, None),
]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_bad_arguments_change_nothing(pool: xmem.BufferPool, number: int) -> None:
    call, error, err = WRONG[number]
    with pytest.raises(error) as caught:
        call(pool)
    assert str(caught.value)
    if err is not None:
        assert caught.value.errno == err        # type: ignore[attr-defined]
    guards = [pool.acquire_cuda(BYTES, timeout=0) for _ in range(3)]
    with pytest.raises(xmem.WouldBlock):
        pool.acquire_cuda(BYTES, timeout=0)
    for guard in guards:
        guard.release()


def test_a_reader_makes_and_opens_nothing(pool: xmem.BufferPool) -> None:
    guard = published(pool, numpy.arange(6, dtype="i4").reshape(2, 3))
    with xmem.BufferPool(pool.name, writer=False) as reader:
        for call in (lambda: reader.preallocate_cuda(BYTES, 1),
                     lambda: reader.acquire_cuda(BYTES)):
            with pytest.raises(xmem.NotPermitted):
                call()
        with reader.get(guard.token) as got:
            # The description of the contents is known without their memory.
            assert (got.shape, got.dtype, got.is_cuda) == ((2, 3), "int32", True)
            for look in (lambda: got.cuda_ptr, got.copy_to_host, got.cuda_tensor,
                         lambda: got.__cuda_array_interface__):
                with pytest.raises(xmem.NotPermitted) as caught:
                    look()
                assert caught.value.errno == errno.EACCES
            assert got.device_id == 0


def test_readers_get_what_is_made_for_them() -> None:
    with xmem.BufferPool(new_name(), writer=True) as pool:
        pool.preallocate_cuda(BYTES, 1, readers=True)
        guard = published(pool, numpy.arange(9, dtype="f8"))
        with xmem.BufferPool(pool.name) as reader, reader.get(guard.token) as got:
            assert got.copy_to_host().tolist() == list(range(9))
            with pytest.raises(xmem.NotPermitted) as caught:
                got.cuda_ptr_mut
            assert caught.value.errno == errno.EPERM


def test_an_error_of_the_driver_has_its_result(pool: xmem.BufferPool) -> None:
    with pytest.raises(xmem.Error) as caught:
        pool.preallocate_cuda(1 << 42, 8)
    assert caught.value.errno == errno.ENOMEM
    assert caught.value.cuda_result == "CUDA_ERROR_OUT_OF_MEMORY"
    assert xmem.cuda_last_result() is None          # the exception has it
    with pytest.raises(xmem.Stale) as stale:
        pool.get(1 << 40)
    assert stale.value.cuda_result is None and xmem.Error.cuda_result is None
    assert xmem.cuda_last_result(forget=False) is None
    xmem.cuda.cuda_clear_last_result()


# ---- copies ----

@pytest.mark.parametrize("dtype", ["uint8", "int16", "float16", "float32", "int64", "complex64",
                                   "complex128", "bool"])
def test_a_copy_has_the_shape_and_type(pool: xmem.BufferPool, dtype: str) -> None:
    array = (numpy.arange(24) % 7).astype(dtype).reshape(2, 3, 4)
    with published(pool, array) as guard:
        copy = numpy.asarray(guard.copy_to_host())
        assert copy.dtype == array.dtype and copy.shape == array.shape
        assert (copy == array).all() and copy.flags.writeable
        out = numpy.empty_like(array)
        assert guard.copy_to_host(out) is out and (out == array).all()


def test_a_copy_without_a_type_of_pythons_is_bytes(pool: xmem.BufferPool) -> None:
    with pool.acquire_cuda((4,), dtype="bfloat16") as guard:
        guard.copy_from_host(bytes(range(8)))
        copy = guard.copy_to_host()
        assert (copy.format, copy.shape, bytes(copy)) == ("B", (8,), bytes(range(8)))


def test_a_part_is_bytes(pool: xmem.BufferPool) -> None:
    array = numpy.arange(8, dtype="u2")
    with published(pool, array) as guard:
        assert bytes(guard.copy_to_host(None, 2, 4)) == array.tobytes()[2:6]
        assert bytes(guard.copy_to_host(offset=14)) == array.tobytes()[14:]
        assert bytes(guard.copy_to_host(offset=16)) == b""
        assert guard.copy_to_host(offset=2).format == "B"
        out = bytearray(6)
        guard.copy_to_host(out, nbytes=2, offset=4)
        assert out == array.tobytes()[4:6] + bytes(4)


def test_rows_with_gaps_keep_their_strides(pool: xmem.BufferPool) -> None:
    with pool.acquire_cuda(64) as guard:
        guard.copy_from_host(bytes(range(64)))
        guard.describe((4, 3), "uint8", (16, 2))
        copy = numpy.asarray(guard.copy_to_host())
        assert copy.strides == (16, 2)
        assert copy.tolist() == [[16 * i + 2 * j for j in range(3)] for i in range(4)]
        assert guard.__cuda_array_interface__["strides"] == (16, 2)
        with pytest.raises(BufferError, match="contiguous"):
            hashlib.sha256(guard.copy_to_host().obj)     # it takes no strides
        guard.describe((1, 64), "uint8", (999, 1))     # a stride that finds no element
        assert guard.strides == (64, 1)


@given(parts=strategies.lists(strategies.tuples(strategies.integers(0, 300),
                                                strategies.binary(max_size=80)), max_size=6),
       offset=strategies.integers(0, 400), nbytes=strategies.integers(0, 400))
def test_copies_are_those_of_a_bytearray(parts: list[tuple[int, bytes]], offset: int,
                                         nbytes: int) -> None:
    pool = shared_pool()
    model = bytearray(300)
    with pool.acquire_cuda(300, timeout=LIMIT) as guard, \
            pool.acquire_cuda(300, timeout=LIMIT) as other:
        for each in (guard, other):
            each.copy_from_host(model)
        for at, data in parts:
            if at + len(data) <= guard.capacity:
                guard.copy_from_host(data, at)
                model[at:at + len(data)] = data
        del model[300:]
        assert bytes(guard.copy_to_host(nbytes=300)) == model
        if offset + nbytes <= 300:
            assert bytes(guard.copy_to_host(None, offset, nbytes)) == model[offset:offset + nbytes]
            guard.copy_to(other, 300 - nbytes, offset, nbytes)
            want = bytes(300 - nbytes) + model[offset:offset + nbytes]
            assert bytes(other.copy_to_host(nbytes=300)) == want


_shared: list[xmem.BufferPool] = []


def shared_pool() -> xmem.BufferPool:
    if not _shared:
        _shared.append(xmem.BufferPool(new_name(), writer=True))
        _shared[0].preallocate_cuda(300, 2)
    return _shared[0]


def test_copies_of_bytes_go_from_place_to_place(pool: xmem.BufferPool) -> None:
    guard = pool.acquire_cuda(64)
    pool.preallocate_cpu(64, 2)
    cpu, back = pool.acquire_cpu(64), pool.acquire_cpu(64)
    cpu.copy_from_host(bytes(range(64)))
    with memoryview(cpu) as own:
        cpu.copy_from_host(own[:60], 4)
    assert bytes(cpu.copy_to_host(None, 4, 60)) == bytes(range(60))
    cpu.copy_to(guard, 1, 4, 60)
    guard.copy_to(back, 0, 1, 60)
    cpu.copy_to(back, 60, 0, 4)
    assert bytes(back.copy_to_host()) == bytes(range(60)) + bytes(range(4))
    with pytest.raises(xmem.NoDevice):
        guard.copy_to_cuda(-1)


def test_bad_copies_are_refused(pool: xmem.BufferPool) -> None:
    guard, other = pool.acquire_cuda(64), pool.acquire_cuda(64)
    guard.copy_from_host(bytes(range(64)))
    pool.preallocate_cpu(64, 1)
    cpu = pool.acquire_cpu(64)
    room = guard.capacity
    wrong: list[tuple[Callable[[], object], type[Exception], int | None]] = [
        (lambda: guard.copy_from_host(bytes(65), room - 64), xmem.Error, errno.ERANGE),
        (lambda: guard.copy_to_host(bytearray(room + 1)), xmem.Error, errno.ERANGE),
        (lambda: guard.copy_to_host(None, 0, room + 1), xmem.Error, errno.ERANGE),
        (lambda: guard.copy_to_host(bytes(4)), BufferError, None),
        (lambda: guard.copy_to_host(bytearray(4), nbytes=5), ValueError, None),
        (lambda: guard.copy_to_host(stream=0), TypeError, None),
        (lambda: guard.copy_to_host(bytearray(4), -1), ValueError, None),
        (lambda: guard.copy_from_host(numpy.zeros((4, 4))[:, 1]), (BufferError, ValueError), None),
        (lambda: guard.copy_from_host("text"), TypeError, None),
        (lambda: guard.copy_to(guard), xmem.Error, errno.EINVAL),
        (lambda: guard.copy_to(b""), TypeError, None),
        (lambda: guard.copy_to(other, room, 0, 1), xmem.Error, errno.ERANGE),
        (lambda: cpu.cuda_ptr, xmem.Error, errno.EMEDIUMTYPE),
        (lambda: cpu.device_id, xmem.Error, errno.EMEDIUMTYPE),
        (lambda: cpu.wait(), xmem.Error, errno.EMEDIUMTYPE),
        (lambda: guard.cpu_ptr, xmem.Error, errno.EMEDIUMTYPE),
        (lambda: cpu.cuda_tensor(), xmem.Error, None),
    ]     # type: ignore[assignment]
    for call, error, err in wrong:
        with pytest.raises(error) as caught:
            call()
        if err is not None:
            assert caught.value.errno == err, caught.value      # type: ignore[attr-defined]
    guard.publish(keep=True)
    with pytest.raises(xmem.NotPermitted):
        guard.copy_from_host(b"no")
    assert bytes(guard.copy_to_host()) == bytes(range(64))       # after all that
    guard.copy_to(other)
    assert bytes(other.copy_to_host(nbytes=64)) == bytes(range(64))


# ---- the interfaces ----

def test_the_buffer_protocol_says_what_to_do(pool: xmem.BufferPool) -> None:
    with pool.acquire_cuda(64) as guard:
        for look in (memoryview, bytes):
            with pytest.raises((BufferError, TypeError), match="GPU|bytes"):
                look(guard)
        with pytest.raises(BufferError, match="copy_to_host"):
            memoryview(guard)


def test_cuda_array_interface(pool: xmem.BufferPool) -> None:
    array = numpy.arange(12, dtype="f4").reshape(3, 4)
    guard = pool.acquire_cuda(array.shape, dtype=array.dtype)
    guard.copy_from_host(array)
    interface = guard.__cuda_array_interface__
    assert interface == {"shape": (3, 4), "typestr": "<f4", "strides": None, "stream": None,
                         "data": (guard.cuda_ptr_mut, False), "version": 3}
    guard.publish(keep=True)
    assert guard.__cuda_array_interface__["data"] == (guard.cuda_ptr, True)
    assert consume(guard)[1] == array.tobytes()


@pytest.mark.parametrize("dtype, typestr", [
    ("int8", "|i1"), ("uint8", "|u1"), ("bool", "|b1"), ("int16", "<i2"), ("uint16", "<u2"),
    ("int32", "<i4"), ("uint32", "<u4"), ("int64", "<i8"), ("uint64", "<u8"),
    ("float16", "<f2"), ("float32", "<f4"), ("float64", "<f8"), ("complex64", "<c8"),
    ("complex128", "<c16")])
def test_types_of_the_interface(pool: xmem.BufferPool, dtype: str, typestr: str) -> None:
    with pool.acquire_cuda((2,), dtype=dtype) as guard:
        assert guard.__cuda_array_interface__["typestr"] == typestr
        assert numpy.dtype(typestr) == numpy.dtype(dtype)


def test_what_has_no_interface(pool: xmem.BufferPool) -> None:
    with pool.acquire_cuda((2,), dtype="bfloat16") as guard:
        assert not hasattr(guard, "__cuda_array_interface__")
    pool.preallocate_cpu(64, 1)
    with pool.acquire_cpu(64) as guard:
        assert not hasattr(guard, "__cuda_array_interface__")
    with pool.acquire_cuda((0, 3), dtype="float32") as guard:
        assert guard.__cuda_array_interface__["data"][0] == 0
    with pool.acquire_cuda(48) as guard:
        assert guard.__cuda_array_interface__["typestr"] == "|u1"
        assert guard.__cuda_array_interface__["shape"] == (48,)


def test_a_consumer_keeps_the_buffer() -> None:
    with xmem.BufferPool(new_name(), writer=True) as pool:
        pool.preallocate_cuda(BYTES, 1)
        for leave in ("release", "publish", "with"):
            guard = pool.acquire_cuda((4,), dtype="int32")
            guard.copy_from_host(numpy.arange(4, dtype="i4"))
            if leave == "publish":
                kept, _ = consume(guard)
                guard.publish()
            else:
                guard.publish(keep=True)
                kept, _ = consume(guard)
                with pytest.raises(xmem.Error) as busy:
                    guard.get_mut()
                assert busy.value.errno == errno.EBUSY
                guard.__exit__(None, None, None) if leave == "with" else guard.release()
            assert guard.gone
            with pytest.raises(xmem.Released):
                guard.cuda_ptr
            del guard
            with pytest.raises(xmem.WouldBlock):
                pool.acquire_cuda(BYTES, timeout=0)
            del kept
            pool.acquire_cuda(BYTES, timeout=LIMIT).release()


def test_views_are_checked(pool: xmem.BufferPool) -> None:
    with pool.acquire_cuda((2, 4), dtype="int16") as guard:
        assert guard.cuda_tensor() == (guard.cuda_ptr, "int16", (2, 4), (8, 2))
        with pytest.raises(xmem.Error):
            guard.cuda_image()
    with pool.acquire_cuda(64) as guard:
        with pytest.raises(xmem.Error) as caught:
            guard.cuda_tensor()
        assert caught.value.errno == errno.ENODATA
    with pool.acquire_cuda(BYTES) as guard:
        guard.describe_image(10, 16, 8)         # NV12
        image = guard.cuda_image()
        assert (image.format, image.width, image.height) == (10, 16, 8)
        at = guard.cuda_ptr
        assert image.planes == ((at, 16, 16, 8), (at + 128, 16, 16, 4))
        assert image.planes[1].row_bytes == 16 and guard.shape == (192,)


GONE: dict[str, Callable[[xmem.BufferGuard], Any]] = {
    "cuda_ptr": lambda guard: guard.cuda_ptr, "cuda_ptr_mut": lambda guard: guard.cuda_ptr_mut,
    "device_id": lambda guard: guard.device_id, "is_cuda": lambda guard: guard.is_cuda,
    "interface": lambda guard: guard.__cuda_array_interface__,
    "copy_from_host": lambda guard: guard.copy_from_host(b"x"),
    "copy_to_host": lambda guard: guard.copy_to_host(),
    "copy_into": lambda guard: guard.copy_to_host(bytearray(1)),
    "copy_to": lambda guard: guard.copy_to(guard),
    "tensor": lambda guard: guard.cuda_tensor(), "image": lambda guard: guard.cuda_image(),
    "wait": lambda guard: guard.wait(), "wait_on": lambda guard: guard.wait_on(0),
    "release": lambda guard: guard.release(stream=0), "shape": lambda guard: guard.shape,
}


@pytest.mark.parametrize("use", GONE)
def test_a_released_guard_is_an_error(pool: xmem.BufferPool, use: str) -> None:
    guard = pool.acquire_cuda((4,), dtype="int32")
    guard.release()
    with pytest.raises(xmem.Released):
        GONE[use](guard)
    with pool.acquire_cuda(BYTES) as live:
        with pytest.raises(xmem.Released):
            live.copy_to(guard)


def test_looking_at_a_guard_calls_no_driver(pool: xmem.BufferPool) -> None:
    with published(pool, numpy.zeros((2, 2), "f4")) as guard:
        guard.cuda_ptr
        before = driver().calls()
        for _ in range(10):
            assert guard.cuda_ptr and guard.shape and guard.dtype and guard.is_cuda
        assert driver().calls() == before
