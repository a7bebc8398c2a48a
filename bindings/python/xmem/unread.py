# SPDX-License-Identifier: MIT
"""Unread messages: guards and parcels that this process has pickled and nobody has loaded.

The host does not say which client has set a reference aside. But this process notes in the pool,
for each slot, what it has pickled. So an acquire that fails can name the messages that are in its
way.
"""
from __future__ import annotations

import re
import time
from typing import Protocol

from .errors import Error, Stale
from .records import Sent, Unread


class Messages(Protocol):
    """The part of a pool that this module uses."""

    _sent: dict[int, Sent]      #: by slot: the first message that may be unread

    def claims(self, meta_index: int, /) -> int:
        """Count the references that are set aside."""


def note(pool: Messages, token: int, lasts: float | None) -> None:
    """Note that a reference has been set aside for a message."""
    slot = token & 0xffff
    before = pool._sent.get(slot)
    # If there are two references, an earlier message may still be unread.
    if not before or before.token != token or pool.claims(token) < 2:
        pool._sent[slot] = Sent(token, time.monotonic(), lasts)


def of(pool: Messages) -> list[Unread]:
    """Get the unread messages of a pool, the oldest first."""
    found, now = [], time.monotonic()
    for slot, sent in list(pool._sent.items()):
        try:
            claims = pool.claims(sent.token)
        except Stale:
            claims = 0
        if claims:
            found.append(Unread(sent.token, claims, now - sent.when, sent.lasts))
        else:
            pool._sent.pop(slot, None)
    return sorted(found, key=lambda each: -each.seconds)


def explain(error: Error, pool: Messages) -> None:
    """No buffer could be acquired: add to the error which messages are in the way, if any."""
    text = str(error.strerror)
    aside = re.search(r"(\d+) set aside", text)
    if not aside:
        return
    total, messages = int(aside[1]), of(pool)
    own = min(len(messages), total)
    said = []
    if own:
        oldest = messages[0]
        lasts = ""
        if oldest.lasts is not None:
            lasts = f", and is gone after {oldest.lasts:g} s (in_flight)"
        said.append(f"of those set aside {own} are in messages that this process has made and "
                    f"nobody has loaded (or offer() has set aside more): the oldest waits for "
                    f"{oldest.seconds:.1f} s{lasts}; pool.unread() lists them, and "
                    "pool.void_claims(token) gives a buffer back")
    if own < total:
        said.append(f"{total - own} are set aside by other processes, or by offer(), forget() "
                    "and set_ref_count(); 'xmem claims' lists all, and 'xmem claims --void' gives "
                    "them back")
    error.strerror = "; ".join([text, *said])
    error.args = (error.errno, error.strerror)
