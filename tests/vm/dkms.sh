#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Tests DKMS on a copy of this machine's root, which is thrown away. "make dkms-install" adds,
# builds and installs the module for one kernel. Then another kernel is installed, and Debian's hook
# makes DKMS build the module for that one as well. Each kernel then boots in the VM with the files
# of DKMS, and the module loads; systemd's loader loads the new kernel's. There DKMS removes the
# module, and leaves nothing. Only the compiler runs outside the VM, in which it would take ten
# minutes; there `uname -r` names the kernel that is meant. Needs root.
#   tests/vm/dkms.sh                                  all of it
#   tests/vm/dkms.sh build OLD KDIR NEW KDIR STATE    in the copy; leaves STATE, a tar
#   tests/vm/dkms.sh old STATE                        in the VM, before the upgrade
#   tests/vm/dkms.sh new STATE                        in the VM, after the upgrade
set -uo pipefail
# shellcheck source=tests/vm/common.sh
. "$(dirname "$0")/common.sh"
cd "$repo_dir" || exit 2
version=$(sed -n 's/^PACKAGE_VERSION="\(.*\)"$/\1/p' dkms.conf)
passed=0 failed=0

# works NAME COMMAND...
works() {
	local log
	log=$(mktemp)
	if "${@:2}" >"$log" 2>&1; then
		echo "PASS $1"; passed=$((passed + 1))
	else
		echo "FAIL $1: ${*:2}"; failed=$((failed + 1))
		tail -20 "$log" | sed 's/^/    /'
		tail -20 /var/lib/dkms/xmem/*/build/make.log 2>/dev/null | sed 's/^/    | /'
		rm -f /var/lib/dkms/xmem/*/build/make.log	# it is printed once
	fi
	rm -f "$log"
}

# shellcheck disable=SC2317
# (they are commands of works)
{
	not() { ! "$@"; }
	installed() { dkms status "xmem/$version" -k "$1" | grep -q ': installed'; }
	module_of() { find "/lib/modules/$1/" -name 'xmem.ko*' | grep .; }
	is_for() { modinfo -F vermagic "$(module_of "$1")" | grep -q "^$1 "; }
	signed() { [ -n "$(modinfo -F signer "$(module_of "$1")")" ]; }
	loads() { modprobe xmem && [ -c /dev/xmem ] && build/release/traces && modprobe -r xmem; }
}

summary() {
	echo "$passed passed, $failed failed, 0 skipped"
	[ $failed = 0 ]
}

# ---- in the copy of this machine ----

# Acts like apt after it has unpacked a kernel's headers.
headers() {	# RELEASE KDIR
	mkdir -p "/lib/modules/$1"
	ln -sfn "$2" "/lib/modules/$1/build"
}

build() {	# OLD KDIR NEW KDIR STATE
	local old=$1 new=$3
	printf '#!/bin/sh\n[ "$*" = -r ] && echo %s || exec /usr/bin/uname "$@"\n' "$old" \
		>/usr/local/sbin/uname
	chmod 755 /usr/local/sbin/uname
	export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
	rm -rf /var/lib/dkms/xmem "/usr/src/xmem-$version" "/lib/modules/$old" "/lib/modules/$new"
	headers "$old" "$2"
	works dkms-install make -s dkms-install
	works installed installed "$old"
	works is-for-this-kernel is_for "$old"
	works signed signed "$old"
	works again make -s dkms-install
	works not-for-the-next not installed "$new"

	headers "$new" "$4"
	works upgrade /etc/kernel/postinst.d/dkms "$new"
	works installed-for-the-next installed "$new"
	works is-for-the-next is_for "$new"
	works still-for-this installed "$old"
	works state tar -C / -cf "$5" var/lib/dkms "usr/src/xmem-$version" \
		usr/lib/udev/rules.d/60-xmem.rules usr/lib/modules-load.d/xmem.conf \
		"lib/modules/$old" "lib/modules/$new"
	summary
}

# Runs in a copy whose changes are in memory, in mounts that no other process sees.
in_copy() {	# SCRIPT ARGUMENT...
	local copy
	copy=$(mktemp -d "$cache_dir/run/dkms.XXXXXX")
	# shellcheck disable=SC2016
	unshare -m bash -euc 'copy=$1 repo=$2 cache=$3
		mount -t tmpfs -o size=75% copy "$copy"
		mkdir "$copy"/{upper,work,root}
		mount -t overlay -o "lowerdir=/,upperdir=$copy/upper,workdir=$copy/work" overlay \
			"$copy/root"
		for place in /proc /sys /dev "$repo" "$cache"; do
			mkdir -p "$copy/root$place"
			mount --rbind "$place" "$copy/root$place"
		done
		exec chroot "$copy/root" "${@:4}"' in_copy "$copy" "$repo_dir" "$cache_dir" "$@"
	local status=$?
	rmdir "$copy"
	return $status
}

# ---- in the VM ----

# Restores the files of DKMS, and none of the kernel's own modules, because depmod would read all of
# them, slowly.
restore() {	# STATE
	local own
	own=$(mktemp -d)
	chmod 755 "$own"
	mount --bind "$own" "/lib/modules/$(uname -r)"
	tar -C / -xf "$1" --keep-directory-symlink
	depmod "$(uname -r)" 2>/dev/null	# it misses the lists of the kernel's own modules
}

old() {
	restore "$1"
	works loads loads
	summary
}

new() {
	restore "$1"
	works found-after-the-upgrade module_of "$(uname -r)"
	works boot /lib/systemd/systemd-modules-load xmem.conf
	works loaded grep -q '^xmem ' /proc/modules
	works unloads modprobe -r xmem
	works loads loads
	works remove dkms remove "xmem/$version" --all
	works no-module not module_of "$(uname -r)"
	works not-loadable not modprobe xmem
	works no-tree not test -e "/var/lib/dkms/xmem/$version"
	summary
}

case ${1:-} in
build) build "${@:2}"; exit ;;
old) old "$2"; exit ;;
new) new "$2"; exit ;;
esac
need qemu-system-x86_64:qemu-system-x86 dkms:dkms openssl:openssl
if [ "$(id -u)" != 0 ]; then
	echo 'SKIP dkms-vm: needs root, because it mounts a copy of this machine'
	echo '0 passed, 0 failed, 1 skipped'
	exit 0
fi
make -s build/release/traces || exit
log=$repo_dir/build/test-log/dkms-vm
rm -rf "$log"
mkdir -p "$log" "$cache_dir/run"
where=()
for kernel in debian-6.1 debian-6.12; do
	folder=$("$vm_dir/kernel.sh" "$kernel") || exit
	# shellcheck source=/dev/null
	. "$folder/env"
	where+=("$VM_RELEASE" "$VM_KDIR")
done
status=0
{
	in_copy "$repo_dir/tests/vm/dkms.sh" build "${where[@]}" "$log/state.tar" &&
		"$vm_dir/vm.sh" -k debian-6.1 -t 200 -o "$log/old" -- \
			tests/vm/dkms.sh old "$log/state.tar" &&
		"$vm_dir/vm.sh" -k debian-6.12 -t 200 -o "$log/new" -- \
			tests/vm/dkms.sh new "$log/state.tar"
} | tee "$log/lines" || status=$?
awk '/^[0-9]+ passed, /{ p += $1; f += $3; n++ }
	END { printf "%d passed, %d failed, 0 skipped\n", p, f + (n != 3) }' "$log/lines"
exit $status
