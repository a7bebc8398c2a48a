# SPDX-License-Identifier: MIT
"""Who keeps buffers of a pool in use."""
from __future__ import annotations

from typing import NamedTuple

from . import _core
from .errors import Error, NotFound


class Holder(NamedTuple):
    """A client that keeps buffers of a pool in use."""

    client: int     #: its id
    label: str      #: what it calls itself
    pid: int        #: of its process, as the host sees it
    holds: int      #: how many holds it has
    behind: int     #: publications that it has yet to receive


def of(pool: _core.Pool) -> list[Holder]:
    """Get the clients that hold buffers or have yet to receive some, those with most holds first.

    Others go on meanwhile, so it is what was true of each at a moment.
    """
    found = []
    for client in range(pool.stat().clients_max):
        try:
            info = pool.client_info(client)
        except NotFound:
            continue
        if info.holds or info.behind:
            found.append(Holder(client, info.label, info.pid, info.holds, info.behind))
    return sorted(found, key=lambda holder: (-holder.holds, -holder.behind, holder.client))


def if_known(pool: _core.Pool) -> list[Holder]:
    """The same for an error that is on its way: what prevents the answer does not replace it."""
    try:
        return of(pool)
    except Error:
        return []
