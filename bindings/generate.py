#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: MIT
"""Makes the files that depend on the C API from bindings/api.json; it needs Python alone. The
manual pages also have the notes of man/api.

    bindings/generate.py            writes the files below, each if it changes
    bindings/generate.py --check    names the files that do not agree with api.json: status 1
    bindings/generate.py --list     one line for each function: name, header, since, threads
    bindings/generate.py --man DIR  writes the manual pages of sections 3 and 7 into DIR
    bindings/generate.py --site DIR writes the pages of the documentation site into DIR
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pretty
import write_abi
import write_c
import write_man
import write_ocaml
import write_pxd
import write_python
import write_site
from comments import Complaint

TOP = Path(__file__).resolve().parent.parent


def files(api: dict[str, Any]) -> dict[str, str]:
    """Each file that is made, and its text."""
    template = (TOP / "bindings" / "api.h.in").read_text()
    return {
        "docs/abi/api.txt": write_abi.page(api),
        "include/xmem/api.h": write_c.table_header(api, template),
        "lib/api_list.h": write_c.table_list(api),
        "lib/libxmem.map": write_c.symbol_map(api),
        "bindings/python/src/layouts.h": write_c.layouts(api),
        "bindings/python/xmem/_constants.py": write_python.constants(api),
        "bindings/python/xmem/_answers.pyi": write_python.answers(api),
        "bindings/python/xmem/capi.pxd": write_pxd.declarations(api),
        "bindings/ocaml/types/descriptions.ml": write_ocaml.descriptions(api),
        "bindings/ocaml/src/constants.ml": write_ocaml.constants(api),
        "bindings/ocaml/src/answers.ml": write_ocaml.answers(api),
        "bindings/ocaml/src/calls.ml": write_ocaml.calls(api),
        "bindings/ocaml/src/calls.mli": write_ocaml.interface(api),
    }


def put(path: Path, text: str) -> None:
    """Write a file, if it changes. A concurrent reader sees the old file or the new one."""
    if path.exists() and path.read_text() == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.{os.getpid()}")
    new.write_text(text)
    new.replace(path)


def check(made: dict[str, str]) -> int:
    bad = 0
    for name, text in made.items():
        path = TOP / name
        if not path.exists() or path.read_text() != text:
            print(f"FAIL {name} is not what bindings/api.json says: run make api, and commit it")
            bad = 1
    return bad


def put_pages(api: dict[str, Any], folder: Path | None) -> int:
    """Write the manual pages. Without a folder this only finds mistakes in the notes."""
    try:
        pages = write_man.pages(api, write_man.read_notes(TOP / "man" / "api"))
    except Complaint as complaint:
        print(f"FAIL {complaint}", file=sys.stderr)
        return 1
    for name, text in pages.items() if folder else ():
        put(folder / f"man{name[-1]}" / name, text)
    return 0


def main(arguments: list[str]) -> int:
    api = json.loads((TOP / "bindings" / "api.json").read_text())
    if arguments == ["--list"]:
        for each in api["functions"]:
            if each["name"] in api["table"]:
                print(each["name"], each["header"], each["since"],
                      pretty.sentence(each["threads"]), sep="\t")
        return 0
    if len(arguments) == 2 and arguments[0] == "--man":
        return put_pages(api, Path(arguments[1]))
    if len(arguments) == 2 and arguments[0] == "--site":
        notes = write_man.read_notes(TOP / "man" / "api")
        for name, text in write_site.pages(api, notes).items():
            put(Path(arguments[1]) / name, text)
        return 0
    if arguments not in ([], ["--check"]):
        print("usage: generate.py [--check | --list | --man DIR | --site DIR]", file=sys.stderr)
        return 2
    try:
        made = files(api)
    except Complaint as complaint:
        print(f"FAIL generate.py: {complaint}", file=sys.stderr)
        return 1
    page = TOP / "docs/abi/api.txt"
    gone = write_abi.gone(page.read_text(), api) if page.exists() else []
    for fact in gone:
        print(f"FAIL the C API is frozen, and this fact of docs/abi/api.txt is gone: {fact}")
    if gone:
        return 1
    if put_pages(api, None):
        return 1
    if arguments:
        return check(made)
    for name, text in made.items():
        put(TOP / name, text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
