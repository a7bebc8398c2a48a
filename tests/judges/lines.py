# SPDX-License-Identifier: MIT
"""Runs unittest and prints the lines that tests/run.sh reads: FAIL and SKIP, and the counts."""

import os
import sys
import tempfile
import unittest


class Lines(unittest.TestResult):
    """known: names of tests that must fail here, with reasons; one that passes is a failure."""

    def __init__(self, known=None):
        super().__init__()
        self.known = known or {}
        self.passed = self.failed = self.left_out = 0

    @staticmethod
    def name(test):
        return test.id().removeprefix("__main__.").removeprefix("numba.cuda.tests.")

    def fail(self, test, err):
        if err[0].__name__ == "Skipped":  # pytest's way
            self.skip(test, str(err[1]))
            return
        if self.name(test) in self.known:
            self.skip(test, self.known[self.name(test)])
            return
        self.failed += 1
        print(f"FAIL {self.name(test)}: {err[0].__name__}: {str(err[1])[:300]}", flush=True)
        print(self._exc_info_to_string(err, test), file=sys.stderr)

    def skip(self, test, why):
        self.left_out += 1
        print(f"SKIP {self.name(test)}: {' '.join(why.split())}", flush=True)

    def addSuccess(self, test):
        if self.name(test) in self.known:
            self.failed += 1
            print(f"FAIL {self.name(test)}: passes, but is listed as known to fail")
            return
        self.passed += 1

    def addError(self, test, err):
        self.fail(test, err)

    def addFailure(self, test, err):
        self.fail(test, err)

    def addSkip(self, test, reason):
        self.skip(test, reason)

    def addSubTest(self, test, subtest, err):
        if err:
            self.fail(test, err)

    def addExpectedFailure(self, test, err):
        self.passed += 1

    def addUnexpectedSuccess(self, test):
        self.failed += 1
        print(f"FAIL {self.name(test)}: passes unexpectedly")


def run(suite, known=None):
    """A violation of a rule of the driver is also a failure, even if it has no visible effect."""
    result = Lines(known)
    with tempfile.NamedTemporaryFile("r") as log:
        os.environ["FAKECUDA_LOG"] = log.name
        suite.run(result)
        for line in log:
            print(f"FAIL violation: {line.strip()}")
            result.failed += 1
    print(f"{result.passed} passed, {result.failed} failed, {result.left_out} skipped")
    return 1 if result.failed or not result.passed else 0
