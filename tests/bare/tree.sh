#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# tree.sh COMMAND [ARGUMENT...]: runs a command as on a machine on which nothing is installed: as
# root in a fresh, bare Debian 12, in a fresh clone of this working tree. It shares this machine's
# kernel, network and Debian mirror. It knows nothing of the tests; see run.sh.
#
# build/bare keeps the tree that debootstrap made (*.tar), and the packages that were downloaded
# since then (debs). Everything else, with mounts and processes, goes when this script ends. The
# status is the command's; or 77, with a reason, if this machine cannot do it; or 2: no such tree.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
repo=$(cd "$here/../.." && pwd)
bare=$repo/build/bare
root=$bare/root
suite=bookworm
pristine=$bare/$suite-$(dpkg --print-architecture).tar

say() { echo "tree.sh: $*" >&2; }
die() { say "$*"; exit 2; }
cannot() { say "$*"; exit 77; }

can_we() {
	local tool
	[ "$(id -u)" = 0 ] || cannot "only root can make and enter a tree"
	for tool in debootstrap git unshare setpriv; do
		command -v "$tool" >/dev/null ||
			cannot "there is no $tool, try: scripts/needs.sh test"
	done
	unshare --mount --pid --fork mount -t proc proc /proc 2>/dev/null ||
		cannot "no mounts and process namespaces of our own can be had here"
}

# Prints lines for sources.list: this machine's lines for that Debian suite, so that apt uses a
# mirror near by. If there are none, it prints Debian's own.
sources() {
	local mirror=${VM_MIRROR:-http://deb.debian.org/debian} lines
	# shellcheck disable=SC2016
	lines=$(apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' \
		'Created-By: Packages' 'Origin: Debian' |
		grep -E "^deb [^ ]+ $suite(-updates|-security)? main$" | sort -u || true)
	if grep -q " $suite main$" <<<"$lines"; then
		echo "$lines"
	else
		printf 'deb %s %s main\n' "$mirror" "$suite" "$mirror" "$suite-updates" \
			"${mirror%/debian}/debian-security" "$suite-security"
	fi
}

# The settings by which this machine's apt reaches a mirror: proxies, timeouts, checks of the date.
apt_settings() {
	apt-config dump --no-empty |
		grep -E '^Acquire::(http|https|Retries|Check-|ForceIPv)' |
		grep -v -i auto-detect || true
	echo 'Acquire::Languages "none";'
}

# The settings by which this machine's pip reaches an index. Certificates that they name are copied
# to a folder of no package, because Debian's package would replace them.
pip_settings() {
	local given copy=/etc/pip-certificates.crt
	[ -f /etc/pip.conf ] || return 0
	given=$(sed -n 's/^ *cert *= *//p' /etc/pip.conf)
	[ -z "$given" ] || cp -L "$given" "$root$copy"
	sed "s|^ *cert *=.*|cert = $copy|" /etc/pip.conf >"$root/etc/pip.conf"
}

# apart COMMAND...: runs a command with processes and mounts of its own, which end with it. If this
# script is killed, the command ends as well. The command does not inherit the lock.
machine=''
apart() {
	local status=0
	setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child "$@" </dev/null 9>&- &
	machine=$!
	wait "$machine" || status=$?
	machine=''
	return $status
}

# First the command that runs apart is ended: unshare waits until its process 1 and all others have
# ended. Then the tree is removed from outside, where it has no mounts.
# shellcheck disable=SC2317
clean_up() {
	local status=$? first
	trap - EXIT
	if [ -n "$machine" ]; then
		first=$(cat "/proc/$machine/task/$machine/children" 2>/dev/null || true)
		# shellcheck disable=SC2086
		kill -KILL ${first:-$machine} 2>/dev/null || true
		wait "$machine" 2>/dev/null || true
	fi
	rm -rf "$root" "$bare/new" "$pristine.new"
	exit "$status"
}

make_pristine() {
	local mirror new=$bare/new log=$bare/debootstrap.log http_proxy=${http_proxy:-}
	mirror=$(sources | sed -n "s/^deb \(.*\) $suite main$/\1/p" | head -1)
	# debootstrap does not read apt's settings
	[ -n "$http_proxy" ] || eval "$(apt-config shell http_proxy Acquire::http::Proxy)"
	say "making a bare Debian tree in $pristine, once"
	rm -rf "$new"
	http_proxy=$http_proxy apart debootstrap --variant=minbase "$suite" "$new" "$mirror" \
		>"$log" 2>&1 || { tail -5 "$log" >&2; die "debootstrap failed, see $log"; }
	# a machine that has never run apt-get update
	rm -rf "$new"/var/cache/apt/archives/*.deb "$new"/var/lib/apt/lists/*
	# the devices are those of this machine: see init.sh
	tar -C "$new" --exclude='./dev/*' -cf "$pristine.new" .
	mv "$pristine.new" "$pristine"
	rm -rf "$new"
}

# The files of the working tree, as they are now, in a repository of their own.
make_clone() {
	local clone=$root/root/xmem git
	git=(git -C "$clone" -c user.name=xmem -c user.email=xmem@localhost -c commit.gpgSign=false)
	mkdir -p "$clone"
	# without files that git knows and that are removed
	(cd "$repo" && git ls-files -z --cached --others --exclude-standard |
		xargs -0 sh -c 'for f; do [ ! -f "$f" ] || printf "%s\0" "$f"; done' _ |
		tar -c --null -T - -f -) | tar -x --no-same-owner -f - -C "$clone"
	"${git[@]}" -c init.defaultBranch=main init -q
	"${git[@]}" add -A
	"${git[@]}" commit -q -m 'the working tree'
}

make_root() {
	rm -rf "$root"
	mkdir -p "$root" "$bare/debs/partial"
	# packages that newer ones have replaced
	find "$bare/debs" -maxdepth 1 -name '*.deb' -atime +30 -delete
	tar -C "$root" -xpf "$pristine"
	cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
	sources >"$root/etc/apt/sources.list"
	apt_settings >"$root/etc/apt/apt.conf.d/90tree"
	pip_settings
	# the tree need not survive a power failure
	echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/tree"
	# packages must not start services, nor change the settings of the shared kernel
	printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
	chmod 755 "$root/usr/sbin/policy-rc.d"
	make_clone
}

[ $# -gt 0 ] || { echo "usage: $0 COMMAND [ARGUMENT...]" >&2; exit 2; }
can_we
mkdir -p "$bare"
exec 9>"$bare/lock"
flock 9
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
[ -e "$pristine" ] || make_pristine
make_root
apart "$here/init.sh" "$root" "$bare/debs" "$@"
