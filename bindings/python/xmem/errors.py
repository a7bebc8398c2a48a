# SPDX-License-Identifier: MIT
"""Exceptions. Each is an OSError with the errno and the message of the library.

Where Python has an exception of the same meaning, that catches them as well: ``except
TimeoutError`` catches ``TimedOut``. ``except xmem.Error`` catches all.
"""
from __future__ import annotations

import errno

from . import _core, words
from .records import Holder


class Error(OSError):
    """A call of xmem has failed and has changed nothing."""

    #: The CUDA driver's result, if that is the cause, by name: "CUDA_ERROR_OUT_OF_MEMORY".
    cuda_result: str | None = None


class NotYet(Error):
    """It has not happened yet and still may: the base of TimedOut and WouldBlock."""


class TimedOut(NotYet, TimeoutError):
    """It did not happen in time."""

    #: The clients that held buffers, or had yet to receive some, when an acquire gave up.
    holders: list[Holder] = []


class WouldBlock(NotYet, BlockingIOError):
    """The call would have to wait, and the timeout was 0."""


class Ended(Error, BrokenPipeError):
    """All publishers have ended, and all their publications have been received."""


class Stale(Error):
    """The contents that the token names are gone, or the token belongs to another pool."""


class NotPermitted(Error, PermissionError):
    """This client may not make that call, or not with this buffer."""


class NotFound(Error, FileNotFoundError):
    """The pool, client or publisher does not exist."""


class Exists(Error, FileExistsError):
    """It exists already."""


class Forked(Error):
    """The object belongs to the parent of this process: reopen the pool."""


class Canceled(Error):
    """The wait was ended by cancel() or close()."""


class OwnerDead(Error):
    """Memory of a GPU has ended with the process that made it."""


class HostGone(Error, ConnectionError):
    """The host has ended: close the pool and open it again."""


class NoDevice(Error):
    """There is no host, no driver or no such GPU; the text says why."""


class NoSpace(Error):
    """No buffer is that large, or the pool has no slot left."""


class Limit(Error):
    """A limit of the host is reached, or the pool has as many clients as it can have."""


class Released(Error, ValueError):
    """The guard, pool or subscription has been released or closed before."""


#: The class for each errno; None: the class for all other errnos.
CLASSES: dict[int | None, type[Error]] = {
    errno.ETIMEDOUT: TimedOut,
    errno.EAGAIN: WouldBlock,
    errno.EPIPE: Ended,
    errno.ESTALE: Stale,
    errno.EPERM: NotPermitted,
    errno.EACCES: NotPermitted,
    errno.ENOENT: NotFound,
    errno.EEXIST: Exists,
    errno.ECHILD: Forked,
    errno.ECANCELED: Canceled,
    errno.EOWNERDEAD: OwnerDead,
    errno.ENOTCONN: HostGone,
    errno.ENODEV: NoDevice,
    errno.ENOSPC: NoSpace,
    errno.EDQUOT: Limit,
    errno.EUSERS: Limit,
    errno.EBADF: Released,
    None: Error,
}

_core.set_errors(CLASSES, words.python)
