#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Checks that the pages of docs/abi have exactly the facts of the code: every request with its
# number, struct, minimum, traits and flags; every field, size and constant of the UAPI header;
# every attribute, parameter and line of fdinfo of the module. Each *fact* is a line. A fact that
# only the code or only the pages have is a failure.
#
#   tests/check-abi.sh [FOLDER]     checks this tree, or the tree in FOLDER
#   tests/check-abi.sh --plants     plants mistakes in copies; each must be found
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2
export LC_ALL=C
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT

# ---- the code ----

# constants TREE: prints their names, without macros that take arguments
constants() {
	sed -nE -e 's/^#define[ \t]+(XMEM_[A-Z0-9_]+)[ \t].*/\1/p' \
		-e 's/^\t(XMEM_[A-Z0-9_]+) = .*/\1/p' \
		"$1"/include/xmem/{uapi.h,uapi/*.h}
}

# fields TREE: prints "struct field" for the structs of the UAPI header, and of metadata in it
fields() {
	cc -E -P -I"$1/include" "$1/include/xmem/uapi.h" | awk '
		/^struct xmem_[a-z_]+ \{/ { name = $2; next }
		/^\}/ { name = "" }
		name && /;/ { sub(/ *(\[.*)?;.*/, ""); print name, $NF }'
}

# write_program TREE: writes C that prints the facts of the UAPI header and the table of requests
write_program() {
	local name field
	cat <<-'TEXT'
		#include <stdio.h>
		#include "core/request.h"
		#define AT(s, f) offsetof(struct s, f), sizeof(((struct s *)0)->f)
		#define F(s, f) printf("field " #s " " #f " %zu %zu\n", AT(s, f));
		#define S(s) printf("struct " #s " %zu\n", sizeof(struct s));
		#define C(c) printf("constant " #c " 0x%llx\n", (unsigned long long)(c));
		static void request(const char *name, unsigned int number, const char *type)
		{
			const struct xm_request_kind *kind = xm_request_find(number);

			if (!kind) {
				printf("nobody knows %s\n", name);
				return;
			}
			printf("request %s 0x%x %s %u %u %s%s%s 0x%x\n", name, number, type,
			       kind->bytes, kind->least, kind->answers ? "answers" : "",
			       kind->unjoined ? " unjoined" : "", kind->answers ? "" : "-",
			       kind->flags);
		}
		int main(void) {
	TEXT
	fields "$1" | while read -r name field; do echo "F($name, $field)"; done
	fields "$1" | cut -d' ' -f1 | sort -u | sed 's/.*/S(&)/'
	# the pages have these elsewhere: the requests themselves, and the minimum of each
	constants "$1" | grep -vE '^XMEM_IOC_[A-SU-Z]|_MIN$' | sed 's/.*/C(&)/'
	sed -nE 's/^\t(KIND|FULL)\(([A-Z_]+), ([a-z_]+),.*/request("XMEM_IOC_\2", XMEM_IOC_\2, \
		"\3");/p' "$1/core/request.c"
	echo 'return 0; }'
}

# attributes TREE: prints those of sysfs, by the macros that make them
attributes() {
	local pool=/sys/class/xmem/poolN
	sed -nE -e "s,^XK_POOL_(VALUE|LINES)\((\w+)\,.*,sysfs $pool/\2 0444,p" \
		-e 's,^static CLASS_ATTR_RO\((\w+)\);,sysfs /sys/class/xmem/\1 0444,p' \
		"$1/kmod/sysfs.c"
	# with another macro or another mode, the lines above would miss some
	echo "modes of attributes: $(grep -ohE '\.mode = 0[0-7]+|DEVICE_ATTR[A-Z_]*' \
		"$1/kmod/sysfs.c" | sort -u | xargs)"
	echo "numbers of attributes: $(grep -ohE '&(dev_attr|xk_pool)_[a-z_]+\.attr' \
		"$1/kmod/sysfs.c" | wc -l)"
	sed -nE -e 's,^module_param_named\((\w+)\, .*\, (0[0-7]+)\);,sysfs \1 \2,p' \
		-e 's,^module_param_cb\((\w+)\, .*\, (0[0-7]+)\);,sysfs \1 \2,p' "$1"/kmod/*.c |
		sed 's,^sysfs ,&/sys/module/xmem/parameters/,'
}

code() {
	write_program "$1" >"$work/facts.c"
	cc -std=gnu11 -I"$1" -I"$1/include" -o "$work/facts" "$work/facts.c" "$1/core/request.c" \
		2>"$work/log" || { cat "$work/log" >&2; echo 'the code does not compile'; return; }
	"$work/facts"
	# a request that one host does not serve
	sed -nE 's/^\tXK_OP\(([A-Z_]+),.*/served XMEM_IOC_\1/p' "$1/kmod/ioctl.c"
	sed -nE 's/^#define (XMEM_IOC_[A-Z_]+)[ \t]+_IO\(.*/number \1/p' \
		"$1"/include/xmem/uapi/*.h
	attributes "$1"
	grep -ohE '"xmem-[a-z-]+:' "$1"/kmod/*.c | tr -d '":' | sort -u | sed 's/^/fdinfo /'
}

# ---- the pages ----

# pages TREE: prints entries of tags and values, and tables of fields and constants
pages() {
	cat "$1"/docs/abi/*.txt | awk '
		function request() {
			if (what !~ /^XMEM_IOC_/) return
			print "request", what, number, type, bytes[type], least, traits, flags
			print "served", what; print "number", what
		}
		FNR == NR && /^Struct:/ { s = $2 }
		FNR == NR { if (/^Size:/) bytes[s] = $2; next }
		/^[A-Z][A-Za-z]*:/ { table = "" }
		/^What:/ { request(); what = $2
			if (what ~ /^xmem-/) print "fdinfo", what }
		/^Number:/ { number = $2 }
		/^Struct:/ && /at least/ { type = $2; sub(",", "", type); least = $NF; next }
		/^Struct:/ { request(); what = ""; s = $2 }
		/^Traits:/ { sub(/^Traits:[ \t]*/, ""); traits = $0 }
		/^Flags:/ { flags = $2 }
		/^Mode:/ { print "sysfs", what, $2 }
		/^Size:/ { print "struct", s, $2 }
		/^(Fields|Constants):/ { table = $1 }
		table == "Fields:" && $1 ~ /^[0-9]+$/ && $2 ~ /^[0-9]+$/ {
			print "field", s, $3, $1, $2 }
		table == "Constants:" && $1 ~ /^0x/ { print "constant", $2, $1 }
		END { request() }' <(cat "$1"/docs/abi/*.txt) -
	echo 'modes of attributes: .mode = 0444 DEVICE_ATTR_RO'
	echo "numbers of attributes: $(grep -c '^What:.*class/xmem/poolN/' "$1"/docs/abi/sysfs.txt)"
}

