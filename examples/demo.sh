#!/bin/bash
# SPDX-License-Identifier: MIT
# demo.sh look|needs|lacks-gpu|run: the steps of "make demo", see examples.mk.
#   look      checks the video and the backend, before anything is installed
#   needs     prints the purposes for scripts/needs.sh
#   lacks-gpu true if a GPU is asked for and there is none; then tests/fakecuda is built
#   run       runs the director: here, or in a virtual machine with xmem.ko
# From the environment: DEMO_VIDEO (empty: Debian's clip), DEMO_BACKEND (kernel,
# daemon, or empty: the library's choice), DEMO_PROGRAMS (their folder), DEMO_MODE
# (empty: the pipeline; claims: buffers handed over by count), DEMO_GPU (1: frames are in
# the memory of a GPU, or without a GPU in that of the driver of tests/fakecuda), DEMO_FOLDER
# (for the results), DEMO_OCAML (1: the producer and the histogram are in OCaml).
set -euo pipefail

video=${DEMO_VIDEO:-/usr/share/forensics-samples/original-files/movie2/movie-hello.mpeg}
backend=${DEMO_BACKEND:-${XMEM_BACKEND:-}}
programs=${DEMO_PROGRAMS:-build/release}
mode=${DEMO_MODE:-}
gpu=${DEMO_GPU:-}
ocaml=${DEMO_OCAML:-}
folder=${DEMO_FOLDER:-build/demo}
device=/dev/xmem

die() { echo "demo: $*" >&2; exit 1; }

in_machine() { [ "$backend" = kernel ] && [ ! -e "$device" ]; }

look() {
	case $backend in
	'' | kernel | daemon) ;;
	*) die "BACKEND is kernel or daemon, not '$backend'" ;;
	esac
	case $mode in
	'' | claims) ;;
	*) die "MODE is claims or nothing, not '$mode'" ;;
	esac
	case $gpu in
	'' | 1) ;;
	*) die "GPU is 1 or nothing, not '$gpu'" ;;
	esac
	case $ocaml in
	'' | 1) ;;
	*) die "OCAML is 1 or nothing, not '$ocaml'" ;;
	esac
	[ -z "$ocaml" ] || { [ -z "$mode" ] && ! in_machine; } ||
		die "OCAML=1 is for the pipeline on this machine's host"
	[ -z "$gpu" ] || [ -z "$mode" ] ||
		die "MODE=$mode hands over buffers of the CPU: leave out GPU=1"
	[ -n "${DEMO_VIDEO:-}" ] || return 0
	[ -e "$video" ] || [ -L "$video" ] || die "$video: No such file or directory"
	[ -f "$video" ] || die "$video: it is not a regular file"
	[ -s "$video" ] || die "$video: the file is empty"
	[ -r "$video" ] || die "$video: Permission denied"
}

# The guest has its own /dev, /proc, /run, /sys. It reads as root, which may read less than the
# caller.
reachable_video() {
	local real
	real=$(realpath -- "$video")
	case $real in
	/dev/* | /proc/* | /run/* | /sys/*)
		copy=$(mktemp -d build/demo-video.XXXXXX)
		cp -- "$real" "$copy/${real##*/}"
		video=$copy/${real##*/} ;;
	*) video=$real ;;
	esac
}

copy='' machine=''
clean_up() {
	[ -z "$copy" ] || rm -rf "$copy"
	[ -z "$machine" ] || rm -rf "$machine"
}

# ---- GPUs ----

lacks_gpu() {
	[ -n "$gpu" ] || return 1
	in_machine ||
		{ [ -z "${XMEM_CUDA_DRIVER:-}" ] && ! "$programs/demo-director" -G >/dev/null; }
}

# The driver of tests/fakecuda: its memory is memfds, which a daemon accepts only if it is told
# to, or files of the device that tests/kernel/gpu makes in a virtual machine. The memory of its
# processes is counted in a file that they share. Its copies take some time, so that missing
# waits are noticed.
use_fake_driver() {
	echo "demo: no GPU is used: $1"
	echo "demo: tests/fakecuda stands in for one, with memory of the CPU"
	[ "$backend" = kernel ] || backend=daemon
	[ "$backend" = daemon ] || [ -n "${FAKECUDA_DEVICE_FILE:-}" ] ||
		die "xmem.ko does not take the fake driver's memory: leave out BACKEND=kernel"
	rm -f "$folder-gpu-state"
	export XMEM_CUDA_DRIVER=$PWD/$programs/fakecuda/libcuda.so.1
	FAKECUDA_STATE=$(realpath -m "$folder-gpu-state")
	export FAKECUDA_STATE
	export FAKECUDA_DELAY_US=${FAKECUDA_DELAY_US:-300}
	export XMEM_SOCKET=${XMEM_SOCKET:-xmem-fakecuda-$UID}
	export XMEM_DEVICE_FILES=${XMEM_DEVICE_FILES:-195:255,memfd}
}

