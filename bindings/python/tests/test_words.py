# SPDX-License-Identifier: MIT
"""Messages, reprs and docstrings of the package: in Python's words, and true."""
from __future__ import annotations

import errno
import functools
import inspect
import os
import re
import subprocess
import sys
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import xmem
from support import LIMIT, Thread, fresh_name, pair, published, python
from xmem import words

TOP = Path(__file__).resolve().parents[3]
#: Those are named so in any language, and so is a symbol of the library.
ENVIRONMENT = {"XMEM_BACKEND", "XMEM_CUDA_DRIVER", "XMEM_DAEMON", "XMEM_DEVICE",
               "XMEM_DEVICE_FILES", "XMEM_SOCKET"}
#: Messages that programs in Python cannot meet.
NEVER = {"xmem_get_api", "xmem_source", "XMEM_PUBLISH_CLIENT", "XMEM_VIEW_CUDA"}

# ---- what the library says, in Python's words ----

def test_nothing_of_c_is_left_in_any_message_of_the_library() -> None:
    """Each string of the library that names something of C: the table has a word for it."""
    text = "".join(path.read_text() for path in (TOP / "lib").rglob("*.c"))
    joined = re.sub(r'"\s*\n\s*"', "", text)
    said = {found for string in re.findall(r'"((?:[^"\\\n]|\\.)*)"', joined) if " " in string
            for found in re.findall(r"\b(?:xmem_[a-z_]+|XMEM_[A-Z_]+|\w+_ns)\b",
                                    words.python(string))}
    assert said <= ENVIRONMENT | NEVER, said - ENVIRONMENT - NEVER
    assert words.python("use xmem_data_mut") == "use memoryview(guard)"


def test_words_lead_to_what_is_there() -> None:
    classes = (xmem.BufferPool, xmem.BufferGuard, xmem.Subscription)
    options = {name for cls in classes for each in ("__new__", *dir(cls))
               if callable(getattr(cls, each, None)) and not each.startswith("__init")
               for name in parameters(getattr(cls, each))}
    for says in words.WORDS.values():
        for called in re.findall(r"(\w+)\(", says.replace("memoryview(", "")):
            assert any(hasattr(cls, called) for cls in classes), says
        for option in re.findall(r"(\w+)=", says):
            assert option in options, says
        for name in re.findall(r"xmem\.(\w+)", says):
            assert hasattr(xmem, name), says


def parameters(call: Callable[..., object]) -> list[str]:
    try:
        return list(inspect.signature(call).parameters)
    except (TypeError, ValueError):     # what object has itself
        return []


SAYS: list[tuple[Callable[[Any, Any], object], str]] = [
    (lambda pool, reader: reader.acquire_cpu(8), "opened the pool with writer=False"),
    (lambda pool, reader: xmem.BufferPool("x", writer=False, wait_bound=1), "but writer=F"),
    (lambda pool, reader: xmem.BufferPool("x", existing=True, exclusive=True), "existing=True and"),
    (lambda pool, reader: xmem.BufferPool("x", writer=False, huge=True),
     "huge and sealed are for writers"),
    (lambda pool, reader: reader.subscribe(label=""), "^.Errno 22. subscribe: .*None stands for"),
    (lambda pool, reader: published(pool).copy_to_host(bytearray(99)),
     "copy_to_host: 99 bytes at 0 reach"),
    (lambda pool, reader: published(pool).copy_from_host(b"1"),
     "copy_from_host: .*acquire another"),
    (lambda pool, reader: published(pool).copy_to(pool.acquire_cpu(8), nbytes=99), "copy_to: 99"),
    (lambda pool, reader: published(pool).cuda_ptr_mut, "cuda_ptr_mut: .*acquire another"),
    (lambda pool, reader: (pool.preallocate_cpu(64, 1, sealed=True),
                           published(pool, bytes(64)).get_mut()),
     "made the buffer with sealed=True"),
    (lambda pool, reader: published(pool).image(), "uses describe.., describe_image"),
    (lambda pool, reader: reader.acquire_cpu(8), "writer=False"),
    (lambda pool, reader: pool.subscribe(timeout=0), "does not follow itself"),
    (lambda pool, reader: pool.subscribe(timeout=0.001), "does not follow itself")]


