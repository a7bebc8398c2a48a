#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Builds the module for each kernel that Debian has, old and new, and for arm64, with pages of 4 and
# 16 KiB. On each of them the module must pass the conformance suite in the VM. (Debian has no
# kernel with pages of 64 KiB: "apt-cache search arm64-64k" finds none in any release.) Probes of
# the headers (kmod/Kbuild) detect differences between kernels. The module never asks for a version,
# because distributions backport changes.
#   tests/check-kernels.sh [KERNEL...]   tests all of them, which takes hours; or these
#   tests/check-kernels.sh --static      only checks that no code asks for a version, and that it
#                                        would find such code; takes a moment
#   tests/check-kernels.sh --build       builds for all, runs nothing
set -uo pipefail
cd "$(dirname "$0")/.."
kernels=(debian-5.10 debian-6.1 debian-6.12 debian-newest debian-6.1-arm64 debian-6.12-arm64-16k)
passed=0 failed=0

pass() { echo "PASS $1"; passed=$((passed + 1)); }
fail() { echo "FAIL $1${2:+: $2}"; failed=$((failed + 1)); }
summary() {
	echo "$passed passed, $failed failed, 0 skipped"
	[ $failed = 0 ]
}

# ---- no versions ----

# versions FOLDER...: prints the lines that ask for the kernel's version; status 1: none
versions() {
	grep -rnE 'LINUX_VERSION|KERNEL_VERSION|linux/version\.h|UTS_RELEASE|RHEL_RELEASE' \
		--include='*.[ch]' --include=Kbuild "$@"
}

# planted NAME LINE: the check finds this line in a file of the module
planted() {
	local copy
	copy=$(mktemp -d)
	cp kmod/compat.h kmod/Kbuild "$copy/"
	versions "$copy" >/dev/null && fail "clean-before-$1"
	echo "$2" >>"$copy/compat.h"
	if versions "$copy" >/dev/null; then pass "finds-$1"; else fail "finds-$1"; fi
	rm -rf "$copy"
}

no_versions() {
	local lines
	if lines=$(versions kmod core tests/kernel/gpu); then
		fail no-versions "$lines"
	else
		pass no-versions
	fi
	planted version '#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 7, 0)'
	planted header '#include <linux/version.h>'
}

# ---- building ----

# build KERNEL: puts its release, and its probes that say yes, into $work
build() {
	local module folder
	if ! module=$(tests/vm/module.sh "$1" XMEM_DEBUG=y 2>"$work/$1.log"); then
		tail -20 "$work/$1.log"
		fail "build-$1"
		return 1
	fi
	folder=$(dirname "$module")
	grep -ho 'XK_HAVE_[A-Z_]*' "$folder"/.module.o.cmd | sort -u >"$work/$1.probes"
	if grep -E '(warning|WARNING):' "$work/$1.log"; then
		fail "build-$1" 'it warns'
		return 1
	fi
	pass "build-$1 $(basename "$folder")"
}

# A probe with one answer for all kernels has a wrong pattern, or is not needed any more.
probes() {
	local probe yes
	while read -r probe; do
		yes=$(cat "$work"/*.probes | grep -cx "XK_HAVE_$probe")
		if [ "$yes" = 0 ] || [ "$yes" = ${#kernels[@]} ]; then
			fail "probe-$probe" "it says yes to $yes of ${#kernels[@]} kernels"
		else
			pass "probe-$probe: $yes of ${#kernels[@]} kernels"
		fi
	done < <(sed -n 's/^ccflags-y += $(call xk_probe,.*,\([A-Z_]*\))$/\1/p' kmod/Kbuild)
}

case ${1:-} in
--static) no_versions; summary; exit ;;
esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
run=yes all=yes
case ${1:-} in
--build) run='' ;;
-*) sed -n 's/^#   //p' "$0" >&2; exit 2 ;;
?*) kernels=("$@") all='' ;;
esac
no_versions
built=()
for kernel in "${kernels[@]}"; do
	build "$kernel" && built+=("$kernel")
done
[ -z "$all" ] || probes
[ -n "$run" ] || { summary; exit; }

# ---- running ----

for kernel in "${built[@]}"; do
	tests/vm/conform-other.sh "$kernel" 2>&1 | tee "$work/$kernel.out"
	[ "${PIPESTATUS[0]}" = 0 ] || echo "FAIL conform-$kernel"
done
read -r p f s < <(cat "$work"/*.out | awk '/^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped/ {
	p += $1; f += $3; s += $5; n++ } END { print p + 0, f + 0, s + 0, n + 0 }' |
	awk -v want=${#built[@]} '{ print $1, $2 + want - $4, $3 }')
echo "$((passed + p)) passed, $((failed + f)) failed, $s skipped"
[ $((failed + f)) = 0 ]
