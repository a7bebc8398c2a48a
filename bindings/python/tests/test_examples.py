# SPDX-License-Identifier: MIT
"""The programs of examples/python, run as a user runs them, also while some of them are killed."""

import os
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import time
import zlib
from pathlib import Path

import pytest

numpy = pytest.importorskip("numpy")

import xmem
from support import LIMIT

FOLDER = Path(__file__).resolve().parents[3] / "examples" / "python"
PACKAGE = str(Path(xmem.__file__).absolute().parents[1])
# Each colour is to be seen for half a second, 20 pictures.
COLOURS = {"red": (255, 0, 0), "lime": (0, 255, 0), "blue": (0, 0, 255)}
FRAMES = 20 * len(COLOURS)
WIDTH, HEIGHT = 256, 192      # more than a pipe holds
# A viewer may come late, for the camera keeps all pictures.
SIZE = ["--width", str(WIDTH), "--height", str(HEIGHT), "--buffers", str(FRAMES + 4)]


@pytest.fixture(scope="module")
def video(tmp_path_factory):
    """A video of known colours, made by ffmpeg."""
    if not shutil.which("ffmpeg"):
        pytest.skip("ffmpeg is not installed")
    path = tmp_path_factory.mktemp("video") / "colours.mkv"
    sources = [f"color=c={name}:s={WIDTH}x{HEIGHT}:r=40:d=0.5" for name in COLOURS]
    graph = "".join(f"{source}[v{number}];" for number, source in enumerate(sources))
    graph += "".join(f"[v{number}]" for number in range(len(sources)))
    subprocess.run(["ffmpeg", "-v", "error", "-f", "lavfi", "-i",
                    f"{graph}concat=n={len(sources)}", "-c:v", "ffv1", "-pix_fmt", "bgr0",
                    str(path)], check=True, timeout=LIMIT)
    return str(path)


GATED = """
import os, subprocess, sys
nbytes = int(os.environ["GATE_BYTES"])
# When the camera kills this script, the pipe breaks, and ffmpeg complains of that.
real = subprocess.Popen([os.environ["GATE_FFMPEG"], *sys.argv[1:]], stdout=subprocess.PIPE,
                        stderr=subprocess.DEVNULL)
with open(os.environ["GATE"]) as gate:
    for line in gate:
        for _ in range(int(line)):
            sys.stdout.buffer.write(real.stdout.read(nbytes))
        sys.stdout.buffer.flush()
        if line == f"{1 << 20}\\n":
            sys.exit(real.wait())
"""
ALL = 1 << 20           # pictures
FOR_EVER = "1000000"    # seconds


class Gate:
    """Stands before ffmpeg: as many pictures come through as a test has said."""

    def __init__(self, folder):
        folder.mkdir()
        script, fifo = folder / "ffmpeg", folder / "gate"
        script.write_text("#!/bin/sh\nexec \"$GATE_PYTHON\" \"$0.py\" \"$@\"\n")
        script.chmod(0o755)
        (folder / "ffmpeg.py").write_text(GATED)
        os.mkfifo(fifo)
        self.fifo = os.open(fifo, os.O_RDWR | os.O_CLOEXEC)
        self.env = {"PATH": f"{folder}:{os.environ['PATH']}", "GATE": str(fifo),
                    "GATE_FFMPEG": shutil.which("ffmpeg"), "GATE_PYTHON": sys.executable,
                    "GATE_BYTES": str(WIDTH * HEIGHT * 3)}

    def let(self, pictures):
        os.write(self.fifo, f"{pictures}\n".encode())


@pytest.fixture
def gate(tmp_path):
    made = Gate(tmp_path / "bin")
    yield made
    os.close(made.fifo)


