#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Read a file of `xmem trace` strictly, and print its facts for tests/cli/run.sh.

    trace.py FILE

It has to be one JSON object as Chrome's format describes it: known phases with their fields alone,
unique names of tracks, slices of a track that do not overlap, spans that begin once and end once
after that, and arrows that leave a slice and reach another one, not before. Facts, a line each:
each slice in the order of time with its track and slot, and what is at the end of the file. The
trace processor of Perfetto is no package: `pip install perfetto` downloads a program at run time.
"""
import json
import sys
from decimal import Decimal

EVENT = {"ph", "pid", "tid", "name"}
FIELDS = {
    "M": EVENT | {"args"},
    "X": EVENT | {"ts", "dur", "cat", "args"},
    "i": EVENT | {"ts", "s", "args"},
    "b": EVENT | {"ts", "cat", "id"},
    "e": EVENT | {"ts", "cat", "id"},
    "s": EVENT | {"ts", "cat", "id"},
    "f": EVENT | {"ts", "cat", "id", "bp"},
}


def no_twice(pairs):
    keys = [key for key, _ in pairs]
    assert len(keys) == len(set(keys)), f"a key comes twice: {keys}"
    return dict(pairs)


def read(path):
    with open(path, "rb") as file:
        text = file.read().decode("utf-8", errors="strict")
    return json.loads(text, parse_float=Decimal, object_pairs_hook=no_twice)


def check_fields(event):
    ph = event["ph"]
    assert set(event) == FIELDS[ph], f"the fields of {event}"
    assert all(isinstance(event[key], int) for key in ("pid", "tid")), event
    assert ph == "M" or (isinstance(event["ts"], Decimal) and event["ts"] > 0), event


def check_slices(slices):
    last = {}
    for one in slices:
        track = one["pid"], one["tid"]
        assert one["dur"] >= 0 and one["ts"] >= last.get(track, 0), f"{one} overlaps"
        last[track] = one["ts"] + one["dur"]


def check_spans(events):
    begun, ended = {}, set()
    for one in events:
        key = one["cat"], one["id"], one["pid"]
        if one["ph"] == "b":
            assert key not in begun or key in ended, f"{one} has begun before"
            begun[key] = one["ts"]
            ended.discard(key)
        else:
            assert key in begun and key not in ended, f"{one} ends, but has not begun"
            assert one["ts"] >= begun[key], f"{one} ends before it begins"
            ended.add(key)
    return len(begun) - len(ended)


def check_arrows(events, slices):
    at = {(one["pid"], one["tid"], one["ts"]): one for one in slices}
    ends = {}
    for one in events:
        ends.setdefault(one["id"], []).append(one)
    for pair in ends.values():
        start, end = pair
        assert (start["ph"], end["ph"]) == ("s", "f") and start["ts"] <= end["ts"], pair
        a, b = (at[one["pid"], one["tid"], one["ts"]] for one in pair)
        assert a["name"] == "publish" and b["name"] in ("receive", "hold"), (a, b)
        assert a["args"]["slot"] == b["args"]["slot"], (a, b)
        assert a["args"]["generation"] == b["args"]["generation"], (a, b)
    return len(ends)


def main():
    trace = read(sys.argv[1])
    assert set(trace) == {"traceEvents", "displayTimeUnit", "otherData"}, set(trace)
    events = trace["traceEvents"]
    for event in events:
        check_fields(event)
    names = {}
    for one in events:
        if one["ph"] == "M" and one["name"] == "thread_name":
            assert (one["pid"], one["tid"]) not in names, f"{one}: it has a name"
            names[one["pid"], one["tid"]] = one["args"]["name"]
    slices = [one for one in events if one["ph"] == "X"]
    assert slices == sorted(slices, key=lambda one: one["ts"]), "slices are not in order"
    check_slices(slices)
    open_spans = check_spans([one for one in events if one["ph"] in "be"])
    arrows = check_arrows([one for one in events if one["ph"] in "sf"], slices)
    order = []
    for one in slices:
        if one["args"]["slot"] not in order:
            order.append(one["args"]["slot"])
        print(names[one["pid"], one["tid"]], one["name"], order.index(one["args"]["slot"]))
    lost = sum(one["args"]["publications"] for one in events if one["ph"] == "i")
    assert lost == trace["otherData"]["lost"], f"{lost} are lost: {trace['otherData']}"
    print(f"arrows {arrows} open {open_spans} lost {lost} names {sorted(names.values())}")


main()
