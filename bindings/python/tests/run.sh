#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# run.sh ENVIRONMENT [ARGUMENT of pytest...]: the tests of the Python package, against the wheel as
# it is installed into that environment of environment.sh, which is built and made before.
# The fake driver (make FLAVOUR=test fakecuda) stands for a GPU's. The last line is
# "N passed, N failed, N skipped".
#
# Two processes of pytest-xdist share the tests, file by file, for each imports what takes seconds.
# "-n 0" among the arguments: all in one process, as with --pdb. After half an hour the run is
# ended; the last lines then name the tests that hang.
set -euo pipefail
here=$(realpath "$(dirname "$0")")

usage='usage: run.sh debian|numpy2|torch2|torch-RELEASE [ARGUMENT of pytest...]'
venv=$("$here/environment.sh" "${1:?$usage}")
shift

# In a folder in which "import xmem" finds nothing but what is installed.
cd "$here"
export PYTHONDONTWRITEBYTECODE=1 HYPOTHESIS_STORAGE_DIRECTORY=$venv/hypothesis
unset XMEM_SOCKET XMEM_DAEMON PYTHONPATH
exec timeout -k 10 1800 "$venv/bin/python" -P -m pytest -n 2 --dist loadfile "$@"
