#!/bin/bash
# SPDX-License-Identifier: MIT
# run.sh: the last step of make bench-cuda, after everything is built. On this machine's GPU, or
# with the driver that XMEM_CUDA_DRIVER names, it measures hand-overs of memory of a GPU, and
# hand-overs on streams beside other ways and torch.multiprocessing. If NVIDIA's MPS is installed
# and does not run, it measures the latter again under an MPS of its own. At the end it prints the
# tables for docs/cuda.md. It takes about two minutes. Without a GPU it says so and exits with 0.
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
rm -rf "$out"
mkdir -p "$out"

if ! why=$(build/release/xmem gpu 2>&1); then
	echo "SKIP bench-cuda: $why"
	exit 0
fi
echo "$why"
rc=0
python=$(command -v python3) || python=

# measure FOLDER: hand-overs on streams, and tensors
measure() {
	mkdir -p "$1"
	build/release/bench --case streams --out "$1" || rc=$?
	if [ -n "$python" ]; then
		"$python" bench/cuda/tensors.py >"$1/tensors.txt" || rc=$?
		cat "$1/tensors.txt"
	else
		echo 'SKIP torch.multiprocessing: no python3'
	fi
}

# A daemon of MPS, which serves only the processes of this script. It changes no setting of a GPU.
mps() {
	local folder
	folder=$(mktemp -d)
	export CUDA_MPS_PIPE_DIRECTORY=$folder/pipe CUDA_MPS_LOG_DIRECTORY=$folder/log
	mkdir -p "$CUDA_MPS_PIPE_DIRECTORY" "$CUDA_MPS_LOG_DIRECTORY"
	if nvidia-cuda-mps-control -d; then
		measure "$out/mps"
		echo quit | nvidia-cuda-mps-control
	else
		echo 'SKIP MPS: its daemon does not start'
	fi
	rm -rf "$folder"
	unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
}

build/release/bench --case gpu --out "$out" || rc=$?
measure "$out/plain"
case $XMEM_CUDA_DRIVER in
*fakecuda*) echo 'SKIP MPS: the driver is the fake one' ;;
*)
	if [ -n "${CUDA_MPS_PIPE_DIRECTORY:-}" ] || pgrep -x nvidia-cuda-mps >/dev/null; then
		echo 'SKIP MPS: it runs already, for all of these figures'
	elif command -v nvidia-cuda-mps-control >/dev/null; then
		mps
	else
		echo 'SKIP MPS: it is not installed'
	fi
	;;
esac
[ -n "$python" ] || exit "$rc"
for folder in plain mps; do
	[ -e "$out/$folder/results.json" ] || continue
	printf '\n%s\n\n' "$folder:"
	"$python" bench/cuda/table.py "$out/$folder" || rc=$?
done
exit "$rc"
