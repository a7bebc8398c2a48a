#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# trixie.sh COMMAND [ARGUMENT...]: runs a command in this checkout as on a Debian 13, which has
# OCaml 5.3 and dune 3.17. debootstrap makes the tree once, in the folder XMEM_TRIXIE
# (docs/environment.md). The status is the command's; or 77, with a line "SKIP ocaml-5: why", if
# this machine cannot do it.
set -uo pipefail
repo=$(cd "$(dirname "$0")/../../.." && pwd)
tree=${XMEM_TRIXIE:-$repo/build/bare/trixie}
packages=(make gcc libc6-dev ocaml-nox ocaml-dune libctypes-ocaml-dev libalcotest-ocaml-dev
	liblwt-ocaml-dev ocaml-findlib)

cannot() { echo "SKIP ocaml-5: $*"; exit 77; }

[ "$(id -u)" = 0 ] || cannot "only root can make and enter a tree of Debian 13"
unshare --mount --pid --fork mount -t proc proc /proc 2>/dev/null ||
	cannot "no mounts and process namespaces of our own can be had here"

make_tree() {
	local new=$tree.new log=$tree.log proxy=${http_proxy:-}
	command -v debootstrap >/dev/null || cannot "there is no debootstrap"
	[ -n "$proxy" ] || eval "$(apt-config shell proxy Acquire::http::Proxy)"
	rm -rf "$new"
	mkdir -p "$(dirname "$new")"
	http_proxy=$proxy debootstrap --variant=minbase trixie "$new" \
		"${VM_MIRROR:-http://deb.debian.org/debian}" >"$log" 2>&1 ||
		cannot "debootstrap of trixie failed, see $log"
	cp -r /etc/apt/apt.conf.d/. "$new/etc/apt/apt.conf.d/"
	DEBIAN_FRONTEND=noninteractive http_proxy=$proxy chroot "$new" apt-get install -y \
		--no-install-recommends "${packages[@]}" >>"$log" 2>&1 </dev/null ||
		cannot "its packages cannot be installed, see $log"
	mv "$new" "$tree"
}

[ -x "$tree/usr/bin/dune" ] || make_tree

# The mounts end with the command.
# shellcheck disable=SC2016
exec unshare --mount --pid --fork --kill-child bash -c '
	tree=$1 repo=$2
	shift 2
	mkdir -p "$tree$repo"
	mount --bind "$repo" "$tree$repo" && mount -t proc proc "$tree/proc" &&
		mount --rbind /dev "$tree/dev" || exit 2
	exec chroot "$tree" bash -c "cd \"\$1\" && shift && exec \"\$@\"" _ "$repo" "$@"
	' _ "$tree" "$repo" "$@"
