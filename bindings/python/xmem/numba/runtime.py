# SPDX-License-Identifier: MIT
"""The code that kernels are linked with, and how it takes the place of numba-cuda's own runtime.

numba-cuda (0.30) calls NRT_incref and NRT_decref, and leaves them to the linker. If a kernel
declares them, it links its own nrt.cu, whose decref is two steps: an atomic subtraction, and then
a load. Two threads can both find 0 there and destroy a string twice.

So provide() defines both functions in each module whose code counts managed strings. They are one
call long, and the compiler inlines them. Nothing is left to declare, hence numba-cuda does not
link nrt.cu. A kernel that needs nrt.cu for arrays of its own (numpy.empty) does not link: nrt.cu
and the shims define symbols of one name, and nrt.cu could not free what the shims have made.
"""
from __future__ import annotations

import re
import sys
import threading
from functools import cached_property
from pathlib import Path
from typing import Any

from llvmlite import ir
from numba import cuda
from numba.cuda import cgutils
from numba.cuda.core.errors import NumbaRuntimeError
from numba.cuda.cudadrv import devices
from numba.cuda.cudadrv.driver import _have_nvjitlink, driver
from numba.cuda.cudadrv.error import CudaSupportError
from numba.cuda.cudadrv.linkable_code import CUSource, Fatbin, LinkableCode
from numba.cuda.descriptor import cuda_target

FOLDER = Path(__file__).parent
INCLUDE = FOLDER.parent / "include"

_COUNT = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t])


#: The arena of each GPU by its number: its address, and what keeps it; and the modules loaded
#: there, by their handles.
_arenas: dict[int, tuple[int, object]] = {}
_modules: dict[int, dict[int, Any]] = {}
_lock = threading.RLock()       # protects both; a finalizer may run in its holder


def _gpu() -> int:
    return int(devices.get_context().device.id)


def _write(module: Any, arena: int) -> None:
    address, size = driver.cuLibraryGetGlobal(module.handle, b"xmem_arena")
    driver.cuMemcpyHtoD(address, arena.to_bytes(size, sys.byteorder), size)


def _loaded(module: Any) -> None:
    """Before the first kernel of a module: the module gets the arena of its GPU."""
    with _lock:
        _modules.setdefault(_gpu(), {})[int(module.handle)] = module
        _write(module, _arenas.get(_gpu(), (0,))[0])


def _unloaded(module: Any) -> None:
    with _lock:
        for loaded in list(_modules.values()):
            loaded.pop(int(module.handle), None)


def use_arena(address: int, keeper: object) -> None:
    """Let all kernels of this GPU allocate from an arena from now on; 0: from the GPU's heap."""
    with _lock:
        _arenas[_gpu()] = address, keeper
        for module in list(_modules.get(_gpu(), {}).values()):
            _write(module, address)


def stop_arena(keeper: object) -> None:
    """Let kernels of this GPU allocate from the GPU's heap, if this arena is in use there."""
    with _lock:
        if _arenas.get(_gpu(), (0, None))[1] is keeper:
            use_arena(0, None)


class Shims(LinkableCode):
    """The shims as the linker of this process can read them; found out when something is linked.

    shims-TOOLKIT.fatbin has code for all architectures, from which the linker takes what its GPU
    can run. It reads no code of a newer toolkit. Without such a file NVRTC compiles shims.cu.
    """

    default_name = "xmem-shims"

    @cached_property
    def built(self) -> Path | None:
        found = {tuple(map(int, each.stem.split("-")[1].split("."))): each
                 for each in FOLDER.glob("shims-*.fatbin")}
        usable = [version for version in found if version <= linker_version()]
        return found[max(usable)] if usable else None

    @property
    def kind(self) -> Any:
        return Fatbin.kind if self.built else CUSource.kind

    @property
    def data(self) -> bytes | str:
        return self.built.read_bytes() if self.built else source()


def linker_version() -> tuple[int, ...]:
    """The toolkit whose code numba-cuda's linker reads; (0, 0) without a linker."""
    if _have_nvjitlink():
        from cuda.bindings import nvjitlink
        return tuple(nvjitlink.version())
    try:
        version = int(driver.cuDriverGetVersion())
    except CudaSupportError:
        return 0, 0
    return version // 1000, version % 1000 // 10


def source() -> str:
    """shims.cu with the headers that it includes: NVRTC finds no header by itself."""
    return _with_headers(FOLDER / "shims.cu", set())


def _with_headers(path: Path, seen: set[Path]) -> str:
    if path in seen:
        return ""
    seen.add(path)

    def header(found: re.Match[str]) -> str:
        beside = path.parent / found[1]
        return _with_headers(beside if beside.exists() else INCLUDE / found[1], seen)

    return re.sub(r'^#include [<"](.*)[>"]$', header, path.read_text(), flags=re.MULTILINE)


SHIMS = Shims(None, setup_callback=_loaded, teardown_callback=_unloaded)


def provide(module: ir.Module) -> None:
    """Define NRT_incref and NRT_decref in a module, and see that it is linked with the shims."""
    link()
    for name in ("NRT_incref", "NRT_decref"):
        function = cgutils.get_or_insert_function(module, _COUNT, name)
        if not function.is_declaration:
            continue
        function.linkage = "linkonce_odr"
        function.attributes.add("alwaysinline")
        builder = ir.IRBuilder(function.append_basic_block("entry"))
        ours = cgutils.get_or_insert_function(module, _COUNT, name.replace("NRT_", "xmem_"))
        builder.call(ours, function.args)
        builder.ret_void()


def link() -> None:
    """See that what numba-cuda compiles just now is linked with the shims."""
    context = cuda_target.target_context
    if not context.enable_nrt:
        raise NumbaRuntimeError("xmem.numba: numba-cuda would count no references: set "
                                "numba.cuda.config.CUDA_ENABLE_NRT = True before a kernel with "
                                "strings is compiled")
    library: Any = context.active_code_library
    if SHIMS not in library._linking_files:
        library.add_linking_file(SHIMS)


def declare(name: str, types: Any) -> Any:
    """A function of shims.cu that has no status, for kernels: its types, as numba has them."""
    return cuda.declare_device(name, types, link=SHIMS, abi="c")


def call(builder: ir.IRBuilder, name: str, args: list[ir.Value]) -> None:
    """Call a shim. Its status is always 0: memory that there is not gives a null string."""
    link()
    kind = ir.FunctionType(ir.IntType(32), [arg.type for arg in args])
    builder.call(cgutils.get_or_insert_function(builder.module, kind, f"xmem_{name}_shim"), args)
