#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Checks that DKMS needs only the files that "make dkms-install" puts in place. In trees of the
# script's own, DKMS adds, builds and installs the module for the kernel that "make kmod" builds
# for, and removes it.
set -euo pipefail
cd "$(dirname "$0")/.."

# A kernel that clang has compiled: both ways to build the module say LLVM=1, and only then.
clang=$(mktemp -d)
mkdir -p "$clang/include/generated"
echo '#define UTS_RELEASE "0-clang"' >"$clang/include/generated/utsrelease.h"
echo 'modules: ; @echo "made with LLVM=$(LLVM) "' >"$clang/Makefile"
for word in '' CONFIG_CC_IS_CLANG=y; do
	echo "$word" >"$clang/.config"
	for line in "$(make -s --no-print-directory kmod KDIR="$clang" 2>/dev/null)" \
		"$(kernel_source_dir=$clang; dkms_tree=/; . ./dkms.conf; echo "${MAKE[0]}")"; do
		if grep -q ' LLVM=1 ' <<<"$line"; then has=CONFIG_CC_IS_CLANG=y; else has=; fi
		[ "$has" = "$word" ] || { echo "FAIL with '$word': $line"; exit 1; }
	done
done
rm -rf "$clang" build/kmod/0-clang
if [ "$(id -u)" != 0 ]; then
	echo 'SKIP dkms: only root can install with it, and it signs with a key of root'
	exit 0
fi
version=$(sed -n 's/^PACKAGE_VERSION="\(.*\)"$/\1/p' dkms.conf)
kernel=$(make -s --no-print-directory kmod-release)
tree=$PWD/build/dkms
rm -rf "$tree"
mkdir -p "$tree/tree" "$tree/modules/$kernel"
# If there is no signing key, DKMS would make one; a test must not cause that.
if [ ! -e /var/lib/dkms/mok.key ]; then
	trap 'rm -f /var/lib/dkms/mok.key /var/lib/dkms/mok.pub' EXIT
fi
make -s dkms-install DESTDIR="$tree"
dkms=(dkms --dkmstree "$tree/tree" --sourcetree "$tree/usr/src" --installtree "$tree/modules")
"${dkms[@]}" add "xmem/$version"
"${dkms[@]}" build "xmem/$version" -k "$kernel"
"${dkms[@]}" install "xmem/$version" -k "$kernel" --no-depmod
module=$(find "$tree/modules/$kernel" -name 'xmem.ko*' | head -1)
[ -n "$module" ] || { echo 'FAIL DKMS installed no xmem.ko'; exit 1; }
modinfo "$module" | grep -q "^vermagic: *$kernel " ||
	{ echo "FAIL $module is not for $kernel"; exit 1; }
"${dkms[@]}" remove "xmem/$version" --all
