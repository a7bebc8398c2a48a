# SPDX-License-Identifier: MIT
"""How a child by spawn or forkserver learns that its parent has called xmem.torch.install().

multiprocessing pickles two things for such a child: what prepares it, and its Process object. Both
have the key of the program, by a type of its own. The second key brings the name of the pool along.
The first does not, because the child reads it before it has the parent's sys.path.

The child installs as soon as it has imported torch. One that does not use it does not pay for it:
this module imports neither torch nor xmem.torch.
"""
from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from multiprocessing import context
from multiprocessing.process import AuthenticationString  # type: ignore[attr-defined]
from types import ModuleType
from typing import Any


def _adopt(name: str) -> None:
    from .torch import state

    state.adopt(name)


class _Loader:
    """Does what the loader of torch does, and then installs."""

    def __init__(self, inner: Any, name: str) -> None:
        self._inner = inner
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._inner
        module.__loader__ = self._inner
        self._inner.exec_module(module)
        _adopt(self._name)


class _Finder:
    """Finds torch once, with the loader above."""

    def __init__(self, name: str) -> None:
        self._name = name

    def find_spec(self, module: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if module != "torch":
            return None
        sys.meta_path.remove(self)      # type: ignore[arg-type]
        spec = find_spec("torch")
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self._name)  # type: ignore[assignment]
        return spec


def rebuild_key(key: bytes, name: str) -> AuthenticationString:
    """In the child: the key, and the name of the pool."""
    if "torch" in sys.modules:
        _adopt(name)
    else:
        sys.meta_path.insert(0, _Finder(name))  # type: ignore[arg-type]
    return AuthenticationString(key)


def reduce_key(key: AuthenticationString) -> Any:
    """In the parent, for ForkingPickler."""
    reduced: Any = key.__reduce__()     # raises unless a child is being started
    popen: Any = context.get_spawning_popen()
    if not getattr(popen, "_xmem_prepared", False):
        popen._xmem_prepared = True
        return reduced
    from .torch import state

    name = state.installed()
    return (rebuild_key, (bytes(key), name)) if name else reduced
