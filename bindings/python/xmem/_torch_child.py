# SPDX-License-Identifier: MIT
"""How a child by spawn or forkserver learns that its parent has called xmem.torch.install().

multiprocessing pickles two things for such a child: the data that prepares it, and its Process
object. Both contain the key of the program, which has a type of its own. The second key is pickled
together with the name of the pool. The first is not, because the child reads it before it has the
parent's sys.path.

The child installs as soon as it has imported torch. A child that does not use torch does not pay
for it: this module imports neither torch nor xmem.torch.
"""
from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from multiprocessing import context
from multiprocessing.process import AuthenticationString  # type: ignore[attr-defined]
from types import ModuleType
from typing import Any


def _adopt(name: str, cuda: bool) -> None:
    from .torch import state

    state.adopt(name, cuda=cuda)


class _Loader:
    """Loads torch by its own loader, and then installs."""

    def __init__(self, inner: Any, *what: Any) -> None:
        self._inner = inner
        self._what = what

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._inner
        module.__loader__ = self._inner
        self._inner.exec_module(module)
        _adopt(*self._what)


class _Finder:
    """Finds torch once, and gives it the loader above."""

    def __init__(self, *what: Any) -> None:
        self._what = what

    def find_spec(self, module: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if module != "torch":
            return None
        sys.meta_path.remove(self)      # type: ignore[arg-type]
        spec = find_spec("torch")
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, *self._what)  # type: ignore[assignment]
        return spec


def rebuild_key(key: bytes, name: str, cuda: bool) -> AuthenticationString:
    """In the child: make the key, and install the pool of that name; cuda: as of install()."""
    if "torch" in sys.modules:
        _adopt(name, cuda)
    else:
        sys.meta_path.insert(0, _Finder(name, cuda))    # type: ignore[arg-type]
    return AuthenticationString(key)


def reduce_key(key: AuthenticationString) -> Any:
    """In the parent: pickle the key, for ForkingPickler."""
    reduced: Any = key.__reduce__()     # it raises unless a child is being started
    popen: Any = context.get_spawning_popen()
    if not getattr(popen, "_xmem_prepared", False):
        popen._xmem_prepared = True
        return reduced
    from .torch import state

    name = state.installed()
    return (rebuild_key, (bytes(key), name, state.shares_cuda())) if name else reduced
