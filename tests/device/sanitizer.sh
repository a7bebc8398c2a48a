#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs the tests of kernels on a GPU, and then under NVIDIA's compute-sanitizer, if that is
# installed. It detects accesses beyond an allocation, and to memory that nothing has written.
#
#   tests/device/sanitizer.sh [FOLDER]     FOLDER: build/test
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 2

build=${1:-build/test}
export XMEM_CUDA_DRIVER=${XMEM_CUDA_DRIVER:-libcuda.so.1}

"$build/device-gpu" || exit 1
tool=$(command -v compute-sanitizer) || tool=/usr/local/cuda/bin/compute-sanitizer
if [ ! -x "$tool" ]; then
	echo 'SKIP compute-sanitizer: it is not installed (it is a part of the CUDA toolkit)'
	exit 0
fi
for kind in memcheck initcheck; do
	XMEM_TEST_SCALE=1 "$tool" --tool $kind --error-exitcode 99 "$build/device-gpu" ||
		{ echo "FAIL compute-sanitizer $kind: status $?"; exit 1; }
done
