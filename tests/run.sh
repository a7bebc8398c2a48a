#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs the test suites and adds up what they say. Does its own set-up.
#
#   tests/run.sh               everything that CI runs
#   tests/run.sh native dkms   some groups or suites: build native python model mutants vm demo
#                              bare; only by name: kasan, tools, kernels, long, kernel-mutants
#   tests/run.sh -l            lists the suites: group, name, kind, command
#
# A suite is a command whose last line reads "N passed, N failed, N skipped"; lines
# "SKIP name: why" say what was skipped. A suite without that line has failed, unless
# it is a plain check (exit status only), which counts as one test; its SKIP lines count too.
set -uo pipefail
cd "$(dirname "$0")/.."

log=build/test-log
suites=()		# group|name|kind|command; kind: suite, beside or check
suite() { suites+=("$1|$2|suite|$3"); }
# A suite that runs beside the next ones of its group, which mostly wait: it is of one process that
# computes, or waits itself. It must be built before, which its first command does.
beside() { suites+=("$1|$2|beside|$4"); first[$2]=$3; }
declare -A first
check() { suites+=("$1|$2|check|$3"); }

# What is installed is looked at when a suite runs, never in this list: it is made before the
# set-up. Hence single quotes round what a suite shall find out; tests/bare sees to it.
jobs=-j$(nproc)
vm_6_1='tests/vm/vm.sh -k debian-6.1 -m "$(tests/vm/module.sh debian-6.1)" -o build/test-log'
# with the module that stands for a GPU's driver, whose files xmem.ko takes
vm_gpu='tests/vm/vm.sh -k debian-6.1 -m "$(tests/kernel/gpu/module.sh debian-6.1)"'
vm_gpu+=' -m "$(tests/vm/module.sh debian-6.1)" -p device_files=240:255 -o build/test-log'
made() { echo "make -s $jobs $*"; }
conform_on_daemon() {
	echo "$(made "FLAVOUR=$1" "build/$1/conform") && XMEM_BACKEND=daemon build/$1/conform"
}

cuda_on_daemon() {
	echo "$(made "FLAVOUR=$1" "build/$1/cuda") && XMEM_BACKEND=daemon build/$1/cuda"
}

cpp_on_daemon() {
	echo "$(made "FLAVOUR=$1" "build/$1/cpp-$2") && XMEM_BACKEND=daemon build/$1/cpp-$2"
}

check build  make           "make $jobs all"
check build  make-test      "make $jobs FLAVOUR=test all build/test/unit build/test/conform"
check build  make-asan      "make $jobs FLAVOUR=asan all build/asan/unit build/asan/conform"
check build  make-tsan      "make $jobs FLAVOUR=tsan all build/tsan/unit build/tsan/conform"
check build  kmod           "make kmod"
check build  kmod-check     "make kmod-check"
check build  dkms           "tests/check-dkms.sh"
check build  planting       "tests/check-planting.sh && tests/check-planting.sh --selftest"
suite build  versions       "tests/check-kernels.sh --static"
check build  pure-core      "$(made all) && tests/check-pure.sh"
check build  layers         "tests/check-layers.sh"
check build  fakecuda-readme "tests/fakecuda/check-readme.sh"
check build  width          "tests/check-width.sh"
check build  version        "tests/check-version.sh"
check build  api            "$(made all) && tests/check-api.sh"
check build  abi            "tests/check-abi.sh && tests/check-abi.sh --plants"
check build  bindings-api   "tests/check-bindings.sh"
[ ! -f bindings/python/src/module.c ] ||
	check build bindings-reach "bindings/reach.py bindings/python"
check build  headers        "tests/check-headers.sh"
check build  make-examples  "make examples"
check build  readme-example "$(made all) && tests/check-readme.sh"
check build  environment    "$(made all) && tests/check-environment.sh"
check build  install        "tests/check-install.sh"
check build  instructions   "make bench-instructions"
beside native unit          "$(made FLAVOUR=test build/test/unit)" build/test/unit
beside native unit-wide     "$(made FLAVOUR=test build/test/unit)" "UNIT_WIDE=1 build/test/unit"
beside native unit-asan     "$(made FLAVOUR=asan build/asan/unit)" build/asan/unit
beside native unit-tsan     "$(made FLAVOUR=tsan build/tsan/unit)" build/tsan/unit
beside native conform-tsan  "$(made FLAVOUR=tsan build/tsan/conform)" \
	"XMEM_BACKEND=daemon build/tsan/conform"
