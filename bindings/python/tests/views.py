# SPDX-License-Identifier: MIT
"""Shared by the tests of views: a pool that notices holds, and the C side of the protocols.

The structs are those of DLPack 1.3 and of Arrow's C data interface, as a consumer in C sees them.
"""
from __future__ import annotations

import contextlib
import ctypes
import gc
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import xmem
from support import LIMIT, without_notes

SLOTS = 4
BYTES = 1 << 16
_numbers = itertools.count()


def name() -> str:
    """A name for a pool that no other test has."""
    return f"views-{os.getpid()}-{next(_numbers)}"


class Tally:
    """A pool of SLOTS buffers and no more: a buffer that is held shows, because it cannot be
    acquired."""

    def __init__(self) -> None:
        self.name = name()
        self.writer = xmem.BufferPool(self.name, writer=True, demand_bytes=None)
        self.writer.preallocate_cpu(BYTES, SLOTS)
        self.reader: Any = xmem.BufferPool(self.name)

    def acquire(self, *arguments: Any, **keywords: Any) -> Any:
        """Acquire a buffer to write; a test that has lost one fails instead of waiting for it."""
        return self.writer.acquire_cpu(*arguments, timeout=LIMIT, **keywords)

    def free(self) -> int:
        """Count the buffers that nobody holds."""
        gc.collect()
        guards = []
        try:
            while True:
                guards.append(self.writer.acquire_cpu(timeout=0))
        except xmem.WouldBlock:
            return len(guards)
        finally:
            for guard in guards:
                guard.release()

    def published(self, data: bytes = b"0123456789abcdef", shape: tuple[int, ...] | None = None,
                  dtype: str | None = None) -> int:
        """Publish contents that nobody holds yet. Returns their token."""
        guard = self.acquire(len(data) or 1)
        memoryview(guard)[:len(data)] = data
        if dtype is not None and shape is not None:
            guard.describe(shape, dtype)
        return int(guard.publish())

    def overwrite(self) -> None:
        """Use each free buffer twice, with other contents."""
        for number in range(2 * SLOTS):
            guard = self.acquire(BYTES)
            memoryview(guard)[:] = bytes([0xf0 + number]) * BYTES
            guard.publish()

    def close(self) -> None:
        self.reader.close()
        self.writer.close()


def _tally() -> Iterator[Tally]:
    """A Tally in which all buffers are free again at the end."""
    made = Tally()
    try:
        yield made
        assert made.free() == SLOTS, "a view has kept its hold"
    finally:
        made.close()


pool = pytest.fixture(_tally, name="pool")
#: One pool for all examples of hypothesis.
shared = pytest.fixture(_tally, name="shared", scope="module")


def script(source: str, *arguments: str, code: int = 0) -> str:
    """Run a program of Python that ends by itself with that code, and prints nothing to stderr."""
    done = subprocess.run([sys.executable, "-c", source, *arguments], capture_output=True,
                          text=True, timeout=LIMIT)
    assert (done.returncode, without_notes(done.stderr)) == (code, ""), done
    return done.stdout


# ---- DLPack ----

class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32),
                ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("dtype", ctypes.c_uint32), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


class Versioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32),
                ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
                ("flags", ctypes.c_uint64), ("tensor", Tensor)]


class Legacy(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


READ_ONLY, IS_COPIED = 1, 2
Owner = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
Report = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)


class Exchange(ctypes.Structure):
    """The functions are called with the GIL, as the protocol has it: PYFUNCTYPE keeps it."""

    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("previous", ctypes.c_void_p),
        ("allocate", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.POINTER(Tensor),
                                       ctypes.POINTER(ctypes.POINTER(Versioned)),
                                       ctypes.c_void_p, Report)),
        ("from_object", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object,
                                          ctypes.POINTER(ctypes.POINTER(Versioned)))),
        ("to_object", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.POINTER(Versioned),
                                        ctypes.POINTER(ctypes.c_void_p))),
        ("borrow", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(Tensor))),
        ("current_stream", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32,
                                             ctypes.POINTER(ctypes.c_void_p)))]


