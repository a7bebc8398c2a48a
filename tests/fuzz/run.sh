#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Fuzzing. The programs are built by `make fuzz`.
#
#   tests/fuzz/run.sh                 replays the corpus of each target, then fuzzes 10 s each
#   tests/fuzz/run.sh -t 600 reader   one target for 10 minutes
#   tests/fuzz/run.sh -m              also adds inputs that have reached new code to the corpus
#   tests/fuzz/run.sh -r              replays only
#
# Each input of the corpus is a test, and so is the run of a target. An input that has found a fault
# is in build/fuzz/found; `build/fuzz/TARGET FILE` repeats it. The last line is
# "N passed, N failed, N skipped".
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 2

seconds=10 merge=no
while getopts t:mr option; do
	case $option in
	t) seconds=$OPTARG ;;
	m) merge=yes ;;
	r) seconds=0 ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
targets=("$@")
[ $# != 0 ] || targets=(metadata reader)

# The library finds its host as it would find xmemd, so this variable selects the back end.
export XMEM_BACKEND=daemon
export ASAN_OPTIONS=detect_leaks=1:abort_on_error=0 UBSAN_OPTIONS=print_stacktrace=1
passed=0 failed=0
found=build/fuzz/found
mkdir -p "$found"
log=$(mktemp)
trap 'rm -rf "$log" "$log.new"' EXIT

# replay TARGET: replays each file of its corpus, all in one process; if that fails, one at a time
replay() {
	local files=(tests/fuzz/corpus/"$1"/*) file
	if [ ! -e "${files[0]}" ]; then
		echo "FAIL $1: tests/fuzz/corpus/$1 is empty"
		failed=$((failed + 1))
		return
	fi
	if "build/fuzz/$1" "${files[@]}" >"$log" 2>&1; then
		passed=$((passed + ${#files[@]}))
		return
	fi
	for file in "${files[@]}"; do
		if "build/fuzz/$1" "$file" >"$log" 2>&1; then
			passed=$((passed + 1))
		else
			failed=$((failed + 1))
			echo "FAIL $1 with $file:"
			tail -40 "$log"
		fi
	done
}

# go_on TARGET: tries new inputs for some seconds, beginning with the corpus
go_on() {
	local new=$log.new
	rm -rf "$new"
	mkdir "$new"
	if "build/fuzz/$1" -max_len=400 -use_value_profile=1 -timeout=100 -print_final_stats=1 \
		-max_total_time="$seconds" -artifact_prefix="$found/$1-" "$new" \
		"tests/fuzz/corpus/$1" >"$log" 2>&1; then
		passed=$((passed + 1))
		echo "$1: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs"
	else
		failed=$((failed + 1))
		echo "FAIL $1 has found something:"
		grep -av '^#' "$log" | tail -40
	fi
	[ $merge = no ] || "build/fuzz/$1" -merge=1 "tests/fuzz/corpus/$1" "$new" 2>&1 | tail -1
}

for target in "${targets[@]}"; do
	[ -x "build/fuzz/$target" ] || { echo "FAIL build/fuzz/$target: make fuzz" >&2; exit 2; }
	replay "$target"
	[ "$seconds" = 0 ] || go_on "$target"
done
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