suite native conform        "$(conform_on_daemon test)"
suite native conform-wide   "export XMEMD_WIDE=1; $(conform_on_daemon test)"
suite native conform-asan   "$(conform_on_daemon asan)"
suite native cuda           "$(cuda_on_daemon test)"
suite native cuda-asan      "$(cuda_on_daemon asan)"
suite native cuda-tsan      "export XMEM_TEST_SCALE=25; $(cuda_on_daemon tsan)"
suite native cuda-as-real   "$(made FLAVOUR=test build/test/cuda) && tests/cuda/as-real.sh"
suite native cuda-settings  "$(made FLAVOUR=test build/test/cuda) && tests/cuda/settings.sh"
suite native cuda-toolkit   "$(made FLAVOUR=test all) && tests/cuda/toolkit.sh"
suite native fuzz           "$(made fuzz) && tests/fuzz/run.sh"
suite native activation     "make -s check-activation"
beside native fakecuda      "$(made FLAVOUR=test build/test/fakecuda-test)" build/test/fakecuda-test
beside native fakecuda-asan "$(made FLAVOUR=asan build/asan/fakecuda-test)" build/asan/fakecuda-test
suite native cpp-17         "$(cpp_on_daemon test 17)"
suite native cpp-20         "$(cpp_on_daemon test 20)"
suite native cpp-asan       "$(cpp_on_daemon asan 17)"
suite native extensions     "make -s check-extensions"
suite native address        "make -s check-address"
suite native examples       "make -s examples demo-programs fakecuda && \
	XMEM_BACKEND=daemon tests/examples.sh"
suite native cli            "make -s cli-tests && XMEM_BACKEND=daemon tests/cli/run.sh"
suite native fakecuda-streams "$(made FLAVOUR=test build/test/fakecuda-streams) && \
	build/test/fakecuda-streams"
suite native fakecuda-streams-tsan "$(made FLAVOUR=tsan build/tsan/fakecuda-streams) && \
	build/tsan/fakecuda-streams"
suite native fakecuda-streams-asan "$(made FLAVOUR=asan build/asan/fakecuda-streams) && \
	build/asan/fakecuda-streams"
suite native cuda-core      "$(made FLAVOUR=test fakecuda) && tests/judges/run.sh cuda-core"
suite native numba-cuda     "$(made FLAVOUR=test fakecuda) && tests/judges/run.sh numba-cuda"
suite python python         "$(made FLAVOUR=test fakecuda) && bindings/python/tests/run.sh debian"
# what numpy 2 and its consumers make of contents; all else has been tried with numpy 1
suite python python-numpy2  "$(made FLAVOUR=test fakecuda) && bindings/python/tests/run.sh numpy2 \
	test_numpy.py test_arrow.py test_dlpack.py test_dlpack_cuda.py test_cuda.py \
	test_cuda_dlpack.py test_cuda_numba.py test_onnx.py test_docs.py"
suite python python-asan    "$(made FLAVOUR=test fakecuda) && bindings/python/tests/asan.sh"
suite python python-free    "$(made FLAVOUR=test fakecuda) && \
	bindings/python/tests/freethreaded.sh"
check python python-types   "bindings/python/tests/types.sh"
suite python python-wheel   "bindings/python/tests/wheel.sh"
suite model  model          "tests/model/run.sh"
suite mutants mutants       "tests/check-mutants.sh"
suite vm     vm-harness     "tests/vm/selftest.sh debian-6.1"
suite vm     conform-kernel "$(made FLAVOUR=test build/test/conform) && \
	$vm_gpu/vm-6.1 -t 600 -- env XMEM_BACKEND=kernel \
	FAKECUDA_DEVICE_FILE=/dev/xmem-test-gpu build/test/conform"
suite vm     cuda-kernel    "$(made FLAVOUR=test build/test/cuda) && \
	$vm_gpu/cuda-6.1 -t 600 -- env XMEM_BACKEND=kernel \
	FAKECUDA_DEVICE_FILE=/dev/xmem-test-gpu build/test/cuda"
suite vm     cpp-kernel     "$(made FLAVOUR=test build/test/cpp-17) && \
	$vm_gpu/cpp-6.1 -t 120 -- env XMEM_BACKEND=kernel \
	FAKECUDA_DEVICE_FILE=/dev/xmem-test-gpu build/test/cpp-17"
suite vm     random-requests "$(made build/release/random-requests) && \
	$vm_gpu/random-6.1 -t 120 -- build/release/random-requests 30"
suite vm     strangers      "$(made build/release/strangers) && \
	$vm_gpu/strangers-6.1 -t 300 -a watchdog_thresh=60 -- build/release/strangers"
suite vm     exhaust        "$(made build/release/exhaust) && \
	$vm_gpu/exhaust-6.1 -t 300 -a watchdog_thresh=60 -- build/release/exhaust"
suite vm     reaped         "$(made build/release/reaped) && \
	$vm_gpu/reaped-6.1 -t 300 -a watchdog_thresh=60 -- build/release/reaped"
