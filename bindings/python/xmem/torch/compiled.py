# SPDX-License-Identifier: MIT
"""The C++ files of this package, compiled against the torch that runs when they are first needed.

That takes a second, the C++ compiler, and the headers of torch (PyPI's torch has them; on Debian
they are in libtorch-dev). The result is kept in ~/.cache/xmem.
"""
from __future__ import annotations

import ctypes
import hashlib
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Sequence

import torch

_HERE = Path(__file__).parent


def folders(what: str) -> tuple[Path, list[str]]:
    """Get the folder of the headers, and the arguments of the linker for `what`."""
    own = Path(torch.__file__).parent
    if (own / "include/c10/core/Allocator.h").exists():
        return own / "include", [f"-L{own / 'lib'}", f"-Wl,-rpath,{own / 'lib'}", "-lc10"]
    if Path("/usr/include/c10/core/Allocator.h").exists():
        return Path("/usr/include"), ["-lc10"]
    raise RuntimeError(f"{what} is compiled, and the headers of torch {torch.__version__} "
                       f"are neither in {own / 'include'} nor in /usr/include: "
                       "on Debian, apt-get install libtorch-dev")


def _compile(source: Path, what: str, compiler: str, libraries: Sequence[str]) -> Path:
    include, link = folders(what)
    command = [compiler, "-std=c++17" if torch.__version__ < "2" else "-std=c++20", "-O2", "-fPIC",
               "-shared", "-fvisibility=hidden", "-w", "-isystem", str(include),
               f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}", str(source),
               *link, *libraries]
    key = hashlib.sha256("\0".join([torch.__version__, torch.__file__, *command]).encode()
                         + source.read_bytes()).hexdigest()[:24]
    folder = Path("~/.cache/xmem").expanduser()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    library = folder / f"{source.stem}-{key}.so"
    if folder.stat().st_uid != os.getuid() or folder.stat().st_mode & 0o022:
        raise RuntimeError(f"{folder} is another user's, or others may write there")
    if library.exists():
        return library
    with tempfile.NamedTemporaryFile(dir=folder, prefix="making-", suffix=".so") as made:
        try:
            done = subprocess.run([*command, "-o", made.name], capture_output=True, text=True)
        except OSError as error:
            raise RuntimeError(f"{what} is compiled, and the compiler '{compiler}' cannot be run: "
                               f"{error.strerror}") from error
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)} fails:\n{done.stderr}")
        os.link(made.name, f"{made.name}-done")
        os.replace(f"{made.name}-done", library)    # whole, or not at all
    return library


def load(source: str, what: str, compiler: str = "c++", libraries: Sequence[str] = ()) -> Any:
    """Get the library that is compiled from a file of this folder, compiled now if need be.

    what: a name for messages. libraries: further arguments of the linker. Raises RuntimeError if
    there is no compiler, or the headers of torch are missing.
    """
    return ctypes.CDLL(str(_compile(_HERE / source, what, compiler, libraries)))
