#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Do the README's commands work the first time, on a machine on which nothing is installed? Each of
# its commands, and pip for Python, gets a bare Debian tree of its own (tree.sh), in which
# first_time.sh runs and judges it. The last line is "N passed, N failed, N skipped".
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 2

passed=0 failed=0 skipped=0
out=build/test-log/bare
mkdir -p "$out"
for command in demo test packages install python; do
	start=$SECONDS
	tests/bare/tree.sh tests/bare/first_time.sh "$command" 2>&1 | tee "$out/$command.log"
	status=${PIPESTATUS[0]}
	echo "($command: $((SECONDS - start)) s)"
	if [ "$status" = 77 ]; then
		echo "SKIP bare $command: $(tail -1 "$out/$command.log")"
		skipped=$((skipped + 1))
		continue
	fi
	p=$(grep -c '^PASS ' "$out/$command.log")
	f=$(grep -c '^FAIL ' "$out/$command.log")
	if [ "$f" = 0 ] && { [ "$status" != 0 ] || [ "$p" = 0 ]; }; then
		echo "FAIL bare $command: ended with status $status after $p checks"
		f=1
	fi
	passed=$((passed + p)) failed=$((failed + f))
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
