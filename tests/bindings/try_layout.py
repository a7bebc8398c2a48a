# SPDX-License-Identifier: MIT
"""Structs as objects: every field of every struct has the value that C put there, as api.json
says where it lies. Given: the folder of the module try_layout."""

import gc
import json
import sys
from pathlib import Path

sys.path[:0] = [sys.argv[1], str(Path(__file__).resolve().parents[2] / "bindings")]
import try_layout  # noqa: E402
import write_c  # noqa: E402


def expected(field, data):
    """The value of a field in `data`."""
    part = data[field["offset"] : field["offset"] + field["bytes"]]
    if field["kind"] == "chars":
        return part.partition(b"\0")[0].decode("utf-8", "replace")
    if field["kind"] == "bytes":
        return part
    size = field["bytes"] // field.get("count", 1)
    numbers = tuple(int.from_bytes(part[at : at + size], sys.byteorder,
                                   signed=field["kind"] == "signed")
                    for at in range(0, len(part), size))
    return numbers if "count" in field else numbers[0]


def check(index, struct):
    # Letters, an end of text now and then, and numbers with their top bit set.
    data = bytes(0 if at % 29 == 28 else 0xC1 + at % 7 if at % 4 == 3 else 0x41 + at % 23
                 for at in range(struct["bytes"]))
    whole = try_layout.make(index, data, len(data))
    fields = write_c.shown(struct)
    assert type(whole).__name__ == write_c.pascal(struct["name"]), type(whole)
    assert type(whole).__module__ == "xmem"
    assert len(whole) == len(fields) and not hasattr(whole, "reserved")
    for field in fields:
        found = getattr(whole, field["name"])
        assert found == expected(field, data), (struct["name"], field["name"], found)
        assert getattr(type(whole), field["name"]).__doc__, field["name"]
    # Of an older library's answer the later fields are not known.
    last = fields[-1]
    short = try_layout.make(index, data, last["offset"] + last["bytes"] - 1)
    assert getattr(short, last["name"]) is None
    assert short[:-1] == whole[:-1]
    return data


api = json.loads((Path(__file__).resolve().parents[2] / "bindings/api.json").read_text())
structs = write_c.answers(api)
names = {struct["name"].removeprefix("xmem_") for struct in structs}
assert {"pool_info", "client_info", "slot_info", "host_info", "pool_entry", "device_info",
        "cuda_info", "cuda_device_info", "limbo", "metadata"} <= names, names
for number, each in enumerate(structs):
    contents = check(number, each)
before = sys.getallocatedblocks()
for _ in range(1000):
    for number, each in enumerate(structs):
        try_layout.make(number, bytes(each["bytes"]), each["bytes"])
gc.collect()
assert sys.getallocatedblocks() - before < 500, "objects leak"
print(len(structs), "structs as objects")
