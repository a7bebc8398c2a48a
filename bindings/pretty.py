# SPDX-License-Identifier: MIT
"""JSON that people read and git compares: what fits into a line stands in one, and prose is a
list of lines. The same data always gives the same text. And how C writes a declaration."""

from __future__ import annotations

import json
import textwrap
from typing import Any

COLUMNS = 100


def prose(lines: list[str], width: int = 82) -> list[str] | str:
    """Paragraphs as lines of at most `width` columns, as they are kept in JSON. An empty line
    separates paragraphs, and what begins with a tab is code or a table and stays as it is. What
    is a single line is a string."""
    wrapped: list[str] = []
    for line in lines:
        if not line or line.startswith("\t"):
            wrapped.append(line)
        else:
            wrapped += textwrap.wrap(line, width, break_long_words=False,
                                     break_on_hyphens=False)
    return wrapped[0] if len(wrapped) == 1 else wrapped


def unwrapped(value: list[str] | str | None) -> list[str]:
    """The paragraphs that prose() has made lines of."""
    whole: list[str] = []
    fresh = True
    for line in [value] if isinstance(value, str) else value or []:
        if not line:
            fresh = True
        if not line or line.startswith("\t") or fresh or whole[-1].startswith("\t"):
            whole.append(line)
        else:
            whole[-1] += " " + line
        fresh = not line
    return whole


def sentence(value: list[str] | str | None) -> str:
    """Prose as one line of text."""
    return " ".join(line.strip() for line in unwrapped(value))


def declare(kind: str, name: str) -> str:
    """The declaration of a name: declare("char [16]", "label") is "char label[16]"."""
    if "(*)" in kind:
        return kind.replace("(*)", f"(*{name})", 1)
    base, bracket, dimension = kind.partition("[")
    base = base.rstrip()
    return base + ("" if base.endswith("*") else " ") + name + bracket + dimension


def _text(value: Any, indent: int, room: int) -> str:
    line = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, (dict, list)) or not value or len(line) <= room:
        return line
    pad = " " * (indent + 1)
    inner = COLUMNS - indent - 2
    if isinstance(value, dict):
        parts = []
        for key, item in value.items():
            name = json.dumps(key) + ": "
            parts.append(name + _text(item, indent + 1, inner - len(name) - 1))
        if not any("\n" in part for part in parts):
            lines = _filled(parts, inner)
            if len(lines) < 4:
                return "{" + (",\n" + pad).join(lines) + "}"
        return "{\n" + ",\n".join(pad + part for part in parts) + "\n" + " " * indent + "}"
    if all(isinstance(item, str) for item in value) and max(map(len, value)) < 40:
        parts = _filled([json.dumps(item, ensure_ascii=False) for item in value], inner)
    else:
        parts = [_text(item, indent + 1, inner) for item in value]
    return "[\n" + ",\n".join(pad + part for part in parts) + "\n" + " " * indent + "]"


def _filled(words: list[str], room: int) -> list[str]:
    """Short pieces, several in a line."""
    lines = [words[0]]
    for word in words[1:]:
        if len(lines[-1]) + len(word) + 4 <= room:
            lines[-1] += ", " + word
        else:
            lines.append(word)
    return lines


def dumps(value: Any) -> str:
    """The text of a JSON file."""
    return _text(value, 0, 0) + "\n"