class Program:
    """A program of the examples, and what it prints."""

    running: "list[Program]" = []

    def __init__(self, folder, name, *arguments, env=None):
        self.name = name
        self.process = subprocess.Popen(
            [sys.executable, str(FOLDER / f"{name}.py"), *arguments], cwd=folder, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": PACKAGE, **(env or {})})
        Program.running.append(self)

    def end(self):
        """Wait for its end: (status, what it has printed, what it has complained of)."""
        out, err = self.process.communicate(timeout=LIMIT)
        return self.process.returncode, out.strip(), err.strip()

    def well(self):
        status, out, err = self.end()
        assert (status, err) == (0, ""), f"{self.name}: {out}"
        return out


@pytest.fixture
def start(tmp_path):
    """Start programs in a folder of their own; those that still run in the end are killed."""
    yield lambda name, *arguments, **more: Program(tmp_path, name, *arguments, **more)
    for program in Program.running:
        if program.process.poll() is None:
            program.process.kill()
            program.process.communicate()
    Program.running.clear()


def read_png(path):
    """The pixels of a PNG file of 8-bit RGB without filters, each check sum looked at."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, chunks = 8, {}
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length:at + 12 + length])[0] == \
            zlib.crc32(kind + body)
        chunks[kind] = body
        at += 12 + length
    assert list(chunks) == [b"IHDR", b"IDAT", b"IEND"]
    width, height, *rest = struct.unpack(">2I5B", chunks[b"IHDR"])
    assert rest == [8, 2, 0, 0, 0]
    rows = numpy.frombuffer(zlib.decompress(chunks[b"IDAT"]), "uint8").reshape(height, -1)
    assert (rows[:, 0] == 0).all()
    return rows[:, 1:].reshape(height, width, 3)


def tiles(path, width=WIDTH, height=HEIGHT):
    """The pictures of a contact sheet, without the white ones at its end."""
    sheet = read_png(path)
    found = [sheet[top:top + height, left:left + width]
             for top in range(0, sheet.shape[0], height)
             for left in range(0, sheet.shape[1], width)]
    return [tile for tile in found if not (tile == 255).all()]


def assert_colours(pictures, each):
    assert len(pictures) == each * len(COLOURS)
    for number, picture in enumerate(pictures):
        wanted = list(COLOURS.values())[number // each]
        assert abs(picture.astype(int) - wanted).max() <= 2


def wait_until(true):
    """Wait for an event that sends no message, such as opening a pool."""
    end = time.monotonic() + LIMIT
    while not true():
        assert time.monotonic() < end
        select.select([], [], [], 0.02)


def opened(program):
    """Has it opened a pool?"""
    lines = Path(f"/proc/{program.process.pid}/maps").read_text()
    return "memfd:xmem-pool" in lines or "/dev/xmem" in lines


def follows(program, name):
    """Does it follow a publisher of that pool, and has it received all that there is?"""
    with xmem.BufferPool(name) as pool:
        for client in range(pool.stat().clients_max):
            try:
                info = pool.client_info(client)
            except xmem.NotFound:
                continue
            if info.pid == program.process.pid:
                return info.follows > 0 and not any(
                    holder.behind for holder in pool.holders() if holder.client == client)
    return False


def begin(start, gate, pool, viewers, *arguments):
    """Start a camera, which stops after a picture until all of these viewers have it."""
    wait_until(lambda: all(opened(viewer) for viewer in viewers))
    camera = start("camera", *arguments, "--pool", pool, env=gate.env)
    gate.let(1)
    wait_until(lambda: all(follows(viewer, pool) for viewer in viewers))
    return camera


def test_viewer_sees_each_picture_of_the_camera(start, gate, video, tmp_path):
    viewer = start("viewer", "--every", "10", "--shrink", "1", "sheet.png")
    camera = begin(start, gate, "camera", [viewer], video, *SIZE)
    gate.let(ALL)
    assert camera.well() == f"camera: {FRAMES} pictures"
    assert viewer.well() == f"viewer: {FRAMES} pictures, 0 lost"
    assert_colours(tiles(tmp_path / "sheet.png"), 2)


def test_two_viewers_end_after_their_frames_and_the_camera_goes_on(start, gate, video, tmp_path):
    viewers = [start("viewer", "--pool", "two", "--frames", str(frames), f"{frames}.png")
               for frames in (5, 7)]
    camera = begin(start, gate, "two", viewers, video, *SIZE, "--fast")
    gate.let(ALL)
    assert viewers[0].well() == "viewer: 5 pictures, 0 lost"
    assert viewers[1].well() == "viewer: 7 pictures, 0 lost"
    assert camera.well() == f"camera: {FRAMES} pictures"
    assert len(tiles(tmp_path / "5.png", WIDTH // 2, HEIGHT // 2)) == 5
    assert len(tiles(tmp_path / "7.png", WIDTH // 2, HEIGHT // 2)) == 7


def test_a_killed_viewer_holds_nobody_up(start, gate, video):
    killed = start("viewer", "--pool", "killed")
    viewer = start("viewer", "--pool", "killed")
    camera = begin(start, gate, "killed", [killed, viewer], video, *SIZE, "--fast",
                   "--buffers", "4", "--patience", FOR_EVER)
    killed.process.kill()
    gate.let(ALL)           # the camera's patience with the dead one would outlast this test
    assert camera.well() == f"camera: {FRAMES} pictures"
    assert viewer.well() == f"viewer: {FRAMES} pictures, 0 lost"
    assert killed.end()[0] == -signal.SIGKILL


def test_the_viewer_draws_what_there_was_when_the_camera_is_killed(start, gate, video, tmp_path):
    viewer = start("viewer", "--pool", "dies", "--shrink", "1", "sheet.png")
    camera = begin(start, gate, "dies", [viewer], video, *SIZE, "--fast")
    gate.let(2)
    start("viewer", "--pool", "dies", "--frames", "3").well()   # so the camera has published three
    wait_until(lambda: follows(viewer, "dies"))
    camera.process.kill()
    assert viewer.well() == "viewer: 3 pictures, 0 lost"
    assert abs(tiles(tmp_path / "sheet.png")[0].astype(int) - COLOURS["red"]).max() <= 2


def assert_brightness(said):
    """It has seen each picture, in which one of the three colours is bright."""
    count, total = re.fullmatch(r"brightness: (\d+) pictures, sum (\S+)", said).groups()
    assert int(count) == FRAMES and abs(float(total) / FRAMES - 85) <= 2


def test_three_models_watch_one_camera(start, gate, video):
    names = ["brightness", "motion", "edges"]
    models = [start("models", name, "--pool", "three") for name in names]
    camera = begin(start, gate, "three", models, video, *SIZE, "--fast", "--patience", FOR_EVER)
    gate.let(ALL)
    assert camera.well() == f"camera: {FRAMES} pictures"
    assert_brightness(models[0].well())
    assert models[1].well() == f"motion: {FRAMES} pictures, sum {len(COLOURS) - 1:.1f}"
    count = re.fullmatch(r"edges: (\d+) pictures, sum 0.0", models[2].well()).group(1)
    assert 1 <= int(count) <= FRAMES       # it may have skipped some


def test_a_killed_model_holds_nobody_up(start, gate, video):
    models = [start("models", name, "--pool", "fewer") for name in ("brightness", "motion")]
    camera = begin(start, gate, "fewer", models, video, *SIZE, "--fast", "--buffers", "4",
                   "--patience", FOR_EVER)
    models[1].process.kill()
    gate.let(ALL)
    assert camera.well() == f"camera: {FRAMES} pictures"
    assert_brightness(models[0].well())


def test_point_clouds_are_as_long_as_they_are(start):
    watcher = start("lidar", "watch")
    wait_until(lambda: opened(watcher))
    scanned = re.fullmatch(r"scan: 7 clouds of (\d+) points",
                           start("lidar", "scan", "--clouds", "7").well())
    count = int(scanned.group(1))
    assert 16 * 1000 < count < 16 * 1800
    # Eight of the 16 rings look up.
    assert watcher.well() == f"watch: {7 * count} points, {7 * count // 2} above the sensor, 0 " \
        "clouds lost"


def interrupt(program):
    """Press Ctrl-C until it ends. A signal between the last look of Python and the sleep of the
    library wakes nobody, so one may be missed; a person presses again."""
    while program.process.poll() is None:
        program.process.send_signal(signal.SIGINT)
        try:
            program.process.wait(10)
        except subprocess.TimeoutExpired:
            continue


def test_interrupts_end_all_of_them_cleanly(start, gate, video, tmp_path):
    viewer = start("viewer", "--pool", "stops", "sheet.png")
    waiting = start("viewer", "--pool", "nobody")
    other = start("viewer", "--pool", "stops", "--frames", "10")
    camera = begin(start, gate, "stops", [viewer, other], video, *SIZE, "--fast", "--buffers", "4",
                   "--patience", FOR_EVER)
    gate.let(9)
    other.well()                        # so the camera has published ten
    wait_until(lambda: opened(waiting) and follows(viewer, "stops"))
    interrupt(viewer)
    status, out, err = viewer.end()     # first: when the camera ends it ends by itself
    for program in camera, waiting:
        interrupt(program)
    assert (status, out, err) == (0, "viewer: 10 pictures, 0 lost", "")
    assert len(tiles(tmp_path / "sheet.png", WIDTH // 2, HEIGHT // 2)) == 10
    assert camera.end() == (130, "", "") and waiting.end() == (130, "", "")


def test_pictures_go_through_a_model_and_to_a_viewer(start, gate, video, tmp_path):
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    viewer = start("viewer", "--pool", "edges", "--every", "20", "--shrink", "1", "edges.png")
    stage = start("onnx_pipeline", "--pool", "seen", "--results", "edges")
    wait_until(lambda: opened(viewer))
    camera = begin(start, gate, "seen", [stage], video, *SIZE, "--fast")
    wait_until(lambda: follows(viewer, "edges"))
    gate.let(ALL)
    assert camera.well() == f"camera: {FRAMES} pictures"
    assert stage.well() == f"onnx_pipeline: {FRAMES} pictures, 0 lost"
    assert viewer.well() == f"viewer: {FRAMES} pictures, 0 lost"
    pictures = tiles(tmp_path / "edges.png")
    assert len(pictures) == len(COLOURS)
    for picture, colour in zip(pictures, COLOURS.values()):
        assert (picture[1:-1, 1:-1] <= 16).all()       # one colour has no edges
        assert (picture[0][:, numpy.array(colour) == 255] >= 239).all()     # but its border has


@pytest.mark.parametrize("arguments", [[], ["--kill"], ["--kill", "--workers", "1"],
                                       ["--workers", "5", "--size", "8"]])
def test_the_loader_gives_each_batch_once(start, arguments):
    size = int(arguments[-1]) if "--size" in arguments else 32
    wanted = numpy.mean([numpy.random.default_rng(index).random((64, 64), "float32")
                         .mean(dtype="float64") for index in range(20 * size)])
    out = start("dataloader", "--batches", "20", *arguments).well()
    count, mean = re.fullmatch(r"dataloader: (\d+) batches, mean (\S+)", out).groups()
    assert int(count) == 20 and abs(float(mean) - wanted) < 2e-6


@pytest.mark.long
def test_batches_of_torch_are_in_a_pool(start):
    pytest.importorskip("torch")
    pytest.importorskip("xmem.torch")
    out = start("torch_dataloader", "--pictures", "500", "--passes", "4").well()
    found = re.fullmatch(r"torch_dataloader: (\d+) batches a pass, (\d+) % right", out)
    assert found.group(1) == "10" and int(found.group(2)) >= 80


@pytest.mark.parametrize("name, arguments, wanted", [
    ("camera", ["nothing.mpeg"], r"nothing.mpeg: No such file.*\ncamera: ffmpeg has ended with "
     r"status 1"),
    ("camera", ["x", "--pool", "a//b"], r"camera: \[Errno 22\] .*"),
    ("viewer", ["--pool", "a//b"], r"viewer: \[Errno 22\] .*"),
    ("onnx_pipeline", ["--model", "nothing.onnx"], r"onnx_pipeline: .*nothing.onnx.*"),
])
def test_errors_are_said_in_a_sentence(start, name, arguments, wanted):
    if name == "onnx_pipeline":
        pytest.importorskip("onnxruntime")
    if "nothing.mpeg" in arguments and not shutil.which("ffmpeg"):
        pytest.skip("ffmpeg is not installed")
    status, out, err = start(name, *arguments).end()
    assert status == 1 and out == ""
    assert re.search(wanted, err) and "Traceback" not in err


def test_without_ffmpeg_the_camera_says_so(start):
    status, _, err = start("camera", "video", env={"PATH": "/nowhere"}).end()
    assert status == 1 and re.fullmatch(r"camera: \[Errno 2\] .*ffmpeg.*", err)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_each_has_help_and_is_short(start, path):
    for module in {"onnx_pipeline": ["onnxruntime"],
                   "torch_dataloader": ["torch", "xmem.torch"]}.get(path.stem, []):
        pytest.importorskip(module)
    out = start(path.stem, "--help").well()
    assert out.startswith(f"usage: {path.name}")
    assert len(path.read_text().splitlines()) <= 80
