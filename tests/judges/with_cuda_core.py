# SPDX-License-Identifier: MIT
"""cuda.core and cuda.bindings on the fake driver: devices, streams, events, buffers, and handles
that go from process to process. Another process is a spawned one, as CUDA requires."""

import ctypes
import multiprocessing
import os
import sys
import unittest

from cuda.bindings import driver
from cuda.core import (Device, DeviceMemoryResource, DeviceMemoryResourceOptions,
                       EventOptions, LaunchConfig, ObjectCode, StreamOptions,
                       VirtualMemoryResource, VirtualMemoryResourceOptions, launch)

import lines

BYTES = 1 << 16
ROUNDS = 20
DELAY_US = "1000"
SPAWN = multiprocessing.get_context("spawn")
multiprocessing.set_start_method("spawn", force=True)  # cuda.core warns of any other


def done(result):
    """Returns the results of a function of the bindings, except its CUresult, which must be 0."""
    if int(result[0]):
        raise AssertionError(f"the driver says {result[0]!r}")
    return result[1] if len(result) == 2 else result[1:]


def begin():
    device = Device(0)
    device.set_current()
    return device


def read(handle, size=BYTES):
    to = ctypes.create_string_buffer(size)
    done(driver.cuMemcpyDtoH(ctypes.addressof(to), int(handle), size))
    return to.raw


def is_all(handle, value, size=BYTES):
    return read(handle, size) == bytes([value]) * size


def new_pool(device):
    return DeviceMemoryResource(
        device, options=DeviceMemoryResourceOptions(max_size=1 << 24, ipc_enabled=True))


def other(test, function, *arguments):
    """Runs function(pipe, ...) in another process; returns our end of the pipe."""
    ours, theirs = SPAWN.Pipe()
    process = SPAWN.Process(target=function, args=(theirs, *arguments))
    process.start()
    theirs.close()

    def end():
        process.join(240)
        test.assertEqual(process.exitcode, 0)
        ours.close()

    return ours, end


class Devices(unittest.TestCase):
    def test_name_and_uuid(self):
        device = begin()
        self.assertTrue(device.name)
        uuid = done(driver.cuDeviceGetUuid(0)).bytes
        self.assertEqual(device.uuid.replace("-", ""), uuid.hex())

    def test_context_is_primary(self):
        begin()
        context = done(driver.cuCtxGetCurrent())
        self.assertEqual(int(context), int(done(driver.cuDevicePrimaryCtxRetain(0))))
        done(driver.cuDevicePrimaryCtxRelease(0))


class Streams(unittest.TestCase):
    def setUp(self):
        self.device = begin()
        self.pool = new_pool(self.device)

    def test_waiting_for_a_stream(self):
        one = self.device.create_stream(options=StreamOptions(nonblocking=True))
        two = self.device.create_stream(options=StreamOptions(nonblocking=True))
        a = self.pool.allocate(BYTES, stream=one)
        b = self.pool.allocate(BYTES, stream=one)
        for i in range(1, ROUNDS):
            a.fill(i, stream=one)
            two.wait(one)
            b.copy_from(a, stream=two)
            one.wait(two)
        two.sync()
        self.assertTrue(is_all(b.handle, ROUNDS - 1))

    def test_events(self):
        stream = self.device.create_stream()
        options = EventOptions(timing_enabled=True)
        first = stream.record(options=options)
        last = stream.record(options=options)
        last.sync()
        self.assertTrue(first.is_done and last.is_done)
        self.assertGreater(last - first, 0)

    def test_default_stream_orders(self):
        stream = self.device.create_stream(options=StreamOptions(nonblocking=False))
        a = self.pool.allocate(BYTES, stream=self.device.default_stream)
        for i in range(1, ROUNDS):
            a.fill(i, stream=stream)
            self.assertTrue(is_all(a.handle, i))

    def test_closed_streams(self):
        streams = [self.device.create_stream() for _ in range(ROUNDS)]
        for stream in streams:
            stream.close()
            self.assertTrue(stream.is_closed)


