#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Checks that each public function is in all its places: the symbols of the library, and C++. For a
# missing one it says what to add. tests/check-bindings.sh checks the files made from the headers.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2
export LC_ALL=C PYTHONDONTWRITEBYTECODE=1
bad=0
complain() { echo "FAIL $*"; bad=1; }

list=$(bindings/generate.py --list) || exit 1
names=$(cut -f 1 <<<"$list"; echo xmem_get_api)
names=$(sort <<<"$names")
[ "$(wc -l <<<"$names")" -ge 80 ] || complain "bindings/api.json has too few functions"

# Prints the lines of one list that the other lacks.
only() { comm "$1" <(echo "$2") <(echo "$3"); }

exported=$(sed -n 's/^\t\t\(xmem_[a-z0-9_]*\);$/\1/p' lib/libxmem.map)
[ "$exported" = "$(sort <<<"$exported")" ] || complain "lib/libxmem.map is not sorted"
exported=$(sort <<<"$exported")
for name in $(only -23 "$names" "$exported"); do
	complain "$name is in a header and not in lib/libxmem.map: run make api"
done
for name in $(only -13 "$names" "$exported"); do
	complain "$name is in lib/libxmem.map, and no header declares it"
done
symbols=$(nm -D --defined-only build/release/libxmem.so | sed -n 's/.* T \(xmem_[^@]*\).*/\1/p' |
	sort)
for name in $(only -23 "$names" "$symbols"); do
	complain "$name is not a symbol of build/release/libxmem.so: define it with XMEM_API"
done
for name in $(only -13 "$names" "$symbols"); do
	complain "$name is a symbol of build/release/libxmem.so, and no header declares it"
done
# C++ also has all functions, in xmem.hpp or a header that it includes.
for name in $names; do
	[ "$name" = xmem_get_api ] || grep -qw "$name" include/xmem.hpp include/xmem/*.hpp ||
		complain "$name is in no header of C++: add it to include/xmem/*.hpp, and a test" \
			"of it to tests/cpp"
done

[ $bad != 0 ] || echo "$(wc -l <<<"$names") public functions, each in all its places"
exit $bad
