#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Tests the types of the installed package. mypy --strict finds no error in it, the extension agrees
# with its type file, and mypy judges users' programs (typed/) as each of their lines says.
set -euo pipefail
here=$(realpath "$(dirname "$0")")
top=$(realpath "$here/../../..")

venv=$("$here/environment.sh" numpy2)
cd "$here"
unset PYTHONPATH MYPYPATH
mypy=("$venv/bin/python" -P -m mypy --config-file "$here/../pyproject.toml"
	--cache-dir "$top/build/python/mypy")
"${mypy[@]}" --package xmem
"${mypy[@]}" typed/*.py
# stubtest takes no --cache-dir, and writes into the current folder.
cd "$top/build/python/mypy"
"$venv/bin/python" -P -m mypy.stubtest --mypy-config-file "$here/../pyproject.toml" \
	--ignore-disjoint-bases --allowlist "$here/typed/stubtest.txt" xmem._core
