# SPDX-License-Identifier: MIT
"""Types of elements: names, numpy's, torch's and DLPack's, as the number that metadata has.

Nothing here imports numpy or torch: a type of theirs is known by its name.
"""
from __future__ import annotations

from typing import Any

_INT, _UINT, _FLOAT, _BFLOAT, _COMPLEX, _BOOL, _E4M3FN, _E5M2 = 0, 1, 2, 4, 5, 6, 10, 12


def _number(code: int, bits: int, lanes: int = 1) -> int:
    return code | bits << 8 | lanes << 16


#: The number of each type, by its name.
NUMBERS: dict[str, int] = {
    "int8": _number(_INT, 8), "int16": _number(_INT, 16),
    "int32": _number(_INT, 32), "int64": _number(_INT, 64),
    "uint8": _number(_UINT, 8), "uint16": _number(_UINT, 16),
    "uint32": _number(_UINT, 32), "uint64": _number(_UINT, 64),
    "float16": _number(_FLOAT, 16), "float32": _number(_FLOAT, 32),
    "float64": _number(_FLOAT, 64), "bfloat16": _number(_BFLOAT, 16),
    "complex64": _number(_COMPLEX, 64), "complex128": _number(_COMPLEX, 128),
    "bool": _number(_BOOL, 8), "float8_e4m3fn": _number(_E4M3FN, 8),
    "float8_e5m2": _number(_E5M2, 8),
}
#: The name of each type, by its number.
NAMES: dict[int, str] = {number: name for name, number in NUMBERS.items()}

_ALIASES = {"float": "float64", "double": "float64", "half": "float16", "int": "int64",
            "bool_": "bool", "complex": "complex128"}
_known: dict[Any, int] = {}


def number(dtype: Any) -> int:
    """Get the number of a type: a name, or a type of numpy, torch or Python.

    Raises TypeError if it is none that can be shared.
    """
    try:
        return _known[dtype]
    except (KeyError, TypeError):
        pass
    name = dtype if isinstance(dtype, str) else getattr(dtype, "name", None)
    if not isinstance(name, str):
        name = getattr(dtype, "__name__", None) or str(dtype)
    name = name.rpartition(".")[2]
    name = _ALIASES.get(name, name)
    if name not in NUMBERS:
        name = _numpy_name(dtype)
    if name not in NUMBERS:
        raise TypeError(f"elements of type {dtype!r} cannot be shared; "
                        f"these can: {', '.join(NUMBERS)}")
    try:
        _known[dtype] = NUMBERS[name]
    except TypeError:
        pass
    return NUMBERS[name]


def _numpy_name(dtype: Any) -> str:
    """What numpy calls it: "<f4" and "u1" are its ways to write a type."""
    try:
        import numpy
        found = numpy.dtype(dtype)
    except (ImportError, TypeError):
        return ""
    return found.name if found.isnative else ""


def item_bytes(number: int) -> int:
    """Bytes of one element, all of its lanes."""
    return (number >> 8 & 0xff) * (number >> 16) // 8
