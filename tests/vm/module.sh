#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# module.sh KERNEL [VARIABLE=VALUE...]: makes KERNEL ready (see kernel.sh), builds xmem.ko for it,
# and prints its path, which is the argument of vm.sh -m. The variables are make's.
set -euo pipefail
. "$(dirname "$0")/common.sh"

[ $# -gt 0 ] || die "usage: $me KERNEL [VARIABLE=VALUE...]"
folder=$("$vm_dir/kernel.sh" "$1")
shift
# shellcheck source=/dev/null
. "$folder/env"
cd "$repo_dir"
where_it_builds make -s kmod KDIR="$VM_KDIR" \
	KMAKE="$VM_KMAKE CONFIG_DEBUG_INFO_BTF_MODULES=" "$@" >&2
make -s --no-print-directory kmod-path KDIR="$VM_KDIR" "$@"
