#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Train on batches of PyTorch's DataLoader, which its workers hand over in buffers of a pool.

xmem.torch.install() is the only line that differs. No batch is sent as a file descriptor or as a
file in /dev/shm, and a worker that is killed leaves none behind. dataloader.py does it without
PyTorch.
"""
import argparse
import sys

import torch
import xmem.torch


class Digits(torch.utils.data.Dataset):
    """Pictures of 32 x 32 pixels of ten kinds: a bright row, whose place is the kind, and noise."""

    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if index >= self.count:
            raise IndexError(index)
        noise = torch.Generator().manual_seed(index)
        picture = torch.rand(32, 32, generator=noise)
        picture[3 * (index % 10) + 1] += 1
        return picture, index % 10


def train(batches, passes):
    """Returns the number of batches, and the part that was right in the last pass."""
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(32 * 32, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(passes):
        count = right = seen = 0
        for pictures, kinds in batches:
            assert xmem.torch.is_pooled(pictures), "this batch was copied"
            scores = model(pictures)
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(scores, kinds).backward()
            optimizer.step()
            count += 1
            seen += len(kinds)
            right += int((scores.argmax(1) == kinds).sum())
    return count, right / seen


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pictures", type=int, default=2000, help="how many (2000)")
    parser.add_argument("--size", type=int, default=50, help="pictures in a batch (50)")
    parser.add_argument("--passes", type=int, default=3, help="over all of them (3)")
    parser.add_argument("--workers", type=int, default=2, help="processes (2)")
    options = parser.parse_args()
    xmem.torch.install()
    batches = torch.utils.data.DataLoader(Digits(options.pictures), options.size, shuffle=True,
                                          num_workers=options.workers)
    count, right = train(batches, options.passes)
    print(f"torch_dataloader: {count} batches a pass, {100 * right:.0f} % right")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:
        sys.exit(f"torch_dataloader: {error}")
