# SPDX-License-Identifier: MIT
"""The comments of a public header, and the declaration to which each belongs.

A comment above a declaration belongs to it if no blank line stands between them. A comment that
begins behind a field, a constant or a macro belongs to that. The comment of a function has parts:
its purpose, its parameters ("@name: text"), more text, and sections that begin with the words
Parameters, Returns, Ownership, Threads and Since. Scripts and people read the same text.
"""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

SECTIONS = ("Parameters", "Returns", "Ownership", "Threads", "Since")
_ONE = "(?:" + "|".join(SECTIONS) + ")"
# "Returns: ..." and also "Returns, Ownership: as ...", at the beginning of a line or in it.
_LABEL = re.compile(rf"(?:(?<=\s)|^)({_ONE}(?:, {_ONE})*):(?=\s|$)")
_PARAMETER = re.compile(r"^ ?@(\w+(?:, @\w+)*): ?")
_SECOND_PARAMETER = re.compile(r"(?<=\.) @(\w+(?:, @\w+)*): ")
_ERROR_LINE = re.compile(r"^\t(-?E[A-Z0-9]+(?:, -?E[A-Z0-9]+)*)(?:\t+|  |$)(.*)$")
_TOKEN = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)


class Complaint(Exception):
    """A header says something wrong, or lacks something."""


@dataclasses.dataclass
class Comment:
    first: int  # its lines, counted from 1
    last: int
    leads: bool  # nothing stands before it in its first line
    lines: list[str]  # without the stars


def _stripped(text: str) -> list[str]:
    lines = text[2:-2].split("\n")
    lines[1:] = [re.sub(r"^\s*\*", "", line) for line in lines[1:]]
    lines = [line.rstrip() for line in lines]
    while lines and not lines[0]:
        del lines[0]
    while lines and not lines[-1]:
        del lines[-1]
    return lines


class Header:
    """The text of one header: its comments, and where its statements begin."""

    def __init__(self, path: Path, name: str) -> None:
        self.name = name
        self.text = path.read_text()
        self.comments: list[Comment] = []
        code = _TOKEN.sub(self._take, self.text)
        self.code = code.split("\n")
        self._starts = _statements(self.code)

    def _take(self, match: re.Match[str]) -> str:
        text = match.group()
        if not text.startswith("/*"):
            return text
        first = self.text.count("\n", 0, match.start()) + 1
        line = self.text[self.text.rfind("\n", 0, match.start()) + 1 : match.start()]
        self.comments.append(
            Comment(first, first + text.count("\n"), not line.strip(), _stripped(text))
        )
        return "\n" * text.count("\n")

    def start(self, line: int) -> int:
        """The first line of the statement that `line` is a part of."""
        return self._starts.get(line, line)

    def above(self, line: int) -> list[str]:
        """The comment that ends in the line before, or nothing."""
        for comment in self.comments:
            if comment.leads and comment.last == line - 1:
                return comment.lines
        return []

    def beside(self, line: int) -> str:
        """The comment that begins behind the code of `line`, or else stands above it, as one
        line of text."""
        lines: list[str] = []
        for comment in self.comments:
            if comment.first == line and not comment.leads:
                lines = comment.lines
                break
        return " ".join(" ".join(lines or self.above(line)).split())

    def opening(self) -> list[str]:
        """The description of the header: its first comment after the licence."""
        for comment in self.comments:
            if not comment.lines[0].strip().startswith("SPDX-"):
                return comment.lines
        return []

    def macro(self, name: str) -> int:
        """The line in which a macro is defined, the last one if there are several."""
        found = 0
        for number, line in enumerate(self.code, 1):
            if re.match(rf"\s*#\s*define\s+{name}\b", line):
                found = number
        return found


def _statements(code: list[str]) -> dict[int, int]:
    """For each line of code outside braces, the line in which its statement begins."""
    starts: dict[int, int] = {}
    begin = depth = 0
    continued = False
    for number, line in enumerate(code, 1):
        bare = line.strip()
        if continued or bare.startswith("#"):
            continued = bare.endswith("\\")
            continue
        if not bare or bare == 'extern "C" {' or (bare == "}" and not depth):
            continue
        begin = begin or number
        starts[number] = begin
        depth += bare.count("{") - bare.count("}")
        if not depth and bare[-1] in ";}":
            begin = 0
    return starts


# ---- the comment of a function


@dataclasses.dataclass
class Doc:
    """The parts of a function's comment. Prose is a list of lines: an empty one separates
    paragraphs, and one that begins with a tab is code, or a row of a table."""

    purpose: str = ""
    text: list[str] = dataclasses.field(default_factory=list)
    parameters: dict[str, str] = dataclasses.field(default_factory=dict)
    sections: dict[str, list[str]] = dataclasses.field(default_factory=dict)
    errors: list[tuple[list[str], str]] = dataclasses.field(default_factory=list)


