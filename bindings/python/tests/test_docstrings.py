# SPDX-License-Identifier: MIT
"""The output of help(): each public function, method and attribute has a docstring, and callables
have a signature. types.sh checks that those of the extension agree with its stub."""

import inspect
from collections.abc import Iterator
from types import FunctionType
from typing import Any

import pytest
import xmem
from xmem import _core, _torch

CLASSES = [each for name in xmem.__all__ if inspect.isclass(each := getattr(xmem, name))]
FUNCTIONS = [each for name in xmem.__all__ if inspect.isroutine(each := getattr(xmem, name))]
#: Attributes that Python defines, or that are for the package alone.
NOT_OURS = {"__array__", "__dlpack__", "__dlpack_device__", "__arrow_c_schema__",
            "__arrow_c_array__", "__arrow_c_device_array__", "__array_interface__",
            "__cuda_array_interface__"}


def attributes(cls: type) -> Iterator[tuple[str, Any]]:
    """Get the names that cls and its bases of this package define, including private ones of the
    extension."""
    for base in cls.__mro__:
        if not base.__module__.startswith("xmem"):
            continue
        for name, value in vars(base).items():
            if isinstance(value, (staticmethod, classmethod)):
                value = value.__func__
            described = inspect.isroutine(value) or inspect.isdatadescriptor(value)
            private = name.startswith("_") and (isinstance(value, FunctionType) or
                                                inspect.ismemberdescriptor(value))
            if described and (name in NOT_OURS or not name.startswith("__") and not private):
                yield f"{base.__name__}.{name}", value


def described() -> list[tuple[str, Any]]:
    found: dict[str, Any] = {}
    for cls in CLASSES:
        if not issubclass(cls, (tuple, int)):
            found.update(attributes(cls))
    return sorted(found.items(), key=lambda item: item[0])


DESCRIBED = described()


@pytest.mark.parametrize("name", [name for name in xmem.__all__ if name != "NOBODY"])
def test_what_is_exported_says_what_it_is(name: str) -> None:
    text = inspect.getdoc(getattr(xmem, name)) or ""
    assert len(text) > 10 and "." in text, name


@pytest.mark.parametrize("name, value", DESCRIBED, ids=[name for name, _ in DESCRIBED])
def test_attributes_say_what_they_are(name: str, value: Any) -> None:
    text = inspect.getdoc(value)
    assert text and text.endswith((".", "?")), f"{name}: {text!r}"


@pytest.mark.parametrize("name, value", [each for each in DESCRIBED if callable(each[1])],
                         ids=[name for name, value in DESCRIBED if callable(value)])
def test_methods_have_signatures(name: str, value: Any) -> None:
    parameters = list(inspect.signature(value).parameters.values())
    assert parameters and parameters[0].name in ("self", "cls"), name
    text = inspect.getdoc(value) or ""
    first = text.partition("\n")[0]
    assert "(" not in first.partition(" ")[0], f"{name} says its signature twice: {first}"


@pytest.mark.parametrize("function", [*FUNCTIONS, *(value for module in (_core, _torch)
                                                    for value in vars(module).values()
                                                    if inspect.isbuiltin(value))],
                         ids=lambda function: f"{function.__module__}.{function.__name__}")
def test_functions_have_signatures(function: Any) -> None:
    inspect.signature(function)
    assert (inspect.getdoc(function) or "").endswith(".")


def test_there_is_something_to_look_at() -> None:
    names = {name for name, _ in DESCRIBED}
    assert set(dir(xmem)) == {*xmem.__all__, "typing", "__version__", "__doc__"}
    assert {"Pool.get", "Guard.token", "Guard.__dlpack__", "BufferPool.subscribe",
            "Subscription.lost", "Pool._acquire"} <= names
    assert len(names) > 90 and len(CLASSES) > 25 and len(FUNCTIONS) > 5


def test_signatures_say_what_is_left_out() -> None:
    publish = inspect.signature(xmem.BufferGuard.publish).parameters
    assert publish["keep"].default is False and publish["stream"].default is None
    assert publish["timestamp_ns"].kind is inspect.Parameter.KEYWORD_ONLY
    get = inspect.signature(xmem.BufferPool.get).parameters
    assert get["meta_index"].kind is inspect.Parameter.POSITIONAL_ONLY
