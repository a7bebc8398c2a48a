#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Checks that there is one version, the Makefile's: the public header, the module, DKMS, the
# library's symbols, Debian's packages and the newest entry of the changelog agree with it.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2
bad=0

version=$(sed -n 's/^VERSION *:= *//p' Makefile)
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || { echo "FAIL the Makefile's is '$version'"; exit 1; }

# agrees WHERE VERSION-THERE [WANTED]
agrees() {
	[ "$2" = "${3:-$version}" ] && return
	echo "FAIL $1 says '$2', the Makefile '${3:-$version}'"
	bad=1
}

# value FILE MACRO: the macro's value, without quotes
value() { sed -n "s/^#define $2[[:space:]]*\"*\([^\"]*\)\"*\$/\1/p" "$1"; }

numbers=()
for part in MAJOR MINOR PATCH; do
	numbers+=("$(value include/xmem.h XMEM_VERSION_$part)")
done
agrees include/xmem.h "$(IFS=.; echo "${numbers[*]}")"
agrees kmod/xk.h "$(value kmod/xk.h XK_VERSION)"
agrees dkms.conf "$(sed -n 's/^PACKAGE_VERSION="\(.*\)"$/\1/p' dkms.conf)"
agrees "the first entry of CHANGELOG.md" "$(sed -n 's/^## //p' CHANGELOG.md | head -1)"

# The Python package reads the Makefile's version; test_package.py compares it with the installed
# one.
if grep -nE '[0-9]+\.[0-9]+\.[0-9]+' bindings/python/{setup.py,pyproject.toml}; then
	echo "FAIL the Python package says a version of its own"
	bad=1
fi

# The library's package has the version of the ABI in its name, as scripts/install.mk makes it.
agrees debian/changelog "$(sed -n '1s/^xmem (\(.*\)) .*/\1/p' debian/changelog)"
major=${version%%.*}
[ "$major" != 0 ] || major=${version%.*}
agrees debian/control "$(sed -n 's/^Package: libxmem\([0-9].*\)/\1/p' debian/control)" "$major"

# Before 1.0 the library has one node of symbols, MAJOR.MINOR; later that is its newest node.
nodes=$(sed -n 's/^XMEM_\([0-9.]*\) {$/\1/p' lib/libxmem.map)
[[ $version != 0.* ]] || agrees lib/libxmem.map "$nodes" "${version%.*}"
[ $bad != 0 ] || echo "$version everywhere"
exit $bad
