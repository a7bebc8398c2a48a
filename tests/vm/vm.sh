#!/bin/bash
# SPDX-License-Identifier: MIT
# vm.sh [options] -- COMMAND ARGUMENT...: runs a command as root inside a virtual machine that sees
# this machine's files (changes are kept only in memory), with a kernel module loaded, and judges
# the kernel's log. The machine is emulated, so it is no place to measure speed. kernel.sh prepares
# the kernels, and init.sh is the guest's side.
set -euo pipefail
. "$(dirname "$0")/common.sh"

usage() {
	cat >&2 <<-TEXT
		usage: $me [options] -- COMMAND ARGUMENT...
		  -k NAME      kernel: debian-6.1 (default) or another one of kernel.sh
		  -m FILE.ko   load this module before the command; several: in this order
		  -p "A=B ..." parameters of the module named last
		  -o FOLDER    keep console.log, output.log, status and files/ there
		  -t SECONDS   time limit (default 120; times 4 for slow kernels)
		  -M MIB       memory
		  -a "WORDS"   more words for the kernel's command line
		  -q           say nothing but the command's output and failures
		Inside, VM_OUT names a folder that is FOLDER/files here, VM_NAME the kernel;
		variables listed in VM_ENV, and all XMEM_*, are passed on. VM_CPUS here:
		number of processors (default 2). VM_COUNTS=1: one processor, whose time is
		the number of its instructions, a nanosecond each.
		Ends with the command's status; 124: time limit; 125: the kernel complained,
		died, could not unload the module, or the harness failed; 2: wrong usage.
	TEXT
	exit 2
}

kernel=debian-6.1 modules=() parameters=() out='' limit=120 memory='' append='' quiet=''
while getopts k:m:p:o:t:M:a:q option; do
	case $option in
	k) kernel=$OPTARG ;;
	m) modules+=("${OPTARG:?-m needs the path of a module}"); parameters+=('') ;;
	p)
		[ ${#modules[@]} -gt 0 ] || die "-p comes after the -m of its module"
		parameters[-1]=$OPTARG ;;
	o) out=$OPTARG ;;
	t) limit=$OPTARG ;;
	M) memory=$OPTARG ;;
	a) append=$OPTARG ;;
	q) quiet=1 ;;
	*) usage ;;
	esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || usage
for module in "${modules[@]}"; do
	[ -r "$module" ] || die "no such module: $module"
done

need cpio:cpio setpriv:util-linux timeout:coreutils
folder=$("$vm_dir/kernel.sh" "$kernel")
# shellcheck source=/dev/null
. "$folder/env"
case $VM_MACHINE in
virt) need qemu-system-aarch64:qemu-system-arm ;;
*) need qemu-system-x86_64:qemu-system-x86 ;;
esac
limit=$((limit * VM_TIMEOUT_SCALE))

