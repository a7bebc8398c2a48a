# SPDX-License-Identifier: MIT
"""Types of elements: names, numpy's, torch's and DLPack's, as the number that metadata has.

A name has one meaning with or without numpy and torch: their types are known by their names, and
numpy's short names ("<f4", "u1") are in a table. numpy is only imported for attributes that numpy
alone knows.
"""
from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from ._constants import DTYPES
from .typing import DTypeLike

if TYPE_CHECKING:
    import numpy

# The attributes that programs read from the dtype of an array of any library.
_OF_NUMPY = frozenset(("alignment", "base", "byteorder", "char", "fields", "hasobject", "isnative",
                       "itemsize", "kind", "names", "num", "str", "subdtype", "type"))


class DType(str):
    """The name of a type of elements: a str, which compares and prints as a str.

    It also has the attributes of the numpy.dtype of that name, such as ``kind``, ``itemsize`` and
    ``type``, for functions that read them. The first use of one imports numpy. Without numpy, or
    if numpy has no such type, there is no such attribute. Pickled, it is a plain str.
    """

    __slots__ = ()

    @property
    def name(self) -> str:
        """The name itself, as numpy.dtype has it."""
        return str(self)

    def __getattr__(self, attribute: str) -> Any:
        if attribute in _OF_NUMPY:
            try:
                return getattr(numpy_type(self), attribute)
            except (ImportError, TypeError) as error:
                raise AttributeError(f"{self!r} has no {attribute}: {error}") from None
        raise AttributeError(f"'DType' object has no attribute {attribute!r}")

    def __reduce__(self) -> tuple[Any, ...]:
        return str, (str(self),)


#: The number of each type, by its name.
NUMBERS: dict[str, int] = {name: dtype.number for name, dtype in DTYPES.items()}
#: The name of each type, by its number.
NAMES: dict[int, DType] = {number: DType(name) for name, number in NUMBERS.items()}


def numpy_type(name: str) -> numpy.dtype[Any]:
    """Get the numpy.dtype of that name, or that of ml_dtypes if numpy has none.

    Raises TypeError if there is no such type, or no ml_dtypes; ImportError without numpy.
    """
    import numpy
    try:
        return numpy.dtype(str(name))
    except TypeError:
        pass
    try:
        import ml_dtypes
    except ImportError:
        raise TypeError(f"numpy has no {name}: install ml_dtypes, or use DLPack") from None
    if not hasattr(ml_dtypes, name):
        raise TypeError(f"neither numpy nor ml_dtypes has {name}: use DLPack")
    found: numpy.dtype[Any] = numpy.dtype(getattr(ml_dtypes, name))
    return found

# numpy's names for C's types, and Python's own; where int is of 32 bits and long of 64.
_ALIASES = {"float": "float64", "double": "float64", "half": "float16", "single": "float32",
            "int": "int64", "uint": "uint64", "bool_": "bool", "bool8": "bool",
            "complex": "complex128", "csingle": "complex64", "cdouble": "complex128",
            "byte": "int8", "ubyte": "uint8", "short": "int16", "ushort": "uint16",
            "intc": "int32", "uintc": "uint32", "long": "int64", "ulong": "uint64",
            "longlong": "int64", "ulonglong": "uint64", "int_": "int64", "float_": "float64",
            "intp": "int64", "uintp": "uint64"}
_KINDS = {"int": "i", "uint": "u", "float": "f", "complex": "c"}


def _short_names() -> dict[str, str]:
    """The struct module's letters, and numpy's: "f" and "f4" are float32, "b" and "i1" int8."""
    found = {"b1": "bool", "l": "int64", "L": "uint64", "F": "complex64", "D": "complex128"}
    for name, dtype in DTYPES.items():
        if dtype.format is not None:
            found[dtype.format] = name
        base = name.rstrip("0123456789")
        if base in _KINDS and base != name:
            found[f"{_KINDS[base]}{dtype.nbytes}"] = name
    return found


_SHORT = _short_names()
_OTHER_ORDER = ">" if sys.byteorder == "little" else "<"
_known: dict[Any, int] = {}


def number(dtype: DTypeLike) -> int:
    """Get the number of a type: a name, or a type of numpy, torch or Python.

    Raises TypeError if such elements cannot be shared, or have the other byte order.
    """
    try:
        return _known[dtype]
    except (KeyError, TypeError):
        pass
    if not isinstance(dtype, str) and getattr(dtype, "isnative", True) is False:
        raise _foreign(dtype)
    name = dtype if isinstance(dtype, str) else getattr(dtype, "name", None)
    if not isinstance(name, str) and isinstance(getattr(dtype, "_type_", None), str):
        name = getattr(dtype, "_type_")                 # noqa: B009 (a number of ctypes)
    if not isinstance(name, str):
        name = getattr(dtype, "__name__", None) or str(dtype)
    name = name.rpartition(".")[2]
    found = NUMBERS.get(_ALIASES.get(name, name)) or _short(dtype, name)
    if not found:
        raise TypeError(f"elements of type {dtype!r} cannot be shared; "
                        f"these can: {', '.join(NUMBERS)}")
    try:
        _known[dtype] = found
    except TypeError:
        pass
    return found


def _short(dtype: Any, name: str) -> int | None:
    """The number of a type by numpy's short name for it, with its byte order or without."""
    order, rest = name[:1], name[1:]
    if order not in "<>=|@":
        order, rest = "", name
    full = _SHORT.get(rest)
    if full and order == _OTHER_ORDER and item_bytes(NUMBERS[full]) > 1:
        raise _foreign(dtype)
    return NUMBERS[full] if full else None


def _foreign(dtype: Any) -> TypeError:
    return TypeError(f"elements of type {dtype!r} have the other byte order, which cannot be "
                     "shared: convert them first, as "
                     "array.astype(array.dtype.newbyteorder('='))")


def item_bytes(number: int) -> int:
    """Bytes of one element, all of its lanes."""
    return (number >> 8 & 0xff) * (number >> 16) // 8
