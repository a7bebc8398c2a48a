# SPDX-License-Identifier: MIT
"""A plugin of pytest: the tally of a run, for tests/run.sh.

A run prints "SKIP name: why" for each test that is skipped, "FAIL name: why" for each that fails,
and at its end "N passed, N failed, N skipped", as every suite of the repository does.
"""
from __future__ import annotations

import os
import signal
import sys
from types import FrameType

import pytest

RUN_BY = os.getpid()
passed: set[str] = set()
failed: dict[str, str] = {}
skipped: dict[str, str] = {}
running: set[str] = set()


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


def stopped(signum: int, frame: FrameType | None) -> None:
    """timeout(1) of run.sh ends this run: say which tests hang.

    The process of a test that hangs has ended itself by then. pytest-xdist does not notice that
    as long as a child that the test has forked holds the process's pipes.
    """
    for name in running:
        failed[name] = "it has not ended"
    print()         # after the dots of the tests that have passed
    print_tally()
    os._exit(1)


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        signal.signal(signal.SIGTERM, stopped)


def pytest_runtest_logstart(nodeid: str) -> None:
    running.add(nodeid)


def pytest_runtest_logfinish(nodeid: str) -> None:
    running.discard(nodeid)


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
    if hasattr(config, "workerinput"):      # the first process has the reports of workers
        return
    print_tally()


def print_tally() -> None:
    for name, why in skipped.items():
        print(f"SKIP {name}: {why}")
    for name, why in failed.items():
        print(f"FAIL {name}: {why}")
    done = passed - set(failed)
    print(f"{len(done)} passed, {len(failed)} failed, {len(set(skipped) - set(failed))} skipped")
    sys.stdout.flush()
