#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: MIT
"""Makes bindings/api.json, the description of the C API, from the public headers.

    bindings/extract.py           writes it, if it changes
    bindings/extract.py --check   status 1 if it is not what the headers say

It reads include/xmem.h and all that this includes. include/xmem/api.h, which is made from
api.json, is read without the members of its table. If the comment of a function lacks a part, or
names something that does not exist, that is an error, and nothing is written.
"""

from __future__ import annotations

import errno
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import pretty
from comments import Complaint, Doc, Header, paragraphs, parse
from declarations import Declarations, Function, Name, Struct, measure, read

TOP = Path(__file__).resolve().parent.parent
GENERATED = "xmem/api.h"
NOT_PUBLIC = {"xmem/uapi.h"}  # the protocol of the library and the hosts
_SINCE = re.compile(r"^(\d+)\.(\d+)\b(?:[;,] ?(.*))?")
_FIELD_SINCE = re.compile(r"(?:; |^)since (\d+\.\d+)(, as all that follow)?")
_AS = re.compile(r" as (xmem_\w+(?:(?:,| and| or)(?: as)? xmem_\w+)*)")
_OF_ERROR = re.compile(r"\bE[A-Z0-9]+:?$")  # "as ..." behind an error is about that alone
_KINDS = {"char": "chars", "uint8_t": "bytes", "size_t": "unsigned"}

Json = dict[str, Any]


