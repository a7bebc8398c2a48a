# SPDX-License-Identifier: MIT
"""Tuples by which the package describes clients and messages."""
from __future__ import annotations

from typing import NamedTuple


class Holder(NamedTuple):
    """A client that keeps buffers of a pool in use."""

    client: int     #: its id
    label: str      #: its name for others
    pid: int        #: of its process, as the host sees it
    holds: int      #: the number of its holds
    behind: int     #: publications that it has yet to receive
    #: Buffers in messages that nobody has loaded (unread()); of the pool's own client alone.
    unread: int = 0


class Unread(NamedTuple):
    """A buffer that is set aside for the receiver of a message of this process."""

    token: int              #: names the buffer; pool.void_claims(token) gives it back
    claims: int             #: references that are set aside, including those of others
    seconds: float          #: since the first of these messages was made
    lasts: float | None     #: seconds after which they expire; None: not before this process ends


class Sent(NamedTuple):
    """A message that has been made."""

    token: int
    when: float             #: of time.monotonic(), which is one clock for all processes
    lasts: float | None
