# SPDX-License-Identifier: MIT
"""Functions of the child processes of the tests of xmem.torch, and waits of the tests.

It is a module of its own, because children by spawn import it. Nothing here sleeps to let another
event come first: each side waits for a message, or for a condition with a limit of time.
"""
from __future__ import annotations

import atexit
import functools
import os
import pickle
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from typing import Any, Callable

import torch
import torch.multiprocessing as multiprocessing

from support import LIMIT

IS_OLD = torch.__version__ < "2.1"      # which cannot send sparse tensors

# A child by fork has none of the threads with which its parent's torch computes, but waits for
# them.
torch.set_num_threads(1)

# Children that inherit nothing are forked from a process that has already imported the slow
# modules.
multiprocessing.get_context("forkserver").set_forkserver_preload(["torch", "xmem.torch"])


def until(condition: Callable[[], bool], what: str) -> None:
    """Wait for a condition that another process brings about."""
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end, f"not within {LIMIT:.0f} s: {what}"
        time.sleep(0.002)


START = """
import gc, pickle, sys, warnings, torch, xmem, xmem.torch
from multiprocessing.reduction import ForkingPickler
def dumps(thing): return bytes(ForkingPickler.dumps(thing))
"""


# A part of such a program, which must be run with an XMEM_SOCKET of its own.
killed_host = """
import os, signal

def kill_host():
    found = []
    for process in os.listdir("/proc"):
        try:
            with open(f"/proc/{process}/environ", "rb") as file:
                mine = os.environ["XMEM_SOCKET"].encode() + b"\\0" in file.read() + b"\\0"
            with open(f"/proc/{process}/comm") as file:
                if mine and file.read() == "xmemd\\n":
                    found.append(int(process))
        except OSError:
            pass
    host, = found
    handle = os.pidfd_open(host)
    os.kill(host, signal.SIGKILL)
    import select
    assert select.select([handle], [], [], 240)[0], "it has ended"
    os.close(handle)
"""


FORKING = """
import os, pickle, socket, struct, sys, torch, xmem, xmem.torch
asks = socket.socket(fileno=int(sys.argv[1]))
while True:
    asked, handles, _, _ = socket.recv_fds(asks, 1 << 20, 2)
    if not asked:
        os._exit(0)
    child = os.fork()
    if not child:
        break
    for handle in handles:
        os.close(handle)
    asks.send(struct.pack("i", child))
    asks.send(struct.pack("i", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])))
asks.close()
for to, handle in enumerate(handles, 1):
    os.dup2(handle, to)
    os.close(handle)
program, sys.argv[1:], environment = pickle.loads(asked)
os.environ.clear()
os.environ.update(environment)
sys.path[:0] = environment["PYTHONPATH"].split(os.pathsep)
del asks, asked, handles, handle, to, child, environment
exec(program)
"""


@functools.cache
def forking() -> socket.socket:
    """A process that has imported torch, which takes longer than all else that a program does: for
    each message it forks one that runs a program, to the end of an interpreter of its own."""
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    process = subprocess.Popen(
        [sys.executable, "-c", FORKING, str(far.fileno())], pass_fds=[far.fileno()],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))})
    far.close()
    near.settimeout(LIMIT)
    caller = os.getpid()

    def end() -> None:
        if os.getpid() == caller:       # and no child of a fork
            near.shutdown(socket.SHUT_RDWR)
            process.wait(LIMIT)

    atexit.register(end)
    return near


def run(program: str, *arguments: str, quiet: bool = False, **environment: str) -> str:
    """Run a program, because a process makes a pool only once, and return its output.
    quiet: it must print nothing to its standard error."""
    path = os.pathsep.join(filter(None, [os.path.dirname(__file__), *sys.path]))
    asked = pickle.dumps((START + program, arguments,
                          {**os.environ, "PYTHONPATH": path, **environment}))
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        socket.send_fds(forking(), [asked], [out.fileno(), err.fileno()])
        child, = struct.unpack("i", forking().recv(4))
        try:
            code, = struct.unpack("i", forking().recv(4))
        except TimeoutError:
            os.kill(child, signal.SIGKILL)
            raise
        out.seek(0)
        err.seek(0)
        said, complained = out.read(), err.read()
    assert code == 0, said + complained
    assert not quiet or complained == "", complained
    return said


