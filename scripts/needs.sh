#!/bin/bash
# SPDX-License-Identifier: MIT
# needs.sh PURPOSE...: see that the Debian packages for these purposes are installed.
# If none is missing, it prints nothing. Missing packages are installed if it runs as root;
# otherwise the command for that is printed, and the status is 1. The purposes are in the list
# below. It needs only programs that every Debian machine has (dpkg, apt, bash, coreutils).
set -euo pipefail

me=${0##*/}
die() { echo "$me: $*" >&2; exit 1; }

# The headers of this machine's kind of kernel are named by its architecture.
architecture() { dpkg --print-architecture; }

packages_for() {
	local p
	case $1 in
	build) echo make gcc libc6-dev libjansson-dev libncurses-dev python3 ;;
	demo)
		echo make gcc libc6-dev libpng-dev libxxhash-dev ffmpeg forensics-samples-files
		;;
	kmod) echo make gcc libc6-dev kmod "linux-headers-$(architecture)" ;;
	vm)
		echo qemu-system-x86 cpio busybox-static kmod xz-utils zstd util-linux procps
		;;
	test)
		for p in build demo kmod vm instructions; do packages_for $p; done
		echo check sparse spin strace pkg-config cmake git patch dkms
		echo g++ clang libclang-rt-dev debootstrap jq systemd libglib2.0-dev libuv1-dev
		echo python3-venv python3-pycparser python3-dev mandoc tmux
		echo python3-prometheus-client python3-yaml
		;;
	# our own debug kernels, programs that read the module, and another processor
	long)
		echo flex bison bc libelf-dev perl coccinelle
		packages_for arm64
		;;
	arm64) echo gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-system-arm ;;
	# python3-torch has numpy, hypothesis and psutil with it: 540 MB. The headers of torch, with
	# which the allocator of xmem.torch is compiled, are 26 MB more, and protobuf's.
	python) echo make gcc libc6-dev libjansson-dev libncurses-dev python3-dev python3-venv ;;
	python-tests)
		packages_for python; packages_for fakecuda
		echo pkg-config python3-torch libtorch-dev python3-setuptools python3-wheel ffmpeg
		;;
	ocaml)
		echo make gcc libc6-dev ocaml-nox ocaml-dune ocaml-findlib libctypes-ocaml-dev
		echo libalcotest-ocaml-dev liblwt-ocaml-dev
		;;
	gstreamer) echo make gcc libc6-dev pkg-config libgstreamer-plugins-base1.0-dev ;;
	gstreamer-tests)
		packages_for gstreamer
		echo check valgrind gstreamer1.0-tools gstreamer1.0-plugins-base
		echo gstreamer1.0-plugins-good forensics-samples-files
		;;
	# what debian/control names, and programs that judge the packages
	packages)
		packages_for build
		echo dpkg-dev debhelper dh-dkms dh-python dh-apparmor pkg-config python3-dev
		echo libgstreamer-plugins-base1.0-dev
		echo python3-setuptools lintian apparmor bash-completion zsh fish
		;;
	fakecuda) echo make gcc g++ libc6-dev ;;
	bench) packages_for build; echo strace ;;
	instructions) packages_for build; echo valgrind ;;
	docs)
		packages_for python; echo mandoc tmux aha
		echo python3-sphinx python3-myst-parser python3-numpy graphviz
		;;
	peers) packages_for build; echo g++ jq gnuplot-nox libboost-dev libiceoryx-posh-dev ;;
	*) die "no such purpose: $1 (see packages_for)" ;;
	esac
}

# missing PACKAGE...: prints the packages that are not installed, one per line.
missing() {
	local package state
	for package; do
		state=$(dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null || true)
		# several lines: one per architecture
		grep -qx installed <<<"$state" || echo "$package"
	done | sort -u
}

# Are apt's lists there, and at most a day old?
lists_are_fresh() {
	local lists=/var/lib/apt/lists
	[ -n "$(find "$lists" -maxdepth 1 -name '*_Packages*' -print -quit 2>/dev/null)" ] ||
		return 1
	[ -n "$(find "$lists" -maxdepth 1 \( -name '*Release' -o -name partial \) -mtime -1 \
		-print -quit)" ]
}

log=''
# quietly COMMAND...: prints the output of the command only if it fails.
quietly() {
	"$@" </dev/null >"$log" 2>&1 && return 0
	tail -n 5 "$log" | sed 's/^/    /' >&2
	return 1
}

install_them() {
	export DEBIAN_FRONTEND=noninteractive
	local apt=(apt-get -q -o DPkg::Lock::Timeout=300)
	local install=("${apt[@]}" install -y --no-install-recommends "$@")
	log=$(mktemp)
	trap 'rm -f "$log"' EXIT
	trap 'exit 130' INT TERM HUP
	echo "$me: installing $*"
	if lists_are_fresh; then
		"${install[@]}" </dev/null >"$log" 2>&1 && return 0
	fi
	quietly "${apt[@]}" update || die "apt-get update failed; is there a network?"
	quietly "${install[@]}" || die "cannot install: $*"
}

main() {
	local purpose wanted=() lacking=()
	[ $# -gt 0 ] ||
		die "usage: $me build|demo|fakecuda|kmod|vm|test|long|ocaml|packages|python|$(
			)python-tests|docs|bench|instructions|peers|gstreamer|gstreamer-tests..."
	for purpose; do
		read -r -d '' -a more < <(packages_for "$purpose" && printf '\0')
		wanted+=("${more[@]}")
	done
	if ! command -v dpkg-query >/dev/null; then
		[ "${XMEM_NEEDS:-}" != ignore ] || return 0
		die "not a Debian machine: install what these packages hold," \
			"then set XMEM_NEEDS=ignore: ${wanted[*]}"
	fi
	mapfile -t lacking < <(missing "${wanted[@]}")
	[ ${#lacking[@]} -gt 0 ] || return 0
	if [ "$(id -u)" = 0 ]; then
		install_them "${lacking[@]}"
		return
	fi
	local update=''
	lists_are_fresh || update='apt-get update && '
	echo "$me: packages are missing; run as root:" \
		"${update}apt-get install -y --no-install-recommends ${lacking[*]}" >&2
	return 1
}

main "$@"
