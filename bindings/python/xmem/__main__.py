# SPDX-License-Identifier: MIT
"""The tool xmem of this package, as the command "xmem" and as "python -m xmem"."""

import os
import sys
from pathlib import Path


def main() -> None:
    """Become the tool. A package that uses the system's library runs the system's tool."""
    tool = Path(__file__).parent / "lib" / "xmem"
    if not tool.exists():
        sys.exit(f"xmem: {tool} is not there: this package uses the libxmem of the system, which "
                 "comes with a tool of its own, as in /usr/local/bin/xmem")
    os.execv(tool, ["xmem", *sys.argv[1:]])


if __name__ == "__main__":
    main()
