# SPDX-License-Identifier: MIT
"""The clients that keep buffers in use, in the error of a writer that waits in vain."""
from __future__ import annotations

import os

import pytest

import xmem
from support import LIMIT, fresh_name


def test_a_writer_that_waits_in_vain_learns_who_holds_its_buffers() -> None:
    with xmem.BufferPool(fresh_name(), writer=True, demand_bytes=None) as writer, \
            xmem.BufferPool(writer.name, label="hoarder") as reader:
        writer.preallocate_cpu(4096, 2)
        with reader.subscribe(timeout=0) as frames:
            held = []
            for _ in range(2):
                writer.acquire_cpu(4096).publish()
                held.append(frames.receive(timeout=LIMIT))
            with pytest.raises(TimeoutError, match="hoarder") as caught:
                writer.acquire_cpu(4096, timeout=0.01)
            assert isinstance(caught.value, xmem.TimedOut)
            assert caught.value.holders == [
                xmem.Holder(reader.client, "hoarder", os.getpid(), 2, 0)]
            del held[0]
            assert writer.holders()[0].holds == 1


def test_who_has_yet_to_receive_is_named_too() -> None:
    with xmem.BufferPool(fresh_name(), writer=True) as writer, \
            xmem.BufferPool(writer.name) as reader, reader.subscribe(timeout=0) as frames:
        assert writer.holders() == []
        for _ in range(3):
            writer.acquire_cpu(64).publish()
        assert [holder.behind for holder in reader.holders()] == [3]
        assert frames.receive(timeout=LIMIT).nbytes == 64
        assert [holder.behind for holder in reader.holders()] == [2]
