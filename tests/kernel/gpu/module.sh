#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# module.sh KERNEL: make KERNEL ready (see tests/vm/kernel.sh), build xmem_test_gpu.ko for it,
# and print where it is. For vm.sh, before xmem.ko:
#   tests/vm/vm.sh -k K -m "$(tests/kernel/gpu/module.sh K)" \
#           -m "$(tests/vm/module.sh K)" -p device_files=240:255 -- COMMAND
set -euo pipefail
. "$(dirname "$0")/../../vm/common.sh"

[ $# = 1 ] || die "usage: $me KERNEL"
here=$(cd "$(dirname "$0")" && pwd)
folder=$("$here/../../vm/kernel.sh" "$1")
# shellcheck source=/dev/null
. "$folder/env"
to=$repo_dir/build/test-gpu/$1
mkdir -p "$to"
# Suites that are named alone start at once, and each wants this module.
exec 9>"$to/lock"
flock 9
# not anew when nothing has changed
cp -u "$here"/{Kbuild,xmem_test_gpu.c,xmem_test_gpu.h} "$to/"
# shellcheck disable=SC2086
where_it_builds make -s -C "$VM_KDIR" M="$to" $VM_KMAKE CONFIG_DEBUG_INFO_BTF_MODULES= modules >&2
echo "$to/xmem_test_gpu.ko"
