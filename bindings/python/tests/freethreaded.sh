#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# freethreaded.sh [ARGUMENT of pytest...]: the tests of the Python package on a CPython that has no
# GIL, for which pip builds the package as the README says. No distribution of today has one, so
# XMEM_PYTHON_FREETHREADED names the interpreter; see docs/environment.md. Not the tests of PyTorch
# and ONNX Runtime, nor those that only run what the others run: examples, texts, the wheel's tools.
# Last line: "N passed, N failed, N skipped".
set -euo pipefail
here=$(realpath "$(dirname "$0")")
cd "$here/../../.."
python=${XMEM_PYTHON_FREETHREADED:-}

if [ -z "$python" ]; then
	echo "SKIP free-threaded: XMEM_PYTHON_FREETHREADED names no interpreter"
	echo "0 passed, 0 failed, 1 skipped"
	exit 0
fi
"$python" -c 'import sys, sysconfig; sys.exit(not sysconfig.get_config_var("Py_GIL_DISABLED"))' || {
	echo "FAIL free-threaded: '$python' cannot be run, or has a GIL"
	echo "0 passed, 1 failed, 0 skipped"
	exit 1
}

venv=$PWD/build/python/free
same=$("$venv/bin/python" -c 'import sys; print(sys.base_prefix, sys.version)' 2>/dev/null || true)
if [ "$same" != "$("$python" -c 'import sys; print(sys.base_prefix, sys.version)')" ]; then
	rm -rf "$venv"
	"$python" -m venv "$venv"
fi
scripts/venv.sh "$venv" bindings/python/requirements/free.txt
"$venv/bin/python" -m pip install -q --disable-pip-version-check --no-index --no-deps \
	--no-build-isolation --force-reinstall ./bindings/python

cd "$here"
left_out=(--ignore-glob '*torch*')
for name in package onnx examples strings docs docstrings cuda_numba; do
	left_out+=(--ignore "test_$name.py")
done
export PYTHONDONTWRITEBYTECODE=1 HYPOTHESIS_STORAGE_DIRECTORY=$venv/hypothesis
unset XMEM_SOCKET XMEM_DAEMON PYTHONPATH PYTHON_GIL
# Tests that collect garbage in each of many turns take minutes: CPython 3.13 looks at all objects.
exec timeout -k 10 1500 "$venv/bin/python" -P -m pytest -o faulthandler_timeout=400 \
	"${left_out[@]}" "$@"
