# SPDX-License-Identifier: MIT
"""Who keeps buffers of a pool in use, and who is in one that takes no more clients."""
from __future__ import annotations

import os
from typing import Protocol

from . import _core, unread
from .errors import Error, NotFound
from .records import Holder


class Clients(unread.Messages, Protocol):
    """A pool, as far as its clients are looked at here."""

    @property
    def client(self) -> int:
        """The id of this process's own client."""

    def stat(self) -> _core.PoolInfo:
        """Get what is known of the pool."""

    def client_info(self, client: int, /) -> _core.ClientInfo:
        """Get what is known of a client."""


def of(pool: Clients) -> list[Holder]:
    """Get the clients that hold buffers or have yet to receive some, those with most holds first.

    Others go on meanwhile, so it is what was true of each at a moment.
    """
    found, own, messages = [], pool.client, len(unread.of(pool))
    for client in range(pool.stat().clients_max):
        try:
            info = pool.client_info(client)
        except NotFound:
            continue
        waiting = messages if client == own else 0
        if info.holds or info.behind or waiting:
            found.append(Holder(client, info.label, info.pid, info.holds, info.behind, waiting))
    return sorted(found, key=lambda holder: (-holder.holds, -holder.behind, holder.client))


_NAMED = 4      # processes that a message names


def _has_mapped(pid: str, what: str) -> bool:
    """Has that process the pages of a pool? Those of others, and that have ended, nobody sees."""
    try:
        with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as maps:
            return any(line.rstrip().endswith(what) for line in maps)
    except OSError:
        return False


def _name_of(pid: str) -> str:
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as name:
            return name.read().strip()
    except OSError:
        return "?"


def inside(name: str | None) -> str:
    """Say which processes are in a pool that this one cannot join; "" if that cannot be seen.

    Only a client can look into a pool. But the daemon names its pages after it, and /proc says who
    has them mapped, of this user's processes. The daemon itself has, too.
    """
    if not name or not os.path.isdir("/proc/self"):
        return ""
    what = f"/memfd:xmem-pool:{name} (deleted)"
    pids = sorted((pid for pid in os.listdir("/proc") if pid.isdigit()), key=int)
    found = [(pid, _name_of(pid)) for pid in pids if _has_mapped(pid, what)]
    found = [(pid, called) for pid, called in found if called != "xmemd"]
    if not found:
        return ""
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return "; in it are " + ", ".join(f"{called} pid {pid}"
                                      for pid, called in found[:_NAMED]) + more


def if_known(pool: Clients) -> list[Holder]:
    """The same for an error that is on its way: what prevents the answer does not replace it."""
    try:
        return of(pool)
    except Error:
        return []
