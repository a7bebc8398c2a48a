#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: MIT
"""Runs pages of the tutorials in two terminals, and compares all that these print.

    tests/docs/tutorial.py FOLDER PAGE...

A block after a line that ends with "`NAME`:" is written into the file NAME in FOLDER. Each line of
another block is about a terminal. "1$ " begins a command for the first terminal, "1> " input of the
program there (^D ends it), and "1| " a line that this terminal prints. In such a line "..." stands
for any text, and one blank for several. A line that the page does not have is an error.
"""

import os
import pty
import re
import select
import signal
import sys
import time
from pathlib import Path

PATIENCE = float(os.environ.get("PATIENCE", "600"))    # seconds, for a line


class Wrong(Exception):
    """The page is not true."""


class Terminal:
    """A shell on a terminal of its own."""

    def __init__(self, number, folder):
        self.prompt, self.text, self.ready = f"{number}$ ", "", False
        self.pid, self.fd = pty.fork()
        if not self.pid:
            os.chdir(folder)
            os.environ |= {"PS1": self.prompt, "TERM": "dumb", "COLUMNS": "200",
                           "HISTFILE": "", "PROMPT_COMMAND": ""}
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.execvp("bash", ["bash", "--norc", "--noprofile", "--noediting", "-i"])
        os.set_inheritable(self.fd, False)

    def read(self, done):
        """Read until done(); returns what it returns."""
        end = time.monotonic() + PATIENCE
        while not (found := done()):
            if not select.select([self.fd], [], [], max(0, end - time.monotonic()))[0]:
                raise Wrong(f"it prints no more than {self.text!r}")
            self.text = (self.text + os.read(self.fd, 4096).decode()).replace("\r\n", "\n")
        return found

    def line(self):
        """The next line. A prompt before it belongs to the command that is yet to come."""
        if self.text.startswith(self.prompt):
            self.text, self.ready = self.text.removeprefix(self.prompt), True
        line, newline, rest = self.text.partition("\n")
        if not newline:
            return None
        self.text = rest
        return [line]

    def waits(self):
        """Does the shell wait for a command, after lines that were all expected?"""
        if "\n" in self.text:
            raise Wrong(f"it also prints {self.text!r}")
        return self.text == self.prompt or (self.ready and not self.text)

    def expect(self, wanted):
        """The terminal prints this line next."""
        (line,) = self.read(self.line)
        pattern = r"\s+".join(map(re.escape, wanted.split())).replace(r"\.\.\.", ".*")
        if not re.fullmatch(pattern, line.strip()):
            raise Wrong(f"it prints {line!r}")

    def type(self, word, command):
        """Type a line, which the terminal shows."""
        if command:
            self.read(self.waits)
        elif "\n" in self.text:
            raise Wrong(f"it has also printed {self.text!r}")
        self.text, self.ready = "", False
        if word == "^D":
            os.write(self.fd, b"\x04")
        else:
            os.write(self.fd, word.encode() + b"\n")
            self.expect(word)

    def end(self):
        """End the shell, with its programs."""
        os.close(self.fd)
        os.kill(self.pid, signal.SIGHUP)
        os.waitpid(self.pid, 0)


def blocks(path):
    """The blocks of a page: (number of the first line, file or None, lines)."""
    name, inside, found = None, None, []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if inside is not None:
            if line == "```":
                found.append((start, name, inside))
                name, inside = None, None
            else:
                inside.append(line)
        elif line.startswith("```"):
            start, inside = number + 1, []
        elif line:
            told = re.search(r"(?:^|\s)`([\w.]+)`:$", line)
            name = told and told[1]
    return found


def run(path, folder):
    """Run all blocks of a page."""
    terminals = {}
    try:
        for start, name, lines in blocks(path):
            if name:
                (folder / name).write_text("\n".join([*lines, ""]))
                continue
            for number, line in enumerate(lines, start):
                told = re.fullmatch(r"([12])([$>|]) ?(.*)", line)
                if not told:
                    raise Wrong(f"{path}:{number}: neither a file nor a line of a terminal")
                if told[1] not in terminals:
                    terminals[told[1]] = Terminal(told[1], folder)
                terminal = terminals[told[1]]
                try:
                    if told[2] == "|":
                        terminal.expect(told[3])
                    else:
                        terminal.type(told[3], told[2] == "$")
                except Wrong as wrong:
                    raise Wrong(f"{path}:{number}: {line!r}: {wrong}") from None
        for number, terminal in terminals.items():
            try:
                terminal.read(terminal.waits)
            except Wrong as wrong:
                raise Wrong(f"{path}: terminal {number}, at the end: {wrong}") from None
    finally:
        for terminal in terminals.values():
            terminal.end()


def main(folder, *pages):
    failed = 0
    for page in map(Path, pages):
        try:
            run(page, Path(folder))
            print(f"ok {page.stem}")
        except Wrong as wrong:
            print(f"FAIL {wrong}")
            failed += 1
    return failed


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
