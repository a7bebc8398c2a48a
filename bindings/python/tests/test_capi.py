# SPDX-License-Identifier: MIT
"""Extensions in Cython that reach libxmem by the capsule: the example, and compiled/tries.pyx.

Design document 001 is where their handles come from, and what is asked of them here.
"""
from __future__ import annotations

import errno
import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

import xmem
from support import LIMIT, Thread, fresh_name, python

pytest.importorskip("Cython", reason="this environment has no Cython")

TOP = Path(__file__).resolve().parents[3]
EXAMPLE = TOP / "examples/python/cython/inverter.pyx"
TRIES = Path(__file__).parent / "compiled/tries.pyx"
# Sanitizers of this process are not for compilers.
PLAIN = {name: value for name, value in os.environ.items()
         if name not in ("LD_PRELOAD", "PYTHONMALLOC")}
PLAIN["PYTHONPATH"] = str(Path(xmem.__file__).parent.parent)


def run(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, env=PLAIN)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of both extensions, compiled as any program, without naming a file of xmem."""
    made = tmp_path_factory.mktemp("compiled")
    for source in EXAMPLE, TRIES:
        target = made / source.stem
        run(sys.executable, "-m", "cython", "--cplus", source, "-o", f"{target}.cpp")
        run("c++", "-std=c++17", "-O1", "-shared", "-fPIC", "-pthread", "-Wall", "-Werror",
            "-Wno-unused-function", f"-I{sysconfig.get_path('include')}",
            f"-I{xmem.get_include()}", f"{target}.cpp", "-o", f"{target}.so")
    return made


@pytest.fixture(scope="module")
def tries(folder: Path) -> Any:
    sys.path.insert(0, str(folder))
    try:
        import tries

        return tries
    finally:
        sys.path.remove(str(folder))


def in_a_process(folder: Path, script: str, *arguments: str) -> str:
    return python(f"import sys; sys.path.insert(0, {str(folder)!r})\n{script}", *arguments)


# ---- the example


def test_the_example_inverts_frames(folder: Path) -> None:
    out = in_a_process(folder, """
import xmem
from inverter import Inverter

camera = xmem.BufferPool(sys.argv[1], writer=True)
inverter = Inverter(sys.argv[1], sys.argv[2])
viewer = xmem.BufferPool(sys.argv[2])
for frame in b"first", b"second":
    guard = camera.acquire_cpu(len(frame))
    memoryview(guard)[:] = frame
    guard.publish()
    negative = inverter.step(timeout=0)
    assert type(negative) is xmem.BufferGuard and negative.pool is None
    assert bytes(negative) == bytes(255 - byte for byte in frame)
    assert bytes(viewer.get(negative.token)) == bytes(negative)
for timeout, error in (0, xmem.WouldBlock), (0.001, xmem.TimedOut):
    try:
        inverter.step(timeout)
        raise SystemExit("it has a frame")
    except error:
        pass
camera.close()
try:
    Inverter(sys.argv[1] + "//", sys.argv[2])
except xmem.Error as error:
    print(error.strerror)
""", fresh_name("positive"), fresh_name("negative"))
    assert "begins with a dot" in out


def test_the_examples_setup_builds_it(folder: Path) -> None:
    python(f"""
import os, runpy, shutil, sys
shutil.copytree({str(EXAMPLE.parent)!r}, {str(folder / "setup")!r})
os.chdir({str(folder / "setup")!r})
sys.argv = ["setup.py", "-q", "build_ext", "--inplace"]
runpy.run_path("setup.py")
""", quiet=False)
    built = list((folder / "setup").glob("inverter.*.so"))
    assert len(built) == 1, built
    python(f"import sys; sys.path[:0] = [{str(folder / 'setup')!r}]; import inverter; "
           "inverter.Inverter")


# ---- one library


@pytest.mark.parametrize("name", ["inverter", "tries"])
def test_an_extension_is_not_linked_with_libxmem(folder: Path, name: str) -> None:
    needed = run("readelf", "-d", folder / f"{name}.so")
    assert "libc.so" in needed and "libxmem" not in needed
    wanted = run("nm", "-D", "--undefined-only", folder / f"{name}.so")
    assert "malloc" in wanted or "_Znwm" in wanted
    assert " xmem_" not in wanted


def test_extensions_share_one_library_and_its_last_errors(folder: Path, tries: Any) -> None:
    out = in_a_process(folder, """