def _pieces(lines: list[str]) -> list[tuple[str, str]]:
    """The lines of a comment, cut where a section begins within one: (sections, text)."""
    pieces = []
    for line in lines:
        at, label = 0, ""
        for match in _LABEL.finditer(line):
            if line[at : match.start()].strip() or label:
                pieces.append((label, line[at : match.start()].rstrip()))
            at, label = match.end(), match.group(1)
        pieces.append((label, line[at:].rstrip()))
    return pieces


def paragraphs(lines: list[str]) -> list[str]:
    """Lines of a comment as prose: each paragraph becomes one line, with an empty one between
    two; lines that begin with a tab (code, tables, lists) stay as they are."""
    prose: list[str] = []
    fresh = True
    for line in lines:
        if not line.strip():
            fresh = True
            continue
        if fresh and prose:
            prose.append("")
        if line.startswith("\t"):
            prose.append(line)
        elif fresh or prose[-1].startswith("\t"):
            prose.append(line.strip())
        else:
            prose[-1] += " " + line.strip()
        fresh = False
    return prose


def _joined(lines: list[str]) -> str:
    return " ".join(" ".join(lines).split())


def parse(lines: list[str]) -> Doc:
    """Take the comment of a function apart."""
    doc = Doc()
    body: list[str] = []
    parameter: list[str] = []
    part: list[str] = body
    for labels, line in _pieces(lines):
        if labels:
            part = [line]
            for label in labels.split(", "):
                if label in doc.sections:
                    raise Complaint(f"its comment has two sections '{label}'")
                doc.sections[label] = part
            continue
        match = _PARAMETER.match(line)
        if match:
            part = parameter = [match.group(1) + ": " + line[match.end() :]]
            _parameters(doc, parameter)
        elif part is body:
            body.append(line)
        elif not line.strip() or (part is parameter and not re.match(r"^(\t|  )", line)):
            part = body
            body.append(line)
        else:
            part.append(line)
            if part is parameter:
                _parameters(doc, parameter)
    prose = paragraphs(body)
    if prose:
        sentence = re.match(r"(.*?[.?!])(?:\s+|$)", prose[0])
        doc.purpose = sentence.group(1) if sentence else prose[0]
        rest = prose[0][sentence.end() :] if sentence else ""
        doc.text = ([rest] if rest else []) + prose[1:]
        while doc.text and not doc.text[0]:
            del doc.text[0]
    if "Returns" in doc.sections:
        doc.sections["Returns"] = _errors(doc, doc.sections["Returns"])
    for name, section in doc.sections.items():
        if name != "Returns":
            doc.sections[name] = [_joined(section)]
    return doc


def _parameters(doc: Doc, lines: list[str]) -> None:
    """Note the text of one paragraph "@a, @b: text", each time that it has become longer."""
    text = _SECOND_PARAMETER.sub(lambda match: f"\0{match.group(1)}: ", _joined(lines))
    for part in text.split("\0"):
        names, _, said = part.partition(": ")
        for name in names.replace("@", "").split(", "):
            doc.parameters[name] = said


def _errors(doc: Doc, lines: list[str]) -> list[str]:
    """Split the section "Returns:" into its head, which is returned, and the list of errors."""
    head = ""
    for index, line in enumerate(lines):
        if not _ERROR_LINE.match(line) or not re.search(r"(:|\bor|\band)$", head):
            head = (head + " " + line.strip()).strip()
            continue
        after: list[str] = []
        for line in lines[index:]:
            match = _ERROR_LINE.match(line)
            if match:
                names = match.group(1).replace("-", "").split(", ")
                doc.errors.append((names, match.group(2).strip()))
            elif line.startswith("\t\t") or not re.match(r"^( ?)\S|^\t\S", line):
                names, text = doc.errors[-1]
                doc.errors[-1] = (names, (text + " " + line.strip()).strip())
            else:
                after.append(line)
        return [head] + ([_joined(after)] if after else [])
    _inline_errors(doc, head)
    return [head]


def _inline_errors(doc: Doc, head: str) -> None:
    """Errors in a sentence: "-ENOENT: no such pool; EPERM (it is a reader), -ENOMEM"."""
    name = r"(?<![A-Z0-9_])-?E[A-Z0-9]{2,}\b"
    for match in re.finditer(rf"{name}(?:, {name})*", head):
        rest = head[match.end() :]
        names = match.group().replace("-", "").split(", ")
        said = re.match(r": ((?:[^;(]|\([^()]*\))*?)(?:;|\.?$|\. )", rest)
        if said:
            doc.errors.append((names, said.group(1).strip()))
            continue
        if names[:-1]:
            doc.errors.append((names[:-1], ""))
        said = re.match(r" \(((?:[^()]|\([^()]*\))*)\)", rest)
        doc.errors.append((names[-1:], said.group(1).strip() if said else ""))
