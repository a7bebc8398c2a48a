# SPDX-License-Identifier: MIT
"""docs/abi/api.txt: the facts of the C API on which programs rely, one in a line. From version 0.9
on lines may be added, and none may go."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

FROZEN_FROM = (0, 9)
_HEAD = """\
The C API: what a program that was compiled once relies on, a line for each fact. From xmem 0.9 on
lines may be added here, and none changes or goes: bindings/generate.py, which makes this page of
the public headers, refuses to write it then. Until then anything may change.

A struct may grow at its end: its size is no fact. Sizes and offsets are bytes on 64-bit machines.

"""


def facts(api: Json) -> list[str]:
    found = []
    for function in api["functions"] + api["callbacks"]:
        types = [each["type"] for each in function["parameters"]]
        found.append(f"function {function['name']} {function['returns']}")
        found += [f"parameter {function['name']} {at} {each}" for at, each in enumerate(types)]
        found.append(f"parameters {function['name']} {len(types)}")
    found += [f"table {index} {name}" for index, name in enumerate(api["table"])]
    for struct in api["structs"]:
        found += [f"field {struct['name']}.{each['name']} {each['type']} "
                  f"at {each['offset']}, {each['bytes']}" for each in struct["fields"]
                  if not each["name"].startswith("reserved")]
    groups = [each["constants"] for each in api["enums"] + api["flags"]] + [api["constants"]]
    found += [f"constant {each['name']} {each['value']}" for group in groups for each in group
              if not each["name"].startswith("XMEM_VERSION_")]
    return found


def page(api: Json) -> str:
    return _HEAD + "".join(f"{each}\n" for each in facts(api))


def gone(before: str, api: Json) -> list[str]:
    """The facts of the page `before` that are none any more, if they are frozen."""
    if tuple(int(part) for part in api["version"].split("."))[:2] < FROZEN_FROM:
        return []
    now = set(facts(api))
    return [each for each in before.removeprefix(_HEAD).splitlines() if each and each not in now]
