# SPDX-License-Identifier: MIT
"""BufferPool: a named pool of buffers that processes of this machine share."""
from __future__ import annotations

import errno
import functools
import grp
import operator
import os
import warnings
import weakref
from typing import Any, Self

from . import _core, aio, holders, reduce, unread
from ._constants import (
    DRAIN_EVICTS, GID_SAME, NO_DEMAND, BufferFlags, ClientRole, MayFlags, MemoryFlags, OpenFlags,
    SubscribeFlags,
)
from .arguments import made, text, wanted
from .cuda import CPU
from .cuda_pool import CudaPool
from .errors import Limit, NotFound, TimedOut, WouldBlock
from .guard import BufferGuard
from .records import Holder, Unread
from .strings import Column
from .subscription import Subscription
from .typing import DTypeLike, ShapeLike

_WRITER, _EXISTING, _EXCLUSIVE, _READER, _INHERIT, _GROUP, *_ = (int(flag) for flag in OpenFlags)
_READ, _WRITE = (int(flag) for flag in MayFlags)
_ROLES = {None: 0, False: _READER, True: _WRITER}
_HUGE, _SEALED = int(MemoryFlags.HUGE), int(MemoryFlags.SEALED)
_CLAIMED = int(BufferFlags.CLAIMED)
_WAITS, _PUBLISHER, _NOWAIT, _LASTS = (int(flag) for flag in SubscribeFlags)

_NOT_ITSELF = "does not follow itself: subscribe by another BufferPool"

_core.set_types(BufferGuard, Subscription)


