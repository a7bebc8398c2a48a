#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The pure core needs nothing but the compiler's own helpers, and each folder includes
# only what CONTRIBUTING.md allows it.
set -uo pipefail
cd "$(dirname "$0")/.."
bad=0
complain() { echo "FAIL $*"; bad=1; }

for object in build/release/obj/core/*.o; do
	[ -e $object ] || { complain "$object is not built"; continue; }
	extra=$(nm -u "$object" | awk '{print $2}' |
		grep -vE '^(xm_scan|xm_check_failed|mem(set|cpy)|_GLOBAL_OFFSET_TABLE_)$')
	[ -z "$extra" ] || complain "$object needs $extra"
done
lines=$(wc -l < core/env.h)
[ "$lines" -le 70 ] || complain "core/env.h has grown to $lines lines: it has a new dependency"

# includes LINE-PATTERN FILES...: complain about a local include that is not allowed
includes() {
	local allowed=$1 file found; shift
	for file in "$@"; do
		found=$(grep -hoE '^#include "[^"]+"' "$file" | grep -vE "\"($allowed)\"")
		[ -z "$found" ] || complain "$file: $found"
	done
}
includes 'env\.h|step\.h|protocol\.h|host\.h|request\.h' core/*.[ch]
includes 'xmem\.h|[a-z_]+\.h|core/[a-z]+\.h' $(git ls-files 'examples/*.[ch]' 'bench/*.[ch]')
! grep -lE '#include "(core/|lib/|daemon/|private|backend)[a-z_/]*\.h"' \
	$(git ls-files 'examples/*.[ch]' 'bench/*.[ch]' | grep -v bench/inline.c) ||
	complain 'examples and bench see only xmem.h'
exit $bad
