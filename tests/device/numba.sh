#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# numba.sh [ARGUMENT of pytest...]: the tests of xmem.numba, without a GPU. They use the sources of
# the package, and numba-cuda from PyPI in the environment of tests/judges.
# The last line is "N passed, N failed, N skipped".
set -euo pipefail
cd "$(dirname "$0")/../.."

# A copy that tests/check-mutants.sh has made uses the environment of the tree beside it.
venv=$PWD/build/judges
case $PWD in */build/mutants/*) venv=${PWD%/mutants/*}/judges ;; esac
scripts/venv.sh "$venv" tests/judges/requirements.txt

export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$PWD/bindings/python/tests
exec "$venv/bin/python" -P -m pytest -q -rN -p tally -p no:cacheprovider --tb=short \
	--rootdir tests/device tests/device "$@"
