#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Measures how much of the module its tests reach. It builds the module with counters
# (tests/kernel/gcov) and runs each suite below in the VM. Together they must reach 90 % of the
# lines of kmod/. uncovered.txt lists the lines that no suite reaches, with reasons; coverage.py
# compares.
#   tests/kernel/cov.sh              builds, runs all suites, reports
#   tests/kernel/cov.sh SUITE...     runs these; the other suites count with their last run
#   tests/kernel/cov.sh --report     runs nothing
# After a change of the module all suites must run again.
set -uo pipefail
# shellcheck source=tests/vm/common.sh
. "$(dirname "$0")/../vm/common.sh"
cd "$repo_dir" || exit 2
passed=0 failed=0
all='conform cuda gpu-payloads alloc-failures random-requests strangers exhaust hoards reaped'
all+=' folders traces'

pass() { echo "PASS $1"; passed=$((passed + 1)); }
fail() { echo "FAIL $1${2:+: $2}"; failed=$((failed + 1)); }

# Only the debug kernel makes allocations fail; it is several times slower than Debian's.
kernel_of() { if [ "$1" = alloc-failures ]; then echo kasan; else echo debian-6.1; fi; }
folder_of() { echo "build/kmod/gcov-$1"; }

build() {	# KERNEL
	tests/vm/module.sh "$1" KMOD_DIR="$(folder_of "$1")" XMEM_DEBUG=y XMEM_GCOV=y \
		>/dev/null || exit 2
	tests/kernel/gpu/module.sh "$1" >/dev/null || exit 2
}

# vm.sh multiplies these seconds for slow kernels. Loops run once, because repetitions reach no
# further lines.
run() {	# SUITE
	local name=$1 seconds=600 devices=240:255 kernel out=build/test-log/cov-$1 command
	kernel=$(kernel_of "$name")
	case $name in
	conform | cuda)
		seconds=1500
		command=(env XMEM_BACKEND=kernel XMEM_TEST_SCALE=5
			FAKECUDA_DEVICE_FILE=/dev/xmem-test-gpu "build/test/$name") ;;
	gpu-payloads | alloc-failures)
		devices=195:255,240:255
		command=("build/release/$name") ;;
	random-requests) command=(build/release/random-requests 30) ;;
	folders) command=(build/release/folders K19_read_folders_count_for_their_maker) ;;
	*) command=("build/release/$name") ;;
	esac
	rm -rf "$out/files/gcov"
	mkdir -p "$out/files/gcov"
	if tests/vm/vm.sh -k "$kernel" -t $seconds -a watchdog_thresh=60 -o "$out" \
			-m "build/test-gpu/$kernel/xmem_test_gpu.ko" \
			-m "$(folder_of "$kernel")/xmem.ko" \
			-p "device_files=$devices gcov=/run/vm/out/files/gcov" -- \
			"${command[@]}" >"$out.log" 2>&1; then
		pass "$name: $(grep -aE '^[0-9]+ passed' "$out.log" | tail -1)"
	else
		grep -aE '^FAIL' "$out.log" | head -5
		tail -3 "$out.log"
		fail "$name" "see $out.log"
	fi
}

# The report must fail where it should.
report=(python3 tests/kernel/coverage.py)
plants() {
	local copy said
	copy=$(mktemp)
	said=$(mktemp)
	"${report[@]}" --excuses "$copy" "$@" >"$said"
	if grep -q '^FAIL unlisted' "$said"; then pass finds-unlisted; else fail finds-unlisted; fi
	echo 'kmod/no_such.c|*|*|a planted reason' >"$copy"
	"${report[@]}" --excuses "$copy" "$@" >"$said"
	grep -q 'reached or gone.*no_such' "$said"
	if [ $? = 0 ]; then pass finds-stale; else fail finds-stale; fi
	"${report[@]}" --least 100 "$@" >"$said"
	if grep -q '^FAIL lines' "$said"; then pass finds-too-few; else fail finds-too-few; fi
	rm -f "$copy" "$said"
}

case ${1:-} in
--report) suites='' ;;
-*) sed -n 's/^#   //p' "$0" >&2; exit 2 ;;
*) suites=${*:-$all} ;;
esac
if [ -n "$suites" ]; then
	make -s FLAVOUR=test build/test/conform build/test/cuda || exit 2
	make -s kernel-tests || exit 2
	mkdir -p build/test-log
	for kernel in $(for suite in $suites; do kernel_of "$suite"; done | sort -u); do
		build "$kernel"
	done
fi
for suite in $suites; do
	run "$suite"
done
runs=()
for suite in $all; do
	runs+=("build/test-log/cov-$suite")
done
"${report[@]}" "${runs[@]}" | tee build/test-log/coverage.txt
passed=$((passed + $(grep -c '^PASS' build/test-log/coverage.txt)))
failed=$((failed + $(grep -c '^FAIL' build/test-log/coverage.txt)))
plants "${runs[@]}"
echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
