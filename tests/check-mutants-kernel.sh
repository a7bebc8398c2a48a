#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Plants bugs in kmod/, one at a time, and expects a test in the VM to find each.
#
#   tests/check-mutants-kernel.sh              all of tests/kernel/mutants/*.patch
#   tests/check-mutants-kernel.sh wake-lost    the patches of these names
#   tests/check-mutants-kernel.sh --selftest   does this script report bugs that no test finds?
#
# A patch's first lines say why the patched code is wrong, and which tests must fail:
#   # red: SUITE ARGUMENT...      a program that suite() knows, and its arguments, mostly names
#                                 of tests. A second such line gives a second command, which runs
#                                 if the first one passes
#   # debug: REASON               the module is one for tests (XMEM_DEBUG)
# The bug is found if a test fails, or the command hangs, which means that all processors are idle
# for HANG seconds, or the kernel complains, or the module cannot be unloaded. A command that takes
# LIMIT seconds proves nothing, nor does a complaint that a busy machine can cause (SLOW below).
# First every command runs without a patch. If it fails or skips a test there, the bugs that name it
# have failed. The modules are made one after the other, in one tree, because only the files that a
# patch changes are compiled again. Meanwhile the script tests the modules that are ready: one VM
# loads TOGETHER of them, one after the other, and BOOTS VMs run at once. If a result is unclear,
# the bug is tested again, alone in a VM. The last line is "N passed, N failed, N skipped".
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2

# As in check-mutants.sh: many bugs show only as an event that never comes, for which a test waits.
patience='XMEM_TEST_PATIENCE=25'
LIMIT=${LIMIT:-600}
HANG=${HANG:-20}
BOOTS=${BOOTS:-$(nproc)}
TOGETHER=${TOGETHER:-8}
# Complaints that the kernel also prints if others use the processors.
SLOW='soft lockup|rcu.*stall|blocked for more than'
kernel=debian-6.1
patches=${MUTANTS_DIR:-tests/kernel/mutants}
work=$PWD/${MUTANTS_WORK:-build/kernel-mutants}

# The command line in the VM for a line "# red:", which may quote words.
suite() {
	local name=${1%% *} words=${1#"${1%% *}"}
	case $name in
	conform | cuda)
		echo "env XMEM_BACKEND=kernel FAKECUDA_DEVICE_FILE=/dev/xmem-test-gpu" \
			"$patience build/test/$name$words" ;;
	random-requests | gpu-payloads | traces | strangers | exhaust | hoards | reaped | ends | \
		meanwhile | watched | cheap | folders)
		echo "build/release/$name$words" ;;
	fuzz)	# it ends by itself after so many seconds
		echo "build/release/kernel-fuzz -t 60 -c tests/kernel/corpus/fuzz.txt" ;;
	*) echo "check-mutants-kernel: no suite is called '$name'" >&2; return 1 ;;
	esac
}

# Prints 1 if a command's instructions are counted (vm.sh). Such commands have their own machine.
counts_of() {
	! grep -qE 'build/release/(ends|watched|cheap|meanwhile|folders)' <<<"$1" || echo 1
}

header() { sed -n "s/^# $2: //p" "$patches/$1.patch"; }

# Prints the commands of a mutant, one a line.
commands() {
	header "$1" red | while IFS= read -r line; do suite "$line"; done
}

# Prints the commands of a mutant as one command.
command_of() { commands "$1" | awk 'NR > 1 { printf " && " } { printf "%s", $0 }'; }

# make TARGET...: the programs of a flavour that the commands name.
programs() { grep -hoE "build/$1/[a-z0-9-]+" "$work/commands" | sort -u; }

module() {
	# shellcheck source=/dev/null
	. "$folder/env"
	make -C "$work/tree" -s "$@" KDIR="$VM_KDIR" \
		KMAKE="$VM_KMAKE CONFIG_DEBUG_INFO_BTF_MODULES="
}

# boot FOLDER FILE: runs the commands in the lines of FILE (each.sh), with the module in FOLDER. All
# results go to FOLDER.
boot() {
	local to=$1 list=$2
	# On the counting clock, a task that holds a lock for long is preempted (suites.sh).
	VM_COUNTS=${counts:-} tests/vm/vm.sh -q -k "$kernel" \
		-t $(((LIMIT + 60) * $(wc -l <"$list"))) -o "$to/vm" -m "$gpu" -m "$to/xmem.ko" \
		-p device_files=240:255 -a "${counts:+preempt=full}" -- \
		env "HANG=$HANG" tests/kernel/each.sh "$list" >"$to/said" 2>&1
}

# ---- the tree ----

