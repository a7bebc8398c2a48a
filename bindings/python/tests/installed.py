# SPDX-License-Identifier: MIT
"""Is the package, as it is installed for this interpreter, whole? Needs nothing but Python.

    installed.py bundled|system

Prints where the xmemd is that served it. test_package.py asks the same within pytest.
"""

import importlib.metadata
import json
import os
import re
import stat
import subprocess
import sys
import sysconfig
from pathlib import Path

import xmem
import xmem._core

DISTRIBUTION = "xmem-buffers"
FOLDER = Path(xmem.__file__).parent


def soversion(version: str) -> str:
    """The ABI that a version of the library has: each minor one is another before 1.0."""
    major, minor, _ = version.split(".")
    return f"0.{minor}" if major == "0" else major


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def maps() -> set[Path]:
    """The libxmem that this process has loaded."""
    return {Path(line) for line in re.findall(r"(/.*/libxmem\.so\S*)$",
                                              Path("/proc/self/maps").read_text(), re.MULTILINE)}


def daemons() -> set[Path]:
    """The programs xmemd that serve at this process's address."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            program = Path(os.readlink(process / "exe"))
            environment = (process / "environ").read_bytes().split(b"\0")
        except OSError:
            continue                # Another user's, or it has ended.
        if program.name == "xmemd" and f"XMEM_SOCKET={os.environ['XMEM_SOCKET']}".encode() \
                in environment:
            found.add(program)
    return found


def check_files(bundled: bool) -> None:
    version = importlib.metadata.version(DISTRIBUTION)
    assert xmem.__version__ == version, (xmem.__version__, version)
    listed = {str(path) for path in importlib.metadata.files(DISTRIBUTION) or []}
    assert "xmem/py.typed" in listed and "xmem/_core.abi3.so" in listed, listed
    assert not [name for name in listed if name.endswith((".c", ".mk"))], listed
    headers = {name for name in listed if re.search(r"\.hp*$", name)}
    assert all(name.startswith("xmem/include/") for name in headers), headers
    assert {f"xmem/include/{name}" for name in ("xmem.h", "xmem/api.h", "xmem/handles.hpp",
                                                "xmem_python.h")} < headers, headers
    assert Path(xmem.get_include(), "xmem.h").is_file() and "xmem/capi.pxd" in listed, listed
    assert any(name.endswith("licenses/LICENSE") or name.endswith("dist-info/LICENSE")
               for name in listed), listed
    assert (FOLDER / "py.typed").is_file()
    extension = FOLDER / "_core.abi3.so"
    assert Path(xmem._core.__file__) == extension and mode(extension) & 0o555 == 0o555
    if not bundled:
        assert not (FOLDER / "lib").exists(), list((FOLDER / "lib").iterdir())
        return
    library, daemon = FOLDER / "lib" / f"libxmem.so.{soversion(version)}", FOLDER / "lib/xmemd"
    tool = FOLDER / "lib/xmem"
    assert sorted((FOLDER / "lib").iterdir()) == [library, tool, daemon], \
        list((FOLDER / "lib").iterdir())
    assert mode(daemon) == mode(tool) == 0o755, (mode(daemon), mode(tool))
    assert mode(library) & 0o444 == 0o444, mode(library)
    assert maps() == {library}, maps()


def check_tool(bundled: bool) -> None:
    """The command xmem, and python -m xmem, show the pool "installed", which this process has."""
    for command in ([str(Path(sysconfig.get_path("scripts"), "xmem"))],
                    [sys.executable, "-P", "-B", "-m", "xmem"]):
        if not bundled and command[0] != sys.executable:
            assert not Path(command[0]).exists(), command
            continue
        done = subprocess.run([*command, "list", "--json"], capture_output=True, text=True)
        if bundled:
            names = [pool["name"] for pool in json.loads(done.stdout)]
            assert done.returncode == 0 and "installed" in names, (command, done)
        else:
            assert done.returncode == 1 and "of the system" in done.stderr, (command, done)


def check_use(bundled: bool) -> None:
    """A frame goes round, and what it goes round by is in the package."""
    with xmem.BufferPool("installed", writer=True) as pool:
        guard = pool.acquire_cpu(4096)
        memoryview(guard).cast("B")[:5] = b"frame"
        token = guard.publish(keep=True)
        with xmem.BufferPool("installed") as reader, reader.get(token) as held:
            assert bytes(memoryview(held).cast("B")[:5]) == b"frame"
        guard.release()
        check_tool(bundled)


def main() -> None:
    kind = sys.argv[1]
    assert kind in ("bundled", "system"), kind
    check_files(kind == "bundled")
    check_use(kind == "bundled")
    served = daemons()
    assert len(served) == 1, served
    print(served.pop())


if __name__ == "__main__":
    main()
