#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs programs of other projects on the fake driver, which must behave as they rely on.
#
#   tests/judges/run.sh cuda-core     our test of cuda.core and cuda.bindings
#   tests/judges/run.sh numba-cuda    the modules of numba-cuda's tests that need no compiler
#
# They come from PyPI into build/judges, in the versions of requirements.txt. The driver must be
# built before (make FLAVOUR=test fakecuda). Python's tests use the same environment.
# The last line is "N passed, N failed, N skipped".
set -euo pipefail
cd "$(dirname "$0")/../.."

judge=${1:?usage: run.sh cuda-core|numba-cuda}
shift
venv=$PWD/build/judges
scripts/venv.sh "$venv" tests/judges/requirements.txt

export LD_LIBRARY_PATH=$PWD/build/test/fakecuda
export PYTHONDONTWRITEBYTECODE=1 FAKECUDA_SEED=${FAKECUDA_SEED:-1}
case $judge in
cuda-core) program=tests/judges/with_cuda_core.py ;;
numba-cuda)
	# numba-cuda registers memory at any address, fills the range of cuMemGetAddressRange, and
	# has tests for two devices. A real driver allows all of that.
	export FAKECUDA_HOST_ALIGN=any FAKECUDA_RANGE=allocation FAKECUDA_DEVICES=2
	program=tests/judges/with_numba.py
	;;
*) echo "run.sh: no judge is called '$judge'" >&2; exit 2 ;;
esac
exec "$venv/bin/python" "$program" "$@"
