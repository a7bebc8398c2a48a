#!/bin/bash
# SPDX-License-Identifier: MIT
# run.sh: the last step of make bench-cuda, after everything is built. On this machine's GPU, or
# with the driver that XMEM_CUDA_DRIVER names, it measures hand-overs of memory of a GPU, as make
# bench does on the fake driver, and hand-overs on streams; then hand-overs of
# torch.multiprocessing, if that is installed. Without a GPU it says so and exits with 0.
set -euo pipefail
cd "$(dirname "$0")/../.."

export XMEM_BACKEND=${XMEM_BACKEND:-daemon} XMEM_DAEMON=$PWD/build/release/xmemd
export XMEM_CUDA_DRIVER=${XMEM_CUDA_DRIVER:-libcuda.so.1}
# A daemon of our own, because one that runs may accept other files.
export XMEM_SOCKET=xmem-bench-cuda.$$
case $XMEM_CUDA_DRIVER in
*fakecuda*) export XMEM_DEVICE_FILES=${XMEM_DEVICE_FILES:-memfd} ;;
esac
out=build/bench/cuda
mkdir -p "$out"

if ! why=$(build/release/xmem gpu 2>&1); then
	echo "SKIP bench-cuda: $why"
	exit 0
fi
echo "$why"
rc=0
build/release/bench --case gpu --out "$out" || rc=$?
python=$(command -v python3) || { echo 'SKIP torch.multiprocessing: no python3'; exit "$rc"; }
"$python" bench/cuda/tensors.py "$out/results.json" || rc=$?
exit "$rc"
