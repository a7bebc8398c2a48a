# SPDX-License-Identifier: MIT
"""The modules of the package import each other in no circle.

Each import in a module counts, also in a function and for types alone: so a module can be read
and understood after the modules that it imports.
"""
import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
import xmem

FOLDER = Path(xmem.__file__).parent


def _name_of(path: Path) -> str:
    parts = path.relative_to(FOLDER.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(path: Path, modules: set[str]) -> set[str]:
    """The modules of the package that a file imports."""
    package = ".".join(path.relative_to(FOLDER.parent).parent.parts)
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")[:1 - node.level or None] if node.level else []
            origin = ".".join(parts + ([node.module] if node.module else []))
            for each in node.names:
                module = f"{origin}.{each.name}"
                # The extension has no file of Python, and imports none of these modules.
                if module != "xmem._core":
                    found.add(module if module in modules else origin)
    return found & modules


def _graph() -> dict[str, set[str]]:
    paths = {_name_of(path): path for path in FOLDER.rglob("*.py")}
    return {name: _imports(path, set(paths)) for name, path in paths.items()}


def test_no_circle() -> None:
    graph = _graph()
    assert "xmem.errors" in graph["xmem.pool"] and "xmem.torch.pools" in graph["xmem.torch.state"]
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))
