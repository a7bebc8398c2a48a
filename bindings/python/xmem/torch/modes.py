# SPDX-License-Identifier: MIT
"""Functions that run without the modes of torch, which change what its functions do.

A mode is active in a thread (TorchFunctionMode, TorchDispatchMode, `with torch.device("cuda")`).
It sees and may change each call of torch. Its author does not mean the calls here that hand a
tensor over: a tensor that is received must have the device and the contents that were sent. In
torch 1.13 a function mode also changes the results of methods of tensors that no mode has touched.
"""
from __future__ import annotations

import functools
from typing import Any, Callable, TypeVar

import torch
from torch import overrides
from torch.utils import _python_dispatch as dispatch

_Function = TypeVar("_Function", bound=Callable[..., Any])
#: How many modes of a kind this thread has.
count_functions: Callable[[], int] = torch._C._len_torch_function_stack
count_dispatches: Callable[[], int] = torch._C._len_torch_dispatch_stack


def _take_off(count: Callable[[], int], of: Any) -> list[Any]:
    """Take all modes of a kind from this thread's stack: the innermost comes first."""
    return [of._pop_mode() for _ in range(count())]


def without_modes(function: _Function) -> _Function:
    """Wrap a function, to run it as if the thread had no modes."""

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        if not count_functions() and not count_dispatches():
            return function(*args, **kwargs)
        functions = _take_off(count_functions, overrides)
        dispatches = _take_off(count_dispatches, dispatch)
        try:
            return function(*args, **kwargs)
        finally:
            for mode in reversed(dispatches):
                dispatch._push_mode(mode)
            for mode in reversed(functions):
                overrides._push_mode(mode)

    return run      # type: ignore[return-value]
