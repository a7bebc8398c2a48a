# SPDX-License-Identifier: MIT
"""The pool that this process has installed, and whether it recognises tensors in pools.

installing.py has the functions that change torch's methods and the picklers. It gives them to
set_changes(), because they need modules that need this one.
"""
from __future__ import annotations

import errno
import os
import re
import threading
import warnings
from typing import Any, Callable

from .. import _torch, errors, holders
from . import pools
from .versions import UntypedStorage

_name: str | None = None        # of the pool for what this process shares
_sizes = pools.Sizes()
_installed = False
_cuda = False                   # tensors of GPUs, too
_recognises = False             # our methods and functions are in the place of torch's
_lock = threading.Lock()        # guards _recognises, its changes, and a new name
allocators = 0                  # how many allocators of ours are in use
_refused = False                # uninstall() was called: do not install by ourselves
_fallback = False
_warned = False
stock: dict[str, Any] = {}      # torch's own methods, while ours are in their place

_put_ours: Callable[[], None]           # puts our methods and picklers in the place of torch's
_put_stock: Callable[[], None]          # puts torch's back
_key_goes_along: Callable[[bool], None]     # sets whether children are told of the pool
_can_change = False             # whether these three are set
_early: list[tuple[str, bool, bool]] = []     # arguments of adopt() before that


def set_changes(put_ours: Callable[[], None], put_stock: Callable[[], None],
                key_goes_along: Callable[[bool], None]) -> None:
    """Set the functions that change torch and multiprocessing. installing.py calls it."""
    global _put_ours, _put_stock, _key_goes_along, _can_change
    _put_ours, _put_stock, _key_goes_along = put_ours, put_stock, key_goes_along
    _can_change = True
    while _early:
        adopt(*_early.pop(0))


def pool() -> pools.Pool:
    """Get the pool for tensors that this process shares: that of install(), or a new one."""
    global _name
    if _name is None:
        with _lock:
            if _name is None:
                name = pools.new_name()
                pools.join(name, _sizes, existing=False)
                _name = name        # which others have, once the pool is there
    return pools.join(_name, _sizes)


def _advice(error: errors.Error) -> str:
    """Get advice for an error of a limit, by the words of the library's message; "": there is
    none."""
    text = str(error)
    if isinstance(error, errors.HostGone):
        return ("uninstall() and install() make a new pool. Tensors in the old one can still be "
                "used; send tensor.clone() of them.")
    if "payload files" in text:
        return ("The pool has as many files as it may have, whatever slots= and nbytes= are: send "
                "fewer and larger tensors, such as one that is stacked, or drop some first.")
    if error.errno == errno.EUSERS:
        pool = re.search("pool '([^']*)'", text)    # it may not be the installed one yet
        return ("Use install(clients=...), up to 256, in the process that makes the pool, which "
                "then lets in more processes" + holders.inside(pool and pool[1]) + ".")
    if "demand_bytes" in text:
        return "Use install(nbytes=...), and this process may make more."
    if error.errno == errno.ENOMEM or "too little memory" in text:
        return "Memory is lacking, and not slots= or nbytes=."
    if error.errno in (errno.EMFILE, errno.ENFILE) or "open files" in text:
        return "The system's limit for open files is reached, and not slots= or nbytes=."
    if error.errno == errno.ERANGE:
        return "install(slots=..., clients=...) that ask for no more join the pool that is there."
    if "slot" in text:
        return ("Use install(slots=...), up to 65536, in the process that makes the pool: each "
                "shared tensor takes one of its slots.")
    return ""


def falls_back(error: errors.Error) -> bool:
    """Must torch share the tensor by itself, after this error?"""
    global _warned
    if not _fallback:
        advice = _advice(error)
        if advice:              # what to do comes first, and then the library's words
            error.strerror = f"{advice} {error.strerror}"
        error.add_note("xmem.torch.install(fallback=True) lets torch share such tensors in its own "
                       "way.")
        return False
    if not _warned:
        _warned = True
        warnings.warn(f"tensors go torch's own way, because the pool fails: {error}",
                      RuntimeWarning, stacklevel=2)
    return True


def is_shared_by_torch(storage: Any) -> bool:
    """Does the storage lie in torch's own shared memory?"""
    return bool(stock.get("is_shared", UntypedStorage.is_shared)(storage))


# ---- what lies in a pool is recognised ----


def recognise() -> None:
    """This process has tensors in a pool: from now on they are sent by their token."""
    global _recognises

    with _lock:
        if not _recognises:
            _put_ours()
            _recognises = True


def is_idle() -> bool:
    """Is there nothing to recognise, and nothing installed? Then make everything torch's own
    again.

    The last tensor of a pool may go in any thread, also in C++. So this is called when torch's
    functions are used the next time.
    """
    global _recognises

    if _installed or _torch.holds() or allocators or pools.lent:
        return False
    with _lock:
        if _installed or _torch.holds() or allocators:
            return False        # another thread has made one, and recognises it after that
        if _recognises:
            _recognises = False
            _put_stock()
    return True


# ---- what is installed ----


def install(name: str | None) -> None:
    """Install the pool of that name; None: the one that is known."""
    global _installed, _name, _refused

    _refused = False
    if name is not None:
        _name = name
    if _installed:
        _torch.set_installed(_name)
        return
    _installed = True
    _torch.set_installed(_name)
    recognise()
    _key_goes_along(True)


def uninstall() -> None:
    """Install no pool any more."""
    global _installed, _refused

    _refused = True
    _installed = False
    _torch.set_installed(None)
    _key_goes_along(False)
    is_idle()


def settle(name: str, sizes: pools.Sizes, fallback: bool, cuda: bool) -> None:
    """Join the pool with these settings, and keep them; after an error the old settings stay."""
    global _sizes, _fallback, _cuda
    before = _sizes, _fallback, _cuda
    _sizes, _fallback, _cuda = sizes, fallback, cuda
    try:
        try:
            pools.join(name, sizes, existing=False)
        except errors.Error as error:
            if not falls_back(error):
                raise
    except BaseException:
        _sizes, _fallback, _cuda = before
        raise


def installed() -> str | None:
    """The name of the pool that is installed; None: none is."""
    return _name if _installed else None


def shares_cuda() -> bool:
    """Are tensors of GPUs to go through the pool, too?"""
    return _installed and _cuda


def live_name() -> str | None:
    """The name of this process's pool; None: it has none, or the host of that pool has ended."""
    return None if pools.is_gone(_name) else _name


def adopt(name: str, installs: bool = True, cuda: bool = False) -> None:
    """A process that has this pool has sent a message or has started this process.

    installs: that process had installed the pool, so this process installs it, unless it has
    uninstalled. cuda: for tensors of GPUs, too.
    """
    global _cuda

    if not _can_change:         # torch is imported by a module of this package
        _early.append((name, installs, cuda))
        return
    if _installed:
        if installs and name != _name and pools.is_gone(_name):
            install(name)
        return
    if installs and not _refused:
        _cuda = cuda
        install(name if _name is None else None)
    else:
        recognise()


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
