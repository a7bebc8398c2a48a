# SPDX-License-Identifier: MIT
"""Shared by all tests of the package: a daemon of their own, and the tally for tests/run.sh.

Each process of pytest-xdist has a daemon of its own, so that no test meets pools of another one.

A run prints "SKIP name: why" for each test that is skipped, "FAIL name: why" for each that fails,
and at its end "N passed, N failed, N skipped", as every suite of the repository does.
"""

import gc
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import hypothesis
import pytest

TOP = Path(__file__).resolve().parents[3]
RUN_BY = os.getpid()
folder = ""
passed: set[str] = set()
failed: dict[str, str] = {}
skipped: dict[str, str] = {}


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


def reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    """The reason of a failure in one line: the first line of an exception, the last line of any
    other text."""
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash:
        return str(crash.message).strip().partition("\n")[0]
    return str(report.longrepr).strip().rpartition("\n")[2]


def note(report: pytest.TestReport | pytest.CollectReport) -> None:
    name = report.nodeid or "collecting"
    if report.failed:
        when = getattr(report, "when", "collect")
        failed[name] = reason(report) if when == "call" else f"{when}: {reason(report)}"
    elif report.skipped:
        where = report.longrepr
        why = where[2] if isinstance(where, tuple) else getattr(report, "wasxfail", "expected")
        skipped[name] = why.removeprefix("Skipped: ")
    elif getattr(report, "when", "") == "call":
        passed.add(name)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    note(report)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if not report.passed:
        note(report)


# As late as can be, so that these are the last lines.
@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    if os.getpid() != RUN_BY:       # This is a child that a test has forked: print nothing.
        return
    shutil.rmtree(folder, ignore_errors=True)
    if hasattr(config, "workerinput"):      # the first process has the reports of workers
        return
    for name, why in skipped.items():
        print(f"SKIP {name}: {why}")
    for name, why in failed.items():
        print(f"FAIL {name}: {why}")
    done = passed - set(failed)
    print(f"{len(done)} passed, {len(failed)} failed, {len(set(skipped) - set(failed))} skipped")
    sys.stdout.flush()
