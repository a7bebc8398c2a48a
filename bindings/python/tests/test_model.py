# SPDX-License-Identifier: MIT
"""Any order of calls, against a model: no contents ever change under a hold or a view.

Each draw depends only on earlier draws. If the pool has nothing, as may happen on a busy machine,
a rule gives as many results as otherwise, and they are a guard that is gone.
"""
from __future__ import annotations

import gc
import zlib
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (Bundle, RuleBasedStateMachine, consumes, initialize, invariant,
                                 multiple, rule)

import xmem
from support import fresh_name

SIZE = 64


class Held:
    """A guard and what its contents are to be; views of it, which outlive it."""

    def __init__(self, guard: xmem.BufferGuard | None = None, contents: bytes = b"") -> None:
        self.guard = guard
        self.contents = contents


class Buffers(RuleBasedStateMachine):
    """One writer of 6 buffers, one subscriber: all that they do with guards and views."""

    writing = Bundle("writing")
    held = Bundle("held")
    views = Bundle("views")

    @initialize()
    def open(self) -> None:
        name = fresh_name("model")
        self.writer = xmem.BufferPool(name, writer=True)
        self.writer.preallocate_cpu(SIZE, 6)
        self.reader = xmem.BufferPool(name, writer=False)
        self.subscription = self.reader.subscribe()
        self.published: dict[int, bytes] = {}       # every token that there ever was
        self.alive: list[Held] = []
        self.seen: list[tuple[memoryview, int]] = []
        self.sequence = 0
        self.number = 0

    def fill(self, guard: xmem.BufferGuard) -> bytes:
        self.number += 1
        contents = self.number.to_bytes(8, "little") * (SIZE // 8)
        memoryview(guard)[:] = contents
        return contents

    def hold(self, guard: xmem.BufferGuard, contents: bytes) -> Held:
        assert bytes(guard) == contents and guard.readonly
        held = Held(guard, contents)
        self.alive.append(held)
        return held

    @rule(target=writing)
    def acquire(self) -> Any:
        try:
            guard = self.writer.acquire_cpu(SIZE, timeout=0)
        except xmem.WouldBlock:
            return None, b""
        return guard, self.fill(guard)

    @rule(target=held, of=consumes(writing), keep=st.booleans(), viewed=st.booleans())
    def publish(self, of: Any, keep: bool, viewed: bool) -> Any:
        guard, contents = of
        if guard is None:
            return Held() if keep else multiple()
        view = memoryview(guard) if viewed else None
        token = guard.publish(keep=keep)
        assert token not in self.published and guard.gone == (not keep)
        self.published[token] = contents
        if view is not None:
            self.seen.append((view, zlib.crc32(contents)))
        if not keep:
            return multiple()
        if view is not None:                # a guard with older views is not viewed anew
            self.seen.pop()
            view.release()
        return self.hold(guard, contents)

    @rule(of=consumes(writing))
    def throw_away(self, of: Any) -> None:
        if of[0] is not None:
            of[0].release()
            assert of[0].gone

    @rule(target=held)
    def receive(self) -> Any:
        try:
            guard = self.subscription.receive(0)
        except xmem.WouldBlock:
            return Held()
        assert guard.sequence >= self.sequence
        self.sequence = guard.sequence + 1
        return self.hold(guard, self.published[guard.token])

    @rule(target=held, which=st.integers(0, 1000))
    def get(self, which: int) -> Any:
        if not self.published:
            return Held()
        token = list(self.published)[-1 - which % len(self.published)]
        try:
            guard = self.reader.get(token)
        except xmem.Stale:
            for held in self.alive:
                assert held.guard is None or held.guard.token != token
            return Held()
        return self.hold(guard, self.published[token])

    @rule(target=held, of=held)
    def clone(self, of: Held) -> Any:
        if of.guard is None:
            return Held()
        return self.hold(of.guard.clone_ref(), of.contents)

    @rule(of=held, how=st.sampled_from(["release", "drop", "with", "forward", "offer"]))
    def let_go(self, of: Held, how: str) -> None:
        guard, of.guard = of.guard, None
        if guard is None:
            return
        self.alive.remove(of)
        if how == "release":
            guard.release()
        elif how == "with":
            with guard:
                pass
        elif how == "offer":
            guard.offer()
            self.writer.void_claims(guard.token)
        elif how == "forward" and guard.pool is self.writer:
            guard.forward(timeout=0)
            assert guard.gone

    @rule(target=views, of=held, slices=st.slices(SIZE))
    def view(self, of: Held, slices: slice) -> Any:
        if of.guard is None:
            return len(self.seen)
        view = memoryview(of.guard)[slices]
        assert view.tobytes() == of.contents[slices]
        self.seen.append((view, zlib.crc32(of.contents[slices])))
        return len(self.seen)

    @rule(number=views)
    def drop_a_view(self, number: int) -> None:
        if self.seen:
            self.seen.pop(number % len(self.seen))[0].release()

    @rule()
    def collect(self) -> None:
        self.writer.collect()
        gc.collect(0)

    @invariant()
    def no_contents_have_changed(self) -> None:
        for held in getattr(self, "alive", ()):
            assert held.guard is not None and bytes(held.guard) == held.contents
        for view, sum_of_it in getattr(self, "seen", ()):
            assert zlib.crc32(view.tobytes()) == sum_of_it

    def teardown(self) -> None:
        if not hasattr(self, "writer"):
            return
        self.writer.close()
        self.reader.close()
        self.subscription.close()
        self.no_contents_have_changed()
        self.alive.clear()
        self.seen.clear()


TestBuffers = Buffers.TestCase
TestBuffers.settings = settings(max_examples=60, stateful_step_count=60, deadline=None,
                                database=None)
