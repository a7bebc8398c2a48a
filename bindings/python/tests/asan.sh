#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# asan.sh [ARGUMENT of pytest...]: the tests of the Python package with the address and undefined
# behaviour sanitizers in the extension, in libxmem and in xmemd, and with each object of Python
# from malloc, so that they see it. Not those of PyTorch, whose libraries are none of ours, nor of
# the wheel, and none that only run what the others run: ONNX Runtime, examples, texts. Leaks are
# not looked for: Python keeps much until the process ends.
# Last line: "N passed, N failed, N skipped".
set -euo pipefail
here=$(realpath "$(dirname "$0")")
top=$(realpath "$here/../../..")

cd "$top"
bindings/python/tests/environment.sh numpy2 >/dev/null
make -s -j"$(nproc)" FLAVOUR=asan python

cd "$here"
unset XMEM_SOCKET XMEM_DAEMON
export PYTHONPATH=$top/build/asan/python PYTHONDONTWRITEBYTECODE=1 PYTHONMALLOC=malloc
export HYPOTHESIS_STORAGE_DIRECTORY=$top/build/python/numpy2/hypothesis
reports=$top/build/python/asan-reports
rm -rf "$reports"
mkdir -p "$reports"
export ASAN_OPTIONS=detect_leaks=0:abort_on_error=1:allocator_may_return_null=1
ASAN_OPTIONS+=":log_path='$reports/report'"
export UBSAN_OPTIONS="print_stacktrace=1:log_path='$reports/report'"
# libstdc++ too: else the sanitizer does not find what throws in a module that is loaded later.
preload="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libstdc++.so.6)"
left_out=(--ignore-glob '*torch*')
for name in package onnx examples strings docs docstrings cuda_numba; do
	left_out+=(--ignore "test_$name.py")
done
status=0
timeout -k 10 3600 env "LD_PRELOAD=$preload" "$top/build/python/numpy2/bin/python" -P \
	-m pytest -n 2 --dist loadfile "${left_out[@]}" "$@" || status=$?
for report in "$reports"/*; do
	[ -e "$report" ] || continue
	head -40 "$report"
	echo "FAIL sanitizer: $(grep -m 1 -E 'ERROR:|runtime error:' "$report")"
	status=1
done
exit $status
