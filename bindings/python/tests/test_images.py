# SPDX-License-Identifier: MIT
"""Images of several planes: each is a buffer, none gets lost, and all lie as ffmpeg has them."""
from __future__ import annotations

import ctypes
import ctypes.util
import io
import pickle
import sys
from collections.abc import Iterator

import numpy
import pytest
import xmem
from support import LIMIT, pair
from xmem import ImageFormat

ORDER = "le" if sys.byteorder == "little" else "be"

#: ffmpeg's name of each format.
NAMES = {
    "GRAY8": "gray", "GRAY16": "gray16" + ORDER, "RGB8": "rgb24", "BGR8": "bgr24",
    "RGBA8": "rgba", "BGRA8": "bgra", "YUYV": "yuyv422", "UYVY": "uyvy422", "I420": "yuv420p",
    "NV12": "nv12", "NV21": "nv21", "NV16": "nv16", "P010": "p010" + ORDER,
    "P016": "p016" + ORDER, "YV12": "yuv420p", "I422": "yuv422p", "I444": "yuv444p",
    "BAYER_BGGR8": "bayer_bggr8", "BAYER_GBRG8": "bayer_gbrg8", "BAYER_GRBG8": "bayer_grbg8",
    "BAYER_RGGB8": "bayer_rggb8", "BAYER_BGGR16": "bayer_bggr16" + ORDER,
    "BAYER_GBRG16": "bayer_gbrg16" + ORDER, "BAYER_GRBG16": "bayer_grbg16" + ORDER,
    "BAYER_RGGB16": "bayer_rggb16" + ORDER, "RGB48": "rgb48" + ORDER,
    "RGBA64": "rgba64" + ORDER, "RGBF32": "rgbf32" + ORDER, "GBRPF32": "gbrpf32" + ORDER,
}
SIZES = [(1, 1), (1, 2), (2, 1), (3, 3), (4, 4), (5, 7), (16, 8), (33, 17), (640, 480),
         (641, 481), (1919, 1079)]