@pytest.mark.parametrize(("call", "says"), SAYS)
def test_messages_speak_python(call: Callable[[Any, Any], object], says: str) -> None:
    with pair() as (writer, reader):
        with pytest.raises(xmem.Error, match=says) as caught:
            call(writer, reader)
        assert "xmem_" not in str(caught.value) and "XMEM_" not in str(caught.value)
        assert caught.value.args == (caught.value.errno, caught.value.strerror)


def test_a_writer_that_waits_for_others_is_told_that_it_does_not_follow_itself() -> None:
    with pair() as (writer, _), warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        waiting = Thread(functools.partial(writer.subscribe, lasts=False))
        waiting.waits()
        warning, = said
        assert warning.category is RuntimeWarning
        assert "subscribe by another BufferPool" in str(warning.message)
        with xmem.BufferPool(writer.name, writer=True) as other:
            with waiting.get() as frames, published(other):
                assert frames.receive().publisher == other.client
            # Nothing is said where another one is there.
            writer.subscribe(lasts=False).close()
        assert len(said) == 1


def test_a_warning_names_the_line_that_subscribes() -> None:
    text = python("""
import sys, warnings, xmem
warnings.simplefilter("error")
with xmem.BufferPool(sys.argv[1], writer=True) as pool:
    try:
        pool.subscribe(lasts=False)
    except RuntimeWarning as warning:
        print(warning)
""", fresh_name())
    assert "does not follow itself" in text


@pytest.mark.parametrize(("call", "says"), [
    (lambda pool: xmem.BufferPool(3), "a pool's name is a str or None, not 3"),
    (lambda pool: xmem.BufferPool(b"bytes"), "a pool's name is a str or None, not b'bytes'"),
    (lambda pool: xmem.BufferPool(label=3), "label is a str or None, not 3"),
    (lambda pool: pool.subscribe(label=3), "label is a str or None, not 3"),
    (lambda pool: pool.evict(3), r"as client_info\(\) gives it, not as 3"),
    (lambda pool: pool.grant("x"), r"as client_info\(\) gives it, not as 'x'")])
def test_wrong_types_are_named_by_what_they_are_for(call: Callable[[Any], object],
                                                    says: str) -> None:
    with pair() as (writer, _), pytest.raises(TypeError, match=says) as caught:
        call(writer)
    assert "_" not in str(caught.value).replace("client_info", "")


def test_a_reader_is_not_told_that_it_does_not_follow_itself() -> None:
    with xmem.BufferPool(fresh_name()) as pool:
        with pytest.raises(xmem.NotFound) as caught:
            pool.subscribe(timeout=0)
        assert "itself" not in str(caught.value)


def test_a_pool_full_of_clients() -> None:
    with xmem.BufferPool(fresh_name(), clients=2) as pool, pool.reopen():
        with pytest.raises(xmem.Limit, match="which is 2: 2 are alive, .* by clients=") as caught:
            xmem.BufferPool(pool.name)
        if xmem.host().backend == "daemon":
            assert f" pid {os.getpid()}" in str(caught.value)
        assert caught.value.errno == errno.EUSERS


def test_an_extension_that_is_not_there(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "app.zip", "w") as file:
        for path in Path(xmem.__file__).parent.glob("*.py"):
            file.write(path, f"xmem/{path.name}")
    done = subprocess.run([sys.executable, "-P", "-c", "import sys; sys.path[0:0] = sys.argv[1:]; "
                           "import xmem", str(tmp_path / "app.zip")], capture_output=True,
                          text=True, timeout=LIMIT, check=False)
    assert done.returncode == 1 and "cannot be loaded from a zip" in done.stderr


# ---- what is said at once, and not by C ----

def test_an_empty_name_is_no_anonymous_pool() -> None:
    with pytest.raises(ValueError, match="None makes an anonymous pool"):
        xmem.BufferPool("")


@pytest.mark.parametrize("name", ["wait_bound", "cache_time"])
def test_times_of_a_pool(name: str) -> None:
    for time in (-1, float("nan")):
        options: dict[str, Any] = {name: time}
        with pytest.raises(ValueError, match=f"^{name} is None or"):
            xmem.BufferPool(fresh_name(), writer=True, **options)
    for forever in (None, 1e300):
        options = {name: forever}
        with xmem.BufferPool(fresh_name(), writer=True, **options) as pool:
            pool.acquire_cpu(8).release()


