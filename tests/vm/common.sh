# SPDX-License-Identifier: MIT
# Shared by the scripts of tests/vm, which source it: paths, error messages, and functions that
# fetch a Debian package without installing it. Nothing here starts a virtual machine.
# shellcheck shell=bash

vm_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repo_dir=$(cd "$vm_dir/../.." && pwd)
cache_dir=${VM_CACHE:-$repo_dir/build/vm}
src_dir=$cache_dir/src
me=${0##*/}
PATH=$PATH:/usr/sbin:/sbin	# for depmod; an ordinary user's PATH lacks these

say() { echo "$me: $*" >&2; }
die() { say "$*"; exit 2; }

# need COMMAND:PACKAGE...: checks that all commands exist, or prints one line with the packages to
# install.
need() {
	local pair missing=""
	for pair in "$@"; do
		command -v "${pair%%:*}" >/dev/null || [[ "$missing " = *" ${pair#*:} "* ]] ||
			missing+=" ${pair#*:}"
	done
	[ -z "$missing" ] || die "missing tools, try: apt-get install$missing"
}

# need_file FILE:PACKAGE...: checks that headers and other files exist, as need does for commands.
need_file() {
	local pair missing=""
	for pair in "$@"; do
		[ -e "${pair%%:*}" ] || missing+=" ${pair#*:}"
	done
	[ -z "$missing" ] || die "missing files, try: apt-get install$missing"
}

# The compiler of Debian's bookworm kernels; if it is missing, the default compiler.
kernel_cc() {
	if command -v gcc-12 >/dev/null; then echo gcc-12; else echo gcc; fi
}

# Prints the release (6.1.0-N-amd64) of the newest installed stock headers.
stock_release() {
	local release
	release=$(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' \
			'linux-headers-6.1.0-*-amd64' 2>/dev/null |
		sed -n 's/^ii *linux-headers-//p' | grep -v -e cloud -e '-rt-' | sort -V |
		tail -1) || true
	[ -n "$release" ] ||
		die "no 6.1 headers installed, try: apt-get install linux-headers-amd64"
	echo "$release"
}

# Prints the package version (6.1.N-M) of these headers.
stock_version() { dpkg-query -W -f '${Version}' "linux-headers-$1"; }

# fetch_deb NAME=VERSION FOLDER: downloads and unpacks one package, once.
fetch_deb() {
	local spec=$1 into=$2 debs=$src_dir/debs tmp
	local mark=$into/.have/${spec//[^A-Za-z0-9.+_-]/_}
	[ -e "$mark" ] && return 0
	mkdir -p "$into/.have" "$debs"
	tmp=$(mktemp -d "$debs/get.XXXXXX")
	say "fetching $spec"
	if ! (cd "$tmp" && apt-get -qq -o APT::Sandbox::User=root download "$spec" >&2); then
		rm -rf "$tmp"
		die "cannot download $spec, try: apt-get update"
	fi
	dpkg-deb -x "$tmp"/*.deb "$into"
	rm -rf "$tmp"
	touch "$mark"
}

# where_it_builds COMMAND...: runs it here, or in the root VM_CHROOT (of a kernel's file env), in
# which the repository and the cache have their usual paths.
where_it_builds() {
	[ -n "$VM_CHROOT" ] || { "$@"; return; }
	# shellcheck disable=SC2016
	unshare -m bash -euc 'root=$1 here=$2
		for place in /proc /dev "$3" "$4"; do
			mkdir -p "$root$place"
			mount --rbind "$place" "$root$place"
		done
		exec chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
			/bin/bash -euc "cd \"\$1\"; shift; exec \"\$@\"" where_it_builds "$here" \
			"${@:5}"' where_it_builds "$VM_CHROOT" "$PWD" "$repo_dir" "$cache_dir" "$@"
}
