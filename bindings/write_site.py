# SPDX-License-Identifier: MIT
"""Pages of the documentation site about the C API, in reStructuredText, made of api.json and
man/api: a page for each header, with its functions, structs and constants, and a page of errors.
They say what the manual pages say, with links."""

from __future__ import annotations

import re
from typing import Any

import pretty
import write_man

Json = dict[str, Any]

_WORDS = re.compile(
    r"(?P<term>(?<!\S)\*\w+\*)|`(?P<code>[^`]+)`|@(?P<parameter>[a-z]\w*)"
    r"|\b(?P<page>xmem(?:_[a-z]+)?)\(7\)|(?P<header>\b(?:xmem/)?[a-z]+\.h\b)"
    r"|\bstruct (?P<struct>xmem_\w+)|\b(?P<name>xmem_[a-z_]+[a-z](?:\(3\)|\(\))?|XMEM_[A-Z0-9_]+)"
    r"|(?P<special>[\\*`_|])")


class _Site:
    """The pages of one description."""

    def __init__(self, api: Json, notes: dict[str, Any]) -> None:
        self.api, self.notes = api, notes
        self.headers = {each["name"] for each in api["headers"]}
        self.structs = {each["name"] for each in api["structs"]}
        self.structs |= {each["type"].split()[-1] for each in api["handles"]}
        self.functions = {each["name"] for each in api["functions"]}
        self.names = {each["name"] for key in ("constants", "macros", "enums", "callbacks")
                      for each in api[key]}
        self.names |= {constant["name"] for key in ("enums", "flags") for each in api[key]
                       for constant in each["constants"]}

    def _word(self, found: re.Match[str]) -> str:
        """A word of prose that is a name, with a link to what it names."""
        kind, word = str(found.lastgroup), found[str(found.lastgroup)]
        if kind == "term":
            return word
        if kind == "code":
            return f"\\ ``{word}``\\ "
        if kind == "parameter":
            return f"\\ *{word}*\\ "
        if kind == "special":
            return "\\" + word
        if kind in ("page", "header"):
            header = word if kind == "header" else word.replace("_", "/") + ".h"
            for each in (header, f"xmem/{header}"):
                if each in self.headers:
                    return f"\\ :doc:`{word} <{page(each)}>`\\ "
        name = re.sub(r"\W.*", "", word)
        if name in self.functions:
            return f"\\ :c:func:`{name}`\\ "
        if name in self.structs and kind == "struct":
            return f"\\ :c:struct:`struct {name} <{name}>`\\ "
        if name in self.names:
            return f"\\ :c:data:`{name}`\\ "
        return re.sub(r"([\\*`_|])", r"\\\1", found[0])

    def text(self, line: str) -> str:
        """A paragraph."""
        return _WORDS.sub(self._word, line).replace("\\ \\ ", "\\ ")

    def sentence(self, value: Any) -> str:
        """Prose in one paragraph, which begins with a capital and ends in a full stop."""
        said = pretty.sentence(value)
        return self.text(said[:1].upper() + said[1:] + ("" if said.endswith((".", "?")) else "."))

    def prose(self, value: Any) -> list[str]:
        """Paragraphs, and lines that stay as they are."""
        lines: list[str] = []
        table = False
        for line in pretty.unwrapped(value):
            if line.startswith("\t"):
                lines += [] if table else ["", "::", ""]
                lines.append("    " + line[1:].expandtabs(8))
            elif line or table:
                lines += ["", self.text(line)]
            table = line.startswith("\t") or (table and not line)
        return [*lines, ""]

    def function(self, function: Json) -> list[str]:
        """The entry of a function: what it does, takes, returns, owns, and how it fails."""
        result, errors = write_man.split_result(function)
        lines = ["", self.sentence(function["purpose"]), *self.prose(function.get("text"))]
        for each in function["parameters"]:
            said = pretty.sentence(each.get("text")) or write_man.general_rule(each, self.api)
            lines += [f":param {each['name']}: {self.text(said)}"] if said else []
        if result:
            lines.append(f":returns: {self.text(' '.join(write_man.result_sentence(result)))}")
        rules = "see :doc:`xmem` and :doc:`" + page(function["header"]) + "`"
        for each in errors:
            said = self.text(pretty.sentence(each.get("text"))) or rules
            lines.append(f":retval -{', -'.join(each['names'])}: {said}")
        for key in ("ownership", "threads", "since"):
            said = pretty.sentence(function.get(key))
            if key == "since" and "later" in function:
                said += "; " + pretty.sentence(function["later"])
            lines += [f":{key}: {self.text(said)}"] if said else []
        notes = self.notes.get(f"{function['name']}.3")
        return [*lines, *(["", ".. rubric:: Notes", *self.prose(notes)] if notes else [])]

    def struct(self, struct: Json) -> list[str]:
        """The entry of a struct, with its fields."""
        lines = self.prose(struct.get("text"))
        for field in struct["fields"] if struct["name"] != "xmem_api" else []:
            said = self.text(pretty.sentence(field.get("text")))
            lines += _entry("member", pretty.declare(field["type"], field["name"]), ["", said])
        return lines

    def constants(self, listed: list[Json], kind: str) -> list[str]:
        """The entries of constants, with their values."""
        lines: list[str] = []
        for each in listed:
            value = f"``{each['value']}``" if "value" in each else ""
            name = each["name"]
            if "parameters" in each:
                name += f"({', '.join(each['parameters'])})"
            lines += _entry(kind, name, ["", value, *self.prose(each.get("text"))])
        return lines

    def header(self, header: Json) -> str:
        """The page of a header."""
        def mine(key: str) -> list[Json]:
            return [each for each in self.api[key] if each["header"] == header["name"]]

        title = header["name"]
        parts: dict[str, list[str]] = {"Functions": [], "Structs": [], "Constants": []}
        for each in mine("functions"):
            parts["Functions"] += _entry("function", _declaration(each), self.function(each))
        for each in self.api["handles"]:
            if each["made_by"][0] in [one["name"] for one in mine("functions")]:
                parts["Structs"] += _entry("struct", each["type"].split()[-1], ["", self.text(
                    f"A handle. Made by: {', '.join(each['made_by'])}. Dropped by: "
                    f"{', '.join(each['dropped_by'])}.")])
        for each in mine("structs"):
            parts["Structs"] += _entry("struct", each["name"], self.struct(each))
        for each in mine("callbacks"):
            parts["Structs"] += _entry("type", _declaration(each), [])
        for each in mine("enums"):
            parts["Constants"] += _entry("enum", each["name"], [
                *self.prose(each.get("text")), *self.constants(each["constants"], "enumerator")])
        flags = [each for group in self.api["flags"] for each in group["constants"]
                 if each["header"] == header["name"]]
        parts["Constants"] += self.constants(flags + mine("constants") + mine("macros"), "macro")
        lines = [title, "=" * len(title), *self.prose(header["text"])]
        notes = self.notes.get(f"{write_man.header_page(title)}.7")
        if notes:
            lines += [".. rubric:: Notes", *self.prose(notes)]
        for name, entries in parts.items():
            lines += [name, "-" * len(name), *entries] if entries else []
        return "\n".join(lines) + "\n"

    def errors(self) -> str:
        """The page of errors: the functions that can have each."""
        lines = ["Errors", "======", "", "Every function that fails sets an error, with a message: "
                 "see :doc:`xmem` and :c:func:`xmem_get_last_error`. This page lists, for each "
                 "error, the functions that can have it.", ""]
        for each in self.api["errors"]:
            lines += [f"{each['name']} ({each['number']})",
                      "    " + self.text(", ".join(each["functions"])), ""]
        return "\n".join(lines)


def _entry(kind: str, name: str, lines: list[str]) -> list[str]:
    """A directive of the domain C, with its contents."""
    return ["", f".. c:{kind}:: {name}", *("    " + line if line else "" for line in lines), ""]


def _declaration(function: Json) -> str:
    head, parameters = write_man.prototype(function)
    return f"{head}({', '.join(parameters) or 'void'})"


def page(header: str) -> str:
    """The name of a header's page."""
    return write_man.header_page(header)


def pages(api: Json, notes: dict[str, Any]) -> dict[str, str]:
    """All pages, by the names of their files."""
    site = _Site(api, notes)
    found = {f"{page(each['name'])}.rst": site.header(each) for each in api["headers"]}
    return {**found, "errors.rst": site.errors()}
