#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs the test suites and adds up what they say. Does its own set-up.
#
#   tests/run.sh               everything that CI runs
#   tests/run.sh native vm     some groups: build native model mutants vm demo; kasan only by name
#   tests/run.sh -l            lists the suites
#
# A suite is a command whose last line reads "N passed, N failed, N skipped"; lines
# "SKIP name: why" say what was skipped. A suite without that line has failed, unless
# it is a plain check (exit status only), which counts as one test.
set -uo pipefail
cd "$(dirname "$0")/.."

log=build/test-log
suites=()		# group|name|kind|command; kind: suite or check
suite() { suites+=("$1|$2|suite|$3"); }
check() { suites+=("$1|$2|check|$3"); }

kernel=$(basename "$(ls -d /lib/modules/*/build 2>/dev/null | sort -V | tail -1 |
	xargs -r dirname)" 2>/dev/null)
jobs=-j$(nproc)

check build  make           "make $jobs all"
check build  make-test      "make $jobs FLAVOUR=test all build/test/unit build/test/conform"
check build  make-asan      "make $jobs FLAVOUR=asan all build/asan/unit build/asan/conform"
check build  make-tsan      "make $jobs FLAVOUR=tsan all build/tsan/unit build/tsan/conform"
check build  kmod           "make kmod"
check build  kmod-check     "make kmod-check"
check build  dkms           "tests/check-dkms.sh"
check build  pure-core      "tests/check-pure.sh"
check build  width          "tests/check-width.sh"
check build  readme-example "tests/check-readme.sh"
check build  environment    "tests/check-environment.sh"
check build  install        "tests/check-install.sh"
suite native unit           "build/test/unit"
suite native unit-wide      "env UNIT_WIDE=1 build/test/unit"
suite native unit-asan      "build/asan/unit"
suite native unit-tsan      "build/tsan/unit"
suite native conform        "env XMEM_BACKEND=daemon build/test/conform"
suite native conform-wide   "env XMEMD_WIDE=1 XMEM_BACKEND=daemon build/test/conform"
suite native conform-asan   "env XMEM_BACKEND=daemon build/asan/conform"
suite native conform-tsan   "env XMEM_BACKEND=daemon build/tsan/conform"
suite native activation     "make -s check-activation"
suite model  model          "tests/model/run.sh"
suite mutants mutants       "tests/check-mutants.sh"
suite vm     vm-harness     "tests/vm/selftest.sh debian-6.1"
suite vm     conform-kernel "tests/vm/vm.sh -k debian-6.1 -t 600 \
	-o build/test-log/vm-6.1 -m build/kmod/$kernel/xmem.ko \
	-- env XMEM_BACKEND=kernel build/test/conform"
suite vm     random-requests "make -s build/release/random-requests && \
	tests/vm/vm.sh -k debian-6.1 -t 120 -o build/test-log/random-6.1 \
	-m build/kmod/$kernel/xmem.ko -- build/release/random-requests 30"
suite vm     conform-6.12   "tests/vm/conform-other.sh debian-6.12"
check demo   demo-daemon    "make demo BACKEND=daemon"
check demo   demo-kernel    "make demo BACKEND=kernel"
suite demo   demo-bad-input "tests/demo-bad-input.sh"
suite kasan  conform-kasan  "tests/vm/conform-other.sh kasan"
suite kasan  alloc-failures "env VM_APPEND=kmemleak=on tests/kernel/in-vm.sh kasan alloc-failures"
suite kasan  random-kasan   "tests/kernel/in-vm.sh kasan random-requests"

[ "${1:-}" = -l ] && { printf '%s\n' "${suites[@]}" | tr '|' '\t'; exit 0; }
wanted=("$@")
[ $# = 0 ] && wanted=(build native model mutants vm demo)
wants() { local w; for w in "${wanted[@]}"; do [ "$w" = "$1" ] && return 0; done; return 1; }

scripts/needs.sh test || exit 2
mkdir -p "$log"
passed=0 failed=0 skipped=0 bad=() reasons=()
for row in "${suites[@]}"; do
	IFS='|' read -r group name kind command <<<"$row"
	wants "$group" || continue
	start=$SECONDS
	printf '%-16s ' "$name"
	bash -c "$command" >"$log/$name.log" 2>&1 </dev/null
	rc=$?
	line=$(grep -aE '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped' "$log/$name.log" | tail -1)
	if [ $kind = check ]; then
		line='0 passed, 1 failed, 0 skipped'
		[ $rc = 0 ] && line='1 passed, 0 failed, 0 skipped'
	fi
	read -r p _ f _ s _ <<<"${line:-0 passed, 1 failed, 0 skipped}"
	[ $rc != 0 ] && [ "$f" = 0 ] && f=1
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
	printf '%4d passed %3d failed %3d skipped  %4d s\n' "$p" "$f" "$s" $((SECONDS - start))
	while IFS= read -r why; do
		reasons+=("$name: $why")
	done < <(grep -aE '^SKIP' "$log/$name.log")
	if [ "$f" != 0 ]; then
		bad+=("$name")
		grep -aE '^(FAIL|[^ ]+:[0-9]+:F:)' "$log/$name.log" | tail -20 | sed 's/^/    /'
		tail -15 "$log/$name.log" | sed 's/^/    | /'
	fi
done

[ ${#reasons[@]} = 0 ] || { echo; echo 'Skipped:'; printf '  %s\n' "${reasons[@]}"; }
[ ${#bad[@]} = 0 ] || { echo; echo "Failed suites: ${bad[*]}   (logs in $log/)"; }
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
