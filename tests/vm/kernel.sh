#!/bin/bash
# SPDX-License-Identifier: MIT
# kernel.sh NAME: makes a kernel ready for vm.sh in build/vm/NAME, and prints that folder. NAME is
# debian-6.1 (of the installed headers), one of Debian's other releases, or one of our own kernels,
# which need build-kernel.sh: see the list at the end. It installs nothing, and a second call takes
# no time. Each folder gets a file "env" of shell variables, with which vm.sh boots the kernel and
# modules are built for it. It does not boot any kernel.
set -euo pipefail
. "$(dirname "$0")/common.sh"
. "$(dirname "$0")/debian.sh"

name=${1:-}
out=$cache_dir/$name
root=$out/root
busybox=$(command -v busybox || true)

# The modules that the guest needs to mount the host's root; built-in ones are skipped.
boot_modules="virtio_pci 9pnet_virtio 9p overlay"

# le BYTES OFFSET FILE: prints a little-endian number from a file.
le() { od -An -v -t "u$1" -j "$2" -N "$1" "$3" | tr -d ' '; }

# unpack_vmlinux VMLINUZ VMLINUX: takes the ELF image out of a bzImage (boot protocol 2.08:
# setup_sects, payload_offset, payload_length). A direct boot of it saves the guest seconds of
# decompression. The payload's last 4 bytes are the unpacked size.
unpack_vmlinux() {
	local image=$1 vmlinux=$2 sectors start length unpack
	[ "$(le 2 $((0x1fe)) "$image")" = $((0xaa55)) ] || die "$image is no bzImage"
	sectors=$(le 1 $((0x1f1)) "$image")
	start=$(((sectors + 1) * 512 + $(le 4 $((0x248)) "$image")))
	length=$(le 4 $((0x24c)) "$image")
	case $(od -An -v -t x1 -j "$start" -N 4 "$image" | tr -d ' ') in
	fd377a58) unpack=(xz -dc) ;;
	28b52ffd) unpack=(zstd -qdc) ;;
	*) die "$image: compressed in a way not known here" ;;
	esac
	dd if="$image" bs=1M iflag=skip_bytes,count_bytes skip="$start" count=$((length - 4)) \
		status=none |
		"${unpack[@]}" >"$vmlinux"
	[ "$(stat -c %s "$vmlinux")" = "$(le 4 $((start + length - 4)) "$image")" ] ||
		die "$image: not unpacked whole"
}

# module_order FOLDER NAME...: prints the files to load, each after its dependencies.
module_order() {
	local folder=$1 module file depends
	shift
	for module; do
		file=$(find "$folder" -name "$module.ko*" -o -name "${module//_/-}.ko*" | sed 1q)
		[ -n "$file" ] || continue
		depends=$(modinfo -F depends "$file")
		# shellcheck disable=SC2086
		[ -z "$depends" ] || module_order "$folder" ${depends//,/ }
		echo "$file"
	done
}

# write_initrd FOLDER-OF-MODULES|"": writes the static busybox and the numbered boot modules. It is
# not compressed, because the guest unpacks more slowly than it reads.
write_initrd() {
	local stage file number=10
	stage=$(mktemp -d "$out/stage.XXXXXX")
	chmod 755 "$stage"
	mkdir -p "$stage"/{bin,dev,proc,sys,modules}
	cp "$busybox" "$stage/bin/busybox"
	ln -s busybox "$stage/bin/sh"
	if [ -n "$1" ]; then
		# shellcheck disable=SC2086
		module_order "$1" $boot_modules | awk '!seen[$0]++' >"$stage/list"
		while read -r file; do
			case $file in
			*.ko.xz)
				xz -dc "$file" >"$stage/modules/$number-$(basename "${file%.xz}")"
				;;
			*.ko) cp "$file" "$stage/modules/$number-$(basename "$file")" ;;
			*) die "$file: compressed in a way not known here" ;;
			esac
			number=$((number + 1))
		done <"$stage/list"
		rm "$stage/list"
	fi
	(cd "$stage" && find . | sort | cpio --quiet -o -H newc) >"$out/initrd.cpio"
	rm -rf "$stage"
}

# write_env NAME=VALUE...: this is the last step, so a folder with the file env is complete.
write_env() {
	local pair
	for pair; do printf '%s=%q\n' "${pair%%=*}" "${pair#*=}"; done >"$out/env.new"
	mv "$out/env.new" "$out/env"
}