class Child:
    """A process that runs a function of this module with a pipe to its parent, until it ends."""

    def __init__(self, function: Callable[..., None], *args: Any,
                 method: str = "forkserver") -> None:
        context = multiprocessing.get_context(method)
        self.pipe, far = context.Pipe()
        self.process = context.Process(target=function, args=(far, *args))
        self.process.start()
        far.close()

    def get(self) -> Any:
        """Get the next message of the child."""
        assert self.pipe.poll(LIMIT), "the child says nothing"
        return self.pipe.recv()

    def put(self, thing: Any) -> None:
        self.pipe.send(thing)

    def end(self) -> None:
        """Wait for the child's end, whose status must be 0."""
        self.process.join(LIMIT)
        assert self.process.exitcode == 0, f"the child ended with {self.process.exitcode}"

    def kill(self) -> None:
        self.process.kill()
        self.process.join(LIMIT)
        assert self.process.exitcode == -9

    def __enter__(self) -> "Child":
        return self

    def __exit__(self, *_: Any) -> None:
        if self.process.exitcode is None:
            self.process.kill()
            self.process.join(LIMIT)
        self.pipe.close()


def fill(pipe: Any, value: float) -> None:
    """Fill the first tensor of each message, and answer."""
    tensors = pipe.recv()
    with torch.no_grad():
        tensors[0].fill_(value)
    pipe.send("filled")


def echo(pipe: Any) -> None:
    """Send back each message, until None."""
    while (thing := pipe.recv()) is not None:
        pipe.send(thing)


def ask(pipe: Any, question: Callable[..., Any], *args: Any) -> None:
    """Send the result of a function for each message, until None."""
    while (thing := pipe.recv()) is not None:
        pipe.send(question(thing, *args))


def details(tensor: torch.Tensor) -> tuple[Any, ...]:
    """Describe a plain tensor completely, without handing a tensor over."""
    storage = tensor._storage() if hasattr(tensor, "_storage") else tensor.untyped_storage()
    return (str(tensor.dtype), tuple(tensor.size()), tensor.stride(), tensor.storage_offset(),
            storage.nbytes(), tensor.tolist(), tensor.requires_grad, tensor.is_leaf)


def sum_of(tensor: torch.Tensor) -> float:
    return float(tensor.double().sum())


def hold(pipe: Any) -> None:
    """Keep all messages, and answer how many, until it is killed or gets None."""
    kept = []
    while (thing := pipe.recv()) is not None:
        kept.append(thing)
        pipe.send(len(kept))


def describe(thing: Any) -> Any:
    """Describe a tensor by objects that pickle without tensors."""
    return (type(thing).__name__, str(thing.dtype), tuple(thing.shape), bool(thing.requires_grad),
            thing.is_shared() if thing.layout is torch.strided else None)


def backward(tensor: torch.Tensor) -> list[float]:
    """Compute the gradient of a sum of squares of a tensor that requires it."""
    (tensor * tensor).sum().backward()
    assert tensor.grad is not None
    return tensor.grad.flatten().tolist()


def send_new(pipe: Any, count: int, numbers: int) -> None:
    """Make tensors and send them; each is dropped once it has been sent."""
    for number in range(count):
        pipe.send(torch.full((numbers,), float(number)))
    pipe.recv()


def send_and_stay(pipe: Any, count: int, numbers: int) -> None:
    """Make tensors, send them and keep them, until the process is ended."""
    kept = [torch.full((numbers,), float(number)) for number in range(count)]
    for tensor in kept:
        pipe.send(tensor)
    pipe.send("sent")
    pipe.recv()


def installed_pool(pipe: Any) -> None:
    """Get the pool that this process has installed, without ever having had a tensor."""
    import xmem.torch

    pipe.send(xmem.torch.installed())
    pipe.recv()


def both_see(pipe: Any, tensor: torch.Tensor) -> None:
    """Read a tensor that this process has inherited or was given, write it, and read it again."""
    pipe.send(tensor.flatten().tolist())
    pipe.recv()
    tensor.add_(1)
    pipe.send("added")
    pipe.recv()
    pipe.send(tensor.flatten().tolist())


def watch(pipe: Any) -> None:
    """Keep the first tensor; then answer its contents, or whether another tensor has its memory."""
    kept = pipe.recv()
    while (thing := pipe.recv()) is not None:
        if isinstance(thing, torch.Tensor):
            pipe.send(thing.data_ptr() == kept.data_ptr())
        else:
            pipe.send(kept.flatten().tolist())


def receive_and_return(pipe: Any) -> None:
    """Receive a tensor, add one to it, and send back which pool is installed, and the tensor."""
    tensor = pipe.recv()
    tensor.add_(1)
    import xmem.torch

    pipe.send((xmem.torch.installed(), xmem.torch.is_pooled(tensor), tensor))
    pipe.recv()


def end_with(pipe: Any, count: int) -> None:
    """End normally with tensors alive, own ones and received ones."""
    global alive
    alive = [pipe.recv() for _ in range(count)]
    alive += [tensor.clone().share_memory_() for tensor in alive]
    pipe.send(len(alive))


alive: list[torch.Tensor] = []
