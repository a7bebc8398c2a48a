#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Read the output of `xmem metrics` strictly, and print its samples for tests/cli/run.sh.

    metrics.py <TEXT

Debian's python3-prometheus-client parses it, and then it has to follow Prometheus' conventions as
`promtool check metrics` (of a package of 19 MB) has them: help and type before the samples of each
metric, which stand together; _total on counters alone; units in the plural at the end; and no two
samples with the same name and labels.
"""
import re
import sys

from prometheus_client.parser import text_string_to_metric_families

SAMPLE = re.compile(r'([a-z_]+)(\{([a-z]+="(\\[\\"n]|[^\\"])*",?)+\})? -?\d+')


def check_lines(text):
    known, current = set(), None
    for line in filter(None, text.split("\n")):
        if line.startswith("# HELP "):
            current = line.split()[2]
            assert current not in known, f"{current} comes twice"
            assert line.endswith("."), line
            known.add(current)
        elif line.startswith("# TYPE "):
            assert line.split()[2] == current, line
            assert current.endswith("_total") == (line.split()[3] == "counter"), line
            assert re.fullmatch(r"xmem(_[a-z]+)+", current), line
        else:
            found = SAMPLE.fullmatch(line)
            assert found and found[1] == current, line


def main():
    text = sys.stdin.buffer.read().decode("utf-8", errors="strict")
    check_lines(text)
    seen = set()
    for family in text_string_to_metric_families(text):
        assert family.documentation and family.type in ("gauge", "counter"), family
        for sample in family.samples:
            key = sample.name, tuple(sorted(sample.labels.items()))
            assert key not in seen, f"{key} comes twice"
            seen.add(key)
            labels = [sample.labels.get(name, "-") for name in ("pool", "label")]
            print(sample.name, *labels, int(sample.value))


main()