# boot_debian RELEASE KDIR KMAKE [NAME=VALUE...]: makes a kernel ready from the unpacked packages in
# $root. NAME=VALUE goes into the file env. Since trixie all files are below usr. Images for arm64
# are not compressed.
boot_debian() {
	local release=$1 image=$root/boot/vmlinuz-$1 modules=$root/lib/modules/$1 machine=pc
	[ -d "$root/lib" ] || ln -s usr/lib "$root/lib"
	[ -e "$image" ] || image=$modules/vmlinuz
	case $release in
	*arm64*) machine=virt; cp "$image" "$out/vmlinux" ;;
	*) unpack_vmlinux "$image" "$out/vmlinux" ;;
	esac
	depmod -b "$root" "$release"
	write_initrd "$modules"
	write_env VM_KERNEL="$out/vmlinux" VM_INITRD="$out/initrd.cpio" VM_MACHINE=$machine \
		VM_MEMORY=1024 VM_TIMEOUT_SCALE=1 VM_RELEASE="$release" VM_MODULES="$modules" \
		VM_KDIR="$2" VM_KMAKE="$3" VM_CHROOT='' VM_ROOT="$root" "${@:4}"
}

# ready INPUT: has this version of the script made the folder from this input?
# mark_ready INPUT: records that it has.
recipe() { echo "$1 $(cat "$vm_dir"/{kernel,debian}.sh | sha256sum)"; }
ready() { [ -e "$out/env" ] && [ "$(recipe "$1")" = "$(cat "$out/recipe" 2>/dev/null)" ]; }
mark_ready() { recipe "$1" >"$out/recipe"; }

prepare_debian_6_1() {
	local release version
	release=$(stock_release)
	version=$(stock_version "$release")
	! ready "$version" || return 0
	[ -e "$root/boot/vmlinuz-$release" ] || rm -rf "$root"
	fetch_deb "linux-image-$release=$version" "$root"
	boot_debian "$release" "/usr/src/linux-headers-$release" "CC=$(kernel_cc)"
	mark_ready "$version"
}

# Our own kernels are slow, so limits are scaled. They do not boot as ELF, and on "pc" they spend a
# minute in ACPI. Everything that the guest needs is built in.
prepare_built() {
	[ -e "$out/stamp" ] || die "no $name kernel yet, try: tests/vm/build-kernel.sh $name"
	! ready "$(cat "$out/stamp")" || return 0
	write_initrd ""
	write_env VM_KERNEL="$out/bzImage" VM_INITRD="$out/initrd.cpio" VM_MACHINE=q35 \
		VM_MEMORY=2048 VM_TIMEOUT_SCALE=4 VM_RELEASE="$(cat "$out/release")" VM_MODULES= \
		VM_KDIR="$out/tree" VM_KMAKE="CC=$(cat "$out/cc")" VM_CHROOT='' VM_ROOT=''
	mark_ready "$(cat "$out/stamp")"
}

need busybox:busybox-static cpio:cpio depmod:kmod modinfo:kmod xz:xz-utils zstd:zstd \
	flock:util-linux dpkg-deb:dpkg
cc=CC=$(kernel_cc)
case $name in
debian-6.1) prepare=(prepare_debian_6_1) ;;
debian-6.1-rt) prepare=(prepare_fetched 6.1. rt-amd64 "$cc" bookworm bookworm-security) ;;
debian-5.10) prepare=(prepare_fetched 5.10. amd64 "$cc" bullseye bullseye-security) ;;
debian-6.12) prepare=(prepare_fetched 6.12. amd64 "$cc" bookworm-backports) ;;
debian-newest) prepare=(prepare_newest) ;;
debian-6.1-arm64) prepare=(prepare_arm64 6.1. arm64 bookworm bookworm-security) ;;
debian-6.12-arm64-16k)
	prepare=(prepare_arm64 6.12. arm64-16k bookworm bookworm-backports) ;;
kasan | kcsan | rt) prepare=(prepare_built) ;;
*)
	die "usage: $me debian-6.1 | debian-6.1-rt | debian-5.10 | debian-6.12 |" \
		"debian-newest | debian-6.1-arm64 | debian-6.12-arm64-16k | kasan | kcsan | rt" ;;
esac
# the initramfs has no libraries
! ldd "$busybox" >/dev/null 2>&1 || die "busybox is not static, try: apt-get install busybox-static"

mkdir -p "$out"
exec 9>"$out/lock.prepare"
flock 9
"${prepare[@]}"
echo "$out"