# All temporary files, and qemu, go when this script ends, however it ends. (setpriv below ends qemu
# even if this trap does not run.)
temporary='' machine='' unwanted=''
# shellcheck disable=SC2317
clean_up() {
	local status=$?
	trap - EXIT
	[ -z "$machine" ] || kill "$machine" 2>/dev/null || true
	[ -z "$machine" ] || wait "$machine" 2>/dev/null || true
	rm -rf "$temporary" "$unwanted"
	exit "$status"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

mkdir -p "$cache_dir/run"
temporary=$(mktemp -d "$cache_dir/run/vm.XXXXXX")
if [ -z "$out" ]; then
	out=$(mktemp -d "$cache_dir/run/out.XXXXXX")
	unwanted=$out
fi
mkdir -p "$out/files"
chmod 1777 "$out/files"
out=$(cd "$out" && pwd)
rm -f "$out/status"

# quote WORD: quotes it for a POSIX shell.
quote() { printf "'%s'" "${1//\'/\'\\\'\'}"; }

write_command() {
	local name word
	cat <<-TEXT
		export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
		export HOME=/root LANG=C.UTF-8 TERM=dumb
		export VM_OUT=/run/vm/out/files VM_NAME=$kernel VM_TIMEOUT_SCALE=$VM_TIMEOUT_SCALE
		cd $(quote "$PWD") || exit 125
	TEXT
	for name in $(compgen -A export XMEM_ || true) ${VM_ENV:-}; do
		[ -z "${!name+set}" ] || printf 'export %s=%s\n' "$name" "$(quote "${!name}")"
	done
	printf 'exec'
	for word; do printf ' %s' "$(quote "$word")"; done
	echo
}

write_settings() {
	local base i
	echo "loads=$(quote "${!modules[*]}")"
	for i in "${!modules[@]}"; do
		base=${modules[i]##*/}
		base=${base%.ko}
		echo "module_$i=$(quote "${base//-/_}")"
		echo "arguments_$i=$(quote "${parameters[i]}")"
	done
	echo "modules=$(quote "$VM_MODULES")"
	echo "machine=$VM_MACHINE"
	echo "dump_at=$((limit > 12 ? limit - 4 : limit * 2 / 3))${VM_COUNTS:+000}"
}

# The guest's own part of the initramfs comes after the kernel's part in one file.
write_initrd() {
	local files=(init command settings) i
	cp "$vm_dir/init.sh" "$temporary/init"
	chmod 755 "$temporary/init"
	write_command "$@" >"$temporary/command"
	write_settings >"$temporary/settings"
	for i in "${!modules[@]}"; do
		cp "${modules[i]}" "$temporary/module.$i.ko"
		files+=("module.$i.ko")
	done
	{
		cat "$VM_INITRD"
		(cd "$temporary" && printf '%s\n' "${files[@]}" | cpio --quiet -o -H newc)
	} >"$temporary/initrd"
}

# panic=-1 and -no-reboot: a kernel that panics ends qemu at once.
#
# The kernel detects lockups by the clock, and a busy machine may give an emulated processor no time
# for a minute. So the kernel's limits are long: 10 minutes for a soft lockup, 5 for a stall of RCU
# and for a work queue, 20 for a task. In any case a hang ends at the time limit.
cmdline="loglevel=7 panic=-1 oops=panic panic_on_warn=1 nokaslr mitigations=off"
cmdline+=" random.trust_cpu=on rcupdate.rcu_cpu_stall_timeout=300 watchdog_thresh=300"
cmdline+=" workqueue.watchdog_thresh=300 sysctl.kernel.hung_task_timeout_secs=1200"

# Sets emulator and own: the processor, and options that only its machines have. The first serial
# line is the kernel's console, the second one the command's output.
#
# x86 has no la57: KASAN misjudges addresses while the kernel detects la57, and warns of an
# interrupt that comes just then. It has no erms and fsrm, with which the kernel and libc clear and
# copy pages with one instruction. Emulated, that instruction works byte by byte, and takes a
# quarter of the time of all tests. arm64 has a pointer authentication that is fast to emulate, and
# no lpa2, which kernels before 6.12 do not expect.
choose_machine() {
	# shellcheck disable=SC2054
	if [ "$VM_MACHINE" = virt ]; then
		emulator=qemu-system-aarch64
		cmdline+=" console=ttyAMA0"
		own=(-cpu max,pauth-impdef=on,lpa2=off -device pci-serial,chardev=output)
	else
		emulator=qemu-system-x86_64
		cmdline+=" console=ttyS0 tsc=reliable no_timer_check"
		own=(-cpu max,-la57,-erms,-fsrm -serial chardev:output
			-device isa-debug-exit,iobase=0xf4,iosize=0x04)
	fi
}

# The clock is this machine's, or one that ticks once for each executed instruction. With the second
# one, times do not depend on other load of this machine. That clock leaps to the next timer while
# the guest waits for a file of this machine, so nothing in the guest may have a limit in time.
choose_clock() {
	processors=${VM_CPUS:-2}
	clock=(-accel "tcg,thread=multi,tb-size=512")
	[ -n "${VM_COUNTS:-}" ] || return 0
	processors=1
	cmdline+=" sysctl.kernel.hung_task_timeout_secs=0"
	clock=(-accel "tcg,thread=single,tb-size=512" -icount "shift=0,sleep=off")
}

run_machine() {
	local emulator own clock processors
	choose_machine
	choose_clock
	# shellcheck disable=SC2054
	local arguments=(
		-nodefaults -no-user-config -display none -no-reboot
		-machine "$VM_MACHINE" "${clock[@]}"
		-smp "$processors" -m "${memory:-$VM_MEMORY}"
		-kernel "$VM_KERNEL" -initrd "$temporary/initrd" -append "$cmdline $append"
		-serial "file:$out/console.log" -chardev stdio,id=output,signal=off
		"${own[@]}"
		-fsdev "local,id=hostroot,path=/,security_model=none,multidevs=remap,readonly=on"
		-device virtio-9p-pci,fsdev=hostroot,mount_tag=hostroot
		-fsdev "local,id=out,path=${out//,/,,},security_model=none,multidevs=remap"
		-device virtio-9p-pci,fsdev=out,mount_tag=out
	)
	exec setpriv --pdeathsig TERM timeout -k 5 "$limit" "$emulator" "${arguments[@]}" \
		</dev/null 2>"$temporary/qemu.err"
}

field() { sed -n "s/^$1=//p" "$out/status" 2>/dev/null || true; }

module_trouble() {
	say "the module could not be $1, see $out/console.log:"
	tail -n 4 "$out/console.log" | sed 's/^/    /' >&2
}

# left QEMU-STATUS: has the guest ended by itself, after it had written its last status? On arm64 it
# has only its power button for that, and a kernel that died also ends with status 0.
left() {
	[ "$1" = 11 ] || { [ "$VM_MACHINE" = virt ] && [ "$1" = 0 ] && [ -s "$out/status" ]; }
}

# judge QEMU-STATUS: returns the exit status, and prints the faults on standard error.
judge() {
	local complaints result
	if ! complaints=$("$vm_dir/complaints.sh" "$out/console.log" "$out/status"); then
		say "the kernel complained ($kernel, see $out/console.log):"
		echo "    ${complaints//$'\n'/$'\n'    }" >&2
		result=125
	fi
	case $1 in
	124 | 137)
		say "time limit of $limit s reached ($kernel, see $out/console.log)"
		return 124 ;;
	esac
	if ! left "$1"; then
		if [ -z "${result:-}" ]; then
			say "the guest died ($kernel, qemu status $1, see $out/console.log)"
			tail -n 5 "$out/console.log" "$temporary/qemu.err" >&2 || true
		fi
		return 125
	fi
	case $(field module) in
	unloaded) ;;
	not_loaded) module_trouble loaded; result=125 ;;
	*) module_trouble unloaded; result=125 ;;
	esac
	[ -z "${result:-}" ] || say "(the command itself ended with $(field command))"
	return "${result:-$(field command)}"
}

started=$SECONDS
write_initrd "$@"
mkfifo "$temporary/output"
: >"$out/console.log"
tee -p "$out/output.log" <"$temporary/output" &
printer=$!
run_machine >"$temporary/output" &
machine=$!
qemu_status=0
wait "$machine" || qemu_status=$?
machine=''
wait "$printer" || true

result=0
judge "$qemu_status" || result=$?
case $result in 124 | 125) unwanted='' ;; esac
[ -n "$quiet" ] || say "$kernel: status $result after $((SECONDS - started)) s"
exit "$result"
