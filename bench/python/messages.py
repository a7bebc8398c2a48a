# SPDX-License-Identifier: MIT
"""Small messages between two processes: xmem's own publish and receive, compared with iceoryx2's
wheel.

1 KiB, written before it is sent and read at the other side, ping-pong; one way is half of a round.
Both sides poll without sleeping. A second pair sleeps, by the descriptor that xmem gives.
"""
from __future__ import annotations

import importlib.util
import multiprocessing
import statistics
import time
from multiprocessing.connection import Connection
from typing import Any, Callable

NBYTES = 1024
ROUNDS = 3000

Step = Callable[[], Any]


def xmem_ends(sleeps: bool, first: bool) -> tuple[Callable[[bytes], None], Callable[[], bytes]]:
    """How to send and to receive with xmem."""
    import xmem

    mine, other = ("ping", "pong") if first else ("pong", "ping")
    pool = xmem.BufferPool("bench-python", writer=True, label=mine)
    pool.preallocate_cpu(NBYTES, 8)
    subscription = pool.subscribe(label=other, lasts=False)
    timeout = None if sleeps else 0.0

    def send(contents: bytes) -> None:
        guard = pool.acquire_cpu(NBYTES)
        memoryview(guard)[:] = contents
        guard.publish()

    def receive() -> bytes:
        while True:
            try:
                with subscription.receive(timeout) as guard:
                    return bytes(memoryview(guard)[:8])
            except xmem.WouldBlock:
                pass

    return send, receive


def iceoryx2_ends(sleeps: bool, first: bool) -> tuple[Callable[[bytes], None],
                                                      Callable[[], bytes]]:
    """Measure messages with iceoryx2."""
    import ctypes

    import iceoryx2

    iceoryx2.set_log_level(iceoryx2.LogLevel.Error)
    node = iceoryx2.NodeBuilder.new().create(iceoryx2.ServiceType.Ipc)
    payload = ctypes.c_uint8 * NBYTES
    out, back = ("ping", "pong") if first else ("pong", "ping")

    def service(name: str) -> Any:
        return (node.service_builder(iceoryx2.ServiceName.new(f"bench-python-{name}"))
                .publish_subscribe(payload).open_or_create())

    publisher = service(out).publisher_builder().create()
    subscriber = service(back).subscriber_builder().create()

    def send(contents: bytes) -> None:
        sample = publisher.loan_uninit()
        ctypes.memmove(sample.payload_ptr, contents, NBYTES)
        sample.assume_init().send()

    def receive() -> bytes:
        while True:
            sample = subscriber.receive()
            if sample is not None:
                return ctypes.string_at(sample.payload_ptr, 8)

    return send, receive


ENDS = {"xmem": xmem_ends, "iceoryx2": iceoryx2_ends}


def answer(name: str, sleeps: bool, pipe: Connection) -> None:
    """The other side: sends back the number that it got."""
    send, receive = ENDS[name](sleeps, False)
    pipe.send("ready")
    pipe.recv()
    for _ in range(ROUNDS + 1):
        send(receive() + bytes(NBYTES - 8))


def ask(name: str, sleeps: bool, pipe: Connection) -> None:
    """Measure: nanoseconds one way, of each round."""
    send, receive = ENDS[name](sleeps, True)
    pipe.send("ready")
    pipe.recv()
    times = []
    for number in range(ROUNDS + 1):
        start = time.perf_counter_ns()
        send(number.to_bytes(8, "little") + bytes(NBYTES - 8))
        got = int.from_bytes(receive(), "little")
        times.append((time.perf_counter_ns() - start) / 2)
        if got != number:
            raise AssertionError(f"{got} came back, not {number}")
    pipe.send(times[1:])


def measure(name: str, sleeps: bool) -> float:
    """Median of nanoseconds one way."""
    context = multiprocessing.get_context("spawn")
    pipes, processes = [], []
    for side in (answer, ask):
        near, far = context.Pipe()
        processes.append(context.Process(target=side, args=(name, sleeps, far)))
        processes[-1].start()
        pipes.append(near)
    for pipe in pipes:
        pipe.recv()
    for pipe in pipes:
        pipe.send("go")
    times = pipes[1].recv()
    for process in processes:
        process.join()
    return statistics.median(times)


def main() -> None:
    """Print the table."""
    print("| 1 KiB from one process to another, one way | median, us |")
    print("|---|---:|")
    print(f"| xmem, polling | {measure('xmem', False) / 1e3:.1f} |")
    print(f"| xmem, sleeping | {measure('xmem', True) / 1e3:.1f} |")
    if importlib.util.find_spec("iceoryx2"):
        print(f"| iceoryx2, polling | {measure('iceoryx2', False) / 1e3:.1f} |")
    else:
        print("| iceoryx2 | not installed |")


if __name__ == "__main__":
    main()