# A copy is kept of the files that a patch may change, and of those that are made from them, to be
# restored after each patch.
keep() { (cd "$work/tree" && tar -cf "$work/kept.tar" kmod core include build); }
restore() {
	(cd "$work/tree" && rm -rf kmod core include build && tar -xf "$work/kept.tar")
}

make_base() {
	folder=$(tests/vm/kernel.sh "$kernel") && gpu=$(tests/kernel/gpu/module.sh "$kernel") ||
		return 1
	rm -rf "$work"
	mkdir -p "$work/tree" "$work/base"
	git ls-files -z --cached --others --exclude-standard |
		xargs -0 sh -c 'for f; do [ -f "$f" ] && printf "%s\0" "$f"; done' _ |
		tar -c --null -T - -f - | tar -x -f - -C "$work/tree"
	module "-j$(nproc)" kmod >"$work/base/build.log" 2>&1 ||
		{ tail -20 "$work/base/build.log"; return 1; }
	made=$work/tree/$(module --no-print-directory kmod-path)
	cp "$made" "$work/base/" && keep
}

make_programs() {
	local flavour some
	for flavour in test release; do
		some=$(programs $flavour)
		# shellcheck disable=SC2086
		[ -z "$some" ] || make -s "-j$(nproc)" FLAVOUR=$flavour $some || return 1
	done
}

# ---- without a patch ----

check_green() {
	local counts command list=$work/base/list
	for counts in '' 1; do
		while IFS= read -r command; do
			[ "$(counts_of "$command")" != "$counts" ] ||
				echo "$command|/run/vm/module.1.ko|$LIMIT${counts:+000}|$command"
		done <"$work/commands" >"$list"
		[ -s "$list" ] || continue
		if ! boot "$work/base" "$list"; then
			tail -5 "$work/base/said"
			return 1
		fi
		cat "$work/base/said" >>"$work/base/green"
	done
}

# ---- with a patch ----

# Prints a line for boot. On the counting clock, seconds pass much faster.
line_of() {
	echo "$1|$work/$1/xmem.ko|$LIMIT${counts:+000}|$(command_of "$1")"
}

# Prints PASS if a boot has shown that the mutant is red; else nothing.
judge() {	# name, output of the boot
	local found
	grep -qxF "STUCK $1" "$2" && { echo "PASS $1: the module could not be unloaded"; return; }
	grep -qxF "GREEN $1" "$2" && return	# what failed after it belongs to others
	grep -qxF "RED $1 123" "$2" && { echo "PASS $1: hangs"; return; }
	found=$(sed -n "/^$1: /,/^RED $1 [0-9]*$/p" "$2" |
		grep -aoE '^FAILED [A-Za-z0-9_]+|^FAIL [^:]+' | tail -1)
	[ -z "$found" ] || echo "PASS $1: ${found#FAIL* }"
}

