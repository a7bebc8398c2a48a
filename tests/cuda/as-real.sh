#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs all tests of build/FLAVOUR/cuda on a driver that is like a real one: the fake driver with its
# extras hidden, which counts nothing, does not fail on demand and has one GPU. Then the tests that
# need two GPUs run on two. A test that needs the extras must begin with fake_only, also in a
# child, and before anything keeps its process from ending. Such tests run in the suite cuda, and
# are no skips of this one. Without this suite, the first run on a GPU after a change would find
# such tests.
#
#   tests/cuda/as-real.sh [FOLDER]     FOLDER: build/test
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 2

build=${1:-build/test}
driver=$PWD/$build/cuda-drivers/as-real/libcuda.so.1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 skipped=0

fail() { echo "FAIL as-real: $*"; failed=$((failed + 1)); }

# run GPUS [TEST...]: adds the results up; the skips are in $work/skips
run() {
	local gpus=$1 rc p f
	shift
	FAKECUDA_DEVICES=$gpus FAKECUDA_LOG=$work/log XMEM_CUDA_DRIVER=$driver \
		XMEM_BACKEND=daemon "$build/cuda" "$@" >"$work/out" 2>&1 </dev/null
	rc=$?
	sed -n 's/^FAILED /FAIL /p; s/^child /  &/p' "$work/out"
	grep '^SKIP ' "$work/out" >"$work/skips"
	read -r p _ f _ < <(grep -E '^-?[0-9]+ passed, [0-9]+ failed' "$work/out" | tail -1)
	passed=$((passed + ${p:-0})) failed=$((failed + ${f:-0}))
	if [ -z "${p:-}" ] || { [ $rc != 0 ] && [ "$f" = 0 ]; }; then
		fail "with $gpus GPUs the run ended with status $rc"
		tail -5 "$work/out" | sed 's/^/  /'
	fi
}

nm -D --defined-only "$driver" | grep cuInit >/dev/null || fail "$driver is no driver"
nm -D --defined-only "$driver" | grep cuFake && fail "$driver shows what a real one does not have"
run 1
extras=$(grep -c ': only on the fake driver: ' "$work/skips")
grep -v -e ': only on the fake driver: ' -e ': this needs 2 GPUs$' "$work/skips"
skipped=$(grep -cv -e ': only on the fake driver: ' -e ': this needs 2 GPUs$' "$work/skips")
mapfile -t two < <(sed -n 's/^SKIP \([^:]*\): this needs 2 GPUs$/\1/p' "$work/skips")
if [ ${#two[@]} = 0 ]; then
	fail "no test has said that it needs two GPUs"
else
	run 2 "${two[@]}"
	cat "$work/skips"
	skipped=$((skipped + $(wc -l <"$work/skips")))
fi
if [ -s "$work/log" ]; then
	fail "rules of the driver were broken"
	sed 's/^/  /' "$work/log" | head
fi
echo "$extras tests need what only the fake driver has, and run in the suite cuda"
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
