#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Hand over point clouds: lidar.py scan | lidar.py watch.

A cloud is an array of numpy's structured type POINT, in the buffer itself. Clouds differ in their
number of points: the scanner acquires room for the most, and publishes as much as it has filled.
The watcher selects points without copying the cloud.
"""
import argparse
import sys
import time

import numpy
import xmem

POINT = numpy.dtype([("x", "<f4"), ("y", "<f4"), ("z", "<f4"), ("intensity", "<u2"),
                     ("ring", "<u2")])
TYPE = "points/x4-y4-z4-i2-r2"      # which both sides mean by POINT
MOST = 16 * 1800                    # 16 rings


def sweep(points, number):
    """Fill in one turn of a lidar in a room of 10 x 10 m, whose far corners give no echo."""
    count = 0
    for ring in range(16):
        angle = numpy.linspace(0, 2 * numpy.pi, 1800, endpoint=False)
        far = 5 / numpy.maximum(abs(numpy.cos(angle)), abs(numpy.sin(angle)))
        angle, far = angle[far < 6.5], far[far < 6.5]
        part = points[count:count + len(far)]
        part["x"], part["y"] = far * numpy.cos(angle), far * numpy.sin(angle)
        part["z"] = far * numpy.tan(numpy.radians(2 * ring - 15))
        part["intensity"], part["ring"] = number % 65536, ring
        count += len(far)
    return count


def scan(options):
    with xmem.BufferPool(options.pool, writer=True, wait_bound=1) as pool:
        pool.preallocate_cpu(count=4, size=MOST * POINT.itemsize)
        pool.wait_for_subscribers()
        for number in range(options.clouds):
            with pool.acquire_cpu(MOST * POINT.itemsize) as guard:
                count = sweep(numpy.frombuffer(guard, POINT), number)
                guard.describe_content(TYPE, "lidar.py")
                guard.publish(length=count * POINT.itemsize, timestamp_ns=time.monotonic_ns())
    print(f"scan: {options.clouds} clouds of {count} points")


def watch(options):
    seen = high = 0
    with xmem.BufferPool(options.pool) as pool:
        with pool.subscribe(waits=True, lasts=False, history=4) as clouds:
            for guard in clouds:
                with guard:
                    if guard.metadata.content_type != TYPE:
                        sys.exit(f"lidar: these are no points: {guard.metadata.content_type}")
                    points = numpy.frombuffer(guard, POINT)
                    high += int((points["z"] > 0).sum())
                    seen += len(points)
                    del points      # the buffer goes back to the scanner
            print(f"watch: {seen} points, {high} above the sensor, {clouds.lost} clouds lost")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=["scan", "watch"])
    parser.add_argument("--pool", default="points", help="its name (points)")
    parser.add_argument("--clouds", type=int, default=20, help="to scan (20)")
    options = parser.parse_args()
    scan(options) if options.what == "scan" else watch(options)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:
        sys.exit(f"lidar: {error}")