suite vm     folders        "$(made build/release/folders) && \
	$vm_gpu/folders-6.1 -t 300 -a watchdog_thresh=60 -- build/release/folders \
	K19_read_folders_count_for_their_maker P10_the_last_pool_does_not_count"
suite vm     watched        "$(made build/release/watched) && export VM_COUNTS=1; \
	$vm_gpu/watched-6.1 -t 600 -a watchdog_thresh=60 -- build/release/watched"
suite vm     meanwhile      "$(made build/release/meanwhile) && \
	VM_COUNTS=1 $vm_gpu/meanwhile-6.1 -t 300 -a 'preempt=full watchdog_thresh=60' -- \
	build/release/meanwhile"
suite vm     cheap          "$(made build/release/cheap) && export VM_COUNTS=1; \
	$vm_gpu/cheap-6.1 -t 300 -a watchdog_thresh=60 -- build/release/cheap"
suite vm     kernel-fuzz    "tests/kernel/fuzz.sh debian-6.1 60"
suite vm     traces         "$(made build/release/traces) && \
	$vm_6_1/traces-6.1 -t 120 -- build/release/traces"
suite vm     gpu-payloads   "$(made build/release/gpu-payloads) && \
	$vm_gpu/gpu-6.1 -t 300 -- build/release/gpu-payloads"
suite vm     examples-kernel "$(made examples demo-programs fakecuda) && \
	$vm_gpu/examples-6.1 -t 600 -- env XMEM_BACKEND=kernel \
	FAKECUDA_DEVICE_FILE=/dev/xmem-test-gpu tests/examples.sh"
suite vm     cli-kernel     "$(made cli-tests) && export XMEM_BACKEND=kernel; \
	$vm_6_1/cli-6.1 -t 300 -- tests/cli/run.sh"
suite vm     conform-6.12   "tests/vm/conform-other.sh debian-6.12"
suite vm     gpu-6.12       "tests/kernel/in-vm.sh debian-6.12 gpu-payloads"
# The module for tests makes the gap wide in which a wake-up could be lost.
suite vm     stops-6.12     "tests/kernel/in-vm.sh debian-6.12 strangers \
	P9_a_stop_finds_all_threads"
# Likewise the gap in which two runs of end_work could put one reference.
suite vm     meets-6.12     "tests/kernel/in-vm.sh debian-6.12 cheap M5_collects_meet_an_end"
check demo   demo-daemon    "make demo BACKEND=daemon"
check demo   demo-gpu       "make demo GPU=1"
check demo   demo-kernel    "make demo BACKEND=kernel"
suite demo   demo-bad-input "tests/demo-bad-input.sh"
suite bare   bare           "tests/bare/run.sh"
suite kasan  conform-kasan  "tests/vm/conform-other.sh kasan"
suite kasan  alloc-failures "env VM_APPEND=kmemleak=on tests/kernel/in-vm.sh kasan alloc-failures"
suite kasan  random-kasan   "tests/kernel/in-vm.sh kasan random-requests"
suite kasan  polls-kasan    "tests/kernel/in-vm.sh kasan meanwhile P9_polls_while_clients_end"
suite kasan  kernel-fuzz-kasan "tests/kernel/fuzz.sh kasan 60"
suite kasan  gpu-kasan      "tests/kernel/in-vm.sh kasan gpu-payloads"
suite kernel-mutants kernel-mutants "tests/check-mutants-kernel.sh"
suite tools  kernel-mutants-selftest "tests/check-mutants-kernel.sh --selftest"
suite long   kernel-fuzz-long "tests/kernel/fuzz.sh kasan 1800"
suite long   ends           "$(made build/release/ends) && \
	$vm_gpu/ends-6.1 -t 900 -a 'preempt=full watchdog_thresh=60' -- build/release/ends"
# on two processors, where who waits for a lock may spin
suite long   meanwhile-2    "$(made build/release/meanwhile) && \
	$vm_gpu/meanwhile-2-6.1 -t 300 -a 'preempt=full watchdog_thresh=60' -- \
	build/release/meanwhile"
# With readers in 384 folders, which a busy machine does not let run.
suite long   folders-many   "$(made build/release/folders) && \
	$vm_gpu/folders-many-6.1 -t 300 -a watchdog_thresh=60 -- build/release/folders"
suite tools  trace-tools    "tests/kernel/trace-tools.sh"
suite tools  udev           "tests/vm/udev.sh"
suite tools  signing        "tests/vm/signing.sh"
suite tools  dkms-vm        "tests/vm/dkms.sh"
suite kernels kernels       "tests/check-kernels.sh"
suite long   finds          "tests/vm/build-kernel.sh kcsan && tests/vm/build-kernel.sh rt && \
	tests/vm/selftest.sh kasan kcsan rt"