# Tries a mutant in a boot of its own, and prints PASS or FAIL.
try_alone() {
	local name=$1 said=$work/$1/said counts found
	counts=$(counts_of "$(command_of "$name")")
	line_of "$name" >"$work/$name/list"
	boot "$work/$name" "$work/$name/list"
	judge "$name" "$said" >"$work/verdict.$name"
	[ -s "$work/verdict.$name" ] || {
		found=$(grep -A1 'the kernel complained' "$said" | tail -1)
		if grep -qE "$SLOW" <<<"$found"; then
			echo "FAIL $name: the machine was too slow, which proves nothing"
		elif [ -n "$found" ]; then
			echo "PASS $name: the kernel complained:$(cut -c 1-90 <<<"${found#   }")"
		elif grep -q 'could not be unloaded' "$said"; then
			echo "PASS $name: the module could not be unloaded"
		elif grep -qxF "GREEN $name" "$said"; then
			echo "FAIL $name: still green: $(command_of "$name")"
		else
			echo "FAIL $name: $(tail -1 "$said"), which proves nothing"
		fi
	} >"$work/verdict.$name"
	cat "$work/verdict.$name"
}

# Tries mutants whose modules are built, in few boots. If a boot with others does not decide about a
# mutant, it gets a boot of its own. If it has ended the machine, the mutants after it are tried
# together again.
try_together() {
	local to=$work/with.$1 name left ended
	mkdir -p "$to"
	cp "$work/base/xmem.ko" "$to/"
	while [ $# -gt 0 ]; do
		for name; do line_of "$name"; done >"$to/list"
		boot "$to" "$to/list"
		left=() ended=''
		for name; do
			judge "$name" "$to/said" >"$work/verdict.$name"
			if [ ! -s "$work/verdict.$name" ]; then
				[ -z "$ended" ] || { left+=("$name"); continue; }
				grep -qE "^(GREEN|RED) $name( |$)" "$to/said" || ended=1
				try_alone "$name"
			else
				cat "$work/verdict.$name"
			fi
		done
		set -- "${left[@]}"
	done
}

# Makes the module of a mutant, or prints FAIL.
plant() {
	local name=$1 to=$work/$1 command debug
	debug=$(header "$name" debug)
	[ -n "$(header "$name" red)" ] ||
		{ echo "FAIL $name: no line '# red: SUITE TEST'"; return 1; }
	while IFS= read -r command; do
		grep -qxF "GREEN $command" "$work/base/green" && continue
		echo "FAIL $name: not green without it: $command"
		return 1
	done < <(commands "$name")
	mkdir -p "$to"
	patch -d "$work/tree" -p1 -s -f -F0 --no-backup-if-mismatch <"$patches/$name.patch" \
		>"$to/patch.log" 2>&1 || { echo "FAIL $name: the patch does not apply"; return 1; }
	module kmod ${debug:+XMEM_DEBUG=y} >"$to/build.log" 2>&1 ||
		{ echo "FAIL $name: does not build"; tail -5 "$to/build.log"; return 1; }
	cp "$work/tree/$(module --no-print-directory kmod-path ${debug:+XMEM_DEBUG=y})" "$to/"
}

# Waits for a free place for a boot.
wait_for_place() {
	while [ "$(jobs -pr | wc -l)" -ge "$BOOTS" ]; do wait -n; done
}

check_all() {
	local name together=()
	for name in "${names[@]}"; do
		if ! plant "$name" >"$work/verdict.$name"; then
			cat "$work/verdict.$name"
		elif [ -n "$(counts_of "$(command_of "$name")")" ]; then
			wait_for_place
			try_alone "$name" &
		else
			together+=("$name")
		fi
		restore
		[ ${#together[@]} = "$TOGETHER" ] || continue
		wait_for_place
		try_together "${together[@]}" &
		together=()
	done
	[ ${#together[@]} = 0 ] || try_together "${together[@]}"
	wait
}

run() {
	local passed failed
	names=("$@")
	[ $# -gt 0 ] || mapfile -t names < <(cd "$patches" && printf '%s\n' ./*.patch |
		sed 's|^\./||; s|\.patch$||')
	for name in "${names[@]}"; do
		[ -f "$patches/$name.patch" ] ||
			{ echo "check-mutants-kernel: no $patches/$name.patch" >&2; exit 2; }
	done
	make_base || { echo "FAIL base: the unpatched module does not build"
		echo "0 passed, ${#names[@]} failed, 0 skipped"; exit 1; }
	for name in "${names[@]}"; do commands "$name"; done | sort -u >"$work/commands"
	make_programs && check_green || { echo "FAIL base: the VM is not well without a patch"
		echo "0 passed, ${#names[@]} failed, 0 skipped"; exit 1; }
	check_all
	passed=$(cat "$work"/verdict.* | grep -c '^PASS')
	failed=$((${#names[@]} - passed))
	[ $failed = 0 ] && rm -rf "$work"
	echo "$passed passed, $failed failed, 0 skipped"
	[ $failed = 0 ]
}

# ---- the self-test ----

# expect NAME PATTERN: the line about NAME matches PATTERN.
expect() {
	if grep -qE "^$2" "$work/selftest.log"; then
		echo "PASS selftest $1"
	else
		echo "FAIL selftest $1: nothing said like: $2"
	fi
}

# The patches of tests/kernel/mutants/selftest: a bug that is found, and faults that must not count.
selftest() {
	work=$work-selftest
	mkdir -p "$work"
	MUTANTS_DIR=tests/kernel/mutants/selftest MUTANTS_WORK=build/kernel-mutants-planted \
		"$0" >"$work/selftest.log" 2>&1
	{
		expect 'a bug is found' 'PASS bug: P4_mmap_executable'
		expect 'a changed comment survives' 'FAIL comment: still green'
		expect 'a patch that does not fit is told' 'FAIL no-fit: the patch does not apply'
		expect "a test that is not there" "FAIL no-test: not green without it"
		expect 'they are counted' '1 passed, 3 failed, 0 skipped'
	} | tee "$work/verdicts"
	if grep -q '^FAIL' "$work/verdicts"; then
		sed 's/^/    /' "$work/selftest.log"
		echo "$(grep -c '^PASS' "$work/verdicts") passed," \
			"$(grep -c '^FAIL' "$work/verdicts") failed, 0 skipped"
		return 1
	fi
	rm -rf "$work" build/kernel-mutants-planted
	echo "5 passed, 0 failed, 0 skipped"
}

case ${1:-} in
--selftest) selftest ;;
*) run "$@" ;;
esac
