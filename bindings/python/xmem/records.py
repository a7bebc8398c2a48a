# SPDX-License-Identifier: MIT
"""Tuples by which the package describes clients and messages."""
from __future__ import annotations

from typing import NamedTuple


class Holder(NamedTuple):
    """A client that keeps buffers of a pool in use."""

    client: int     #: its id
    label: str      #: what it calls itself
    pid: int        #: of its process, as the host sees it
    holds: int      #: how many holds it has
    behind: int     #: publications that it has yet to receive
    #: Buffers in messages that nobody has loaded (unread()); of the pool's own client alone.
    unread: int = 0


class Unread(NamedTuple):
    """A buffer that is set aside for whoever loads a message of this process."""

    token: int              #: which buffer; pool.void_claims(token) gives it back
    claims: int             #: references that are set aside, also by others
    seconds: float          #: since the first of these messages was made
    lasts: float | None     #: seconds after which they go; None: not before this process ends


class Sent(NamedTuple):
    """A message that has been made."""

    token: int
    when: float             #: of time.monotonic(), which all processes have alike
    lasts: float | None
