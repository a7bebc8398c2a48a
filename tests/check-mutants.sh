#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Plants bugs, one at a time, and wants each found: a test that never fails proves nothing.
#
#   tests/check-mutants.sh              all of tests/mutants/*.patch
#   tests/check-mutants.sh no-scanning  some
#
# A patch's first lines say why it is wrong and what must turn red:
#   # red: COMMAND              run in the patched copy after building; its program is what is built
#   # time-out is red: REASON   else a command that does not end in LIMIT seconds proves nothing
#   # limit: SECONDS            instead of LIMIT
# A command that stays green is run again, TRIES times in all: on a busy machine a process may not
# have gone to sleep yet when the wake that is missing would have come, or others' memory hides what
# is not given back. Before that the same command must be green without the patch, in
# 3 * LIMIT: here a time-out is a failure, and many run at once. The last line is
# "N passed, N failed, N skipped".
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2

# Many run at once: each must find its own daemon, not one that is named for all.
unset XMEM_SOCKET
LIMIT=${LIMIT:-60}
TRIES=${TRIES:-4}
work=$PWD/build/mutants
at_once=$((4 * $(nproc)))	# most of them only wait: a lost wake-up is seen by its time-out
names=("$@")
# Those that run into their limit first, beside the others.
[ $# = 0 ] && mapfile -t names < <(cd tests/mutants &&
	{ grep -l '^# limit' ./*.patch; grep -L '^# limit' ./*.patch; } |
		sed 's|^\./||; s|\.patch$||')

header() { sed -n "s/^# $2: //p" "tests/mutants/$1.patch" | head -1; }
programs() {
	grep -oE 'build/test/[a-z0-9-]+' <<<"$1" |
		sed -E 's#/(conform|cuda)$#& build/test/xmemd#' | sort -u
}

# make in a copy, for the programs that a command names; then options of make.
build() {
	local copy=$1 command=$2
	shift 2
	make -C "$copy" -s "$@" FLAVOUR=test CFLAGS=-O1 $(programs "$command") \
		>"$copy/build.log" 2>&1
}

# All files of a copy are links to those of the base, so whatever changes one has to make another
# file of that name instead. gcc, ld, ar and patch do so; see make_base and unchanged. The stamps
# of make are the copy's own.
copy() {
	cp -al "$work/base" "$1" &&
		cp -p --remove-destination "$work"/base/build/test/*.stamp "$1/build/test"
}

# The daemons of a copy, which a test that was killed may have left stopped.
end_daemons() {
	local folder exe
	folder=$(realpath "$1")
	for exe in $(find /proc/[0-9]*/exe -maxdepth 0 -lname "$folder/*" 2>/dev/null); do
		kill -9 "$(cut -d/ -f3 <<<"$exe")"
	done 2>/dev/null
}

run() {	# copy, command, seconds
	local rc
	(cd "$1" && ulimit -c 0 && timeout -k 5 "$3" bash -c "$2" >run.log 2>&1 </dev/null)
	rc=$?
	end_daemons "$1"
	return $rc
}

# The tree as it is, once; each mutant is a copy of it with its objects. The compiler would write
# into an old list of what an object depends on, so all of these are in one file.
make_base() {
	local all name deps=$work/base/build/test/obj
	rm -rf "$work"
	mkdir -p "$work/base" "$work/said"
	git ls-files -z --cached --others --exclude-standard | grep -zv '^tests/vm/' |
		xargs -0 sh -c 'for f; do [ -f "$f" ] && printf "%s\0" "$f"; done' _ |
		tar -c --null -T - -f - | tar -x -f - -C "$work/base"
	all=$(for name in "${names[@]}"; do header "$name" red; done)
	if ! build "$work/base" "$all" "-j$(nproc)"; then
		echo "FAIL base: the unpatched copy does not build"
		tail -20 "$work/base/build.log"
		return 1
	fi
	find "$deps" -name '*.d' -exec cat {} + >"$work/all.d" &&
		find "$deps" -name '*.d' -delete && mv "$work/all.d" "$deps/all.d" &&
		rm "$work/base/build.log" && touch "$work/made"
}

# Has no copy written into a file that all have?
unchanged() {
	local changed
	changed=$(find "$work/base" -type f -newer "$work/made" -printf '%P' -quit)
	[ -z "$changed" ] && return 0
	echo "FAIL base: a copy has written into $changed, which all copies have"
	return 1
}

# One command without a patch; each runs in a copy, so that it finds only its own daemons.
green() {
	local copy=$work/green-$1 command=$2
	copy "$copy"
	run "$copy" "$command" $((3 * LIMIT)) ||
		{ echo "FAIL base: not green without a patch: $command"
		  tail -5 "$copy/run.log"; }
	rm -rf "$copy"
}

check_green() {
	for name in "${names[@]}"; do header "$name" red; done | sort -u | nl -w1 -s$'\n' |
		tr '\n' '\0' | xargs -0 -n2 -P "$at_once" bash -c 'green "$@"' _ |
		tee "$work/not-green"
	[ ! -s "$work/not-green" ]
}

# One mutant; says PASS or FAIL and why.
try() {
	local name=$1 copy=$work/$1 red limit rc tried found
	red=$(header "$name" red)
	[ -n "$red" ] || { echo "FAIL $name: no line '# red: command'"; return; }
	copy "$copy"
	patch -d "$copy" -p1 -s -f --no-backup-if-mismatch \
		<"tests/mutants/$name.patch" >"$copy/patch.log" 2>&1 ||
		{ echo "FAIL $name: the patch does not apply"; return; }
	build "$copy" "$red" ||
		{ echo "FAIL $name: does not build"; tail -5 "$copy/build.log"; return; }
	limit=$(header "$name" limit)
	for ((tried = 0; tried < TRIES; tried++)); do
		run "$copy" "$red" "${limit:-$LIMIT}"
		rc=$?
		[ $rc = 0 ] || break
	done
	if [ $rc = 124 ] || [ $rc = 137 ]; then
		if [ -n "$(header "$name" 'time-out is red')" ]; then
			echo "PASS $name (time-out)"
		else
			echo "FAIL $name: no answer in ${limit:-$LIMIT} s, which proves nothing"
		fi
	elif [ $rc = 0 ]; then
		echo "FAIL $name: still green in $TRIES runs: $red"
		tail -5 "$copy/run.log"
	else
		found=':[FE]:[a-z]+:[A-Za-z0-9_]+|^FAILED [A-Za-z0-9_]+|^FAIL [^:]+'
		echo "PASS $name: $(grep -aoE "$found" "$copy/run.log" | head -1 |
			sed -E 's/^:[FE]:[a-z]+:|^FAIL(ED)? //')"
	fi
	rm -rf "$copy"
}

for name in "${names[@]}"; do
	[ -f "tests/mutants/$name.patch" ] ||
		{ echo "check-mutants: no tests/mutants/$name.patch" >&2; exit 2; }
done
export -f green try run end_daemons build copy programs header
export work LIMIT TRIES

make_base && check_green || { echo "0 passed, ${#names[@]} failed, 0 skipped"; exit 1; }

printf '%s\n' "${names[@]}" |
	xargs -P "$at_once" -I{} bash -c 'try {} >"$work/said/{}" 2>&1; cat "$work/said/{}"'

passed=$(cat "$work"/said/* | grep -c '^PASS')
failed=$((${#names[@]} - passed))
unchanged || failed=$((failed + 1))
[ $failed = 0 ] && rm -rf "$work"
echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
