# SPDX-License-Identifier: MIT
"""The declarations of the public headers, as a C compiler sees them. pycparser reads them, and a
small program that is compiled and run prints values, sizes and offsets."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import tempfile
from pathlib import Path

from comments import Complaint
from pycparser import CParser, c_ast, c_generator  # type: ignore

# The types that the headers use of the C library, so that the rest of it need not be parsed.
_STDINT = "".join(
    f"typedef {c} {kind}{bits}_t;\n"
    for kind, sign in (("int", "signed"), ("uint", "unsigned"))
    for bits, c in ((8, f"{sign} char"), (16, f"{sign} short"), (32, f"{sign} int"),
                    (64, f"{sign} long long"))
)
_STDDEF = "typedef unsigned long size_t;\n"
_FLAGS = ("-U__GNUC__", "-D__attribute__(x)=", "-D__asm__(x)=", "-D__extension__=",
          "-D__inline=inline", "-D__restrict=", "-D__volatile__=volatile", "-D__const=const")


@dataclasses.dataclass
class Name:
    """Something that has a name, a type and a place."""

    name: str
    type: str
    header: str = ""
    line: int = 0


@dataclasses.dataclass
class Function(Name):
    parameters: list[Name] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Struct(Name):
    fields: list[Name] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Enum(Name):
    constants: list[Name] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Macro(Name):
    parameters: list[str] = dataclasses.field(default_factory=list)
    function: bool = False  # it takes arguments, and so has no value


@dataclasses.dataclass
class Declarations:
    functions: list[Function] = dataclasses.field(default_factory=list)
    structs: list[Struct] = dataclasses.field(default_factory=list)
    enums: list[Enum] = dataclasses.field(default_factory=list)
    callbacks: list[Function] = dataclasses.field(default_factory=list)
    handles: list[str] = dataclasses.field(default_factory=list)
    macros: list[Macro] = dataclasses.field(default_factory=list)
    headers: list[str] = dataclasses.field(default_factory=list)  # as they are included


def compiler(*arguments: str, given: str = "") -> str:
    """Run the C compiler. Its messages about the headers are a complaint."""
    try:
        done = subprocess.run(["gcc", *arguments], input=given, capture_output=True, text=True)
    except OSError as error:
        raise Complaint(f"gcc does not run: {error.strerror}") from error
    if done.returncode:
        raise Complaint(f"the headers do not compile:\n{done.stderr.rstrip()}")
    return done.stdout


def preprocess(include: Path) -> str:
    """include/xmem.h as the preprocessor gives it, with the macros that it defines."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in (("stdint.h", _STDINT), ("stddef.h", _STDDEF)):
            Path(folder, name).write_text(text)
        return compiler("-E", "-dD", "-nostdinc", f"-I{folder}", *_FLAGS,
                        str(include / "xmem.h"))


class _Reader:
    """Sorts the declarations of the headers below `include`, from the preprocessor's text."""

    def __init__(self, include: Path) -> None:
        self.include = include
        self.found = Declarations()
        self.print = c_generator.CGenerator()

    def header(self, path: str) -> str:
        try:
            return str(Path(path).resolve().relative_to(self.include.resolve()))
        except ValueError:
            return ""

    def text(self, node: c_ast.Node) -> str:
        return " ".join(self.print.visit(node).split())

    def name(self, node: c_ast.Node) -> Name:
        """A parameter or a field: its name, and its type as C writes it without the name."""
        kind = c_ast.Typename(None, node.quals, None, _anonymous(node.type))
        return Name(node.name or "", self.text(kind), self.header(node.coord.file),
                    node.coord.line)

    def function(self, node: c_ast.Node, kind: c_ast.Node) -> Function:
        place = self.header(node.coord.file)
        parameters = [] if kind.args is None else kind.args.params
        for parameter in parameters:
            if isinstance(parameter, c_ast.EllipsisParam):
                raise Complaint(f"{place}: {node.name} takes any number of arguments")
        names = [self.name(parameter) for parameter in parameters]
        if [name.type for name in names] == ["void"]:
            names = []
        for name in names:
            if not name.name:
                raise Complaint(f"{place}: a parameter of {node.name} has no name")
        returns = self.text(c_ast.Typename(None, [], None, _anonymous(kind.type)))
        return Function(node.name, returns, place, node.coord.line, names)

    def struct(self, node: c_ast.Node) -> None:
        place = self.header(node.coord.file)
        if node.decls is None:
            name = f"struct {node.name}"
            if node.name.startswith("xmem_") and name not in self.found.handles:
                self.found.handles.append(name)
            return
        fields = [self.name(field) for field in node.decls]
        self.found.structs.append(
            Struct(node.name, f"struct {node.name}", place, node.coord.line, fields)
        )

    def enum(self, node: c_ast.Node) -> None:
        if node.values is None:
            return
        constants = [
            Name(each.name, "int", self.header(each.coord.file), each.coord.line)
            for each in node.values.enumerators
        ]
        self.found.enums.append(
            Enum(node.name, f"enum {node.name}", self.header(node.coord.file),
                 node.coord.line, constants)
        )

    def declaration(self, node: c_ast.Node) -> None:
        if isinstance(node, c_ast.FuncDef):
            return  # static inline: nothing that a binding could call
        kind = node.type
        if isinstance(node, c_ast.Typedef):
            if isinstance(kind, c_ast.FuncDecl):
                self.found.callbacks.append(self.function(node, kind))
            elif node.name.startswith("xmem_"):
                raise Complaint(f"{self.header(node.coord.file)}: the typedef {node.name} is no"
                                " function's, and the headers have no others")
        elif isinstance(kind, c_ast.FuncDecl):
            if "static" not in node.storage and node.name.startswith("xmem_"):
                self.found.functions.append(self.function(node, kind))
        elif isinstance(kind, c_ast.Struct):
            self.struct(kind)
        elif isinstance(kind, c_ast.Enum):
            self.enum(kind)
        else:
            raise Complaint(f"{self.header(node.coord.file)}:{node.coord.line}: what is"
                            f" '{self.text(node)}'? Only functions, structs and enums are known")


