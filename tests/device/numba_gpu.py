# SPDX-License-Identifier: MIT
"""numba_gpu.py FOLDER: launches the kernels of numba_build.py on a GPU, and checks their results.

It needs only Python and a driver, so a machine without numba-cuda can run it:

    tests/device/numba.sh --build build/numba-gpu 9.0       here
    python3 tests/device/numba_gpu.py build/numba-gpu       there

Each kernel is a module of its own. So a string ends in another module than the one that made it, as
with numba-cuda. The last line is "N passed, N failed, N skipped".
"""
from __future__ import annotations

import ctypes
import json
import struct
import sys
from pathlib import Path

ARENA = 64 << 20
THREADS = 128


class Driver:
    def __init__(self) -> None:
        self.library = ctypes.CDLL("libcuda.so.1")
        context = ctypes.c_void_p()
        self.cuInit(0)
        self.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
        self.cuCtxSetCurrent(context)

    def __getattr__(self, name):
        def call(*arguments):
            result = getattr(self.library, name)(*arguments)
            if result:
                raise OSError(f"{name}: {result}")
        return call

    def allocate(self, data: bytes) -> int:
        at = ctypes.c_uint64()
        self.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(max(len(data), 1)))
        self.write(at.value, data)
        return at.value

    def write(self, at: int, data: bytes) -> None:
        if data:
            self.cuMemcpyHtoD_v2(ctypes.c_uint64(at), data, ctypes.c_size_t(len(data)))

    def read(self, at: int, nbytes: int) -> bytes:
        data = ctypes.create_string_buffer(max(nbytes, 1))
        if nbytes:
            self.cuMemcpyDtoH_v2(data, ctypes.c_uint64(at), ctypes.c_size_t(nbytes))
        return data.raw[:nbytes]

    def free(self, *addresses: int) -> None:
        for address in addresses:
            self.cuMemFree_v2(ctypes.c_uint64(address))


class Kernel:
    """A kernel, with its module's arena."""

    def __init__(self, driver: Driver, file: Path, entry: str) -> None:
        self.driver, self.function, module = driver, ctypes.c_void_p(), ctypes.c_void_p()
        driver.cuModuleLoadData(ctypes.byref(module), file.read_bytes())
        driver.cuModuleGetFunction(ctypes.byref(self.function), module, entry.encode())
        self.arena, size = ctypes.c_uint64(), ctypes.c_size_t()
        driver.cuModuleGetGlobal_v2(ctypes.byref(self.arena), ctypes.byref(size), module,
                                    b"xmem_arena")

    def use(self, arena: int) -> None:
        self.driver.write(self.arena.value, struct.pack("Q", arena))

    def launch(self, threads: int, *arguments: int) -> None:
        values = (ctypes.c_uint64 * len(arguments))(*arguments)
        pointers = (ctypes.c_void_p * len(arguments))(
            *[ctypes.addressof(values) + 8 * number for number in range(len(arguments))])
        blocks = max(1, (threads + THREADS - 1) // THREADS)
        self.driver.cuLaunchKernel(self.function, blocks, 1, 1, THREADS, 1, 1, 0, None, pointers,
                                   None)
        self.driver.cuCtxSynchronize()


class Arena:
    def __init__(self, driver: Driver, kernels: dict[str, Kernel]) -> None:
        self.driver, self.kernels = driver, kernels
        self.answer, self.memory = driver.allocate(bytes(32)), driver.allocate(bytes(ARENA))
        kernels["make_arena"].launch(1, self.answer, self.memory, ARENA)
        assert struct.unpack("Q", driver.read(self.answer, 8)) == (self.memory,)
        for kernel in kernels.values():
            kernel.use(self.memory)

    def counts(self) -> tuple[int, ...]:
        """How many allocations were made, freed and refused."""
        self.kernels["count_arena"].launch(1, self.answer, self.memory)
        return struct.unpack("3Q", self.driver.read(self.answer, 24))


def column(driver: Driver, kernel: Kernel, free: Kernel, arena: Arena,
           texts: list[str]) -> list[str]:
    """Run a kernel on a column of strings; all that it has made is freed."""
    encoded = [text.encode() for text in texts]
    chars, views, at = driver.allocate(b"".join(encoded)), b"", 0
    for text in encoded:
        views += struct.pack("Qiii4x", chars + at, len(text), 0, 0)
        at += len(text)
    strings, out = driver.allocate(views), driver.allocate(bytes(24 * len(texts)))
    kernel.launch(len(texts), strings, out, len(texts))
    made = list(struct.iter_unpack("QQii", driver.read(out, 24 * len(texts))))
    assert all(meminfo for meminfo, *_ in made)
    # All characters are in the arena, of which one copy is enough.
    memory = driver.read(arena.memory, ARENA)
    got = [memory[data - arena.memory:data - arena.memory + nbytes].decode()
           for _, data, nbytes, _ in made]
    counts = {struct.unpack_from("Q", memory, meminfo - arena.memory)[0] for meminfo, *_ in made}
    assert counts == {1}, counts
    free.launch(len(texts), out, len(texts))
    driver.free(chars, strings, out)
    return got


def main(folder: Path) -> int:
    try:
        driver = Driver()
    except OSError as error:
        print(f"SKIP numba_gpu.py: there is no GPU: {error}\n0 passed, 0 failed, 1 skipped")
        return 0
    index, failed = json.loads((folder / "index.json").read_text()), 0
    kernels = {name: Kernel(driver, folder / f"{name}.cubin", entry)
               for name, entry in index["entries"].items()}
    arena = Arena(driver, kernels)
    for name, (texts, expected) in index["columns"].items():
        try:
            for _ in range(2):
                got = column(driver, kernels[name], kernels["free"], arena, texts)
                wrong = [row for row in zip(texts, expected, got) if row[1] != row[2]]
                assert not wrong, f"{len(wrong)} rows, such as {wrong[0]}"
            made, freed, refused = arena.counts()
            assert made == freed and not refused, (made, freed, refused)
        except AssertionError as error:
            print(f"FAIL {name}: {error}")
            failed += 1
    print("allocations, releases, failures:", *arena.counts())
    print(f"{len(index['columns']) - failed} passed, {failed} failed, 0 skipped")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