def ordered(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


class Extractor:
    """Joins the declarations of the headers with their comments."""

    def __init__(self, include: Path) -> None:
        self.include = include
        self.complaints: list[str] = []
        self.found: Declarations = read(include)
        self.headers = {name: Header(include / name, name) for name in self.found.headers}
        self.docs = {each.name: self.doc(each) for each in self.found.functions}
        self.since = {name: self.release(name, doc) for name, doc in self.docs.items()}
        named = {name for doc in self.docs.values() for names, _ in doc.errors for name in names}
        self.errors = sorted(name for name in named if hasattr(errno, name))
        self.values = measure(include, self.found, self.errors)

    def complain(self, header: str, text: str) -> None:
        self.complaints.append(f"include/{header}: {text}")

    # ---- functions

    def doc(self, function: Function) -> Doc:
        """The comment of a function, after a check of it."""
        header = self.headers[function.header]
        try:
            doc = parse(header.above(header.start(function.line)))
        except Complaint as complaint:
            self.complain(function.header, f"{function.name}: {complaint}")
            return Doc()
        doc.sections.setdefault("Threads", ["any"])
        needed = ["Since"]
        if function.type != "void":
            needed.append("Returns")
        if function.type.endswith("*"):
            needed.append("Ownership")
        for name in needed:
            if not "".join(doc.sections.get(name, [])).strip():
                self.complain(function.header, f"the comment of {function.name} lacks '{name}:'")
        parameters = {each.name for each in function.parameters}
        for name in sorted(doc.parameters.keys() - parameters):
            self.complain(function.header, f"{function.name} has no parameter @{name}")
        for names, _ in doc.errors:
            for name in names:
                if not hasattr(errno, name):
                    self.complain(function.header, f"{function.name}: {name} is no error")
        if re.search(r"\bas (those|the \w+ above)\b", self.returns(doc)):
            self.complain(function.header, f"{function.name}: 'Returns:' refers to functions that"
                          " it does not name")
        return doc

    @staticmethod
    def returns(doc: Doc) -> str:
        return " ".join(doc.sections.get("Returns", []))

    def release(self, name: str, doc: Doc) -> str:
        said = " ".join(doc.sections.get("Since", []))
        match = _SINCE.match(said)
        if match:
            return f"{match.group(1)}.{match.group(2)}"
        header = next(each.header for each in self.found.functions if each.name == name)
        if said:
            self.complain(header, f"{name}: 'Since: {said}' names no release")
        return "0.0"

    def model(self, function: Function, section: str) -> str:
        """The function to which this one's section refers, if it only refers to one."""
        said = " ".join(self.docs[function.name].sections.get(section, []))
        match = re.match(r"as (xmem_\w+)", said)
        return match.group(1) if match else ""

    def referred(self, function: Function) -> list[str]:
        """Functions all of whose errors this one can have."""
        names: list[str] = []
        text = " " + self.returns(self.docs[function.name])
        for match in _AS.finditer(text):
            if not _OF_ERROR.search(text[: match.start()]):
                names += re.findall(r"xmem_\w+", match.group(1))
        for name in names:
            if name not in self.docs:
                self.complain(function.header, f"{function.name}: there is no function {name}")
        return [name for name in dict.fromkeys(names) if name in self.docs]

    def raises(self, name: str, seen: set[str]) -> set[str]:
        if name in seen:
            return set()
        seen.add(name)
        function = next(each for each in self.found.functions if each.name == name)
        names = {error for errors, _ in self.docs[name].errors for error in errors}
        for other in self.referred(function):
            names |= self.raises(other, seen)
        return names

    def purpose(self, function: Function) -> str:
        doc = self.docs[function.name]
        model = self.model(function, "Parameters")
        if not doc.purpose and model in self.docs:
            return self.docs[model].purpose
        if not doc.purpose:
            self.complain(function.header, f"the comment of {function.name} does not say what it"
                          " is for")
        return doc.purpose

    def drops(self, function: Function) -> str:
        """Does a call end the handle that it gets: always, or if it succeeds?"""
        doc = self.docs[function.name]
        says = self.returns(doc) + " ".join(doc.sections.get("Ownership", []))
        if re.match(r"Drop (the|a) handle", doc.purpose) and function.type == "void":
            return "always"
        gone = re.search(r"the handle is gone|ends here", says) or any(
            self.drops(other) for other in self.found.functions
            if other.name in self.referred(function))
        return "on success" if gone else ""

    def function(self, function: Function) -> Json:
        doc = self.docs[function.name]
        entry: Json = {
            "name": function.name, "header": function.header,
            "since": self.since[function.name], "returns": function.type,
            "parameters": [self.parameter(each, doc) for each in function.parameters],
            "purpose": pretty.prose([self.purpose(function)]),
        }
        for key, lines in (("text", doc.text), ("result", doc.sections.get("Returns", []))):
            if lines:
                entry[key] = pretty.prose(lines)
        if doc.errors:
            entry["errors"] = [{"names": names, **self.prose("text", text)}
                               for names, text in doc.errors]
        if self.referred(function):
            entry["errors_as"] = self.referred(function)
        entry["raises"] = sorted(self.raises(function.name, set()) & set(self.errors))
        for key in ("Ownership", "Threads", "Since"):
            text = " ".join(doc.sections.get(key, []))
            if key == "Since":
                match = _SINCE.match(text)
                text, key = (match.group(3) or "" if match else ""), "later"
            entry |= self.prose(key.lower(), text.rstrip("."))
        if self.model(function, "Parameters"):
            entry["parameters_as"] = self.model(function, "Parameters")
        ends = re.findall(r"xmem_\w+", " ".join(doc.sections.get("Ownership", [])))
        if ends and function.type.endswith("*"):
            entry["ended_by"] = ends
        if self.drops(function):
            entry["drops"] = self.drops(function)
        return entry

    def parameter(self, each: Name, doc: Doc) -> Json:
        return {"name": each.name, "type": each.type,
                **self.prose("text", doc.parameters.get(each.name, ""))}

    @staticmethod
    def prose(key: str, text: str) -> Json:
        return {key: pretty.prose([text])} if text else {}

    # ---- data

    def comment(self, each: Name) -> Json:
        header = self.headers[each.header]
        lines = header.above(header.start(each.line))
        return {"text": pretty.prose(paragraphs(lines))} if lines else {}

    def number(self, what: str, name: str) -> int:
        return int(self.values[f"{what} {name}"][0])

    def struct_since(self, name: str) -> str:
        """A struct is as old as the first function that has to do with it."""
        word = re.compile(rf"\bstruct {name}\b")
        called = [call.name for call in self.found.callbacks
                  if any(word.search(each.type) for each in call.parameters)]
        words = re.compile("|".join([word.pattern] + [rf"\b{name}\b" for name in called]))
        releases = [self.since[each.name] for each in self.found.functions
                    if any(words.search(part.type) for part in [*each.parameters, each])]
        return min(releases, key=ordered, default="0.1")

    def struct(self, struct: Struct) -> Json:
        fields, follows = [], ""
        since = self.struct_since(struct.name)
        for field in struct.fields:
            text = self.headers[field.header].beside(field.line)
            said = _FIELD_SINCE.search(text)
            if said and said.group(2):
                follows = said.group(1)
            release = said.group(1) if said else follows
            place = f"{struct.name}.{field.name}"
            entry: Json = {
                "name": field.name, "type": field.type, "offset": self.number("offset", place),
                "bytes": self.number("bytes", place), "kind": self.kind(field),
            }
            if f"count {place}" in self.values:
                entry["count"] = self.number("count", place)
            if field.name.endswith("_ns"):
                entry["unit"] = "nanoseconds"
            elif re.match(r"(.*_)?bytes(_.*)?$", field.name):
                entry["unit"] = "bytes"
            if release and release != since:
                entry["since"] = release
            fields.append(entry | self.prose("text", _FIELD_SINCE.sub("", text)))
        return {"name": struct.name, "header": struct.header, "since": since,
                **self.comment(struct), "bytes": self.number("size", struct.name),
                "fields": fields}

    def kind(self, field: Name) -> str:
        base = field.type.split("[")[0].strip()
        if "*" in field.type:
            return "pointer"
        if base.startswith("struct "):
            return "struct"
        if "[" not in field.type:
            return "signed" if base.startswith("int") else "unsigned"
        return _KINDS.get(base, "signed" if base.startswith("int") else "unsigned")

    def constant(self, each: Name) -> Json:
        return {"name": each.name, "value": self.number("value", each.name),
                **self.prose("text", self.headers[each.header].beside(each.line))}

    def macros(self) -> tuple[list[Json], list[Json], list[Json]]:
        """Flags by the prefix that the headers give them (XMEM_OPEN_*), constants, and macros
        that take arguments."""
        enums = [each.name for enum in self.found.enums for each in enum.constants]
        prefixes = set()
        for header in self.headers.values():
            prefixes |= set(re.findall(r"\b(XMEM_[A-Z0-9_]*_)\*", header.text))
        prefixes = {each for each in prefixes if not any(name.startswith(each) for name in enums)}
        flags: dict[str, list[Json]] = {}
        constants, functions = [], []
        for macro in self.found.macros:
            macro.line = self.headers[macro.header].macro(macro.name)
            said = self.prose("text", self.headers[macro.header].beside(macro.line))
            if macro.function:
                functions.append({"name": macro.name, "header": macro.header,
                                  "parameters": macro.parameters, **said})
                continue
            value: Any = self.values[f"value {macro.name}"][0]
            value = value[1:] if value.startswith('"') else int(value)
            kind = self.values.get(f"type {macro.name}", ["const char *"])[0]
            fits = [each for each in prefixes if macro.name.startswith(each)]
            if fits and re.fullmatch(r"\(1u << \d+\)", macro.type):
                flags.setdefault(max(fits, key=len), []).append(
                    {"name": macro.name, "header": macro.header, "value": value, **said})
            else:
                constants.append({"name": macro.name, "header": macro.header, "type": kind,
                                  "value": value, **said})
        for prefix in sorted(prefixes - flags.keys()):
            self.complain("xmem.h", f"a comment speaks of {prefix}*, and there is no such flag")
        groups = [{"prefix": prefix, "constants": group} for prefix, group in flags.items()]
        return groups, constants, functions

    def dtypes(self, constants: list[Json]) -> list[Json]:
        found = []
        for each in constants:
            number = each["value"]
            code, bits, lanes = number & 0xFF, number >> 8 & 0xFF, number >> 16
            if bits * lanes % 8:
                self.complain("xmem/metadata.h", f"{each['name']} has no whole bytes")
            if number:
                found.append({"name": each["name"].removeprefix("XMEM_DTYPE_").lower(),
                              "number": number, "code": code, "bits": bits, "lanes": lanes,
                              "bytes": bits * lanes // 8})
        return found

    def handle(self, kind: str) -> Json:
        """The functions that make the handles of a kind, and those that end them."""
        made = [each.name for each in self.found.functions if each.type == f"{kind} *"]
        ends = [each.name for each in self.found.functions
                if self.drops(each) and each.parameters[0].type == f"{kind} *"]
        return {"type": kind, "made_by": made, "dropped_by": ends}

    def api(self) -> Json:
        functions = [self.function(each) for each in self.found.functions]
        flags, constants, macros = self.macros()
        enums = [{"name": enum.name, "header": enum.header, **self.comment(enum),
                  "constants": [self.constant(each) for each in enum.constants]}
                 for enum in self.found.enums]
        dtypes = [enum["constants"] for enum in enums if enum["name"] == "xmem_dtype"]
        handles = [self.handle(kind) for kind in self.found.handles]
        table = sorted(self.since.keys() - {"xmem_get_api"},
                       key=lambda name: (ordered(self.since[name]), name))
        version = [str(self.number("value", f"XMEM_VERSION_{part}"))
                   for part in ("MAJOR", "MINOR", "PATCH")]
        for name, since in self.since.items():
            if ordered(since) > tuple(map(int, version[:2])):
                self.complain("xmem.h", f"{name} is said to be of a later release, {since}")
        return {
            "license": "SPDX-License-Identifier: MIT",
            "what": "The C API of xmem, made by bindings/extract.py from the public headers.",
            "version": ".".join(version),
            "headers": [{"name": name, "text": pretty.prose(paragraphs(header.opening()))}
                        for name, header in self.headers.items()],
            "handles": [handle for handle in handles if handle["made_by"]],
            "functions": functions,
            "table": table,
            "callbacks": [{"name": each.name, "header": each.header, "returns": each.type,
                           "parameters": [self.parameter(part, Doc())
                                          for part in each.parameters]}
                          for each in self.found.callbacks],
            "structs": [self.struct(each) for each in self.found.structs],
            "enums": enums,
            "flags": flags,
            "constants": constants,
            "macros": macros,
            "dtypes": self.dtypes(dtypes[0]) if dtypes else [],
            "errors": [{"name": name, "number": self.number("errno", name),
                        "functions": [each["name"] for each in functions
                                      if name in each["raises"]]}
                       for name in self.errors],
        }


def extract(top: Path) -> Json:
    """The description of the headers of the tree at `top`."""
    with tempfile.TemporaryDirectory() as folder:
        include = Path(folder, "include")
        shutil.copytree(top / "include", include)
        template = (top / "bindings" / "api.h.in").read_text()
        (include / GENERATED).write_text(template.replace("@MEMBERS@\n", ""))
        extractor = Extractor(include)
        api = extractor.api()
        for path in sorted(include.glob("xmem/*.h")):
            name = f"xmem/{path.name}"
            if name not in extractor.headers and name not in NOT_PUBLIC:
                extractor.complain(name, "xmem.h does not include it")
        if not api["functions"]:
            extractor.complain("xmem.h", "the headers declare no function")
        if extractor.complaints:
            raise Complaint("\n".join(dict.fromkeys(extractor.complaints)))
        return api


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        print("usage: extract.py [--check]", file=sys.stderr)
        return 2
    target = TOP / "bindings" / "api.json"
    try:
        text = pretty.dumps(extract(TOP))
    except Complaint as complaint:
        for line in str(complaint).split("\n"):
            print(f"FAIL extract.py: {line}", file=sys.stderr)
        return 1
    if target.exists() and target.read_text() == text:
        return 0
    if arguments:
        print("FAIL bindings/api.json is not what the headers say: run make api, and commit it")
        return 1
    target.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
