#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs tests whose kernels and copies work on buffers of a pool under NVIDIA's compute-sanitizer, if
# that is installed and a real driver is there. It detects accesses in kernels beyond an allocation
# and to freed memory. Tests that kill processes are left out, because the tool takes the death of a
# process for an error, and so are tests that provoke errors of the driver.
#
#   tests/cuda/sanitizer.sh [FOLDER]     FOLDER: build/test
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 2

build=${1:-build/test}
driver=${XMEM_CUDA_DRIVER:-libcuda.so.1}
tests=(CUDA_kernels_make_and_check_what_streams_hand_over CUDA_a_stream_waits_for_another_process)

skip() { echo "SKIP compute-sanitizer: $*"; echo "0 passed, 0 failed, 1 skipped"; exit 0; }

tool=$(command -v compute-sanitizer) || tool=/usr/local/cuda/bin/compute-sanitizer
[ -x "$tool" ] || skip 'it is not installed (it is a part of the CUDA toolkit)'
[ -e "$driver" ] ||
	driver=$(ldconfig -p | awk -v name="$driver" '$1 == name { print $NF; exit }')
[ -n "$driver" ] || skip "there is no NVIDIA driver (${XMEM_CUDA_DRIVER:-libcuda.so.1})"
nm -D "$driver" | grep -q ' cuFakeCalls$' &&
	skip "the driver is the fake one, which it cannot watch"

# The tool takes xmemd for a program of the tests, and xmemd's status for that of a test. So xmemd
# is started before the tool, and ends by itself.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XMEM_SOCKET=$work/socket
"$build/xmemd" --daemon --idle-ms=60000 || { echo 'FAIL compute-sanitizer: no xmemd'; exit 1; }

XMEM_BACKEND=${XMEM_BACKEND:-daemon} XMEM_TEST_SCALE=${XMEM_TEST_SCALE:-15} \
	"$tool" --tool memcheck --target-processes all --error-exitcode 99 --report-api-errors no \
	"$build/cuda" "${tests[@]}" || { echo "FAIL compute-sanitizer: status $?"; exit 1; }
