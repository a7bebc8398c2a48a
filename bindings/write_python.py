# SPDX-License-Identifier: MIT
"""The files for Python: numbers, types of elements, errors, types of answers."""

from __future__ import annotations

import textwrap
from typing import Any

import pretty
import write_c
from write_c import pascal

Json = dict[str, Any]

_HEAD = '''\
# SPDX-License-Identifier: MIT
"""Numbers of the C API: flags, enums, constants, types of elements, errors.

Made by bindings/generate.py from the public headers.
"""

from __future__ import annotations

import enum
from typing import Final, NamedTuple
'''

_DTYPE = '''

class DType(NamedTuple):
    """The type of an element."""

    #: numpy's and torch's name of it
    name: str
    #: what metadata has: code | bits << 8 | lanes << 16
    number: int
    #: DLPack's number of what the bits mean (DtypeCode)
    code: int
    #: of one number
    bits: int
    #: numbers in one element
    lanes: int
    #: of one element, all lanes
    nbytes: int
    #: of the buffer protocol, as numpy writes it; None: it has none
    format: str | None
    #: what numpy alone calls it; None: numpy has no such type
    numpy: str | None


#: The types of elements that have a name; many more can be made of a code, bits and lanes.
DTYPES: Final[dict[str, DType]] = {
'''

# The buffer protocol's characters, by what the bits mean and how many they are.
_FORMATS = {
    "INT": {8: "b", 16: "h", 32: "i", 64: "q"}, "UINT": {8: "B", 16: "H", 32: "I", 64: "Q"},
    "FLOAT": {16: "e", 32: "f", 64: "d"}, "COMPLEX": {64: "Zf", 128: "Zd"}, "BOOL": {8: "?"},
}
_SENTINEL = "the first number that has no meaning yet"


def _doc(value: Any, indent: str = "") -> str:
    """A comment that documentation tools take for what follows."""
    text = pretty.sentence(value)
    lines = textwrap.wrap(text, 96 - len(indent), break_on_hyphens=False) if text else []
    return "".join(f"{indent}#: {line}\n" for line in lines)


def _docstring(text: str) -> str:
    text = text.replace("\\", "\\\\").replace('"""', "'''")
    lines = textwrap.wrap(text, 92, break_on_hyphens=False)
    if len(lines) == 1 and not lines[0].endswith('"'):
        return f'    """{lines[0]}"""\n\n'
    return '    """' + "\n    ".join(lines) + '\n    """\n\n'


def _class(name: str, base: str, text: str, prefix: str, constants: list[Json]) -> str:
    members = "".join(
        _doc(each.get("text"), "    ") + f"    {each['name'].removeprefix(prefix)} ="
        f" {each['value']:#x}\n" if base == "enum.IntFlag" else
        _doc(each.get("text"), "    ") + f"    {each['name'].removeprefix(prefix)} ="
        f" {each['value']}\n"
        for each in constants
    )
    return f"\n\nclass {name}({base}):\n{_docstring(text)}{members}"


def _prefix(names: list[str]) -> str:
    """The common beginning of all names, up to a '_'."""
    first, last = min(names), max(names)
    size = 0
    while size < min(len(first), len(last)) and first[size] == last[size]:
        size += 1
    return first[: first.rfind("_", 0, size) + 1]


def _enum(enum: Json) -> tuple[str, list[Json]]:
    """The class of an enum, and its constants that are none of its numbers."""
    inside = [each for each in enum["constants"] if each.get("text") != _SENTINEL]
    outside = [each for each in enum["constants"] if each.get("text") == _SENTINEL]
    text = pretty.sentence(enum.get("text")) or f"What C calls enum {enum['name']}."
    prefix = _prefix([each["name"] for each in inside])
    return _class(pascal(enum["name"]), "enum.IntEnum", text, prefix, inside), outside


def _dtypes(api: Json) -> list[Json]:
    """Those that the headers name, and all other types of 8 bits that have a code."""
    codes = next(enum["constants"] for enum in api["enums"] if enum["name"] == "xmem_dtype_code")
    names = {each["value"]: each["name"].removeprefix("XMEM_DTYPE_CODE_") for each in codes}
    found = {each["name"]: each for each in api["dtypes"]}
    for code, name in names.items():
        if name.startswith("FLOAT8_"):
            found.setdefault(name.lower(), {
                "name": name.lower(), "number": code | 8 << 8 | 1 << 16, "code": code,
                "bits": 8, "lanes": 1, "bytes": 1})
    return [each | {"what": names[each["code"]]} for each in found.values()]


def _dtype(each: Json) -> str:
    form = _FORMATS.get(each["what"], {}).get(each["bits"]) if each["lanes"] == 1 else None
    numpy = each["name"] if form else None
    values = [each["name"], each["number"], each["code"], each["bits"], each["lanes"],
              each["bytes"], form, numpy]
    words = ", ".join(f'"{value}"' if isinstance(value, str) else str(value) for value in values)
    return f'    "{each["name"]}": DType({words}),\n'


def _errors(api: Json) -> str:
    text = "\n#: The functions that name an error, by its name.\n"
    text += "ERRORS: Final[dict[str, tuple[str, ...]]] = {\n"
    for error in api["errors"]:
        words = ", ".join(f'"{name}"' for name in error["functions"]) + ","
        lines = textwrap.wrap(words, 90, break_on_hyphens=False)
        text += f'    "{error["name"]}": (\n' + "".join(f"        {x}\n" for x in lines)
        text += "    ),\n"
    return text + "}\n"


def constants(api: Json) -> str:
    """bindings/python/xmem/_constants.py."""
    text, further = _HEAD, []
    for group in api["flags"]:
        prefix = group["prefix"]
        name = pascal(prefix.removeprefix("XMEM_").rstrip("_").lower()) + "Flags"
        text += _class(name, "enum.IntFlag", f"Flags: {prefix}*.", prefix, group["constants"])
    for each in api["enums"]:
        part, outside = _enum(each)
        text += part
        further += outside
    text += "\n\n"
    for each in [*api["constants"], *further]:
        value = f'"{each["value"]}"' if isinstance(each["value"], str) else each["value"]
        text += _doc(each.get("text")) + f"{each['name'].removeprefix('XMEM_')}: Final = {value}\n"
    text += _DTYPE + "".join(_dtype(each) for each in _dtypes(api)) + "}\n"
    text += "#: DTYPES by number.\n"
    text += "DTYPE_OF_NUMBER: Final[dict[int, DType]] = {x.number: x for x in DTYPES.values()}\n"
    return text + _errors(api)


_ANSWERS_HEAD = '''# SPDX-License-Identifier: MIT
"""Types of the answers that src/layout.c makes: struct sequences, one for each C struct.

Made by bindings/generate.py from the public headers.
"""

import builtins
from typing import Any, Final, final
'''
_KINDS = {"unsigned": "int", "signed": "int", "chars": "str", "bytes": "builtins.bytes"}


def answers(api: Json) -> str:
    """bindings/python/xmem/_answers.pyi."""
    text = _ANSWERS_HEAD
    for struct in write_c.answers(api):
        said = pretty.sentence(struct.get("text")) or f"struct {struct['name']}."
        text += f"\n\n@final\nclass {pascal(struct['name'])}(tuple[Any, ...]):\n"
        text += _docstring(said)
        for field in write_c.shown(struct):
            kind = _KINDS[field["kind"]]
            if field.get("count") and kind == "int":
                kind = f"tuple[{kind}, ...]"
            text += _doc(field.get("text"), "    ")
            text += f"    {field['name']}: Final[{kind}]\n"
    return text