# compare TREE: prints the facts that are not in both. A fact that is there twice is also a mistake.
compare() {
	local bad=0 line facts
	code "$1" | sort >"$work/code"
	pages "$1" | sort >"$work/pages"
	facts=$(wc -l <"$work/code")
	[ "$facts" -ge 350 ] || { echo "FAIL only $facts facts found in the code"; bad=1; }
	while read -r line; do
		echo "FAIL twice in docs/abi: $line"; bad=1
	done < <(uniq -d "$work/pages")
	while read -r line; do
		echo "FAIL the code says, and docs/abi does not: $line"; bad=1
	done < <(comm -23 "$work/code" "$work/pages")
	while read -r line; do
		echo "FAIL docs/abi says, and the code does not: $line"; bad=1
	done < <(comm -13 "$work/code" "$work/pages")
	[ $bad != 0 ] || echo "$facts facts of the ABI, each in docs/abi and in the code"
	return $bad
}

# ---- planted mistakes ----

# plant FILE SED-SCRIPT EXPECTED: with that change the comparison must fail and print EXPECTED
plant() {
	local tree=$work/tree
	rm -rf "$tree"
	mkdir -p "$tree/docs"
	cp -r core include kmod "$tree"
	cp -r docs/abi "$tree/docs"
	sed -i -E "$2" "$tree/$1"
	if cmp -s "$1" "$tree/$1"; then
		echo "FAIL the plant changes nothing in $1: $2"; missed=1
	elif compare "$tree" >"$work/found"; then
		echo "FAIL not found: $1: $2"; missed=1
	elif ! grep -qE "$3" "$work/found"; then
		echo "FAIL $1: $2: the failure does not say \"$3\" but"
		sed 's/^/    /' "$work/found"
		missed=1
	fi
}

plants() {
	missed=0
	plant kmod/sysfs.c 's/^XK_POOL_VALUE\(payloads,.*/&\nXK_POOL_VALUE(secret, "%d", 42);/' \
		'docs/abi does not: sysfs .*poolN/secret'
	plant kmod/sysfs.c 's/\.mode = 0444/.mode = 0440/' \
		'docs/abi does not: modes .* 0440'
	plant kmod/sysfs.c 's/^XK_POOL_LINES\(clients,/XK_POOL_LINES(guests,/' \
		'docs/abi does not: sysfs .*poolN/guests 0444'
	plant kmod/sysfs.c 's/^static CLASS_ATTR_RO\(users\)/static CLASS_ATTR_RO(people)/' \
		'docs/abi does not: sysfs .*xmem/people 0444'
	plant kmod/users.c 's/(named\(max_pools, .*)0644/\10444/' \
		'docs/abi does not: sysfs .*max_pools 0444'
	plant kmod/fdinfo.c 's/xmem-holds:/xmem-references:/' 'docs/abi does not: fdinfo xmem-refer'
	plant kmod/ioctl.c '/XK_OP\(WAIT,/d' 'the code does not: served XMEM_IOC_WAIT'
	plant core/request.c 's/XMEM_WAIT_MIN,/12,/' \
		'docs/abi does not: request XMEM_IOC_WAIT 0xe806 xmem_wait_request 40 12'
	plant include/xmem/uapi/join.h \
		's/(__u32 ring_entries;)/\1\n\t__u32 more, less;/' \
		'docs/abi does not: struct xmem_join_request'
	plant include/xmem/uapi/pages.h 's/(XMEM_CLIENT_ZOMBIE) = 2/\1 = 3/' \
		'docs/abi does not: constant XMEM_CLIENT_ZOMBIE 0x3'
	plant include/xmem/uapi/pages.h 's/total_bytes;/all_bytes;/' \
		'the code does not: field xmem_pool_header total_bytes'
	plant docs/abi/sysfs.txt 's,poolN/payloads,poolN/ghosts,' \
		'the code does not: sysfs .*ghosts'
	plant docs/abi/ioctl.txt '/XMEM_IOC_SLOT/,/^$/d' \
		'docs/abi does not: request XMEM_IOC_SLOT'
	plant docs/abi/pages.txt 's/^( *0 .*magic)/\1\n       0      8  magic/' 'twice'
	[ $missed != 0 ] || echo "14 planted mistakes, each found"
	return $missed
}

case ${1:-} in
--plants) plants ;;
*) compare "${1:-.}" ;;
esac
