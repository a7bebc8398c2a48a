#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs all tests of build/FLAVOUR/cuda on the fake driver under the names of AMD's HIP, and checks
# which of two drivers a process uses. A test of what HIP lacks begins with not_with_hip, runs in
# the suite cuda, and is no skip of this suite.
#
#   tests/cuda/hip.sh [FOLDER]     FOLDER: build/test
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 2

build=$PWD/${1:-build/test}
hip=$build/fakecuda/libamdhip64.so.6 nvidia=$build/fakecuda/libcuda.so.1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0

fail() { echo "FAIL hip: $*"; failed=$((failed + 1)); }

# ---- the tests of GPUs ----

nm -D --defined-only "$hip" | grep -E ' (cu|xl_|fk_)' | grep -v ' cuFake' &&
	fail "$hip shows names that HIP does not have"
FAKECUDA_LOG=$work/log XMEM_CUDA_DRIVER=$hip XMEM_BACKEND=daemon "$build/cuda" >"$work/out" \
	2>&1 </dev/null
rc=$?
sed -n 's/^FAILED /FAIL /p; s/^child /  &/p' "$work/out"
grep '^SKIP ' "$work/out" >"$work/skips"
read -r p _ f _ < <(grep -E '^-?[0-9]+ passed, [0-9]+ failed' "$work/out" | tail -1)
passed=$((passed + ${p:-0})) failed=$((failed + ${f:-0}))
if [ -z "${p:-}" ] || { [ $rc != 0 ] && [ "$f" = 0 ]; }; then
	fail "the run ended with status $rc"
	tail -5 "$work/out" | sed 's/^/  /'
fi
lacks=$(grep -c ': not with HIP: ' "$work/skips")
[ "$lacks" != 0 ] || fail "no test has said that HIP lacks something"
grep -v ': not with HIP: ' "$work/skips"
skipped=$(grep -cv ': not with HIP: ' "$work/skips")
if [ -s "$work/log" ]; then
	fail "rules of the driver were broken"
	sed 's/^/  /' "$work/log" | head
fi

# ---- which driver ----

# finds WORDS SETTING...: a process with these settings finds that driver, or says that
finds() {
	local words=$1 said
	shift
	said=$(env -u XMEM_CUDA_DRIVER "$@" "$build/xmem" gpu 2>&1)
	if [[ $said == *$words* ]]; then
		passed=$((passed + 1))
	else
		fail "$*: '$words' is not in: $said"
	fi
}

# folder NAME LIBRARY=AS...: prints a folder for LD_LIBRARY_PATH
folder() {
	local at=$work/$1 pair
	shift
	mkdir "$at"
	for pair in "$@"; do
		ln -s "${pair%%=*}" "$at/${pair#*=}"
	done
	echo "$at"
}

no_start=$build/cuda-drivers/no-start.so
old=$build/cuda-drivers/old-hip.so
both=$(folder both "$nvidia=libcuda.so.1" "$hip=libamdhip64.so.6")
amd=$(folder amd "$no_start=libcuda.so.1" "$hip=libamdhip64.so.6")
finds 'cuda    13.0' LD_LIBRARY_PATH="$both"
finds 'hip     6.3' LD_LIBRARY_PATH="$amd"
for version in .7 .5 ''; do
	finds 'hip     6.3' LD_LIBRARY_PATH="$(folder "named$version" "$no_start=libcuda.so.1" \
		"$hip=libamdhip64.so$version")"
done
# The newest comes first.
finds 'hip     6.3' LD_LIBRARY_PATH="$(folder two "$no_start=libcuda.so.1" \
	"$hip=libamdhip64.so.7" "$old=libamdhip64.so.6")"
# Without a GPU, the message is about NVIDIA's driver if that is there.
finds 'is no CUDA driver: it lacks cuInit' LD_LIBRARY_PATH="$amd" FAKECUDA_DEVICES=0
finds 'libcuda.so.1 finds no GPU (CUDA_ERROR_NO_DEVICE, 100)' LD_LIBRARY_PATH="$both" \
	FAKECUDA_DEVICES=0
finds 'hip     6.3' XMEM_CUDA_DRIVER="$hip" LD_LIBRARY_PATH="$both"
finds 'cuda    13.0' XMEM_CUDA_DRIVER="$nvidia" LD_LIBRARY_PATH="$amd"

echo "$lacks tests need what HIP lacks, and run in the suite cuda"
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
