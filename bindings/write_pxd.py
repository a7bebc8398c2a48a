# SPDX-License-Identifier: MIT
"""The file for Cython: declarations of all types, constants and of the table."""

from __future__ import annotations

import keyword
import re
from typing import Any

import pretty
import write_c

Json = dict[str, Any]

_HEAD = """\
# SPDX-License-Identifier: MIT
# The C API for Cython, by the table of all functions: see include/xmem_python.h, and "Cython" in
# docs/python.md. Made by bindings/generate.py from the public headers.
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

cdef extern from "xmem_python.h" nogil:
"""
_TAIL = """
cdef extern from "xmem_python.h":
    # Where a module is imported, once in each: then xmem_table.pool_open(b"camera", NULL).
    int import_xmem() except -1
    const xmem_api *xmem_table
    # The guard gets the handle; NULL raises the thread's last error.
    object xmem_as_py(xmem_buffer *buffer)
    object xmem_raise_last_error()
"""
# A function neither raises an exception nor needs the GIL.
_QUIET = " noexcept nogil"


def _declared(kind: str, name: str) -> str:
    """A declaration: Cython's types have no word struct or enum, its names are no keywords, and
    functions say that they are quiet."""
    name += "_" * keyword.iskeyword(name)
    said = re.sub(r"\b(struct|enum) ", "", pretty.declare(kind, name))
    return said + _QUIET * ("(*)" in kind)


def _function(each: Json, name: str) -> str:
    parameters = ", ".join(_declared(one["type"], one["name"]) for one in each["parameters"])
    return f"{_declared(each['returns'], name)}({parameters}){_QUIET}"


def _folded(text: str, indent: str = " " * 8) -> str:
    """In lines of at most 100 columns; a parenthesis that is open needs no sign for that."""
    lines: list[str] = []
    while len(indent + text) > 100:
        at = text.rindex(", ", 0, 100 - len(indent))
        lines.append(indent + text[: at + 1])
        text, indent = text[at + 2 :], " " * 12
    return "".join(f"{line}\n" for line in [*lines, indent + text])


def _struct(name: str, fields: list[Json]) -> str:
    lines = [f"        {_declared(each['type'], each['name'])}\n" for each in fields]
    return f"\n    struct {name}:\n" + ("".join(lines) or "        pass\n")


def _constants(api: Json) -> str:
    """Cython learns their types here, and the values from C."""
    text = ""
    for group in api["flags"]:
        text += "\n" + "".join(f"    const uint32_t {each['name']}\n"
                               for each in group["constants"])
    text += "\n"
    for each in api["constants"]:
        kind = "const char *" if isinstance(each["value"], str) else f"const {each['type']} "
        text += f"    {kind}{each['name']}\n"
    for each in api["enums"]:
        names = "".join(f"        {one['name']}\n" for one in each["constants"])
        text += f"\n    enum {each['name']}:\n{names}"
    return text


def _types(api: Json) -> str:
    """Structs, those first that nobody looks into."""
    known = {each["name"] for each in api["structs"]}
    used = {name for each in [*api["functions"], *api["callbacks"]]
            for one in [each["returns"], *(x["type"] for x in each["parameters"])]
            for name in re.findall(r"struct (\w+)", one)}
    text = "".join(_struct(name, []) for name in sorted(used - known))
    text += "".join(_struct(each["name"], each["fields"]) for each in api["structs"]
                    if each["name"] != "xmem_api")
    for each in api["callbacks"]:
        text += "\n" + _folded("ctypedef " + _function(each, each["name"]), "    ")
    return text


def declarations(api: Json) -> str:
    """bindings/python/xmem/capi.pxd."""
    functions = write_c.by_name(api)
    table = "".join(_folded(_function(functions[name], f"(*{name.removeprefix('xmem_')})"))
                    for name in api["table"])
    head = "        uint32_t abi_version\n        uint32_t struct_size\n"
    return (_HEAD + (_types(api) + _constants(api)).removeprefix("\n") +
            f"\n    struct xmem_api:\n{head}{table}" + _TAIL)