class Buffers(unittest.TestCase):
    def setUp(self):
        self.device = begin()
        self.stream = self.device.create_stream()

    def test_pool_memory_comes_back(self):
        pool = new_pool(self.device)
        for _ in range(ROUNDS):
            buffer = pool.allocate(BYTES, stream=self.stream)
            buffer.fill(3, stream=self.stream)
            buffer.close(self.stream)
        self.stream.sync()
        self.assertEqual(pool.attributes.used_mem_current, 0)

    def test_virtual_memory(self):
        resource = VirtualMemoryResource(
            self.device, config=VirtualMemoryResourceOptions(handle_type="posix_fd"))
        buffer = resource.allocate(BYTES)
        buffer.fill(9, stream=self.stream)
        self.stream.sync()
        self.assertTrue(is_all(buffer.handle, 9))
        buffer.close()

    def test_words(self):
        """A stream waits for a word of registered memory, which the CPU writes."""
        import mmap
        page = mmap.mmap(-1, 4096)
        at = ctypes.addressof(ctypes.c_char.from_buffer(page))
        word = ctypes.c_uint64.from_address(at)
        done(driver.cuMemHostRegister(at, 4096, 2))
        address = done(driver.cuMemHostGetDevicePointer(at, 0))
        done(driver.cuStreamWaitValue64(self.stream.handle, address, 5, 0))
        done(driver.cuStreamWriteValue64(self.stream.handle, int(address) + 8, 6, 0))
        self.assertEqual(int(driver.cuStreamQuery(self.stream.handle)[0]), 600)
        word.value = 5
        self.stream.sync()
        self.assertEqual(ctypes.c_uint64.from_address(at + 8).value, 6)
        done(driver.cuMemHostUnregister(at))


