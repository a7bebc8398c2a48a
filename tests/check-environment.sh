#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Checks that docs/environment.md is the one place for variables. It has every variable that the
# code reads, and no other. Any other text that names a variable names the page, and no value.
# FOLDER has the built programs (build/release).
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2
B=${1:-build/release}
page=docs/environment.md
bad=0
complain() { echo "FAIL $*"; bad=1; }

rows=$(sed -n 's/^- `\([A-Z_]*\)`: .*/\1/p' $page)
# The fake driver is not xmem: its switches are in tests/fakecuda/README.md.
mapfile -t sources < <(git ls-files --cached --others --exclude-standard '*.[ch]' \
	':!tests/fakecuda/' | sort -u)
mapfile -t scripts < <(git ls-files --cached --others --exclude-standard '*.sh')
mapfile -t python < <(git ls-files --cached --others --exclude-standard 'bindings/**.py' \
	':!bindings/python/tests/')
calls=$(grep -noE 'getenv\([^)]*\)' "${sources[@]}" /dev/null)
read_by_code=$(sed -n 's/.*getenv("\([A-Z_]*\)")$/\1/p' <<<"$calls" | grep -v ^FAKECUDA_ | sort -u)

# Python reads os.environ, with a literal name.
asked=$(grep -noE 'environ(\.get\(|\[)[^])]*' "${python[@]}" /dev/null)
read_by_code+=" $(sed -n 's/.*environ[^"]*"\([A-Z_]*\)".*/\1/p' <<<"$asked" | sort -u)"
other=$(grep -v 'environ[^"]*"[A-Z_]*"' <<<"$asked")
[ -z "$other" ] || complain "a variable whose name this check cannot see: $other"

[ "$(wc -w <<<"$read_by_code")" -ge 5 ] || complain "found only these getenv calls: $calls"
other=$(grep -v 'getenv("[A-Z_]*")$' <<<"$calls")
[ -z "$other" ] || complain "a variable whose name this check cannot see: $other"
# A variable that a script's caller may set has a default in the script: ${V:-...}. The variables
# below are make's, the system's or NVIDIA's, or one script sets them for another.
not_for_users='BACKEND|CUDA_MPS_[A-Z_]*|DEMO_[A-Z]*|DESTDIR|FAKECUDA_[A-Z_]*|GPU|TERM|TMPDIR'
not_for_users+='|XMEM_BARE'
read_by_scripts=$(grep -hoE '\$\{[A-Z][A-Z_]+:-' "${scripts[@]}" | tr -d '${:-' | sort -u |
	grep -vxE "$not_for_users")
for name in $read_by_code $read_by_scripts; do
	grep -qx "$name" <<<"$rows" || complain "$page lacks $name, which is read"
done
for name in $rows; do
	grep -qw "$name" <(cat "${sources[@]}" "${scripts[@]}" "${python[@]}") ||
		complain "$page has $name, which nothing reads"
done
again=$(sort <<<"$rows" | uniq -d)
[ -z "$again" ] || complain "$page explains twice: $again"

# look WHERE: checks that the text on standard input, if it names a variable, names the page, and
# no value.
names=$(grep -E '^(XMEM|LISTEN)' <<<"$rows" | paste -sd'|')
look() {
	local text found
	text=$(cat)
	found=$(grep -woE "($names)" <<<"$text" | sort -u | paste -sd' ')
	[ -n "$found" ] || return 0
	grep -q 'environment\.md' <<<"$text" || complain "$1 names $found, but not $page"
	found=$(grep -woE "($names)=[^ ]*" <<<"$text" | paste -sd' ')
	[ -z "$found" ] || complain "$1 explains what $page explains: $found"
}
# In a header for kernels XMEM_DEVICE is a macro.
while read -r file; do
	[ "$file" = $page ] || [ ! -f "$file" ] || look "$file" <"$file"
done < <(git ls-files --cached --others --exclude-standard '*.md' 'include/*' 'man/*' \
	':!include/*.cuh' | sort -u)
for program in xmem xmemd; do
	"$B/$program" --help >build/help.txt || complain "$program --help"
	grep -qE "($names)" build/help.txt || complain "$program --help names no variable"
	look "$program --help" <build/help.txt
done
exit $bad