class Ffmpeg:
    """The numbers of libavutil, which ffmpeg brings along."""

    def __init__(self) -> None:
        found = ctypes.util.find_library("avutil")
        assert found, "libavutil is part of ffmpeg: scripts/needs.sh python-tests"
        self.library = ctypes.CDLL(found)

    def image(self, name: str, width: int, height: int, room: int
              ) -> tuple[int, list[tuple[int, int, int, int]]]:
        """Bytes, and each plane's offset, stride, bytes and rows. room: pixels of each row."""
        if name.startswith("rgbf32") and self.library.av_get_pix_fmt(name.encode()) < 0:
            # ffmpeg 5 does not know it: a row is that of a gray one with three floats a pixel.
            name, width, room = "grayf32" + ORDER, 3 * width, 3 * room
        form = self.library.av_get_pix_fmt(name.encode())
        assert form >= 0, f"ffmpeg does not know {name}"
        lines, rows = (ctypes.c_int * 4)(), (ctypes.c_int * 4)()
        assert self.library.av_image_fill_linesizes(lines, form, room) >= 0
        assert self.library.av_image_fill_linesizes(rows, form, width) >= 0
        sizes = (ctypes.c_size_t * 4)()
        strides = (ctypes.c_ssize_t * 4)(*lines)
        assert self.library.av_image_fill_plane_sizes(sizes, form, height, strides) >= 0
        count = self.library.av_pix_fmt_count_planes(form)
        planes = [(sum(sizes[:p]), lines[p], rows[p], sizes[p] // lines[p]) for p in range(count)]
        total = sum(sizes) - lines[count - 1] + rows[count - 1]
        if room == width:
            assert total == self.library.av_image_get_buffer_size(form, width, height, 1)
        return total, planes


def said(image: xmem.Image) -> list[tuple[int, int, int, int]]:
    return [(plane.offset, plane.stride, plane.row_bytes, plane.rows) for plane in image.planes]


def test_each_format_is_compared() -> None:
    assert set(NAMES) == {form.name for form in ImageFormat if form}


@pytest.mark.parametrize("name", NAMES)
def test_planes_lie_where_ffmpeg_has_them(name: str) -> None:
    ffmpeg, form = Ffmpeg(), ImageFormat[name]
    with pair() as (writer, _):
        for width, height in SIZES:
            for room in (width, width + 1, (width + 63) // 64 * 64):
                total, planes = ffmpeg.image(NAMES[name], width, height, room)
                stride = planes[0][1]
                assert xmem.image_bytes(form, width, height, stride) == total
                with writer.acquire_cpu(total) as guard:
                    guard.describe_image(form, width, height, stride)
                    assert said(guard.image()) == planes
                    if room == width:
                        assert xmem.image_bytes(form, width, height) == total
                        guard.describe_image(form, width, height)
                        assert said(guard.image()) == planes


@pytest.mark.parametrize("name", NAMES)
def test_each_plane_is_an_array_without_a_copy(name: str) -> None:
    width, height = 5, 3
    form = ImageFormat[name]
    stride = xmem.image_bytes(form, 7, 1) if form < ImageFormat.YUYV else 0
    with pair() as (writer, reader):
        subscription = reader.subscribe()
        guard = writer.acquire_cpu(xmem.image_bytes(form, width, height, stride))
        numpy.frombuffer(guard, "uint8")[:] = 0xff
        guard.describe_image(form, width, height, stride)
        whole = numpy.frombuffer(guard._span(), "uint8")
        for number, plane in enumerate(guard.image().planes):
            array = numpy.asarray(plane)
            assert array.shape == plane.shape and array.strides == plane.strides
            assert array.dtype == plane.dtype and len(plane.shape) in (2, 3)
            assert array.nbytes == plane.rows * plane.row_bytes
            assert array.ctypes.data == whole.ctypes.data + plane.offset
            array[...] = number + 1
            del array
        want = bytes(whole)
        del whole
        guard.publish()
        with subscription.receive(0) as got:
            for number, plane in enumerate(got.image().planes):
                array = numpy.asarray(plane)
                assert not array.flags.writeable and (array == number + 1).all()
                assert bytes(plane) == array.tobytes()
                del array
            # No byte of any plane is another one than what was written.
            assert bytes(numpy.frombuffer(got._span(), "uint8")) == want


# ---- everything, or nothing ----

@pytest.fixture
def nv12() -> Iterator[tuple[xmem.BufferPool, xmem.BufferGuard]]:
    """A writer, and an image of 5 x 3 pixels in NV12, in a buffer with room for more."""
    with pair() as (writer, reader):
        subscription = reader.subscribe()
        guard = writer.acquire_cpu(64)
        guard.describe_image(ImageFormat.NV12, 5, 3)
        numpy.asarray(guard)[:] = numpy.arange(27)
        guard.publish()
        with subscription.receive(0) as got:
            yield writer, got


def test_all_planes_are_in_each_copy(nv12: tuple[xmem.BufferPool, xmem.BufferGuard]) -> None:
    _, guard = nv12
    every = bytes(range(27))                    # 3 rows of 5, and 2 of 6
    assert guard.shape == (27,) and guard.dtype == "uint8"
    assert bytes(guard) == guard.tobytes() == bytes(memoryview(guard)) == every
    file = io.BytesIO()
    assert file.write(guard) == 27 and file.getvalue() == every
    loaded = pickle.loads(pickle.dumps(guard))
    assert bytes(loaded) == every and said(loaded.image()) == said(guard.image())
    loaded.release()
    luma, chroma = guard.image().planes
    assert bytes(luma) + bytes(chroma) == every and chroma.shape == (2, 3, 2)


def test_a_plane_is_of_this_process(nv12: tuple[xmem.BufferPool, xmem.BufferGuard]) -> None:
    _, guard = nv12
    for plane in guard.image().planes:
        with pytest.raises(TypeError, match="pickle"):
            pickle.dumps(plane)


def test_copies_keep_chroma(nv12: tuple[xmem.BufferPool, xmem.BufferGuard]) -> None:
    writer, guard = nv12
    with writer.acquire_cpu(27) as copy:
        with pytest.raises(xmem.Error, match="64 bytes"):       # as many as that one has
            copy.copy_from(guard)
        copy.describe_image(ImageFormat.NV12, 5, 3)
        assert copy.copy_from(guard) == 27 and bytes(copy) == bytes(range(27))
        assert bytes(copy.image().planes[1]) == bytes(range(15, 27))
        assert numpy.from_dlpack(copy).tolist() == list(range(27))
        with pytest.raises(ValueError, match=r"\(27,\).*\(3, 5\)"):
            copy.copy_from(guard.image().planes[0])             # luma is not all of it
        for form, width, height in ((ImageFormat.NV21, 5, 3), (ImageFormat.GRAY8, 27, 1)):
            copy.describe_image(form, width, height)
            with pytest.raises(ValueError, match="images of two formats"):
                copy.copy_from(guard)
    with writer.acquire_cpu(64) as copy:
        assert copy.copy_from(guard) == 64
        assert said(copy.image()) == said(guard.image()) and bytes(copy) == bytes(range(27))


def test_a_row_of_pairs_has_all_bytes() -> None:
    """Of an odd width: the last pixel has no neighbour, but its chroma is in that one's bytes."""
    with pair() as (writer, _), writer.acquire_cpu(16) as guard:
        guard.describe_image(ImageFormat.YUYV, 3, 2)
        numpy.asarray(guard)[...] = numpy.arange(16).reshape(2, 4, 2)
        assert bytes(guard) == bytes(guard.image().planes[0]) == bytes(range(16))


# ---- what planes hold, and when they end ----

def test_a_view_of_a_plane_keeps_the_contents() -> None:
    with pair() as (writer, reader):
        subscription = reader.subscribe()
        writer.preallocate_cpu(27, 1)
        with writer.acquire_cpu(27) as guard:
            guard.describe_image(ImageFormat.NV12, 5, 3)
            numpy.asarray(guard)[:] = 7
            guard.publish()
        got = subscription.receive(0)
        image = got.image()
        chroma = numpy.asarray(image.planes[1])
        got.release()
        with pytest.raises(xmem.WouldBlock):
            writer.acquire_cpu(27, timeout=0)
        assert (chroma == 7).all()
        for use in (memoryview, bytes, numpy.asarray):      # no array of one object
            with pytest.raises(xmem.Released):
                use(image.planes[0])
        assert image.planes[0].shape == (3, 5)
        del chroma
        writer.acquire_cpu(27, timeout=LIMIT).release()


def test_a_plane_of_what_was_described_before_is_refused() -> None:
    with pair() as (writer, _), writer.acquire_cpu(64) as guard:
        guard.describe_image(ImageFormat.I420, 4, 4)
        planes = guard.image().planes
        with memoryview(planes[2]) as view:
            with pytest.raises(BufferError, match="has views"):
                guard.describe((2,), "uint8")
            assert view.shape == (2, 2) and not view.readonly
        guard.describe_image(ImageFormat.NV12, 4, 4)
        for plane in planes[1:]:
            for use in (memoryview, numpy.asarray):
                with pytest.raises(BufferError, match="described anew"):
                    use(plane)
        assert memoryview(planes[0]).shape == (4, 4)
        guard.describe((2,), "uint8")
        with pytest.raises(xmem.Error):
            memoryview(planes[0])


def test_planes_say_what_they_are() -> None:
    with pair() as (writer, _), writer.acquire_cpu(64) as guard:
        guard.describe_image(ImageFormat.P010, 4, 4)
        chroma = guard.image().planes[1]
        assert repr(chroma) == "<xmem.Plane 1, uint16 (2, 2, 2), from byte 32 on>"
        with pytest.raises(TypeError):
            type(chroma)()
        with pytest.raises(xmem.Error, match="no image format"):
            xmem.image_bytes(99, 4, 4)
