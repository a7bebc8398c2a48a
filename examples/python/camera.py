#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Publish the pictures of a video in a pool, for viewer.py and onnx_pipeline.py.

ffmpeg decodes the video into a pipe, from which the pictures are read straight into the pool's
buffers: Python copies none. The camera waits for a viewer that asks for it, up to --patience
seconds.
"""
import argparse
import subprocess
import sys
import time

import xmem


def decode(video, width, height, frames, fast):
    """Start ffmpeg; without fast it runs as long as the video."""
    return subprocess.Popen(
        ["ffmpeg", "-nostdin", "-v", "error", *([] if fast else ["-re"]), "-i", video,
         "-vf", f"scale={width}:{height}", *(["-frames:v", str(frames)] if frames else []),
         "-f", "rawvideo", "-pix_fmt", "rgb24", "-"], stdout=subprocess.PIPE, bufsize=0)


def fill(pixels, pipe):
    """Read a whole picture. False: the pipe has ended."""
    while pixels:
        count = pipe.readinto(pixels)
        if not count:
            return False
        pixels = pixels[count:]
    return True


def publish(pool, shape, pipe):
    """Publish the pictures that come from the pipe. Returns their number."""
    count = 0
    while True:
        with pool.acquire_cpu(shape, "uint8") as frame:
            with memoryview(frame) as pixels:
                if not fill(pixels.cast("B"), pipe):
                    return count
            frame.publish(timestamp_ns=time.monotonic_ns())
            count += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("video", help="any file that ffmpeg reads")
    parser.add_argument("--pool", default="camera", help="its name (camera)")
    parser.add_argument("--width", type=int, default=320, help="of a picture (320)")
    parser.add_argument("--height", type=int, default=240, help="of a picture (240)")
    parser.add_argument("--frames", type=int, default=0, help="end after so many (all)")
    parser.add_argument("--buffers", type=int, default=16, help="pictures in memory (16)")
    parser.add_argument("--patience", type=float, default=1, help="seconds for the slow (1)")
    parser.add_argument("--fast", action="store_true", help="as fast as ffmpeg decodes")
    options = parser.parse_args()
    shape = options.height, options.width, 3
    with xmem.BufferPool(options.pool, writer=True, wait_bound=options.patience,
                         keep=options.buffers) as pool:
        pool.preallocate_cpu(count=options.buffers, shape=shape, dtype="uint8")
        ffmpeg = decode(options.video, options.width, options.height, options.frames,
                        options.fast)
        try:
            count = publish(pool, shape, ffmpeg.stdout)
        except BaseException:
            ffmpeg.kill()
            raise
        if ffmpeg.wait():
            sys.exit(f"camera: ffmpeg has ended with status {ffmpeg.returncode}")
        print(f"camera: {count} pictures")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:    # an error of xmem, or there is no ffmpeg
        sys.exit(f"camera: {error}")
