# SPDX-License-Identifier: MIT
"""When memory of tensors on a GPU that were sent comes back, with torch's own allocator.

On the fake driver, runtime.c stands for CUDA's runtime, which torch's allocator calls.
"""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from gpu import driver_file, no_violations, on_fake, why_not        # noqa: E402, F401
from support import LIMIT, PACKAGE, without_notes                   # noqa: E402

if torch.version.cuda is None:
    pytest.skip("this torch is built without CUDA", allow_module_level=True)

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The variables with which torch finds a GPU."""
    if why := why_not():
        pytest.fail(why)
    if not on_fake():
        return {}
    library = tmp_path_factory.mktemp("runtime") / "runtime.so"
    subprocess.run(["cc", "-O1", "-w", "-shared", "-fPIC", "-o", library, HERE / "runtime.c"],
                   check=True)
    return {"LD_PRELOAD": str(library), "LD_LIBRARY_PATH": str(Path(driver_file()).parent)}


@pytest.mark.parametrize("event", ["no_block", "deletion", "ipc_collect", "still_there"])
def test_memory_comes_back_with(event: str, runtime: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, HERE / "torch_events.py", event], capture_output=True, text=True,
        timeout=LIMIT, env={**os.environ, **runtime, "PYTHONPATH": PACKAGE}, check=False)
    wrong = [line for line in without_notes(done.stderr).splitlines()
             if "cuGetExportTable" not in line]         # by which the real runtime is refused
    assert done.returncode == 0 and not wrong, done.stdout + done.stderr