_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_rename = ctypes.pythonapi.PyCapsule_SetName
_rename.restype, _rename.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]
_used = ctypes.create_string_buffer(b"used_dltensor_versioned")


def pointer(capsule: Any, what: str) -> int:
    """Get the pointer of a capsule of that name."""
    return int(_pointer(capsule, what.encode()))


def look(capsule: Any) -> Versioned:
    """Get the tensor of a versioned capsule, which keeps it."""
    return Versioned.from_address(pointer(capsule, "dltensor_versioned"))


def take(capsule: Any) -> int:
    """Take the tensor as a consumer in C does. Returns its address; the caller owns it."""
    address = pointer(capsule, "dltensor_versioned")
    assert _rename(capsule, ctypes.cast(_used, ctypes.c_char_p)) == 0
    return address


def bytes_of(tensor: Tensor, count: int) -> bytes:
    return ctypes.string_at(tensor.data + tensor.byte_offset, count)


# ---- Arrow ----

class Array(ctypes.Structure):
    pass


Array._fields_ = [
    ("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64), ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(Array))), ("dictionary", ctypes.c_void_p),
    ("release", ctypes.c_void_p), ("private_data", ctypes.c_void_p)]


class DeviceArray(ctypes.Structure):
    _fields_ = [("array", Array), ("device_id", ctypes.c_int64),
                ("device_type", ctypes.c_int32), ("sync_event", ctypes.c_void_p),
                ("reserved", ctypes.c_int64 * 3)]


# ---- a publisher in C ----

@contextlib.contextmanager
def spoilt_column(pool: str, field: str, value: int) -> Iterator[int]:
    """Publish a column of 100 rows with 900 bytes of strings, one field of whose metadata is wrong.

    The functions and the place of the field are those of api.json. Yields the token.
    """
    api = json.loads((Path(__file__).parents[2] / "api.json").read_text())
    get_api = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)(
        ctypes.c_void_p.from_address(pointer(xmem._core.capi, "xmem._core.capi") + 8).value or 0)
    version = next(each["value"] for each in api["constants"]
                   if each["name"] == "XMEM_API_VERSION")
    table = (get_api(version) or 0) + 8

    def call(name: str, kind: Any, *arguments: Any) -> Any:
        place = table + 8 * api["table"].index(f"xmem_{name}")
        function = ctypes.c_void_p.from_address(place).value or 0
        return ctypes.CFUNCTYPE(kind, *map(type, arguments))(function)(*arguments)

    at = next(each for struct in api["structs"] if struct["name"] == "xmem_metadata"
              for each in struct["fields"] if each["name"] == field)
    token = ctypes.c_uint64()
    owner = call("pool_open", ctypes.c_void_p, ctypes.c_char_p(pool.encode()), ctypes.c_void_p())
    handle = ctypes.c_void_p(call("acquire", ctypes.c_void_p, ctypes.c_void_p(owner),
                                  ctypes.c_size_t(4096), ctypes.c_int64(0)))
    assert owner and handle
    assert not call("describe_strings", ctypes.c_int, handle, ctypes.c_uint64(100),
                    ctypes.c_uint64(900), ctypes.c_uint32(0))
    number = ctypes.c_uint32 if "uint32" in at["type"] else ctypes.c_uint64
    number.from_address(call("metadata_mut", ctypes.c_void_p, handle) + at["offset"]).value = value
    assert not call("publish", ctypes.c_int, handle, ctypes.c_void_p(),
                    ctypes.c_void_p(ctypes.addressof(token)))
    try:
        yield token.value
    finally:
        call("pool_close", None, ctypes.c_void_p(owner))


# ---- threads of C ----

def call_in_thread(function: int, argument: int) -> None:
    """Call a function of C in a thread that Python knows nothing of, while this one keeps the GIL.

    If the function wanted the GIL, this would never return.
    """
    threads = ctypes.PyDLL(None)
    thread = ctypes.c_ulong()
    create, join = threads.pthread_create, threads.pthread_join
    create.argtypes = [ctypes.c_void_p] * 4
    join.argtypes = [ctypes.c_ulong, ctypes.c_void_p]
    assert create(ctypes.addressof(thread), None, function, argument) == 0
    assert join(thread, None) == 0
