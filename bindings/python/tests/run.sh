#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# run.sh debian|numpy2|torch2 [ARGUMENT of pytest...]: the tests of the Python package, against the
# wheel as it is installed into that environment (environment.sh), which is built and made before.
# The fake driver (make FLAVOUR=test fakecuda) stands for a GPU's. The last line is
# "N passed, N failed, N skipped".
set -euo pipefail
here=$(realpath "$(dirname "$0")")

venv=$("$here/environment.sh" "${1:?usage: run.sh debian|numpy2|torch2 [ARGUMENT of pytest...]}")
shift

# In a folder in which "import xmem" finds nothing but what is installed.
cd "$here"
export PYTHONDONTWRITEBYTECODE=1
unset XMEM_SOCKET XMEM_DAEMON PYTHONPATH
exec timeout -k 10 900 "$venv/bin/python" -P -m pytest "$@"
