#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Run one of three models on the pictures of camera.py, which stay where ffmpeg has put them.

Each model is a process, and a camera of V4L2 is a video as well:

    models.py brightness & models.py motion & models.py edges & camera.py /dev/video0

The camera waits for brightness and motion, which see every picture; motion keeps the picture before
in its buffer. edges looks at the latest picture alone, as slow models do. If a model is killed, the
others and the camera go on.
"""
import argparse
import sys

import numpy
import xmem


def brightness(picture, before):
    """The mean over all pixels."""
    return picture.mean()


def motion(picture, before):
    """Have the pixels changed?"""
    return bool(numpy.abs(picture.astype("int16") - before).mean() > 5)


def edges(picture, before):
    """The mean difference between neighbours."""
    return numpy.abs(numpy.diff(picture.astype("int16"), axis=1)).mean()


MODELS = {model.__name__: model for model in (brightness, motion, edges)}


def watch(frames, model):
    """Returns the model's results. It always holds the picture before."""
    results, before = [], None
    for frame in frames:
        results.append(model(numpy.asarray(frame), numpy.asarray(before or frame)))
        if before:
            before.release()
        before = frame
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("--pool", default="camera", help="its name (camera)")
    options = parser.parse_args()
    latest = options.model == "edges"
    with xmem.BufferPool(options.pool, label=options.model) as pool:
        with pool.subscribe(waits=not latest, depth=int(latest), history=0 if latest else 64,
                            lasts=False) as frames:
            results = watch(frames, MODELS[options.model])
    print(f"{options.model}: {len(results)} pictures, sum {sum(results):.1f}")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:
        sys.exit(f"models: {error}")
