#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs static checks on the module: checkpatch --strict, kernel-doc, and the kernel's semantic
# patches (coccinelle). All are from the source of the kernel whose headers are installed. "make
# kmod-check" runs sparse. A finding without an excuse, which is a line in static-excused.txt, is a
# failure. An excuse without a finding is reported. A line "TOOL||N" of that file says how many
# excused findings there may be: the number may only fall.
#   tests/check-static.sh [checkpatch] [kernel-doc] [coccinelle]      all, or some
#   tests/check-static.sh --plants ...    checks a copy with bugs, each of which must be found
set -uo pipefail
# shellcheck source=tests/vm/common.sh
. "$(dirname "$0")/vm/common.sh"
cd "$repo_dir" || exit 2
passed=0 failed=0
excuses=$repo_dir/tests/static-excused.txt
kmod=kmod			# the folder that is checked
plants=''
if [ "${1:-}" = --plants ]; then plants=yes; shift; fi
tools=("$@")
[ $# -gt 0 ] || tools=(checkpatch kernel-doc coccinelle)

pass() { echo "PASS $1"; passed=$((passed + 1)); }
fail() { echo "FAIL $1"; failed=$((failed + 1)); }

# Extracts the kernel's scripts from its source package, once.
scripts_of_the_kernel() {
	local version pkg
	version=$(stock_version "$(stock_release)")
	scripts=$cache_dir/src/scripts-$version
	[ ! -e "$scripts/.unpacked" ] || return 0
	pkg=$src_dir/pkg-scripts
	if [ -e "$src_dir/linux-$version/.unpacked" ]; then
		mkdir -p "$scripts"
		cp -r "$src_dir/linux-$version/scripts" "$scripts/"
	else
		fetch_deb "linux-source-6.1=$version" "$pkg"
		mkdir -p "$scripts"
		tar -C "$scripts" --strip-components=1 --wildcards \
			-xf "$pkg/usr/src/linux-source-6.1.tar.xz" '*/scripts/*'
		rm -rf "$pkg"
	fi
	touch "$scripts/.unpacked"
}

# ---- each prints lines: FILE:LINE: WHAT ----

run_checkpatch() {
	local file
	for file in "$kmod"/*.[ch]; do
		# a line is as wide as in CONTRIBUTING.md
		perl "$scripts/scripts/checkpatch.pl" --no-tree --strict --terse --show-types \
			--max-line-length=100 -f "$file"
	done | sed -nE 's/^([^:]+:[0-9]+): [A-Z]+:([A-Z_]+): .*/\1: \2/p'
}

# It also finds each struct of the UAPI header that has no comment for kernel-doc.
run_kernel-doc() {
	perl "$scripts/scripts/kernel-doc" -none "$kmod"/*.[ch] include/xmem/uapi/*.h 2>&1 |
		sed -nE 's/^([^:]+:[0-9]+): warning: (.*)/\1: \2/p'
	awk '/^\/\*\*/ { doc = 1 }
		/^struct xmem_.* \{/ { if (!doc) print FILENAME ":" FNR ": NO_KERNEL_DOC" }
		!/^( \*|\/\*)/ { doc = 0 }' include/xmem/uapi/*.h
}

# Two of them are in OCaml, which would need its compiler: one is for a chip, and one for
# comparisons with 0.
run_coccinelle() {
	local patch options
	while read -r patch; do
		! grep -q '^@.*script:ocaml\|^@ *initialize:ocaml' "$patch" || continue
		read -r -a options < <(sed -n 's,^// Options: *,,p' "$patch") || options=()
		nice spatch -D report --no-show-diff --very-quiet "${options[@]}" \
			--cocci-file "$patch" -I "$kmod" -I include --dir "$kmod" 2>"$work/error" ||
			{ cat "$work/error" >&2; echo "$kmod/Kbuild:1: $patch does not run"; }
	done < <(find "$scripts/scripts/coccinelle" -name '*.cocci' | sort) |
		sed -nE 's/^([^: ]+:[0-9]+)[:0-9-]*:? *(.*)/\1: \2/p'
}

# ---- excuses ----

# excused TOOL FILE WHAT TEXT: does a line excuse it? The line's number goes to $work/used.
excused() {
	local tool file what text reason n=0
	while IFS='|' read -r tool file what text reason; do
		n=$((n + 1))
		[ "$tool" = "$1" ] && [ -n "$reason" ] || continue
		# shellcheck disable=SC2254
		case $2 in $file) ;; *) continue ;; esac
		# shellcheck disable=SC2254
		case $3 in $what) ;; *) continue ;; esac
		# shellcheck disable=SC2254
		case $4 in $text) echo "$n" >>"$work/used"; return 0 ;; esac
	done <"$excuses"
	return 1
}