class Kernels(unittest.TestCase):
    """The image is made by nvcc from tests/cuda/kernels.cu, or replaces such an image."""

    def image(self):
        folder = os.path.dirname(os.environ["LD_LIBRARY_PATH"])
        with open(os.path.join(folder, "kernels.ptx"), "rb") as file:
            return file.read() + b"\0"

    def test_library(self):
        device = begin()
        stream = device.create_stream()
        add = ObjectCode.from_ptx(self.image()).get_kernel("xm_add")
        buffer = DeviceMemoryResource(device).allocate(BYTES, stream=stream)
        buffer.fill(1, stream=stream)
        for _ in range(ROUNDS):
            launch(stream, LaunchConfig(grid=2, block=64), add, buffer,
                   ctypes.c_uint(0x01010101), ctypes.c_ulonglong(BYTES // 4))
        stream.sync()
        self.assertTrue(is_all(buffer.handle, 1 + ROUNDS))

    def test_module(self):
        device = begin()
        stream = device.create_stream()
        module = done(driver.cuModuleLoadData(self.image()))
        fill = done(driver.cuModuleGetFunction(module, b"xm_fill"))
        buffer = DeviceMemoryResource(device).allocate(BYTES, stream=stream)
        arguments = ((int(buffer.handle), 0x05050505, BYTES // 4),
                     (ctypes.c_void_p, ctypes.c_uint, ctypes.c_ulonglong))
        done(driver.cuLaunchKernel(fill, 2, 1, 1, 64, 1, 1, 0, stream.handle, arguments, 0))
        stream.sync()
        self.assertTrue(is_all(buffer.handle, 5))
        done(driver.cuModuleUnload(module))

    def test_unknown(self):
        begin()
        module = done(driver.cuModuleLoadData(b".version 8.0\n.entry nobody(\0"))
        self.assertEqual(int(driver.cuModuleGetFunction(module, b"nobody")[0]), 500)


def look_at_buffer(pipe):
    device = begin()
    buffer = pipe.recv()
    stream = device.create_stream()
    pipe.send((buffer.is_mapped, read(buffer.handle)))
    buffer.fill(8, stream=stream)
    buffer.close(stream)        # once it is filled
    stream.sync()
    pipe.send("closed")


def look_at_handle(pipe):
    begin()
    raw = pipe.recv()
    handle = driver.CUipcMemHandle()
    handle.reserved = raw
    opened = done(driver.cuIpcOpenMemHandle(handle, 1))
    pipe.send(read(opened))
    done(driver.cuMemsetD8(opened, 8, BYTES))
    done(driver.cuIpcCloseMemHandle(opened))
    pipe.send("closed")


def access(device=0):
    desc = driver.CUmemAccessDesc()
    desc.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    desc.location.id = device
    desc.flags = driver.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    return desc


POSIX_FD = driver.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR


def look_at_descriptor(pipe):
    begin()
    fd, size = pipe.recv()
    fd = fd.detach()
    handle = done(driver.cuMemImportFromShareableHandle(fd, POSIX_FD))
    os.close(fd)
    at = done(driver.cuMemAddressReserve(size, 0, 0, 0))
    done(driver.cuMemMap(at, size, 0, handle, 0))
    done(driver.cuMemSetAccess(at, size, [access()], 1))
    pipe.send(read(at))
    done(driver.cuMemsetD8(at, 8, BYTES))
    done(driver.cuMemUnmap(at, size))
    done(driver.cuMemRelease(handle))
    done(driver.cuMemAddressFree(at, size))
    pipe.send("closed")


def look_after_event(pipe):
    device = begin()
    buffer = pipe.recv()
    stream = device.create_stream()
    own = DeviceMemoryResource(device).allocate(BYTES, stream=stream)
    while (message := pipe.recv()) is not None:
        value, event = message
        stream.wait(event)
        own.copy_from(buffer, stream=stream)
        stream.sync()
        pipe.send(is_all(own.handle, value))
        event.close()
    buffer.close(stream)
    stream.sync()


class BetweenProcesses(unittest.TestCase):
    def setUp(self):
        self.device = begin()
        self.stream = self.device.create_stream()

    def check_shared(self, pipe, end, handle):
        """The other process sees 7 and writes 8."""
        answer = pipe.recv()
        contents = answer[1] if isinstance(answer, tuple) else answer
        self.assertEqual(contents, b"\7" * BYTES)
        self.assertEqual(pipe.recv(), "closed")
        end()
        self.assertTrue(is_all(handle, 8))

    def test_pool(self):
        buffer = new_pool(self.device).allocate(BYTES, stream=self.stream)
        buffer.fill(7, stream=self.stream)
        self.stream.sync()
        pipe, end = other(self, look_at_buffer)
        pipe.send(buffer)
        self.check_shared(pipe, end, buffer.handle)
        buffer.close(self.stream)

    def test_legacy(self):
        at = done(driver.cuMemAlloc(BYTES))
        done(driver.cuMemsetD8(at, 7, BYTES))
        base = done(driver.cuMemGetAddressRange(at))[0]
        self.assertEqual(int(base), int(at))
        pipe, end = other(self, look_at_handle)
        pipe.send(bytes(done(driver.cuIpcGetMemHandle(at)).reserved))
        self.check_shared(pipe, end, at)
        done(driver.cuMemFree(at))

    def test_virtual_memory(self):
        from multiprocessing.reduction import DupFd
        resource = VirtualMemoryResource(
            self.device, config=VirtualMemoryResourceOptions(handle_type="posix_fd"))
        buffer = resource.allocate(BYTES)
        buffer.fill(7, stream=self.stream)
        self.stream.sync()
        handle = done(driver.cuMemRetainAllocationHandle(int(buffer.handle)))
        fd = done(driver.cuMemExportToShareableHandle(handle, POSIX_FD, 0))
        done(driver.cuMemRelease(handle))
        pipe, end = other(self, look_at_descriptor)
        pipe.send((DupFd(fd), buffer.size))
        self.check_shared(pipe, end, buffer.handle)
        os.close(fd)
        buffer.close()

    def test_events_order(self):
        buffer = new_pool(self.device).allocate(BYTES, stream=self.stream)
        pipe, end = other(self, look_after_event)
        pipe.send(buffer)
        for i in range(1, ROUNDS):
            buffer.fill(i, stream=self.stream)
            event = self.stream.record(options=EventOptions(ipc_enabled=True))
            pipe.send((i, event))
            self.assertTrue(pipe.recv(), f"round {i}")
        pipe.send(None)
        end()
        buffer.close(self.stream)


if __name__ == "__main__":
    os.environ.setdefault("FAKECUDA_DELAY_US", DELAY_US)
    chosen = unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"])
    sys.exit(lines.run(chosen))
