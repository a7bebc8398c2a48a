#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Checks the layers. The table below says which folder may include the headers of which;
# CONTRIBUTING.md says it in words. The tables at the heads of kmod/xk.h, core/protocol.h,
# lib/private.h, daemon/daemon.h and bindings/python/src/core.h say which file may call which; the
# symbols of the objects show the calls.
set -uo pipefail
cd "$(dirname "$0")/.."
bad=0
complain() { echo "FAIL $*"; bad=1; }

# Each row has a pattern of files, and the only files of this tree that these may include. The first
# row that fits a file counts. tests/ has no row, because it may include everything.
may_include="
core/*          core/* include/xmem/uapi.h
kmod/*          kmod/* core/* include/xmem/uapi.h
include/*       include/*
lib/cuda/*      lib/cuda/* lib/base/* lib/host/* lib/*.h core/* include/*
lib/*           lib/* core/* include/*
daemon/*        daemon/* core/* include/* lib/host/wire.h lib/host/futex.h lib/host/address.h
cli/look*       cli/* core/* include/* lib/host/wire.h lib/host/address.h
cli/*           cli/* include/xmem.h include/xmem/[!u]*
examples/*      examples/* include/xmem.h include/xmem.hpp include/xmem/[!u]*
bench/inline.c  bench/* core/* include/xmem.h include/xmem/[!u]*
bindings/*      bindings/* include/xmem.h include/xmem/[!u]*
bench/*         bench/* include/xmem.h include/xmem/[!u]*
"

# resolve FOLDER NAME: prints the file of this tree that #include "NAME" means in FOLDER, if any
resolve() {
	local candidate
	for candidate in "$1/$2" "$2" "include/$2"; do
		[ -f "$candidate" ] || continue
		[[ $candidate == *..* ]] && candidate=$(realpath --relative-to=. "$candidate")
		echo "$candidate"
		return
	done
}

# row FILE: prints the patterns that it may include, one a line
row() {
	local who allowed
	while read -r who allowed; do
		# shellcheck disable=SC2053
		[ -n "$who" ] && [[ $1 == $who ]] && { tr ' ' '\n' <<<"$allowed"; return; }
	done <<<"$may_include"
}

# check_file FILE: checks each file of this tree that it includes, under any name, and the files
# that those include
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

# files PATTERN...: prints the files in git that match; there must be some
files() {
	git ls-files "$@" | grep . || { echo "FAIL git has no file $*" >&2; kill -TERM $$; }
}

check_includes() {
	local file
	for file in $(files '*.[ch]' '*.hpp' '*.cuh' '*.cpp' ':!tests/'); do
		check_file "$file"
	done
}

# layers TABLE FOLDER: prints the files of the table at the head of a header, in order. A name that
# ends with '/' is the folder of the names after it, also in lines that are indented further. In the
# module's table, core/ means all of core.
layers() {
	awk -v top="$2/" '
		/^ \* Layers\. / { inside = 1; next }
		/^ \* Locks|^ \*\/|^#/ { inside = 0 }
		inside && match($0, /^ \*   ( *)/) {
			if (RLENGTH == 5) folder = ""
			for (i = 2; $i ~ /^[a-z_]+(\.c|\/)$/; i++)
				if ($i == "core/" && top == "kmod/") print $i
				else if ($i ~ /\/$/) folder = $i
				else print top folder $i
		}' "$1"
}

# symbols TABLE FOLDER OBJECTS: prints "RANK FILE defines|needs SYMBOL" for every object, in order
symbols() {
	local rank=0 name file files object
	while read -r name; do
		rank=$((rank + 1))
		files=$name
		[ "$name" != core/ ] || files=$(grep -oE '\<core/[a-z_]+\.o' kmod/Kbuild |
			sed 's/o$/c/; /check\.c/d')
		for file in $files; do
			object=$3/$(sed 's|^kmod/||; s|c$|o|' <<<"$file")
			[ -f "$object" ] || { echo "$rank $file has-no-object $object"; continue; }
			nm -g "$object" | awk -v r=$rank -v f="$file" '
				{ print r, f, ($(NF - 1) == "U" ? "needs" : "defines"), $NF }'
		done
	done < <(layers "$1" "$2")
}

# check_calls TABLE FOLDER OBJECTS LEAST: each file is in the table once, and needs no symbol of a
# later file. The objects have at least LEAST symbols; otherwise nm does not see them.
check_calls() {
	local file line
	for file in $(files "$2/*.c"); do
		[ "$(layers "$1" "$2" | grep -cx "$file")" = 1 ] ||
			complain "$file is not once in the table of $1"
	done
	for file in $(layers "$1" "$2" | grep -v '/$'); do
		[ -f "$file" ] || complain "$1 names $file, which does not exist"
	done
	[ $bad = 0 ] || return
	file=$(mktemp)
	symbols "$@" >"$file"
	[ "$(grep -c ' defines ' "$file")" -ge "$4" ] || complain "$2: nm finds too few symbols"
	while read -r line; do complain "$line"; done < <(awk -v table="$1" '
		NR == FNR && $3 == "has-no-object" { print $2 " was not compiled: there is no " $4 }
		NR == FNR && $3 == "defines" { rank[$4] = $1; where[$4] = $2 }
		NR != FNR && $3 == "needs" && $4 in rank && rank[$4] > $1 {
			print $2 " needs " $4 " of " where[$4] ", which " table " puts above it"
		}' "$file" "$file")
	rm -f "$file"
}

# check_called OBJECTS: the module has no function that it does not call
check_called() {
	local name called objects
	mapfile -t objects <"$1/xmem.mod"
	called=$(readelf -rW "${objects[@]}" | awk 'NF > 4 { print $5 }' | sort -u)
	while read -r name; do
		complain "xmem.ko has $name, which it does not call: see core/ in kmod/Kbuild"
	done < <(nm --defined-only "${objects[@]}" |
		awk '$2 == "T" && $3 ~ /^x[mk]_/ { print $3 }' | grep -vxF "$called")
}

check_module() {
	local objects
	make -s kmod >/dev/null || { complain 'make kmod fails'; return; }
	objects=$(dirname "$(make -s kmod-path)")
	check_calls kmod/xk.h kmod "$objects" 50
	check_called "$objects"
}

check_user_space() {
	make -s build/release/libxmem.a build/release/xmemd python >/dev/null ||
		{ complain 'make fails'; return; }
	check_calls core/protocol.h core build/release/obj 100
	check_calls lib/private.h lib build/release/obj 300
	check_calls daemon/daemon.h daemon build/release/obj 50
	check_calls bindings/python/src/core.h bindings/python/src build/release/obj 100
}

check_includes
check_module
check_user_space
exit $bad
