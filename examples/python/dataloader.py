#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Workers make batches for a training loop, each batch where the loop reads it.

No batch is pickled or copied. A worker that is killed leaves no memory behind, and other workers
make its remaining batches: --kill shows it.
"""
import argparse
import multiprocessing
import os
import signal
import sys

import numpy
import xmem

spawn = multiprocessing.get_context("spawn")


def draw(index, picture):
    """Make the picture of that number, in place of one that is read from a file and decoded."""
    picture[:] = numpy.random.default_rng(index).random(picture.shape, "float32")


def work(name, label, batches, shape, ready, dies):
    with xmem.BufferPool(name, writer=True, label=label, wait_bound=60) as pool:
        pool.preallocate_cpu(count=4, shape=shape, dtype="float32")
        ready.wait(60)      # all workers have joined
        ready.wait(60)      # and the loop follows them
        for count, batch in enumerate(batches):
            with pool.acquire_cpu(shape, "float32") as guard:
                for row in range(shape[0]):
                    draw(batch * shape[0] + row, numpy.asarray(guard)[row])
                if dies and count == len(batches) // 2:
                    os.kill(os.getpid(), signal.SIGKILL)
                guard.publish()


def load(name, count, shape, workers, kill):
    """Yield each batch once, in the order in which they are made."""
    missing = set(range(count))
    with xmem.BufferPool(name) as pool:
        while missing:
            round, todo = len(missing), sorted(missing)
            ready = spawn.Barrier(workers + 1)
            parts = {f"{round}-{number}": todo[number::workers] for number in range(workers)}
            for label, part in parts.items():
                dies = kill and label == f"{count}-0"
                spawn.Process(target=work, args=(name, label, part, shape, ready, dies)).start()
            ready.wait(60)
            with pool.subscribe(waits=True, lasts=False) as batches:
                ready.wait(60)
                for guard in batches:
                    with guard:
                        missing.remove(parts[guard.publisher_label][guard.sequence])
                        yield guard
            if len(missing) == round:
                sys.exit("dataloader: the workers have ended and made nothing")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--batches", type=int, default=40, help="how many (40)")
    parser.add_argument("--size", type=int, default=32, help="pictures in a batch (32)")
    parser.add_argument("--workers", type=int, default=2, help="processes (2)")
    parser.add_argument("--kill", action="store_true", help="kill a worker on its way")
    options = parser.parse_args()
    means = [numpy.asarray(guard).mean(dtype="float64")     # the training
             for guard in load(f"batches-{os.getpid()}", options.batches, (options.size, 64, 64),
                               options.workers, options.kill)]
    print(f"dataloader: {len(means)} batches, mean {numpy.mean(means):.6f}")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:
        sys.exit(f"dataloader: {error}")