def _anonymous(kind: c_ast.Node) -> c_ast.Node:
    """A copy of a type without the name that is declared by it."""
    if isinstance(kind, c_ast.TypeDecl):
        return c_ast.TypeDecl(None, kind.quals, None, kind.type)
    if isinstance(kind, c_ast.PtrDecl):
        return c_ast.PtrDecl(kind.quals, _anonymous(kind.type))
    if isinstance(kind, c_ast.ArrayDecl):
        return c_ast.ArrayDecl(_anonymous(kind.type), kind.dim, kind.dim_quals)
    if isinstance(kind, c_ast.FuncDecl):
        return c_ast.FuncDecl(kind.args, _anonymous(kind.type))
    return kind


def read(include: Path) -> Declarations:
    """All that include/xmem.h, and what it includes below `include`, declares."""
    text = preprocess(include)
    reader = _Reader(include)
    code, place = [], ""
    for line in text.split("\n"):
        marker = re.match(r'# \d+ "([^"]*)"', line)
        if marker:
            place = reader.header(marker.group(1))
            if place and place not in reader.found.headers:
                reader.found.headers.append(place)
        macro = re.match(r"#define (\w+)(\(([^)]*)\))?\s*(.*)", line)
        if macro and place and macro.group(4):
            reader.found.macros.append(
                Macro(macro.group(1), macro.group(4), place, 0,
                      [word.strip() for word in (macro.group(3) or "").split(",") if word],
                      macro.group(2) is not None)
            )
        code.append("" if re.match(r"#(define|undef)\b", line) else line)
    try:
        tree = CParser().parse("\n".join(code), str(include / "xmem.h"))
    except Exception as error:  # of a class that differs between pycparser's releases
        raise Complaint(f"pycparser does not understand the headers: {error}") from error
    for node in tree.ext:
        where = node.decl.coord if isinstance(node, c_ast.FuncDef) else node.coord
        if where is not None and reader.header(where.file):
            reader.declaration(node)
    whole = {struct.type for struct in reader.found.structs}
    reader.found.handles = [name for name in reader.found.handles if name not in whole]
    return reader.found


# ---- values

_PROGRAM = """
#include <errno.h>
#include <stdio.h>
#include <xmem.h>

static void number(const char *what, const char *name, int below_0, unsigned long long value)
{
	if (below_0)
		printf("%s %s %lld\\n", what, name, (long long)value);
	else
		printf("%s %s %llu\\n", what, name, value);
}

static void string(const char *what, const char *name, int below_0, const char *value)
{
	(void)below_0;
	printf("%s %s \\"%s\\n", what, name, value);
}

#define NUMBER(what, type, name) number(what, type, (name) < 0, (unsigned long long)(name))
#define TYPE(name) _Generic((name), int: "int", unsigned: "uint32_t", long: "int64_t", \\
	unsigned long: "uint64_t", long long: "int64_t", unsigned long long: "uint64_t")

int main(void)
{
%s	return 0;
}
"""


def measure(include: Path, found: Declarations, errors: list[str]) -> dict[str, list[str]]:
    """Compile and run a program that prints values, sizes and offsets. The key is "WHAT NAME"."""
    lines = []
    for macro in found.macros:
        if macro.function:
            continue
        if macro.type.startswith('"'):
            lines.append(f'string("value", "{macro.name}", 0, {macro.name});')
        else:
            value = f"(uintptr_t){macro.name}" if "*)" in macro.type else macro.name
            lines.append(f'printf("type {macro.name} %s\\n", TYPE({value}));')
            lines.append(f'NUMBER("value", "{macro.name}", {value});')
    for enum in found.enums:
        for constant in enum.constants:
            lines.append(f'NUMBER("value", "{constant.name}", {constant.name});')
    for struct in found.structs:
        lines.append(f'NUMBER("size", "{struct.name}", sizeof({struct.type}));')
        for field in struct.fields:
            place = f"{struct.name}.{field.name}"
            whole = f"(({struct.type} *)0)->{field.name}"
            lines.append(f'NUMBER("offset", "{place}", offsetof({struct.type}, {field.name}));')
            lines.append(f'NUMBER("bytes", "{place}", sizeof({whole}));')
            if "[" in field.type:
                lines.append(f'NUMBER("count", "{place}",'
                             f" sizeof({whole}) / sizeof({whole}[0]));")
    lines += [f'NUMBER("errno", "{name}", {name});' for name in errors]
    with tempfile.TemporaryDirectory() as folder:
        program = str(Path(folder, "measure"))
        text = _PROGRAM.replace("%s\treturn", "\t" + "\n\t".join(lines) + "\n\treturn")
        compiler("-std=gnu11", "-w", f"-I{include}", "-x", "c", "-", "-o", program, given=text)
        said = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    values: dict[str, list[str]] = {}
    for line in said.splitlines():
        what, name, value = line.split(" ", 2)
        values.setdefault(f"{what} {name}", []).append(value)
    return values