# judge TOOL: judges its findings in $work/found
judge() {
	local where what file line text bad=0 count=0 most
	while IFS= read -r where; do
		what=${where#*: }
		where=${where%%: *}
		file=${where%:*} line=${where##*:}
		text=$(sed -n "${line}{s/^[[:space:]]*//;p}" "$file")
		if excused "$1" "$file" "$what" "$text"; then
			count=$((count + 1))
			continue
		fi
		echo "    $1|$file|$what|$text|"
		bad=$((bad + 1))
	done <"$work/found"
	if [ $bad = 0 ]; then pass "$1"; else fail "$1: found $bad, excuse or mend"; fi
	most=$(sed -n "s/^$1||\([0-9]*\)$/\1/p" "$excuses")
	if [ "$count" -gt "${most:-0}" ]; then
		fail "$1: $count findings are excused, and there may be $most"
	elif [ "$count" -lt "${most:-0}" ]; then
		fail "$1: only $count findings are excused now: lower the number in $excuses"
	fi
}

# An excuse without a finding.
stale() {
	local tool file n=0
	while IFS='|' read -r tool file _; do
		n=$((n + 1))
		[ -n "$file" ] || continue
		case " ${ran[*]} " in *" $tool "*) ;; *) continue ;; esac
		grep -qx "$n" "$work/used" ||
			echo "static-excused.txt:$n: nothing needs it any more"
	done <"$excuses"
}

# ---- plants ----

# found TOOL WHAT: the tool's output about the copy has WHAT
found() {
	if grep -qE "plant\.c:[0-9]+: .*$2" "$work/found"; then
		pass "$1-finds-$2"
	else
		fail "$1-finds-$2"
	fi
}

plant() {
	kmod=$work/kmod
	cp -r kmod "$kmod"
	cat >"$kmod/plant.c" <<-'C'
		// SPDX-License-Identifier: GPL-2.0-only
		#include <linux/mutex.h>
		#include <linux/slab.h>
		static DEFINE_MUTEX(lock);
		/**
		 * struct plant - one field has no comment
		 */
		struct plant { int field; };
		int plant(char *text);
		int plant(char *text)
		{
			char *copy = kmalloc(8, GFP_KERNEL);
			if (copy) {
				kfree(copy);
			}
			copy[0] = text[0];
			mutex_lock(&lock);
			if (text[1] )
				return -EINVAL;
			mutex_unlock(&lock);
			return 0;
		}
	C
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
: >"$work/used"
ran=()
[ -z "$plants" ] || plant
for tool in "${tools[@]}"; do
	case $tool in
	checkpatch | kernel-doc) need perl:perl ;;
	coccinelle) need spatch:coccinelle ;;
	*) die "no such tool: $tool" ;;
	esac
	scripts_of_the_kernel
	"run_$tool" >"$work/found"
	ran+=("$tool")
	case $plants$tool in
	yescheckpatch) found checkpatch BRACES; found checkpatch SPACING ;;
	yeskernel-doc) found kernel-doc 'not described' ;;
	yescoccinelle) found coccinelle 'reference preceded by free'; found coccinelle lock ;;
	*) judge "$tool" ;;
	esac
done
[ -n "$plants" ] || stale
echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
