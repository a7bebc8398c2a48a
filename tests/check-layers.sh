#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Who may depend on whom: which folder includes whose headers (the table below, which
# CONTRIBUTING.md tells in words), and which file of the module calls which (the table
# at the head of kmod/xk.h, checked in the symbols of the module's objects).
set -uo pipefail
cd "$(dirname "$0")/.."
bad=0
complain() { echo "FAIL $*"; bad=1; }

# Who includes, and the only files of this tree that it may include. The first row that
# fits a file counts. tests/ has no row: it sees everything.
may_include="
core/*          core/* include/xmem/uapi.h
kmod/*          kmod/* core/* include/xmem/uapi.h
include/*       include/*
lib/cuda/*      lib/cuda/* lib/*.h core/* include/*
lib/*           lib/* core/* include/*
daemon/*        daemon/* core/* include/* lib/host/wire.h lib/host/futex.h lib/host/address.h
cli/*           cli/* include/xmem.h include/xmem/[!u]*
examples/*      examples/* include/xmem.h include/xmem.hpp include/xmem/[!u]*
bench/inline.c  bench/* core/* include/xmem.h include/xmem/[!u]*
bindings/*      bindings/* include/xmem.h include/xmem/[!u]*
bench/*         bench/* include/xmem.h include/xmem/[!u]*
"

# resolve FOLDER NAME: the file of this tree that #include "NAME" means in FOLDER, or nothing
resolve() {
	local candidate
	for candidate in "$1/$2" "$2" "include/$2"; do
		[ -f "$candidate" ] || continue
		[[ $candidate == *..* ]] && candidate=$(realpath --relative-to=. "$candidate")
		echo "$candidate"
		return
	done
}

# row FILE: what it may include, one pattern a line
row() {
	local who allowed
	while read -r who allowed; do
		# shellcheck disable=SC2053
		[ -n "$who" ] && [[ $1 == $who ]] && { tr ' ' '\n' <<<"$allowed"; return; }
	done <<<"$may_include"
}

# check_file FILE: each file of this tree that it includes, whatever that is called, and what
# those include in turn
declare -A checked
check_file() {
	local line name found pattern fits patterns
	[ -z "${checked[$1]:-}" ] || return
	checked[$1]=yes
	mapfile -t patterns < <(row "$1")
	[ ${#patterns[@]} != 0 ] || complain "$1: no row of $0 says what it may include"
	while read -r line; do
		[[ $line == *[\"\<]*[\"\>]* ]] || {
			complain "$1: '$line' does not say which file it means"
			continue
		}
		name=${line#*[\"<]} name=${name%%[\">]*}
		found=$(resolve "$(dirname "$1")" "$name")
		if [ -z "$found" ]; then
			[[ $line == *'"'* ]] && complain "$1 includes $name, which does not exist"
			continue
		fi
		fits=no
		for pattern in "${patterns[@]}"; do
			# shellcheck disable=SC2053
			[[ $found == $pattern ]] && fits=yes
		done
		[ $fits = yes ] || complain "$1 includes $found; it may include: ${patterns[*]}"
		[[ $found == tests/* ]] || check_file "$found"
	done < <(grep -E '^[[:space:]]*#[[:space:]]*include' "$1")
}

# files PATTERN...: those that git has, of which there are some
files() {
	git ls-files "$@" | grep . || { echo "FAIL git has no file $*" >&2; kill -TERM $$; }
}

check_includes() {
	local file
	for file in $(files '*.[ch]' '*.hpp' '*.cpp' ':!tests/'); do check_file "$file"; done
}

# The table of xk.h, in order: "core/" or a file a line.
layers() {
	sed -n '/^ \* Layers\./,/^ \* Locks/s/^ \*   //p' kmod/xk.h |
		grep -oE '^(([a-z_]+\.c|core/) *)+' | xargs -n 1
}

# symbols FOLDER: "RANK FILE defines|needs SYMBOL" of every object, in the order of the table
symbols() {
	local rank=0 name file files object
	while read -r name; do
		rank=$((rank + 1))
		files=kmod/$name
		[ "$name" != core/ ] || files=$(files 'core/*.c')
		for file in $files; do
			object=$1/$(sed 's|^kmod/||; s|c$|o|' <<<"$file")
			[ -f "$object" ] || { echo "$rank $file has-no-object $object"; continue; }
			nm -g "$object" | awk -v r=$rank -v f="$file" '
				{ print r, f, ($(NF - 1) == "U" ? "needs" : "defines"), $NF }'
		done
	done < <(layers)
}

check_calls() {
	local folder missing file line
	make -s kmod >/dev/null || { complain 'make kmod fails'; return; }
	folder=$(dirname "$(make -s kmod-path)")
	for file in $(files 'kmod/*.c'); do
		[ "$(layers | grep -cx "${file#kmod/}")" = 1 ] ||
			complain "$file is not once in the table of kmod/xk.h"
	done
	for missing in $(layers | grep -v /); do
		[ -f "kmod/$missing" ] || complain "kmod/xk.h names $missing, which does not exist"
	done
	[ $bad = 0 ] || return
	file=$(mktemp)
	symbols "$folder" >"$file"
	[ "$(grep -c ' defines ' "$file")" -ge 50 ] || complain "$folder: nm finds too few symbols"
	while read -r line; do complain "$line"; done < <(awk '
		NR == FNR && $3 == "has-no-object" { print $2 " was not compiled: there is no " $4 }
		NR == FNR && $3 == "defines" { rank[$4] = $1; where[$4] = $2 }
		NR != FNR && $3 == "needs" && $4 in rank && rank[$4] > $1 {
			print $2 " needs " $4 " of " where[$4] ", which kmod/xk.h puts above it"
		}' "$file" "$file")
	rm -f "$file"
}

check_includes
check_calls
exit $bad
