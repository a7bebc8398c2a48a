# SPDX-License-Identifier: MIT
"""Allocators that put ordinary tensors into a pool, so that a hand-over copies nothing at all.

The allocator of the CPU is a C++ file of about a hundred lines, which is compiled at its first
use, because torch has no other way. That takes a second, the C++ compiler, and the headers of
torch (PyPI's torch has them; on Debian they are in libtorch-dev). The result is kept in
~/.cache/xmem.
"""
from __future__ import annotations

import ctypes
import hashlib
import os
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import Any

import torch

from .. import _core, _torch
from . import pools, state

_SOURCE = Path(__file__).with_name("allocator.cpp")
_lock = threading.Lock()
_library: Any = None
_in_use: list["cpu_allocator"] = []


def _folders() -> tuple[Path, list[str]]:
    """Get the folder of the headers, and the arguments of the linker."""
    own = Path(torch.__file__).parent
    if (own / "include/c10/core/Allocator.h").exists():
        return own / "include", [f"-L{own / 'lib'}", f"-Wl,-rpath,{own / 'lib'}", "-lc10"]
    if Path("/usr/include/c10/core/Allocator.h").exists():
        return Path("/usr/include"), ["-lc10"]
    raise RuntimeError(f"the allocator of the CPU is compiled, and the headers of torch "
                       f"{torch.__version__} are neither in {own / 'include'} nor in /usr/include: "
                       "on Debian, apt-get install libtorch-dev")


def _compile(compiler: str) -> Path:
    """Get the compiled allocator for this torch, compiled now if need be."""
    include, link = _folders()
    command = [compiler, "-std=c++17" if torch.__version__ < "2" else "-std=c++20", "-O2", "-fPIC",
               "-shared", "-fvisibility=hidden", "-w", "-isystem", str(include),
               f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}", str(_SOURCE),
               *link]
    key = hashlib.sha256("\0".join([torch.__version__, torch.__file__, *command]).encode()
                         + _SOURCE.read_bytes()).hexdigest()[:24]
    folder = Path("~/.cache/xmem").expanduser()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    library = folder / f"allocator-{key}.so"
    if folder.stat().st_uid != os.getuid() or folder.stat().st_mode & 0o022:
        raise RuntimeError(f"{folder} is another user's, or others may write there")
    if library.exists():
        return library
    with tempfile.NamedTemporaryFile(dir=folder, prefix="making-", suffix=".so") as made:
        try:
            done = subprocess.run([*command, "-o", made.name], capture_output=True, text=True)
        except OSError as error:
            raise RuntimeError(f"the allocator of the CPU is compiled, and the compiler "
                               f"'{compiler}' cannot be run: {error.strerror}") from error
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)} fails:\n{done.stderr}")
        os.link(made.name, f"{made.name}-done")
        os.replace(f"{made.name}-done", library)    # whole, or not at all
    return library


def _load(compiler: str) -> Any:
    global _library
    with _lock:
        if _library is None:
            library = ctypes.CDLL(str(_compile(compiler)))
            allocate, free = _torch.allocator()
            library.xmem_torch_cpu_begin(ctypes.c_void_p(allocate), ctypes.c_void_p(free))
            _library = library
    return _library


def _apply() -> None:
    """Use the last allocator that is in use."""
    using = _in_use[-1] if _in_use else None
    if using is None:
        _library.xmem_torch_cpu_from(ctypes.c_size_t(-1))
    else:
        _torch.allocate_from(using.pool.number, using.most)
        _library.xmem_torch_cpu_from(ctypes.c_size_t(using.smallest))


class cpu_allocator:
    """While this is in use, new tensors of the CPU lie in a pool, from some size on.

        with xmem.torch.cpu_allocator():
            batch = torch.stack(images)     # goes into a queue without a copy

    It applies to all threads, to results and to intermediate tensors. A tensor that is smaller, or
    for which the pool has no room, is allocated as usual. Tensors may live longer than the block.
    A tensor can be resized, and then may leave the pool.

    smallest: bytes from which on a tensor lies in the pool.
    most: tensors of this kind that this process has at a time; further ones are allocated as
        usual, because each takes one of the pool's slots, which other processes also need.
    pool: the name of the pool; None: that of install(), or a new one.
    compiler: the command that compiles it the first time.
    Raises RuntimeError: there is no compiler, or the headers of torch are missing; xmem.Error.
    """

    def __init__(self, *, smallest: int = 16384, most: int = 4096, pool: str | None = None,
                 compiler: str = "c++") -> None:
        if smallest < 1 or most < 1:
            raise ValueError("smallest is a number of bytes, and most of tensors: at least 1")
        self.smallest = smallest
        self.most = most
        self.pool = state.pool() if pool is None else pools.join(pool, existing=False)
        _load(compiler)

    def __enter__(self) -> "cpu_allocator":
        with _lock:
            _in_use.append(self)
            state.allocators += 1
            _apply()
        state.recognise()
        return self

    def __exit__(self, *_: object) -> None:
        with _lock:
            _in_use.remove(self)
            state.allocators -= 1
            _apply()


def cuda_allocator(pool: str | None = None) -> Any:
    """An allocator of torch.cuda that takes memory from a pool, which others can open.

        torch.cuda.memory.change_current_allocator(xmem.torch.cuda_allocator())

    or, for some tensors only, with torch.cuda.MemPool(allocator.allocator()). A tensor is handed
    over without a copy, and its memory stays while any process has it.

    pool: the name of the pool; None: that of install(), or a new one.
    Raises xmem.Error: the pool cannot be made.
    """
    where = state.pool() if pool is None else pools.join(pool, existing=False)
    _torch.cuda_use(where.number)
    state.allocators += 1          # torch keeps it
    state.recognise()
    return torch.cuda.memory.CUDAPluggableAllocator(_core.__file__, "xmem_torch_cuda_allocate",
                                                    "xmem_torch_cuda_free")
