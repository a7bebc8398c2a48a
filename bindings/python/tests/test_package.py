# SPDX-License-Identifier: MIT
"""The package as it is installed: its version, its files, and the xmemd that is found in it."""

import importlib.metadata
import re
from pathlib import Path

import installed
import pytest
import xmem

TOP = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def only_installed() -> None:
    """A tree that "make python" has built has the same files, but is no distribution."""
    if "site-packages" not in installed.FOLDER.parts:
        pytest.skip(f"{installed.FOLDER} is not installed")


def test_one_version() -> None:
    said = re.search(r"^VERSION *:= *(\S+)$", (TOP / "Makefile").read_text(), re.MULTILINE)
    assert said is not None
    assert importlib.metadata.version(installed.DISTRIBUTION) == xmem.__version__ == said[1]


def test_files_and_their_modes() -> None:
    installed.check_files(bundled=True)


def test_xmemd_is_found_in_the_package() -> None:
    installed.check_use(bundled=True)
    assert installed.daemons() == {installed.FOLDER / "lib/xmemd"}


def test_all_modules_are_in_the_wheel() -> None:
    sources = TOP / "bindings/python/xmem"
    wanted = {path.relative_to(sources.parent) for path in sources.rglob("*")
              if path.suffix in (".py", ".pyi")}
    there = {Path(str(path)) for path in importlib.metadata.files(installed.DISTRIBUTION) or []}
    assert wanted and wanted <= there, wanted - there