class BufferPool(CudaPool):
    """A handle of the pool of that name, which is made if there is none.

    name: up to 128 characters of A-Z a-z 0-9 . _ - and "/", as "/camera/front/image_raw". No part
    between slashes is empty or begins with a dot. None: an anonymous pool, always a new one.
    "USER:NAME" is the pool of another user. USER is a number, or a name of /etc/passwd. "@17"
    is the pool that pools() lists with the number 17; only a reader can join by a number.
    writer: None: this client is a reader, and becomes a writer when it first acquires,
    preallocates, attaches, forwards or calls get_mut. (Subscriptions wait for writers and follow
    them, and ignore readers.) True: it is a writer at once. False: it never writes.
    existing, exclusive: only join a pool that exists, or only make a new one.
    inherit: forked children may reopen it.
    mode: the right to join the pool that is made, as of files (0o640); 0: its user alone, 0o600.
    group: the group of the pool that is made, by number or name, one of this user's; None: this
    process's.
    slots, clients, ring_entries: the pool must have at least so many; 0: the default.
    wait_bound: seconds in all for which a slow subscriber may make this writer wait; None: for
    ever.
    label: the name that others see of this client, at most 15 characters; None: the program's
    name.
    demand_bytes: bytes of memory that acquire may make; 0: the default, None: none.
    cache_bytes, cache_time: so much unused memory is kept, for so many seconds; 0: the default;
    cache_time None: for ever. keep: so many publications are kept for late subscribers.
    huge: acquire makes memory of large pages. sealed: it makes memory that only this writer can
    ever write; otherwise any writer of the pool may write a buffer in place while it is the only
    holder (get_mut).
    in_flight: seconds for which a pickled guard or parcel keeps its buffer if nobody loads it, so
    that lost messages do not use up the pool; None: as long as this process lives.

    Raises Error: see xmem_pool_open(3); ValueError. Threads: any. The process that forks keeps the
    pool; the child reopens it (reopen). A pickled pool is opened by its name in the process that
    loads it.
    """

    #: The name of an anonymous pool in messages; empty for pools with a name.
    identity: str
    canceled: bool
    _waiters: dict[Any, aio.Waiters]
    _watchers: dict[Any, aio.Waiters]       # tasks that wait for subscribers
    _found: int                             # how many subscribers the last look has found
    _subscriptions: weakref.WeakSet[Subscription]

    def __new__(cls, name: str | None = None, *, writer: bool | None = None, existing: bool = False,
                exclusive: bool = False, inherit: bool = False,
                mode: int = 0, group: int | str | None = None,
                slots: int = 0, clients: int = 0,
                ring_entries: int = 0, wait_bound: float | None = 0.0, label: str | None = None,
                demand_bytes: int | None = 0, cache_bytes: int = 0,
                cache_time: float | None = 0.0, huge: bool = False, sealed: bool = False,
                 keep: int = 0, in_flight: float | None = 600.0) -> Self:
        if name == "":
            raise ValueError("a pool's name is not empty; None makes an anonymous pool")
        text(name, "a pool's name")
        return cls._open(name, -1, dict(
            writer=writer, existing=existing, exclusive=exclusive, inherit=inherit,
            mode=mode, group=group, slots=slots, clients=clients,
            ring_entries=ring_entries, wait_bound=wait_bound, label=label,
            demand_bytes=demand_bytes, cache_bytes=cache_bytes, cache_time=cache_time, huge=huge,
            sealed=sealed, keep=keep, in_flight=in_flight))

    @classmethod
    def _open(cls, name: str | None, fd: int, of: dict[str, Any]) -> Self:
        role = of["writer"]
        flags = (_ROLES[None if role is None else bool(role)] | bool(of["existing"]) * _EXISTING |
                 bool(of["exclusive"]) * _EXCLUSIVE | bool(of["inherit"]) * _INHERIT |
                 (of["group"] is not None) * _GROUP)
        demand = of["demand_bytes"]
        for time in "wait_bound", "cache_time":
            if of[time] is not None and not of[time] >= 0:
                raise ValueError(f"{time} is None or a number of seconds that is not negative, "
                                 f"not {of[time]!r}")
        text(of["label"], "label")
        lasts = of["in_flight"]
        if lasts is not None and not lasts > 0:
            raise ValueError("in_flight is None, which is for ever, or a number of seconds that is "
                             f"more than 0, not {lasts!r}")
        try:
            self = _core.pool_open(
                cls, name, fd, flags, of["slots"], of["clients"], of["ring_entries"],
                of["wait_bound"], of["label"], NO_DEMAND if demand is None else demand,
                of["cache_bytes"], of["cache_time"],
                bool(of["huge"]) * _HUGE | bool(of["sealed"]) * _SEALED, of["keep"],
                of["mode"], _gid(of["group"], 0))
        except Limit as error:
            if error.errno == errno.EUSERS:
                raise Limit(error.errno, f"{error.strerror}{holders.inside(name)}; the "
                            "process that makes the pool sets the number by clients=, up to 256") \
                    from None
            raise
        self._opened(name, {**of, "exclusive": False}, "" if name else os.urandom(16).hex())
        return self

    @classmethod
    def _as_lost(cls, name: str | None, options: dict[str, Any], identity: str, number: int,
                 text: str) -> BufferPool:
        """Make the pool of a message that cannot be opened: each use raises the error of that
        number."""
        self = _core.lost_pool(cls, number, text)
        self._has(name, options, identity)
        return self

    def _opened(self, name: str | None, options: dict[str, Any], identity: str) -> None:
        self._has(name, options, identity)
        reduce.opened(self)

    def _has(self, name: str | None, options: dict[str, Any], identity: str) -> None:
        self.name = name
        self.options = options
        self.identity = identity
        self._waiters = {}
        self._watchers = {}
        self._found = 0
        self._subscriptions = weakref.WeakSet()
        self._sent = {}
        self.canceled = False

    @classmethod
    def from_fd(cls, fd: int, **options: Any) -> Self:
        """Join the pool of a descriptor of pool.fd(), which still belongs to the caller.

        options: as of BufferPool. Raises Released (EBADF) if it is no pool's descriptor.
        """
        if not 0 <= fd < 1 << 31:
            raise ValueError(f"a descriptor is not negative and has at most 31 bits: {fd}")
        unknown = options.keys() - _DEFAULTS.keys()
        if unknown:
            raise TypeError(f"BufferPool has no option {', '.join(sorted(unknown))}")
        return cls._open(None, fd, {**_DEFAULTS, **options})

    @classmethod
    def narrow_fd(cls, fd: int, *, reader: bool = True, writer: bool = False) -> int:
        """Make from a descriptor of pool.fd() another descriptor with fewer roles.

        The new descriptor belongs to the caller, to pass on; fd does not change. Raises
        NotPermitted if fd does not have these roles, Released (EBADF) if it is no pool's
        descriptor, NoDevice.
        """
        return _core.narrow_fd(fd, bool(reader) * _READ | bool(writer) * _WRITE)

    def set_mode(self, mode: int | None = None, group: int | str | None = None) -> None:
        """Change the right to join the pool from now on, as mode= and group= do; None: no change.

        Clients that have joined stay. Descriptors stay valid, unless the mode has 0o1000. Raises
        NotPermitted if the pool is another user's, or the group is not one of this user's; Error
        (EOPNOTSUPP): xmemd is the host, whose pools belong to one user.
        """
        if mode is not None and not mode:
            raise ValueError("mode is None, which leaves it as it is, or bits such as 0o640, not 0")
        self._set_mode(0 if mode is None else mode, _gid(group, GID_SAME))

    def evict(self, client: _core.ClientInfo) -> None:
        """End another client, as client_info() gave it, whether it runs, is stopped or hangs.

        Its buffers are free then. Its process gets no signal: its calls in the pool raise Released
        (ENOTCONN). Raises NotPermitted if the pool is another user's, Stale if that client has
        ended, Error (EOPNOTSUPP): xmemd is the host, which cannot do that.
        """
        self._evict(*_named(client))

    def grant(self, client: _core.ClientInfo) -> None:
        """Let another user's client, as client_info() gave it, hold the buffers of this client.

        This is for tokens that the other client gets in another way than by a subscription:
        without it, get() of them raises NotPermitted there. Raises NotPermitted if this is no
        writer, Stale if that client has ended.
        """
        self._grant(*_named(client))

    def drain(self, *, evict: bool = False) -> int:
        """Let no client join the pool any more; evict: also end all clients of other processes.

        Returns how many clients were ended. The pool is gone when the last client has left. Raises
        NotPermitted and Error (EOPNOTSUPP) as evict() does, and then has changed nothing.
        """
        return self._drain(DRAIN_EVICTS if evict else 0)

    def reopen(self) -> Self:
        """Join again: in a forked child, after the host has ended, or as a second client.

        Buffers and subscriptions do not come along. An anonymous pool needs inherit=True.
        """
        other = super().reopen()
        other._opened(self.name, self.options, self.identity)
        return other

    def close(self) -> None:
        """Drop the handle; buffers, views and subscriptions stay. Waits in it are canceled."""
        super().close()
        self._end_waits()

    def cancel(self) -> None:
        """End all waits in the pool and its subscriptions, now and for ever: they raise Canceled.

        Calls that do not wait are not affected.
        """
        super().cancel()
        self._end_waits()

    def _end_waits(self) -> None:
        """End the waits of coroutines, which the library does not know."""
        self.canceled = True
        aio.end(self._waiters)
        aio.end(self._watchers)
        while True:
            try:
                known = list(self._subscriptions)
                break
            except RuntimeError:        # Another thread has subscribed meanwhile.
                continue
        for subscription in known:
            aio.end(subscription._waiters)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return reduce.pool(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()

    def __repr__(self) -> str:
        if self._lost:
            return f"<xmem.BufferPool {self.name!r}, {self._lost[1]}>"
        if self.closed:
            return f"<xmem.BufferPool {self.name!r}, closed>"
        if self.forked:
            return f"<xmem.BufferPool {self.name!r}, of the parent process>"
        return f"<xmem.BufferPool {self.name!r}, client {self.client}>"

    def preallocate_cpu(self, size: int | ShapeLike | None = None, count: int | None = None, *,
                        shape: ShapeLike | None = None, dtype: DTypeLike | None = None,
                        huge: bool = False, sealed: bool = False) -> list[int]:
        """Make count buffers in memory of the CPU, and return the list of their meta_index.

        size: bytes of each buffer. With shape and dtype instead, each has room for such a tensor.
        huge: of large pages. sealed: only this writer can ever write them; otherwise any writer of
        the pool may write a buffer in place while it is the only holder (get_mut).
        Raises NotPermitted of a reader, NoSpace, Limit, Error (ENOMEM).
        """
        return self._preallocate(*made(size, count, shape, dtype), bool(huge) * _HUGE |
                                 bool(sealed) * _SEALED)

    def acquire_cpu(self, size: int | ShapeLike | None = None, dtype: DTypeLike | None = None, *,
                    shape: ShapeLike | None = None,
                    timeout: float | None = None) -> BufferGuard:
        """Acquire a buffer to write into: of size bytes, or as a tensor of that shape and type.

        size: 0 is a tensor without bytes, which readers see as such; None: any buffer, all of it.
        The shape may be given in place of size.
        timeout: seconds to wait for one; None: for ever, 0: not at all.
        Raises TimedOut, whose text and holders name the clients and messages that keep the
        buffers, and whose text also says what this writer itself holds; WouldBlock; NoSpace, also
        at once if other writers have all slots of the pool; NotPermitted of a reader.
        """
        total, shape, number = wanted(size, shape, dtype)
        try:
            guard = self._acquire(total, timeout)
        except (TimedOut, WouldBlock) as error:
            unread.explain(error, self)
            if isinstance(error, TimedOut):
                error.holders = holders.if_known(self)
            raise
        if shape is not None:
            try:
                guard.describe_tensor(number, shape)
            except BaseException:
                guard.release()
                raise
        return guard

    async def acquire_cpu_async(self, size: int | ShapeLike | None = None,
                                dtype: DTypeLike | None = None, *,
                                shape: ShapeLike | None = None,
                                timeout: float | None = None) -> BufferGuard:
        """Acquire a buffer in an event loop, as acquire_cpu does.

        Coroutines that want buffers of equal size get them in the order of their calls.
        ``asyncio.timeout`` may be used in place of timeout.
        Raises what acquire_cpu raises, also Released if the pool is closed meanwhile.
        """
        attempt = functools.partial(self.acquire_cpu, size, dtype, shape=shape, timeout=0)
        try:
            return await aio.until(self, self._waiters, attempt, self,
                                   wanted(size, shape, dtype)[0], writable=True, timeout=timeout)
        except TimedOut as error:
            error.holders = holders.if_known(self)
            raise

    def acquire_strings(self, source: Any, *, device_id: int = CPU,
                        timeout: float | None = None) -> BufferGuard:
        """Acquire a buffer and copy a column of strings into it, to publish.

        source: an array of pyarrow of type string, large_string, string_view or a dictionary of
        strings; or what pyarrow.array() makes such an array of, as a list of str and None.
        device_id: this process's number of a GPU, for a buffer there; CPU: in memory of the CPU.
        Raises what acquire_cpu and acquire_cuda raise; ImportError without pyarrow;
        pyarrow.ArrowInvalid if the strings have more than 2^31 - 1 bytes, or the array's offsets
        or characters are impossible.
        """
        column = Column(source)
        plan = column.plan
        if device_id == CPU:
            guard = self.acquire_cpu(plan.nbytes, timeout=timeout)
        else:
            guard = self.acquire_cuda(plan.nbytes, device_id, timeout=timeout)
        copy = guard.copy_from if device_id == CPU else guard.copy_from_host
        try:
            for part, at in column.parts:
                copy(part, at)
            guard.describe_strings(plan.rows, plan.chars, plan.validity_at is not None)
        except BaseException:
            guard.release()
            raise
        return guard

    def get_mut(self, meta_index: int) -> BufferGuard:
        """Get contents, by their slot or token, to write them in place, as get().get_mut() does.

        Raises what get() and BufferGuard.get_mut() raise, and then has changed nothing.
        """
        guard = self.get(meta_index)
        try:
            return guard.get_mut()
        except BaseException:
            _put_back(guard)
            raise

    def set_ref_count(self, meta_index: int, count: int, lasts: float | None = 10.0) -> None:
        """Set the number of references of contents, by their slot or token.

        If the meta_index or token of a guard of these contents was read in this pool, the call
        does what set_ref_count() of that guard does (of the last guard that was read): its
        reference is one of the count, and the others are set aside. Otherwise all references are
        set aside for get().
        Raises what BufferGuard.set_ref_count() and get() raise.
        """
        ref = self._numbered.get(operator.index(meta_index) & 0xffff)
        asked = ref() if ref else None
        if asked and not asked.gone and meta_index in (asked.meta_index, asked.token):
            asked.set_ref_count(count, lasts)
            return
        guard = self.get(meta_index)
        try:
            guard.set_ref_count(count, lasts)
            guard.forget()
        except BaseException:
            _put_back(guard)
            raise

    async def receive_async(self, timeout: float | None = None) -> BufferGuard:
        """Receive the next publication of any subscription in an event loop, as receive() does."""
        return await aio.until(self, self._waiters, functools.partial(self.receive, 0), self,
                               timeout=timeout)

    def subscribers(self) -> list[_core.SubscriberInfo]:
        """Get the clients that follow this writer. This is a look: see subscribers_fileno().

        They can receive everything that it publishes from now on, unless they end or unsubscribe.
        Raises NotPermitted of a reader, Released.
        """
        found = self._subscribers()
        self._looked(len(found))
        return found

    def wait_for_subscribers(self, count: int = 1, timeout: float | None = None) -> int:
        """Wait until so many clients follow this writer; returns how many there are.

        These clients can receive everything that is published after that: a program that publishes
        once, and ends, waits for its readers first. count: 0 only counts them.
        timeout: seconds to wait; None: for ever, 0: not at all, which is a look:
        subscribers_fileno(). Raises TimedOut; WouldBlock; Canceled; NotPermitted of a reader.
        """
        if timeout != 0:
            return self._wait_for_subscribers(count, timeout)
        try:
            return self._wait_for_subscribers(count, 0)
        finally:
            self._looked(self._wait_for_subscribers(0, 0))

    async def wait_for_subscribers_async(self, count: int = 1,
                                         timeout: float | None = None) -> int:
        """Wait in an event loop until so many clients follow this writer.

        It returns and raises what wait_for_subscribers does, also Released if the pool is closed
        meanwhile. ``asyncio.timeout`` may be used in place of timeout.
        """
        attempt = functools.partial(self.wait_for_subscribers, count, 0)
        return await aio.until(_Subscribers(self), self._watchers, attempt, self, amount=count,
                               everyone=True, timeout=timeout)

    def _looked(self, found: int) -> None:
        """Wake the other coroutines: this look has made their descriptor unready."""
        if found != self._found:
            self._found = found
            aio.nudge(self._watchers)

    def holders(self) -> list[Holder]:
        """Get the clients that hold buffers of the pool or have yet to receive some, most holds
        first."""
        return holders.of(self)

    def unread(self) -> list[Unread]:
        """Get the guards and parcels of this pool that are in unread messages, the oldest first.

        These are the messages that this pool object has pickled and nobody has loaded yet;
        stat().claims also counts references that others have set aside. If nobody will load a
        message, void_claims(token) gives its buffer back. Raises Released, Forked.
        """
        return unread.of(self)

    def _writes(self) -> bool:
        return self.client_info(self.client).role == ClientRole.WRITER

    def subscribe(self, *, publisher: int | None = None, label: str | None = None,
                  waits: bool = False, timeout: float | None = None, history: int = 0,
                  depth: int = 0, lasts: bool | None = None) -> Subscription:
        """Follow the publishers of the pool, from their next publication on.

        publisher: only that client. label: only writers with that label; a '*' at its end stands
        for any rest. waits: the publisher waits for this subscriber, within its bound.
        timeout: seconds to wait for a publisher; None: for ever, 0: not at all.
        history: also receive so many of each publisher's last publications. depth: of the
        publications that have not been received yet, only so many of each publisher, the latest;
        0: as many as there is room.
        lasts: True: the subscription needs no publisher. subscribe() does not wait for one, and
        when all have ended, receive() waits for the next one. So an iteration never ends. False:
        subscribe() waits for a publisher, and the subscription ends with the last one: an
        iteration ends, and receive() raises Ended. None: False if publisher= or timeout= is given,
        otherwise True. With True, publisher= is an error, and so is a timeout= that is more than
        0.
        A writer does not follow itself, unless publisher= is its own number. With lasts=False a
        RuntimeWarning tells a writer that it may wait for ever, if there is no other writer and
        timeout is None.
        The next receive also follows publishers that have come since, and a waiting receive does
        so soon. Their earlier publications, as far as they still exist, are received if the
        subscription lasts or history= is given; otherwise they are neither received nor counted in
        lost.
        Raises NotFound, also if publisher is a reader; TimedOut; Exists.
        """
        text(label, "label")
        if lasts is None:
            lasts = publisher is None and timeout is None
        flags = (bool(waits) * _WAITS | (publisher is not None) * _PUBLISHER |
                 bool(lasts) * _LASTS)
        followed = 0 if publisher is None else operator.index(publisher)
        alone = publisher is None and not lasts and self._writes()

        def follow(seconds: float | None) -> Subscription:
            return self._subscribe(flags | (seconds == 0) * _NOWAIT, followed, seconds, history,
                                   depth, label)

        try:
            subscription = follow(0 if alone and timeout is None else timeout)
        except (NotFound, TimedOut) as error:
            if alone and timeout is None:
                warnings.warn("subscribe() waits for another writer, and none is there: this "
                              f"client is a writer, and {_NOT_ITSELF}", RuntimeWarning,
                              stacklevel=2)
                subscription = follow(None)
            elif alone:
                raise type(error)(error.errno, f"{error.strerror}; this client is a writer, and "
                                  f"{_NOT_ITSELF}") from None
            else:
                raise
        subscription._waiters = {}      # before another thread can have it
        self._subscriptions.add(subscription)
        return subscription


def _put_back(guard: BufferGuard) -> None:
    """Undo a get() whose purpose has failed: if its reference was set aside, set it aside again."""
    if not guard.gone:
        guard.forget() if guard.flags & _CLAIMED else guard.release()


def _named(client: _core.ClientInfo) -> tuple[int, int]:
    """Get the identity of a client, because another client may have its number later."""
    if not isinstance(client, _core.ClientInfo):
        raise TypeError(f"a client is given as client_info() gives it, not as {client!r}")
    return client.id, client.incarnation


class _Subscribers:
    """The descriptor of coroutines that wait for subscribers."""

    def __init__(self, pool: BufferPool) -> None:
        self.fileno = pool.subscribers_fileno


def _gid(group: int | str | None, otherwise: int) -> int:
    if group is None:
        return otherwise
    if isinstance(group, str):
        try:
            return grp.getgrnam(group).gr_gid
        except KeyError:
            raise NotFound(errno.ENOENT, f"there is no group {group!r}") from None
    return group


#: The defaults of BufferPool().
_DEFAULTS: dict[str, Any] = dict(BufferPool.__new__.__kwdefaults__ or {})
