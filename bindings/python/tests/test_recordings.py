# SPDX-License-Identifier: MIT
"""The libraries of MCAP from PyPI read recordings of the tool, without help of xmem."""
from __future__ import annotations

import io
import json
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import gpu
import numpy
import pytest
import xmem
from mcap.reader import NonSeekingReader, SeekingReader
from mcap.writer import CompressionType, Writer
from mcap_ros2.decoder import DecoderFactory
from support import LIMIT, fresh_name
from xmem import ImageFormat

TOOL = str(Path(sysconfig.get_path("scripts"), "xmem"))


def record(name: str, writer: xmem.BufferPool, file: Path) -> subprocess.Popen[bytes]:
    """Begin to record, without any loss."""
    recorder = subprocess.Popen([TOOL, "record", name, "--wait", "-o", str(file)])
    writer.wait_for_subscribers(1, LIMIT)
    return recorder


def pairs(reader: Any) -> list[tuple[dict[str, Any], Any]]:
    """Each description with the message that follows it."""
    found: list[tuple[dict[str, Any], Any]] = []
    about: dict[str, Any] = {}
    for _, channel, message in reader.iter_messages():
        if channel.message_encoding == "json":
            about = json.loads(message.data)
        else:
            found.append((about, (channel, message)))
    return found


@pytest.fixture(params=[SeekingReader, NonSeekingReader])
def reader(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_arrays_are_read_without_xmem(tmp_path: Path, reader: Any) -> None:
    name, file = fresh_name(), tmp_path / "arrays.mcap"
    arrays = [numpy.arange(24, dtype=dtype).reshape(2, 3, 4)
              for dtype in ("uint8", "int16", "float32", "float64", "complex64")]
    arrays.append(numpy.zeros((300, 400), "float32") + 3)
    with xmem.BufferPool(name, writer=True, wait_bound=LIMIT) as writer:
        recorder = record(name, writer, file)
        for number, array in enumerate(arrays):
            guard = writer.acquire_cpu(array.shape, array.dtype.name)
            numpy.asarray(guard)[:] = array
            guard.describe_user(id=number, user=[2**64 - 1, number])
            guard.publish(timestamp_ns=1000 + number)
    assert recorder.wait(LIMIT) == 0
    found = pairs(reader(io.BytesIO(file.read_bytes()), validate_crcs=True))
    assert len(found) == len(arrays)
    for number, ((about, (channel, message)), array) in enumerate(zip(found, arrays)):
        assert channel.topic == name and message.sequence == number
        assert int(about.get("id", 0)) == number and int(about["user"][0]) == 2**64 - 1
        assert int(about["published_ns"]) == 1000 + number and "lost" not in about
        back = numpy.ndarray(about["shape"], about["typestr"], message.data, 0, about["strides"])
        assert back.dtype == array.dtype and (back == array).all()


def test_images_are_those_of_ros(tmp_path: Path) -> None:
    name, file = fresh_name(), tmp_path / "images.mcap"
    pixels = numpy.random.default_rng(1).integers(0, 256, (48, 64, 3), numpy.uint8)
    with xmem.BufferPool(name, writer=True, wait_bound=LIMIT) as writer:
        recorder = record(name, writer, file)
        guard = writer.acquire_cpu(pixels.nbytes)
        memoryview(guard).cast("B")[:] = pixels.tobytes()
        guard.describe_image(ImageFormat.RGB8, 64, 48)
        guard.publish()
    assert recorder.wait(LIMIT) == 0
    decoded = list(SeekingReader(io.BytesIO(file.read_bytes()), validate_crcs=True,
                                 decoder_factories=[DecoderFactory()])
                   .iter_decoded_messages(topics=[name]))
    assert len(decoded) == 1
    image = decoded[0].decoded_message
    assert (image.width, image.height, image.step, image.encoding) == (64, 48, 192, "rgb8")
    assert bytes(image.data) == pixels.tobytes()
    (about, (_, message)), = pairs(SeekingReader(io.BytesIO(file.read_bytes())))
    assert message.data[-int(about["bytes"]):] == pixels.tobytes()


def test_the_summary_counts(tmp_path: Path) -> None:
    name, file = fresh_name(), tmp_path / "summary.mcap"
    with xmem.BufferPool(name, writer=True, wait_bound=LIMIT) as writer:
        recorder = record(name, writer, file)
        for size in (10, 100_000, 20, 200_000):
            writer.acquire_cpu(size).publish()
    assert recorder.wait(LIMIT) == 0
    summary = SeekingReader(io.BytesIO(file.read_bytes())).get_summary()
    assert summary and summary.statistics
    assert summary.statistics.message_count == 8
    assert sorted(summary.statistics.channel_message_counts.values()) == [4, 4]
    topics = {channel.topic: channel.metadata for channel in summary.channels.values()}
    assert set(topics) == {name, f"{name}/@xmem"} and topics[name]["pool"] == name
    assert sum(len(index.message_index_offsets) for index in summary.chunk_indexes) >= 4


@gpu.needs_gpu
def test_contents_on_a_gpu_are_copied(tmp_path: Path) -> None:
    name, file = fresh_name(), tmp_path / "gpu.mcap"
    array = numpy.arange(30000, dtype="int32").reshape(100, 300)
    with xmem.BufferPool(name, writer=True, wait_bound=LIMIT) as writer:
        writer.preallocate_cuda(array.nbytes, 2, readers=True)
        recorder = record(name, writer, file)
        guard = writer.acquire_cuda(array.shape, dtype=array.dtype)
        guard.copy_from_host(array)
        guard.publish()
    assert recorder.wait(LIMIT) == 0
    (about, (_, message)), = pairs(SeekingReader(io.BytesIO(file.read_bytes())))
    back = numpy.ndarray(about["shape"], about["typestr"], message.data, 0, about["strides"])
    assert (back == array).all()


@pytest.mark.parametrize("compression", CompressionType)
def test_recordings_of_others_are_replayed(tmp_path: Path, compression: CompressionType) -> None:
    """Without compression. Their messages have no metadata, not even those of earlier contents."""
    name, file = fresh_name(), tmp_path / "others.mcap"
    messages = [b"first", b"second, longer", bytes(100_000)]
    with open(file, "wb") as stream:
        writer = Writer(stream, compression=compression)
        writer.start()
        schema = writer.register_schema("Words", "jsonschema", b"{}")
        channel = writer.register_channel(name, "json", schema)
        for number, message in enumerate(messages):
            writer.add_message(channel, number, message, number)
        writer.add_metadata("about", {"key": "value"})
        writer.finish()
    replay = [TOOL, "replay", str(file), "--fast", "--wait-for", "1", "--wait-bound", str(LIMIT)]
    if compression != CompressionType.NONE:
        done = subprocess.run(replay, capture_output=True, text=True, timeout=LIMIT)
        assert done.returncode == 1 and f"compressed ({compression.name.lower()})" in done.stderr
        return
    with xmem.BufferPool(name) as pool:
        frames = pool.subscribe()
        player = subprocess.Popen(replay)
        for message in messages:
            guard = frames.receive(LIMIT)
            assert bytes(memoryview(guard)) == message and guard.metadata.dtype == 0
            guard.release()
        assert player.wait(LIMIT) == 0
