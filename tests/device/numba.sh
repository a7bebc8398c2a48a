#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# numba.sh [ARGUMENT of pytest...]: the tests of xmem.numba, without a GPU. They use the sources of
# the package, and numba-cuda from PyPI in the environment of tests/judges.
# The last line is "N passed, N failed, N skipped".
#
# numba.sh --build FOLDER MAJOR.MINOR: see numba_gpu.py.
set -euo pipefail
cd "$(dirname "$0")/../.."

# A copy that tests/check-mutants.sh has made uses the environment of the tree beside it.
venv=$PWD/build/judges
case $PWD in */build/mutants/*) venv=${PWD%/mutants/*}/judges ;; esac
scripts/venv.sh "$venv" tests/judges/requirements.txt

export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$PWD/bindings/python/tests
if [ "${1:-}" = --build ]; then
	export PYTHONPATH=$PYTHONPATH:$PWD/tests/device
	exec "$venv/bin/python" -P tests/device/numba_build.py "${@:2}"
fi
exec "$venv/bin/python" -P -m pytest -q -rN -p tally -p no:cacheprovider --tb=short \
	--rootdir tests/device tests/device "$@"
