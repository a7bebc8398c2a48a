# SPDX-License-Identifier: MIT
"""The end of an interpreter, with anything still there: exit code 0, and no message."""
from __future__ import annotations

import pytest

from support import fresh_name, python

BEGIN = """
import atexit, gc, os, sys, threading, weakref
import xmem

name = sys.argv[1]
writer = xmem.BufferPool(name, writer=True)
reader = xmem.BufferPool(name)
subscription = reader.subscribe()

def published():
    guard = writer.acquire_cpu(8)
    memoryview(guard)[:] = b"contents"
    guard.publish(keep=True)
    return guard

guard, writing = published(), writer.acquire_cpu(8)
view = memoryview(guard)
"""

ENDS = {
    "all alive": "",
    "an exit": "sys.exit(0)",
    "an exit in the middle": "os._exit(0)",
    "objects kept by a builtin module": "sys.kept = guard, view, subscription, writer, reader",
    "a cycle": "cycle = [guard, view, subscription, writer]; cycle.append(cycle)",
    "a finalizer that uses them": """
class Last:
    def __init__(self):
        self.guard, self.view = guard, view
    def __del__(self):
        assert bytes(self.guard) == b"contents"
        self.guard.release()
        assert bytes(self.view) == b"contents"
last = Last()
""",
    "atexit": """
def at_exit():
    assert bytes(guard) == b"contents" and guard.token
    published().release()
    assert subscription.receive(0).nbytes == 8
    guard.release()
    subscription.close()
atexit.register(at_exit)
""",
    "a weakref's callback": """
kept = weakref.ref(guard, lambda _: view.tobytes())
finalizer = weakref.finalize(subscription, writer.close)
""",
    "daemon threads that wait": """
waits = (reader.reopen().subscribe().receive, lambda: next(reader.reopen().subscribe()),
         lambda: xmem.BufferPool(name + "e").subscribe(lasts=False),
         lambda: reader.reopen().subscribe()
         and __import__("time").sleep(100))
ready = threading.Barrier(len(waits) + 1)
for wait in waits:
    threading.Thread(target=lambda wait=wait: (ready.wait(), wait()), daemon=True).start()
ready.wait()
""",
    "daemon threads that work": """
def work():
    while True:
        with published() as mine:
            reader.get(mine.token).clone_ref()
        try:
            subscription.receive(0)
        except xmem.WouldBlock:
            pass
ready = threading.Event()
for _ in range(4):
    threading.Thread(target=lambda: (ready.set(), work()), daemon=True).start()
ready.wait()
""",
    "a daemon thread in a limbo hook": """
full = xmem.BufferPool(name + "f", writer=True)
full.preallocate_cpu(8, 1)
other = full.acquire_cpu(8)
other.publish(keep=True)
ready, never = threading.Event(), threading.Event()
full.limbo_hook(lambda limbo: (ready.set(), never.wait()), count=0)
other = xmem.BufferPool(name + "f").get(other.token)
threading.Thread(target=lambda: full.acquire_cpu(8), daemon=True).start()
ready.wait()
""",
    "an exit in a thread": """
thread = threading.Thread(target=lambda: sys.exit(0))
thread.start()
thread.join()
""",
    "a thread that still receives, and is joined": """
def receive():
    try:
        subscription.receive()
        subscription.receive()
    except xmem.Canceled:
        pass
threading.Thread(target=receive).start()
threading._register_atexit(reader.cancel)
""",
    "an event loop that waits": """
import asyncio
async def main():
    asyncio.get_running_loop().create_task(subscription.receive_async())
    for _ in range(2):
        await asyncio.sleep(0)
subscription.receive(0)
asyncio.run(main())
""",
    "a module that is loaded again": """
import importlib
first = xmem
for module in [module for module in sys.modules if module.partition(".")[0] == "xmem"]:
    del sys.modules[module]
import xmem
assert xmem is not first and xmem.BufferPool is not first.BufferPool
again = xmem.BufferPool(name)
got = again.get(guard.token)
assert type(got) is xmem.BufferGuard and bytes(got) == b"contents"
assert type(reader.get(guard.token)) is first.BufferGuard
try:
    again.get(1)
except xmem.Stale as error:
    assert not isinstance(error, first.Stale)
importlib.reload(xmem)
""",
    "a pool that is closed under all": "writer.close(); reader.close(); subscription.close()",
    "a child that is forked and exits": """
child = os.fork()
if child:
    assert os.waitpid(child, 0)[1] == 0
""",
}


@pytest.mark.parametrize("end", ENDS)
def test_the_end_is_silent(end: str) -> None:
    assert python(BEGIN + ENDS[end], fresh_name("end")) == ""


def test_interpreters_of_one_process() -> None:
    """Each that imports the package has pools of its own, and they share contents."""
    pytest.importorskip("_xxsubinterpreters", reason="this Python has no subinterpreters to try")
    out = python("""
import os, sys, _xxsubinterpreters as interpreters
import xmem
name = sys.argv[1]
writer = xmem.BufferPool(name, writer=True)
guard = writer.acquire_cpu(8)
memoryview(guard)[:] = b"contents"
guard.publish(keep=True)
for number in range(3):
    inner = interpreters.create()
    interpreters.run_string(inner, f'''
import gc, os, sys, threading
sys.path[:] = {sys.path!r}
import xmem
pool = xmem.BufferPool({name!r}, writer=True)
guard = pool.get({guard.token})
view = memoryview(guard)
assert type(guard) is xmem.BufferGuard and bytes(view) == b"contents"
try:
    pool.get(1)
    raise SystemExit(1)
except xmem.Stale:
    pass
pool.preallocate_cpu(8, 1)
seen = []
pool.limbo_hook(seen.append, count=0)
held = pool.acquire_cpu(8)
token = held.publish(keep=True)
other = xmem.BufferPool({name!r}).get(token)
held.release()
try:
    pool.acquire_cpu(8, timeout=0)
except xmem.WouldBlock:
    pass
assert len(seen) == 1 and seen[0].overdue == 1, seen
''')
    interpreters.destroy(inner)
assert bytes(guard) == b"contents"
guard.release()
print("well")
""", fresh_name("inner"))
    assert out == "well\n"
