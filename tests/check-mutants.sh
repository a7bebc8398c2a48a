#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Tests the tests. For each patch this script makes a copy of the tree, applies the patch there,
# which plants a bug, and expects a test to fail. A test that never fails proves nothing.
#
#   tests/check-mutants.sh              all of tests/mutants/*.patch
#   tests/check-mutants.sh no-scanning  the patches of these names
#   tests/check-mutants.sh --changed    the patches that have changed, or whose source files or test
#                                       have changed (tests/changed-base.sh), and 24 others at
#                                       random. MUTANTS_SEED=N draws the same 24 again, if
#                                       the same patches have changed.
#   tests/check-mutants.sh --selftest   tests this script: which patches it chooses, whether it
#                                       notices a bug that is not found, which verdicts it keeps
#
# The first lines of a patch say why the patched code is wrong, and which command must fail then:
#   # red: COMMAND    This command runs in the patched copy. Only its programs are built.
# Without the patch the command must pass. If it does not, the patches that name it have failed,
# and the other patches are still tried.
#
# A busy machine must not change a verdict. A command hangs, and so has found the bug, if none of
# its processes ran or was ready to run for HANG seconds. A process that has used CPU_LIMIT seconds
# of processor time is in an endless loop, and is killed. If no test says why, the loop proves
# nothing, and the patch has failed. The patch has also failed if its command takes TIME_LIMIT
# seconds, which no busy machine needs.
#
# build/verdicts keeps the patches whose bugs were found, and the commands that passed without a
# patch. Such a patch is tried again only when it changes, or when a program of its command changes.
# The script compares these programs in their form without the patch. MUTANTS_ANEW=1 tries all.
# The last line is "N passed, N failed, N skipped".
set -uo pipefail
# A git hook or a shell may have set these. The self-test must not use the caller's repository.
# shellcheck disable=SC2046
unset CDPATH $(git rev-parse --local-env-vars 2>/dev/null)
cd "$(dirname "$0")/.." || exit 2

# Many commands run at once. Each must use its own daemon, so no common socket may be set.
unset XMEM_SOCKET
# A broken program may be slow, so the limits of libcheck are 50 times as long. The tests' own
# limits are a quarter of the usual ones: many bugs show only as an event that never comes.
export CK_TIMEOUT_MULTIPLIER=50 XMEM_TEST_PATIENCE=25
HANG=${HANG:-20} CPU_LIMIT=${CPU_LIMIT:-60} TIME_LIMIT=${TIME_LIMIT:-1200}
mutants=${MUTANTS_FOLDER:-tests/mutants}
work=$PWD/build/mutants
verdicts=$PWD/build/verdicts
at_once=${AT_ONCE:-$((3 * $(nproc)))}	# many commands only wait

header() { sed -n "s/^# $2: //p" "$mutants/$1.patch" | head -1; }
programs() { grep -oE 'build/test/[a-z0-9-]+' <<<"$1" | sort -u; }

# ---- the choice of patches

all() { (cd "$mutants" && printf '%s\n' *.patch) | sed 's|\.patch$||'; }

# The tests in a file, as a command names them.
tests_in() {
	case $1 in
	tests/*.sh) echo "$1" ;;
	tests/unit/* | tests/fakecuda/test_*)
		sed -nE 's/.*tcase_create\("([a-z0-9_]+)"\).*/CK_RUN_CASE=\1/p' ;;
	tests/*) sed -nE 's/.*TEST(_WITHIN)?\(([A-Za-z0-9_]+)[,)].*/\2/p' ;;
	esac
}

# is_moved BASE FILE: a patch that plants the bug of BASE, but at other lines
is_moved() {
	case $2 in
	"$mutants"/*.patch) cmp -s <(git show "$1:$2" 2>/dev/null | sed 's/^@@.*//') \
		<(sed 's/^@@.*//' "$2" 2>/dev/null) ;;
	*) return 1 ;;
	esac
}

