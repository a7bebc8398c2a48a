# SPDX-License-Identifier: MIT
"""A user's program for a type checker. It is not run: types.sh has mypy judge it. A line
that ends in "type: ignore[...]" must be wrong in that way, or mypy complains of the comment."""

from typing import assert_type

import xmem


def publisher(name: str) -> int:
    with xmem.BufferPool(name, writer=True, wait_bound=0.5, label="camera") as pool:
        assert_type(pool, xmem.BufferPool)
        pool.preallocate_cpu(count=4, shape=(1080, 1920, 3), dtype="uint8")
        with pool.acquire_cpu((1080, 1920, 3), "uint8", timeout=1.5) as frame:
            assert_type(frame, xmem.BufferGuard)
            assert_type(frame.dtype, xmem.dtypes.DType | None)
            assert_type(frame.cpu_ptr, int)
            assert_type(frame.readonly, bool)
            memoryview(frame).cast("B")[0] = 1
            return frame.publish(timestamp_ns=1)


class Camera(xmem.BufferPool):
    frames = 0


def subclass(name: str) -> None:
    assert_type(Camera(name), Camera)
    assert_type(Camera(name).reopen(), Camera)
    assert_type(Camera.from_fd(3, writer=True), Camera)
    with Camera(name, writer=True) as camera:
        assert_type(camera, Camera)


def viewer(name: str) -> None:
    pool = xmem.BufferPool(name)
    with pool.subscribe(history=1, timeout=None) as frames:
        assert_type(frames, xmem.Subscription)
        for frame in frames:
            assert_type(frame, xmem.BufferGuard)
            assert_type(frame.publisher_label, str)
            assert_type(frame.timestamp_ns, int)
        assert_type(frames.receive(timeout=0), xmem.BufferGuard)
    assert_type(pool.get(1), xmem.BufferGuard)


async def follower(pool: xmem.BufferPool) -> None:
    async for frame in pool.subscribe():
        assert_type(frame, xmem.BufferGuard)


def errors(pool: xmem.BufferPool) -> str:
    try:
        pool.get(0)
    except xmem.Stale as error:
        assert_type(error.errno, int | None)
        return str(error)
    except xmem.Error as error:
        assert_type(error, xmem.Error)
        raise
    return ""


def mistakes(pool: xmem.BufferPool) -> None:
    xmem.BufferPool(3)                              # type: ignore[arg-type]
    xmem.BufferPool("camera", True)                 # type: ignore[call-arg]
    xmem.BufferPool("camera", write=True)           # type: ignore[call-arg]
    pool.acquire_cpu("1080x1920")                   # type: ignore[arg-type]
    pool.get("token")                               # type: ignore[arg-type]
    pool.acquire_cpu(4096).nbytes = 3               # type: ignore[misc]
    pool.acquire_cpu(4096).published()              # type: ignore[attr-defined]
    len(pool)                                       # type: ignore[arg-type]
