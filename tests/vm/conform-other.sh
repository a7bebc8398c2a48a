#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs the conformance suite in the VM on another kernel than the usual one. It prepares that
# kernel, builds the module for it and the module that stands for a GPU's driver, and runs the named
# tests. For another processor it compiles the suite for that processor.
#   tests/vm/conform-other.sh KERNEL [PATTERN...]
# VM_LIMIT: seconds; the default is 1500.
set -euo pipefail
# shellcheck source=tests/vm/common.sh
. "$(dirname "$0")/common.sh"
cd "$repo_dir"
name=$1; shift
module=$(tests/vm/module.sh "$name" XMEM_DEBUG=y)
gpu=$(tests/kernel/gpu/module.sh "$name")
# shellcheck source=/dev/null
. "$cache_dir/$name/env"

# The loader and libc come with the cross compiler. The guest sees them at their paths on this
# machine, also for files that libc itself loads, which needs the old kind of rpath. Check is
# Debian's for that processor, unpacked beside the kernel.
build_arm64() {
	local cross=aarch64-linux-gnu libc=/usr/aarch64-linux-gnu/lib
	PKG_CONFIG_LIBDIR=$VM_ROOT/usr/lib/$cross/pkgconfig make -s -j"$(nproc)" FLAVOUR=test \
		B=build/test-arm64 CC=$cross-gcc CFLAGS="-O2 -g -I$VM_ROOT/usr/include" \
		LDFLAGS="-L$VM_ROOT/usr/lib/$cross -Wl,--disable-new-dtags,-rpath,$libc $(
			)-Wl,--dynamic-linker=$libc/ld-linux-aarch64.so.1" "$1"
}

major=240
case $name in
*arm64*)
	# others have that number already
	major=200
	conform=build/test-arm64/conform
	build_arm64 $conform >&2 ;;
*)
	conform=build/test/conform
	make -s FLAVOUR=test $conform ;;
esac
tests/vm/vm.sh -k "$name" -t "${VM_LIMIT:-1500}" -o "build/test-log/vm-$name" -m "$gpu" \
	-p "major=$major" -m "$module" -p "device_files=$major:255" -- \
	env XMEM_BACKEND=kernel FAKECUDA_DEVICE_FILE=/dev/xmem-test-gpu $conform "$@"
