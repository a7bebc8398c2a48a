#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Says which lines of the module a number of runs have reached together.

coverage.py [--excuses FILE] [--least PERCENT] RUN...

RUN is the output folder of vm.sh for one run, whose files/gcov has the counters, as gcov/gcov.c
writes them: named by the place where the module was built. Counted are the lines of kmod/; those
of core/ are told, too, but are the unit tests' to reach, for a good part of them is not the
module's. An excuse is a line "FILE|FUNCTION|TEXT|REASON" of patterns, as a shell has them, for
lines that no run reaches.
"""
import argparse
import collections
import fnmatch
import gzip
import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent

Line = collections.namedtuple("Line", "file number function")


def place_of(name: str, built: pathlib.Path) -> str | None:
    """Where a file that the compiler names is in this repository; None: it is the kernel's."""
    path = pathlib.Path(name)
    if not path.is_absolute():
        path = built / path
    try:
        inside = path.relative_to(built)
    except ValueError:
        return None
    if inside.suffix not in (".c", ".h") or inside.name in ("xmem.mod.c", "gcov.c", "gcov.h"):
        return None
    if inside.parts[0] in ("core", "include"):
        return str(inside)
    return f"kmod/{inside}"


def built_in(notes: pathlib.Path) -> pathlib.Path:
    """The module's folder: that of Kbuild."""
    return next(folder for folder in notes.parents if (folder / "Kbuild").exists())


def count(run: pathlib.Path, lines: dict[Line, int]) -> int:
    """Add one run's counters; returns how many files had some."""
    files = 0
    for data in sorted((run / "files" / "gcov").glob("*.gcda")):
        notes = pathlib.Path(data.name.replace("#", "/")).with_suffix(".gcno")
        built = built_in(notes)
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "x.gcda").write_bytes(data.read_bytes())
            (pathlib.Path(folder) / "x.gcno").write_bytes(notes.read_bytes())
            done = subprocess.run(["gcov-12", "-j", "x.gcda"], cwd=folder, check=True,
                                  capture_output=True, text=True)
            if "mismatch" in done.stderr:
                sys.exit(f"{data}: of another build, run that suite again")
            for path in pathlib.Path(folder).glob("*.gcov.json.gz"):
                add(json.loads(gzip.decompress(path.read_bytes())), built, lines)
        files += 1
    return files


def add(counted: dict, built: pathlib.Path, lines: dict[Line, int]) -> None:
    for file in counted["files"]:
        place = place_of(file["file"], built)
        if not place:
            continue
        for line in file["lines"]:
            key = Line(place, line["line_number"], line.get("function_name", ""))
            lines[key] = lines.get(key, 0) + line["count"]


def by_line(lines: dict[Line, int]) -> dict[Line, int]:
    """One entry for each line: what is inlined in several files is reached if one is."""
    reached: dict[tuple[str, int], tuple[str, int]] = {}
    for key, times in lines.items():
        function, before = reached.get((key.file, key.number), (key.function, 0))
        reached[key.file, key.number] = (function, before + times)
    return {Line(file, number, function): times
            for (file, number), (function, times) in reached.items()}


def read_excuses(path: pathlib.Path) -> list[list[str]]:
    excuses = []
    for line in path.read_text().splitlines():
        if line and not line.startswith("#"):
            fields = line.split("|", 3)
            if len(fields) != 4 or not fields[3].strip():
                sys.exit(f"{path}: not FILE|FUNCTION|TEXT|REASON: {line}")
            excuses.append(fields)
    return excuses


def text_of(line: Line) -> str:
    with open(ROOT / line.file, encoding="utf-8") as file:
        return file.read().split("\n")[line.number - 1].strip()


def percent(lines: dict[Line, int], folder: str) -> tuple[float, int, int]:
    here = [times for line, times in lines.items() if line.file.startswith(folder)]
    reached = sum(1 for times in here if times)
    return 100 * reached / max(1, len(here)), reached, len(here)


def excused(line: Line, text: str, excuses: list[list[str]], used: set[int]) -> bool:
    found = False
    for number, (file, function, pattern, _) in enumerate(excuses):
        if (fnmatch.fnmatchcase(line.file, file) and
                fnmatch.fnmatchcase(line.function, function) and
                fnmatch.fnmatchcase(text, pattern)):
            used.add(number)
            found = True
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="Which lines of the module were reached?")
    parser.add_argument("--excuses", type=pathlib.Path, default=HERE / "uncovered.txt")
    parser.add_argument("--least", type=float, default=90.0)
    parser.add_argument("runs", type=pathlib.Path, nargs="+")
    options = parser.parse_args()
    counted: dict[Line, int] = {}
    failed = 0
    for run in options.runs:
        if count(run, counted):
            print(f"PASS counters {run.name}")
        else:
            print(f"FAIL counters {run.name}: it has left none")
            failed += 1
    lines = by_line(counted)
    for file in sorted({line.file for line in lines}):
        share, reached, total = percent(lines, file)
        print(f"  {file:24} {share:5.1f} % of {total} lines")
    print("  core/: %.1f %% (%d of %d lines)" % percent(lines, "core/"))
    share, reached, total = percent(lines, "kmod/")
    verdict = "PASS" if share >= options.least else "FAIL"
    failed += verdict == "FAIL"
    print(f"{verdict} lines of kmod/: {share:.1f} % ({reached} of {total}), "
          f"at least {options.least:g} % are wanted")
    excuses = read_excuses(options.excuses)
    used: set[int] = set()
    unlisted = []
    for line in sorted(line for line, times in lines.items() if not times):
        text = text_of(line)
        if line.file.startswith("kmod/") and not excused(line, text, excuses, used):
            unlisted.append(f"    {line.file}|{line.function}|{text}| line {line.number}")
    if unlisted:
        print("\n".join(unlisted))
        print(f"FAIL unlisted: {len(unlisted)} lines are reached by no suite and have no reason "
              f"in {options.excuses.name}")
        failed += 1
    else:
        print("PASS each line that is not reached has its reason")
    for number, excuse in enumerate(excuses):
        if number not in used:
            print(f"    reached or gone, needs no reason any more: {'|'.join(excuse[:3])}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