find_gpu() {
	local said
	if in_machine; then
		export FAKECUDA_DEVICE_FILE=/dev/xmem-test-gpu
		use_fake_driver "a virtual machine has none"
	elif said=$("$programs/demo-director" -G); then
		echo "demo: GPU: $said, by ${XMEM_CUDA_DRIVER:-libcuda.so.1}"
	elif [ -n "${XMEM_CUDA_DRIVER:-}" ]; then
		die "SKIP: no GPU by XMEM_CUDA_DRIVER=$XMEM_CUDA_DRIVER: $said"
	else
		use_fake_driver "$said"
	fi
}

# This runs in the guest: the director on this folder, of which the guest has a copy that must
# be brought out. Meanwhile all of /sys/class/xmem is read once a second; the last reading with
# a held frame is kept.
# shellcheck disable=SC2016
in_guest='
	"$1/demo-director" $4 -o "$3" -w 5000 -- "$2" 2>"$VM_OUT/errors" &
	director=$!
	while kill -0 $director 2>/dev/null; do
		(cd /sys/class/xmem && grep -rsI . pool*/ --exclude=uevent --exclude=buffers
		for pool in pool*; do	# the ninth word of a line: how often the slot is held
			awk -v pool="$pool" "\$9 + 0 { print pool, \"slot\", \$1, \
				\"is held\", \$9, \"times\" }" "$pool/buffers"
		done) >/tmp/look
		! grep -q "is held" /tmp/look || cp /tmp/look /tmp/sysfs
		sleep 1
	done
	wait $director
	status=$?
	[ ! -d "$3" ] || cp -r "$3" "$VM_OUT/demo"
	[ ! -e /tmp/sysfs ] || cp /tmp/sysfs "$VM_OUT/demo/"
	exit $status'

# In the emulator everything is about 20 times slower, so the producer also waits longer.
run_in_machine() {
	local status=0 module modules=() options=-p
	[ ! -t 1 ] || options=''
	[ -z "$gpu" ] || options+=' -g'
	"$programs/demo-director" -c -- "$video"
	mkdir -p build
	trap clean_up EXIT
	machine=$(mktemp -d build/demo-machine.XXXXXX)
	reachable_video
	if [ -n "$gpu" ]; then
		module=$(tests/kernel/gpu/module.sh debian-6.1)
		modules+=(-m "$module")
	fi
	module=$(tests/vm/module.sh debian-6.1)
	modules+=(-m "$module")
	[ -z "$gpu" ] || modules+=(-p device_files=240:255)
	rm -rf "$folder"
	VM_ENV="${VM_ENV:-} FAKECUDA_DEVICE_FILE FAKECUDA_STATE FAKECUDA_DELAY_US" \
	XMEM_BACKEND=kernel tests/vm/vm.sh -q -k debian-6.1 "${modules[@]}" -o "$machine" \
		-t 3600 -M 2048 -- \
		sh -c "$in_guest" demo "$PWD/$programs" "$video" "$folder" "$options" || status=$?
	[ ! -s "$machine/files/errors" ] || cat "$machine/files/errors" >&2
	if [ -d "$machine/files/demo" ]; then
		cp -r "$machine/files/demo" "$folder"
	fi
	case $status in
	0)
		cp "$machine/console.log" "$folder/"
		[ -s "$folder/sysfs" ] ||
			die "/sys/class/xmem showed no buffer in use while the demo ran"
		;;
	124 | 125)
		mkdir -p "$folder" && cp "$machine/console.log" "$folder/" &&
			die "see $folder/console.log"
		;;
	esac
	return "$status"
}

# One program, which starts and kills the other processes itself.
run_claims() {
	local module
	if in_machine; then
		module=$(tests/vm/module.sh debian-6.1)
		XMEM_BACKEND=kernel tests/vm/vm.sh -q -k debian-6.1 -m "$module" -t 600 -- \
			"$PWD/$programs/claims"
	else
		exec "$programs/claims"
	fi
}

needs() {
	local purposes=(demo)
	[ "$mode" != claims ] || purposes=(build)
	[ -z "$ocaml" ] || purposes+=(ocaml)
	! in_machine || purposes+=(kmod vm)
	echo "${purposes[@]}"
}

run() {
	[ -z "$backend" ] || export XMEM_BACKEND=$backend
	if [ "$mode" = claims ]; then
		run_claims
		return
	fi
	[ -z "$gpu" ] || find_gpu
	[ -z "$backend" ] || export XMEM_BACKEND=$backend
	if in_machine; then
		run_in_machine
	else
		rm -f "$folder/console.log"	# of a run in the machine
		exec "$programs/demo-director" ${gpu:+-g} ${ocaml:+-l} -o "$folder" -- "$video"
	fi
}

case ${1:-} in
look) look ;;
needs) needs ;;
lacks-gpu) lacks_gpu ;;
run) run ;;
*) die "usage: $0 look|needs|lacks-gpu|run" ;;
esac