suite long   coverage       "tests/kernel/cov.sh"
suite long   conform-arm64  "tests/vm/conform-other.sh debian-6.1-arm64"
suite long   conform-arm64-16k "tests/vm/conform-other.sh debian-6.12-arm64-16k"
suite long   conform-6.1-rt "tests/vm/conform-other.sh debian-6.1-rt"
suite long   conform-kcsan  "tests/vm/conform-other.sh kcsan"
suite long   conform-rt     "tests/vm/conform-other.sh rt"
suite long   static         "tests/check-static.sh"
suite long   static-plants  "tests/check-static.sh --plants"

[ "${1:-}" = -l ] && { printf '%s\n' "${suites[@]}" | tr '|' '\t'; exit 0; }
wanted=("$@")
[ $# = 0 ] && wanted=(build native python model mutants vm demo bare)
names=$(printf '%s\n' "${suites[@]}" | cut -d'|' -f1,2 | tr '|' '\n')
for word in "${wanted[@]}"; do
	grep -qxF -e "$word" <<<"$names" && continue
	echo "run.sh: no group or suite is called '$word', see tests/run.sh -l" >&2
	exit 2
done
wants() { local w; for w in "${wanted[@]}"; do [ "$w" = "$1" ] && return 0; done; return 1; }

# Else each process with more than one thread waits for a second when it ends.
export TSAN_OPTIONS=atexit_sleep_ms=0${TSAN_OPTIONS:+:$TSAN_OPTIONS}

# Python's environments are large, so they are for those who want their suites.
needs=(test)
wants long && needs+=(long)
wants kernels && needs+=(arm64)
for row in "${suites[@]}"; do
	IFS='|' read -r group name _ <<<"$row"
	[ "$group" = python ] && { wants python || wants "$name"; } && needs+=(python-tests)
	[ "$group" = long ] && wants "$name" && needs+=(long)
done
scripts/needs.sh "${needs[@]}" || exit 2
mkdir -p "$log"
passed=0 failed=0 skipped=0 bad=() reasons=()

# Its status and how long it took are the last line of NAME.end.
run() {	# name, command
	local start=$SECONDS
	bash -c "$2" >"$log/$1.log" 2>&1 </dev/null
	echo "$? $((SECONDS - start))" >"$log/$1.end"
}

report() {	# name, kind
	local name=$1 rc seconds line parts p f s why
	read -r rc seconds <"$log/$name.end"
	line=$(grep -aE '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped' "$log/$name.log" |
		tail -1)
	if [ "$2" = check ]; then
		parts=$(grep -acE '^SKIP[ :]' "$log/$name.log")
		line="0 passed, 1 failed, $parts skipped"
		[ "$rc" != 0 ] || line="1 passed, 0 failed, $parts skipped"
	fi
	read -r p _ f _ s _ <<<"${line:-0 passed, 1 failed, 0 skipped}"
	[ "$rc" != 0 ] && [ "$f" = 0 ] && f=1
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
	printf '%4d passed %3d failed %3d skipped  %4d s\n' "$p" "$f" "$s" "$seconds"
	while IFS= read -r why; do
		reasons+=("$name: $why")
	done < <(grep -aE '^SKIP[ :]' "$log/$name.log")
	if [ "$f" != 0 ]; then
		bad+=("$name")
		grep -aE '^(FAIL|[^ ]+:[0-9]+:F:)' "$log/$name.log" | tail -20 | sed 's/^/    /'
		tail -15 "$log/$name.log" | sed 's/^/    | /'
	fi
}

# The suites that run beside others, one after another, and the process that runs them.
queue=() behind=()
start_queue() {
	[ ${#queue[@]} = 0 ] && return
	{
		for row in "${queue[@]}"; do
			run "${row%%|*}" "${row#*|}"
		done
	} &
	for row in "${queue[@]}"; do
		behind+=("${row%%|*}")
	done
	queue=()
}

finish_queue() {
	local name
	start_queue
	wait
	for name in "${behind[@]}"; do
		printf '%-16s ' "$name"
		report "$name" suite
	done
	behind=()
}

now=
for row in "${suites[@]}"; do
	IFS='|' read -r group name kind command <<<"$row"
	wants "$group" || wants "$name" || continue
	[ "$group" = "$now" ] || finish_queue
	now=$group
	if [ $kind = beside ] && bash -c "${first[$name]}" >"$log/$name.log" 2>&1 </dev/null; then
		queue+=("$name|$command")
		continue
	fi
	start_queue
	[ $kind = beside ] && command=${first[$name]}	# which has failed, and says why
	printf '%-16s ' "$name"
	run "$name" "$command"
	report "$name" $kind
done
finish_queue

[ ${#reasons[@]} = 0 ] || { echo; echo 'Skipped:'; printf '  %s\n' "${reasons[@]}"; }
[ ${#bad[@]} = 0 ] || { echo; echo "Failed suites: ${bad[*]}   (logs in $log/)"; }
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
