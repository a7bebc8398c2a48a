# SPDX-License-Identifier: MIT
"""Builds the distribution xmem-buffers: the package xmem, with libxmem, xmemd and the tool inside.

The Makefile of the repository compiles everything ("make python"); the results are copied to the
places where setuptools wants them. A source distribution is an excerpt of the repository, each
file at its place, with this file and pyproject.toml also in its top folder. So this file finds the
repository two folders above itself, or, in a source distribution, in its own folder.

XMEM_PYTHON_SYSTEM is in docs/environment.md.
"""

import atexit
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import setuptools
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist

HERE = Path(__file__).resolve().parent
TOP = HERE if (HERE / "Makefile").exists() else HERE.parent.parent
PACKAGE = TOP / "bindings/python"
SYSTEM = os.environ.get("XMEM_PYTHON_SYSTEM", "")
if SYSTEM not in ("", "0", "1"):
    sys.exit(f"setup.py: XMEM_PYTHON_SYSTEM is 1 or 0, not '{SYSTEM}'")

# Without a GIL there is no limited API, and so no extension for all versions.
FREE = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))

# The folder in which make builds, below TOP: objects for a system's libxmem have their own.
BUILT = "build/python/system" if SYSTEM == "1" else "build/release"

# The word by which make names the extension, and objects that are for no other Python.
ABI = sysconfig.get_config_var("SOABI") if FREE else "abi3"

# The files that make needs for the library, the daemon and the extension, and the licences.
SOURCES = ["Makefile", "LICENSES/*", "include/**/*.h*", "include/**/*.cuh", "core/*", "lib/*",
           "lib/*/*", "daemon/*", "cli/*", "scripts/*", "docs/environment.md", "bindings/*.mk",
           "bindings/python/*.*", "bindings/python/LICENSE", "bindings/python/src/*",
           "bindings/python/xmem/**/*", "bindings/python/tests/**/*",
           "bindings/python/requirements/*"]


def missing(environment: Mapping[str, str]) -> str:
    """Say what make needs and does not find, and how to get it; empty: nothing."""
    compiler = environment.get("CC", "cc").split()[0]
    for program, package in (("make", "make"), (compiler, "gcc")):
        if not shutil.which(program, path=environment.get("PATH")):
            return f"there is no '{program}': on Debian, apt-get install {package}"
    return ("" if os.access(TOP, os.W_OK) else f"{TOP} cannot be written to, and it is built in "
            f"{TOP / 'build'}: install from a copy of it")


def version() -> str:
    """The one version, which the Makefile says."""
    found = re.search(r"^VERSION *:= *(\S+)$", (TOP / "Makefile").read_text(), re.MULTILINE)
    if not found:
        sys.exit(f"setup.py: {TOP / 'Makefile'} says no version")
    return found[1]


class Make(build_ext):
    """An extension that make compiles."""

    def run(self) -> None:
        if self.inplace:
            sys.exit("setup.py: for development there is 'make python', see bindings/python/README")
        # The variables of an outer make are not for this one, whose jobs are its own.
        environment = {name: value for name, value in os.environ.items()
                       if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES")}
        lacks = missing(environment)
        if lacks:
            sys.exit(f"setup.py: {lacks}")
        jobs = len(os.sched_getaffinity(0))
        done = subprocess.run(["make", "-C", TOP, f"-j{jobs}", "python", f"B={BUILT}",
                               "FLAVOUR=release", f"PYTHON={sys.executable}", f"PYTHON_ABI={ABI}"],
                              env=environment)
        if done.returncode:
            sys.exit("setup.py: make has failed, and said why")
        for source, target in self.files():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)

    def files(self) -> list[tuple[Path, Path]]:
        """Get the files that make has built, and the places where setuptools wants them."""
        made = TOP / BUILT / (f"python-{ABI}" if FREE else "python") / "xmem"
        names = [Path(f"_core.{ABI}.so")]
        if SYSTEM != "1":
            names += [Path("lib", f"libxmem.so.{soversion()}"), Path("lib/xmemd"),
                      Path("lib/xmem")]
        names += [path.relative_to(TOP) for pattern in ("*.h*", "*.cuh")
                  for path in (TOP / "include").rglob(pattern)]
        names += [path.relative_to(made) for path in made.glob("numba/shims-*.fatbin")]
        return [(made / name, Path(self.build_lib, "xmem", name)) for name in names]

    def get_outputs(self) -> list[str]:
        return [str(target) for _, target in self.files()]


def soversion() -> str:
    """The library's ABI, as scripts/install.mk has it."""
    major, minor, _ = version().split(".")
    return f"0.{minor}" if major == "0" else major


class Excerpt(sdist):
    """The source distribution: the part of the repository that make needs."""

    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        excerpt = [path for pattern in SOURCES for path in matching(pattern)]
        super().make_release_tree(base_dir, ["setup.py", "pyproject.toml", "README.md", "LICENSE"])
        for path in excerpt:
            target = Path(base_dir, path.relative_to(TOP))
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)


def matching(pattern: str) -> list[Path]:
    """The files of the repository that a pattern of SOURCES means."""
    found = [path for path in TOP.glob(pattern)
             if path.is_file() and path.suffix not in (".pyc", ".so", ".swp")]
    if not found:
        sys.exit(f"setup.py: nothing is called {TOP / pattern}")
    return found


# pip asks an old setuptools for a command of wheel, and says no more than that there is none.
if ({"bdist_wheel", "dist_info"} & set(sys.argv[1:]) and not find_spec("wheel")
        and int(setuptools.__version__.partition(".")[0]) < 71):
    sys.exit(f"setup.py: setuptools {setuptools.__version__} needs the package wheel: pip install "
             "wheel, or leave --no-build-isolation out")

# setuptools' own leavings are not for the sources, nor for the next build to find.
SCRATCH = tempfile.mkdtemp(prefix="xmem-setup-")
atexit.register(shutil.rmtree, SCRATCH, ignore_errors=True)

setup(
    name="xmem-buffers",
    version=version(),
    description="Large buffers shared by processes without copies; no crash leaks or harms",
    long_description=(PACKAGE / "README.md").read_text(),
    long_description_content_type="text/markdown",
    license="MIT",
    license_files=["LICENSE"],
    classifiers=["Operating System :: POSIX :: Linux", "Programming Language :: C",
                 "Programming Language :: Python :: 3", "Typing :: Typed"],
    python_requires=">=3.11",
    packages=["xmem"] + [f"xmem.{found.parent.name}"
                         for found in PACKAGE.glob("xmem/*/__init__.py")],
    package_dir={"xmem": os.path.relpath(PACKAGE / "xmem", HERE)},
    package_data={"": ["py.typed", "*.pyi", "*.pxd", "*.cpp", "*.cu", "include/*.h"]},
    # A system's libxmem comes with a tool of its own.
    entry_points={} if SYSTEM == "1" else {"console_scripts": ["xmem = xmem.__main__:main"]},
    # It has no sources for setuptools: the entry says that the wheel is for one machine.
    ext_modules=[Extension("xmem._core", [], py_limited_api=not FREE)],
    cmdclass={"build_ext": Make, "sdist": Excerpt},
    options={"bdist_wheel": {} if FREE else {"py_limited_api": "cp311"},
             "build": {"build_base": SCRATCH},
             "egg_info": {"egg_base": SCRATCH}},
    zip_safe=False,
)