@pytest.mark.parametrize("sealed", [False, True])
def test_who_may_write_what_is_received(sealed: bool) -> None:
    """What BufferPool, preallocate_cpu and the tutorial say of sealed=."""
    with pair(sealed=sealed) as (writer, reader), writer.reopen() as second:
        subscription, in_place = reader.subscribe(), second.subscribe()
        published(writer).release()
        with subscription.receive(0) as guard:
            assert bytes(guard) == b"contents" and guard.readonly
            with pytest.raises(xmem.NotPermitted, match="writer=False"):
                guard.get_mut()
        guard = in_place.receive(0)
        if sealed:
            with pytest.raises(xmem.Error, match="sealed=True"):
                guard.get_mut()
        else:
            memoryview(guard.get_mut())[:1] = b"C"
            assert bytes(guard) == b"Contents"
        guard.release()


# ---- what it says of itself ----

def test_repr_says_what_and_where() -> None:
    writer = xmem.BufferPool(fresh_name(), writer=True)
    guard = writer.acquire_cpu((3, 2), "int16")
    assert repr(guard) == ("<xmem.BufferGuard being written, int16 (3, 2), of pool "
                           f"{writer.name!r}>")
    assert guard.ndim == 2
    guard.publish(keep=True)
    assert f"token {guard.token}, for reading, int16 (3, 2)" in repr(guard)
    guard.release()
    assert repr(guard) == "<xmem.BufferGuard, gone>"
    with pytest.raises(xmem.Released):
        guard.ndim
    with xmem.BufferPool(writer=True) as anonymous:
        assert "8 bytes, of an anonymous pool" in repr(published(anonymous))
    assert writer.acquire_cpu((), "int8").ndim == 0


def test_references_last_for_a_time() -> None:
    writer = xmem.BufferPool(fresh_name(), writer=True)
    guard = published(writer)
    for wrong in (0, -1, float("nan")):
        with pytest.raises(ValueError, match="lasts is None"):
            guard.offer(1, lasts=wrong)
    wait: dict[str, Any] = {"timeout": 1}
    with pytest.raises(TypeError):
        guard.offer(1, **wait)          # which means waiting everywhere else
    guard.offer(2, lasts=60)
    assert writer.claims(guard.token) == 2
    writer.void_claims(guard.token)


def test_two_timestamps() -> None:
    guard = xmem.BufferPool(writer=True).acquire_cpu(8)
    guard.describe_time(123, "ptp")
    guard.publish(keep=True, timestamp_ns=456)
    assert (guard.timestamp_ns, guard.metadata.timestamp_ns) == (456, 123)


@pytest.mark.parametrize(("call", "says"), [
    (lambda pool: xmem.BufferPool("x", slots=-1), "slots: a number of 32 bits is out of its range"),
    (lambda pool: xmem.BufferPool("x", keep="3"), "keep: 'str' object cannot be interpreted"),
    (lambda pool: pool.acquire_cpu(8, timeout="1"), "timeout: must be real number, not str"),
    (lambda pool: pool.acquire_cpu(-1), "size: a number of bytes is out of its range: -1"),
    (lambda pool: pool.subscribe(history=-1), "history: a number of 32 bits"),
    (lambda pool: pool.subscribe(depth=1.5), "depth: 'float' object cannot be interpreted"),
    (lambda pool: pool.preallocate_cpu(8, 1 << 32), "count: a number of 32 bits is out of its"),
    (lambda pool: pool.attach_fd(1 << 31), "fd: a descriptor is out of its range: 2147483648"),
    (lambda pool: pool.attach_fd(0, length=-1), "length: a number of 64 bits is out of its range"),
    (lambda pool: pool.subscribe(depth=-1, history=-1), "a number of 32 bits is out of its range"),
    (lambda pool: pool.receive(-1), "a timeout is None or a number of seconds")])
def test_messages_name_the_argument(call: Callable[[Any], object], says: str) -> None:
    """But where two arguments are the same object: then nobody can tell."""
    with xmem.BufferPool(fresh_name(), writer=True) as pool, \
            pytest.raises((TypeError, ValueError)) as caught:
        call(pool)
    assert str(caught.value).startswith(says)
