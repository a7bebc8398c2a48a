# SPDX-License-Identifier: MIT
"""Shared by all tests of the package: a daemon of their own.

Each process of pytest-xdist has a daemon of its own, so that no test meets pools of another one.
tally.py prints what tests/run.sh reads.
"""

import gc
import os
import shutil
import signal
import tempfile
from pathlib import Path

import hypothesis
import pytest

TOP = Path(__file__).resolve().parents[3]
RUN_BY = os.getpid()
folder = ""
pytest_plugins = ["tally"]


def pytest_configure(config: pytest.Config) -> None:
    """This run shares no pool with another program, and writes nothing among the sources."""
    global folder
    folder = tempfile.mkdtemp(prefix="xmem-pytest-")
    os.environ["XMEM_SOCKET"] = f"{folder}/socket"
    os.environ.setdefault("XMEM_BACKEND", "daemon")
    # The driver that stands in for a GPU's, unless one is named; docs/environment.md.
    os.environ.setdefault("XMEM_CUDA_DRIVER", str(TOP / "build/test/fakecuda/libcuda.so.1"))
    os.environ.setdefault("XMEM_DEVICE_FILES", "195:255,memfd")
    # Ctrl-C reaches the programs that tests start, even if a shell has started this process in the
    # background and made it ignore Ctrl-C.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # Times on a shared machine say nothing about a test, and a failure is in the log.
    hypothesis.settings.register_profile(
        "xmem", deadline=None, database=None, print_blob=True,
        suppress_health_check=[hypothesis.HealthCheck.too_slow])
    hypothesis.settings.load_profile("xmem")


def pytest_report_header(config: pytest.Config) -> str:
    import xmem

    return f"xmem {xmem.__version__} of {Path(xmem.__file__).parent}, {os.environ['XMEM_SOCKET']}"


def pytest_collection_finish(session: pytest.Session) -> None:
    """A collection that a test asks for does not look through the modules.

    With PyTorch that would take a tenth of a second, hundreds of times. Objects that tests make
    are looked at.
    """
    gc.collect()
    gc.freeze()


def pytest_unconfigure(config: pytest.Config) -> None:
    if os.getpid() == RUN_BY:       # not in a child that a test has forked
        shutil.rmtree(folder, ignore_errors=True)
