#!/bin/sh
# SPDX-License-Identifier: MIT
# Process 1 of the guest, for the static busybox only. It first runs in the initramfs: it loads the
# boot modules and stacks the host's root (9p, read-only) under a tmpfs. Then it runs on that root,
# with "inside": it loads the modules under test, runs the command, unloads the modules, writes
# /run/vm/out/status, and ends. It judges nothing: vm.sh judges the status and the console's log.
# shellcheck disable=SC1091,SC2154,SC3045
# (the settings are written by vm.sh; busybox knows ulimit -H)

bb=/run/vm/busybox
note() { echo "vm-init: $*"; }

# If there is no status file, the host takes the guest for dead.
give_up() {
	note "FAILED: $*"
	busybox reboot -f || $bb reboot -f
}

mount_9p() { busybox mount -t 9p -o "trans=virtio,version=9p2000.L,msize=512000,$3" "$1" "$2"; }

stack_root() {
	for file in /modules/*; do
		[ ! -e "$file" ] || busybox insmod "$file" || give_up "insmod $file"
	done
	busybox mkdir -p /host /top /root.new
	# loose: these files do not change while the guest runs, and reads are 3 times faster
	mount_9p hostroot /host ro,cache=loose || give_up "mount of the host's root"
	busybox mount -t tmpfs -o size=75% top /top
	busybox mkdir /top/upper /top/work
	busybox mount -t overlay -o lowerdir=/host,upperdir=/top/upper,workdir=/top/work \
		overlay /root.new ||
		give_up "mount of the overlay"
	busybox mount -t tmpfs -o mode=755 run /root.new/run
	busybox mkdir -p /root.new/run/vm/out
	busybox cp /init /command /settings /bin/busybox /root.new/run/vm/
	[ ! -e /module.0.ko ] || busybox cp /module.*.ko /root.new/run/vm/
	mount_9p out /root.new/run/vm/out cache=none || give_up "mount of the output folder"
	# not a plain chroot: user namespaces cannot be made inside one
	exec busybox switch_root /root.new $bb sh /run/vm/init inside
}

# mount_if_known TYPE PLACE OPTIONS: mounts a file system that some kernels lack.
mount_if_known() {
	$bb grep -qw "$1" /proc/filesystems || return 0
	$bb mkdir -p "$2"
	$bb mount -t "$1" -o "$3" "$1" "$2"
}

mount_rest() {
	$bb mount -t proc proc /proc
	$bb mount -t sysfs sysfs /sys
	$bb mount -t devtmpfs -o mode=755 dev /dev
	$bb mkdir -p /dev/pts /dev/shm
	$bb mount -t devpts -o mode=620,ptmxmode=666 devpts /dev/pts
	$bb mount -t tmpfs -o mode=1777 shm /dev/shm
	$bb ln -sf /proc/self/fd /dev/fd
	$bb ln -sf fd/0 /dev/stdin
	$bb ln -sf fd/1 /dev/stdout
	$bb ln -sf fd/2 /dev/stderr
	mount_if_known debugfs /sys/kernel/debug mode=700
	mount_if_known tracefs /sys/kernel/tracing mode=700
	mount_if_known hugetlbfs /dev/hugepages mode=1777
	# so that modprobe finds the kernel's own modules
	if [ -n "$modules" ]; then
		$bb mkdir -p "/lib/modules/$($bb uname -r)"
		$bb mount --bind "$modules" "/lib/modules/$($bb uname -r)"
	fi
}

# The host's programs are for another processor, so the programs that the tests call are busybox's.
take_programs() {
	for program in sh cat env rm modprobe; do
		$bb ln -sf $bb "/usr/bin/$program"
	done
}

# Shortly before the host ends a hanging guest, prints where each process waits.
dump_when_late() {
	read -r uptime _ </proc/uptime
	$bb sleep $((dump_at > ${uptime%.*} ? dump_at - ${uptime%.*} : 0))
	note "time is nearly up"
	for process in /proc/[0-9]*; do
		line=$($bb tr '\0' ' ' <"$process/cmdline")
		[ -n "$line" ] || continue
		note "${process#/proc/}: $line"
		$bb cat "$process/stack"
	done
	echo w >/proc/sysrq-trigger
	echo l >/proc/sysrq-trigger
}

# Modules are loaded in the order of the command line; the last one is unloaded first.
load_modules() {
	unload=
	[ -n "$loads" ] || unload=xmem
	for i in $loads; do
		eval "module=\$module_$i arguments=\$arguments_$i"
		unload="$module $unload"
		note "loading $module $arguments"
		# shellcheck disable=SC2086
		$bb insmod "/run/vm/module.$i.ko" $arguments || return 1
	done
}

# After the kill, processes take time to end, and nothing announces when they close their last file.
# So this polls. A module that is in use for a minute has a leak.
unload_module() {	# name
	tries=600
	while $bb grep -q "^$1 " /proc/modules; do
		! $bb rmmod "$1" 2>/run/vm/rmmod || return 0
		tries=$((tries - 1))
		if [ $tries = 0 ]; then
			$bb cat /run/vm/rmmod
			return 1
		fi
		$bb sleep 0.1
	done
}

unload_modules() {
	for module in $unload; do
		unload_module "$module" || return 1
	done
}

# look_for_leaks SCANS: only with kmemleak=on. kmemleak does not report memory that is younger than
# 5 s, or that has changed since the previous scan. So a first look needs two scans.
look_for_leaks() {
	$bb grep -qw kmemleak=on /proc/cmdline || return 0
	$bb sleep 6
	scans=$1
	while [ "$scans" -gt 0 ]; do
		echo scan >/sys/kernel/debug/kmemleak
		scans=$((scans - 1))
	done
	$bb cat /sys/kernel/debug/kmemleak
}

# Saves the counters of modules with GCOV_PROFILE, which the kernel keeps after they are unloaded.
# The folders below are those in which they were built.
save_coverage() {
	[ -d /sys/kernel/debug/gcov ] || return 0
	cd /sys/kernel/debug/gcov || return 0
	$bb find . -name '*.gcda' | while read -r file; do
		$bb mkdir -p "/run/vm/out/files/gcov/${file%/*}"
		$bb cat "$file" >"/run/vm/out/files/gcov/$file"
	done
	cd / || return 0
}

write_status() {
	locks=$($bb sed -n 's/^ *debug_locks: *//p' /proc/lockdep_stats 2>/dev/null)
	{
		echo "command=$1"
		echo "module=$2"
		echo "tainted=$($bb cat /proc/sys/kernel/tainted)"
		echo "debug_locks=${locks:-none}"
	} >/run/vm/out/status
	# qemu's isa-debug-exit at port 0xf4: ends with (5 << 1) | 1
	if [ "$machine" = virt ]; then
		$bb poweroff -f
	else
		$bb printf '\005' | $bb dd of=/dev/port bs=1 seek=244 conv=notrunc 2>/dev/null
	fi
	give_up "still here after leaving"
}

run_inside() {
	. /run/vm/settings
	mount_rest
	$bb hostname vm
	ulimit -Hn 524288
	output=/dev/ttyS1
	if [ "$machine" = virt ]; then
		output=/dev/ttyS0
		take_programs
	fi
	$bb stty -F $output raw
	dump_when_late &
	load_modules || write_status none not_loaded
	note "running the command"
	$bb setsid /bin/sh /run/vm/command </dev/null >$output 2>&1
	status=$?
	note "the command ended with $status"
	kill -9 -1
	# once while the module's functions still have names, and once after the unloading
	look_for_leaks 2
	if unload_modules; then state=unloaded; else state=stuck; fi
	[ $state = stuck ] || look_for_leaks 1
	save_coverage
	write_status $status $state
}

case $1 in
inside) run_inside ;;
*) stack_root ;;
esac