# Prints the bugs whose patch, sources or test differ from a commit. A renamed or removed test has
# changed.
among_changed() {
	local base=$1 file lists
	lists=$(mktemp -d) || return
	tests/changed-base.sh --files | while IFS= read -r file; do
		is_moved "$base" "$file" || printf '%s\n' "$file"
	done >"$lists/files" && while IFS= read -r file; do
		{ cat "$file"; git show "$base:$file"; } 2>/dev/null | tests_in "$file"
		true	# some files have gone, and others are new
	done <"$lists/files" | sort -u >"$lists/tests" && awk -v lists="$lists" '
		BEGIN {
			while ((getline name <(lists "/files")) > 0)
				changed[name]
			while ((getline name <(lists "/tests")) > 0)
				test[++count] = name
		}
		function names_test(command, words, i, j) {
			gsub(/[\047"]/, "", command)
			gsub(/\*/, "[A-Za-z0-9_]*", command)
			if (command ~ /fakecuda-streams/)
				command = command "[A-Za-z0-9_]*"	# a part of a name
			for (i = split(command, words, " "); i; i--)
				for (j = 1; j <= count; j++)
					if (test[j] ~ ("^" words[i] "$"))
						return 1
			return 0
		}
		FILENAME in changed || (/^\+\+\+ b\// && substr($0, 7) in changed) ||
		(/^# red: / && names_test($0)) { chosen[FILENAME] }
		END { for (name in chosen) print name }
	' "$mutants"/*.patch | sed 's|.*/||; s|\.patch$||' | sort
	local rc=$?
	rm -r "$lists"
	return $rc
}

changed() {
	local base chosen rc seed=${MUTANTS_SEED:-$RANDOM}
	base=$(tests/changed-base.sh)
	rc=$?
	names=()
	if [ $rc = 0 ]; then
		chosen=$(among_changed "$base") || { echo "FAIL base: no list of changes"; exit 1; }
		[ -z "$chosen" ] || mapfile -t names <<<"$chosen"
		echo "${#names[@]} whose patch, sources or test differ from ${base:0:12}"
	elif [ $rc = 1 ]; then
		echo "git names no commit to compare with: only some at random"
	else
		exit $rc
	fi
	mapfile -t -O ${#names[@]} names < <(all | grep -vxFf <(printf '%s\n' "${names[@]:-}") |
		awk -v seed="$seed" 'BEGIN { srand(seed) } { print rand(), $0 }' | sort -g |
		head -24 | cut -d' ' -f2)
	echo "and others at random: MUTANTS_SEED=$seed"
}

# ---- copies

# Runs make in a tree, for the programs that a command names. Options of make may follow.
build() {
	local tree=$1 command=$2
	shift 2
	# shellcheck disable=SC2046	# words
	make -C "$tree" -s "$@" FLAVOUR=test $(programs "$command")
}

# All files of a copy are links to those of the base. So a program that changes a file must replace
# it by a new file of that name. gcc, ld, ar and patch do so; see make_base and unchanged. The copy
# has stamps of make of its own.
copy() {
	cp -al "$work/base" "$1" && find "$work/base/build/test" -maxdepth 1 -name '*.stamp' \
		-exec cp -p --remove-destination -t "$1/build/test" {} +
}

# Makes the base: this tree, once, with its built files. Each mutant is a copy of it. The compiler
# would write into an object's old list of dependencies, so all these lists are in one file.
make_base() {
	local all name deps=$work/base/build/test/obj
	rm -rf "$work"
	mkdir -p "$work"/{base/build,said,green} "$verdicts"
	all=$(for name in "${names[@]}"; do header "$name" red; done)
	if ! build . "$all" "-j$(nproc)" >"$work/build.log" 2>&1; then
		echo "FAIL base: the tree does not build without a patch"
		tail -20 "$work/build.log" | sed 's/^/    /'
		return 1
	fi
	{ git ls-files -z --cached --others --exclude-standard 2>/dev/null ||
		find . -path ./build -prune -o -type f -printf '%P\0'; } |
		xargs -0 sh -c 'for f; do [ -f "$f" ] && printf "%s\0" "$f"; done' _ |
		xargs -0 cp -a --parents -t "$work/base" && cp -a build/test "$work/base/build" &&
		find "$deps" -name '*.d' -exec cat {} + >"$work/all.d" &&
		find "$deps" -name '*.d' -delete && mv "$work/all.d" "$deps/all.d" &&
		list_programs >"$work/programs" && touch "$work/made"
}

# Is it true that no copy has written into a shared file?
unchanged() {
	local changed
	changed=$(find "$work/base" -type f -newer "$work/made" -printf '%P' -quit)
	[ -z "$changed" ] && return 0
	echo "FAIL base: a copy has written into $changed, which all copies have"
	return 1
}

# ---- verdicts

# Lists all built files, with a hash that does not depend on the folder of the build.
list_programs() {
	local file
	find build/test -path build/test/obj -prune -o -type f -print | sort |
		while IFS= read -r file; do
			objcopy --strip-debug -R .note.gnu.build-id "$file" "$work/stripped" \
				2>/dev/null || cp "$file" "$work/stripped"
			echo "$(sha256sum <"$work/stripped") $file"
		done
	rm -f "$work/stripped"
}

# A key that is equal as long as a command gives the same result: a hash of a patch (or /dev/null),
# the command, and its programs with the files that these load or start.
key() {
	local with
	with=$(programs "$2" | paste -sd'|')
	case $2 in
	*/conform*) with+='|build/test/(xmemd|extension-.*)' ;;
	*/cuda*) with+='|build/test/(xmemd|libxmem\.so.*|kernels.*|(fakecuda|cuda-drivers)/.*)' ;;
	*/cpp-*) with+='|build/test/(xmemd|fakecuda/.*)' ;;
	*/device-gpu*) with+='|build/test/(device-kernels.*|fakecuda/.*)' ;;
	*/fakecuda-*) with+='|build/test/(kernels.*|fakecuda/.*)' ;;
	*/ocaml-tests*) with+='|build/test/(xmemd|libxmem\.so.*)' ;;
	esac
	{
		cat "$1" && echo "$2" && grep -E " ($with)\$" "$work/programs"
		[[ $2 != tests/* ]] || cat "$(dirname "${2%% *}")"/*.sh
		[[ $2 != tests/device/numba.sh* ]] || cat tests/device/*.{py,cc} \
			bindings/python/xmem/numba/*.{py,cu} include/xmem/device/*.cuh
	} | sha256sum | cut -d' ' -f1
}

keep() { echo "$2" >"$verdicts/$1.$BASHPID" && mv "$verdicts/$1.$BASHPID" "$verdicts/$1"; }
kept() { [ -z "${MUTANTS_ANEW:-}" ] && [ -s "$verdicts/$1" ] && cat "$verdicts/$1"; }

# ---- commands

# The processes of a copy: the command's session, and the daemons, which have sessions of their own.
processes() {	# copy, session
	ps -o pid= -s "$2"
	find /proc/[0-9]*/exe -maxdepth 0 -lname "$at/${1##*/}/*" 2>/dev/null | cut -d/ -f3
}

# No process of this run goes on after the end of the run.
# shellcheck disable=SC2317
stop() {
	trap - HUP INT TERM
	find /proc/[0-9]*/{cwd,exe} -maxdepth 0 -lname "$at/*" 2>/dev/null | cut -d/ -f3 |
		sort -u | xargs -r kill -9
	exit 130
}

# This includes a stopped daemon that a killed test has left.
end_processes() { processes "$@" | xargs -r kill -9; } 2>/dev/null

# Waits until for HANG seconds no process of a copy has run or been ready to run.
hangs() {	# copy, session
	local before='' now one same=0
	while sleep 5; do
		now=$(for one in $(processes "$@"); do
			cat /proc/"$one"/task/*/status
		done 2>/dev/null | grep -E '^(Pid|State|.*ctxt)')
		same=$((same + 5))
		[[ $now = "$before" && $now != *[RD]\ \(* ]] || same=0
		before=$now
		[ $same -lt "$HANG" ] || return 0
	done
}

# Runs a command in a copy. The file "log" gets its output. There is a file "hung" if it hung.
run() {
	local pid watch rc
	(cd "$1" && ulimit -c 0 && ulimit -S -t "$CPU_LIMIT" &&
		exec setsid timeout -k 5 "$TIME_LIMIT" bash -c "$2" >log 2>&1 </dev/null) &
	pid=$!
	(hangs "$1" $pid && touch "$1/hung" && end_processes "$1" $pid) &
	watch=$!
	wait $pid 2>/dev/null
	rc=$?
	kill $watch 2>/dev/null
	wait $watch 2>/dev/null
	end_processes "$1" $pid
	return $rc
}

# Prints the end of a log so that its lines do not look like verdicts.
end_of() { tail -5 "$1" | sed 's/^/    /'; }

# Does a command pass without a patch? It runs once, for all bugs that name it.
green() {
	local key
	key=$(key /dev/null "$1")
	(
		flock 9
		[ ! -s "$work/green/$key" ] || exit 0
		kept "$key" >"$work/green/$key" && exit 0
		copy "$work/green-$key"
		if run "$work/green-$key" "$1" 9>&-; then
			echo green >"$work/green/$key"
			keep "$key" green
		else
			{ echo "FAIL base: not green without a patch: $1"
			  end_of "$work/green-$key/log"; } | tee "$work/green/$key"
		fi
		rm -rf "$work/green-$key"
	) 9>"$work/green/$key.lock"
	[ "$(cat "$work/green/$key")" = green ]
}

# Tries one mutant; prints PASS, or FAIL and the reason.
try() {
	local name=$1 copy=$work/$1 patch=$mutants/$1.patch red key rc found said
	red=$(header "$name" red)
	[ -n "$red" ] || { echo "FAIL $name: no line '# red: command'"; return; }
	key=$(key "$patch" "$red")
	said=$(kept "$key") && { echo "$said (kept)"; return; }
	green "$red" || { echo "FAIL $name: its command is not green without it"; return; }
	copy "$copy"
	patch -d "$copy" -p1 -s -f -F0 --no-backup-if-mismatch <"$patch" >"$copy/log" 2>&1 ||
		{ echo "FAIL $name: the patch does not apply"; return; }
	build "$copy" "$red" CFLAGS=-O1 >"$copy/log" 2>&1 ||
		{ echo "FAIL $name: does not build"; end_of "$copy/log"; return; }
	run "$copy" "$red"
	rc=$?
	found=':[FES]:[a-z]+:[A-Za-z0-9_]+|^FAILED [A-Za-z0-9_]+|^FAIL [^:]+'
	found=$(grep -av 'Test timeout expired' "$copy/log" | grep -aoE "$found" | head -1 |
		sed -E 's/^:[FES]:[a-z]+:|^FAIL(ED)? //')
	if [ $rc = 0 ] && tail -1 "$copy/log" | grep -qE '^0 passed, 0 failed, [1-9]'; then
		said="SKIP $name: its command cannot run here"
	elif [ $rc = 0 ]; then
		said="FAIL $name: still green: $red"
	elif [ -n "$found" ]; then
		said="PASS $name: $found"
	elif [ -e "$copy/hung" ]; then
		said="PASS $name: hangs"
	else
		said="FAIL $name: no answer, which proves nothing"
	fi
	echo "$said"
	case $said in
	PASS*) keep "$key" "$said" ;;
	SKIP*) ;;
	*) end_of "$copy/log" ;;
	esac
	rm -rf "$copy"
}

# ---- the self-test

# A small tree with this script, which must print the right verdict about each bug.
selftest() {
	local tree missed=0 me=(-c user.name=x -c user.email=x@y)
	tree=$(mktemp -d) || exit 2
	trap 'rm -rf "$tree"' EXIT
	mkdir -p "$tree/tests/mutants" "$tree/tests/conform"
	cp tests/check-mutants.sh tests/changed-base.sh "$tree/tests"
	cd "$tree" || exit 2
	printf 'build/test/%%: %%.sh\n\t@mkdir -p build/test/obj; rm -f $@; cp $< $@\n' >Makefile
	echo build >.gitignore
	printf '#!/bin/sh\n# one\nexit 0\n#\n#\n#\n' | tee one.sh >other.sh
	printf '#!/bin/sh\nexit 1\n# red\n' >red.sh
	chmod +x ./*.sh
	echo 'TEST(P1_a_test)' >tests/conform/one.c
	# plant NAME COMMAND FILE SED-COMMAND
	plant() {
		sed "$4" "$3" >new.txt
		{ echo "# red: $2"
		  diff -u --label "a/$3" --label "b/$3" "$3" new.txt; } >"tests/mutants/$1.patch"
		rm new.txt
	}
	local fails='s/^exit 0/echo FAIL it: is planted; exit 1/'
	plant found build/test/one one.sh "$fails"
	plant nothing build/test/one one.sh 's/one/two/'
	plant hangs build/test/one one.sh 's/^exit 0/exec sleep 1000/'
	plant loops build/test/one one.sh 's/^exit 0/while :; do :; done/'
	plant silent build/test/one one.sh 's/^exit 0/exit 1/'
	plant not-green build/test/red red.sh 's/red/blue/'
	plant named "build/test/other 'P1_*'" other.sh "$fails"
	git init -q . && git add . && git "${me[@]}" commit -qm all || exit 2
	export HANG=5 CPU_LIMIT=2 XMEM_BASE=HEAD
	unset MUTANTS_ANEW
	# says WHAT ARGUMENT...: standard input has lines, each of which the script must print
	says() {
		local what=$1 line said
		shift
		said=$(tests/check-mutants.sh "$@" 2>&1)
		while IFS= read -r line; do
			grep -qxF -e "$line" <<<"$said" && continue
			printf '%s: no line "%s" in\n%s\n' "$what" "$line" "$said"
			missed=$((missed + 1))
		done
	}
	says "all" <<-'TEXT'
		PASS found: it
		PASS named: it
		PASS hangs: hangs
		FAIL nothing: still green: build/test/one
		FAIL loops: no answer, which proves nothing
		FAIL silent: no answer, which proves nothing
		FAIL base: not green without a patch: build/test/red
		FAIL not-green: its command is not green without it
		3 passed, 4 failed, 0 skipped
	TEXT
	says "kept" found nothing <<-'TEXT'
		PASS found: it (kept)
		FAIL nothing: still green: build/test/one
	TEXT
	MUTANTS_ANEW=1 says "anew" found <<<'PASS found: it'
	rm tests/mutants/{nothing,loops,silent,not-green}.patch
	git add -A && git "${me[@]}" commit -qm "a few"
	differ="whose patch, sources or test differ from $(git rev-parse HEAD | cut -c-12)"
	says "nothing has changed" --changed <<<"0 $differ"
	echo '# more' | tee -a other.sh >>tests/mutants/found.patch
	says "a patch, a source" --changed <<-TEXT
		2 $differ
		PASS found: it
		PASS named: it
		PASS hangs: hangs (kept)
	TEXT
	git checkout -q . && sed -i 's/^@@ .*/& moved/' tests/mutants/found.patch
	says "a patch that has moved" --changed <<<"0 $differ"
	git checkout -q . && echo 'TEST(P1_b_test)' >>tests/conform/one.c
	says "a test" --changed <<<"1 $differ"
	git mv tests/conform/one.c tests/conform/two.c && echo >tests/conform/two.c && rm red.sh
	touch zz-new
	says "a test that has gone, and files" --changed <<<"1 $differ"
	git reset -q --hard && rm zz-new
	mv .git ../no-git.$$
	says "no git" --changed <<-'TEXT'
		git names no commit to compare with: only some at random
		3 passed, 0 failed, 0 skipped
	TEXT
	mv ../no-git.$$ .git
	XMEM_BASE=no-commit tests/check-mutants.sh --changed >/dev/null 2>&1
	[ $? = 2 ] || { echo "a base that is no commit is taken"; missed=$((missed + 1)); }
	[ $missed = 0 ] && echo "9 runs, each of which has said what it should"
	exit $((missed != 0))
}
# ---- the run

case ${1:-} in
--selftest) selftest ;;
--changed) changed ;;
'')	mapfile -t names < <(all) ;;
*)	mapfile -t names < <(printf '%s\n' "$@" | sort -u) ;;
esac
for name in "${names[@]}"; do
	[ -f "$mutants/$name.patch" ] ||
		{ echo "check-mutants: no $mutants/$name.patch" >&2; exit 2; }
done
export -f try green run hangs end_processes processes build copy key keep kept programs header
export -f end_of
mkdir -p build
exec 8>build/mutants.lock
flock -n 8 || { echo "check-mutants: another run works in $work" >&2; exit 2; }
at=$(realpath build)/mutants
export mutants work verdicts at HANG CPU_LIMIT TIME_LIMIT
trap stop HUP INT TERM

make_base || { echo "0 passed, ${#names[@]} failed, 0 skipped"; exit 1; }

printf '%s\n' "${names[@]}" |
	xargs -P "$at_once" -I{} bash -c 'try {} >"$work/said/{}" 2>&1; cat "$work/said/{}"' 8>&-

passed=$(cat "$work"/said/* | grep -c '^PASS')
skipped=$(cat "$work"/said/* | grep -c '^SKIP')
failed=$((${#names[@]} - passed - skipped))
unchanged || failed=$((failed + 1))
[ $failed = 0 ] && rm -rf "$work"
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
