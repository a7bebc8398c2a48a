#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Checks in the VM, with a real udevd and systemd's loader of modules, that the files of "make
# kmod-install" do what the README says. The module is loaded at boot. Only root and the group xmem
# may use /dev/xmem. Only users that a pool's mode admits may read its files in sysfs; other members
# of that group may not. Debian's udev is unpacked beside the VM's kernels and not installed here.
#   tests/vm/udev.sh                        prepares, and runs itself in the VM
#   tests/vm/udev.sh inside UDEV STAGED     the tests
set -uo pipefail
# shellcheck source=tests/vm/common.sh
. "$(dirname "$0")/common.sh"
cd "$repo_dir" || exit 2
passed=0 failed=0

# same NAME GOT WANT
same() {
	if [ "$2" = "$3" ]; then
		echo "PASS $1: $3"; passed=$((passed + 1))
	else
		echo "FAIL $1: it is '$2', not '$3'"; failed=$((failed + 1))
	fi
}

access_of() { stat -c '%U:%G %a' "$1" 2>&1; }

# as GROUP COMMAND...: runs it as a user who is in no other group
as() { setpriv --reuid=nobody --regid="$1" --clear-groups "${@:2}"; }

# Without a rule the kernel's own node does not change.
without_udev() {
	insmod "$1/lib/modules/$(uname -r)/updates/xmem.ko"
	same without-the-rule "$(access_of /dev/xmem)" 'root:root 600'
	rmmod xmem
	same gone "$(access_of /dev/xmem | grep -c 'No such file')" 1
}

start_udevd() {
	cp -a "$1"/lib/udev "$1"/lib/systemd /usr/lib/
	cp -a "$1"/bin/udevadm /usr/bin/
	mkdir -p /run/udev
	/lib/systemd/systemd-udevd --daemon
	udevadm control --ping --timeout=60
	same udevd "$?" 0
}

# As at boot, the loader reads modules-load.d, and udevd is told of the device.
boot() {
	local release own
	release=$(uname -r)
	own=$(mktemp -d)
	# depmod reads all modules, so it gets only ours
	mount --bind "$own" "/lib/modules/$release"
	cp -a "$1/lib/modules/$release/updates" "/lib/modules/$release/"
	cp -a "$1/usr/lib/udev/rules.d/60-xmem.rules" /usr/lib/udev/rules.d/
	cp -a "$1/usr/lib/modules-load.d/xmem.conf" /usr/lib/modules-load.d/
	getent group xmem >/dev/null || groupadd --system xmem
	udevadm control --reload
	depmod "$release" 2>/dev/null
	/lib/systemd/systemd-modules-load xmem.conf
	same modules-load "$? $(grep -c '^xmem ' /proc/modules)" '0 1'
	udevadm settle --timeout=60 --exit-if-exists=/nonexistent
	same with-the-rule "$(access_of /dev/xmem)" 'root:xmem 660'
}

# A member of the group makes a pool. Which users may read which of its files in sysfs?
pools_files() {
	local input publisher i
	input=$(mktemp -u)
	mkfifo "$input"
	XMEM_BACKEND=kernel as xmem build/release/publisher <"$input" &
	publisher=$!
	exec 9>"$input"
	# pools have no uevents, so nothing announces the files
	for ((i = 0; i < 100; i++)); do
		[ ! -e /sys/class/xmem/pool0/name ] || break
		sleep 0.1
	done
	same sysfs-file "$(access_of /sys/class/xmem/pool0/name)" 'root:root 444'
	same sysfs-owner "$(as xmem cat /sys/class/xmem/pool0/name 2>&1)" camera
	same sysfs-member "$(setpriv --reuid=daemon --regid=xmem --clear-groups \
		cat /sys/class/xmem/pool0/name 2>&1 | grep -c 'Permission denied')" 1
	exec 9>&-
	wait "$publisher"
	same publisher "$?" 0
}

inside() {
	without_udev "$2"
	start_udevd "$1"
	boot "$2"
	same member "$(XMEM_BACKEND=kernel as xmem build/release/xmem list >/dev/null 2>&1
		echo $?)" 0
	same stranger "$(as nogroup bash -c 'exec 3<>/dev/xmem' 2>&1 |
		grep -c 'Permission denied')" 1
	same stranger-is-told "$(XMEM_BACKEND=kernel as nogroup build/release/xmem list 2>&1 |
		grep -c "add it to the device's group")" 1
	pools_files
	udevadm control --exit
	echo "$passed passed, $failed failed, 0 skipped"
	[ $failed = 0 ]
}

[ "${1:-}" != inside ] || { inside "$2" "$3"; exit; }
need qemu-system-x86_64:qemu-system-x86
[ -x /lib/systemd/systemd-modules-load ] ||
	die "no systemd, try: apt-get install systemd"
version=$(apt-cache show --no-all-versions udev | sed -n 's/^Version: //p') ||
	die "apt knows no udev, try: apt-get update"
fetch_deb "udev=$version" "$cache_dir/udev"
folder=$("$vm_dir/kernel.sh" debian-6.1) || exit
# shellcheck source=/dev/null
. "$folder/env"
staged=$repo_dir/build/udev-check
rm -rf "$staged"
make -s build/release/xmem build/release/publisher || exit
# without fakeroot, because kmod-install with DESTDIR changes nothing outside of it
make -s kmod-install DESTDIR="$staged" KDIR="$VM_KDIR" \
	KMAKE="$VM_KMAKE CONFIG_DEBUG_INFO_BTF_MODULES=" >&2 || exit
exec "$vm_dir/vm.sh" -k debian-6.1 -t 200 -o build/test-log/udev -- \
	tests/vm/udev.sh inside "$cache_dir/udev" "$staged"
