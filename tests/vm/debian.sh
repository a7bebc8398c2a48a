# SPDX-License-Identifier: MIT
# Debian's kernels of other releases than this machine's: finds and fetches the packages of a
# kernel, and prepares builds of modules for it. kernel.sh sources this, and has $name, $out, $root
# and boot_debian.
# shellcheck shell=bash

# Runs apt with sources and lists of its own, so that the machine's do not change. A suite has a
# name like bookworm-backports; suites that end in -security are on a mirror of their own.
private_apt() {	# ARCHITECTURES SUITE...
	local apt=$out/apt architectures=$1 suite mirror
	shift
	mkdir -p "$apt"/state/lists/partial "$apt"/cache/archives/partial
	: >"$apt/status"
	: >"$apt/sources.list"
	for suite; do
		mirror=${VM_MIRROR:-http://deb.debian.org/debian}
		case $suite in *-security) mirror+=-security ;; esac
		echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]" \
			"$mirror $suite main" >>"$apt/sources.list"
	done
	cat >"$apt/apt.conf" <<-CONF
		Dir::State "$apt/state";
		Dir::State::status "$apt/status";
		Dir::Cache "$apt/cache";
		Dir::Etc::SourceList "$apt/sources.list";
		Dir::Etc::SourceParts "/dev/null";
		Dir::Etc::Preferences "/dev/null";
		Dir::Etc::PreferencesParts "/dev/null";
		Acquire::Languages "none";
		APT::Architecture "${architectures%%,*}";
		APT::Architectures "$architectures";
		APT::Sandbox::User "root";
	CONF
	export APT_CONFIG=$apt/apt.conf
	apt-get -qq update >&2 || die "apt-get update failed for $*"
}

# field_of FIELD PACKAGE[=VERSION]
field_of() { apt-cache show --no-all-versions "$2" | sed -n "s/^$1: //p" | sed 1q; }

# depends_of PACKAGE[=VERSION]: prints its dependencies as "name version", the first one of
# alternatives. The version is empty unless the dependency requires one exactly.
depends_of() {
	field_of Depends "$1" | tr ',' '\n' | sed -e 's/|.*//' -e 's/([^=][^)]*)//' |
		sed -n 's/^ *\([^ ]*\) *\((= *\([^)]*\))\)\{0,1\} *$/\1 \3/p'
}

# choose SERIES FLAVOUR: prints the release, then the packages to fetch, one a line, of the newest
# kernel whose version begins with SERIES. The headers decide, because they sometimes lag behind the
# image. The tools that build modules are for this machine's processor, not the kernel's.
choose() {
	local flavour=$2 version release headers package
	version=$(apt-cache madison "linux-headers-$flavour" |
		awk -F'|' -v series="$1" '{ gsub(/ /, "", $2) }
			index($2, series) == 1 { print $2 }' |
		sort -V | tail -1)
	[ -n "$version" ] || die "$name: Debian has no such headers any more"
	headers=$(depends_of "linux-headers-$flavour=$version" |
		sed -n 's/^\(linux-headers-[0-9][^ ]*\) .*/\1/p')
	[ -n "$headers" ] || die "$name: linux-headers-$flavour $version names no headers"
	release=${headers#linux-headers-}
	echo "$release"
	# since Linux 7 the image is split
	if [ -n "$(field_of Version "linux-binary-$release=$version" 2>/dev/null)" ]; then
		echo "linux-base-$release=$version"
		echo "linux-binary-$release=$version"
		echo "linux-modules-$release=$version"
	else
		echo "linux-image-$release=$version"
	fi
	echo "$headers=$version"
	depends_of "$headers=$version" | while read -r package version; do
		case $package in
		linux-headers-*-common | linux-headers-*-common-rt)
			echo "$package${version:+=$version}" ;;
		linux-kbuild-*) echo "$package:$(dpkg --print-architecture)${version:+=$version}" ;;
		esac
	done
	case $flavour in *arm64*) guests_own ;; esac
}

# Programs for a guest with another processor, and the libraries with which its tests are linked.
guests_own() {
	local package
	for package in busybox-static check libsubunit-dev; do
		echo "$package=$(field_of Version "$package")"
	done
}

# A root with trixie's packages, to build modules with its compiler for kernels whose tools need its
# libc. The packages are only unpacked and set up in a folder.
prepare_trixie() {
	local trixie=$cache_dir/trixie
	exec 8>"$cache_dir/trixie.lock"
	flock 8
	[ ! -e "$trixie/.ready" ] || return 0
	need debootstrap:debootstrap
	[ "$(id -u)" = 0 ] || die "needs root: the modules of $name are built in a chroot"
	say "making a root of trixie's, to build in"
	rm -rf "$trixie"
	env -u APT_CONFIG debootstrap --variant=minbase \
		--include=make,gcc-14,libelf1t64,pahole,libssl3t64,zlib1g trixie "$trixie" \
		"${VM_MIRROR:-http://deb.debian.org/debian}" >"$cache_dir/trixie.log" 2>&1 ||
		die "debootstrap failed, see $cache_dir/trixie.log"
	touch "$trixie/.ready"
}

# prepare_fetched SERIES FLAVOUR KMAKE SUITE...: chooses a kernel once; remove the folder to get a
# newer one. $chroot: the root in which modules for it are built, if not in this machine's.
chroot=''
prepare_fetched() {
	local series=$1 flavour=$2 kmake=$3 packages release package kdir
	local architectures
	architectures=$(dpkg --print-architecture)
	shift 3
	case $flavour in *arm64*) architectures=arm64,$architectures ;; esac
	if [ ! -s "$out/packages" ]; then
		private_apt "$architectures" "$@"
		packages=$(choose "$series" "$flavour")
		echo "$packages" >"$out/packages"
	fi
	packages=$(cat "$out/packages")
	! ready "$packages $kmake" || return 0
	release=${packages%%$'\n'*}
	export APT_CONFIG=$out/apt/apt.conf
	for package in ${packages#*$'\n'}; do
		fetch_deb "$package" "$root"
	done
	kdir=$root/usr/src/linux-headers-$release
	# the headers name each other by the path where they would be installed
	sed -i "s|[^ =]*/usr/src/|$root/usr/src/|g" "$kdir/Makefile"
	# BTF of modules would need pahole, and has no use here
	boot_debian "$release" "$kdir" "$kmake CONFIG_DEBUG_INFO_BTF_MODULES=" VM_CHROOT="$chroot"
	mark_ready "$packages $kmake"
}

# For other processors than this machine's, with Debian's cross compiler.
prepare_arm64() {	# SERIES FLAVOUR SUITE...
	local cross=aarch64-linux-gnu-
	need "${cross}gcc":gcc-aarch64-linux-gnu qemu-system-aarch64:qemu-system-arm
	busybox=$root/bin/busybox
	prepare_fetched "$1" "$2" "ARCH=arm64 CROSS_COMPILE=$cross" "${@:3}"
}

# The newest kernel that Debian has.
prepare_newest() {
	prepare_trixie
	chroot=$cache_dir/trixie
	prepare_fetched '' amd64 CC=gcc-14 trixie-backports sid
}
