#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: MIT
"""Does a binding reach every function of the C API?

    bindings/reach.py FOLDER    such as bindings/python

For each function of api.json, FOLDER/reach.json has its place in the binding ("BufferPool.get"), or
{"not": why} if the binding lacks it, or {"inside": why} if only the binding itself calls it. A
function of the binding is used in FOLDER/src, and its attribute is a word of the binding's own
sources. A function that the binding lacks is not used in FOLDER/src. OCaml uses a function as
Fast.NAME or Slow.NAME, and a generated wrapper as Calls.NAME.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
_COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.DOTALL)


def words(paths: list[Path], strip: bool) -> set[str]:
    """All words of some files; of C without what stands in comments and texts, and with the
    names that a macro makes of its first argument (xmem_##name)."""
    found: set[str] = set()
    for path in paths:
        text = path.read_text()
        if path.suffix == ".ml":
            calls = re.findall(r"\b(?:Fast|Slow|Calls)\.(\w+)", text)
            found |= {f"xmem_{name}" for name in calls if path.name != "calls.ml"}
            continue
        text = _COMMENT.sub(" ", text) if strip else text
        found |= set(re.findall(r"\w+", text))
        for macro in re.finditer(r"#\s*define (\w+)\((\w+)(?:[^\n]|(?<=\\)\n)*", text):
            if re.search(rf"xmem_\s*##\s*{macro.group(2)}\b", macro.group()):
                calls = re.findall(rf"(?<!define )\b{macro.group(1)}\(\s*(\w+)", text)
                found |= {"xmem_" + name for name in calls}
    return found


def complaints(folder: Path) -> list[str]:
    names = [each["name"] for each in
             json.loads((TOP / "bindings" / "api.json").read_text())["functions"]]
    table = json.loads((folder / "reach.json").read_text())["reach"]
    sources = sorted([*folder.glob("src/*.[ch]"), *folder.glob("src/*.ml")])
    used = words(sources, True)
    shown = [*folder.glob("xmem/*.py*"), *folder.glob("src/xmem.mli")]
    offered = words([*(sources if not (folder / "src/xmem.mli").exists() else []), *shown], False)
    said = [f"{name} is not in reach.json: say where the binding has it, or why it does not"
            for name in names if name not in table]
    said += [f"reach.json has {name}, which no header declares"
             for name in table if name not in names]
    for name in names:
        where = table.get(name, {"not": ""})
        if isinstance(where, dict):
            if where.get("not") and name in used:
                said.append(f"{name} is used, and reach.json says that it is not reached")
            continue
        if name not in used:
            said.append(f"{name} is not used in src/, and reach.json says {where}")
        elif where.split(".")[-1] not in offered:
            said.append(f"{name}: there is no {where}")
    return said


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: reach.py FOLDER", file=sys.stderr)
        return 2
    said = complaints(Path(arguments[0]).resolve())
    for line in said:
        print(f"FAIL {arguments[0]}: {line}")
    if not said:
        print(f"{arguments[0]}: every function is reached, or it is said why not")
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
