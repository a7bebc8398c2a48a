# SPDX-License-Identifier: MIT
"""All measurements of bench/python, one after the other, and the machine. make bench-python.

Exit status 1: a target is missed, or xmem has left something behind.
"""
from __future__ import annotations

import importlib.util
import os
import platform
import sys


def main() -> int:
    if not importlib.util.find_spec("torch"):
        print("bench-python: this Python has no torch")
        return 1
    import torch

    import handover
    import kills
    import messages
    import overhead

    print(f"Python {platform.python_version()}, torch {torch.__version__}, "
          f"{len(os.sched_getaffinity(0))} processors, Linux {platform.release()}\n")
    good = overhead.main()
    print()
    good &= handover.main()
    print()
    good &= kills.main()
    print()
    messages.main()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