import inverter, tries, xmem
maps = open("/proc/self/maps").read().split()
print(len({path for path in maps if "libxmem.so" in path}))
""")
    assert out == "1\n"
    tries.fail()
    assert tries.last_error() == -errno.EINVAL
    # Each thread has a last error of its own.
    assert Thread(tries.last_error).get() == 0
    with pytest.raises(xmem.Error, match="no part of a name") as raised:
        tries.raise_last_error()
    assert raised.value.errno == errno.EINVAL
    assert tries.last_error() == 0
    tries.fail()
    tries.clear_last_error()
    assert tries.last_error() == 0


def test_the_table_of_another_version_is_refused(tries: Any) -> None:
    assert tries.get_table(tries.version())
    with pytest.raises(ImportError, match=f"this is libxmem {xmem.__version__}"):
        tries.get_table(tries.version() + 0x10000)


# ---- guards of handles


def test_a_handle_becomes_a_guard(tries: Any) -> None:
    name = fresh_name()
    reader = xmem.BufferPool(name, writer=False)
    handle = tries.Pool(name).acquire(8)
    with pytest.raises(xmem.NotPermitted):
        handle.guard()                  # while it is written there is one handle of it
    token = handle.publish()
    guard = handle.guard()
    assert type(guard) is xmem.BufferGuard and guard.token == token and guard.pool is None
    assert memoryview(guard).readonly
    del handle                          # the guard's handle is its own
    assert bytes(reader.get(token)) == bytes(guard)
    guard.release()
    assert reader.stat().holds == 0


def test_a_handle_that_is_written_becomes_the_guards(tries: Any) -> None:
    name = fresh_name()
    reader = xmem.BufferPool(name)
    pool = tries.Pool(name)
    guard = pool.writing_guard(8)
    memoryview(guard)[:] = b"contents"
    guard.publish(keep=True)
    assert bytes(reader.get(guard.token)) == b"contents"
    with pytest.raises(xmem.Error):
        pool.writing_guard(1 << 60)     # NULL: the error of xmem_acquire
    tries.clear_last_error()
    with pytest.raises(MemoryError):
        tries.empty_guard()             # an empty handle, and no error: there was no memory


# ---- threads


@pytest.mark.parametrize("way", ["drop_in_thread", "drop_in_thread_without_the_gil"])
def test_a_thread_without_python_drops_the_last_handle(tries: Any, way: str) -> None:
    """Also while this thread waits for it with the GIL: that drop needs no GIL."""
    name = fresh_name()
    reader = xmem.BufferPool(name, writer=False)
    handle = tries.Pool(name).acquire(8)        # it alone keeps its pool
    handle.publish()
    assert reader.stat().clients == 2 and reader.stat().holds == 1
    getattr(handle, way)()
    assert reader.stat().clients == 1 and reader.stat().holds == 0


def test_handles_outlive_python(folder: Path) -> None:
    name = fresh_name()
    reader = xmem.BufferPool(name, writer=False)
    out = in_a_process(folder, """
import tries, xmem

pool = tries.Pool(sys.argv[1])
sys.kept, again = pool.acquire(8), pool.acquire(8)
for handle in sys.kept, again:
    handle.publish()
tries.keep_until_exit(sys.kept, again)
sys.also_kept = sys.kept.guard()
del pool
""", name)
    assert out == "Python has ended\nthe process ends\n"
    assert reader.stat().clients == 1 and reader.stat().holds == 0
    assert reader.stat().zombies == 0


# ---- locks: two threads, of which one has the GIL. LIMIT ends a deadlock.


INTERLEAVED = """
import builtins, threading
import tries, xmem

inside, done = threading.Event(), threading.Event()

def wait_inside():
    inside.set()            # the other thread goes on, for this one lets go of the GIL
    assert done.wait(float(sys.argv[2]))
"""


def test_no_static_is_initialised_while_python_runs(folder: Path) -> None:
    """001's hazard: the first thread is in an import, without the GIL, and the second wants it."""
    assert in_a_process(folder, INTERLEAVED + """
def held_up(*arguments, real=builtins.__import__):
    builtins.__import__ = real
    wait_inside()
    return real(*arguments)

builtins.__import__ = held_up
first = threading.Thread(target=tries.import_again)
first.start()
assert inside.wait(float(sys.argv[2]))
tries.import_again()
done.set()
first.join()
print("well")
""", "", str(LIMIT)) == "well\n"


def test_no_lock_is_held_while_python_runs(folder: Path) -> None:
    """The library calls Python in one thread; another one calls the library and keeps the GIL."""
    assert in_a_process(folder, INTERLEAVED + """
pool = tries.Pool(sys.argv[1], demand_bytes=4096)
kept = xmem.BufferPool(sys.argv[1]).get(pool.acquire(4096).publish())
pool.hook(wait_inside)
failed = []

def acquire():
    try:
        pool.acquire(4096)
    except xmem.WouldBlock as error:
        failed.append(error)

first = threading.Thread(target=acquire)
first.start()
assert inside.wait(float(sys.argv[2]))
pool.use_all(sys.argv[1] + ".other")
done.set()
first.join()
assert len(failed) == 1
print("well")
""", fresh_name("hook"), str(LIMIT)) == "well\n"


@pytest.mark.parametrize("name", ["inverter", "tries"])
def test_no_static_of_ours_has_a_guard(folder: Path, name: str) -> None:
    """Static variables in functions of C++ have a lock, under which their initialiser runs."""
    symbols = run("nm", "-C", folder / f"{name}.so")
    assert "xmem::detail" in symbols
    assert "guard variable" not in symbols and "__cxa_guard_acquire" not in symbols
