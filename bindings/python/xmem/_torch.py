# SPDX-License-Identifier: MIT
"""The functions of the extension for torch. They are in the same file as xmem._core, as a module of
their own, which only those import who use torch.
"""
import sys
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader

from . import _core, errors

_loader = ExtensionFileLoader(__name__, _core.__file__)
_spec = spec_from_loader(__name__, _loader, origin=_core.__file__)
assert _spec is not None
_module = module_from_spec(_spec)
_loader.exec_module(_module)
_module.set_errors(errors.CLASSES)  # type: ignore[attr-defined]
sys.modules[__name__] = _module
