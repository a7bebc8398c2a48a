#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The results of bench-cuda as the Markdown tables of docs/cuda.md.

usage: table.py FOLDER    with results.json of the case streams, and tensors.txt of tensors.py
"""
import json
import pathlib
import re
import sys


def microseconds(ns):
    return f"{ns / 1000:,.0f}" if ns >= 99_500 else f"{ns / 1000:.3g}"


def read_rows(folder):
    """Times in nanoseconds by way and work, and the rows of the victim."""
    times, victims, floors = {}, {}, {}
    for row in json.loads((folder / "results.json").read_text(encoding="utf-8"))["rows"]:
        found = re.fullmatch(r"streams, (.*): (.*)", row["what"])
        if found:
            work, way = found.groups()
            times.setdefault(way, {})[work] = row["value"]["median"]
            floors.setdefault(work, []).append(row["base"]["median"])
        elif row["what"].startswith("64 KiB memset, "):
            victims[row["what"].split(", ")[1]] = row["value"]["median"] * 1000
    flags = {work: sorted(found)[len(found) // 2] for work, found in floors.items()}
    return {"both synchronize, the CPU sets a flag": flags, **times}, victims


def read_tensors(path):
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    pairs = [line.split("\t") for line in lines if "\t" in line]
    return lines[0] if pairs else None, {work: float(ns) for work, ns in pairs}


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: table.py FOLDER")
    folder = pathlib.Path(sys.argv[1])
    ways, victims = read_rows(folder)
    name, tensors = read_tensors(folder / "tensors.txt")
    if name:
        ways[name] = tensors
    works = list(next(iter(ways.values())))
    print("| us for a hand-over |", " | ".join(works), "|")
    print("|---|" + "---|" * len(works))
    for way, times in ways.items():
        print(f"| {way} |", " | ".join(microseconds(times[work]) for work in works), "|")
    print()
    print("| us for a memset of 64 KiB |", " | ".join(victims), "|")
    print("|---|" + "---|" * len(victims))
    print("| median |", " | ".join(microseconds(ns) for ns in victims.values()), "|")


if __name__ == "__main__":
    main()
