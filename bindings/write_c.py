# SPDX-License-Identifier: MIT
"""The files for C: the table of all functions, its list of names, the map of the
library's symbols, and the layouts of structs for the Python extension."""

from __future__ import annotations

from typing import Any

import pretty
from comments import Complaint

Json = dict[str, Any]

_LIST_HEAD = """\
/* SPDX-License-Identifier: MIT */
/*
 * The names of all public functions but xmem_get_api, in the order of struct xmem_api, for api.c
 * and the tests. Made by bindings/generate.py.
 */
#ifndef XMEM_API_LIST_H
#define XMEM_API_LIST_H

#define XL_API(X)"""

_MAP_HEAD = """\
/*
 * While the major version is 0, each minor one is an ABI of its own: one node, which bears its
 * name, has all symbols. From 1.0 on a symbol is born in the node of its release, and stays.
 * Made by bindings/generate.py.
 */
"""

_LAYOUTS_HEAD = """\
/* SPDX-License-Identifier: MIT */
/*
 * The fields of the structs that the library answers with, which layout.c makes objects of. `size`
 * and reserved fields are left out. Made by bindings/generate.py from the public headers.
 */
#ifndef XP_LAYOUTS_H
#define XP_LAYOUTS_H

"""


def by_name(api: Json) -> dict[str, Json]:
    return {each["name"]: each for each in api["functions"]}


# ---- the table


def _folded(text: str) -> str:
    """A member of the struct in lines of at most 100 columns. A tab is 8 columns, and lines that
    continue begin with three."""
    lines, tabs = [], "\t"
    while len(text) > 100 - 8 * len(tabs):
        at = text.rfind(", ", 0, 100 - 8 * len(tabs) + 1)
        if at < 0:
            break
        lines.append(tabs + text[: at + 1])
        text, tabs = text[at + 2 :], "\t\t\t"
    return "".join(line + "\n" for line in [*lines, tabs + text])


def table_header(api: Json, template: str) -> str:
    """include/xmem/api.h: its template with a member for each function."""
    functions, text, since = by_name(api), "", ""
    for name in api["table"]:
        function = functions[name]
        if function["since"] != since:
            since = function["since"]
            text += f"\n\t/* since {since} */\n"
        parameters = [pretty.declare(each["type"], each["name"]) for each in function["parameters"]]
        pointer = pretty.declare(function["returns"], f"(*{name.removeprefix('xmem_')})")
        text += _folded(f"{pointer}({', '.join(parameters) or 'void'});")
    return template.replace("@MEMBERS@\n", text)


def table_list(api: Json) -> str:
    """lib/api_list.h."""
    names = "".join(f" \\\n\tX({name.removeprefix('xmem_')})" for name in api["table"])
    return _LIST_HEAD + names + "\n\n#endif\n"


def symbol_map(api: Json) -> str:
    """lib/libxmem.map."""
    major, minor, _ = api["version"].split(".")
    if major != "0":
        raise Complaint("from 1.0 on lib/libxmem.map has a node for each release, in which a"
                        " symbol stays: bindings/write_c.py has to learn that")
    names = "".join(f"\t\t{name};\n" for name in sorted(by_name(api)))
    return f"{_MAP_HEAD}XMEM_{major}.{minor} {{\n\tglobal:\n{names}\tlocal:\n\t\t*;\n}};\n"


# ---- layouts


def answers(api: Json) -> list[Json]:
    """Structs of which a binding makes an object: those that functions fill in or hand to a
    callback, and that have only numbers and texts."""
    types = [each["type"] for call in [*api["functions"], *api["callbacks"]]
             for each in call["parameters"] if each["name"].startswith("ret_")
             or call in api["callbacks"]]
    return [struct for struct in api["structs"]
            if any(f"struct {struct['name']} *" in kind for kind in types)
            and all(field["kind"] not in ("pointer", "struct") for field in struct["fields"])]


def shown(struct: Json) -> list[Json]:
    """The fields that say something."""
    return [field for field in struct["fields"] if not field["name"].startswith("reserved")
            and not (field["name"] == "size" and field["type"] == "size_t")]


def quoted(text: str, indent: str) -> str:
    """A string literal of C, in several lines if it is long."""
    room = 92 - 8 * len(indent)
    parts, rest = [], text
    while len(rest) > room:
        at = rest.rfind(" ", 0, room) + 1 or room
        parts.append(rest[:at])
        rest = rest[at:]
    literals = [part.replace("\\", "\\\\").replace('"', '\\"') for part in [*parts, rest]]
    return f"\n{indent}".join(f'"{part}"' for part in literals)


def _macro(name: str) -> str:
    return "XP_" + name.removeprefix("xmem_").upper()


def pascal(name: str) -> str:
    return "".join(word.capitalize() for word in name.removeprefix("xmem_").split("_"))


def layouts(api: Json) -> str:
    """bindings/python/src/layouts.h."""
    structs = answers(api)
    text = _LAYOUTS_HEAD + "enum xp_layout_id {\n"
    text += "".join(f"\t{_macro(struct['name'])},\n" for struct in structs)
    text += "\tXP_LAYOUTS\n};\n\n#endif\n\n/* The tables: layout.c alone includes them. */\n"
    text += "#ifdef XP_LAYOUT_TABLES\n\n"
    for struct in structs:
        text += f"static const struct xp_field {struct['name']}_fields[] = {{\n"
        for field in shown(struct):
            said = pretty.sentence(field.get("text")) or field["name"].replace("_", " ")
            text += (f"\tXP_FIELD({struct['name']}, {field['name']}, XP_{field['kind'].upper()},"
                     f" {field.get('count', 0)},\n\t\t{quoted(said, chr(9) * 2)}),\n")
        text += "};\n\n"
    text += "static const struct xp_layout xp_layouts[XP_LAYOUTS] = {\n"
    for struct in structs:
        said = pretty.sentence(struct.get("text")) or f"struct {struct['name']}."
        text += (f"\t[{_macro(struct['name'])}] = XP_LAYOUT({struct['name']},"
                 f" \"xmem.{pascal(struct['name'])}\",\n\t\t{quoted(said, chr(9) * 2)}),\n")
    return text + "};\n\n#endif\n"
