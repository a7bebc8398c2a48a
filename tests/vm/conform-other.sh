#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The conformance suite in the VM on another kernel than the one that xmem.ko was built for
# first: prepares that kernel, builds the module against it, runs the tests named.
#   tests/vm/conform-other.sh KERNEL PATTERN...
set -euo pipefail
cd "$(dirname "$0")/../.."
name=$1; shift
folder=$(tests/vm/kernel.sh "$name" | tail -1)
# shellcheck disable=SC1091
. "$folder/env"
make -s kmod KDIR="$VM_KDIR" KMAKE="${VM_KMAKE:-}" KOUT="build/kmod/$name"
tests/vm/vm.sh -k "$name" -t 900 -o "build/test-log/vm-$name" -m "build/kmod/$name/xmem.ko" -- \
	env XMEM_BACKEND=kernel build/test/conform "$@"
