# SPDX-License-Identifier: MIT
"""The tutorial docs/python.md, and the README's example: their blocks of Python are run.

The blocks of a section are one program. Under its heading a section may say what it needs:
<!-- needs: NAME, NAME --> are modules, or attributes of them. A missing one is printed, and
counted as skipped.
"""

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import xmem
from support import LIMIT, without_notes

TOP = Path(__file__).resolve().parents[3]
PACKAGE = str(Path(xmem.__file__).absolute().parents[1])


def sections(path):
    """Each section of a page that has blocks of Python: (title, needs, program)."""
    found, title, needs, program, inside = [], "", [], [], False
    for line in [*path.read_text().splitlines(), "## "]:
        if inside:
            inside = line != "```"
            program.append(line if inside else "")
            continue
        if line.startswith("## "):
            if any(program):
                found.append((title, needs, "\n".join(program)))
            # Lines keep their numbers, for tracebacks.
            title, needs, program = line[3:], [], [""] * len(program)
        told = re.fullmatch(r"<!-- needs: (.*) -->", line)
        if told:
            needs = told.group(1).split(", ")
        inside = line == "```python"
        program.append("")
    assert not inside, f"{path.name}: the last block has no end"
    return found


def missing(name):
    """Is there no such module, or attribute of a module?"""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:length]))
        except ImportError:
            continue
        for part in parts[length:]:
            if not hasattr(found, part):
                return True
            found = getattr(found, part)
        return False
    return True


def run(program, folder, name):
    """Run a program as a file of that name; it has to end well and say nothing."""
    path = folder / name
    path.write_text(program)
    done = subprocess.run([sys.executable, "-X", "dev", "-W", "error::ResourceWarning", str(path)],
                          cwd=folder, capture_output=True, text=True, timeout=LIMIT,
                          env={**os.environ, "PYTHONPATH": PACKAGE})
    assert (done.returncode, done.stdout, without_notes(done.stderr)) == (0, "", "")


TUTORIAL = sections(TOP / "docs" / "python.md")


@pytest.mark.parametrize("needs, program", [each[1:] for each in TUTORIAL],
                         ids=[each[0] for each in TUTORIAL])
def test_tutorial(needs, program, tmp_path):
    lacks = [need for need in needs if missing(need)]
    if lacks:
        pytest.skip(f"there is no {', no '.join(lacks)}")
    if "numpy" in program:
        pytest.importorskip("numpy")
    run(program, tmp_path, "section.py")


def test_the_tutorial_tells_of_each_error():
    text = (TOP / "docs" / "python.md").read_text()
    for name in xmem.__all__:
        kind = getattr(xmem, name)
        if isinstance(kind, type) and issubclass(kind, OSError):
            assert f"`{name}`" in text or f"xmem.{name}" in text, name
    assert len(TUTORIAL) >= 20


INTERPRETERS = """
import sys
import xmem

if sys.version_info >= (3, 13):
    import _interpreters as interpreters
    shared, own = interpreters.create("legacy"), interpreters.create("isolated")
else:
    import _xxsubinterpreters as interpreters
    shared, own = interpreters.create(isolated=False), None
    if sys.version_info >= (3, 12):
        own = interpreters.create(isolated=True)
run = getattr(interpreters, "exec", None) or interpreters.run_string


def complaint(of, program):
    try:
        return str(run(of, program) or "")
    except Exception as error:
        return str(error)


pool = xmem.BufferPool("interpreters", writer=True)
with pool.acquire_cpu((4,), "int8") as guard:
    memoryview(guard)[3] = 42
    token = guard.publish(keep=True)
    assert complaint(shared, f"import xmem; view = memoryview(xmem.BufferPool('interpreters')"
                             f".get({token})); assert view[3] == 42") == ""
    assert pool.slot_info(guard.meta_index).holds == 2
    interpreters.destroy(shared)
    assert memoryview(guard)[3] == 42
    assert pool.slot_info(guard.meta_index).holds == 1
if own is not None:
    assert "ImportError" in complaint(own, "import xmem")
"""


def test_subinterpreters_do_what_the_tutorial_says(tmp_path):
    run(INTERPRETERS, tmp_path, "interpreters.py")


def test_readme(tmp_path):
    """The README's example: camera.py and viewer.py, as they stand there."""
    pytest.importorskip("numpy")
    (block,) = re.findall(r"^```python\n(.*?)^```$", (TOP / "README.md").read_text(),
                          re.MULTILINE | re.DOTALL)
    run(block, tmp_path, "readme.py")


@pytest.mark.parametrize("page", ["docs/python.md", "README.md"])
def test_paths_that_are_named_are_there(page):
    folders = "docs|core|kmod|lib|daemon|cli|include|tests|scripts|bench|examples|bindings"
    for path in re.findall(rf"`((?:{folders})/[\w./-]*)`", (TOP / page).read_text()):
        assert (TOP / path).exists(), f"{page} names {path}"


def test_each_test_that_the_page_of_the_design_documents_names_exists():
    words = set(re.findall(r"`([\w/.]+)`", (TOP / "docs/seeds.md").read_text()))
    places = {"tests": "*.c*", "bindings/python/tests": "*.py"}
    text = "".join(path.read_text() for place, pattern in places.items()
                   for path in (TOP / place).rglob(pattern) if path.is_file())
    there = set(re.findall(r"^TEST\((\w+)\)|^    ?def (test_\w+)|^def (test_\w+)", text, re.M))
    names = {name for found in there for name in found}
    tests = {word for word in words
             if re.match(r"test_\w+$|(P\d+|API|CUDA)_[a-z]|(an?|what|cuda)_\w+_\w+_\w+", word)
             and "." not in word}
    assert len(tests) > 50 and tests <= names, tests - names
    files = {word for word in words if "/" in word and not word.startswith("xmem/")}
    assert {name for name in files if not (TOP / name).exists()} == set()
    rows = [line.split(" | ") for line in (TOP / "docs/seeds.md").read_text().splitlines()
            if re.match(r"\| (?!--)", line) and not re.search("not (yet|ours)", line)]
    assert [row[0] for row in rows if not re.search(r"[`\"]|^test \|", row[-1])] == []
    in_ocaml = "".join(path.read_text() for path in (TOP / "bindings/ocaml/test").glob("*.ml"))
    assert [name for row in rows for name in re.findall(r'"([^"]+)"', row[-1])
            if name not in in_ocaml] == []
