#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# init.sh ROOT DEBS COMMAND [ARGUMENT...]: process 1 of a bare tree. It mounts the file systems of a
# running system, in a mount namespace that tree.sh made, and runs the command in the tree's
# /root/xmem. When this script ends, the kernel kills its remaining processes and undoes its mounts.
set -euo pipefail

root=$1 debs=$2
shift 2

mount_devices() {
	local device
	mount -t tmpfs -o mode=755 dev "$root/dev"
	for device in null zero full random urandom tty; do
		: >"$root/dev/$device"
		mount --bind "/dev/$device" "$root/dev/$device"
	done
	mkdir "$root/dev/pts" "$root/dev/shm"
	mount -t devpts -o newinstance,ptmxmode=666,mode=620 devpts "$root/dev/pts"
	mount -t tmpfs -o mode=1777 shm "$root/dev/shm"
	ln -s pts/ptmx "$root/dev/ptmx"
	ln -s /proc/self/fd "$root/dev/fd"
	ln -s fd/0 "$root/dev/stdin"
	ln -s fd/1 "$root/dev/stdout"
	ln -s fd/2 "$root/dev/stderr"
}

mount_all() {
	mount -t proc proc "$root/proc"
	# the kernel's settings are this machine's
	mount --bind "$root/proc/sys" "$root/proc/sys"
	mount -o remount,bind,ro "$root/proc/sys"
	mount -t sysfs -o ro sysfs "$root/sys"
	mount_devices
	# so that packages are not downloaded again for each tree
	mount --bind "$debs" "$root/var/cache/apt/archives"
}

mount_all
# The tree shares abstract sockets with this machine, as it shares the network. So the tree's daemon
# gets a socket of its own. There is no exec, because process 1 has to wait for orphans.
status=0
chroot "$root" /usr/bin/env -i -C /root/xmem HOME=/root TERM="${TERM:-dumb}" \
	PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
	${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
	XMEM_BARE=1 XMEM_SOCKET="xmem-bare-$RANDOM$RANDOM" "$@" || status=$?
exit "$status"
