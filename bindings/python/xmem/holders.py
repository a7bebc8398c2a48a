# SPDX-License-Identifier: MIT
"""Clients that keep buffers of a pool in use, and processes in a pool that is full."""
from __future__ import annotations

import os
from typing import Protocol

from . import _core, unread
from .errors import Error, NotFound
from .records import Holder


class Clients(unread.Messages, Protocol):
    """The part of a pool that holders.of() uses."""

    @property
    def client(self) -> int:
        """The id of this process's own client."""

    def stat(self) -> _core.PoolInfo:
        """Get the state of the pool."""

    def client_info(self, client: int, /) -> _core.ClientInfo:
        """Get information about a client."""


def of(pool: Clients) -> list[Holder]:
    """Get the clients that hold buffers or have yet to receive some, sorted by holds, most first.

    Each client is looked at in its own moment, while the others continue.
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
    """Has that process mapped the pages of a pool? False for ended processes and those of other
    users."""
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
    """Name the processes in a pool that this process cannot join; "" if they cannot be seen.

    Only a client can look into a pool. But the daemon gives a pool's pages its name, and /proc
    shows which processes of this user have them mapped. xmemd itself also has.
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
    """Get the holders for an error that is being raised: an error here must not replace it."""
    try:
        return of(pool)
    except Error:
        return []
