#!/bin/bash
# SPDX-License-Identifier: MIT
# run.sh: the last step of make bench, after everything is installed and built. It prints the
# host, runs build/release/bench, and draws build/bench/ratios.svg. With BACKEND=kernel and no
# /dev/xmem it runs in the virtual machine of tests/vm. That is emulated, so times are not judged,
# only counts (system calls, memory).
set -euo pipefail
cd "$(dirname "$0")/.."

backend=${BACKEND:-${XMEM_BACKEND:-daemon}}
case $backend in
daemon | kernel) ;;
*) echo "bench: BACKEND is daemon or kernel, not '$backend'" >&2; exit 2 ;;
esac
export XMEM_BACKEND=$backend XMEM_DAEMON=$PWD/build/release/xmemd
# The fake GPU, unless the caller names a driver; its descriptors are memfds.
export XMEM_CUDA_DRIVER=${XMEM_CUDA_DRIVER:-$PWD/build/release/fakecuda/libcuda.so.1}
export XMEM_DEVICE_FILES=${XMEM_DEVICE_FILES:-195:255,memfd}
mkdir -p build/bench
if [ "$backend" = daemon ] || [ -e /dev/xmem ]; then
	rc=0
	build/release/bench --out build/bench || rc=$?
	bench/plot.sh bench/ratios.gp build/bench/ratios.tsv build/bench/ratios.svg
	exit $rc
fi

scripts/needs.sh kmod vm || exit 2
module=$(tests/vm/module.sh debian-6.1)
# shellcheck disable=SC2016
in_guest='cd "$1" && export XMEM_CUDA_DRIVER=$1/build/release/fakecuda/libcuda.so.1
build/release/bench --untimed --reps 21 --hand-overs 200000 --out "$VM_OUT"'
exec tests/vm/vm.sh -q -m "$module" -o build/bench/vm -t 600 -- \
	bash -c "$in_guest" bench "$PWD"
