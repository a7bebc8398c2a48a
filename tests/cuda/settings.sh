#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The fake driver guesses in places what a real driver does, and each guess is a switch. Here all
# tests of build/FLAVOUR/cuda run once for each other value of each switch, one at a time, and once
# with each older driver below. The tests mostly wait, so several runs go on beside each other. No
# run leaves out a test; loops are shorter.
#
#   tests/cuda/settings.sh [-l] [FOLDER]     -l: lists the settings; FOLDER: build/test
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 2

# Every switch in the table of guesses in tests/fakecuda/README.md, with every value but the first;
# for "any number" a number that no call returns.
settings=(
	GARBAGE=400 GONE=1 OTHER_USER=1 IPC_FLAGS=any REOPEN=208 SECOND_CONTEXT=999 NO_PEER=1
	FREE_OPEN=poison EXPORTER_DEATH=fault RANGE=allocation EXPORT_TYPE=801 BAD_FD=999
	NO_ACCESS=700 POOL_DOUBLE=bug POOL_GONE=999 HOST_ALIGN=any NEWER=null EVENT_NOT_SHARED=1
	EVENT_GARBAGE=999 EVENT_SELF=999 EVENT_ENDED=error EVENT_ENDED=complete IPC_EVENTS=2
	IPC_EVENTS=0 FLUSH=1
)
older=(
	MISSING=cuCtxRecordEvent	# before CUDA 12.5
)
readme=tests/fakecuda/README.md
beside=4

guessed=("${settings[@]}")
settings+=("${older[@]}")
[ "${1:-}" = -l ] && { printf 'FAKECUDA_%s\n' "${settings[@]}"; exit 0; }
build=${1:-build/test}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 skipped=0

# The table of guesses, a line each: the switch and its values, without the explanations.
guesses() {
	sed '1,/^## Guesses/d' $readme |
		sed -n 's/^| `FAKECUDA_\([A-Z_]*\)` | \([^|]*\) | .*/\1 \2/p'
}

says() { echo "FAIL every_guess_has_its_settings: $*"; return 1; }

# A value that is a word or a number is in the list itself. For "any number" and the like, some
# value is.
every_guess_has_its_settings() {
	local name values value rest known
	known=$(guesses | cut -d' ' -f1)
	[ "$(wc -w <<<"$known")" -ge 20 ] || says "$readme: no table of guesses" || return
	for value in "${guessed[@]}"; do
		grep -qx "${value%%=*}" <<<"$known" ||
			says "${value%%=*} is no guess of $readme" || return
	done
	while read -r name values; do
		IFS=, read -r _ rest <<<"$values"
		while IFS= read -r value; do
			value=${value##*: } value=${value// /}
			[[ $value = any?* ]] && value='[^ ]*'
			grep -qx "$name=$value" < <(printf '%s\n' "${settings[@]}") ||
				says "$readme has $name=$value, which nothing runs" || return
		done < <(tr ',' '\n' <<<"$rest")
	done < <(guesses)
}

run() {	# number
	local setting=${settings[$1]} rc
	env "FAKECUDA_$setting" FAKECUDA_LOG="$work/$1.log" XMEM_TEST_SCALE=${XMEM_TEST_SCALE:-25} \
		XMEM_SOCKET="${XMEM_SOCKET:-xmem-settings-$$}-$1" \
		XMEM_BACKEND=daemon timeout 3000 "$build/cuda" >"$work/$1.out" 2>&1 </dev/null
	rc=$?
	echo "$rc" >"$work/$1.rc"
}

report() {	# number
	local setting=FAKECUDA_${settings[$1]} p f s line
	line=$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped' "$work/$1.out" | tail -1)
	read -r p _ f _ s _ <<<"${line:-0 passed, 1 failed, 0 skipped}"
	sed -n -e "s/^FAILED /FAIL $setting /p; s/^child /  &/p" \
		-e "s/^SKIP \([^:]*\):/SKIP \1 ($setting):/p" "$work/$1.out"
	if [ -z "$line" ] || { [ "$(cat "$work/$1.rc")" != 0 ] && [ "$f" = 0 ]; }; then
		echo "FAIL $setting: the run ended with status $(cat "$work/$1.rc")"
		tail -5 "$work/$1.out" | sed 's/^/  /'
		f=1
	fi
	if [ -s "$work/$1.log" ]; then
		echo "FAIL $setting: rules of the driver were broken"
		sed 's/^/  /' "$work/$1.log" | head
		f=$((f + 1))
	fi
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
}

if every_guess_has_its_settings; then
	passed=1
else
	failed=1
fi
for i in "${!settings[@]}"; do
	[ "$(jobs -rp | wc -l)" -lt $beside ] || wait -n
	run "$i" &
done
wait
for i in "${!settings[@]}"; do
	report "$i"
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
