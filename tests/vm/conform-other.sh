#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The conformance suite in the VM on another kernel than the usual one: prepares that
# kernel, builds the module for it, runs the tests named.
#   tests/vm/conform-other.sh KERNEL [PATTERN...]
set -euo pipefail
cd "$(dirname "$0")/../.."
name=$1; shift
folder=$(tests/vm/kernel.sh "$name" | tail -1)
# shellcheck disable=SC1091
. "$folder/env"
make -s kmod KDIR="$VM_KDIR" KMAKE="$VM_KMAKE" XMEM_DEBUG=y
tests/vm/vm.sh -k "$name" -t 300 -o "build/test-log/vm-$name" \
	-m "build/kmod/$VM_RELEASE/xmem.ko" -- env XMEM_BACKEND=kernel build/test/conform "$@"
