#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Look at the pictures in a pool, and draw some of them side by side into a PNG file.

It waits for the first camera and ends with the last one, after --frames pictures, or by Ctrl-C. It
may also be killed, which does not disturb the camera.
"""
import argparse
import math
import struct
import sys
import zlib

import numpy
import xmem


def look(frames, options):
    """Keep small copies of some pictures. Each picture goes back to the pool at once."""
    count, copies = 0, []
    try:
        for frame in frames:
            with frame:
                if frame.dtype != "uint8" or len(frame.shape) != 3 or frame.shape[2] != 3:
                    sys.exit("viewer: these are not pictures of three bytes a pixel")
                if count % options.every == 0 and len(copies) < options.pictures:
                    small = numpy.asarray(frame)[::options.shrink, ::options.shrink]
                    copies.append(small.copy())
            count += 1
            if count == options.frames:
                break
    except KeyboardInterrupt:
        pass        # draw the pictures that there are
    return count, copies


def sheet(pictures):
    """Lay them out in a square, row by row."""
    side = math.ceil(math.sqrt(len(pictures)))
    white = numpy.full_like(pictures[0], 255)
    pictures = pictures + [white] * (-len(pictures) % side)
    rows = [numpy.hstack(pictures[at:at + side]) for at in range(0, len(pictures), side)]
    return numpy.vstack(rows)


def write_png(path, picture):
    height, width, _ = picture.shape
    rows = b"".join(b"\0" + row.tobytes() for row in picture)
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n")
        for kind, data in ((b"IHDR", struct.pack(">2I5B", width, height, 8, 2, 0, 0, 0)),
                           (b"IDAT", zlib.compress(rows)), (b"IEND", b"")):
            file.write(struct.pack(">I", len(data)) + kind + data)
            file.write(struct.pack(">I", zlib.crc32(kind + data)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("output", nargs="?", default="contact.png", help="(contact.png)")
    parser.add_argument("--pool", default="camera", help="its name (camera)")
    parser.add_argument("--frames", type=int, default=0, help="end after so many (all)")
    parser.add_argument("--pictures", type=int, default=16, help="at most in the file (16)")
    parser.add_argument("--every", type=int, default=1, help="one of how many (1)")
    parser.add_argument("--shrink", type=int, default=2, help="a row and column of how many (2)")
    options = parser.parse_args()
    with xmem.BufferPool(options.pool, label="viewer") as pool:
        with pool.subscribe(waits=True, history=64, lasts=False) as frames:
            count, copies = look(frames, options)
            print(f"viewer: {count} pictures, {frames.lost} lost", flush=True)
    if copies:
        write_png(options.output, sheet(copies))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:
        sys.exit(f"viewer: {error}")
