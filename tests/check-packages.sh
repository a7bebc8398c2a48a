#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Checks the source package of Debian. Does lintian accept it? Does it build from itself, with each
# file of "make install" in one package (dh_missing)? Does AppArmor read xmemd's profile? Does
# debian/copyright say the licence that the SPDX line of each file says? The suite bare builds and
# installs the binary packages.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$PWD/build/packages
rm -rf "$work"
mkdir -p "$work/tree"
unset "${!XMEM_@}" "${!DEB_@}" PREFIX DESTDIR
fail() { echo "FAIL $*"; exit 1; }
quiet() { "$@" >"$work/log" 2>&1 || { tail -20 "$work/log"; fail "$*"; }; }

# ---- licences ----

# The patterns of debian/copyright, and the licence of each. A later pattern wins.
patterns=() licences=()
read_copyright() {
	local line count=0
	while read -r line; do
		case $line in
		License:*) licences+=("${line#License: }"); count=${#licences[@]} ;;
		*) patterns+=("$count $line") ;;
		esac
	done < <(awk -v RS= '/^Files:/' debian/copyright | sed -n '/^Copyright/d; s/^Files: *//; p')
}

# licence_of FILE: sets "said" to the licence that debian/copyright gives to it.
licence_of() {
	local pattern
	said=none
	for pattern in "${patterns[@]}"; do
		# shellcheck disable=SC2053
		[[ $1 != ${pattern#* } ]] || said=${licences[${pattern%% *}]}
	done
}

check_licences() {
	local file spdx licence said bad=0 count=0
	declare -A names=([MIT]='Expat' [GPL-2.0-only]='GPL-2'
		['GPL-2.0-only OR MIT']='GPL-2 or Expat'
		['(GPL-2.0-only WITH Linux-syscall-note) OR MIT']='GPL-2 with Linux-syscall-note '$(
			)'exception or Expat')
	read_copyright
	while IFS=: read -r file spdx; do
		spdx=${spdx#*SPDX-License-Identifier: }
		spdx=${spdx% \*[/)]}	# the end of a comment in C or OCaml
		spdx=${spdx%'",'}	# or of a string
		licence=${names[$spdx]:-unknown}
		licence_of "$file"
		count=$((count + 1))
		[ "$said" = "$licence" ] && continue
		echo "FAIL $file: its line says '$spdx', debian/copyright '$said'"
		bad=1
	done < <(cd "$work/tree" && find . -type f -printf '%P\n' | xargs -d '\n' awk '
		FNR == 1 { seen = 0 }
		FNR <= 3 && !seen && /SPDX-License-Identifier: / {
			print FILENAME ":" $0
			seen = 1
		}')
	[ $count -ge 1000 ] || fail "only $count files say their licence"
	[ $bad = 0 ] || exit 1
	echo "$count files, each with its licence in debian/copyright"
}

# ---- the source package, and the files of the packages made from it ----

check_source() {
	(cd "$work" && quiet dpkg-source -Zgzip --build tree)
	quiet lintian --allow-root --fail-on error,warning "$work"/*.dsc
	[ ! -s "$work/log" ] || { cat "$work/log"; fail 'lintian says more than errors'; }
	(cd "$work" && quiet dpkg-source -x ./*.dsc again)
	echo 'lintian accepts the source package'
}

# Without the optimiser, which changes no list of files.
check_files() {
	(cd "$work/again" && DEB_BUILD_OPTIONS="noopt parallel=$(nproc)" quiet debian/rules install)
	grep -q dh_missing "$work/log" || fail 'dh_missing has not run'
	echo "the source package builds, and each installed file is in a package:"
	(cd "$work/again/debian" && for package in $(sed -n 's/^Package: //p' control); do
		echo "    $package: $(find "$package" ! -type d | wc -l) files"
	done)
}

# Without build/. A planted bug is tried in a folder that git does not know.
# Status 1: a file has changed meanwhile, such as the number of links that check-mutants.sh makes.
{ tar -c --warning=no-file-changed --exclude-vcs --exclude=./build --exclude=__pycache__ . ||
	[ $? = 1 ]; } | tar -x -C "$work/tree"
(cd "$work/tree" && quiet debian/rules clean)
# This reads AppArmor's profile as the kernel's loader does, and loads nothing.
check_profile() {
	(cd "$work/tree" && quiet apparmor_parser -Q -K debian/usr.libexec.xmem.xmemd)
	! grep -i error "$work/log" || fail "AppArmor refuses the profile of xmemd"
	echo 'AppArmor reads the profile of xmemd'
}

check_licences
check_profile
check_source
check_files
rm -rf "$work"
